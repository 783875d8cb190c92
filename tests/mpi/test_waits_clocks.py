# SPDX-License-Identifier: Apache-2.0
"""Who keeps whom waiting on several hosts whose clocks differ: against a trace by a clock that they share."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from build_once import build_once
from harness import PROGRAMS, Mpi, commlens
from hosts import Hosts, run_on
from profile_rows import Profile
from test_waits import RANKS, TOLERANCE, Truth, truths, waits

OPERATIONS = ("allreduce", "bcast", "scatter", "reduce", "gather", "barrier")
CALLS, MICROSECONDS = 40, 10_000
"""Four ranks that share two processors leave a call milliseconds apart when the machine is busy."""
WAITED = {
    "root": ("MPI_Bcast", "MPI_Scatter"),
    "others": ("MPI_Reduce", "MPI_Gather"),
    "late": ("MPI_Reduce", "MPI_Gather"),
}
"""The collectives with a root that take longer than the clocks may be wrong, by who is late."""


def skewed(mpi: Mpi, *arguments: object, **settings: str) -> tuple[dict[str, Truth], Path]:
    """Run skew.c on four hosts whose clocks differ; return its trace and the profile."""
    hosts = Hosts(mpi.fresh("several"), RANKS, 1, without_tsc=True)
    shifted = mpi.programs / "shifted_clock.so"
    build_once(shifted, ["cc", "-O2", "-shared", "-fPIC", str(PROGRAMS / "shifted_clock.c")])
    command: list[str | Path] = [mpi.compile("skew.c"), *map(str, arguments)]
    result = run_on(mpi, hosts, *command, everywhere=settings, preload=[shifted])
    assert result.rc == 0, result
    return truths(result.stdout), result.profile


@pytest.mark.parametrize("pattern", [("root",), ("others",), ("late", 2)], ids=lambda p: str(p[0]))
def test_clocks_that_differ_by_seconds_and_drift_are_related(mpi: Mpi, pattern: tuple[object, ...]) -> None:
    truth, path = skewed(mpi, *pattern, CALLS, MICROSECONDS, *OPERATIONS, SHIFTED_PPM="100")
    profile = Profile(path)
    profile.check_waiting()
    clocks = profile.rows("SELECT rank, calls, drift_ppm, error_ns, excess_ns FROM clock ORDER BY rank")
    assert [clock["rank"] for clock in clocks] == [0, 1, 2, 3]
    assert (clocks[0]["calls"], clocks[0]["error_ns"]) == (0, 0)
    for rank, clock in enumerate(clocks[1:], 1):
        assert clock["calls"] == 2 * CALLS
        assert clock["error_ns"] < MICROSECONDS * 1000, "more than the ranks are late, which nobody can use"
        # The shift itself is in no table: it would show as waiting of a second.
        length = 2 * CALLS * MICROSECONDS * 1000  # ns, at least, between the first bound and the last
        assert clock["drift_ppm"] == pytest.approx(-100 * rank, abs=2e6 * clock["error_ns"] / length + 5)
    for operation in ("MPI_Allreduce", "MPI_Barrier", *WAITED[str(pattern[0])]):
        check_waiting(profile, operation, truth[operation], max(one["error_ns"] for one in clocks))


def check_waiting(profile: Profile, operation: str, truth: Truth, error_ns: int) -> None:
    """Assert that the waiting on the duplicate of MPI_COMM_WORLD is that of the trace, but for the errors of the clocks."""
    of_duplicate = f"JOIN op ON op.id = op JOIN comm ON comm.id = comm WHERE op.name = '{operation}' AND comm.name LIKE 'd%'"
    (split,) = profile.rows(
        f"SELECT samples, across, by_clock, waiting_ns, clock_ns FROM sampled {of_duplicate}"
    )
    unsplit = profile.rows(f"SELECT reason, calls FROM unsplit {of_duplicate}")
    assert split["across"] == split["samples"]
    # Calls that took less time than the error of the clocks, for example because the root itself came late.
    assert {row["reason"] for row in unsplit} <= {"machines"}
    short = sum(row["calls"] for row in unsplit)
    assert split["samples"] + short == CALLS
    by_stay = split["samples"] - split["by_clock"]
    assert by_stay in (0, CALLS), "collectives with a root need clocks, others do not"
    error = split["clock_ns"] + 4 * RANKS * error_ns * by_stay + 2 * RANKS * error_ns * short
    assert split["waiting_ns"] == pytest.approx(truth.waiting, abs=TOLERANCE * truth.time + error), operation


def test_a_clock_that_jumps_is_noticed_and_nothing_is_claimed_by_it(mpi: Mpi) -> None:
    _, path = skewed(mpi, "root", CALLS, MICROSECONDS, "allreduce", "bcast", "barrier", SHIFTED_JUMP="0.25")
    profile = Profile(path)
    jumped = profile.column("SELECT rank FROM clock WHERE excess_ns > 100000000")
    assert jumped == [1]
    # By how long the members stay.
    found = waits(path)
    assert {found[name]["samples"] for name in ("MPI_Allreduce", "MPI_Barrier")} == {CALLS}
    broadcasts = (
        "SELECT SUM(s.samples) AS n FROM sampled AS s JOIN op ON op.id = s.op WHERE op.name = 'MPI_Bcast'"
    )
    assert (profile.rows(broadcasts)[0]["n"] or 0) <= 1  # the one in which the clock jumped took a second
    unsplit = json.loads(commlens("waits", path, "--op", "Bcast", "--format", "json").stdout)["unsplit"]
    assert [row["reason"] for row in unsplit] == ["machines"]
    said = commlens("waits", path).stdout
    assert re.search(r"The clock of rank 1 on h2p\d+ jumped or changed its rate", " ".join(said.split()))
