# SPDX-License-Identifier: Apache-2.0
"""Profiles damaged at random: every command answers, or says why not in one line (fuzz/reader.py)."""

from __future__ import annotations

import subprocess
import sys

from fuzz import commands
from fuzz.paths import ROOT

PROFILES = 300


def test_no_damaged_profile_is_a_traceback_a_wait_or_a_flood() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.reader", "--profiles", str(PROFILES), "--seed", "18", "--again"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{PROFILES} cases" in done.stdout
    assert "findings: none" in done.stdout


def test_every_command_is_tried_many_times() -> None:
    tried = [command for case in range(PROFILES) for command in commands.chosen(case, 2)]
    assert set(commands.COMMANDS) <= set(tried)
    names = [command[0] for command in tried]
    assert all(
        names.count(name) >= 4
        for name in ("report", "regions", "matrix", "algorithms", "comms", "coverage", "export", "sql")
    )
