# SPDX-License-Identifier: Apache-2.0
"""What `make demo` and `make install` leave behind."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from machine import without_make

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `command` at the root of the repository and return what it said."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env={**without_make(), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_demo_shows_the_communicators_of_an_application_nobody_here_wrote() -> None:
    result = run("make", "demo")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^demo    mpirun -n 4 commlens-run lmp .* \d+ s$", result.stdout, re.MULTILINE)
    report = result.stdout.split("commlens report", 1)[1]
    assert "W0.0" in report
    assert "MPI_Cart_create" in report or "MPI_Comm_split" in report
    with closing(sqlite3.connect(f"file:{ROOT}/build/demo.db?mode=ro", uri=True)) as profile:
        halves = profile.execute(
            "SELECT name, size FROM comm WHERE name IN ('s0.1', 's2.1') ORDER BY name"
        ).fetchall()
    assert halves == [("s0.1", 2), ("s2.1", 2)]


def test_programs_need_libc_only() -> None:
    """They run where the compiler's own libraries are in no path, as those of a module often are."""
    for program in ("commlens-run", "commlens-arena"):
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", f"build/release/bin/{program}").stdout)
        assert needed
        assert set(needed) <= {
            "libc.so.6",
            "libdl.so.2",
            "libm.so.6",
            "libpthread.so.0",
            "ld-linux-x86-64.so.2",
        }, program


def test_make_install_gives_a_tree_that_works_by_itself(tmp_path: Path) -> None:
    result = run("make", "install", f"PREFIX={tmp_path}")
    assert result.returncode == 0, result.stdout
    installed = run(tmp_path / "bin" / "commlens", "--version")
    assert (ROOT / "VERSION").read_text().strip() in installed.stdout
    launched = run(tmp_path / "bin" / "commlens-run", "env", COMMLENS_MPI="mpich")
    library = re.search(r"^LD_PRELOAD=(.*)$", launched.stdout, re.MULTILINE)
    assert library
    assert Path(library[1]).is_relative_to(tmp_path)
    assert Path(library[1]).name == "libcommlens.so"
