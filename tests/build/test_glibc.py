# SPDX-License-Identifier: Apache-2.0
"""What is built runs with glibc 2.28, the oldest that the guide promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OLDEST = "2.28"


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run tools/check_glibc.py."""
    command = [sys.executable, ROOT / "tools" / "check_glibc.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def built(folder: Path) -> list[Path]:
    """Return the programs and libraries in a build folder."""
    programs = [path for path in (folder / "bin").glob("commlens-*") if path.suffix == ""]
    return [*programs, *(folder / "lib").rglob("*.so")]


def compiled(folder: Path, calls: str) -> Path:
    """Return a shared library that calls a function."""
    library = folder / "called.so"
    source = f"void {calls}(void); void own(void) {{ {calls}(); }}"
    command: list[str | Path] = ["gcc", "-x", "c", "-", "-fno-builtin", "-shared", "-fPIC", "-o", library]
    subprocess.run(command, input=source, text=True, check=True)
    return library


def test_the_libraries_call_no_function_that_glibc_got_later() -> None:
    files = built(ROOT / "build" / "release")
    assert {"commlens-run", "commlens-arena", "libcommlens.so"} <= {file.name for file in files}
    done = check(OLDEST, *files)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("function", ["gettid", "sigabbrev_np", "pthread_cond_clockwait"])
def test_a_call_of_a_later_function_is_named(function: str, tmp_path: Path) -> None:
    done = check(OLDEST, compiled(tmp_path, function))
    assert done.returncode == 1
    assert f"called.so needs {function} (glibc 2.3" in done.stdout


@pytest.mark.parametrize("function", ["getpid", "getrandom", "dlsym", "pthread_create", "fstat"])
def test_an_old_function_in_a_newer_version_counts_only_in_builds_for_the_old_system(
    function: str, tmp_path: Path
) -> None:
    library = compiled(tmp_path, function)
    assert check(OLDEST, library).stdout == ""
    assert check("--strict", "99", library).stdout == ""
    if function in ("dlsym", "pthread_create", "fstat"):
        assert f"needs {function} (glibc 2.3" in check("--strict", OLDEST, library).stdout
