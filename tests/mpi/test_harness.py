# SPDX-License-Identifier: Apache-2.0
"""A launch that a fault of the launcher or of the machine ended is repeated: a warning says so, and no test fails."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import pytest
from harness import WARNING, Result, launch_again, launch_once


def launcher(folder: Path, fault: str) -> list[str]:
    """Write a launcher that ends with `fault` at its first launch, and prints "done" later."""
    script = folder / "launcher"
    script.write_text(f"#!/bin/sh\n[ -e launched ] && echo done && exit\ntouch launched\n{fault}\n")
    script.chmod(0o755)
    return [str(script)]


def check_repeated(result: Result | None, said: list[warnings.WarningMessage], text: str) -> None:
    assert result is not None
    assert (result.rc, result.stdout) == (0, "done\n")
    (one,) = said
    assert re.fullmatch(rf"{WARNING}{text}, repeated: \S+/launcher", str(one.message))


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("kill -SEGV $$", "launcher died of signal 11"),
        (
            "echo 'A call to mkdir was unable to create the desired directory:' >&2; exit 1",
            "another launcher removed the folder of Open MPI's sessions",
        ),
        (
            "echo '[node:1] Failing at address: 0x7f01e0c856f0' >&2; exit 139",
            "Open MPI called what it had unloaded",
        ),
    ],
)
def test_a_fault_of_the_launcher_is_a_warning(tmp_path: Path, fault: str, text: str) -> None:
    with warnings.catch_warnings(record=True) as said:  # with the filters of pyproject.toml
        result = launch_once(launcher(tmp_path, fault), os.environ, 60, tmp_path, tmp_path / "profile.db")
    check_repeated(result, said, text)


def test_a_launch_that_did_not_end_in_time_is_a_warning(tmp_path: Path) -> None:
    command = launcher(tmp_path, "")
    (tmp_path / "launched").touch()
    with warnings.catch_warnings(record=True) as said:
        result = launch_again((command, dict(os.environ)), None, 20, tmp_path, tmp_path / "profile.db")
    check_repeated(result, said, "did not end within 20 s")


def test_a_launch_that_ends_otherwise_is_not_repeated(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as said:
        result = launch_once(launcher(tmp_path, "exit 1"), os.environ, 60, tmp_path, tmp_path / "profile.db")
    assert result is not None
    assert (result.rc, result.stdout, said) == (1, "", [])
