# SPDX-License-Identifier: Apache-2.0
"""Who keeps whom waiting for messages: against a trace of all messages that the program writes itself."""

from __future__ import annotations

import pytest
from harness import TRIES, Mpi
from traces import MICROSECONDS, STEPS, check, read, run

PROGRAM = "late_messages.c"
CASES = (
    *("recv", "any", "irecv", "waitany", "halo", "sendrecv", "pipeline", "pingpong", "persistent", "ssend"),
    *("rendezvous", "tags", "figure14", "figure14 barrier"),
)


@pytest.mark.dealt
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("case", CASES)
def test_waiting_and_the_late_rank_are_those_of_a_trace(mpi: Mpi, case: str, ranks: int) -> None:
    """Every message is sampled, because there are few."""
    truth, profile = run(mpi, PROGRAM, ranks, case)
    found = read(profile)
    assert set(found.rows) == set(truth)
    for operation, row in found.rows.items():
        assert row["share_low"] == row["share_high"] == row["waiting_share"]
        check(truth[operation], row)


def test_a_barrier_before_the_message_takes_its_waiting(mpi: Mpi) -> None:
    """The receiver is late: its partner waits in the send, or in the barrier before."""
    without = read(run(mpi, PROGRAM, 2, "figure14")[1]).rows
    behind = read(run(mpi, PROGRAM, 2, "figure14 barrier")[1]).rows
    delays = STEPS * MICROSECONDS * 1000
    # Less than all of it if a rank loses its processor.
    assert without["MPI_Send"]["waiting_ns"] > 0.3 * delays
    assert behind["MPI_Barrier"]["waiting_ns"] > 0.3 * delays
    assert behind["MPI_Send"]["waiting_ns"] < 0.5 * behind["MPI_Barrier"]["waiting_ns"]


def test_matched_probes_do_not_mix_up_messages(mpi: Mpi) -> None:
    """The trace has the waiting of the probe, which is no call of a message; that of the send is comparable."""
    truth, profile = run(mpi, PROGRAM, 2, "mprobe")
    rows = read(profile).rows
    assert rows.keys() == {"MPI_Send", "MPI_Mrecv"}
    check(truth["MPI_Send"], rows["MPI_Send"])


def test_messages_of_several_threads_are_not_split(mpi: Mpi) -> None:
    """Two threads use the same communicator and tag: which of them gets a message is open."""
    _, profile = run(mpi, PROGRAM, 2, "threads")
    found = read(profile)
    assert found.rows == {}
    unsplit = {row["operation"] for row in found.unsplit if row["reason"] == "threads" and row["calls"] > 0}
    assert unsplit == {"MPI_Send", "MPI_Recv"}


def test_some_of_many_messages_stand_for_all(mpi: Mpi) -> None:
    steps = 100_000  # of two messages each
    for _ in range(TRIES):
        truth, profile = run(mpi, PROGRAM, 2, "pingpong", steps, 1)
        expected, row = truth["MPI_Recv"], read(profile).rows["MPI_Recv"]
        assert 0 < row["samples"] < 2 * steps
        assert row["share_low"] < row["waiting_share"] < row["share_high"]
        # One of twenty intervals of 95 % misses the truth, so that this one is made three times as wide: that is six standard
        # errors.  The two look at the clock some 100 ns apart, of about 60 us.
        margin = 0.01 + row["share_high"] - row["share_low"]
        if row["share_low"] - margin <= expected.waiting / expected.time <= row["share_high"] + margin:
            return
    pytest.fail(f"{row}, {expected}")


def test_several_aggregators_find_what_one_finds(mpi: Mpi) -> None:
    truth, profile = run(mpi, PROGRAM, 4, "recv", env={"COMMLENS_AGGREGATORS": "3"})
    found = read(profile.with_suffix(".commlens"))
    assert set(found.rows) == set(truth)
    for operation, row in found.rows.items():
        check(truth[operation], row)
    assert [one["rank"] for one in found.rows["MPI_Recv"]["ranks"] if one["late_ns"] > 0] == [0]


def test_without_the_matrix_no_message_is_split(mpi: Mpi) -> None:
    """Samples of messages need the peers of the calls."""
    _, profile = run(mpi, PROGRAM, 2, "recv", env={"COMMLENS_MATRIX": "off"})
    assert read(profile).rows == {}
