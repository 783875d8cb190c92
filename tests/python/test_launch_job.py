# SPDX-License-Identifier: Apache-2.0
"""A job that must be stopped: its launcher may end the processes, and nothing of its process group is left."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from commlens.launch.job import end_job


def started(script: str, folder: Path) -> subprocess.Popen[str]:
    """Start a script in a group of its own, and return when it has printed a line."""
    job = subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, text=True, cwd=folder, start_new_session=True
    )
    assert job.stdout is not None
    assert job.stdout.readline() == "ready\n"
    job.stdout.close()
    return job


def test_a_launcher_has_time_to_end_its_processes(tmp_path: Path) -> None:
    job = started("trap 'touch ended; exit 3' TERM; echo ready; while :; do sleep 0.05; done", tmp_path)
    end_job(job, grace_s=60)
    assert (tmp_path / "ended").exists() and job.returncode == 3
    with pytest.raises(ProcessLookupError):
        os.killpg(job.pid, 0)


def test_the_launcher_of_a_script_is_asked_too(tmp_path: Path) -> None:
    inner = 'trap "sleep 0.3; touch ended; exit" TERM; echo ready; while :; do sleep 0.05; done'
    job = started(f"sh -c '{inner}'; sleep 600", tmp_path)
    end_job(job, grace_s=60)
    assert (tmp_path / "ended").exists()


def test_what_does_not_end_is_killed(tmp_path: Path) -> None:
    job = started("trap '' TERM; sh -c 'echo ready; while :; do sleep 0.05; done'; sleep 600", tmp_path)
    end_job(job, grace_s=0.2)
    assert job.returncode == -9


def test_a_job_that_has_ended_is_left_alone(tmp_path: Path) -> None:
    job = started("echo ready; exit 4", tmp_path)
    job.wait()
    end_job(job)
    assert job.returncode == 4
