# SPDX-License-Identifier: Apache-2.0
"""What `commlens regions` and `commlens report --by region` say, against the oracle and letter by letter."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from build_profile import LoopTime, ProfileBuilder, RegionTime, execute
from conftest import MS, Run, marked_builder
from oracle import Oracle, RegionOracle, Row
from summarise import summarised
from test_numbers import CASE_IDS, CASES, COUNTERS, line_column, made_up, statements
from test_text import below_head

from commlens.render.units import LONGEST_NAME
from commlens.reports.regions import NOT_IN_SUMMARIES

SEEDS = range(6)
BY = {
    (): (),
    ("--executions",): ("execution",),
    ("--iterations",): ("iteration",),
    ("--executions", "--iterations"): ("execution", "iteration"),
}


def test_the_profile_of_the_tests_agrees_with_itself() -> None:
    """A region holds what is in it: time of regions within it, and that of MPI calls."""
    build = marked_builder()
    for region in list(build.regions.values())[1:]:
        for rank in range(build.ranks):
            mine = [row for row in build.region_times if (row.region, row.rank) == (region.id, rank)]
            inside = [
                row
                for row in build.region_times
                if build.regions[row.region].parent == region.id and row.rank == rank
            ]
            own = [cell for cell in build.cells if (cell.region, cell.rank) == (region.id, rank)]
            assert sum(row.nested_ns for row in mine) == sum(row.time_ns for row in inside)
            assert sum(row.mpi_ns for row in mine) == sum(row.mpi_ns for row in inside) + sum(
                cell.time_ns for cell in own
            )


@pytest.fixture(scope="module", params=["marked", *SEEDS])
def profile(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ProfileBuilder, Path]:
    build = marked_builder() if request.param == "marked" else made_up(request.param)
    return build, build.write(tmp_path_factory.mktemp("regions") / "profile.db")


def test_made_up_profiles_have_what_is_to_be_read() -> None:
    builds = [made_up(seed) for seed in SEEDS]
    assert {len(build.regions) for build in builds} > {1}
    regions = [region for build in builds for region in build.regions.values()]
    assert {region.kind for region in regions} == {"program", "region", "loop", "others"}
    times = [row for build in builds for row in build.region_times]
    assert {0, 1} < {row.open for row in times}
    assert {row.calls - row.open for row in times} > {0}, "some have not ended once"
    assert {row.execution for row in times} == {0, 1}
    assert {row.iteration for row in times} == {-1, 0, 1, 5}
    told = [row for build in builds for row in build.metric_values]
    assert {row.not_finite for row in told} == {0, 1}
    assert 0 in {row.count for row in told}
    ends = [row["last"] for build in builds for row in RegionOracle(build).metrics(()).values()]
    assert None in ends and len(set(ends)) > 2


def read(run: Run, *arguments: object) -> dict[str, list[Row]]:
    """Return what a command says as JSON."""
    result = run(*arguments, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, list[Row]] = json.loads(result.stdout)
    return found


def same(found: dict[Any, Row], expected: dict[Any, Row]) -> None:
    """Compare rows by their keys: shares to the last digits, all else exactly."""
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        mine = {column: found[key][column] for column in row}
        for column, value in row.items():
            wanted = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            assert mine[column] == wanted, (key, column)


@pytest.mark.parametrize("fold", [True, False], ids=["folded", "unfolded"])
@pytest.mark.parametrize("options", BY, ids=" ".join)
def test_every_number_is_what_plain_loops_compute(
    profile: tuple[ProfileBuilder, Path], run: Run, options: tuple[str, ...], fold: bool
) -> None:
    build, path = profile
    oracle, by = RegionOracle(build), BY[options]
    found = read(run, "regions", path, *options, *([] if fold else ["--unfold"]))

    rows = {row["region"]: row for row in found["regions"]}
    assert set(rows) == set(build.regions)
    expected = oracle.regions()
    same({region: row for region, row in rows.items() if row["ranks"]}, expected)
    for region, row in rows.items():
        names = oracle.path(region)
        stated = (row["parent"], row["depth"], row["path"], row["name"], row["kind"])
        known = build.regions[region]
        assert stated == (known.parent, len(names), "/".join(names), known.name, known.kind)
        open_calls = [time.open for time in build.region_times if time.region == region]
        assert row["still_open"] == (sum(open_calls) if open_calls else None)
        if row["ranks"]:
            assert row["share"] == pytest.approx(row["time_ns"] / (build.ranks * build.app_ns))

    line = "family" if fold else "comm"
    used = {(row["region"], row[line]): row for row in found["communicators"]}
    assert len(used) == len(found["communicators"])
    same(used, oracle.communicators(fold))
    assert {row["communicator"] for row in found["communicators"] if row["communicators"] == 1} <= {
        comm.name for comm in build.comms.values()
    }

    same({(row["region"],): row for row in found["loops"]}, oracle.rows_of(build.loop_times, ()))
    bins = {(row["region"], row["bin"]): row["iterations"] for row in found["histograms"]}
    assert bins == oracle.histograms()
    for row in found["histograms"]:
        low, high = row["time_low_ns"], row["time_high_ns"]
        assert (low, high) == ((2 ** (row["bin"] - 1), 2 ** row["bin"] - 1) if row["bin"] else (0, 0))
    assert [(row["region"], row["name"], row["value"]) for row in found["tags"]] == sorted(build.tags)

    def metrics(title: str, *columns: str) -> dict[Any, Row]:
        rows = {(row["metric"], row["region"], *(row[c] for c in columns)): row for row in found[title]}
        assert len(rows) == len(found[title])
        assert all((row["name"], row["unit"]) == build.metrics[row["metric"]] for row in found[title])
        return rows

    same(metrics("metrics"), oracle.metrics(()))
    if by:
        times: dict[str, list[RegionTime] | list[LoopTime]] = {"region": build.region_times}
        if "iteration" in by:
            times["loop"] = build.loop_times
        expected_parts = {
            (what, *key): row for what, rows in times.items() for key, row in oracle.rows_of(rows, by).items()
        }
        parts = {(row["what"], row["region"], *(row[c] for c in by)): row for row in found["parts"]}
        assert len(parts) == len(found["parts"])
        same(parts, expected_parts)
        same(metrics("metrics_of_parts", *by), oracle.metrics(by))
    else:
        assert not {"parts", "metrics_of_parts"} & set(found)


def test_efficiencies_are_what_their_names_say(profile: tuple[ProfileBuilder, Path], run: Run) -> None:
    rows = [row for row in read(run, "regions", profile[1])["regions"] if row["parallel_efficiency"]]
    assert (rows != []) == (len(profile[0].regions) > 1)  # one profile has no region but the whole program
    for row in rows:
        product = row["load_balance"] * row["communication_efficiency"]
        assert row["parallel_efficiency"] == pytest.approx(product)
        for column in ("parallel_efficiency", "load_balance", "communication_efficiency", "mpi_share"):
            assert 0 <= row[column] <= 1, column


def test_the_view_region_total_has_the_same_numbers(profile: tuple[ProfileBuilder, Path], run: Run) -> None:
    _, path = profile
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        rows = {row["region"]: dict(row) for row in connection.execute("SELECT * FROM region_total")}
        ranks = connection.execute("SELECT COUNT(*) FROM region_rank WHERE region = 0").fetchone()[0]
    found = read(run, "regions", path)["regions"]
    assert rows[0]["ranks"] == ranks
    same({row["region"]: row for row in found if row["ranks"]}, rows)


def test_the_view_region_operation_has_every_call_once(profile: tuple[ProfileBuilder, Path]) -> None:
    build, path = profile
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT region, comm, SUM(calls), SUM(time_ns) FROM region_operation GROUP BY 1, 2"
        )
        found = {(region, comm): (calls, time_ns) for region, comm, calls, time_ns in rows}
    places = {(cell.region, cell.comm) for cell in build.cells}
    assert found == {
        place: tuple(
            sum(getattr(cell, counter) for cell in build.cells if (cell.region, cell.comm) == place)
            for counter in ("calls", "time_ns")
        )
        for place in places
    }


def test_with_threads_the_efficiencies_of_the_whole_program_are_not_known(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2, app_ns=100)
    region = build.region("parallel")
    for rank in range(2):
        build.count(1, "MPI_Bcast", rank, 1, 150, region=region)
        build.spend(region, rank, 4, 400, mpi_ns=150)
    path = build.write(tmp_path / "threads.db")
    execute(path, "UPDATE rank SET threads = 4")
    whole, inside = read(run, "regions", path)["regions"][::-1]
    assert (whole["region"], whole["parallel_efficiency"], whole["load_balance"]) == (0, None, None)
    assert inside["parallel_efficiency"] == 250 / 400
    execute(path, "UPDATE rank SET mpi_ns = 50")
    whole = read(run, "regions", path)["regions"][1]
    assert (whole["mpi_share"], whole["parallel_efficiency"]) == (0.5, None), "less than 1 by chance only"


# ---- report --by region ----


def by_region(build: ProfileBuilder, meaning: dict[str, Any]) -> tuple[dict[Any, Row], ...]:
    """Return what the oracle says of each region for itself: regions, communicators and operations."""
    regions: dict[Any, Row] = {}
    lines: dict[Any, Row] = {}
    operations: dict[Any, Row] = {}
    for region in build.regions:
        oracle = Oracle(build, regions={region}, **meaning)
        present = {row.rank for row in build.region_times if row.region == region}
        ranks = (present if region else set(range(build.ranks))) & oracle.ranks
        if oracle.cells:
            row = oracle.counters(1, oracle.cells)
            del row["rank_avg_ns"], row["calls_per_rank"]
            total = sum(cell.time_ns for cell in oracle.cells)
            average = (2 * total + len(ranks)) // (2 * len(ranks)) if ranks else None
            each = row["calls"] / len(ranks) if ranks else None
            regions[region] = {
                "ranks": len(ranks) or None,
                "rank_avg_ns": average,
                "calls_per_rank": each,
                **row,
            }
        lines.update({(region, line): row for line, row in oracle.lines().items()})
        operations.update({(region, *key): row for key, row in oracle.operations().items()})
    return regions, lines, operations


@pytest.mark.parametrize(("options", "meaning"), CASES, ids=CASE_IDS)
def test_a_report_by_region_is_one_for_each_region(
    profile: tuple[ProfileBuilder, Path], run: Run, options: list[str], meaning: dict[str, Any]
) -> None:
    build, path = profile
    if max(meaning.get("comms", {0})) >= len(build.comms):
        pytest.skip("the communicators of this case are those of made-up profiles")
    regions, lines, operations = by_region(build, meaning)
    found = read(run, "report", path, "--by", "region", *options)
    line = line_column(meaning)
    row_names = [line, "op", "bucket", *(["callsite"] if meaning.get("callsites") else [])]
    same({row["region"]: row for row in found["regions"]}, regions)
    same({(row["region"], row[line]): row for row in found["communicators"]}, lines)
    same(
        {(row["region"], *(row[name] for name in row_names)): row for row in found["operations"]}, operations
    )
    assert len(found["operations"]) == len(operations)
    order = [row["region"] for row in found["regions"]]
    assert [row["time_ns"] for row in found["regions"]] == sorted(
        (row["time_ns"] for row in found["regions"]), reverse=True
    )
    for title in ("communicators", "operations"):
        assert list(dict.fromkeys(row["region"] for row in found[title])) == order


@pytest.mark.parametrize("options", [[], ["--unfold"], ["--callsites"], ["--class", "p2p"]], ids=" ".join)
def test_all_regions_together_are_the_plain_report(
    profile: tuple[ProfileBuilder, Path], run: Run, options: list[str]
) -> None:
    _, path = profile
    plain = read(run, "report", path, *options)
    parts = read(run, "report", path, "--by", "region", *options)
    line = "comm" if "--unfold" in options else "family"
    sums = {"calls", "time_ns", "bytes_sent", "bytes_received", "noncontiguous"}
    keys = {
        "communicators": [line],
        "operations": [line, "op", "bucket", *(["callsite"] if "--callsites" in options else [])],
    }
    for title, names in keys.items():
        added: dict[Any, dict[str, int]] = {}
        for row in parts[title]:
            total = added.setdefault(tuple(row[name] for name in names), dict.fromkeys(sums, 0))
            for column in sums:
                total[column] += row[column]
        assert added == {
            tuple(row[name] for name in names): {column: row[column] for column in sums}
            for row in plain[title]
        }
    everything = {column: sum(row[column] for row in plain["communicators"]) for column in sums}
    assert {column: sum(row[column] for row in parts["regions"]) for column in sums} == everything


@pytest.mark.parametrize(
    "arguments",
    [
        ("regions",),
        ("regions", "--unfold", "--executions", "--iterations"),
        ("report", "--by", "region"),
        ("report", "--by", "region", "--top", "2"),
        ("report", "--by", "region", "--top", "1", "--all-ranks", "--callsites", "--unfold"),
        ("report", "--by", "region", "--time", "0.1:", "--sort", "name"),
        ("report", "--by", "region", "--sort", "size"),
    ],
    ids=" ".join,
)
def test_every_row_printed_is_had_by_the_sql_printed(
    profile: tuple[ProfileBuilder, Path], run: Run, arguments: tuple[str, ...]
) -> None:
    _, path = profile
    command, *options = arguments
    printed = read(run, command, path, *options)
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        for title, statement in statements(
            run(command, path, *options, "--format", "json", "--sql").stdout
        ).items():
            if title.startswith(("run: ", "finding: ")):
                continue
            had = [dict(row) for row in connection.execute(statement)]
            for row in had:
                for column in ("place", "of_lines", "of_time_ns", "of_share"):
                    row.pop(column, None)
            assert sorted(printed.pop(title), key=json.dumps) == sorted(had, key=json.dumps), title
    assert not set(printed) - {"run", "findings"}


@pytest.mark.parametrize("options", [(), ("--executions",), ("--iterations",)], ids=" ".join)
def test_csv_has_the_rows_of_regions_or_of_their_parts(
    profile: tuple[ProfileBuilder, Path], run: Run, options: tuple[str, ...]
) -> None:
    _, path = profile
    rows = read(run, "regions", path, *options)["parts" if options else "regions"]
    text = run("regions", path, *options, "--format", "csv").stdout
    assert list(csv.DictReader(io.StringIO(text))) == [
        {column: "" if value is None else str(value) for column, value in row.items()} for row in rows
    ]


# ---- letter by letter ----

TREE = """\
region             calls  max/rank  slowest  avg/rank  own/rank     MPI  max/avg       PE       LB       CE
whole program          4    200 ms        0    200 ms         -  47.8 %     1.00   52.2 %   79.2 %   66.0 %
│ MPI in W0.0 65.4 %, s*.1 x2 34.6 %, - <0.1 %
│ memory: 4 values from 90 to 90 MiB, sum 360 MiB, last 90 MiB
├─ solve               8    151 ms        3    142 ms   4.00 ms  62.7 %     1.06   35.1 %   68.8 %   51.0 %
│  │ MPI in W0.0 62.9 %, s*.1 x2 37.1 %
│  ├─ time steps       8    123 ms        3    114 ms   6.00 ms  60.5 %     1.08   36.6 %   65.2 %   56.1 %
│  │  │ MPI in W0.0 52.2 %, s*.1 x2 47.8 %
│  │  │ 24 iterations: 456 ms of all ranks, 17.5 ms to 20.5 ms
│  │  │ residual: 24 values from 0.03125 to 1, sum 7.875, last 0.03125
│  │  ├─ exchange     24   54.0 ms        3   45.0 ms   45.0 ms  73.3 %     1.20   22.2 %  100.0 %   22.2 %
│  │  │    MPI in s*.1 x2 100.0 %
│  │  ├─ norm         24   63.0 ms        0   39.0 ms   39.0 ms  92.3 %     1.62    4.8 %  100.0 %    4.8 %
│  │  │    MPI in W0.0 100.0 %
│  │  └─ update       12   48.0 ms        1   48.0 ms   48.0 ms     0 %     1.00  100.0 %  100.0 %  100.0 %
│  │       on 2 of 4 ranks, kind: COMP
│  │       cells updated: 12 values from 16384 to 16384 cells, sum 196608 cells, last 16384 cells
│  └─ output           8   24.0 ms        0   24.0 ms   24.0 ms  83.3 %     1.00   16.7 %  100.0 %   16.7 %
│       format: raw, kind: IO
│       MPI in W0.0 100.0 %
└─ set-up              4   40.0 ms        0   40.0 ms   40.0 ms  16.2 %     1.00   83.8 %   95.7 %   87.5 %
     kind: IO
     MPI in W0.0 100.0 %
     memory: 8 values from 100 to 120 MiB, sum 886 MiB, last 120 MiB

