# SPDX-License-Identifier: Apache-2.0
"""Who keeps whom waiting: against a trace of all calls that the program writes itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness import TRIES, Mpi, commlens
from profile_rows import Profile

RANKS = 4
OPERATIONS = (
    *("barrier", "allreduce", "allgather", "allgatherv", "alltoall", "alltoallv", "reduce_scatter"),
    *("reduce_scatter_block", "bcast", "scatter", "reduce", "gather"),
)
ROOTED = {"MPI_Bcast", "MPI_Scatter", "MPI_Reduce", "MPI_Gather"}
CALLS, MICROSECONDS = 60, 3000
# A rank may lose its processor for some ms between its own look at the clock and that of commlens.
TOLERANCE = 0.1


@dataclass(frozen=True)
class Truth:
    """What the program's trace says about one procedure: times in ns, and how often each rank was or may have been last."""

    time: float
    waiting: float
    certainly_last: list[int]
    possibly_last: list[int]


def truths(stdout: str) -> dict[str, Truth]:
    """Read the lines of skew.c."""
    truth = {}
    for line in stdout.splitlines():
        name, time, waiting, *often = line.split()
        size = len(often) // 2
        certainly, possibly = [int(n) for n in often[:size]], [int(n) for n in often[size:]]
        truth[f"MPI_{name.capitalize()}"] = Truth(float(time), float(waiting), certainly, possibly)
    return truth


