# SPDX-License-Identifier: Apache-2.0
"""`commlens compare`: matching by lineage, exact counts, claims about times, conditions and exit codes."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from build_profile import ProfileBuilder
from conftest import Run, small_builder
from scipy import stats

from commlens.compare.gate import parse_condition
from commlens.compare.model import Comparison, compare
from commlens.compare.read import Counts, Family, RowKey, RunData, read_run
from commlens.compare.statistics import adjusted, rank_sum_p
from commlens.reports.query import Selection

MS = 10**6
OPERATIONS = ("MPI_Allreduce", "MPI_Bcast", "MPI_Isend", "MPI_Waitall")


def run_data(generator: np.random.Generator, slower: RowKey | None = None, noise: float = 0.01) -> RunData:
    """Return a run of three families with 12 rows of noisy times; one row may take 5 % longer."""
    families = {
        number: Family(
            number,
            "intra",
            "",
            None,
            letter,
            (4, 4),
            "",
            None,
            frozenset(),
            f"{letter}0.0",
            f"{letter}0.0",
            "",
        )
        for number, letter in enumerate("WST", 1)
    }
    rows = {}
    for key in (RowKey(f, "", name, 8) for f in families for name in OPERATIONS):
        time = 100 * MS * (1.05 if key == slower else 1) * (1 + noise * generator.standard_normal())
        rows[key] = Counts(100, 12800, 0, int(time), int(time) // 4)
    elapsed = int(1000 * MS * (1 + noise * generator.standard_normal()))
    whole = Counts(1200, 153600, 0, sum(row.time_ns for row in rows.values()), None)
    return RunData("made up", {}, {}, elapsed, families, rows, whole)


def compare_made_up(seed: int, runs: int, slower: RowKey | None = None) -> Comparison:
    """Compare two sides of as many runs; the second may have a slower row."""
    generator = np.random.default_rng(seed)
    before = [run_data(generator) for _ in range(runs)]
    return compare(before, [run_data(generator, slower) for _ in range(runs)])


def program(
    build_id: str = "", shift: int = 0, swap: bool = False, ranks: int = 4, extra: bool = False
) -> ProfileBuilder:
    """Return a program with two splits of MPI_COMM_WORLD from two call sites, and 7 or 9 broadcasts in them."""
    build = ProfileBuilder(ranks=ranks)
    build.sites[1] = ("/opt/app/x", build_id, 0x100 + shift)
    build.sites[2] = ("/opt/app/x", build_id, 0x200 + shift)
    build.sites[3] = ("/opt/app/x", build_id, 0x300 + shift)
    half = list(range(ranks // 2))
    ids = {}
    for site in (2, 1) if swap else (1, 2):
        ids[site] = build.comm(
            f"s0.{len(build.comms)}", half, parent=1, creator="MPI_Comm_split", callsite=site
        )
    if extra:
        ids[3] = build.comm("s0.9", half, parent=1, creator="MPI_Comm_split", callsite=3)
    for site, comm in ids.items():
        build.count(comm, "MPI_Bcast", 0, {1: 7, 2: 9, 3: 2}[site], 10 * MS, size=8, sent=64)
    return build


def document(run: Run, *arguments: object) -> dict[str, Any]:
    """Return the JSON of a comparison that finds nothing to refuse."""
    result = run("compare", *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("n, m", [(1, 1), (3, 3), (4, 4), (5, 9), (10, 10)])
def test_the_rank_test_is_scipys(n: int, m: int) -> None:
    generator = np.random.default_rng(n)
    first, second = generator.random(n), generator.random(m) + 0.2
    expected = stats.mannwhitneyu(first, second, method="exact").pvalue
    assert rank_sum_p(list(first), list(second)) == pytest.approx(expected)


def test_the_rank_test_with_ties_is_that_of_all_permutations() -> None:
    first, second = [1, 2, 2, 3], [2, 3, 3, 4, 5]
    ranks = stats.rankdata([*first, *second])
    seen = abs(ranks[:4].sum() - 20)
    sums = [abs(sum(chosen) - 20) for chosen in combinations(ranks, 4)]
    assert rank_sum_p(first, second) == pytest.approx(sum(each >= seen for each in sums) / len(sums))


def test_the_correction_is_scipys() -> None:
    p = [0.2, 0.001, 0.04, 0.03, 0.9]
    assert adjusted(p) == pytest.approx(list(stats.false_discovery_control(p)))


@pytest.mark.long
def test_equal_runs_show_nothing_in_95_of_100_tries() -> None:
    results = [compare_made_up(seed, 10) for seed in range(100)]
    claims = [any(row.is_significant for row in (r.whole, r.elapsed, *r.rows)) for r in results]
    assert sum(claims) <= 5


def test_an_effect_of_5_percent_is_found_in_its_row() -> None:
    slower = RowKey(2, "", "MPI_Isend", 8)
    result = compare_made_up(1, 10, slower)
    found = [(row.family, row.operation, row.bin) for row in result.rows if row.is_significant]
    assert found == [("S0.0", "MPI_Isend", 8)]
    (row,) = [row for row in result.rows if row.is_significant]
    assert row.interval is not None
    assert row.interval[0] < 0.05 < row.interval[1]


def test_three_against_three_claim_nothing_and_say_how_many_would_do() -> None:
    result = compare_made_up(1, 3, RowKey(2, "", "MPI_Isend", 8))
    assert not any(row.is_significant for row in result.rows)
    assert result.statement().startswith(
        "3 runs in A and 3 in B are too few to show that a time changed: at least 4 on each side are needed, and 6 on each "
        "side to show a change in one of 14 rows"
    )


def test_three_runs_on_one_side_claim_nothing() -> None:
    generator = np.random.default_rng(1)
    before = [run_data(generator) for _ in range(3)]
    result = compare(before, [run_data(generator, RowKey(2, "", "MPI_Isend", 8)) for _ in range(10)])
    assert not any(row.is_significant for row in result.rows)
    assert result.statement().startswith(
        "3 runs in A and 10 in B are too few to show that a time changed: at least 4 on each side are needed"
    )


@pytest.mark.parametrize(
    "changed, rule",
    [
        ({"swap": True}, "call site"),
        ({"ranks": 8}, "call site, other size"),
        ({"build_id": "bb", "shift": 0x40}, "order of call sites"),
        ({"build_id": "bb", "shift": 0x100}, "order of call sites"),
    ],
)
def test_communicators_match_by_lineage(
    tmp_path: Path, run: Run, changed: dict[str, object], rule: str
) -> None:
    first = program("aa" if "build_id" in changed else "").write(tmp_path / "a.db")
    second = program(**changed).write(tmp_path / "b.db")  # type: ignore[arg-type]
    found = document(run, first, second)
    rows = [row for row in found["rows"] if row["operation"] == "MPI_Bcast"]
    assert sorted((row["calls_a"], row["calls_b"]) for row in rows) == [(7, 7), (9, 9)]
    rules = [node["rule"] for node in found["matched"] if "split" in node["origin"]]
    assert rules == [rule, rule]
    assert found["unmatched"] == []


def test_a_family_of_one_side_is_shown_with_its_share(tmp_path: Path, run: Run) -> None:
    first, second = program().write(tmp_path / "a.db"), program(extra=True).write(tmp_path / "b.db")
    (only,) = document(run, first, second)["unmatched"]
    assert (only["side"], only["origin"]) == ("B", "MPI_Comm_split at x+0x300")
    assert only["share"] == pytest.approx(1 / 3)
    assert (
        "only in B: s0.9 (MPI_Comm_split at x+0x300), 33.3 % of its MPI time"
        in run("compare", first, second).stdout
    )


def test_every_number_is_that_of_the_cells(tmp_path: Path, run: Run) -> None:
    builders = [small_builder(), small_builder()]
    builders[1].count(1, "MPI_Isend", 2, 5, 7 * MS, size=100_000, sent=500_000)
    paths = [build.write(tmp_path / f"{i}.db") for i, build in enumerate(builders)]
    table = list(csv.DictReader(io.StringIO(run("compare", *paths, "--format", "csv").stdout)))
    for row in table[2:]:
        for build, side in zip(builders, "ab"):
            cells = [
                cell
                for cell in build.cells
                if (cell.op, str(cell.bin)) == (row["operation"], row["size_bin"])
                and build.comms[build.comms[cell.comm].family].name[0] == row["family"][0]
            ]
            assert float(row[f"calls_{side}"]) == sum(cell.calls for cell in cells)
            assert float(row[f"bytes_{side}"]) == sum(cell.sent + cell.received for cell in cells)
            assert float(row[f"time_ns_{side}"]) == sum(cell.time_ns for cell in cells)
            ranks = [sum(cell.time_ns for cell in cells if cell.rank == rank) for rank in range(4)]
            assert float(row[f"slowest_ns_{side}"]) == max(ranks)
            is_send = row["operation"] == "MPI_Isend"
            assert float(row[f"messages_{side}"]) == (sum(cell.calls for cell in cells) if is_send else 0)
    assert {row["operation"] for row in table[2:]} == {cell.op for cell in builders[0].cells}


def test_more_messages_fail_with_a_line_that_names_communicator_and_call_site(
    tmp_path: Path, run: Run
) -> None:
    builders = [small_builder(), small_builder()]
    for calls, build in zip((10, 15), builders):
        build.count(2, "MPI_Isend", 0, calls, MS, size=1000, sent=1000 * calls)
    paths = [build.write(tmp_path / f"{i}.db") for i, build in enumerate(builders)]
    result = run("compare", *paths, "--fail-if", "messages > 0%")
    assert result.exit_code == 1
    assert (
        "failed 'messages > 0%': MPI_Isend 512-1023 B on s*.1 x2 (MPI_Comm_split at listing1+0x1234): "
        "messages 10 → 15 (+50.0 %)" in result.stdout
    )
    assert run("compare", *paths, "--fail-if", "messages > 51%").exit_code == 0
    assert run("compare", paths[1], paths[0], "--fail-if", "messages > 0%").exit_code == 0


def test_an_untested_time_fails_only_if_allowed(tmp_path: Path, run: Run) -> None:
    builders = [small_builder(), small_builder()]
    builders[1].cells[0].time_ns *= 3
    paths = [build.write(tmp_path / f"{i}.db") for i, build in enumerate(builders)]
    result = run("compare", *paths, "--fail-if", "time > 5%")
    assert (result.exit_code, result.stderr) == (
        4,
        "commlens: cannot test 'time > 5%' with 1 against 1 runs: at least 6 against 6 are needed; "
        "--untested lets the medians decide\n",
    )
    result = run("compare", *paths, "--fail-if", "time > 5%", "--untested")
    assert (result.exit_code, result.stderr) == (1, "")


def test_each_condition_is_a_test_case_of_junit(tmp_path: Path, run: Run) -> None:
    before, after = program(), program()
    after.comms[2].user_name = "<rows>"
    after.count(2, "MPI_Bcast", 1, 3, 10 * MS, size=8, sent=64)
    paths = before.write(tmp_path / "a.db"), after.write(tmp_path / "b.db")
    conditions = ["calls > 0%", "bytes < -50%", "time > 5%"]
    options = [word for condition in conditions for word in ("--fail-if", condition)]
    result = run("compare", *paths, *options, "--format", "junit")
    assert result.exit_code == 1
    suite = ElementTree.fromstring(result.stdout)
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "0", "skipped": "1",
    }  # fmt: skip
    cases = {case.get("name"): case for case in suite}
    assert list(cases) == conditions
    lines = run("compare", *paths, "--fail-if", "calls > 0%", "--format", "json").stdout
    (failure,) = cases["calls > 0%"]
    assert (failure.text or "").splitlines() == json.loads(lines)["failures"]
    assert failure.get("message") == json.loads(lines)["failures"][0]
    assert [case.tag for case in cases["bytes < -50%"]] == []
    (skipped,) = cases["time > 5%"]
    assert "cannot test 'time > 5%' with 1 against 1 runs" in (skipped.get("message") or "")
    none = run("compare", *paths, "--format", "junit")
    assert (none.exit_code, "junit needs --fail-if" in none.stderr) == (2, True)


def test_a_condition_that_is_met_counts_before_one_that_cannot_be_tested(small: Path, run: Run) -> None:
    conditions = ("--fail-if", "slowest > 5%", "--fail-if", "elapsed > 5%")
    result = run("compare", small, small, *conditions, "--fail-if", "calls > -1%", "--format", "json")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert json.loads(result.stdout)["untested"] == ["slowest > 5%", "elapsed > 5%"]


def test_so_many_runs_that_one_row_can_be_found_suffice_for_a_condition_on_times(
    small: Path, run: Run
) -> None:
    """With 11 rows: 2 / C(12, 6) * 11 = 0.024, but 2 / C(10, 5) * 11 = 0.087."""
    result = run("compare", *[small] * 6, "--", *[small] * 6, "--fail-if", "time > 5%")
    assert (result.exit_code, result.stderr) == (0, "")
    few = run("compare", *[small] * 5, "--", *[small] * 5, "--fail-if", "time > 5%")
    assert few.exit_code == 4
    assert few.stdout.splitlines()[1] == (
        "5 against 5 runs, 11 times tested; 6 on each side could show a change of a single row"
    )


def test_ten_slower_runs_fail_and_the_sentence_splits_the_change(tmp_path: Path, run: Run) -> None:
    paths = []
    for i in range(12):
        build = small_builder()
        for cell in build.cells:
            if cell.op == "MPI_Neighbor_alltoall":
                cell.time_ns = cell.time_ns * (10 if i >= 6 else 1) + i * 1000
        paths.append(build.write(tmp_path / f"{i}.db"))
    result = run("compare", *paths[:6], "--", *paths[6:], "--fail-if", "time > 5%")
    assert result.exit_code == 1
    assert result.stdout.startswith(
        "MPI_Neighbor_alltoall 4-8 KiB on a0.2 (MPI_Cart_create at listing1+0x1300) takes "
    )
    assert "more: calls =, bytes per call =, time per byte +89" in result.stdout.splitlines()[0]


def test_an_outlier_is_named_with_what_is_different(tmp_path: Path, run: Run) -> None:
    paths = []
    for i in range(6):
        build = small_builder()
        build.meta["elapsed_ns"] = str((5000 if i == 3 else 1000 + i) * MS)
        build.nodes = 1 if i == 3 else 2
        paths.append(build.write(tmp_path / f"{i}.db"))
    output = run("compare", *paths, "--", paths[0]).stdout
    expected = f"slow run in A: {paths[3]}, 5.00 s: node names node0 instead of node0, node1"
    assert [line for line in output.splitlines() if " run in " in line] == [expected]
    assert " run in " not in run("compare", *paths[:3], "--", paths[0]).stdout


def test_a_setting_of_the_others_that_an_outlier_lacks_is_named(tmp_path: Path, run: Run) -> None:
    """A label cannot take the place of a fact: the run of 5 s is the outlier, whatever its label says."""
    paths = []
    for i in range(6):
        build = small_builder()
        build.meta["elapsed_ns"] = str((5000 if i == 3 else 1000 + i) * MS)
        value = [] if i == 3 else [("environment", "OMP_NUM_THREADS", "4", 4)]
        build.settings = [*value, ("label", "elapsed_ns", "7", 4)]
        paths.append(build.write(tmp_path / f"{i}.db"))
    output = run("compare", *paths, "--", paths[0]).stdout
    expected = f"slow run in A: {paths[3]}, 5.00 s: OMP_NUM_THREADS nothing instead of 4"
    assert [line for line in output.splitlines() if " run in " in line] == [expected]


def test_nothing_to_say_is_said(small: Path, run: Run) -> None:
    assert run("compare", small, small).stdout.startswith("no difference is shown: ")


def test_the_interval_is_a_column_if_there_is_one(small: Path, run: Run) -> None:
    lines = run("compare", small, small).stdout.splitlines()
    assert lines[1].startswith("1 run in A and 1 in B are too few to show that a time changed: at least 4 on")
    assert lines[3].split()[-3:] == ["change", "slowest", "claim"]
    lines = run("compare", *[small] * 4, "--", *[small] * 4).stdout.splitlines()
    assert lines[3].split()[-5:] == ["95", "%", "interval", "slowest", "claim"]


def test_filters_leave_the_rows_asked_for(small: Path, run: Run) -> None:
    rows = document(run, small, small, "--comm", "a0.2")["rows"]
    assert [row["operation"] for row in rows[2:]] == ["MPI_Neighbor_alltoall"]
    rows = document(run, small, small, "--op", "alltoallv")["rows"]
    assert [row["operation"] for row in rows[2:]] == ["MPI_Alltoallv"]


def test_a_misspelt_operation_is_refused_once(small: Path, run: Run) -> None:
    result = run("compare", small, small, "--op", "zz")
    assert (result.exit_code, result.stderr) == (2, "commlens: no operation 'zz'\n")


def halves(before: int, ranks: int = 4) -> ProfileBuilder:
    """Return the small program with two halves, after `before` other communicators; the halves differ in their calls."""
    build = ProfileBuilder(ranks=ranks)
    build.sites[1] = ("/opt/app/x", "", 0x100)
    made = {"parent": 1, "creator": "MPI_Comm_split", "callsite": 1, "family": 2}
    for leader in range(0, ranks, 2):
        comm = build.comm(f"s{leader}.{before + 1}", [leader, leader + 1], created_ns=MS, **made)
        build.count(comm, "MPI_Bcast", leader, 7 + leader, 10 * MS, size=8, sent=64)
    return build


def test_one_communicator_of_a_family_is_compared_with_that_at_its_place(tmp_path: Path, run: Run) -> None:
    paths = [halves(before).write(tmp_path / f"{before}.db") for before in (0, 3)]
    rows = document(run, *paths, "--comm", "s2.1")["rows"]
    assert [(row["family"], row["calls_a"], row["calls_b"]) for row in rows[1:]] == [
        ("whole run", 9, 9),
        ("s2.1", 9, 9),
    ]
    rows = document(run, *paths, "--comm", "s*.1")["rows"]
    assert [(row["family"], row["calls_a"], row["calls_b"]) for row in rows[2:]] == [("s*.1 x2", 16, 16)]


def test_a_part_of_a_family_has_no_place_in_a_larger_family(tmp_path: Path, run: Run) -> None:
    paths = [halves(0, ranks).write(tmp_path / f"{ranks}.db") for ranks in (4, 8)]
    result = run("compare", *paths, "--comm", "s2.1")
    assert (result.exit_code, result.stderr) == (
        2,
        f"commlens: --comm: s2.1 is a part of a family of 2 communicators in {paths[0]}, but s*.1 in {paths[1]} has 4; "
        "select the whole family\n",
    )
    assert run("compare", *paths, "--comm", "s*.1").exit_code == 0
    recorded = Path(__file__).parents[1] / "profiles"
    result = run("compare", recorded / "version7.db", recorded / "version7-summary.db", "--comm", "s0.1")
    assert result.stderr.endswith("does not keep its members apart; select the whole family\n")


def test_only_calls_of_a_region_are_compared(marked: Path, run: Run) -> None:
    rows = document(run, marked, marked, "--region", "*/norm")["rows"]
    assert [(row["region"], row["calls_a"]) for row in rows[2:]] == [("solve/time steps/norm", 24)]


def test_a_region_and_a_loop_of_one_path_are_one_row(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2)
    for kind, calls in (("region", 100), ("loop", 900)):
        build.count(1, "MPI_Bcast", 0, calls, calls * MS, size=8, region=build.region("sweep", kind=kind))
    path = build.write(tmp_path / "twice.db")
    rows = document(run, path, path)["rows"]
    assert [(row["region"], row["calls_a"], row["time_ns_a"]) for row in rows[1:]] == [
        ("", 1000, 1000 * MS),
        ("sweep", 1000, 1000 * MS),
    ]
    assert rows[2]["slowest_ns_a"] is None


def test_the_slowest_rank_in_all_of_mpi_is_not_that_of_some_operations(small: Path, run: Run) -> None:
    with closing(sqlite3.connect(small)) as connection:
        (most,) = connection.execute("SELECT MAX(mpi_ns) FROM rank").fetchone()
    assert document(run, small, small)["rows"][1]["slowest_ns_a"] == most
    assert document(run, small, small, "--op", "alltoallv")["rows"][1]["slowest_ns_a"] is None


def test_an_unreadable_profile_is_one_line_and_the_others_are_compared(
    small: Path, tmp_path: Path, run: Run
) -> None:
    bad, short = tmp_path / "bad.db", tmp_path / "short.db"
    bad.write_text("not a profile")
    short.write_bytes(small.read_bytes()[:3000])
    result = run("compare", small, bad, short, "--", small)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 2)
    result = run("compare", "--keep-going", small, bad, short, "--", small)
    assert (result.exit_code, len(result.stderr.splitlines())) == (3, 2)
    assert "no difference is shown" in result.stdout
    assert run("compare", "--keep-going", small, "--", bad).exit_code == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("text.db", "not a profile: not an SQLite file"),
        ("cut.db", "truncated to 20000 of "),
        ("other.db", "not a profile: "),
        ("version1.db", "has schema version 1, but this commlens reads 2 and later: use an older commlens"),
        ("missing.db", "no such file"),
    ],
)
def test_each_kind_of_unreadable_profile_has_its_line(
    small: Path, tmp_path: Path, run: Run, name: str, message: str
) -> None:
    path = tmp_path / name
    if name == "text.db":
        path.write_text("not a profile")
    elif name == "cut.db":
        path.write_bytes(small.read_bytes()[:20000])
    elif name == "other.db":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE notes (text TEXT)")
    elif name == "version1.db":
        path.write_bytes((Path(__file__).parents[1] / "profiles" / name).read_bytes())
    result = run("compare", "--keep-going", small, path, "--", small)
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"commlens: {path}: {message}")
    assert result.exit_code == 3
    assert result.stdout.startswith("no difference is shown")


@pytest.mark.parametrize("arguments", [["a"], ["a", "b", "c"], ["a", "--"], ["a", "--", "b", "--", "c"]])
def test_sides_that_make_no_sense_are_refused(run: Run, arguments: list[str]) -> None:
    result = run("compare", *arguments)
    assert (result.exit_code, "side" in result.stderr) == (2, True)


@pytest.mark.parametrize("text", ["time", "time > 5", "time >= 5%", "cost > 5%", "time > 5% 6%"])
def test_a_condition_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a condition"):
        parse_condition(text)


@pytest.mark.long
def test_older_profiles_are_compared() -> None:
    paths = sorted(Path(__file__).parent.parent.joinpath("profiles").glob("version[2-9]*.db"))
    assert len(paths) >= 2
    data = [read_run(str(path), Selection()) for path in paths]
    for path, one in zip(paths, data):
        result = compare([one], [one])
        assert not result.only, path
        assert result.whole.changes["calls"].ratio == 0, path


def test_a_profile_that_lost_its_schema_version_is_compared(tmp_path: Path, run: Run) -> None:
    path = small_builder().write(tmp_path / "p.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM meta WHERE key = 'schema_version'")
    result = run("compare", path, path)
    assert (result.exit_code, result.stdout.startswith("no difference is shown")) == (0, True)
