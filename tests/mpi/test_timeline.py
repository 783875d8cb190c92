# SPDX-License-Identifier: Apache-2.0
"""The timeline of a real run shows its phases, and who was waited for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harness
import pytest
from harness import TRIES, Mpi


def commlens(*arguments: str | Path) -> str:
    """Run the command, which succeeds; return what it prints."""
    done = harness.commlens(*arguments)
    assert done.returncode == 0, done
    return done.stdout


def row_of_share(found: dict[str, Any], communicator: str, share: float) -> int:
    """Return the first row by which this share of the time in the communicator has passed."""
    times = [row for row in found["communicators"] if row["communicator"] == communicator]
    passed, whole = 0, sum(row["time_ns"] for row in times)
    for row in sorted(times, key=lambda row: int(row["row"])):
        passed += row["time_ns"]
        if passed >= share * whole:
            return int(row["row"])
    raise AssertionError(times)


def times_of_ranks(found: dict[str, Any], rows: range) -> dict[int, int]:
    """Return the time of each rank in these rows."""
    sums: dict[int, int] = {}
    for row in found["ranks"]:
        if row["row"] in rows:
            sums[row["rank"]] = sums.get(row["rank"], 0) + row["time_ns"]
    return sums


def shows_phases(found: dict[str, Any]) -> bool:
    """Return whether rank 0 waits least in the phase of the world, and the odd ranks in that of the halves."""
    # The phases need not take equally long: a busy machine may hold up one of them.
    end, begin = row_of_share(found, "W0.0", 0.9), row_of_share(found, "s*.1", 0.1)
    if not 0 < end <= begin:
        return False
    first = times_of_ranks(found, range(end))
    second = times_of_ranks(found, range(begin + 1, len(found["slices"])))
    is_rank_0_late = min(first, key=lambda rank: first[rank]) == 0
    return is_rank_0_late and min(second[0], second[2]) > 2 * max(second[1], second[3])


def test_phases_and_late_ranks_are_seen(mpi: Mpi) -> None:
    for _ in range(TRIES):
        result = mpi.run(4, [mpi.compile("phases.c")])
        assert (result.rc, result.stdout) == (0, "done\n"), result
        found = json.loads(commlens("timeline", result.profile, "--format", "json"))
        if shows_phases(found):
            break
    else:
        pytest.fail(str(found))
    profile = result.open()
    (total,) = profile.rows("SELECT SUM(calls) AS calls, SUM(mpi_ns) AS mpi_ns FROM rank")
    (table,) = profile.rows("SELECT COUNT(*) AS rows FROM slice")
    assert sum(row["calls"] for row in found["slices"]) == total["calls"]
    # Each row of the table is rounded to nanoseconds by itself.
    assert abs(sum(row["time_ns"] for row in found["slices"]) - total["mpi_ns"]) <= table["rows"]
    two = json.loads(commlens("timeline", result.profile, "--rows", "2", "--format", "json"))
    half = times_of_ranks(two, range(1))
    assert two["slices"][0]["least_rank"] == min(half, key=lambda rank: half[rank])
    assert "a cell is one rank for" in commlens("timeline", result.profile)
