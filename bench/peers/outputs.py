# SPDX-License-Identifier: Apache-2.0
"""Reads what each tool wrote, into one form."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bench.peers.tools import BY_NAME, COMMLENS


class Row(NamedTuple):
    """Calls of one procedure.

    `rank` and `comm` are None if the tool does not tell them apart. `moved` is what the tool counts as bytes: None if it
    counts none for the procedure, two numbers if it counts sent and received bytes apart.
    """

    op: str
    calls: int
    rank: int | None = None
    comm: str | None = None
    size: int | None = None
    moved: tuple[int, ...] | None = None
    is_local: bool = False  # whether `comm` is a number that means something in this process only


class OutputError(Exception):
    """A tool left no output, or an output that cannot be read."""


def only(folder: Path, pattern: str) -> Path:
    """Return the one file of this pattern.

    Raises
    ------
    OutputError
        There is none, or there are several.
    """
    found = sorted(folder.rglob(pattern))
    if len(found) != 1:
        raise OutputError(f"{len(found)} files {pattern} in its output")
    return found[0]


def rows_of(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return what a query of a database answers.

    Raises
    ------
    OutputError
        It is no such database.
    """
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return db.execute(sql).fetchall()
    except sqlite3.Error as error:
        raise OutputError(f"{path.name}: {error}") from None


COMMLENS_SQL = """
    SELECT o.name, SUM(x.calls), x.rank, IIF(c.kind IN ('intra', 'inter'), c.id || ' ' || c.name, NULL), c.size,
        SUM(x.bytes_sent), SUM(x.bytes_received)
    FROM cell x JOIN key k ON k.id = x.key JOIN comm c ON c.id = k.comm JOIN op o ON o.id = k.op
    GROUP BY o.name, x.rank, c.id
"""


def read_commlens(folder: Path, _mpi: str) -> Iterator[Row]:
    """Return the cells of a profile."""
    for op, calls, rank, comm, size, *moved in rows_of(only(folder, "profile.db"), COMMLENS_SQL):
        yield Row(op, calls, rank, comm, size, tuple(moved))


MPISEE_SQL = """
    SELECT o.operation, SUM(d.calls), d.rank, c.id || ' ' || c.name, c.size, SUM(d.volume)
    FROM data d JOIN comms c ON c.id = d.comm_id JOIN operations o ON o.id = d.operation_id
    GROUP BY o.operation, d.rank, c.id
"""


def read_mpisee(folder: Path, _mpi: str) -> Iterator[Row]:
    """Return the rows of table `data` of its database."""
    for op, calls, rank, comm, size, volume in rows_of(only(folder, "*.db"), MPISEE_SQL):
        name = "Win_fence" if op == "Fence" else op
        yield Row(f"MPI_{name}", calls, rank, comm, size, (volume,))


SECTION = re.compile(r"@--- (Callsite (Time|Message Sent|I/O) statistics)")
OF_SITE = re.compile(r"(\w+)\s+(\d+)\s+(\d+)\s+(\d+)((?:\s+-?[\d.e+]+)+)$")


def read_mpip(folder: Path, _mpi: str) -> Iterator[Row]:
    """Return the rows of the sections of a report that have a line for each call site and rank."""
    calls: dict[tuple[str, int], int] = {}
    moved: dict[tuple[str, int], int] = {}
    section = ""
    for line in only(folder, "*.mpiP").read_text(errors="replace").splitlines():
        if line.startswith("@"):
            found = SECTION.match(line)
            section = found[2] if found else ""
            continue
        found = OF_SITE.match(line.strip())
        if not found or not section:
            continue
        key, count, numbers = (f"MPI_{found[1]}", int(found[3])), int(found[4]), found[5].split()
        if section == "Time":
            calls[key] = calls.get(key, 0) + count
        else:
            moved[key] = moved.get(key, 0) + round(float(numbers[-1]))
    if not calls:
        raise OutputError("no call site in its report")
    for (op, rank), count in sorted(calls.items()):
        size = moved.get((op, rank))
        yield Row(op, count, rank, moved=None if size is None else (size,))


