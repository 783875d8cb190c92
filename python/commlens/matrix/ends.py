# SPDX-License-Identifier: Apache-2.0
"""Compares the counts of sender and receiver of two-sided traffic."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from commlens.base.arrays import ints
from commlens.matrix.query import Matrix, Traffic

EXAMPLES = 3

# With MPICH, the status of these requests does not contain the bytes received.
UNREPORTED = ("MPI_Isendrecv", "MPI_Isendrecv_replace")
UNREPORTED_SQL = f"""\
SELECT DISTINCT cell.rank FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op
 WHERE op.name IN {UNREPORTED}"""


@dataclass(frozen=True)
class Difference:
    """A pair on a communicator for which sender and receiver counted different values."""

    comm: int
    communicator: str
    source: int
    destination: int
    messages_sent: int
    messages_received: int
    bytes_sent: int
    bytes_received: int
    reason: str = ""


@dataclass
class Ends:
    """Comparison of senders and receivers.

    Attributes
    ----------
    equal : int
        Pairs on a communicator for which both counted the same.
    left_out : int
        Pairs that cannot be compared, because one process counts in blocks of peers.
    differences : list of Difference
        All others.
    """

    equal: int
    left_out: int
    differences: list[Difference]

    def by_reason(self) -> dict[str, list[Difference]]:
        """Return the differences by their likely reason, the most common first."""
        found: dict[str, list[Difference]] = defaultdict(list)
        for difference in self.differences:
            found[difference.reason].append(difference)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def as_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "equal": self.equal,
            "left_out": self.left_out,
            "differences": [asdict(difference) for difference in self.differences],
        }


def compare_ends(connection: sqlite3.Connection, matrix: Matrix) -> Ends:
    """Compare sent with received counts, pair by pair on each communicator."""
    equal, left_out = 0, 0
    differences: list[Difference] = []
    unreported: set[int] | None = None
    nobody = Traffic()
    for comm in sorted({comm for comm, flow in matrix.traffic if flow in ("sent", "received")}):
        sent = matrix.traffic.get((comm, "sent"), nobody)
        received = matrix.traffic.get((comm, "received"), nobody)
        table, in_blocks = side_by_side(sent, received, matrix.ranks)
        left_out += int(in_blocks.sum())
        same = (table[2] == table[3]) & (table[4] == table[5])
        equal += int((same & ~in_blocks).sum())
        for row in table[:, ~same & ~in_blocks].T.tolist():
            if unreported is None:
                unreported = ranks_with_unreported(connection)
            name = matrix.comms[comm].name if comm in matrix.comms else ""
            difference = Difference(comm, name, *row)
            differences.append(replace(difference, reason=reason(matrix, unreported, difference)))
    return Ends(equal, left_out, differences)


def side_by_side(sent: Traffic, received: Traffic, size: int) -> tuple[Any, Any]:
    """Return source, destination, sent and received messages and bytes of each pair, and whether it is in a block."""
    codes = np.union1d(sent.pairs.codes(size), received.pairs.codes(size))
    columns = [codes // max(size, 1), codes % max(size, 1)]
    for what in ("messages", "bytes"):
        for side in (sent.pairs, received.pairs):
            column = np.zeros(len(codes), dtype=np.int64)
            column[np.searchsorted(codes, side.codes(size))] = side.values(what)
            columns.append(column)
    source, destination = columns[:2]
    in_blocks = np.isin(source, ints(sent.in_blocks)) | np.isin(destination, ints(received.in_blocks))
    return np.stack(columns), in_blocks


def ranks_with_unreported(connection: sqlite3.Connection) -> set[int]:
    """Return the ranks for which MPI does not report all received messages."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'mpi_family'").fetchone()
    if not row or row[0] == "openmpi":
        return set()
    return {rank for (rank,) in connection.execute(UNREPORTED_SQL)}


def reason(matrix: Matrix, unreported: set[int], difference: Difference) -> str:
    """Return the probable reason for a difference; reasons are tried from the most certain on."""
    ends = (difference.source, difference.destination)
    for rank in ends:
        if rank not in matrix.states:
            return f"rank {rank} is not in this profile"
    for rank in ends:
        if matrix.states[rank] != "finalized":
            return f"rank {rank} did not reach MPI_Finalize: {matrix.states[rank]}"
    is_short = difference.messages_received < difference.messages_sent
    if is_short or difference.bytes_received < difference.bytes_sent:
        if difference.destination in unreported:
            return f"{UNREPORTED[0]}: this MPI library does not report what arrived"
        return (
            "not received: the receive was cancelled or its request never completed, or the receiver paused counting or "
            "cleared its counters"
        )
    return "received, but not counted as sent: the sender paused counting or cleared its counters"
