# SPDX-License-Identifier: Apache-2.0
"""Compares the profile of the self-test's program with what it did."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import NamedTuple, TypeVar

from commlens.doctor.finding import Finding, ok, problem
from commlens.profile.database import Database
from commlens.selftest import known
from commlens.selftest.known import Row

K = TypeVar("K")

LINE = re.compile(r"self-test: (\d+) processes, (\d+) wrong results, sum (-?\d+), ([\d.]+) seconds")
TELL_US = "Please report this with the whole output"

# A process of the self-test makes only these communicators of its own; a library that it loads may make others.
COMMS_SQL = """\
SELECT comm.id, comm.name, comm.user_name, op.name AS creator, comm.members, comm.communicators
  FROM comm LEFT JOIN op ON op.id = comm.creator WHERE comm.kind = 'intra' ORDER BY comm.id"""
ROWS_SQL = """\
SELECT key.comm, op.name AS procedure, key.bin, cell.rank, SUM(calls) AS calls, SUM(bytes_sent) AS sent,
       SUM(bytes_received) AS received
  FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op GROUP BY key.comm, key.op, key.bin, cell.rank"""
REGION_SQL = """\
SELECT cell.rank, SUM(calls) AS calls FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op
  JOIN region ON region.id = key.region WHERE op.name = 'MPI_Isend' AND region.name = ? GROUP BY cell.rank"""
PAIRS_SQL = """\
SELECT source, destination, SUM(messages) AS messages, SUM(bytes) AS bytes FROM pair WHERE kind = 'sent'
 GROUP BY source, destination"""
TIMES_SQL = """\
SELECT rank.rank, rank.app_ns, SUM(cell.time_ns) AS mpi_ns, SUM(cell.time_error_ns) AS error_ns
  FROM rank JOIN cell ON cell.rank = rank.rank GROUP BY rank.rank"""


class Said(NamedTuple):
    """The line of the program."""

    processes: int
    wrong: int
    sum: int
    seconds: float  # of rank 0, between MPI_Init and the last call but one


def said(output: str) -> Said | None:
    r"""Return what the program printed, wherever a launcher puts it; None if it did not.

    >>> said("[1,0]<stdout>: self-test: 4 processes, 0 wrong results, sum 42, 0.5 seconds\n")
    Said(processes=4, wrong=0, sum=42, seconds=0.5)
    """
    found = LINE.search(output)
    return Said(int(found[1]), int(found[2]), int(found[3]), float(found[4])) if found else None


def check_profile(profile: Database, line: Said) -> Iterable[Finding]:
    """Yield a finding for each kind of numbers in the profile of a whole run."""
    processes = line.processes
    kinds = communicators(profile)
    yield _ranks(profile, processes)
    yield _communicators(profile, kinds, processes)
    counted = rows_of(profile, kinds)
    right = {_key(row): row for row in known.rows(processes)}
    columns: dict[str, Callable[[Row], int]] = {
        "calls": lambda row: row.calls,
        "bytes sent": lambda row: row.sent,
        "bytes received": lambda row: row.received,
    }
    for name, column in columns.items():
        wanted = {key: column(row) for key, row in right.items()}
        found = {key: column(row) for key, row in counted.items()}
        yield compared(
            name,
            wanted,
            found,
            f"{sum(wanted.values()):,} in {len(wanted):,} rows, by communicator, procedure, message size and rank",
            _words,
        )
    yield _region(profile, processes)
    yield _pairs(profile, processes)
    yield _times(profile, line)


def check_killed(profile: Database, processes: int, missing: str) -> Finding:
    """Return whether a profile of the killed run has what was done until then."""
    kinds = communicators(profile)
    wanted = {_key(row): row.calls for row in chain.from_iterable(map(known.ring, range(processes)))}
    found = {
        key: row.calls for key, row in rows_of(profile, kinds).items() if key[1] in ("MPI_Isend", "MPI_Recv")
    }
    if missing:
        there = {rank for (rank,) in profile.execute("SELECT rank FROM rank")}
        wanted = {key: calls for key, calls in wanted.items() if key[3] in there}
        text = f"missing ranks: {missing}; all {sum(wanted.values()):,} calls of the others are there"
    else:
        text = f"all {sum(wanted.values()):,} calls before the kill are there"
    return compared("killed", wanted, found, text, _words)


def communicators(profile: Database) -> dict[int, str]:
    """Return the kind, as in known.members, of each communicator of the program, by number."""
    kinds: dict[int, str] = {}
    for row in profile.execute(COMMS_SQL):
        if row["name"] == "W0.0":
            kinds[row["id"]] = known.WORLD
        elif row["user_name"] == known.PART:
            first = re.match(r"\d+", row["members"] or "")
            kinds[row["id"]] = known.ODD if first and int(first[0]) % 2 else known.EVEN
        elif row["creator"] == "MPI_Comm_dup":
            kinds[row["id"]] = known.DUPLICATE
    return kinds


def rows_of(profile: Database, kinds: Mapping[int, str]) -> dict[tuple[str, str, int, int], Row]:
    """Return the counters of the procedures in known.PROCEDURES, by communicator's kind, procedure, bin and rank."""
    found: dict[tuple[str, str, int, int], Row] = {}
    for row in profile.execute(ROWS_SQL):
        kind = kinds.get(row["comm"])
        if kind is None or row["procedure"] not in known.PROCEDURES:
            continue
        key = (kind, row["procedure"], row["bin"], row["rank"])
        before = found.get(key, Row(*key, 0, 0, 0))
        found[key] = before._replace(
            calls=before.calls + row["calls"],
            sent=before.sent + row["sent"],
            received=before.received + row["received"],
        )
    return found


