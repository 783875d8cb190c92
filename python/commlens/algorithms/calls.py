# SPDX-License-Identifier: Apache-2.0
"""Reads the collective calls of a profile: their number, bytes and ranks."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import numpy as np

from commlens.algorithms.registry import COLLECTIVES, ROOTED, UNEVEN
from commlens.algorithms.schedule import Integers
from commlens.profile.meta import facts, number
from commlens.selection.conditions import comm_conditions, where
from commlens.selection.members import Comm, comm_of

VARIES = -1
"""Bin of calls whose blocks differ in size."""
PERSISTENT = "_init"

COMMS_SQL = """\
SELECT id, name, kind, creator, size, remote_size, communicators, members, topology, family FROM comm ORDER BY id"""


@dataclass(frozen=True)
class CommFacts:
    """A communicator: its name, family and, if known, members."""

    id: int
    name: str
    family: int
    size: int
    comm: Comm
    why: str
    """Reason why its messages cannot be modelled, or the empty text."""

    @property
    def members(self) -> Integers:
        """World ranks in the order of its ranks; empty if unknown."""
        return self.comm.members


@dataclass(frozen=True)
class Calls:
    """The calls of one procedure on one communicator that have one size bin.

    Attributes
    ----------
    bins : size bins, as key.bin; more than one if the messages of calls of several sizes cannot be separated
    calls : of the rank with most, so that a collective counts once; of a persistent form, requests instead of starts
    rank_calls : of all ranks together, as in a report
    sent, received : bytes of all calls, by rank of the communicator
    shares : of all calls, the bytes from each rank to each, row by row; None if the profile has no sizes
    starts : of a persistent form, the number of starts; None if unknown, as for requests of several sizes
    """

    where: CommFacts
    procedure: str
    collective: str
    bins: tuple[int, ...]
    calls: int
    rank_calls: int
    sent: Integers
    received: Integers
    shares: Integers | None = None
    starts: int | None = None

    @property
    def is_persistent(self) -> bool:
        """Whether calls only create a request, whose start sends the messages."""
        return self.procedure.endswith(PERSISTENT)

    @property
    def sizes(self) -> tuple[int, int] | None:
        """Minimum and maximum number of bytes of a call, both inclusive; None if the profile has no sizes."""
        if min(self.bins) < 0:
            return None
        least, most = min(self.bins), max(self.bins)
        return (1 << (least - 1) if least else 0), (1 << most) - 1

    def mean(self, calls: int) -> int | Integers | None:
        """Return the bytes of a call as `schedule.Call.block` counts them, under the assumption that all calls are equal."""
        if self.collective in UNEVEN:
            return self._mean_parts(calls)
        sizes = self.sizes
        if sizes is None or len(self.bins) > 1 or calls < 1:
            return None
        if sizes[0] == sizes[1]:
            return sizes[0]
        size = self.where.size
        total, times = {
            "bcast": (self.sent, calls),
            "scatter": (self.received, size * calls),
            "reduce_scatter_block": (self.received, size * calls),
            "alltoall": (self.sent, size * size * calls),
        }.get(self.collective, (self.sent, size * calls))
        if self.collective != "bcast" and len(total) and (total != total[0]).any():
            return None
        block, rest = divmod(int(total.sum()), times)
        return block if not rest and sizes[0] <= block <= sizes[1] else None

    def _mean_parts(self, calls: int) -> int | Integers | None:
        """Return the same for calls whose parts may differ in size."""
        if self.collective in ("alltoallv", "alltoallw"):
            parts = self.shares
        else:
            parts = self.received if self.collective in ("scatterv", "reduce_scatter") else self.sent
        if parts is None or calls < 1 or (parts % calls).any():
            return None
        each: Integers = parts // calls
        return each if (each != each[0]).any() else int(each[0])

    @property
    def at_root(self) -> Integers | None:
        """Bytes that only the root of a call sends or receives, by rank; None for collectives without root or bytes."""
        if self.collective not in ROOTED:
            return None
        bytes = self.sent if self.collective in ("bcast", "scatter", "scatterv") else self.received
        return bytes if bytes.any() else None

    def merged(self, others: Sequence[Calls]) -> Calls:
        """Return the sum of these calls and other calls of the same procedure and communicator."""
        every = (self, *others)
        return Calls(
            self.where,
            self.procedure,
            self.collective,
            tuple(sorted(bin for one in every for bin in one.bins)),
            sum(one.calls for one in every),
            sum(one.rank_calls for one in every),
            np.sum([one.sent for one in every], axis=0),
            np.sum([one.received for one in every], axis=0),
            self.shares,  # already includes all sizes
            None,
        )


def collective_of(procedure: str) -> str | None:
    """Return the collective of a procedure, blocking or not; None for procedures without algorithms.

    >>> collective_of("MPI_Iallreduce"), collective_of("MPI_Bcast_init"), collective_of("MPI_Send")
    ('allreduce', 'bcast', None)
    """
    name = procedure.lower().removeprefix("mpi_").removesuffix(PERSISTENT)
    return next((one for one in (name, name.removeprefix("i")) if one in COLLECTIVES), None)


def procedures(connection: sqlite3.Connection, operations: Sequence[str]) -> dict[int, tuple[str, str]]:
    """Return name and collective of each procedure that has algorithms, by id; only `operations` if it is not empty."""
    found = {}
    for id, name in connection.execute("SELECT id, name FROM op ORDER BY id"):
        collective = collective_of(name)
        if collective is not None and (not operations or name in operations):
            found[int(id)] = (str(name), collective)
    return found


def calls_sql(ops: Sequence[int], comms: Sequence[str]) -> str:
    """Return the statement for the calls of each communicator, procedure, size and rank."""
    return (
        "SELECT key.comm, key.op, key.bin, cell.rank, SUM(cell.calls), SUM(cell.bytes_sent), SUM(cell.bytes_received)\n"
        f"  FROM key JOIN cell ON cell.key = key.id\n WHERE {conditions('key', ops, comms)}\n"
        " GROUP BY key.comm, key.op, key.bin, cell.rank\n ORDER BY key.comm, key.op, key.bin"
    )


def conditions(table: str, ops: Sequence[int], comms: Sequence[str]) -> str:
    """Return the SQL condition that selects rows of these procedures and communicators."""
    condition = f"{table}.op IN ({', '.join(map(str, ops))})"
    if comms:
        condition += f" AND {table}.comm IN (SELECT id FROM comm{where(comm_conditions(comms))})"
    return condition


def rows_of(connection: sqlite3.Connection, sql: str, columns: int) -> Integers:
    """Return the rows of a statement whose columns are all integers."""
    cursor = connection.execute(sql)
    cursor.row_factory = None
    return np.fromiter(chain.from_iterable(cursor), dtype=np.int64).reshape(-1, columns)


_STARTS_SQL = """\
SELECT comm, op, has_root, MAX(starts), SUM(starts)
  FROM (SELECT comm, op, rank, flow.name <> 'all_to_all' AS has_root, SUM(messages) AS starts
          FROM peer JOIN flow ON flow.id = peer.flow
         WHERE flow.name IN ('one_to_all', 'all_to_one', 'all_to_all') AND op IN ({ops}) GROUP BY 1, 2, 3, 4)
 GROUP BY 1, 2, 3"""
_SHARES_SQL = """\
SELECT rank, COALESCE(peer, -1), SUM(messages), SUM(bytes) FROM peer JOIN flow ON flow.id = peer.flow
 WHERE flow.name = 'share' AND peer.comm = {comm} AND peer.op = {op} AND peers = 1 GROUP BY 1, 2"""


def read_comms(connection: sqlite3.Connection) -> dict[int, CommFacts]:
    """Return all communicators."""
    found = {}
    (highest,) = connection.execute("SELECT MAX(rank) FROM rank").fetchone()
    ranks = max(number(facts(connection), "ranks"), 0 if highest is None else highest + 1)
    for row in connection.execute(COMMS_SQL):
        if row["kind"] in ("intra", "inter"):
            comm = comm_of(row, ranks)
            found[comm.id] = CommFacts(
                comm.id, comm.name, row["family"], row["size"] or 0, comm, _why(row, comm)
            )
    return found


def _why(row: Any, comm: Comm) -> str:
    if row["kind"] == "inter":
        return "an intercommunicator"
    if row["communicators"] > 1:
        return "several communicators share one row of the profile (COMMLENS_COMMS)"
    return "" if comm.size else "the members of the communicator are unknown"


def read_calls(
    connection: sqlite3.Connection,
    sql: str,
    ops: dict[int, tuple[str, str]],
    comms: dict[int, CommFacts],
) -> list[Calls]:
    """Return the calls that a statement of `calls_sql` finds, on communicators of more than one rank."""
    table = rows_of(connection, sql, 7)
    started = _read_starts(connection, [id for id, (name, _) in ops.items() if name.endswith(PERSISTENT)])
    sizes = Counter((comm, op) for comm, op, _ in np.unique(table[:, :3], axis=0).tolist())
    starts = np.flatnonzero(np.any(table[1:, :3] != table[:-1, :3], axis=1)) + 1
    found = []
    for part in np.split(table, starts) if len(table) else []:
        comm, op, bin = (int(value) for value in part[0, :3])
        if comm not in comms or (comms[comm].size < 2 and comms[comm].why != "an intercommunicator"):
            continue
        where = comms[comm]
        sent, received = (
            by_rank(where.members, part[:, 3], part[:, column]) if not where.why else part[:, column]
            for column in (5, 6)
        )
        calls, rank_calls = int(part[:, 4].max()), int(part[:, 4].sum())
        shares = None
        if ops[op][1] in ("alltoallv", "alltoallw") and not where.why:
            shares = _shares(connection, where, op, sent)
        times = started.get((comm, op)) if sizes[comm, op] == 1 else None
        found.append(Calls(where, *ops[op], (bin,), calls, rank_calls, sent, received, shares, times))
    return found


def _read_starts(connection: sqlite3.Connection, ops: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return how often persistent requests were started, by communicator and procedure.

    The flows of collective shapes count a start: rooted collectives at the root, others on every rank.
    """
    found = {}
    for comm, op, has_root, most, total in connection.execute(
        _STARTS_SQL.format(ops=", ".join(map(str, ops)))
    ):
        found[comm, op] = total if has_root else most
    return found


