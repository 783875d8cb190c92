# SPDX-License-Identifier: Apache-2.0
"""A killed ingest: nothing is lost, nothing is there twice; killed_ingest.py kills and looks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fleet_cases import write_jobs

HERE = Path(__file__).resolve().parent


def killed(tmp_path: Path, *how: object) -> list[str]:
    """Kill writers; return a line for each."""
    write_jobs(tmp_path / "jobs", range(0, 9, 3))
    (tmp_path / "jobs" / "damaged.db").write_bytes(b"")
    command = [sys.executable, HERE / "killed_ingest.py", tmp_path / "jobs", tmp_path, *map(str, how)]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_writer_that_is_killed_at_a_change_of_a_file_leaves_a_whole_dataset(tmp_path: Path) -> None:
    assert len(killed(tmp_path, "points", 3, 9)) >= 8


@pytest.mark.long
@pytest.mark.parametrize("how", [("points", 1, 1), ("random", 200, 48)], ids=["every change", "200 moments"])
def test_writers_that_are_killed_leave_a_whole_dataset(
    how: tuple[str, int, int], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--every-case"):
        pytest.skip("takes minutes: --every-case")
    assert len(killed(tmp_path, *how)) >= 200 - 40 * (how[0] == "points")
