# SPDX-License-Identifier: Apache-2.0
"""The numbers of a report against the oracle, on made-up profiles with every shape and filter."""

from __future__ import annotations

import csv
import io
import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from build_profile import OPS, ProfileBuilder
from conftest import Run
from oracle import CLASS_OF, Oracle, Row

SIZES = [0, 1, 8, 100, 128, 1000, 1024, 5000, 65536, 10**6, 2**40, None]


def written_as_ranges(ranks: list[int], dice: random.Random) -> str:
    """Return ranks in one of the ways a profile may write them."""
    if len(ranks) > 2 and len({b - a for a, b in zip(ranks, ranks[1:])}) == 1 and dice.random() < 0.8:
        stride = ranks[1] - ranks[0]
        return f"{ranks[0]}-{ranks[-1]}" + (f":{stride}" if stride > 1 else "")
    return ", ".join(map(str, ranks))


def mark(build: ProfileBuilder, dice: random.Random) -> None:
    """Add up to eight regions, and what ranks, executions and iterations say of them; none in one profile of three."""
    metrics = [build.metric("memory", "MiB"), build.metric("memory", "GiB"), build.metric("residual")]
    for i in range(dice.choice([0, 4, 8])):
        parent = dice.choice(list(build.regions.values()))
        region = build.region(f"part {i}", parent.id, dice.choice(["region", "region", "loop", "others"]))
        build.tags += [(region, name, str(i)) for name in ("kind", "phase") if dice.random() < 0.3]
        build.tags += [(region, "kind", "IO")] * (dice.random() < 0.3)
        iterations = [-1, 0, 1, 5] if parent.kind == "loop" else [-1]
        for rank in range(build.ranks):
            for execution in range(dice.randrange(3)):
                for iteration in iterations:
                    here = {"execution": execution, "iteration": iteration}
                    time_ns = dice.choice([0, *(dice.randrange(10**9) for _ in range(19))])
                    nested_ns, mpi_ns = dice.randrange(time_ns + 1), dice.randrange(time_ns + 1)
                    calls = dice.randrange(1, 9)
                    ends = {"open": dice.choice([0, 0, 1, calls])}
                    build.spend(region, rank, calls, time_ns, nested_ns, mpi_ns, **here, **ends)
                    values = [dice.randrange(-40, 40) / 4 for _ in range(dice.randrange(4))]
                    build.tell(dice.choice(metrics), region, rank, values, dice.randrange(2), **here)
                for iteration in [-1, 0, 2] if build.regions[region].kind == "loop" else []:
                    time_ns = dice.randrange(10**9)
                    nested_ns, mpi_ns = dice.randrange(time_ns + 1), dice.randrange(time_ns + 1)
                    here = {"execution": execution, "iteration": iteration}
                    build.iterate(region, rank, dice.randrange(1, 9), time_ns, nested_ns, mpi_ns, **here)


def made_up(seed: int) -> ProfileBuilder:
    """Return a profile with families, sets and an intercommunicator, and random counters in all of them."""
    dice = random.Random(seed)
    build = ProfileBuilder(ranks=dice.choice([1, 2, 5, 12]))
    build.sites.update({1: ("/bin/app", "", 64), 2: ("/bin/app", "", 128)})
    everybody = list(range(build.ranks))
    mark(build, dice)
    for family in range(2, 6):
        for i in range(dice.randrange(1, 4)):
            stride = dice.choice([1, 1, 2, 3])
            ranks = everybody[dice.randrange(build.ranks) :: stride] if dice.random() < 0.7 else everybody[:]
            if dice.random() < 0.2:
                dice.shuffle(ranks)
            build.comm(
                f"s{ranks[0]}.{family}{i}", ranks, family=family, parent=1, creator="MPI_Comm_split",
                callsite=1, members=written_as_ranges(ranks, dice),
            )  # fmt: skip
    if build.ranks > 1:
        half = build.ranks // 2
        build.comm(
            "I0.9", everybody, kind="inter", family=20, parent=1, remote_size=build.ranks - half,
            members=f"0-{half - 1} | {half}-{build.ranks - 1}",
        )  # fmt: skip
    first, second = build.comms[2], build.comms[3]
    union = sorted({*first.ranks, *second.ranks})
    build.comm(f"{{{first.name},{second.name}}}", union, kind="set", family=30, sets=(2, 3))
    seen = set()
    for _ in range(300):
        comm = dice.choice(list(build.comms.values()))
        op, size = dice.choice(list(CLASS_OF)), dice.choice(SIZES)
        rank, site, region = dice.choice(comm.ranks), dice.randrange(3), dice.choice(list(build.regions))
        if (comm.id, op, size and size.bit_length(), rank, site, region) not in seen:
            seen.add((comm.id, op, size and size.bit_length(), rank, site, region))
            calls = dice.randrange(1, 50)
            build.count(
                comm.id, op, rank, calls, dice.randrange(1, 10**9), size,
                dice.randrange(10**6), dice.randrange(10**6), site, dice.randrange(calls + 1), region,
            )  # fmt: skip
    return build


