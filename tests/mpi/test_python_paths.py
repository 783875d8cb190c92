# SPDX-License-Identifier: Apache-2.0
"""Call paths go on in Python: with its own files, functions and lines, in every version of CPython that is here."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from harness import PROGRAMS, ROOT, Mpi, Result
from profile_rows import Profile
from test_languages import mpi4py_env

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
PYTHONS = ROOT / "build" / "pythons"
MARK = "python:"

Place = tuple[str, str, int]
"""File, function and line."""


class Python:
    """An interpreter with mpi4py (tools/pythons.sh).

    Attributes
    ----------
    program : Path
        The interpreter.
    environment : dict of str to str
        What it needs to find mpi4py.
    """

    def __init__(self, version: str, mpi: Mpi) -> None:
        if mpi.family == "abi":
            pytest.skip("mpi4py's wheel has no build for the standard interface")
        self.program = PYTHONS / version / "python"
        if not self.program.exists():
            pytest.skip(f"tools/pythons.sh has found no Python {version}")
        self.environment = {**mpi4py_env(mpi), "PYTHONPATH": str(PYTHONS / version / "packages")}


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest, mpi: Mpi) -> Python:
    """Return one version of Python."""
    return Python(request.param, mpi)


def counted(profile: Profile, operation: str = "MPI_Barrier") -> Counter[tuple[Place, ...]]:
    """Return the calls of rank 0 by the Python frames of their paths, the innermost first."""
    sites = {
        row["id"]: row for row in profile.rows("SELECT id, module, build_id, offset, caller FROM callsite")
    }
    calls: Counter[tuple[Place, ...]] = Counter()
    for row in profile.rows(
        "SELECT key.callsite, SUM(cell.calls) AS calls FROM cell JOIN key ON key.id = cell.key "
        f"JOIN op ON op.id = key.op WHERE cell.rank = 0 AND op.name = '{operation}' GROUP BY key.id"
    ):
        path: list[Place] = []
        at = row["callsite"]
        while at:
            site = sites[at]
            if site["build_id"].startswith(MARK):
                path.append((site["module"], site["build_id"][len(MARK) :], site["offset"]))
            else:
                assert not path, "frames of compiled code come before those of Python"
            at = site["caller"]
        calls[tuple(path)] += row["calls"]
    return calls


def run_paths(mpi: Mpi, python: Python, frames: int, rounds: int) -> tuple[Result, Counter[tuple[Place, ...]]]:
    """Run the program that counts its own paths; return these, as far as they have so many frames."""
    where = mpi.fresh("paths")
    result = mpi.run(
        2,
        [python.program, PROGRAMS / "python_paths.py", where, str(rounds)],
        {**python.environment, "COMMLENS_FRAMES": str(frames)},
    )
    assert result.rc == 0, result
    assert result.said == [f"commlens: profile of 2 ranks in {result.profile}"]
    expected: Counter[tuple[Place, ...]] = Counter()
    for path, calls in json.loads((where / "expected.json").read_text()):
        expected[tuple((file, function, line) for file, function, line in path[:frames])] += calls
    return result, expected


@pytest.mark.parametrize("frames", [1, 3, 64])
def test_paths_are_those_taken(mpi: Mpi, python: Python, frames: int) -> None:
    result, expected = run_paths(mpi, python, frames, 20)
    profile = result.open()
    profile.check()
    assert counted(profile) == expected
    assert len(expected) > 90
