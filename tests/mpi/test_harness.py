# SPDX-License-Identifier: Apache-2.0
"""A launch that a fault of the launcher or of the machine ended is repeated: a warning says so, and no test fails."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import pytest
from launches import WARNING, Result, launch, launch_once


def launcher(folder: Path, fault: str) -> list[str]:
    """Write a launcher that ends with `fault` at its first launch, and prints "done" later.

    It remembers its first launch in `folder`, so it has to be launched in another one.
    """
    script, launched = folder / "launcher", folder / "launched"
    script.write_text(f"#!/bin/sh\n[ -e {launched} ] && echo done && exit\ntouch {launched}\n{fault}\n")
    script.chmod(0o755)
    return [str(script)]


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """Make a folder for launches."""
    path = tmp_path / "where"
    path.mkdir()
    return path


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
        (
            "echo '[node:1 :0:2] Caught signal 11 (Segmentation fault: address not mapped to object at address"
            " 0x7f01e0c856f0)' >&2; exit 139",
            "Open MPI called what it had unloaded",
        ),
    ],
)
def test_a_fault_of_the_launcher_is_a_warning(tmp_path: Path, where: Path, fault: str, text: str) -> None:
    with warnings.catch_warnings(record=True) as said:  # with the filters of pyproject.toml
        result = launch_once(launcher(tmp_path, fault), os.environ, 60, where, where / "profile.db")
    check_repeated(result, said, text)


def test_a_launch_that_did_not_end_in_time_is_a_warning(tmp_path: Path, where: Path) -> None:
    command = launcher(tmp_path, "touch left; sleep 100")
    with warnings.catch_warnings(record=True) as said:
        result = launch((command, dict(os.environ)), None, 1, where, where / "profile.db")
    check_repeated(result, said, "did not end within 1 s")
    assert not (where / "left").exists()


def test_a_launch_that_ends_otherwise_is_not_repeated(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as said:
        result = launch_once(launcher(tmp_path, "exit 1"), os.environ, 60, tmp_path, tmp_path / "profile.db")
    assert result is not None
    assert (result.rc, result.stdout, said) == (1, "", [])


def test_a_repeated_launch_leaves_only_its_own_files(tmp_path: Path, where: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (where / "input").touch()
    (where / "empty").mkdir()
    shards = out / "profile.commlens"
    files = f"made/deep/file {out}/profile.db {out}/profile.rank1.db {shards}/index.db"
    left = f"mkdir -p made/deep {shards}; touch {files}; ln -s . made/link"
    with warnings.catch_warnings(record=True) as said:
        result = launch_once(
            launcher(tmp_path, f"{left}; kill -SEGV $$"), os.environ, 60, where, out / "profile.db"
        )
    check_repeated(result, said, "launcher died of signal 11")
    assert list(out.iterdir()) == []
    assert sorted(path.name for path in where.iterdir()) == [".stderr", ".stdout", "empty", "input"]


def test_a_repeated_launch_finds_what_was_there(tmp_path: Path, where: Path) -> None:
    (where / "profile.commlens").mkdir()
    (where / "profile.db").touch()
    with warnings.catch_warnings(record=True) as said:
        result = launch_once(
            launcher(tmp_path, "touch profile.commlens/part; kill -SEGV $$"),
            os.environ,
            60,
            where,
            where / "profile.db",
        )
    check_repeated(result, said, "launcher died of signal 11")
    found = sorted(str(path.relative_to(where)) for path in where.rglob("*"))
    assert found == [".stderr", ".stdout", "profile.commlens", "profile.db"]
