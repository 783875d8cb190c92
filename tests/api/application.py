# SPDX-License-Identifier: Apache-2.0
"""Builds annotated programs against an installed libcommlens-api, and runs them without and with a profiler.

The profiler is played by programs/profiler.c, which writes down how it is called.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
COMPILERS = {
    ".c": ("cc", "-std=c99", *STRICT),
    ".cpp": ("c++", "-std=c++11", *STRICT, "-pthread"),
    ".f90": ("gfortran", "-std=f2008", *STRICT, "-Wimplicit-interface"),
    ".f": ("gfortran", "-std=legacy", "-ffixed-form"),
}


class Run(NamedTuple):
    """What a program did."""

    output: str
    errors: str
    calls: list[str]
    """Those that the profiler saw, in order: THREAD CALL ARGUMENTS."""


def run(
    *command: str | Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `command`, which must end with 0."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done


class Kit:
    """An installed libcommlens-api, a profiler, and a folder for what is built."""

    def __init__(self, prefix: Path, profiler: Path, work: Path) -> None:
        self.prefix = prefix
        self.profiler = profiler
        self.work = work

    @property
    def link(self) -> tuple[str, ...]:
        """Return what a compiler is told to link."""
        return f"-L{self.prefix}/lib", "-lcommlens-api", f"-Wl,-rpath,{self.prefix}/lib"

    def build(self, source: Path, *flags: str | Path, name: str = "program") -> Path:
        """Compile a program; `flags` replaces what is linked when it names libraries."""
        target = self.work / name
        compiler = COMPILERS[source.suffix]
        module = (self.prefix / "share/commlens/commlens.f90",) if source.suffix == ".f90" else ()
        libraries = () if any(str(flag).startswith("-l") for flag in flags) else self.link
        include = f"-I{self.prefix}/include"
        run(*compiler, include, *module, source, "-o", target, *flags, *libraries, cwd=self.work)
        return target

    def write(self, name: str, text: str) -> Path:
        """Write a source file."""
        path = self.work / name
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, *command: str | Path, preload: Path | None = None) -> Run:
        """Run a program, with the profiler `preload`."""
        log = self.work / "calls"
        log.unlink(missing_ok=True)
        environment = {"CALLS_LOG": str(log), "PYTHONPATH": str(ROOT / "python")}
        if preload is not None:
            # Through env: not all that starts the program is profiled.
            command = ("env", f"LD_PRELOAD={preload}", *command)
        done = run(*command, cwd=self.work, **environment)
        calls = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return Run(done.stdout, done.stderr, calls)

    def both(self, *command: str | Path) -> Run:
        """Run a program with the profiler, and without: there it must print the same, and nobody is called."""
        alone = self.run(*command)
        profiled = self.run(*command, preload=self.profiler)
        assert alone.calls == []
        assert alone.output == profiled.output
        return profiled

    def python(self, text: str) -> Run:
        """Run lines of Python in both ways."""
        return self.both(sys.executable, self.write("lines.py", text))
