# SPDX-License-Identifier: Apache-2.0
"""COMMLENS_WAITING=barrier: a barrier of commlens before each blocking collective, to check what samples estimate."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness import Mpi, commlens
from launches import Result

OPERATIONS = ("barrier", "allreduce", "alltoallv", "bcast", "scatter", "reduce", "gather", "scan")
CALLS, MICROSECONDS, LATE = 20, 10_000, 1
"""On a busy machine, the ranks that are not late enter half a millisecond late, too."""
BARRIER = {"COMMLENS_WAITING": "barrier"}


def skewed(mpi: Mpi, ranks: int, calls: int, microseconds: int, *operations: str, waiting: str) -> Result:
    """Run skew.c, in which rank LATE is late for each call."""
    arguments = ["late", str(LATE), str(calls), str(microseconds), *operations]
    result = mpi.run(
        ranks, [mpi.compile("skew.c"), *arguments], env={"COMMLENS_WAITING": waiting}, timeout=120
    )
    assert result.rc == 0, result
    return result


def waits(result: Result) -> dict[str, Any]:
    """Return what commlens waits says about the duplicate of MPI_COMM_WORLD."""
    done = commlens("waits", result.profile, "--comm", "d*", "--format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_all_wait_for_the_last_in_every_collective(mpi: Mpi) -> None:
    """Also in those in which nobody would, such as a broadcast whose root is early, and in prefix sums."""
    result = skewed(mpi, 3, CALLS, MICROSECONDS, *OPERATIONS, waiting="barrier")
    assert "COMMLENS_WAITING=barrier" in result.stderr
    found = waits(result)
    assert found["has_barriers"] and found["unsplit"] == []
    rows = {row["operation"].removeprefix("MPI_").lower(): row for row in found["waits"]}
    assert set(rows) == set(OPERATIONS)
    for operation, row in rows.items():
        assert (row["samples"], row["last_rank"], row["pattern"]) == (CALLS, LATE, "same"), operation
        assert row["share_low"] == row["share_high"] == row["waiting_share"]
        # Both others wait for the delay, less the time until they saw the end of the call before.  One alone would be half.
        assert row["waiting_ns"] > 0.6 * 2 * CALLS * MICROSECONDS * 1000, operation


def test_every_call_is_sampled_and_the_waiting_is_that_of_a_trace(mpi: Mpi) -> None:
    calls = 12_000  # of which an ordinary run samples some
    result = skewed(mpi, 2, calls, 20, "allreduce", waiting="barrier")
    (row,) = waits(result)["waits"]
    assert row["samples"] == calls
    assert row["share_low"] == row["share_high"]
    _, time, waiting, *_ = result.stdout.split()
    assert row["waiting_share"] == pytest.approx(float(waiting) / float(time), abs=0.1)


@pytest.mark.dealt
@pytest.mark.parametrize(
    "case", [("many", "3000"), ("split",), ("create_group",), ("inter",), ("dup",)], ids=lambda c: str(c[0])
)
def test_programs_with_many_kinds_of_communicators_run_as_before(mpi: Mpi, case: tuple[str, ...]) -> None:
    """MPI libraries have some thousand communicators at a time: those of commlens are freed with the program's."""
    result = mpi.run(4, [mpi.compile("comms.c"), *case], env=BARRIER, timeout=120)
    assert (result.rc, result.stdout) == (0, f"{case[0]} done\n"), result
    result.open().check()
