# SPDX-License-Identifier: Apache-2.0
"""What the program of the self-test does, as numbers: computed from the number of processes, not from a profile.

docs/bytes.md has the rules for bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

MESSAGES, MESSAGE, SUMS, BROADCASTS, NUMBERS, DUPLICATES, GATHERS, LATER_SUMS = (
    20,
    1000,
    30,
    25,
    256,
    10,
    5,
    7,
)
"""As in selftest.c."""
REGION, PART = "ring", "self-test part"
WORLD, EVEN, ODD, DUPLICATE = "MPI_COMM_WORLD", "even ranks", "odd ranks", "duplicates"
PROCEDURES = (
    *("MPI_Isend", "MPI_Recv", "MPI_Allreduce", "MPI_Iallreduce", "MPI_Bcast", "MPI_Barrier", "MPI_Gather"),
    *("MPI_Reduce", "MPI_Wait", "MPI_Comm_split"),
)
"""Those whose calls are compared; their counts are exact, whatever else the MPI library or mpi4py calls."""


class Row(NamedTuple):
    """What one process did in one communicator by one procedure with messages of one size."""

    comm: str
    procedure: str
    size: int  # bytes of the call's block
    rank: int
    calls: int
    sent: int  # bytes
    received: int


def rows(processes: int) -> Iterator[Row]:
    """Yield all rows of a whole run."""
    for rank in range(processes):
        yield from ring(rank)
        yield Row(WORLD, "MPI_Allreduce", 4, rank, SUMS, 4 * SUMS, 4 * SUMS)
        yield Row(WORLD, "MPI_Iallreduce", 8, rank, LATER_SUMS, 8 * LATER_SUMS, 8 * LATER_SUMS)
        yield Row(WORLD, "MPI_Wait", 0, rank, MESSAGES + LATER_SUMS, 0, 0)
        yield Row(WORLD, "MPI_Comm_split", 0, rank, 1, 0, 0)
        broadcast = 8 * NUMBERS * BROADCASTS
        yield Row(
            ODD if rank % 2 else EVEN,
            "MPI_Bcast",
            8 * NUMBERS,
            rank,
            BROADCASTS,
            broadcast if rank < 2 else 0,
            0 if rank < 2 else broadcast,
        )
        yield Row(DUPLICATE, "MPI_Barrier", 0, rank, DUPLICATES, 0, 0)
        is_root = rank == processes - 1
        yield Row(
            WORLD, "MPI_Gather", 12, rank, GATHERS, 12 * GATHERS, 12 * GATHERS * processes if is_root else 0
        )
        yield Row(WORLD, "MPI_Reduce", 16, rank, 1, 16, 16 if rank == 0 else 0)


def ring(rank: int) -> Iterator[Row]:
    """Yield the rows of the ring but for MPI_Wait: all that a run has done which is killed after it."""
    yield Row(WORLD, "MPI_Isend", MESSAGE, rank, MESSAGES, MESSAGE * MESSAGES, 0)
    yield Row(WORLD, "MPI_Recv", MESSAGE, rank, MESSAGES, 0, MESSAGE * MESSAGES)


def members(processes: int) -> dict[str, tuple[int, list[int]]]:
    """Return how many communicators there are of each kind, and their world ranks."""
    everyone = list(range(processes))
    parts = {EVEN: (1, everyone[::2]), ODD: (1, everyone[1::2])}
    return {
        WORLD: (1, everyone),
        **{name: part for name, part in parts.items() if part[1]},
        DUPLICATE: (DUPLICATES, everyone),
    }


def ring_messages(processes: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Return messages and bytes from each source to each destination of point-to-point messages."""
    return {(rank, (rank + 1) % processes): (MESSAGES, MESSAGES * MESSAGE) for rank in range(processes)}


def bin_of(size: int) -> int:
    """Return the bin of a message size, as in table key.

    >>> [bin_of(size) for size in (0, 1, 4, 1000, 2048)]
    [0, 1, 3, 10, 12]
    """
    return size.bit_length()