slowest: the rank with max/rank; own: time outside nested regions; PE: parallel efficiency = LB: load balance x CE: communication efficiency; \
averages are over the ranks that entered the region
"""

CUT_TREE = """\
region                            calls  max/rank  slowest  avg/rank  own/rank     MPI  max/avg      PE      LB      CE
whole program                         4    200 ms        0    200 ms         -  47.8 %     1.00  52.2 %  79.2 %  66.0 %
│ MPI in W0.0 65.4 %, s*.1 x2 34.6 %, - <0.1 %
│ memory: 4 values from 90 to 90 MiB, sum 360 MiB, last 90 MiB
├─ solve                              8    151 ms        3    142 ms   4.00 ms  62.7 %     1.06  35.1 %  68.8 %  51.0 %
│  │ MPI in W0.0 62.9 %, s*.1 x2 37.1 %
│  │ execution 0                      4   75.5 ms        3   71.0 ms   2.00 ms  62.7 %     1.06  35.1 %  68.8 %  51.0 %
│  │ and 1 more
│  ├─ time steps                      8    123 ms        3    114 ms   6.00 ms  60.5 %     1.08  36.6 %  65.2 %  56.1 %
│  │    MPI in W0.0 52.2 %, s*.1 x2 47.8 %
│  │    24 iterations: 456 ms of all ranks, 17.5 ms to 20.5 ms
│  │    residual: 24 values from 0.03125 to 1, sum 7.875, last 0.03125
│  │    execution 0                   4   61.5 ms        3   57.0 ms   3.00 ms  60.5 %     1.08  36.6 %  65.2 %  56.1 %
│  │    and 1 more
│  │    execution 0, iteration 0      4   20.5 ms        3   19.0 ms   1.00 ms  60.5 %     1.08  36.6 %  65.2 %  56.1 %
│  │      residual: 4 values from 1 to 1, sum 4, last 1
│  │    and 5 more
│  │    3 nested regions
│  └─ and 1 more
└─ and 1 more
"""

BY_REGION = """\
region                     size     calls  calls/rank  collectives  max/rank  avg/rank  avg/call  longest   share      sent  received
solve/time steps/norm      4 ranks     24           6            6   60.0 ms   36.0 ms   6.00 ms  20.0 ms  37.7 %     192 B     192 B
  W0.0 MPI_COMM_WORLD      4 ranks     24           6            6   60.0 ms   36.0 ms   6.00 ms  20.0 ms  37.7 %     192 B     192 B
    MPI_Allreduce          8-15 B      24           6            6   60.0 ms   36.0 ms   6.00 ms  20.0 ms  37.7 %     192 B     192 B