COMPLETES = re.compile(r"MPI_(Wait|Test)(all|any|some)?$")
OF_MESSAGES = ("sum#mpi.send.count", "sum#mpi.recv.count", "sum#mpi.coll.count")


def parse_caliper(text: str, rank: int) -> Iterator[Row]:
    """Return the rows of the records of one rank, in JSON.

    A record has either the calls of a function, or messages of a function on a communicator.  Messages of non-blocking
    receives are recorded at the call that completes them; here they belong to MPI_Irecv.
    """
    comms: dict[tuple[str, str, int], list[int]] = {}
    moved: dict[str, int] = {}
    calls: dict[str, int] = {}
    for record in json.loads(text):
        if "event.end#mpi.function" in record:
            op = record["event.end#mpi.function"]
            calls[op] = calls.get(op, 0) + round(float(record.get("sum#region.count", 0)))
        elif "mpi.comm" in record:
            op = str(record.get("path", "")).split("/")[-1]
            op = "MPI_Irecv" if COMPLETES.match(op) else op
            counts = [round(float(record.get(name, 0))) for name in OF_MESSAGES]
            # MPI_Sendrecv has a record for the message sent and one for the message received.
            number = counts[0] + counts[2] + (0 if "endrecv" in op else counts[1])
            size = round(float(record.get("sum#mpi.msg.size", 0)))
            key = (op, str(record["mpi.comm"]), int(record.get("mpi.comm.size", 0)))
            comms[key] = [a + b for a, b in zip(comms.get(key, [0, 0]), (number, size))]
            moved[op] = moved.get(op, 0) + size
    for op, number in calls.items():
        yield Row(op, number, rank, moved=(moved[op],) if op in moved else None)
    for (op, comm, size), (number, _) in comms.items():
        yield Row(f"{op}{ON_COMM}", number, rank, f"{rank}/{comm}", size, is_local=True)


ON_COMM = " on a communicator"
"""Ends the procedure of a row that only says on which communicators messages were; another row has the calls."""


def read_caliper(folder: Path, mpi: str) -> Iterator[Row]:
    """Return what its own cali-query says of its files, one for each rank."""
    files = sorted(folder.glob("rank-*.cali"))
    if not files:
        raise OutputError("no .cali file in its output")
    query = BY_NAME["Caliper"].prefix(mpi) / "bin" / "cali-query"
    for path in files:
        done = subprocess.run([query, "-j", path], capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            raise OutputError(f"cali-query: {done.stderr.strip()[:160]}")
        yield from parse_caliper(done.stdout, int(path.stem.split("-")[1]))


TASK = re.compile(r'<task\b[^>]*\bmpi_rank="(\d+)"')
HASHED = re.compile(r'<hent\b[^>]*\bcall="(\w+)" bytes="(-?\d+)"[^>]*\bcount="(\d+)"')


def read_ipm(folder: Path, _mpi: str) -> Iterator[Row]:
    """Return the entries of the hash tables in a full log; the bytes of an entry are those of one call."""
    calls: dict[tuple[str, int], int] = {}
    moved: dict[tuple[str, int], int] = {}
    rank = 0
    for line in only(folder, "*.ipm.xml").read_text(errors="replace").splitlines():
        task, entry = TASK.search(line), HASHED.search(line)
        if task:
            rank = int(task[1])
        if entry:
            key, size, count = (entry[1], rank), int(entry[2]), int(entry[3])
            calls[key] = calls.get(key, 0) + count
            moved[key] = moved.get(key, 0) + size * count
    if not calls:
        raise OutputError("no call in its log")
    for (op, of), count in sorted(calls.items()):
        yield Row(op, count, of, moved=(moved[op, of],) if moved[op, of] else None)


READERS: dict[str, Callable[[Path, str], Iterator[Row]]] = {
    COMMLENS: read_commlens,
    "mpisee": read_mpisee,
    "mpiP": read_mpip,
    "Caliper": read_caliper,
    "IPM": read_ipm,
}
"""By peer."""
