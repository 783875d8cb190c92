# SPDX-License-Identifier: Apache-2.0
"""The timeline of a real run shows its phases, and who was waited for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harness
from harness import Mpi


def commlens(*arguments: str | Path) -> str:
    """Run the command, which succeeds; return what it prints."""
    done = harness.commlens(*arguments)
    assert done.returncode == 0, done
    return done.stdout


def halves(found: dict[str, Any], title: str, key: str) -> list[dict[Any, int]]:
    """Return the time by communicator or rank in the first and in the second half of the rows."""
    sums: list[dict[Any, int]] = [{}, {}]
    for row in found[title]:
        of_half = sums[2 * row["row"] // len(found["slices"])]
        of_half[row[key]] = of_half.get(row[key], 0) + row["time_ns"]
    return sums


def test_phases_and_late_ranks_are_seen(mpi: Mpi) -> None:
    result = mpi.run(4, [mpi.compile("phases.c")])
    assert (result.rc, result.stdout) == (0, "done\n"), result
    found = json.loads(commlens("timeline", result.profile, "--format", "json"))
    world, half = halves(found, "communicators", "communicator")
    assert world["W0.0"] > 4 * world.get("s*.1", 0)
    assert half["s*.1"] > 4 * half.get("W0.0", 0)
    first, second = halves(found, "ranks", "rank")
    assert min(first, key=lambda rank: first[rank]) == 0
    assert min(second[0], second[2]) > 2 * max(second[1], second[3])
    profile = result.open()
    (total,) = profile.rows("SELECT SUM(calls) AS calls, SUM(mpi_ns) AS mpi_ns FROM rank")
    (table,) = profile.rows("SELECT COUNT(*) AS rows FROM slice")
    assert sum(row["calls"] for row in found["slices"]) == total["calls"]
    # Each row of the table is rounded to nanoseconds by itself.
    assert abs(sum(row["time_ns"] for row in found["slices"]) - total["mpi_ns"]) <= table["rows"]
    two = json.loads(commlens("timeline", result.profile, "--rows", "2", "--format", "json"))
    assert two["slices"][0]["least_rank"] == 0
    assert "a cell is one rank for" in commlens("timeline", result.profile)
