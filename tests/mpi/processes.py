# SPDX-License-Identifier: Apache-2.0
"""Processes of a job: whether they still run, how a test waits for them, and how it kills them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
from build_once import PATIENCE

Found = TypeVar("Found")


def wait_until(
    condition: Callable[[], Found],
    message: str | Callable[[], str],
    seconds: float = 60,
    *,
    pause_s: float = 0.005,
) -> Found:
    """Wait until a condition is true; return its value.

    Parameters
    ----------
    condition : called again and again
    message : with it the test fails if the condition is still false at the limit
    seconds : the limit, which PATIENCE multiplies
    pause_s : time between two calls of the condition
    """
    end = time.monotonic() + seconds * PATIENCE
    while not (found := condition()):
        if time.monotonic() >= end:
            pytest.fail(message if isinstance(message, str) else message())
        time.sleep(pause_s)
    return found


def kill_at_once(pids: Sequence[int]) -> None:
    """Kill those ranks that are there with SIGKILL, and stop their launcher meanwhile.

    The launcher would send SIGTERM to the other ranks as soon as the first one dies.
    """
    parents = {parent_of(pid) for pid in pids} - {0, 1, os.getpid()}
    try:
        send_signal(parents, signal.SIGSTOP)
        send_signal(pids, signal.SIGKILL)
    finally:
        send_signal(parents, signal.SIGCONT)


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to those processes that are there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def parent_of(pid: int) -> int:
    """Return the parent of a process, or 0."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def is_alive(pid: int) -> bool:
    """Return whether the process is there and no zombie."""
    try:
        return pid > 0 and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