CASES: list[tuple[list[str], dict[str, Any]]] = [
    ([], {}),
    (["--unfold"], {"fold": False}),
    (["--callsites"], {"callsites": True}),
    (["--buckets", "128,1024,64K"], {"bounds": [128, 1024, 65536]}),
    (
        ["--buckets", "mpisee", "--unfold"],
        {"fold": False, "bounds": [128, 1024, 8192, 65536, 262144, 1048576, 33554432]},
    ),
    (["--class", "p2p", "--class", "comm"], {"classes": {"p2p", "comm"}}),
    (["--op", "Allreduce", "--op", "mpi_i*"], {"operations": {"MPI_Allreduce", "MPI_Irecv", "MPI_Isend"}}),
    (["--comm", "2", "--comm", "W0.0"], {"comms": {1, 2}}),
    (["--rank", "0"], {"ranks": {0}}),
    (["--size", "0:1024"], {"sizes": (0, 1024)}),
    (["--size", "1K:"], {"sizes": (1024, 2**64)}),
    (["--size", ":128", "--unfold"], {"fold": False, "sizes": (0, 128)}),
    (["--time", "0.2:0.7"], {"time_ns": (200_000_000, 700_000_000)}),
    (["--time", "0.2:0.7", "--class", "io", "--rank", "0"], {
        "time_ns": (200_000_000, 700_000_000), "classes": {"io"}, "ranks": {0}}),
    (["--all-ranks"], {"all_ranks": True}),
    (["--all-ranks", "--time", ":0.3", "--callsites"], {
        "all_ranks": True, "time_ns": (0, 300_000_000), "callsites": True}),
]  # fmt: skip
OF_SIZES: list[tuple[list[str], dict[str, Any]]] = [
    (["--by", "comm-size"], {"by": "comm-size"}),
    (["--by", "comm-size", "--callsites", "--class", "collective", "--all-ranks"], {
        "by": "comm-size", "callsites": True, "classes": {"collective"}, "all_ranks": True}),
]  # fmt: skip


def case_id(value: Any) -> str:
    """Return the options of a case; its meaning has no part in the name."""
    return " ".join(value) if isinstance(value, list) else ""


CASE_IDS = [" ".join(options) or "default" for options, _ in CASES]


@pytest.fixture(scope="module", params=range(5))
def profile(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ProfileBuilder, Path]:
    build = made_up(request.param)
    return build, build.write(tmp_path_factory.mktemp("made") / "made up.db")


def line_column(meaning: dict[str, Any]) -> str:
    """Return the column of a line of communicators."""
    if meaning.get("by") == "comm-size":
        return "comm_size"
    return "family" if meaning.get("fold", True) else "comm"


def only(rows: list[Row], names: list[str], columns: set[str]) -> dict[tuple[int, ...], Row]:
    """Return rows by their names, with the columns the oracle knows."""
    result = {tuple(row[name] for name in names): {c: row[c] for c in columns} for row in rows}
    assert len(result) == len(rows)
    return result


