# SPDX-License-Identifier: Apache-2.0
"""Finds the processes that record the arenas of a job (COMMLENS_FLUSH_EVERY)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from processes import wait_until


def recorders(where: Path) -> list[int]:
    """Return the processes that record the jobs of a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[1:2] == [b"record"] and any(bytes(where) in word for word in words):
                found.append(int(path.parent.name))
    return found


def wait_for_recorder(where: Path) -> None:
    """Wait until nothing records a job any more."""
    wait_until(lambda: not recorders(where), "the recorder goes on", pause_s=0.05)