solve/time steps/exchange  4 ranks     48          12                42.0 ms   33.0 ms   2.75 ms  12.0 ms  34.6 %  48.0 KiB  48.0 KiB
  s*.1 x2                  2 ranks     48          12                42.0 ms   33.0 ms   2.75 ms  12.0 ms  34.6 %  48.0 KiB  48.0 KiB
    MPI_Comm_split of W0.0 at stencil+0x1234
    MPI_Waitall            0 B         24           6                36.0 ms   27.0 ms   4.50 ms  12.0 ms  28.3 %       0 B  48.0 KiB
    MPI_Isend              2-4 KiB     24           6                6.00 ms   6.00 ms   1.00 ms  2.00 ms   6.3 %  48.0 KiB       0 B

solve/output               4 ranks      8           2                20.0 ms   20.0 ms   10.0 ms  20.0 ms  20.9 %  8.00 MiB       0 B
  W0.0 MPI_COMM_WORLD      4 ranks      8           2                20.0 ms   20.0 ms   10.0 ms  20.0 ms  20.9 %  8.00 MiB       0 B
    MPI_File_write_all     1-2 MiB      8           2                20.0 ms   20.0 ms   10.0 ms  20.0 ms  20.9 %  8.00 MiB       0 B

set-up                     4 ranks     12           3            2   8.00 ms   6.50 ms   2.17 ms  7.00 ms   6.8 %  8.00 KiB  24.0 KiB
  W0.0 MPI_COMM_WORLD      4 ranks     12           3            2   8.00 ms   6.50 ms   2.17 ms  7.00 ms   6.8 %  8.00 KiB  24.0 KiB
    MPI_Bcast              4-8 KiB      8           2            2   7.00 ms   5.50 ms   2.75 ms  7.00 ms   5.8 %  8.00 KiB  24.0 KiB
    MPI_Comm_split         0 B          4           1                1.00 ms   1.00 ms   1.00 ms  2.00 ms   1.0 %       0 B       0 B