@pytest.mark.parametrize(("options", "meaning"), [*CASES, *OF_SIZES], ids=case_id)
def test_every_number_is_what_plain_loops_compute(
    profile: tuple[ProfileBuilder, Path], run: Run, options: list[str], meaning: dict[str, Any]
) -> None:
    build, path = profile
    oracle = Oracle(build, **meaning)
    result = run("report", path, "--format", "json", *options)
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    line = line_column(meaning)
    row = [line, "op", "bucket", *(["callsite"] if meaning.get("callsites") else [])]

    lines = {key[0]: value for key, value in only(report["communicators"], [line], LINE_COLUMNS).items()}
    assert lines == oracle.lines()
    assert only(report["operations"], row, ROW_COLUMNS) == oracle.operations()
    if meaning.get("all_ranks"):
        assert only(report["ranks"], [*row, "rank"], RANK_COLUMNS) == oracle.rank_rows()
    else:
        assert "ranks" not in report


COUNTERS = {"calls", "time_ns", "call_min_ns", "call_max_ns", "bytes_sent", "bytes_received", "noncontiguous"}
AVERAGES = {"rank_max_ns", "rank_avg_ns", "call_avg_ns", "calls_per_rank", "collectives"}
LINE_COLUMNS = {*COUNTERS, *AVERAGES, "communicators", "size_min", "size_max", "ranks"}
ROW_COLUMNS = {*COUNTERS, *AVERAGES, "size_low", "size_high"}
RANK_COLUMNS = {*COUNTERS, "call_avg_ns"}


@pytest.mark.parametrize(("options", "meaning"), CASES, ids=CASE_IDS)
def test_a_report_by_op_is_one_for_each_procedure(
    profile: tuple[ProfileBuilder, Path], run: Run, options: list[str], meaning: dict[str, Any]
) -> None:
    build, path = profile
    found = json.loads(run("report", path, "--format", "json", "--by", "op", *options).stdout)
    line = line_column(meaning)
    row = [line, "op", "bucket", *(["callsite"] if meaning.get("callsites") else [])]
    procedures: dict[Any, Row] = {}
    lines: dict[Any, Row] = {}
    operations: dict[Any, Row] = {}
    for op, (name, _) in OPS.items():
        wanted = meaning.get("operations", {name}) & {name}
        oracle = Oracle(build, **{**meaning, "operations": wanted})
        if not oracle.cells:
            continue
        world = build.comms[1].family
        total, ranks = sum(cell.time_ns for cell in oracle.cells), len(oracle.ranks)
        procedures[name] = {
            **oracle.counters(world, oracle.cells),
            "ranks": ranks,
            "rank_avg_ns": (2 * total + ranks) // (2 * ranks),
            "calls_per_rank": sum(cell.calls for cell in oracle.cells) / ranks,
        }
        lines.update({(op, number): values for number, values in oracle.lines().items()})
        operations.update(oracle.operations())
    columns = {*COUNTERS, *AVERAGES, "ranks"}
    assert {
        key[0]: row for key, row in only(found["procedures"], ["operation"], columns).items()
    } == procedures
    assert only(found["communicators"], ["op", line], LINE_COLUMNS) == lines
    assert only(found["operations"], row, ROW_COLUMNS) == operations
    order = [row["op"] for row in found["procedures"]]
    for title in ("communicators", "operations"):
        assert list(dict.fromkeys(row["op"] for row in found[title])) == order
    times = [row["time_ns"] for row in found["procedures"]]
    assert times == sorted(times, reverse=True)


def test_every_case_selects_something_and_every_filter_leaves_something_out() -> None:
    builds = [made_up(seed) for seed in range(5)]
    everything = sum(len(Oracle(build).cells) for build in builds)
    for options, meaning in CASES:
        left = sum(len(Oracle(build, **meaning).cells) for build in builds)
        assert left > 0, options
        filters = {"comms", "operations", "classes", "ranks", "sizes", "time_ns"} & set(meaning)
        assert left < everything or not filters, options


