# SPDX-License-Identifier: Apache-2.0
"""Builds a program for all processes that run tests."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

PATIENCE = float(os.environ.get("COMMLENS_TEST_PATIENCE", "1"))
"""Factor of all time limits of launches; tools/processors.sh sets it, because emulation is slow."""


def build_once(target: Path, command: Sequence[str]) -> None:
    """Build `target` if it does not exist.  Another process that wants the same waits until it is there.

    Parameters
    ----------
    command : compiler and arguments, without the option for the output
    """
    if target.exists():
        return
    with (
        target.with_name(f"{target.name}.lock").open("w") as lock,
        tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}-") as scratch,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        made = Path(scratch) / target.name
        done = subprocess.run(
            [*command, "-o", str(made)], cwd=scratch, capture_output=True, text=True, timeout=300 * PATIENCE
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        made.rename(target)
