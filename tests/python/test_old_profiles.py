# SPDX-License-Identifier: Apache-2.0
"""Profiles recorded with the library of every schema version: all of them say what the program does.

What they must say follows from tests/profiles/record.c alone: `calls_of` does on paper what the program does.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

import commlens.matrix
from commlens.matrix import KINDS
from commlens.profile._schema import RELATIONS, VERSION
from commlens.profile.header import OLDEST_VERSION

FOLDER = Path(__file__).resolve().parents[1] / "profiles"
EXPORTS = ("hatchet", "thicket", "caliper", "chrome", "speedscope", "folded", "csv", "parquet", "tinyprof")

# No commit of the main branch has these numbers: three changes of the schema came in one commit.
NEVER_WRITTEN = {4, 5}
REGIONS_SINCE, MATRIX_SINCE = 5, 6


@dataclass(frozen=True)
class Recorded:
    """A recorded profile; its name says which it is: version6-first-shards.commlens."""

    path: Path

    @property
    def version(self) -> int:
        found = re.match(r"version(\d+)(-[a-z-]+)?\.(db|commlens)$", self.path.name)
        assert found, f"{self.path}: not a name of a recorded profile, see tests/profiles/README.md"
        return int(found[1])

    @property
    def is_summary(self) -> bool:
        return self.path.stem.endswith("-summary")

    @property
    def has_matrix(self) -> bool:
        return self.version >= MATRIX_SINCE

    @property
    def has_inside(self) -> bool:
        """Whether it was recorded with COMMLENS_MATRIX=all."""
        return self.has_matrix and not self.is_summary

    @property
    def has_coverage(self) -> bool:
        """Whether it has table coverage, which came in the middle of version 2."""
        return self.path.name != "version2-first.db"


RECORDED = [Recorded(path) for path in sorted(FOLDER.glob("version*"))]
READABLE = [recorded for recorded in RECORDED if recorded.version >= OLDEST_VERSION]
IN_FULL = [recorded for recorded in READABLE if not recorded.is_summary]


def named(recorded: Recorded) -> str:
    return recorded.path.name


every_profile = pytest.mark.parametrize("recorded", READABLE, ids=named)
every_full_profile = pytest.mark.parametrize("recorded", IN_FULL, ids=named)
every_profile_with_regions = pytest.mark.parametrize(
    "recorded", [recorded for recorded in READABLE if recorded.version >= REGIONS_SINCE], ids=named
)
every_profile_without_regions = pytest.mark.parametrize(
    "recorded", [recorded for recorded in READABLE if recorded.version < REGIONS_SINCE], ids=named
)


# The program, on paper.

RANKS, STEPS = 4, 3
WORLD, NO_COMM, SETS = "W0.0", "-", "{*}"


@dataclass(frozen=True)
class Call:
    """One call of one rank."""

    op: str
    comm: str
    sent: int = 0
    received: int = 0
    noncontiguous: int = 0
    region: str = ""


@dataclass(frozen=True)
class Message:
    """One message or Put."""

    source: int
    destination: int
    bytes: int
    comm: str
    kind: str = "p2p"


def partner_of(rank: int) -> int:
    return (rank + 2) % RANKS


def calls_of(rank: int) -> Iterator[Call]:
    """Yield the calls of one rank of record.c; docs/bytes.md has the rules."""
    half, again = f"s{rank % 2}.1", f"d{rank % 2}.2"
    yield Call("MPI_Comm_rank", WORLD)
    yield Call("MPI_Comm_size", WORLD)

    yield Call("MPI_Comm_split", WORLD, region="set-up")
    yield Call("MPI_Comm_set_name", half, region="set-up")
    is_root = rank == 0
    yield Call("MPI_Bcast", WORLD, sent=400 * is_root, received=400 * (not is_root), region="set-up")

    for _ in range(STEPS):
        yield Call("MPI_Irecv", WORLD, received=1000, region="steps/exchange")
        yield Call("MPI_Irecv", half, received=24, region="steps/exchange")
        yield Call("MPI_Isend", WORLD, sent=1000, region="steps/exchange")
        yield Call("MPI_Isend", half, sent=24, region="steps/exchange")
        yield Call("MPI_Waitall", f"{{{WORLD},{half}}}", region="steps/exchange")
        yield Call("MPI_Allreduce", half, sent=16, received=16, region="steps")

    yield Call("MPI_File_open", WORLD, region="output")
    yield Call("MPI_File_write_at", WORLD, sent=64, region="output")
    yield Call("MPI_File_close", WORLD, region="output")

    yield Call("MPI_Win_allocate", WORLD)
    yield Call("MPI_Win_fence", WORLD)
    yield Call("MPI_Put", WORLD, sent=32)
    yield Call("MPI_Win_fence", WORLD)
    yield Call("MPI_Win_free", WORLD)

    yield Call("MPI_Comm_dup", half)
    yield Call("MPI_Barrier", again)
    yield Call("MPI_Comm_free", again)

    yield Call("MPI_Type_vector", NO_COMM)
    yield Call("MPI_Type_commit", NO_COMM)
    if rank == 0:
        yield Call("MPI_Send", WORLD, sent=16, noncontiguous=1)
    if rank == 3:
        yield Call("MPI_Recv", WORLD, received=16)
    yield Call("MPI_Type_free", NO_COMM)


def messages() -> Iterator[Message]:
    """Yield who sends what to whom."""
    for rank in range(RANKS):
        for _ in range(STEPS):
            yield Message(rank, (rank + 1) % RANKS, 1000, WORLD)
            yield Message(rank, partner_of(rank), 24, f"s{rank % 2}.1")
        yield Message(rank, partner_of(rank), 32, WORLD, "put")
    yield Message(0, 3, 16, WORLD)


CALLS = [(rank, call) for rank in range(RANKS) for call in calls_of(rank)]

# Times that each region is entered by all ranks together; a loop once, and its iterations are counted apart.
ENTERED = {"set-up": RANKS, "steps": RANKS, "steps/exchange": RANKS * STEPS, "output": RANKS}


def folded(comm: str) -> str:
    """Return the name of the family that a communicator is shown as."""
    if comm.startswith("{"):
        return SETS
    return comm if comm in (WORLD, NO_COMM) else f"{comm[0]}*{comm[2:]}"


Sums = dict[tuple[Any, ...], tuple[int, int, int, int]]


def summed(rows: Iterable[tuple[tuple[Any, ...], tuple[int, int, int, int]]]) -> Sums:
    """Return the sums of calls, bytes sent, bytes received and calls with gaps, by key."""
    sums: Sums = defaultdict(lambda: (0, 0, 0, 0))
    for key, (calls, sent, received, noncontiguous) in rows:
        so_far = sums[key]
        sums[key] = (so_far[0] + calls, so_far[1] + sent, so_far[2] + received, so_far[3] + noncontiguous)
    return dict(sums)


def on_paper(*by: str, unfold: bool = True) -> Sums:
    """Return the sums of the program's calls by some of rank, comm, op and region."""

    def key(rank: int, call: Call) -> tuple[Any, ...]:
        comm = call.comm if unfold else folded(call.comm)
        facts = {"rank": rank, "comm": comm, "op": call.op, "region": call.region}
        return tuple(facts[name] for name in by)

    return summed(
        (key(rank, call), (1, call.sent, call.received, call.noncontiguous)) for rank, call in CALLS
    )


