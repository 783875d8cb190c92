# SPDX-License-Identifier: Apache-2.0
"""Builds commlens-arena into the package, so that `pip install .` alone brings `commlens recover`.

Without CMake and a C++ compiler, or if the build fails, the package is installed without it. `commlens recover` then
says what to install. ARENA_OF_COMMLENS=0 leaves it out: tools/install.sh installs it elsewhere.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PROGRAM = "commlens-arena"
PLACE = ("commlens", "jobs")  # commlens.jobs.arenas looks for it beside itself


def can_build() -> bool:
    """Return whether the sources, the tools and the system for commlens-arena are there."""
    compiler = os.environ.get("CXX", "").split() or ["c++"]
    return (
        os.environ.get("ARENA_OF_COMMLENS") != "0"
        and sys.platform == "linux"
        and platform.machine() == "x86_64"
        and (ROOT / "core" / "programs" / "commlens_arena.cpp").exists()
        and shutil.which("cmake") is not None
        and shutil.which(compiler[0]) is not None
    )


class BuildWithArena(build_py):
    """Adds the program to what setuptools builds."""

    def run(self) -> None:
        """Build the modules, then the program; a failure of the latter is a warning."""
        super().run()
        if self.editable_mode:
            return
        build, target = ROOT / "build" / "pip", Path(self.build_lib).joinpath(*PLACE, PROGRAM)
        target.unlink(missing_ok=True)  # of an earlier build of this folder
        if not can_build():
            return
        configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release"]
        options = ["-DCOMMLENS_WITH_MPI=OFF", "-DCOMMLENS_TESTS=OFF"]
        compile_it = [
            "cmake",
            "--build",
            str(build),
            "--target",
            PROGRAM,
            "--parallel",
            str(os.cpu_count() or 1),
        ]
        try:
            subprocess.run([*configure, *options], check=True)
            subprocess.run(compile_it, check=True)
            shutil.copy2(build / "bin" / PROGRAM, target)
        except (OSError, subprocess.CalledProcessError) as error:
            self.warn(f"{PROGRAM} is not built, so commlens recover will not work: {error}")


class PlatformDistribution(Distribution):
    """A package with a program is for one kind of machine."""

    def has_ext_modules(self) -> bool:
        """Return whether the package contains the program."""
        return can_build()


setup(cmdclass={"build_py": BuildWithArena}, distclass=PlatformDistribution)
