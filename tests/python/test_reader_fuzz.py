# SPDX-License-Identifier: Apache-2.0
"""Profiles and arenas damaged at random: every command answers, or says why not in one line (fuzz/reader.py)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from fuzz import commands
from fuzz.paths import ROOT

CASES = 120
"""So many that every command is tried."""
ARENAS = 60
pytestmark = pytest.mark.long


@pytest.mark.parametrize(("kind", "cases"), [("profiles", CASES), ("arenas", ARENAS)])
def test_nothing_damaged_is_a_traceback_a_wait_or_a_flood(kind: str, cases: int) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "fuzz.reader", f"--{kind}", str(cases)),
            *("--seed", "18", "--again", "--jobs", str(os.cpu_count() or 1)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{cases} cases" in done.stdout
    assert "findings: none" in done.stdout


def test_every_command_is_tried_many_times() -> None:
    tried = [command for case in range(CASES) for command in commands.chosen(case, 2)]
    assert set(commands.COMMANDS) <= set(tried)
    names = [command[0] for command in tried]
    assert all(
        names.count(name) >= 4
        for name in (
            "report",
            "regions",
            "matrix",
            "algorithms",
            "timeline",
            "comms",
            "coverage",
            "export",
            "sql",
            "chart",
            "correlate",
        )
    )
