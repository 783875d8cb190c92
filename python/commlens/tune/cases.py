# SPDX-License-Identifier: Apache-2.0
"""Makes cases to measure of the places of a plan: message sizes, and who was in which communicator at the same time."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from commlens.algorithms.calls import collective_of
from commlens.profile import meta
from commlens.selection.members import comm_of
from commlens.tune.model import Case
from commlens.tune.plan import Place, Plan
from commlens.tune.scope import places_beside, shared_by

LARGEST = 2**31 - 1  # bytes of a rank in a call: counts in MPI are int
FOREVER = 2**62
MOST_COMPUTING = 1_000_000
"""ns between two calls of a replay: after as long on other data, no cache contains anything of the former call."""

EACH = ("gather", "scatter", "allgather", "alltoall", "reduce_scatter_block")
"""Collectives in which a rank has a block for each rank."""

SUMMED = ("allreduce", "exscan", "reduce", "reduce_scatter_block", "scan")
"""Collectives that combine data. The replay adds numbers of 8 bytes, so that messages of 8 bytes or more are whole numbers."""

Layout = tuple[tuple[int, ...], ...]
"""Communicators that are active at the same time, each with the world ranks of its ranks."""

Blocks = tuple[tuple[tuple[int, int], ...], ...]
"""Bytes that each rank sends and receives in a call, by communicator and rank in it."""

COMMS_SQL = """\
SELECT comm.*, op.name AS creator_name, called.calls, called.sent, called.received
  FROM comm LEFT JOIN op ON op.id = comm.creator
       LEFT JOIN (SELECT key.comm, SUM(part.calls) AS calls, SUM(part.bytes_sent) AS sent,
                         SUM(part.bytes_received) AS received
                    FROM key JOIN op ON op.id = key.op JOIN key_total AS part ON part.key = key.id
                   WHERE op.name = ? AND key.bin = ? GROUP BY key.comm) AS called
       ON called.comm = comm.id
 WHERE comm.family = ? AND comm.kind = 'intra' AND comm.size > 1
 ORDER BY comm.id"""

BYTES_SQL = """\
SELECT cell.rank, SUM(cell.calls) AS calls, SUM(cell.bytes_sent) AS sent, SUM(cell.bytes_received) AS received
  FROM key CROSS JOIN cell ON cell.key = key.id JOIN op ON op.id = key.op
 WHERE key.comm = ? AND op.name = ? AND key.bin = ?
 GROUP BY cell.rank"""

SPREAD_SQL = """\
SELECT spread.* FROM spread JOIN scope ON scope.id = spread.scope JOIN key ON key.id = scope.key JOIN op ON op.id = key.op
 WHERE key.comm = ? AND op.name = ? AND key.bin = ? AND spread.counter IN ('bytes_sent', 'bytes_received')"""

OUTSIDE_SQL = """\
SELECT SUM(sampled.outside), SUM(called.calls)
  FROM (SELECT waiting.comm, waiting.op, waiting.bin, SUM(waiting.outside_ns) AS outside
          FROM waiting JOIN op ON op.id = waiting.op
         WHERE op.name = ? AND waiting.bin = ?
         GROUP BY waiting.comm, waiting.op, waiting.bin) AS sampled
       JOIN (SELECT key.comm, key.op, key.bin, SUM(part.calls) AS calls
               FROM key_total AS part JOIN key ON key.id = part.key
              GROUP BY key.comm, key.op, key.bin) AS called
       ON called.comm = sampled.comm AND called.op = sampled.op AND called.bin = sampled.bin
       JOIN comm ON comm.id = sampled.comm
 WHERE comm.family = ? AND comm.size = ?"""

QUANTILES = (
    (0.0, "min"),
    (0.05, "p05"),
    (0.25, "p25"),
    (0.5, "p50"),
    (0.75, "p75"),
    (0.95, "p95"),
    (1.0, "max"),
)


@dataclass(frozen=True)
class Cases:
    """The cases of a plan.

    Attributes
    ----------
    cases : list of Case
    layouts : list of Layout
        One per case: the communicators of its family and size that existed at the same time.
    blocks : list of Blocks or None
        One per case: what each rank sends and receives; None where all blocks have the case's message size.
    processes : int
        Number of processes of the run.
    library : str
        First line of the text of MPI_Get_library_version.
    notes : list of str
        What could not be made as it was, one sentence each.
    computing_ns : list of int
        One per case: how long a rank computes before a call, at most MOST_COMPUTING; empty: not at all.
    """

    cases: list[Case] = field(default_factory=list)
    layouts: list[Layout] = field(default_factory=list)
    blocks: list[Blocks | None] = field(default_factory=list)
    processes: int = 0
    library: str = ""
    notes: list[str] = field(default_factory=list)
    computing_ns: list[int] = field(default_factory=list)


def read_cases(connection: sqlite3.Connection, plan: Plan, places: Sequence[Place] | None = None) -> Cases:
    """Return the cases of some places of a plan; without, of those worth trying and those that share a rule with them."""
    processes = meta.number(meta.facts(connection), "ranks")
    found = Cases(processes=processes, library=plan.library)
    for place in plan.worth if places is None else places:
        _add_place(connection, place, found)
    if places is not None:
        return found
    shared = {_shared(plan, case) for case in found.cases}
    beside = Cases(processes=processes)
    for place in places_beside(plan):
        _add_place(connection, place, beside)
    for i, case in enumerate(beside.cases):
        if _shared(plan, case) in shared:
            found.cases.append(case)
            found.layouts.append(beside.layouts[i])
            found.blocks.append(beside.blocks[i])
            found.computing_ns.append(beside.computing_ns[i])
    return found


def _shared(plan: Plan, case: Case) -> Hashable:
    return shared_by(plan.library, case.collective, case.comm_size, case.bin)


def _add_place(connection: sqlite3.Connection, place: Place, found: Cases) -> None:
    operation, bin = place.row["operation"], place.row["bin"]
    collective = collective_of(operation) or ""
    connection.row_factory = sqlite3.Row
    named = (operation, bin, place.row["family"])
    rows = [dict(row) for row in connection.execute(COMMS_SQL, named)]
    for size in sorted({row["size"] for row in rows if row["calls"]}):
        called = [row for row in rows if row["size"] == size and row["calls"]]
        chosen, layout = together(called, size, found.processes)
        if any(row["communicators"] > 1 or not row["members"] for row in chosen):
            found.notes.append(
                f"{place.row['communicator']}: the profile does not tell its members; they are taken to be "
                "neighbours in MPI_COMM_WORLD."
            )
        message = message_bytes(collective, bin, size, called)
        blocks = None
        if bin == -1:
            blocks = tuple(
                _blocks(connection, row, operation, bin, size, ranks) for row, ranks in zip(chosen, layout)
            )
        largest = (
            message * (size if collective in EACH else 1) if blocks is None else _largest(collective, blocks)
        )
        if largest > LARGEST:
            found.notes.append(
                f"{place.row['communicator']} {operation}: not tried, a rank has more than 2 GiB in a call."
            )
            continue
        name = place.row["communicator"]
        found.cases.append(Case(place.row["family"], name, collective, size, bin, message))
        found.layouts.append(layout)
        found.blocks.append(blocks)
        found.computing_ns.append(_computing(connection, place, size))


def _largest(collective: str, blocks: Blocks) -> int:
    """Return the most bytes of a rank in a call: the root of a gather or scatter has those of all."""
    if collective in ("gatherv", "scatterv"):
        return max((sum(one) for comm in blocks for one in zip(*comm)), default=0)
    return max((one for comm in blocks for both in comm for one in both), default=0)


def _computing(connection: sqlite3.Connection, place: Place, size: int) -> int:
    """Return how long a rank computes before one of these calls, so that the caches contain other data.

    It is the mean time outside MPI from one of these calls to the next, but no more than that between two calls of any
    procedure: another call brings back what the MPI library itself needs. Where the profile does not tell the first, it is
    the second.
    """
    key = (place.row["operation"], place.row["bin"])
    outside, calls = connection.execute(OUTSIDE_SQL, (*key, place.row["family"], size)).fetchone()
    in_mpi, all_calls = connection.execute("SELECT SUM(time_ns), SUM(calls) FROM key_total").fetchone()
    # It is 0 of prefix sums, whose time a profile splits like that of messages, and of a single call.
    between = [outside / calls] if outside and calls else []
    if place.run_ns > in_mpi:
        between.append((place.run_ns - in_mpi) / all_calls)
    return int(min(*between, MOST_COMPUTING)) if between else 0


def together(rows: Sequence[Mapping[str, Any]], size: int, processes: int) -> tuple[list[Any], Layout]:
    """Return communicators that existed at the same time and have no rank in common, and their world ranks.

    It begins with the communicator with the most calls. A row that stands for several without their members is laid
    out in blocks of neighbouring ranks.
    """
    order = sorted(rows, key=lambda row: (-row["calls"] / max(1, row["communicators"]), row["id"]))
    used: set[int] = set()
    chosen: list[Any] = []
    groups: list[tuple[int, ...]] = []
    begin, end = 0, FOREVER
    for row in order:
        first = row["created_ns"] or 0
        last = FOREVER if row["freed_ns"] is None else row["freed_ns"]
        if chosen and (max(begin, first) >= min(end, last)):
            continue
        for ranks in _members(row, size, processes):
            if used.isdisjoint(ranks):
                used.update(ranks)
                chosen.append(row)
                groups.append(ranks)
                begin, end = max(begin, first), min(end, last)
    return chosen, tuple(groups)


def _members(row: Mapping[str, Any], size: int, processes: int) -> list[tuple[int, ...]]:
    """Return the world ranks of each communicator of a row."""
    if row["members"] and row["communicators"] == 1:
        named = {"communicators": 1, **row, "communicator": row["name"], "creator": row["creator_name"]}
        ranks = tuple(int(rank) for rank in comm_of(named, processes).members)
        if len(ranks) == size and len(set(ranks)) == size:
            return [ranks]
    number = max(1, min(row["communicators"], processes // size))
    return [tuple(range(i * size, (i + 1) * size)) for i in range(number)]


def message_bytes(collective: str, bin: int, size: int, rows: Sequence[Mapping[str, Any]]) -> int:
    """Return the mean message size of the calls, of v collectives the mean number of bytes that a rank sends.

    >>> rows = [{"calls": 8, "sent": 8 * 4 * 100, "received": 8 * 4 * 100}]
    >>> message_bytes("alltoall", 7, 4, rows), message_bytes("allreduce", 9, 4, rows), message_bytes("alltoallv", -1, 4, rows)
    (100, 400, 400)
    >>> rows = [{"calls": 8, "sent": 2 * 100, "received": 6 * 100}]
    >>> message_bytes("bcast", 7, 4, rows), message_bytes("barrier", 0, 4, rows)
    (100, 0)
    """
    calls = sum(int(row["calls"]) for row in rows)
    sent, received = (sum(int(row[name]) for row in rows) for name in ("sent", "received"))
    if bin == 0 or not calls:
        return 0
    if bin == -1:
        return round(max(sent, received) / calls)
    total = {
        # One of the ranks has the message, or it goes to all the others.
        "bcast": sent * size,
        "scatter": received,
        "alltoall": sent / size,
        "reduce_scatter_block": received,
    }.get(collective, sent)
    mean = min(max(round(float(total) / calls), 1 << (bin - 1)), (1 << bin) - 1)
    return mean - mean % 8 if collective in SUMMED and mean >= 8 else mean


def _blocks(
    connection: sqlite3.Connection,
    row: Mapping[str, Any],
    operation: str,
    bin: int,
    size: int,
    ranks: Sequence[int],
) -> tuple[tuple[int, int], ...]:
    """Return the bytes that each rank of a communicator sends and receives in a call."""
    cells = {
        cell["rank"]: cell for cell in map(dict, connection.execute(BYTES_SQL, (row["id"], operation, bin)))
    }
    if cells:
        none = {"calls": 0, "sent": 0, "received": 0}
        members = [cells.get(rank, none) for rank in ranks]
        return tuple(
            (round(cell["sent"] / max(1, cell["calls"])), round(cell["received"] / max(1, cell["calls"])))
            for cell in members
        )
    spreads = {
        part["counter"]: part
        for part in map(dict, connection.execute(SPREAD_SQL, (row["id"], operation, bin)))
    }
    calls = max(1.0, row["calls"] / row["communicators"] / size)
    sent, received = (
        spread_values(spreads.get(name), size, calls) for name in ("bytes_sent", "bytes_received")
    )
    return tuple(zip(sent, received))


def spread_values(spread: Mapping[str, Any] | None, size: int, calls: float) -> list[int]:
    """Return a value for each of `size` ranks, ascending, whose quantiles are those of a row of table spread.

    >>> spread_values({"min": 0, "p05": None, "p25": None, "p50": None, "p75": None, "p95": None, "max": 400}, 3, 2.0)
    [0, 100, 200]
    """
    if spread is None:
        return [0] * size
    known = [(share, spread[name]) for share, name in QUANTILES if spread[name] is not None]
    at = np.linspace(0, 1, size)
    values = np.interp(at, [share for share, _ in known], [value for _, value in known])
    return [round(float(value) / calls) for value in values]
