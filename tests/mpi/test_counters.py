# SPDX-License-Identifier: Apache-2.0
"""Hardware counters and software events (COMMLENS_COUNTERS), with the events that every Linux kernel counts."""

from __future__ import annotations

import ctypes.util
import json
from collections import defaultdict
from pathlib import Path

import pytest
from harness import LINK, ROOT, Mpi
from profile_rows import Profile
from test_survive import commlens

RANKS = 3
COUNTERS = {"COMMLENS_COUNTERS": "page-faults,context-switches,task-clock"}
LIBRARY = ctypes.util.find_library("pfm") is not None
Counts = dict[tuple[str, int, str, str | None], int]
"""Counts by event, rank, region and procedure."""


def program(mpi: Mpi) -> Path:
    """Return programs/counters.c."""
    return mpi.compile("counters.c", "c", *LINK, flags=(f"-I{ROOT / 'include'}",))


def counts_of(profile: Profile) -> Counts:
    """Return the counts; the kernel counts these events all the time."""
    counts: Counts = defaultdict(int)
    for row in profile.rows("SELECT * FROM event"):
        assert row["counted"] in (1.0, None), row
        assert row["events"] == row["count"], row
        counts[row["event"], row["rank"], row["path"], row["operation"]] += row["count"]
    return counts


def check(counts: Counts, spent: dict[int, int]) -> None:
    """Compare with what the program does. spent: the CPU time that it has read itself in region `work`, by rank."""
    for rank in range(RANKS):
        assert counts["page-faults", rank, "touch", None] >= 300
        for region in ("work", "sleep", "idle", "wait"):
            assert counts["page-faults", rank, region, None] < 100
        assert counts["page-faults", rank, "wait", "MPI_Comm_dup"] >= 200
        # A thread that sleeps gives its CPU away, unless its time is over before it has.
        assert counts["context-switches", rank, "sleep", None] >= 20
        # The kernel begins to count a little after it has given the thread a processor, each time.
        assert counts["task-clock", rank, "work", None] >= 0.99 * spent[rank]


@pytest.mark.dealt
def test_events_are_counted_by_region_and_procedure(mpi: Mpi) -> None:
    result = mpi.run(RANKS, [program(mpi)], env=COUNTERS)
    assert result.rc == 0, result
    assert len(result.said) == 1, result.said  # the name of the profile
    profile = result.open()
    profile.check()
    counts = counts_of(profile)
    spent = {int(rank): int(ns) for rank, ns in map(str.split, result.stdout.splitlines())}
    assert sorted(spent) == list(range(RANKS))
    check(counts, spent)
    # Of a procedure that a rank calls there is a row, also without any event.
    called = {(row["rank"], row["operation"]) for row in profile.rows("SELECT rank, operation FROM counter")}
    counted = {
        (row["rank"], row["operation"])
        for row in profile.rows("SELECT rank, operation FROM event WHERE event = 'task-clock'")
    }
    assert {(rank, name) for rank, name in counted if name} == called
    shown = json.loads(
        commlens("metrics", result.profile, "--counters", "--format", "json", cwd=result.profile.parent)
    )
    totals: dict[str, int] = defaultdict(int)
    for (event, *_), count in counts.items():
        totals[event] += count
    for event, total in totals.items():
        assert sum(row["count"] for row in shown if row["event"] == event) == total


@pytest.mark.dealt
def test_the_events_of_a_killed_job_are_recovered(mpi: Mpi) -> None:
    where = mpi.fresh("killed")
    env = {**COUNTERS, "COMMLENS_ARENA_DIR": str(where)}
    result = mpi.run(RANKS, [program(mpi), "killed"], env, profile=where / "x.db", cwd=where, once=True)
    assert result.rc != 0
    recovered = where / "recovered.db"
    commlens("recover", where, "-o", recovered, cwd=where)
    check(counts_of(Profile(recovered)), dict.fromkeys(range(RANKS), 1))


def test_without_the_option_and_in_a_summary_there_are_none(mpi: Mpi) -> None:
    for env in ({}, {**COUNTERS, "COMMLENS_DETAIL": "summary"}):
        assert counts_of(mpi.run(RANKS, [program(mpi)], env=env).open()) == {}


def test_what_is_refused_is_named_once_for_the_job(mpi: Mpi) -> None:
    result = mpi.run(RANKS, [program(mpi)], env={"COMMLENS_COUNTERS": "page-faults,nonsense,also-none"})
    assert result.rc == 0, result
    said = [line for line in result.said if "COMMLENS_COUNTERS" in line]
    reason = "no name of an event of this processor"
    if not LIBRARY:
        reason = "no name of an event; libpfm4, which knows more, is not installed"
    assert said == [
        f"commlens: rank 0 (and {RANKS - 1} more ranks): not counted of COMMLENS_COUNTERS: nonsense, also-none ({reason})"
    ]
    counts = counts_of(result.open())
    assert counts["page-faults", 0, "touch", None] >= 300
    assert {event for event, *_ in counts} == {"page-faults"}


def test_a_name_of_libpfm4_reaches_the_kernel(mpi: Mpi) -> None:
    """Of a processor whose events have names in libpfm4; whether this machine counts them is another question."""
    assert LIBRARY, "libpfm4 is missing: run `make setup`"
    event = "BR_MISP_RETIRED:ALL_BRANCHES"
    env = {"COMMLENS_COUNTERS": f"page-faults,{event}", "LIBPFM_FORCE_PMU": "skl"}
    result = mpi.run(RANKS, [program(mpi)], env=env)
    assert result.rc == 0, result
    said = " ".join(line for line in result.said if "COMMLENS_COUNTERS" in line)
    counts = counts_of(result.open())
    assert "page-faults" in {name for name, *_ in counts}
    if event in {name for name, *_ in counts}:
        assert not said
    else:
        assert event in said
        assert "no name" not in said