def compared(
    name: str, wanted: Mapping[K, object], found: Mapping[K, object], right: str, words: Callable[[K], str]
) -> Finding:
    """Return a finding about numbers that should be equal; it names the first that is not."""
    different = [key for key in chain(wanted, found) if wanted.get(key, 0) != found.get(key, 0)]
    if not different:
        return ok(name, right)
    first, number = different[0], len(dict.fromkeys(different))
    more = f", and {number - 1:,} more" if number > 1 else ""
    return problem(
        name,
        f"{words(first)}: {found.get(first, 0)} in the profile, but {wanted.get(first, 0)} were made{more}",
        TELL_US,
    )


def _key(row: Row) -> tuple[str, str, int, int]:
    return row.comm, row.procedure, known.bin_of(row.size), row.rank


def _words(key: tuple[str, str, int, int]) -> str:
    comm, procedure, bin_, rank = key
    return f"{procedure} on {comm}, size bin {bin_}, rank {rank}"


def _ranks(profile: Database, processes: int) -> Finding:
    (found,) = profile.execute("SELECT COUNT(*) FROM rank").fetchone()
    if found == processes:
        return ok("ranks", f"all {processes:,}")
    return problem("ranks", f"{found:,} in the profile, but the job has {processes:,}", TELL_US)


def _communicators(profile: Database, kinds: Mapping[int, str], processes: int) -> Finding:
    found: Counter[tuple[str, str]] = Counter()
    for row in profile.execute(COMMS_SQL):
        if row["id"] in kinds:
            found[kinds[row["id"]], _members(row)] += row["communicators"]
    wanted = {
        (kind, " ".join(map(str, ranks))): number
        for kind, (number, ranks) in known.members(processes).items()
    }
    text = f"{sum(wanted.values())}, each with its members: " + ", ".join(
        f"{kind} ({number:,})" if number > 1 else kind for (kind, _), number in wanted.items()
    )
    return compared("communicators", wanted, found, text, lambda key: f"{key[0]} of ranks {key[1][:60]}")


def _members(row: sqlite3.Row) -> str:
    """Return the world ranks, one by one."""
    ranks: list[int] = []
    for part in (row["members"] or "").split(","):
        found = re.fullmatch(r" *(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if found is None:
            return str(row["members"])
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        ranks += range(first, last + 1, step)
    return " ".join(map(str, ranks))


def _region(profile: Database, processes: int) -> Finding:
    found = {row["rank"]: row["calls"] for row in profile.execute(REGION_SQL, (known.REGION,))}
    wanted = dict.fromkeys(range(processes), known.MESSAGES)
    return compared(
        "regions",
        wanted,
        found,
        f"all calls between commlens_begin() and commlens_end() are in region '{known.REGION}'",
        lambda rank: f"MPI_Isend in region '{known.REGION}' on rank {rank}",
    )


def _pairs(profile: Database, processes: int) -> Finding:
    found = {
        (row["source"], row["destination"]): (row["messages"], row["bytes"])
        for row in profile.execute(PAIRS_SQL)
    }
    wanted = known.ring_messages(processes)
    return compared(
        "matrix",
        wanted,
        found,
        f"messages and bytes of all {len(wanted):,} pairs of the ring",
        lambda pair: f"messages and bytes from rank {pair[0]} to {pair[1]}",
    )


def _times(profile: Database, line: Said) -> Finding:
    """Compare the clock of the profile with that of the program on rank 0: the profile's time contains the program's."""
    times = {
        row["rank"]: (row["app_ns"], row["mpi_ns"] - 5 * row["error_ns"])
        for row in profile.execute(TIMES_SQL)
    }
    beyond = [rank for rank, (app, mpi) in times.items() if mpi > app * 1.001]
    if beyond:
        return problem(
            "time", f"rank {beyond[0]} spent more time in MPI than from MPI_Init to MPI_Finalize", TELL_US
        )
    seconds = times[0][0] / 1e9 if 0 in times else 0.0
    if seconds < line.seconds * 0.999:
        return problem(
            "time",
            f"{seconds:.6f} s from MPI_Init to MPI_Finalize, but the program measured {line.seconds:.6f} s",
            TELL_US,
        )
    return ok(
        "time",
        f"rank 0: {seconds:.6f} s from MPI_Init to MPI_Finalize; by the program's own clock {line.seconds:.6f} s of it",
    )
