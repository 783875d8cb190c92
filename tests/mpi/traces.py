# SPDX-License-Identifier: Apache-2.0
"""Traces that test programs write of their own calls, as the truth about who keeps whom waiting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness import Mpi, commlens

STEPS, MICROSECONDS = 40, 3000
# A rank may lose its processor for some ms between its own look at the clock and that of commlens.
TOLERANCE = 0.1
PER_STEP_NS = 20_000
"""For procedures in which the ranks spend hardly any time: after a pause, the first call takes so long in commlens."""


@dataclass(frozen=True)
class Truth:
    """What the program's trace says about one procedure: times in ns, and for how long others waited for each rank."""

    time: int
    waiting: int
    late: list[int]

    @property
    def tolerance(self) -> float:
        return max(TOLERANCE * self.time, PER_STEP_NS * STEPS * len(self.late))


@dataclass(frozen=True)
class Found:
    """What commlens found on the duplicate of MPI_COMM_WORLD: a row for each procedure, and the calls it did not split."""

    rows: dict[str, dict[str, Any]]
    unsplit: list[dict[str, Any]]


def read(profile: Path) -> Found:
    done = commlens("waits", profile, "--comm", "d*", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len({row["operation"] for row in found["waits"]}) == len(found["waits"])
    return Found({row["operation"]: row for row in found["waits"]}, found["unsplit"])


def run(
    mpi: Mpi,
    program: str,
    ranks: int,
    case: str,
    steps: int = STEPS,
    microseconds: int = MICROSECONDS,
    env: Mapping[str, str] | None = None,
) -> tuple[dict[str, Truth], Path]:
    """Run a program that prints its trace; return the trace by procedure, and the profile."""
    name, *more = case.split()
    arguments = [name, str(steps), str(microseconds), *more]
    result = mpi.run(ranks, [mpi.compile(program), *arguments], env=env, timeout=120)
    assert result.rc == 0, result
    lines = [line.split() for line in result.stdout.splitlines()]
    truth = {
        f"MPI_{name}": Truth(int(time), int(waiting), [int(ns) for ns in late])
        for name, time, waiting, *late in lines
    }
    return truth, result.profile


def check(truth: Truth, row: dict[str, Any]) -> None:
    """Assert that `row` has the waiting of the trace, and that no rank was awaited longer than the one it names first."""
    assert row["waiting_ns"] == pytest.approx(truth.waiting, abs=truth.tolerance), row
    blamed = max(row["ranks"], key=lambda one: one["late_ns"])["rank"]
    assert truth.late[blamed] >= max(truth.late) - truth.tolerance, row