@pytest.mark.parametrize(
    ("sort", "of_lines", "of_rows", "of_ranks"),
    [
        ("time", "time_ns", "time_ns", "time_ns"),
        ("max", "rank_max_ns", "rank_max_ns", "time_ns"),
        ("avg", "rank_avg_ns", "rank_avg_ns", "time_ns"),
        ("calls", "calls", "calls", "calls"),
        ("sent", "bytes_sent", "bytes_sent", "bytes_sent"),
        ("received", "bytes_received", "bytes_received", "bytes_received"),
        ("size", "size_max", "size_low", None),
    ],
)
def test_the_largest_comes_first(
    profile: tuple[ProfileBuilder, Path],
    run: Run,
    sort: str,
    of_lines: str,
    of_rows: str,
    of_ranks: str | None,
) -> None:
    _, path = profile
    report = json.loads(run("report", path, "--format", "json", "--all-ranks", "--sort", sort).stdout)

    def descends(rows: list[Row], column: str) -> bool:
        values = [-1 if row[column] is None else row[column] for row in rows]
        return values == sorted(values, reverse=True)

    lines = [row["family"] for row in report["communicators"]]
    assert descends(report["communicators"], of_lines)
    assert list(dict.fromkeys(row["family"] for row in report["operations"])) == lines
    for line in lines:
        rows = [row for row in report["operations"] if row["family"] == line]
        assert descends(rows, of_rows)
        for row in rows:
            ranks = [r for r in report["ranks"] if all(r[c] == row[c] for c in ("family", "op", "bucket"))]
            assert ranks
            if of_ranks:
                assert descends(ranks, of_ranks)
            else:
                assert [r["rank"] for r in ranks] == sorted(r["rank"] for r in ranks)


def test_names_are_sorted_from_a_to_z(small: Path, run: Run) -> None:
    report = json.loads(run("report", small, "--format", "json", "--all-ranks", "--sort", "name").stdout)
    names = [row["communicator"] for row in report["communicators"]]
    assert names == ["-", "W0.0", "a0.2", "s*.1", "{W0.0,s0.1}"]
    world = [row["operation"] for row in report["operations"] if row["communicator"] == "W0.0"]
    assert world == sorted(world)


def statements(text: str) -> dict[str, str]:
    """Take the output of --sql apart: title -> statement."""
    parts = {}
    for part in ("\n" + text).split("\n-- ")[1:]:
        title, _, statement = part.partition("\n")
        if statement.rstrip().endswith(";"):
            parts[title] = statement
    return parts


def as_text(value: Any) -> str:
    return "" if value is None else str(value)


@pytest.mark.parametrize("top", [[], ["--top", "2"]], ids=["all", "top"])
@pytest.mark.parametrize("sort", ["time", "size", "name"])
@pytest.mark.parametrize(("options", "meaning"), CASES, ids=CASE_IDS)
def test_every_row_printed_is_had_by_the_sql_printed(
    small: Path, run: Run, options: list[str], meaning: dict[str, Any], sort: str, top: list[str]
) -> None:
    """In the same order too, within a communicator, and with every column."""
    options = [*options, "--sort", sort, *top]
    printed = list(csv.DictReader(io.StringIO(run("report", small, "--format", "csv", *options).stdout)))
    sql = statements(run("report", small, "--format", "csv", *options, "--sql").stdout)
    connection = sqlite3.connect(small)
    connection.row_factory = sqlite3.Row
    had = [
        dict(row) for row in connection.execute(sql["ranks" if meaning.get("all_ranks") else "operations"])
    ]
    line = "family" if meaning.get("fold", True) else "comm"
    lines = [str(row[line]) for row in connection.execute(sql["communicators"])]
    had.sort(key=lambda row: lines.index(str(row[line])))  # communicators first; sort() keeps the rest
    if meaning.get("all_ranks"):
        rows = [dict(row) for row in connection.execute(sql["operations"])]
        key = [line, "op", "bucket", *(["callsite"] if meaning.get("callsites") else [])]
        order = [tuple(row[k] for k in key) for row in rows]
        had.sort(key=lambda row: (lines.index(str(row[line])), order.index(tuple(row[k] for k in key))))
    assert printed == [
        {
            column: as_text(value)
            for column, value in row.items()
            if column not in ("place", "of_lines", "of_time_ns", "of_share")
        }
        for row in had
    ]
    connection.close()