outside all regions        4 ranks      4           1                1.00 µs   1.00 µs   1.00 µs  2.00 µs  <0.1 %       0 B       0 B
  -                                     4           1                1.00 µs   1.00 µs   1.00 µs  2.00 µs  <0.1 %       0 B       0 B
    calls that belong to no communicator
    MPI_Comm_get_parent    0 B          4           1                1.00 µs   1.00 µs   1.00 µs  2.00 µs  <0.1 %       0 B       0 B
"""

BY_REGION_CUT = """\
region                 size     calls  calls/rank  collectives  max/rank  avg/rank  avg/call  longest   share   sent  received
solve/time steps/norm  4 ranks     24           6            6   60.0 ms   36.0 ms   6.00 ms  20.0 ms  37.7 %  192 B     192 B
  W0.0 MPI_COMM_WORLD  4 ranks     24           6            6   60.0 ms   36.0 ms   6.00 ms  20.0 ms  37.7 %  192 B     192 B
    MPI_Allreduce      8-15 B      24           6            6   60.0 ms   36.0 ms   6.00 ms  20.0 ms  37.7 %  192 B     192 B
      rank 0                        6                            60.0 ms             10.0 ms  20.0 ms  15.7 %   48 B      48 B
      and 2 more ranks with 18.8 % of the MPI time
      rank 3                        6                            12.0 ms             2.00 ms  4.00 ms   3.1 %   48 B      48 B

