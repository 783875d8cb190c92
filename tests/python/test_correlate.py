# SPDX-License-Identifier: Apache-2.0
"""`commlens correlate`: coefficients, intervals and p values, rows and their times, claims and what is left out."""

from __future__ import annotations

import csv
import io
import json
import math
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from build_profile import ProfileBuilder
from conftest import Run, small_builder
from scipy import special, stats

from commlens.compare import coefficients
from commlens.compare.correlate import Source, correlate
from commlens.compare.correlate_text import headline
from commlens.compare.read import RowKey, RunHead, read_run
from commlens.compare.times import GroupKey, GroupTime, read_groups
from commlens.profile import open_profile
from commlens.reports.query import Selection

MS = 10**6
RECORDED = Path(__file__).parents[1] / "profiles"
EXTRA = (31, 4, 77, 50, 12, 93, 25)  # ms that each run takes longer


def document(run: Run, *arguments: object) -> dict[str, Any]:
    """Return the JSON of a correlation that finds nothing to refuse."""
    result = run("correlate", *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def builders(count: int = len(EXTRA)) -> list[ProfileBuilder]:
    """Return runs of the small program: the time of rank 3 in MPI_Allreduce on the world grows with the run time."""
    found = []
    for i, extra in enumerate(EXTRA[:count]):
        build = small_builder()
        build.meta["elapsed_ns"] = str((1000 + extra) * MS)
        for cell in build.cells:
            cell.time_ns += (i * 7 % 5) * MS // 10
            if (cell.comm, cell.op, cell.rank) == (1, "MPI_Allreduce", 3):
                cell.time_ns += 2 * extra * MS
        found.append(build)
    return found


def write(builders: list[ProfileBuilder], folder: Path) -> list[Path]:
    """Write runs and return their paths."""
    return [build.write(folder / f"run{i}.db") for i, build in enumerate(builders)]


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Return the paths of seven runs."""
    return write(builders(), tmp_path)


# Coefficients.


@pytest.mark.parametrize("n", [4, 5, 9, 11, 30, 400])
def test_pearsons_coefficient_its_interval_and_p_are_scipys(n: int) -> None:
    generator = np.random.default_rng(n)
    first = list(generator.normal(size=n))
    second = [value / 2 + generator.normal() for value in first]
    found, expected = coefficients.pearson(first, second), stats.pearsonr(first, second)
    assert found.value == pytest.approx(expected.statistic, abs=1e-14)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()), abs=1e-12)


@pytest.mark.parametrize("n", [11, 30, 400])
def test_spearmans_coefficient_and_p_of_many_runs_are_scipys_also_with_ties(n: int) -> None:
    generator = np.random.default_rng(n)
    first = [float(value) for value in generator.integers(0, 9, n)]
    second = [value + float(generator.integers(0, 30)) for value in first]
    found, expected = coefficients.spearman(first, second), stats.spearmanr(first, second)
    assert found.value == pytest.approx(expected.statistic, abs=1e-14)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize("second", [[3, 1, 2, 6, 5, 4], [0, 0, 0, 7, 8, 8], [1, 2, 3, 4, 5, 6]])
def test_the_p_of_few_runs_is_that_of_all_orders(second: list[float]) -> None:
    first = [1.0, 2.0, 2.0, 4.0, 5.0, 6.0]
    one, two = stats.rankdata(first), stats.rankdata(second)
    seen = abs(np.corrcoef(one, two)[0, 1])
    all_orders = [abs(np.corrcoef(one, order)[0, 1]) for order in permutations(two)]
    share = sum(each >= seen - 1e-9 for each in all_orders) / math.factorial(6)
    assert coefficients.spearman(first, second).p == pytest.approx(share)


def test_the_interval_of_spearman_is_that_of_bonett_and_wright() -> None:
    first, second = range(12), [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10]
    found = coefficients.spearman(first, second)
    r = 1 - 6 * 12 / (12 * 143)  # twelve differences of 1
    half = 1.959964 * math.sqrt((1 + r * r / 2) / 9)
    assert found.value == pytest.approx(r)
    assert found.low == pytest.approx(math.tanh(math.atanh(r) - half), abs=1e-6)
    assert found.high == pytest.approx(math.tanh(math.atanh(r) + half), abs=1e-6)


def test_runs_in_the_same_order_have_a_wide_interval_not_one_without_width() -> None:
    found = coefficients.spearman([1, 2, 3, 4, 5], [1, 4, 9, 16, 25])
    # 0.95 is half way from 1 to the next value, 0.9
    low = math.tanh(math.atanh(0.95) - 1.959964 * math.sqrt((1 + 0.95**2 / 2) / 2))
    assert (found.value, found.low, found.high) == pytest.approx((1, low, 1), abs=1e-6)
    assert found.p == pytest.approx(2 / 120)


def test_no_p_is_smaller_than_that_of_the_only_order() -> None:
    n = 12
    assert coefficients.spearman(range(n), range(n)).p == pytest.approx(2 / math.factorial(n))


@pytest.mark.parametrize(
    "a, b, x", [(0.5, 0.5, 0.3), (4, 0.5, 1e-8), (4999, 0.5, 0.999), (1.5, 0.5, 0.99999)]
)
def test_the_incomplete_beta_function_is_scipys(a: float, b: float, x: float) -> None:
    assert coefficients.incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-9)


# Rows.


@pytest.mark.parametrize("by", ["family,op", "family", "comm-size", "op", "size", "family,op,size,region"])
def test_every_row_has_the_times_of_its_cells(run: Run, runs: list[Path], by: str) -> None:
    found = document(run, *runs, "--by", by)
    built = builders()
    families = {"W0.0": 1, "s*.1 x2": 2, "a0.2": 4, "{W0.0,s0.1}": 5, "-": 0}

    def is_in(cell: Any, build: ProfileBuilder, row: dict[str, Any]) -> bool:
        comm = build.comms[cell.comm]
        size = None if comm.kind in ("none", "set") else len(comm.ranks)
        return (
            ("family" not in by or comm.family == families[row["family"]])
            and ("comm-size" not in by or size == row["comm_size"])
            and ("op" not in by or cell.op == row["operation"])
            and ("size" not in by.split(",") or cell.bin == row["size_bin"])
        )

    assert found["rows"]
    for row in found["rows"]:
        mine = [[cell for cell in build.cells if is_in(cell, build, row)] for build in built]
        sums = [sum(cell.time_ns for cell in cells) for cells in mine]
        slowest = [
            max(sum(cell.time_ns for cell in cells if cell.rank == rank) for rank in range(4))
            for cells in mine
        ]
        assert (row["sum"], row["slowest"]) == (sums, slowest)
        y = [1000 + extra for extra in EXTRA]
        for name, values in (("slowest", slowest), ("sum", sums)):
            assert row[f"{name}_pearson"] == pytest.approx(np.corrcoef(values, y)[0, 1])
            assert row[f"{name}_spearman"] == pytest.approx(stats.spearmanr(values, y).statistic)
            assert row[f"{name}_per_second"] == pytest.approx(np.polyfit(y, values, 1)[0] / MS)


def test_the_row_that_correlates_with_the_run_time_is_first_and_named(run: Run, runs: list[Path]) -> None:
    result = run("correlate", *runs)
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "MPI_Allreduce on W0.0 rises with the run time: Spearman +1.00 (+0.82 to +1.00); "
        "in a run that takes 1 s longer its slowest rank spends 2.00 s more there"
    )
    assert lines[1] == "7 runs, 10 rows tested"
    assert lines[4].startswith("all operations ")
    assert lines[5].startswith("MPI_Allreduce on W0.0 ") and lines[5].endswith("  rises")
    assert result.exit_code == 0


def test_the_headline_has_no_time_per_second_of_the_other_sign_than_spearmans_coefficient(
    run: Run, tmp_path: Path
) -> None:
    """The times rise with the run time in nine of ten runs; in the run that takes far longest there is none."""
    paths = []
    for i in range(10):
        build = ProfileBuilder(ranks=2)
        build.meta["elapsed_ns"] = str((1000 + (i if i < 9 else 5000)) * MS)
        build.count(1, "MPI_Allreduce", 0, 10, (10 + i if i < 9 else 1) * MS, size=8)
        paths.append(build.write(tmp_path / f"{i}.db"))
    (row,) = document(run, *paths)["rows"]
    assert (row["slowest_spearman"] > 0, row["slowest_per_second"] < 0) == (True, True)
    text = run("correlate", *paths[:9]).stdout.splitlines()[0]
    assert text.endswith("; in a run that takes 1 s longer its slowest rank spends 1.00 s more there")
    result = correlate(made_up_sources(), ("op",))
    assert headline(result).startswith("MPI_Bcast rises with the run time: Spearman +0.")
    assert headline(result).endswith(")")


def made_up_sources() -> list[Source]:
    """Return 19 runs whose time in MPI_Bcast rises with the run time, but not in the one that takes far longest."""
    key = GroupKey(None, None, "MPI_Bcast", None, None)
    values = [(100 + i, 100 + i) for i in range(18)] + [(10**6, 1)]
    return [
        Source(RunHead("made up", {}, {}, elapsed, {}), {key: GroupTime(time, time)}, GroupTime(time, time))
        for elapsed, time in values
    ]


def test_runs_that_did_not_finalize_are_named(run: Run, tmp_path: Path) -> None:
    built = builders()
    built[2].states = {1: "SIGKILL", 3: "SIGKILL"}
    paths = write(built, tmp_path)
    output = run("correlate", *paths).stdout
    assert (
        "1 of 7 runs did not call MPI_Finalize on all ranks, so its run time ends at the last sign of life: "
        f"{paths[2]}\n" in output
    )
    assert document(run, *paths)["unfinished"] == [str(paths[2])]
    assert "MPI_Finalize" not in run("correlate", *paths[:2], *paths[3:]).stdout


def test_a_run_without_a_row_counts_with_0_and_an_operation_of_one_run_suffices(
    run: Run, tmp_path: Path
) -> None:
    built = builders()
    built[2].count(1, "MPI_Barrier", 0, 1, 500 * MS)
    built[5].count(1, "MPI_Barrier", 0, 1, 700 * MS)
    paths = write(built, tmp_path)
    (row,) = document(run, *paths, "--op", "barrier")["rows"]
    assert row["slowest"] == [0, 0, 500 * MS, 0, 0, 700 * MS, 0]


def test_families_are_matched_by_lineage_not_by_name(run: Run, tmp_path: Path) -> None:
    built = builders()
    for build in built[3:]:
        build.comms[4].name = "a0.7"
    rows = [
        row
        for row in document(run, *write(built, tmp_path))["rows"]
        if row["operation"] == "MPI_Neighbor_alltoall"
    ]
    assert [(row["family"], min(row["slowest"])) for row in rows] == [("a0.2", 4 * MS)]


def test_one_communicator_of_a_family_is_followed_through_all_runs(run: Run, runs: list[Path]) -> None:
    rows = document(run, *runs, "--comm", "s2.1")["rows"]
    assert [(row["family"], row["operation"], row["slowest"][1]) for row in rows] == [
        ("s2.1", "MPI_Allreduce", 100 * MS + 4 * MS // 10)
    ]
    rows = document(run, *runs, "--comm-size", "4", "--op", "allreduce")["rows"]
    assert [(row["family"], row["slowest"][1]) for row in rows] == [("W0.0", 13 * MS + 8 * MS + 2 * MS // 10)]


def test_a_setting_that_is_a_number_is_a_row(run: Run, tmp_path: Path) -> None:
    built = builders()
    for extra, build in zip(EXTRA, built):
        build.settings = [
            ("label", "n", str(10 * extra), 4),
            ("label", "alg", "ring", 4),
            ("label", "same", "1", 4),
        ]
    rows = document(run, *write(built, tmp_path))["rows"]
    assert [(row["setting"], row["median"], row["sum_pearson"]) for row in rows if row["setting"]] == [
        ("n", 310, pytest.approx(1))
    ]


def test_rows_left_out_are_counted(run: Run, tmp_path: Path) -> None:
    built = builders()
    for build in built:
        for cell in build.cells:
            cell.time_ns = {"MPI_Irecv": 3 * MS, "MPI_Comm_get_parent": 1000}.get(cell.op, cell.time_ns)
    found = document(run, *write(built, tmp_path))
    assert found["left_out"] == {"constant": 1, "small": 1}
    assert "MPI_Irecv" not in [row["operation"] for row in found["rows"]]
    text = run("correlate", *sorted(tmp_path.glob("*.db"))).stdout
    assert text.endswith(
        "left out: 1 row with the same time in all runs, 1 row below 0.1 % of the MPI time in every run\n"
    )


def test_a_summary_without_the_slowest_rank_of_a_row_has_the_sum() -> None:
    path = str(RECORDED / "version8-summary.db")
    with open_profile(path) as connection:
        whole = read_groups(connection, (), Selection())
        parts = read_groups(connection, ("family", "op", "size", "region"), Selection())
    (found,) = whole.values()
    assert found == GroupTime(sum(each.sum_ns for each in parts.values()), None)
    rows = read_run(path, Selection()).rows
    assert {
        RowKey(key.family or 0, key.region or "", key.operation or "", key.bin or 0): each
        for key, each in parts.items()
    } == {key: (each.time_ns, each.slowest_ns) for key, each in rows.items()}
    key = GroupKey(None, None, "MPI_Bcast", None, None)
    sources = [
        Source(RunHead("made up", {}, {}, 100 + i, {}), {key: GroupTime(i, None)}, GroupTime(i, None))
        for i in range(6)
    ]
    (row,) = correlate(sources, ("op",)).rows
    assert (row.slowest, row.main.values, row.claim) == (None, [0, 1, 2, 3, 4, 5], "rises")


# Claims.


@pytest.mark.long
def test_runs_without_a_relation_show_nothing_in_95_of_100_tries() -> None:
    claims = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        sources = []
        for _ in range(10):
            times = generator.integers(10**6, 10**7, 20)
            groups = {
                GroupKey(None, None, f"MPI_{i}", None, None): GroupTime(int(t), int(t))
                for i, t in enumerate(times)
            }
            head = RunHead("made up", {}, {}, int(generator.integers(10**9, 2 * 10**9)), {})
            sources.append(Source(head, groups, GroupTime(int(times.sum()), None)))
        claims += any(row.claim for row in correlate(sources, ("op",)).rows)
    assert claims <= 5


@pytest.mark.parametrize(
    "count, sentence",
    [
        (
            3,
            "3 runs cannot show a correlation with the run time; at least 5 can, and 6 for one of 10 rows",
        ),
        (
            4,
            "4 runs cannot show a correlation with the run time; at least 5 can, and 6 for one of 10 rows",
        ),
        (5, "5 runs, 10 rows tested; 6 runs could find a single row"),
        (6, "6 runs, 10 rows tested"),
    ],
)
def test_too_few_runs_claim_nothing_and_say_how_many_would_do(
    run: Run, runs: list[Path], count: int, sentence: str
) -> None:
    lines = run("correlate", *runs[:count]).stdout.splitlines()
    assert lines[1] == sentence
    assert lines[0].startswith("no row correlates significantly") == (count < 6)
    assert lines[5].endswith("  ?" if count < 5 else "  rises" if count == 6 else "0.17")
    assert ("95 % interval" in lines[3]) == (count > 3)


@pytest.mark.parametrize("count", [1, 2])
def test_two_runs_are_refused(run: Run, runs: list[Path], count: int) -> None:
    result = run("correlate", *runs[:count])
    message = f"commlens: a correlation needs at least 3 runs, and 5 to show anything; there are {count}\n"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)


def test_runs_of_the_same_time_have_no_correlation(run: Run, small: Path) -> None:
    result = run("correlate", *[small] * 5)
    message = "commlens: all runs took the same time: there is nothing to correlate\n"
    assert (result.exit_code, result.stderr) == (2, message)


def test_a_selection_without_rows_is_an_empty_table(run: Run, runs: list[Path]) -> None:
    result = run("correlate", *runs, "--size", "1M:")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(
        "no row correlates significantly with the run time\n7 runs, 0 rows tested\n"
    )
    titles, *rows = csv.reader(
        io.StringIO(run("correlate", *runs, "--size", "1M:", "--format", "csv").stdout)
    )
    assert (titles[:2], rows) == (["setting", "family"], [])


# Refusals, and names from outside.


def test_a_misspelt_name_is_refused_once(run: Run, runs: list[Path]) -> None:
    result = run("correlate", *runs, "--op", "zz")
    assert (result.exit_code, result.stderr) == (2, "commlens: no operation 'zz'\n")
    result = run("correlate", *runs, "--comm", "zz")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert (
        "'sizes' is none of family, comm-size, op, size, region"
        in run("correlate", *runs, "--by", "op,sizes").stderr
    )


@pytest.mark.parametrize("comm", [(), ("--comm", "W0.0")])
def test_an_unreadable_profile_is_one_line_and_the_others_are_used(
    run: Run, runs: list[Path], tmp_path: Path, comm: tuple[str, ...]
) -> None:
    bad, short = tmp_path / "bad.db", tmp_path / "short.db"
    bad.write_text("not a profile")
    short.write_bytes(runs[0].read_bytes()[:3000])
    result = run("correlate", bad, *runs, short, *comm)
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (2, "", 2)
    result = run("correlate", "--keep-going", bad, *runs, short, *comm)
    assert (result.exit_code, len(result.stderr.splitlines())) == (3, 2)
    assert "\n7 runs, " in result.stdout
    result = run("correlate", "--keep-going", bad, bad, bad, *comm)
    assert (result.exit_code, result.stdout) == (2, "")


def test_names_from_outside_are_escaped(run: Run, tmp_path: Path) -> None:
    built = builders()
    for extra, build in zip(EXTRA, built):
        region = build.region("evil\x1b[31m\u202e")
        build.count(1, "MPI_Bcast", 0, 1, extra * MS, region=region)
        build.settings = [("label", "n\x1b]0;x\x07", str(extra), 4)]
    paths = write(built, tmp_path)
    for style in ("table", "csv", "json"):
        output = run("correlate", *paths, "--by", "op,region", "--format", style).stdout
        assert "evil" in output
        assert not any(character in output for character in "\x1b\x07\u202e"), style


def test_recorded_profiles_of_older_versions_are_read(run: Run) -> None:
    paths = sorted(path for path in RECORDED.glob("version[2-9]*.db") if "summary" not in path.name)
    assert document(run, *paths)["rows"]


def test_a_communicator_whose_parent_is_a_set_is_matched_as_one_without_a_parent(
    run: Run, tmp_path: Path
) -> None:
    builds = builders()
    for build in builds:
        (union,) = [comm.id for comm in build.comms.values() if comm.kind == "set"]
        next(comm for comm in build.comms.values() if comm.name == "s0.1").parent = union
    done = run("correlate", *write(builds, tmp_path))
    assert done.exit_code in (0, 3), done.stderr
    assert "MPI_Allreduce" in done.stdout
