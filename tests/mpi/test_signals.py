# SPDX-License-Identifier: Apache-2.0
"""Signals that come while MPI works, and while the profile is written: nobody notices that we are there."""

from __future__ import annotations

import pytest
from harness import Mpi

BOTH = {0: 1, 1: 1}


def test_timers_interrupt_everything_up_to_the_end_of_finalize(mpi: Mpi) -> None:
    """SIGALRM without SA_RESTART and SIGPROF with it, a few thousand times a second."""
    plain, under = mpi.pair(2, [mpi.compile("signals.c"), "timers"], timeout=120)
    assert (under.rc, under.lines) == (plain.rc, plain.lines)
    assert plain.lines == [f"rank {rank}: 600 255, alarms 1" for rank in (0, 1)]
    assert len(under.said) == 1, under.said
    profile = under.open()
    profile.check()
    assert profile.calls("MPI_Allreduce") == {"W0.0": {0: 300, 1: 300}}
    assert profile.total("MPI_Irecv") == (600, 0, 600 * 20000)
    assert profile.calls("MPI_Barrier", "d%") == {f"d0.{n}": BOTH for n in range(1, 301)}
    assert profile.total("MPI_File_write_at") == (2, 2048, 0)


def test_signals_to_a_rank_that_waits(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("signals.c"), "blocked"])
    assert (under.rc, under.lines) == (plain.rc, plain.lines) == (0, ["got 42, signals 1"])
    profile = under.open()
    profile.check()
    assert profile.calls("MPI_Recv") == {"W0.0": BOTH}


def test_a_signal_that_ends_a_rank(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("signals.c"), "ended"])
    assert plain.rc != 0
    assert under.rc in mpi.codes(plain.rc)
    assert "worked" in under.lines
    assert not under.profile.exists()


@pytest.mark.parametrize("mode", ["run", "preload"])
def test_mask_stack_and_actions_stay_the_applications(mpi: Mpi, mode: str) -> None:
    program = mpi.compile("signals.c")
    plain = mpi.run(2, [program, "state"], mode="off")
    under = mpi.run(2, [program, "state"], mode=mode)
    assert (under.rc, under.lines) == (plain.rc, plain.lines)
    assert plain.lines == [f"rank {rank}: blocked 2, stack 65536, handled 2" for rank in (0, 1)]
    under.open().check()