@pytest.mark.parametrize(
    ("view", "options", "key", "title"),
    [
        ("family_total", [], ["family"], "communicators"),
        ("comm_total", ["--unfold"], ["comm"], "communicators"),
        ("family_operation", [], ["family", "op", "bin"], "operations"),
        ("comm_operation", ["--unfold"], ["comm", "op", "bin"], "operations"),
    ],
)
def test_the_views_in_the_profile_hold_the_rows_of_a_plain_report(
    profile: tuple[ProfileBuilder, Path], run: Run, view: str, options: list[str], key: list[str], title: str
) -> None:
    _, path = profile
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    rows = [dict(row) for row in connection.execute(f"SELECT * FROM {view}")]
    connection.close()
    report = json.loads(run("report", path, "--format", "json", *options).stdout)[title]
    for row in report:
        row["bin"] = row.get("bucket")
    assert rows
    columns = set(rows[0])
    assert only(rows, key, columns) == only(report, key, columns)


def test_the_view_family_names_families_as_the_report_does(
    profile: tuple[ProfileBuilder, Path], run: Run
) -> None:
    _, path = profile
    connection = sqlite3.connect(path)
    named = dict(connection.execute("SELECT family, name FROM family"))
    connection.close()
    report = json.loads(run("report", path, "--format", "json").stdout)
    assert {row["family"]: row["communicator"] for row in report["communicators"]}.items() <= named.items()


def test_the_view_member_lists_the_ranks_of_every_communicator(profile: tuple[ProfileBuilder, Path]) -> None:
    build, path = profile
    connection = sqlite3.connect(path)
    members = set(connection.execute("SELECT comm, rank FROM member"))
    connection.close()
    assert members == {(comm.id, rank) for comm in build.comms.values() for rank in comm.ranks}


def test_the_view_counter_holds_every_cell_once(profile: tuple[ProfileBuilder, Path]) -> None:
    build, path = profile
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT comm, communicator, operation, class, bin, callsite, rank, calls, bytes_sent FROM counter"
    ).fetchall()
    connection.close()
    assert sorted(rows) == sorted(
        (c.comm, build.comms[c.comm].name, c.op, CLASS_OF[c.op], c.bin, c.callsite, c.rank, c.calls, c.sent)
        for c in build.cells
    )


def test_the_view_size_bin_covers_every_size_once(small: Path) -> None:
    connection = sqlite3.connect(small)
    rows = connection.execute(
        "SELECT bin, size_low, size_high FROM size_bin WHERE bin >= 0 ORDER BY bin"
    ).fetchall()
    connection.close()
    next_size = 0
    for i, (bin, low, high) in enumerate(rows):
        assert (bin, low) == (i, next_size)
        next_size = high + 1
    assert next_size == 2**63


def test_all_sizes_in_one_bucket_are_shown_with_their_range(small: Path, run: Run) -> None:
    report = json.loads(run("report", small, "--format", "json", "--buckets", "all", "--op", "*").stdout)
    sizes: dict[str, tuple[int | None, int | None]] = {}
    for row in report["operations"]:
        if row["communicator"] == "W0.0":
            sizes[row["operation"]] = (row["size_low"], row["size_high"])
    assert sizes == {
        "MPI_Allreduce": (8, 15),
        "MPI_Isend": (65536, 131071),
        "MPI_Irecv": (65536, 131071),
        "MPI_Alltoallv": (None, None),
        "MPI_Comm_split": (0, 0),
    }


def test_operations_of_the_fixture_are_all_classes() -> None:
    assert {c for _, c in OPS.values()} == {
        "p2p", "collective", "neighbor", "rma", "io", "completion", "comm", "other",
    }  # fmt: skip