and 4 more regions with 62.3 % of the MPI time
"""


def test_the_guide_shows_what_is_printed() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "read.md").read_text(encoding="utf-8")
    for shown in (TREE.split("\n\nslowest: ")[0], *BY_REGION.split("\n\n")[:2]):
        assert "".join(f"    {line}\n" for line in shown.splitlines()) in guide


def test_the_tree(marked: Path, run: Run) -> None:
    assert run("regions", marked).stdout == TREE


def test_the_tree_cut_in_depth_and_width_with_its_parts(marked: Path, run: Run) -> None:
    options = ("--executions", "--iterations", "--top", 1, "--depth", 2)
    assert run("regions", marked, *options).stdout.split("\nslowest: ")[0] == CUT_TREE


def test_the_report_by_region(marked: Path, run: Run) -> None:
    assert below_head(run("report", marked, "--by", "region").stdout) == BY_REGION


def test_the_report_by_region_cut_to_one(marked: Path, run: Run) -> None:
    cut = run("report", marked, "--by", "region", "--top", 1, "--all-ranks").stdout
    assert [line.split() for line in below_head(cut).splitlines()] == [
        line.split() for line in BY_REGION_CUT.splitlines()
    ]


def test_the_head_of_a_report_names_the_busiest_region(marked: Path, small: Path, run: Run) -> None:
    line = "regions       7, most time in solve/time steps/exchange (22.5 %); 'commlens regions' shows them"
    assert line in run("report", marked).stdout.splitlines()
    assert "regions" not in run("report", small).stdout
    facts = json.loads(run("report", marked, "--format", "json").stdout)["run"]["regions"]
    assert facts == {"regions": 7, "busiest": "solve/time steps/exchange", "exclusive_ns": 180 * MS}


def test_without_regions_one_line_says_how_to_have_some(small: Path, run: Run) -> None:
    lines = run("regions", small).stdout.splitlines()
    assert lines[1].startswith("whole program") and lines[1].endswith("88.9 %  98.3 %  90.4 %")
    assert lines[3:] == [
        "",
        "no code regions: the application marks them with commlens_begin() and commlens_end() of commlens.h, "
        "in C, C++, Fortran and Python",
    ]
    assert (
        below_head(run("report", small, "--by", "region").stdout)
        .splitlines()[1]
        .startswith("outside all regions")
    )


def test_the_times_of_iterations_are_drawn_as_they_are_distributed(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=1)
    loop = build.region("steps", kind="loop")
    build.spend(loop, 0, 1, 100 * MS)
    for count, each in ((1, 1000), (80, 2000), (20, 8000)):
        build.iterate(loop, 0, count, count * each, iteration=each)
    build.tell(build.metric("error"), loop, 0, [], not_finite=3)
    build.tell(build.metric("mass", "kg"), loop, 0, [2.5])
    text = run("regions", build.write(tmp_path / "loop.db")).stdout
    assert "  101 iterations: 321 µs of all ranks, 1.00 µs to 16.0 µs; 512 ns ▁█·▂ 8.19 µs\n" in text
    assert "  error: 0 values, 3 not finite\n" in text
    assert "  mass: 1 value, 2.5 kg\n" in text


def test_long_names_of_metrics_units_and_tags_are_cut_like_those_of_regions(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=1)
    region = build.region("short")
    build.spend(region, 0, 1, 100)
    build.tell(build.metric("n" * 99, "u" * 99), region, 0, [1.0])
    build.tags.append((region, "t" * 99, "v" * 99))
    path = build.write(tmp_path / "long.db")
    name, unit, tag, value = (letter * (LONGEST_NAME - 1) + "…" for letter in "nutv")
    text = run("regions", path).stdout
    assert f" {tag}: {value}\n" in text
    assert f" {name}: 1 value, 1 {unit}\n" in text
    assert read(run, "regions", path)["tags"] == [{"region": region, "name": "t" * 99, "value": "v" * 99}]


def test_a_sum_beyond_what_a_number_can_hold_is_not_said(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2)
    region, one_sign, both = build.region("large"), build.metric("one sign"), build.metric("both")
    for rank, value in enumerate((1e308, -1e308)):
        build.spend(region, rank, 1, 100)
        build.tell(one_sign, region, rank, [1e308, 1e308])
        build.tell(both, region, rank, [value, value])
    path = build.write(tmp_path / "large.db")
    text = run("regions", path, "--executions").stdout
    assert "  one sign: 4 values from 1e+308 to 1e+308, last 1e+308\n" in text
    assert "  both: 4 values from -1e+308 to 1e+308\n" in text
    strict = json.loads(run("regions", path, "--format", "json").stdout, parse_constant=pytest.fail)
    assert [row["sum"] for row in strict["metrics"]] == [None, None]


# The empty value is that of a profile which an older commlens recovered.
@pytest.mark.parametrize(
    "said", ["counted: this time counts as in MPI", ": their time counts as outside MPI"]
)
def test_where_the_time_of_calls_that_had_not_returned_counts(tmp_path: Path, run: Run, said: str) -> None:
    build = ProfileBuilder(ranks=3, meta={"open_calls": said.partition(": ")[0]})
    build.count(1, "MPI_Bcast", 0, 1, 100)
    build.stands(0, "MPI_Bcast", 1, since_ns=200 * MS)
    build.stands(1, "MPI_Bcast", 1, since_ns=900 * MS)
    build.stands(2, "MPI_Bcast", 1, since_ns=100 * MS, inside=False)
    path = build.write(tmp_path / "killed.db")
    wanted = f"warning       2 MPI calls had not returned, the longest after 800 ms{said.removeprefix('counted')}\n"
    for command in ("regions", "report"):
        assert wanted in run(command, path).stdout
    facts = json.loads(run("report", path, "--format", "json").stdout)["run"]
    assert facts["under_way"] == {"calls": 2, "longest_ns": 800 * MS}


def test_many_metrics_and_tags_are_cut_like_regions(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=1)
    region = build.region("noisy")
    build.spend(region, 0, 1, 100)
    for i in range(30):
        build.tell(build.metric(f"m{i:02}"), region, 0, [float(i)])
        build.tags.append((region, "step", f"{i:02}"))
    path = build.write(tmp_path / "noisy.db")
    _, _, below = run("regions", path, "--top", 2).stdout.partition("└─ noisy")
    lines = [line.strip() for line in below.splitlines()]
    assert lines[1:5] == ["step: 00 | 01 | and 28 more", "m00: 1 value, 0", "m01: 1 value, 1", "and 28 more"]
    assert run("regions", path, "--top", 0).stdout.count(": 1 value, ") == 30


# ---- summary detail ----


def test_a_summary_says_the_same_of_regions_as_all_ranks(
    profile: tuple[ProfileBuilder, Path], tmp_path: Path, run: Run
) -> None:
    full = profile[0].write(tmp_path / "full.db")
    summary = summarised(full)
    found, wanted = read(run, "regions", summary), read(run, "regions", full)
    assert found["communicators"] == wanted["communicators"]
    assert found["tags"] == wanted["tags"]
    assert [found[title] for title in ("loops", "histograms", "metrics")] == [[], [], []]
    # What only single calls tell is not in it.
    of_calls = {"still_open": None, "call_min_ns": None, "call_max_ns": None}
    same(
        {row["region"]: {**row, **of_calls} for row in found["regions"]},
        {row["region"]: {**row, **of_calls} for row in wanted["regions"]},
    )
    for options in ([], ["--unfold"]):
        result = run("regions", summary, *options)
        assert (result.exit_code, result.stderr) == (0, "")
        assert NOT_IN_SUMMARIES in result.stdout
    for options, asked in (
        (["--executions", "--iterations"], "execution and iteration"),
        (["--iterations"], "iteration"),
    ):
        result = run("regions", summary, *options)
        assert (result.exit_code, result.stdout, result.stderr) == (
            2,
            "",
            f"commlens: {asked}: {NOT_IN_SUMMARIES}\n",
        )
    rows = read(run, "report", summary, "--by", "region", "--unfold", "--callsites")
    expected = read(run, "report", full, "--by", "region", "--unfold", "--callsites")
    assert rows["operations"] == expected["operations"], "one key each: all of it is known"
    some, all_of = read(run, "report", summary, "--by", "region"), read(run, "report", full, "--by", "region")
    for title in ("regions", "communicators", "operations"):
        assert len(some[title]) == len(all_of[title])
        for row, other in zip(some[title], all_of[title]):
            assert row["rank_max_ns"] in (None, other["rank_max_ns"]), "of several keys it is not known"
    for row, other in zip(rows["regions"], expected["regions"]):
        assert {column: row[column] for column in COUNTERS} == {column: other[column] for column in COUNTERS}
