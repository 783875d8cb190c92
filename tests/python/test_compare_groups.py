# SPDX-License-Identifier: Apache-2.0
"""`commlens compare --by`: configurations in columns, claims against the fastest, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from build_profile import ProfileBuilder
from conftest import MS, Run
from scipy import stats
from test_compare import run_data

from commlens.base.errors import CommlensError
from commlens.compare.groups import Group, Grouped, compare_groups, group_runs
from commlens.compare.groups_text import draw, headlines, statement
from commlens.compare.read import Counts, RowKey

ROOT = Path(__file__).parents[2]
SLOW = RowKey(2, "", "MPI_Isend", 8)


def made_up(seed: int, runs: int, effects: dict[str, RowKey | None], noise: float = 0.01) -> Grouped:
    """Compare configurations of as many runs each, some with a row that takes 5 % longer."""
    generator = np.random.default_rng(seed)
    groups = [
        Group(letter, value, [run_data(generator, slower, noise) for _ in range(runs)])
        for letter, (value, slower) in zip("ABCDEF", effects.items())
    ]
    return compare_groups("alg", groups)


@pytest.mark.long
def test_equal_configurations_show_nothing_in_95_of_100_tries() -> None:
    equal = dict.fromkeys(["bruck", "linear", "pairwise", "sync"])
    results = [made_up(seed, 10, equal) for seed in range(100)]
    claims = [any(row.slower for row in (r.whole, r.elapsed, *r.rows)) for r in results]
    assert sum(claims) <= 5
    silent = next(result for result, claimed in zip(results, claims) if not claimed)
    assert headlines(silent) == [
        "no difference is shown: no configuration is significantly slower than the fastest of a row"
    ]


def test_the_row_and_the_configurations_with_an_effect_of_5_percent_are_named() -> None:
    result = made_up(1, 10, {"bruck": SLOW, "linear": None, "pairwise": SLOW})
    found = [
        (row.family, row.operation, row.bin, row.fastest, row.slower) for row in result.rows if row.slower
    ]
    assert found == [("S0.0", "MPI_Isend", 8, 1, [0, 2])]
    assert "fastest with B (alg linear); slower: A +" in headlines(result)[1]
    assert statement(result) == "3 configurations, 10 runs each, 42 pairs of times tested"


def test_p_values_are_scipys_corrected_for_all_pairs_of_all_rows() -> None:
    result = made_up(5, 7, {"a": SLOW, "b": None, "c": None, "d": SLOW}, noise=0.03)
    rows = [result.elapsed, result.whole, *result.rows]
    p, places = [], []
    for number, row in enumerate(rows):
        times = []
        for group in result.groups:
            if row.operation == "elapsed time":
                times.append([run.elapsed_ns for run in group.runs])
            elif row.node is None:
                times.append([sum(each.time_ns for each in run.rows.values()) for run in group.runs])
            else:
                key = RowKey("WST".index(row.family[0]) + 1, "", row.operation, row.bin)
                times.append([run.rows[key].time_ns for run in group.runs])
        medians = [median(one) for one in times]
        assert row.fastest == medians.index(min(medians))
        assert [each.time_ns for each in row.groups if each is not None] == medians
        for i, j in combinations(range(4), 2):
            p.append(stats.mannwhitneyu(times[i], times[j], method="exact").pvalue)
            places.append((number, i, j))
    q = stats.false_discovery_control(p)
    checked = 0
    for (number, i, j), expected in zip(places, q):
        row = rows[number]
        if row.fastest in (i, j):
            against = row.against[j if i == row.fastest else i]
            assert against is not None and against.q == pytest.approx(expected)
            checked += 1
    assert checked == 3 * len(rows) == 3 * 14


def test_three_runs_each_claim_nothing_and_say_how_many_would_do() -> None:
    result = made_up(1, 3, {"a": SLOW, "b": None, "c": None})
    assert not any(row.slower for row in (result.elapsed, result.whole, *result.rows))
    # 42 pairs: 2 / C(2n, n) <= 0.05 / 42 first holds for n = 7
    assert statement(result) == (
        "3 configurations, 3 runs each, 42 pairs of times tested; a difference of a single pair can be shown with "
        "7 runs of each configuration or more"
    )


def fft(folder: Path, alg: str, time: int, number: int = 0, ranks: int = 4) -> Path:
    """Write a run whose time in MPI_Alltoallv, in ms, is that of its algorithm."""
    build = ProfileBuilder(ranks=ranks)
    build.sites[1] = ("/opt/app/fft", "", 0x1234)
    rows = build.comm("s0.1", list(range(ranks)), parent=1, creator="MPI_Comm_split", callsite=1)
    for rank in range(ranks):
        build.count(rows, "MPI_Alltoallv", rank, 10, time * MS + number, size=None, sent=1000)
        build.count(1, "MPI_Barrier", rank, 1, MS)
    build.meta["elapsed_ns"] = str((time + 100) * MS + number)
    build.settings = [("label", "alg", alg, ranks), ("label", "run", str(number), ranks)]
    return build.write(folder / f"{alg}-{number}.db")


@pytest.fixture
def study(tmp_path: Path) -> list[Path]:
    """Return eight runs of each of three algorithms, which take 30, 20 and 10 ms."""
    algorithms = {"linear": 30, "bruck": 20, "pairwise": 10}
    return [fft(tmp_path, alg, time, i) for alg, time in algorithms.items() for i in range(8)]


def test_a_study_of_three_algorithms(study: list[Path], run: Run) -> None:
    result = run("compare", *study, "--by", "alg")
    assert result.exit_code == 0
    guide = (ROOT / "docs" / "guide" / "compare.md").read_text(encoding="utf-8")
    assert "".join(f"    {line}".rstrip() + "\n" for line in result.stdout.splitlines()[:13]) in guide
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines == [
        "C (alg pairwise) has the shortest elapsed time, 110 ms; slower: A +9.1 %, B +18.2 %",
        "MPI_Alltoallv varies on s0.1 (MPI_Comm_split at fft+0x1234) differs most: fastest with C (alg pairwise); "
        "slower: A +100.0 %, B +200.0 %",
        "3 configurations, 8 runs each, 12 pairs of times tested",
        "",
        "alg runs elapsed shortest longest change 95 % interval claim in MPI change claim",
        "A bruck 8 120 ms 120 ms 120 ms +9.1 % +9.1 % to +9.1 % slower 84.0 ms +90.9 % slower",
        "B linear 8 130 ms 130 ms 130 ms +18.2 % +18.2 % to +18.2 % slower 124 ms +181.8 % slower",
        "C pairwise 8 110 ms 110 ms 110 ms fastest 44.0 ms fastest",
        "",
        "communicator size A B C fastest slower",
        "s0.1",
        "MPI_Comm_split at fft+0x1234",
        "MPI_Alltoallv varies 80.0 ms 120 ms 40.0 ms C A, B",
        "",
        "W0.0",
        "MPI_Barrier 0 B 4.00 ms 4.00 ms 4.00 ms",
    ]


@pytest.mark.long
def test_the_same_in_csv_and_json(study: list[Path], run: Run) -> None:
    table = list(csv.DictReader(io.StringIO(run("compare", *study, "--by", "alg", "--format", "csv").stdout)))
    rows = [row for row in table if row["operation"] == "MPI_Alltoallv"]
    assert [
        (row["value"], row["runs"], row["calls"], row["fastest"], row["significant"]) for row in rows
    ] == [
        ("bruck", "8", "40.0", "False", "True"),
        ("linear", "8", "40.0", "False", "True"),
        ("pairwise", "8", "40.0", "True", "False"),
    ]
    assert [float(row["time_ns"]) for row in rows] == [time * MS * 4 + 14 for time in (20, 30, 10)]
    found = json.loads(run("compare", *study, "--by", "alg", "--format", "json").stdout)
    assert found["configurations"]["bruck"] == [str(path) for path in study[8:16]]
    assert found["also_different"] == []
    assert len(found["rows"]) == len(table) == 12


@pytest.mark.long
def test_two_values_are_the_sides_a_and_b(study: list[Path], run: Run) -> None:
    two = [*study[:8], *study[16:]]
    by = run("compare", *two, "--by", "alg").stdout.splitlines()
    assert by.pop(1) == "A: alg linear, 8 runs; B: alg pairwise, 8 runs"
    assert by == run("compare", *two[:8], "--", *two[8:]).stdout.splitlines()
    gate = run("compare", *two, "--by", "alg", "--fail-if", "time < -50%")
    assert gate.exit_code == 1


def test_a_call_that_one_configuration_does_not_make_has_no_time_in_it(study: list[Path], run: Run) -> None:
    build = ProfileBuilder(ranks=4)
    build.count(1, "MPI_Barrier", 0, 1, MS)
    build.settings = [("label", "alg", "none", 4)]
    path = build.write(study[0].parent / "none.db")
    lines = [
        " ".join(line.split()) for line in run("compare", *study, path, "--by", "alg").stdout.splitlines()
    ]
    assert "MPI_Alltoallv varies 80.0 ms 120 ms - 40.0 ms D A, B" in lines


def test_the_algorithms_that_ran_stand_where_times_are_compared(run: Run) -> None:
    """Of a recorded run with the messages inside collectives; commlens algorithms names the same."""
    path = ROOT / "tests" / "profiles" / "version9.db"
    lines = json.loads(run("algorithms", path, "--format", "json").stdout)["lines"]
    known = {line["procedure"]: line["verdict"] for line in lines}
    assert known["MPI_Bcast"] == "ambiguous: binary or binomial"
    rows = json.loads(run("compare", path, path, "--format", "json").stdout)["rows"]
    found = {row["operation"]: row["algorithm_a"] for row in rows if row["algorithm_a"]}
    assert found == {op: name if name.count(" or ") < 3 else "ambiguous" for op, name in known.items()}
    assert "    algorithm: ambiguous: binary or binomial\n" in run("compare", path, path, "--top", 0).stdout


def test_algorithms_that_differ_are_named_with_their_configurations() -> None:
    generator = np.random.default_rng(1)
    groups = [Group(letter, letter, [run_data(generator)]) for letter in "ABC"]
    for group, name in zip(groups, ("linear", "pairwise", "")):
        group.runs[0].algorithms = {(1, "MPI_Bcast", 8): frozenset([name])} if name else {}
    result = compare_groups("alg", groups)
    (row,) = [row for row in result.rows if any(row.ran)]
    assert (row.family, row.operation, row.ran) == ("W0.0", "MPI_Bcast", ["linear", "pairwise", ""])
    lines = [str(line) for line in draw(result, None).lines(None)]
    assert "    algorithm: A linear, B pairwise, C not measured" in lines


@pytest.mark.long
def test_what_makes_no_configurations_is_refused(study: list[Path], run: Run) -> None:
    def error(*arguments: object) -> str:
        result = run("compare", *arguments)
        assert result.exit_code == 2
        return result.stderr.splitlines()[-1]

    assert error(*study, "--by", "agl") == (
        "commlens: --by agl: no profile has this label or setting; these differ between them: alg, run"
    )
    assert error(*study[:8], "--by", "alg").endswith("--by alg: all profiles have linear: nothing to compare")
    assert error(*study[:8], "--", *study[8:], "--by", "alg").endswith(
        "give two or more profiles, without --"
    )
    assert error(study[0], "--by", "alg").endswith("give two or more profiles, without --")
    assert error(*study, "--by", "alg", "--fail-if", "time > 5%").endswith(
        "--fail-if needs two sides, but alg has 3 values"
    )


def test_values_that_are_numbers_are_in_their_order() -> None:
    generator = np.random.default_rng(1)
    runs = [run_data(generator) for _ in range(4)]
    for one, value in zip(runs, ("10", "9", "x", "1e1")):
        one.facts["n"] = value
    assert [group.value for group in group_runs(runs, "n")] == ["9", "10", "1e1", "x"]
    many = [run_data(generator) for _ in range(27)]
    for i, one in enumerate(many):
        one.facts["m"] = str(i)
    with pytest.raises(CommlensError, match="27 values, more than the 26 that a table can show"):
        group_runs(many, "m")


def with_an_open_call(path: Path, alg: str) -> Path:
    """Write a run that was killed in its only MPI_Allreduce: a row with time, but without calls."""
    build = ProfileBuilder(ranks=4)
    build.count(1, "MPI_Barrier", 0, 1, MS)
    build.count(1, "MPI_Allreduce", 0, 1, 5 * MS)
    build.cells[-1].calls = 0
    build.settings = [("label", "alg", alg, 4)]
    return build.write(path)


def test_a_row_without_calls_in_all_configurations_is_shown(tmp_path: Path, run: Run) -> None:
    paths = [with_an_open_call(tmp_path / f"{alg}.db", alg) for alg in "xyz"]
    result = run("compare", *paths, "--by", "alg")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "MPI_Allreduce 0 B 5.00 ms 5.00 ms 5.00 ms" in lines


def test_a_row_of_zeros_is_left_out() -> None:
    generator = np.random.default_rng(1)
    groups = [Group(letter, letter, [run_data(generator)]) for letter in "ABC"]
    for group in groups:
        group.runs[0].rows[SLOW] = Counts(0, 0, 0, 0, None)
    result = compare_groups("alg", groups)
    assert len(result.rows) == 11
    assert ("S0.0", "MPI_Isend") not in [(row.family, row.operation) for row in result.rows]


def test_the_two_largest_configurations_decide_whether_a_pair_can_be_shown() -> None:
    generator = np.random.default_rng(1)

    def result(*sizes: int) -> Grouped:
        groups = [
            Group(letter, letter, [run_data(generator) for _ in range(size)])
            for letter, size in zip("ABC", sizes)
        ]
        return compare_groups("alg", groups)

    assert statement(result(3, 10, 10)) == "3 configurations, 3 to 10 runs each, 42 pairs of times tested"
    assert "can be shown with 7 runs" in statement(result(3, 3, 100))


def halves(path: Path, alg: str, before: int) -> Path:
    """Write a run with two halves whose names and calls depend on the number of communicators before them."""
    build = ProfileBuilder(ranks=4)
    build.sites[1] = ("/opt/app/x", "", 0x100)
    made = {"parent": 1, "creator": "MPI_Comm_split", "callsite": 1, "family": 2}
    for leader in (0, 2):
        comm = build.comm(f"s{leader}.{before}", [leader, leader + 1], created_ns=MS, **made)
        build.count(comm, "MPI_Bcast", leader, 7 + leader, 10 * MS, size=8, sent=64)
    build.settings = [("label", "alg", alg, 4)]
    return build.write(path)


@pytest.mark.parametrize("algorithms", ["zy", "zyx"])
def test_names_of_communicators_are_those_of_the_first_profile_of_the_command_line(
    tmp_path: Path, run: Run, algorithms: str
) -> None:
    """The runs of the first profile are the last configuration."""
    paths = [halves(tmp_path / f"{alg}.db", alg, i + 1) for i, alg in enumerate(algorithms)]
    result = run("compare", *paths, "--by", "alg", "--comm", "s2.1", "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)["rows"]
    rows = [row for row in found if row["operation"] == "MPI_Bcast"]
    assert {row["family"] for row in rows} == {"s2.1"}
    counts = [row[name] for row in rows for name in ("calls", "calls_a", "calls_b") if name in row]
    assert counts == [9] * len(algorithms)
    wrong = run("compare", *paths, "--by", "alg", "--comm", f"s2.{len(algorithms)}")
    assert wrong.exit_code == 2


def test_the_end_of_the_runs_of_each_configuration_is_a_line(tmp_path: Path, run: Run) -> None:
    paths = [fft(tmp_path, alg, 10, ranks=ranks) for alg, ranks in zip("abc", (4, 4, 8))]
    output = run("compare", *paths, "--by", "alg").stdout
    assert "\nruns differ: ranks A 4, B 4, C 8\n" in output
    document = json.loads(run("compare", *paths, "--by", "alg", "--format", "json").stdout)
    assert document["runs"] == {"ranks": {"A": ["4"], "B": ["4"], "C": ["8"]}}