def waits(profile: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """Return the rows of the duplicate of MPI_COMM_WORLD by procedure."""
    done = commlens("waits", profile, "--comm", "d*", "--format", "json", *arguments)
    assert done.returncode == 0, done.stderr
    return {row["operation"]: row for row in json.loads(done.stdout)["waits"]}


def skewed(mpi: Mpi, *arguments: object, env: dict[str, str] | None = None) -> tuple[dict[str, Truth], Path]:
    """Run skew.c and return its trace and the profile."""
    result = mpi.run(RANKS, [mpi.compile("skew.c"), *map(str, arguments)], env=env, timeout=120)
    assert result.rc == 0, result
    if "COMMLENS_AGGREGATORS" not in (env or {}):
        result.open().check()
    return truths(result.stdout), result.profile


@pytest.mark.dealt
@pytest.mark.parametrize(
    "pattern", [("late", 2), ("rotate",), ("ladder",), ("root",), ("others",)], ids=lambda p: str(p[0])
)
def test_waiting_and_the_last_rank_are_those_of_a_trace(mpi: Mpi, pattern: tuple[object, ...]) -> None:
    """Every call is sampled, because there are few."""
    truth, profile = skewed(mpi, *pattern, CALLS, MICROSECONDS, *OPERATIONS)
    found = waits(profile)
    assert set(found) == set(truth)
    for operation, row in found.items():
        expected = truth[operation]
        assert row["samples"] == CALLS
        assert row["share_low"] == row["share_high"] == row["waiting_share"]
        assert row["waiting_ns"] == pytest.approx(expected.waiting, abs=TOLERANCE * expected.time), operation
        if operation in ROOTED:
            continue  # the trace counts calls in which nobody waited, too
        last = {one["rank"]: one["last"] for one in row["ranks"]}
        assert sum(last.values()) == CALLS
        seldom = TOLERANCE * CALLS
        for rank in range(RANKS):
            times = expected.certainly_last[rank] - seldom, expected.possibly_last[rank] + seldom
            assert times[0] <= last[rank] <= times[1], (operation, rank)


def test_a_rank_that_computes_longer_is_named_with_its_cause(mpi: Mpi) -> None:
    """Two ranks, so that each has a processor."""
    arguments = ["late", "1", str(CALLS), str(MICROSECONDS), "allreduce", "alltoall"]
    result = mpi.run(2, [mpi.compile("skew.c"), *arguments], timeout=120)
    assert result.rc == 0, result
    truth = truths(result.stdout)
    found = waits(result.profile)
    assert set(found) == set(truth) == {"MPI_Allreduce", "MPI_Alltoall"}
    for operation, row in found.items():
        expected = truth[operation]
        assert (row["pattern"], row["last_rank"], row["cause"]) == ("same", 1, "compute")
        assert row["late_ns"] == pytest.approx(
            expected.waiting / CALLS, abs=TOLERANCE * expected.time / CALLS
        )


def test_some_of_many_calls_stand_for_all(mpi: Mpi) -> None:
    calls = 12_000
    for _ in range(TRIES):
        result = mpi.run(2, [mpi.compile("skew.c"), "late", "1", str(calls), "20", "allreduce"], timeout=120)
        assert result.rc == 0, result
        truth, row = truths(result.stdout)["MPI_Allreduce"], waits(result.profile)["MPI_Allreduce"]
        assert calls / 8 < row["samples"] < calls / 2
        assert row["share_low"] < row["waiting_share"] < row["share_high"]
        if row["waiting_share"] == pytest.approx(truth.waiting / truth.time, abs=0.1):
            return
    pytest.fail(f"{row}, {truth}")


def test_several_aggregators_find_what_one_finds(mpi: Mpi) -> None:
    truth, profile = skewed(
        mpi, "late", 2, CALLS, MICROSECONDS, "allreduce", "bcast", "gather", env={"COMMLENS_AGGREGATORS": "3"}
    )
    found = waits(profile.with_suffix(".commlens"))
    assert set(found) == set(truth)
    for operation, row in found.items():
        assert row["samples"] == CALLS
        assert row["share_low"] == row["share_high"]
        assert [one["rank"] for one in row["ranks"]] == list(range(RANKS))
        assert row["waiting_ns"] == pytest.approx(
            truth[operation].waiting, abs=TOLERANCE * truth[operation].time
        )


def test_killed_ranks_leave_their_samples(mpi: Mpi) -> None:
    where = mpi.fresh("killed")
    (where / "arenas").mkdir()
    mpi.run(
        2,
        [mpi.compile("storage.c"), "work", "500", "kill"],
        {"COMMLENS_ARENA_DIR": str(where / "arenas")},
        cwd=where,
    )
    done = commlens("recover", "-o", where / "x.db", where / "arenas")
    assert done.returncode == 0, done.stderr
    profile = Profile(where / "x.db")
    profile.check_waiting()
    rows = profile.rows(
        "SELECT samples, collectives FROM sampled JOIN op ON op.id = op WHERE name = 'MPI_Allreduce'"
    )
    assert rows == [{"samples": 500, "collectives": 500}]


def test_a_rank_that_pauses_takes_no_samples_and_the_numbers_go_on(mpi: Mpi) -> None:
    """Rank 1 pauses for 30 of 100 barriers: these cannot be split, the others are not mixed up."""
    result = mpi.run(2, [mpi.compile("pauses.c")], timeout=60)
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    assert profile.rows("SELECT samples FROM sampled JOIN op ON op.id = op WHERE name = 'MPI_Barrier'") == [
        {"samples": 70}
    ]
    assert profile.rows(
        "SELECT reason, calls FROM unsplit JOIN op ON op.id = op WHERE name = 'MPI_Barrier'"
    ) == [{"reason": "members", "calls": 30}]


def test_threads_with_communicators_of_their_own_keep_their_numbers(mpi: Mpi) -> None:
    result = mpi.run(3, [mpi.compile("comms_threads.c")], timeout=120)
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    if "no MPI_THREAD_MULTIPLE" in result.stdout:
        pytest.skip("this MPI library has no MPI_THREAD_MULTIPLE")
    assert profile.rows("SELECT reason FROM unsplit WHERE reason = 'order'") == []
    assert profile.rows("SELECT SUM(samples) AS n FROM sampled")[0]["n"] > 100


def test_without_samples_it_says_so(mpi: Mpi) -> None:
    result = mpi.run(2, [mpi.compile("skew.c"), "none", "10", "0", "barrier"], env={"COMMLENS_WAITING": "0"})
    profile = result.open()
    profile.check()
    assert profile.rows("SELECT * FROM waiting") == profile.rows("SELECT * FROM sampled") == []
    done = commlens("waits", result.profile)
    assert (done.returncode, done.stdout.startswith("no sampled calls")) == (0, True), done.stdout
