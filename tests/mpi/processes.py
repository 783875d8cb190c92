# SPDX-License-Identifier: Apache-2.0
"""Processes of a job: whether they still run, and how a test kills them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path


def kill_at_once(pids: Sequence[int]) -> None:
    """Kill those ranks that are there with SIGKILL, and stop their launcher meanwhile.

    The launcher would send SIGTERM to the other ranks as soon as the first one dies.
    """
    parents = {parent_of(pid) for pid in pids} - {0, 1, os.getpid()}
    try:
        tell(parents, signal.SIGSTOP)
        tell(pids, signal.SIGKILL)
    finally:
        tell(parents, signal.SIGCONT)


def tell(pids: Iterable[int], what: signal.Signals) -> None:
    """Send a signal to those processes that are there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, what)


def parent_of(pid: int) -> int:
    """Return the parent of a process, or 0."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def alive(pid: int) -> bool:
    """Return whether the process is there and no zombie."""
    try:
        return pid > 0 and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
