# SPDX-License-Identifier: Apache-2.0
"""Who keeps whom waiting where processes and communicators come and go."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from harness import Mpi
from profile_rows import Profile
from test_sessions import NO_SESSIONS

CALLS, COMMUNICATORS, CALLS_EACH = 40, 100, 4
LATE_NS = 2_000_000
ALL_OF = 64
"""Of so many communicators of one line all are sampled."""

SPLIT = """
SELECT comm.name, comm.size, SUM(samples) AS samples, SUM(collectives) AS collectives, SUM(late_ns) AS late_ns
  FROM sampled JOIN comm ON comm.id = sampled.comm JOIN op ON op.id = sampled.op
 WHERE op.name = 'MPI_Barrier' GROUP BY comm.family ORDER BY comm.family"""


def run(mpi: Mpi, *arguments: str) -> Profile:
    """Run late_everywhere.c."""
    result = mpi.run(2, [mpi.compile("late_everywhere.c"), *arguments], timeout=120)
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    return profile


def check_late(rows: Sequence[dict[str, object]], calls: int) -> None:
    """Assert that one row has all calls, for each of which rank 0 was awaited.

    Rank 0 comes 2 ms late each time. Rank 1 waits for less than that if it had no processor when the call before ended.
    """
    (row,) = rows
    assert (row["samples"], row["collectives"]) == (calls, calls)
    assert isinstance(row["late_ns"], int)
    assert row["late_ns"] >= calls * LATE_NS * 0.25


def test_children_leave_the_numbers_of_the_calls_alone(mpi: Mpi) -> None:
    profile = run(mpi, "fork")
    check_late(profile.rows(SPLIT), CALLS)


def test_communicators_of_sessions_have_samples(mpi: Mpi) -> None:
    result = mpi.run(2, [mpi.compile("sessions.c"), "only"])
    if result.rc == NO_SESSIONS:
        pytest.skip("this MPI library has no sessions")
    profile = result.open()
    profile.check()
    samples = profile.column("SELECT samples FROM sampled WHERE samples = collectives ORDER BY samples")
    assert samples == [3, 5]


def test_freed_communicators_keep_their_samples(mpi: Mpi) -> None:
    profile = run(mpi, "freed")
    (row,) = profile.rows(SPLIT)
    assert isinstance(row["samples"], int)
    assert ALL_OF * CALLS_EACH <= row["samples"] <= COMMUNICATORS * CALLS_EACH
    assert isinstance(row["late_ns"], int)
    assert row["late_ns"] >= row["samples"] * LATE_NS * 0.25
    per_comm = profile.column(
        "SELECT DISTINCT samples FROM sampled JOIN op ON op.id = op WHERE name = 'MPI_Barrier'"
    )
    assert per_comm == [CALLS_EACH]


def test_the_samples_grow_with_the_logarithm_of_the_communicators(mpi: Mpi) -> None:
    number = 10_000
    profile = run(mpi, "many", str(number))
    (row,) = profile.rows("SELECT COUNT(*) AS n FROM sampled")
    assert isinstance(row["n"], int)
    assert ALL_OF <= row["n"] <= ALL_OF * (1 + math.log2(number / ALL_OF))