def as_reported(rows: Iterable[dict[str, Any]], *by: str) -> Sums:
    """Return the sums of rows of a report, by some of its columns.

    Summary detail has one set in place of the two: it is called after the family.
    """
    return summed(
        (
            tuple(SETS if row[name] == "{W0.0,s*.1}" else row[name] for name in by),
            (row["calls"], row["bytes_sent"], row["bytes_received"], row["noncontiguous"]),
        )
        for row in rows
    )


def answer(run: Run, *command: object) -> Any:
    """Return what a command prints as JSON; it must be content and quiet."""
    result = run(*command, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def refused(run: Run, *command: object) -> str:
    """Return the one line of a command that has no answer."""
    result = run(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


# What is here.


def test_every_schema_version_has_a_recorded_profile() -> None:
    versions = {recorded.version for recorded in RECORDED}
    expected = set(range(1, VERSION + 1)) - NEVER_WRITTEN
    missing = sorted(expected - versions)
    assert not missing, (
        f"no profile of schema version {missing}: run tests/profiles/record.sh, see tests/profiles/README.md"
    )
    assert versions == expected


def test_every_recorded_profile_has_the_version_of_its_name_and_a_line_in_the_readme() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for recorded in RECORDED:
        files = [recorded.path] if recorded.path.is_file() else sorted(recorded.path.glob("*.db"))
        assert files, recorded.path
        for file in files:
            with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as connection:
                assert connection.execute("PRAGMA user_version").fetchone() == (recorded.version,), file
        assert f"| `{recorded.path.name}` |" in readme


def test_recorded_profiles_show_no_folder_but_the_one_they_were_recorded_in() -> None:
    for recorded in RECORDED:
        files = [recorded.path] if recorded.path.is_file() else sorted(recorded.path.glob("*.db"))
        for file in files:
            with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as connection:
                rows = connection.execute(
                    "SELECT value FROM meta UNION SELECT module FROM callsite"
                ).fetchall()
            folders = {folder for (text,) in rows for folder in re.findall(r"(?:/[\w.-]+){2}", text)}
            assert folders <= {"/tmp/record", "/dev/null"}, file


# Every version.


@every_profile
def test_every_communicator_and_operation_has_the_calls_and_bytes_of_the_program(
    recorded: Recorded, run: Run
) -> None:
    report = answer(run, "report", recorded.path)
    assert as_reported(report["operations"], "communicator", "operation") == on_paper(
        "comm", "op", unfold=False
    )
    assert as_reported(report["communicators"], "communicator") == on_paper("comm", unfold=False)
    assert report["run"]["ranks"]["calls"] == len(CALLS)
    assert report["run"]["ranks"]["ranks"] == RANKS
    assert report["run"]["ranks"]["lost_calls"] == 0


@every_full_profile
def test_every_rank_has_the_calls_and_bytes_of_the_program(recorded: Recorded, run: Run) -> None:
    report = answer(run, "report", "--unfold", "--all-ranks", recorded.path)
    columns = ("communicator", "operation", "rank")
    assert as_reported(report["ranks"], *columns) == on_paper("comm", "op", "rank")


@every_profile
def test_sizes_of_messages_are_those_of_the_program(recorded: Recorded, run: Run) -> None:
    sizes: dict[str, set[int]] = defaultdict(set)
    for row in answer(run, "report", recorded.path)["operations"]:
        sizes[row["operation"]].add(row["size_low"])
    with_size = {op: low for op, low in sizes.items() if low != {0}}
    assert with_size == {
        "MPI_Bcast": {256},
        "MPI_Isend": {16, 512},
        "MPI_Irecv": {16, 512},
        "MPI_Allreduce": {16},
        "MPI_File_write_at": {64},
        "MPI_Put": {32},
        "MPI_Send": {16},
        "MPI_Recv": {16},
    }


@every_full_profile
def test_communicators_have_their_members_parents_and_names(recorded: Recorded, run: Run) -> None:
    comms = {row["communicator"]: row for row in answer(run, "comms", "--unfold", recorded.path)}
    assert {name: (row["members"], row["parent"], row["creator"], row["user_name"]) for name, row in comms.items()} == {
        "W0.0": ("0-3", None, None, None),
        "s0.1": ("0,2", "W0.0", "MPI_Comm_split", "even"),
        "s1.1": ("1,3", "W0.0", "MPI_Comm_split", "odd"),
        "d0.2": ("0,2", "s0.1", "MPI_Comm_dup", None),
        "d1.2": ("1,3", "s1.1", "MPI_Comm_dup", None),
    }  # fmt: skip
    assert {name for name, row in comms.items() if row["freed"]} == {"d0.2", "d1.2"}
    assert {row["communicators"] for row in comms.values()} == {1}


@every_profile
def test_families_of_communicators_are_the_same_in_all_detail(recorded: Recorded, run: Run) -> None:
    columns = ("communicator", "communicators", "size_min", "parent", "freed")
    assert [tuple(row[name] for name in columns) for row in answer(run, "comms", recorded.path)] == [
        ("W0.0", 1, 4, None, 0),
        ("s*.1", 2, 2, "W0.0", 0),
        ("d*.2", 2, 2, "s*.1", 2),
    ]


@every_profile
def test_imported_procedures_are_there_since_the_table_is(recorded: Recorded, run: Run) -> None:
    if not recorded.has_coverage:
        assert refused(run, "coverage", recorded.path) == (
            "commlens: this profile does not contain the imports of the application: an older commlens wrote it\n"
        )
        return
    called = {
        row["procedure"]: row["calls"] for row in answer(run, "coverage", recorded.path) if not row["reason"]
    }
    assert called == Counter(call.op for _, call in CALLS)


@every_profile
def test_every_table_and_view_of_today_can_be_asked_for(recorded: Recorded, run: Run) -> None:
    for name, relation in RELATIONS.items():
        rows = answer(run, "sql", recorded.path, f"SELECT * FROM {name} LIMIT 3")
        for row in rows:
            assert list(row) == [column.name for column in relation.columns]
    ((calls,),) = (
        row.values() for row in answer(run, "sql", recorded.path, "SELECT SUM(calls) FROM key_total")
    )
    assert calls == len(CALLS)


@every_full_profile
def test_numbers_come_out_of_sql_for_every_rank(recorded: Recorded, run: Run) -> None:
    query = "SELECT rank, SUM(calls), SUM(bytes_sent), SUM(bytes_received), SUM(noncontiguous) FROM cell GROUP BY rank"
    rows = [tuple(row.values()) for row in answer(run, "sql", recorded.path, query)]
    assert rows == [(rank, *on_paper("rank")[rank,]) for rank in range(RANKS)]


@every_profile
@pytest.mark.parametrize("to", EXPORTS)
def test_every_export_takes_every_version(recorded: Recorded, run: Run, tmp_path: Path, to: str) -> None:
    output = tmp_path / f"out-{to}"
    command = ("export", recorded.path, "--to", to, "-o", output)
    if recorded.is_summary and to not in ("csv", "parquet"):
        assert "needs data of single ranks, but this profile has summary detail" in refused(run, *command)
        return
    result = run(*command)
    assert (result.exit_code, result.stderr) == (0, "")
    assert output.exists()


@every_full_profile
def test_csv_has_the_calls_of_the_program(recorded: Recorded, run: Run, tmp_path: Path) -> None:
    output = tmp_path / "cells.csv"
    assert run("export", recorded.path, "--to", "csv", "--table", "cell", "-o", output).exit_code == 0
    with output.open(encoding="utf-8", newline="") as file:
        assert sum(int(row["calls"]) for row in csv.DictReader(file)) == len(CALLS)


# Regions, which are there from version 5 on.


@every_profile_without_regions
@pytest.mark.parametrize("command", [("regions",), ("report", "--by", "region")], ids=" ".join)
def test_a_version_without_regions_says_so(recorded: Recorded, run: Run, command: tuple[str, ...]) -> None:
    assert refused(run, *command, recorded.path) == (
        f"commlens: this profile has schema version {recorded.version}: code regions need version 5 or later\n"
    )


@every_profile_with_regions
def test_regions_loops_metrics_and_tags_are_those_of_the_program(recorded: Recorded, run: Run) -> None:
    regions = answer(run, "regions", recorded.path)
    paths = {row["path"]: row for row in regions["regions"]}
    assert {path: row["calls"] for path, row in paths.items() if path} == ENTERED
    assert {path for path, row in paths.items() if row["kind"] == "loop"} == {"steps"}
    tags = [(row["region"], row["name"], row["value"]) for row in regions["tags"]]
    assert tags == [(paths["output"]["region"], "kind", "IO")]
    if recorded.is_summary:  # which has neither iterations nor metrics
        assert (regions["loops"], regions["histograms"], regions["metrics"]) == ([], [], [])
        return
    assert [(row["path"], row["calls"]) for row in regions["loops"]] == [("steps", RANKS * STEPS)]
    assert sum(row["iterations"] for row in regions["histograms"]) == RANKS * STEPS
    columns = ("name", "unit", "path", "count", "sum", "min", "max", "last")
    assert [tuple(row[name] for name in columns) for row in regions["metrics"]] == [
        ("residual", "m", "steps", 12, 7.0, 0.25, 1.0, 0.25)
    ]


@every_profile_with_regions
def test_every_region_has_the_calls_and_bytes_of_the_program(recorded: Recorded, run: Run) -> None:
    rows = answer(run, "report", "--by", "region", recorded.path)["operations"]
    columns = ("path", "communicator", "operation")
    assert as_reported(rows, *columns) == on_paper("region", "comm", "op", unfold=False)


@pytest.mark.parametrize(
    "recorded", [recorded for recorded in IN_FULL if recorded.version >= REGIONS_SINCE], ids=named
)
def test_iterations_that_are_kept_apart_are_three(recorded: Recorded, run: Run) -> None:
    query = "SELECT iteration, SUM(calls) FROM region_time JOIN region ON region.id = region WHERE name = 'exchange' GROUP BY 1"
    rows = [tuple(row.values()) for row in answer(run, "sql", recorded.path, query)]
    assert rows == [(iteration, RANKS) for iteration in range(STEPS)]


# The matrix, which is there from version 6 on.


@pytest.mark.parametrize(
    "recorded", [recorded for recorded in READABLE if not recorded.has_matrix], ids=named
)
@pytest.mark.parametrize("command", ["matrix", "algorithms"])
def test_a_version_without_the_matrix_says_so(recorded: Recorded, run: Run, command: str) -> None:
    assert refused(run, command, recorded.path) == (
        f"commlens: this profile has schema version {recorded.version}: "
        f"the communication matrix needs version {MATRIX_SINCE} or later\n"
    )


@pytest.mark.parametrize("recorded", [recorded for recorded in READABLE if recorded.has_inside], ids=named)
@pytest.mark.parametrize("kind", ["p2p", "put"])
def test_the_matrix_has_the_messages_of_the_program(recorded: Recorded, kind: str) -> None:
    assert kind in KINDS
    expected: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for message in messages():
        if message.kind == kind:
            pair = expected[message.source, message.destination]
            pair[0] += 1
            pair[1] += message.bytes
    pairs = commlens.matrix.read(recorded.path, kind=kind)
    columns = (pairs.source, pairs.destination, pairs.messages, pairs.bytes)
    rows = zip(*(column.tolist() for column in columns))
    assert {(source, destination): [count, size] for source, destination, count, size in rows} == expected


@pytest.mark.parametrize("recorded", [recorded for recorded in READABLE if recorded.has_inside], ids=named)
def test_messages_inside_collectives_and_shapes_are_those_of_the_program(
    recorded: Recorded, run: Run
) -> None:
    kinds = {
        row["kind"]: (row["messages"], row["bytes"])
        for row in answer(run, "matrix", recorded.path, "--kind", "all")["kinds"]
    }
    del kinds["internal"]  # inside windows and files: as many as the MPI library needs
    two_sided = [message for message in messages() if message.kind == "p2p"]
    in_halves = RANKS * STEPS  # calls of Allreduce, with 16 bytes, one message for each; and RANKS of Barrier
    assert kinds == {
        "sent": (len(two_sided), sum(message.bytes for message in two_sided)),
        "received": (len(two_sided), sum(message.bytes for message in two_sided)),
        "put": (RANKS, RANKS * 32),
        "collective": (3 + in_halves + RANKS, 3 * 400 + in_halves * 16),
        "one_to_all": (1, 3 * 400),
        "all_to_all": (in_halves + RANKS, in_halves * 16),
    }


@pytest.mark.parametrize("recorded", [recorded for recorded in READABLE if recorded.has_inside], ids=named)
def test_messages_of_a_region_are_kept_apart(recorded: Recorded) -> None:
    pairs = commlens.matrix.read(recorded.path, regions=["steps/exchange"])
    assert pairs.messages.sum() == RANKS * STEPS * 2
    assert pairs.bytes.sum() == RANKS * STEPS * (1000 + 24)


# Several files.


@pytest.mark.parametrize("recorded", [recorded for recorded in IN_FULL if recorded.path.is_dir()], ids=named)
def test_files_that_are_merged_say_the_same_and_keep_their_version(
    recorded: Recorded, run: Run, tmp_path: Path
) -> None:
    merged = tmp_path / "merged.db"
    assert run("merge", recorded.path, "-o", merged).exit_code == 0
    for command in (
        ("report", "--unfold"),
        ("report", "--by", "region"),
        ("regions",),
        ("timeline",),
        ("comms",),
        ("matrix",),
    ):
        apart, together = (run(*command, path) for path in (recorded.path, merged))
        assert together == apart, command
    assert answer(run, "sql", merged, "PRAGMA user_version") == [{"user_version": recorded.version}]
    for name in RELATIONS:  # for any SQLite client, too
        with closing(sqlite3.connect(f"file:{merged}?mode=ro", uri=True)) as connection:
            connection.execute(f"SELECT * FROM {name}").fetchall()


# Too old, too new.


def test_version_1_is_refused_in_one_line(run: Run) -> None:
    path = FOLDER / "version1.db"
    assert OLDEST_VERSION == 2
    for command in ("report", "comms", "regions", "coverage", "matrix"):
        assert refused(run, command, path) == (
            f"commlens: {path}: has schema version 1, but this commlens reads 2 and later: use an older commlens\n"
        )


def test_a_version_that_is_not_known_yet_is_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    shutil.copy(FOLDER / f"version{VERSION}.db", path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    for command in ("report", "comms", "regions", "coverage", "matrix"):
        assert refused(run, command, path) == (
            f"commlens: {path}: has schema version {VERSION + 1}, but this commlens reads at most {VERSION}: "
            "use a newer commlens\n"
        )
