# SPDX-License-Identifier: Apache-2.0
"""Ends jobs that commlens has started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Any

GRACE_S = 10.0  # for a launcher to end its processes


def end_job(job: subprocess.Popen[Any], grace_s: float = GRACE_S) -> None:
    """End a job that still runs: ask its process group to end, and kill what is left of it after the grace.

    Parameters
    ----------
    job : the launcher, started with start_new_session=True; it may be a script that starts the launcher
    grace_s : time for the launcher to end its processes, which may be in other groups and on other nodes
    """
    if job.poll() is not None:
        return
    os.killpg(job.pid, signal.SIGTERM)
    until = time.monotonic() + grace_s
    while _has_processes(job):
        if time.monotonic() > until:
            os.killpg(job.pid, signal.SIGKILL)
            break
        time.sleep(0.05)
    job.wait()


def _has_processes(job: subprocess.Popen[Any]) -> bool:
    """Return whether a process of the group exists."""
    job.poll()  # else the launcher stays in the group after its end
    try:
        os.killpg(job.pid, 0)
    except ProcessLookupError:
        return False
    return True