def _shares(connection: sqlite3.Connection, where: CommFacts, op: int, sent: Integers) -> Integers | None:
    """Return the bytes of all calls of one procedure from each rank to each, row by row; None if some are unknown."""
    size = where.size
    rows = rows_of(connection, _SHARES_SQL.format(comm=where.id, op=op), 4)
    source, destination = ranks_of(where.members, rows[:, 0]), ranks_of(where.members, rows[:, 1])
    if len(rows) != size * (size - 1) or (source < 0).any() or (destination < 0).any():
        return None
    found = np.zeros((size, size), np.int64)
    times = np.zeros((size, size), np.int64)
    found[source, destination] = rows[:, 3]
    times[source, destination] = rows[:, 2]
    to_itself = sent - found.sum(axis=1)
    apart = ~np.eye(size, dtype=bool)
    if (to_itself < 0).any() or (times[apart] != times[0, -1]).any():
        return None
    np.fill_diagonal(found, to_itself)
    return found.reshape(-1)


def by_rank(members: Integers, world: Integers, values: Integers) -> Integers:
    """Return values of world ranks in the order of the ranks of a communicator; 0 for ranks without a value."""
    ranks = ranks_of(members, world)
    found = np.zeros(len(members), np.int64)
    found[ranks[ranks >= 0]] = values[ranks >= 0]
    return found


def ranks_of(members: Integers, world: Integers) -> Integers:
    """Return the ranks in a communicator of world ranks; -1 for non-members."""
    order = np.argsort(members, kind="stable")
    place = np.minimum(np.searchsorted(members[order], world), len(members) - 1)
    return np.where(members[order][place] == world, order[place], -1)


def by_procedure(calls: Sequence[Calls]) -> list[list[Calls]]:
    """Return the calls of each communicator and procedure, of all sizes."""
    return [list(group) for _, group in groupby(calls, key=lambda one: (one.where.id, one.procedure))]
