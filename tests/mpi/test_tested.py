# SPDX-License-Identifier: Apache-2.0
"""Requests that one call of MPI_Test completes; the oracle is the program, which counts its calls."""

from __future__ import annotations

import pytest
from harness import Mpi

RANKS = 2
ROUNDS, FAILING, BYTES = 2_000, 100, 3 * 4
FAILED = ROUNDS // FAILING
MADE = {"d0.1": ROUNDS // 2 - FAILED, "d0.2": ROUNDS // 2}
"""Messages of the communicators whose receives have room: odd rounds belong to the second one."""

SUMS = """
SELECT communicator, operation, rank, SUM(calls) AS calls, SUM(bytes_sent) AS sent, SUM(bytes_received) AS received
  FROM counter WHERE operation IN ('MPI_Test', 'MPI_Irecv', 'MPI_Isend') GROUP BY 1, 2, 3"""
ARRIVED = """
SELECT comm.name AS communicator, rank, peer, SUM(messages) AS messages, SUM(bytes) AS bytes
  FROM peer JOIN comm ON comm.id = peer.comm JOIN flow ON flow.id = flow
 WHERE flow.name = 'received' GROUP BY 1, 2, 3"""


@pytest.mark.parametrize("env", [{}, {"COMMLENS_FRAMES": "4"}, {"COMMLENS_CLOCK": "every"}], ids=str)
def test_calls_bytes_and_messages_are_those_of_the_program(mpi: Mpi, env: dict[str, str]) -> None:
    result = mpi.run(RANKS, [mpi.compile("tested.c")], env=env)
    assert result.rc == 0, result
    tested = {int(rank): [int(n) for n in counts] for rank, *counts in map(str.split, result.lines)}
    assert sorted(tested) == list(range(RANKS)), result  # the program found nothing wrong
    profile = result.open()
    profile.check()
    found = {
        (r["communicator"], r["operation"], r["rank"]): (r["calls"], r["sent"], r["received"])
        for r in profile.rows(SUMS)
    }
    for rank, counts in tested.items():
        for comm, calls in zip(("d0.1", "d0.2", "d0.3"), counts, strict=True):
            assert found[comm, "MPI_Test", rank] == (calls, 0, 0)
        for comm, made in MADE.items():
            assert found[comm, "MPI_Irecv", rank] == (made, 0, made * BYTES)
            assert found[comm, "MPI_Isend", rank] == (made, made * BYTES, 0)
        assert found["d0.3", "MPI_Irecv", rank] == (FAILED, 0, 0)
        assert found["d0.3", "MPI_Isend", rank] == (FAILED, FAILED * BYTES, 0)
    arrived = {(r["communicator"], r["rank"]): r for r in profile.rows(ARRIVED)}
    for comm, made in MADE.items():
        for rank in range(RANKS):
            row = arrived[comm, rank]
            assert (row["peer"], row["messages"], row["bytes"]) == (1 - rank, made, made * BYTES)
