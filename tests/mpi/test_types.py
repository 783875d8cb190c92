# SPDX-License-Identifier: Apache-2.0
"""Datatypes of every shape: their bytes, and the calls whose data does not lie in one block."""

from __future__ import annotations

import pytest
from harness import Mpi
from profile_rows import Profile

# The sends of programs/types.c: bytes, and whether they have holes.
SHAPES = [
    (16, 0),  # four integers
    (24, 0),  # contiguous
    (8, 1),  # a vector with a hole
    (48, 0),  # a vector without one
    (4, 0),  # one element of a type with a larger extent
    (8, 1),  # two of them
    (32, 0),  # whole rows of an array
    (16, 1),  # parts of its rows
    (5, 1),  # a struct with padding
    (24, 0),  # a struct without
    (0, 0),  # a type without bytes
    (0, 0),  # no elements
    (12, 1),  # downwards, with holes
    (12, 0),  # a lower bound below zero
    (12, 1),  # a negative extent
    (16, 1),  # indexed, with a hole
    (16, 0),  # a duplicate of MPI_DOUBLE
    (16, 1),  # one element of a type with holes inside
]
# Its other calls, on the communicator after those: calls on each rank, calls with a hole on rank 0 and on rank 1.
CALLS = {
    "MPI_Sendrecv": (3, 2, 2),
    "MPI_Gather": (1, 1, 0),
    "MPI_Scatter": (1, 1, 0),
    "MPI_Allgather": (1, 1, 1),
    "MPI_Bcast": (2, 1, 1),
    "MPI_Alltoallw": (2, 1, 1),
    "MPI_Irecv": (1, 1, 1),
    "MPI_Isend": (1, 1, 1),
    "MPI_Waitall": (1, 0, 0),
    "MPI_Put": (3, 2, 2),
    "MPI_Win_fence": (2, 0, 0),
}


@pytest.fixture(scope="module")
def profile(mpi: Mpi) -> Profile:
    """Run programs/types.c once for all tests here."""
    plain, under = mpi.pair(2, [mpi.compile("types.c")])
    mpi.skip_if_broken(plain)
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout) == (0, "types done\n"), under
    found = under.open()
    found.check()
    return found


def test_bytes_are_of_the_data_not_of_the_holes(profile: Profile) -> None:
    for n, (size, _) in enumerate(SHAPES, 1):
        for op, sent, received in (("MPI_Send", size, 0), ("MPI_Irecv", 0, size)):
            assert profile.total(op, f"d0.{n}") == (2, 2 * sent, 2 * received), f"type {n}"
    last = f"d0.{len(SHAPES) + 1}"
    assert profile.total("MPI_Sendrecv", last) == (6, 48, 48)
    assert profile.total("MPI_Gather", last) == (2, 16, 16)
    assert profile.total("MPI_Scatter", last) == (2, 16, 16)
    assert profile.total("MPI_Put", last) == (6, 48, 0)
    assert profile.total("MPI_File_write_at") == (2, 48, 0)
    assert profile.total("MPI_File_read_at") == (2, 0, 48)


def test_calls_with_holes_are_counted(profile: Profile) -> None:
    rows = profile.rows(
        "SELECT c.name AS comm, o.name AS op, x.rank, SUM(x.calls) AS calls, SUM(x.noncontiguous) AS holes "
        "FROM cell x JOIN key k ON k.id = x.key JOIN comm c ON c.id = k.comm JOIN op o ON o.id = k.op GROUP BY 1, 2, 3"
    )
    found = {(row["comm"], row["op"], row["rank"]): (row["calls"], row["holes"]) for row in rows}
    for rank in (0, 1):
        for n, (_, holes) in enumerate(SHAPES, 1):
            assert found[f"d0.{n}", "MPI_Send", rank] == (1, holes), f"type {n}"
            assert found[f"d0.{n}", "MPI_Irecv", rank] == (1, 0)
        for op, (calls, *holes_of) in CALLS.items():
            assert found[f"d0.{len(SHAPES) + 1}", op, rank] == (calls, holes_of[rank]), op
        assert found[f"S{rank}.0", "MPI_File_write_at", rank] == (1, 1)
        assert found[f"S{rank}.0", "MPI_File_read_at", rank] == (1, 0)
