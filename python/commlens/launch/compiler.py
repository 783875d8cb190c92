# SPDX-License-Identifier: Apache-2.0
"""Compiles a program of ours with the site's mpicc."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from commlens.base.errors import CommlensError

SET_MPICC = "Set MPICC to the mpicc of the launcher's MPI library"


def has_compiler() -> bool:
    """Return whether $MPICC is set or there is an mpicc."""
    return bool(os.environ.get("MPICC", "").strip()) or shutil.which("mpicc") is not None


def can_compile(what: str) -> bool:
    """Return whether a program can be compiled; if not, its variant in Python can run.

    Raises
    ------
    CommlensError
        There is neither a compiler nor mpi4py.
    """
    if has_compiler():
        return True
    if find_spec("mpi4py") is None:
        raise CommlensError(f"no mpicc to compile {what} with, and no mpi4py. {SET_MPICC}")
    return False


def compile_with_mpicc(source: Path, program: Path) -> Path:
    """Compile a C program, with $MPICC or mpicc; return it.

    Raises
    ------
    CommlensError
        There is no compiler, or it fails.
    """
    try:
        compiler = shlex.split(os.environ.get("MPICC", "")) or ["mpicc"]
    except ValueError as error:
        raise CommlensError(f"MPICC: {str(error).lower()}: {os.environ['MPICC']}") from None
    if shutil.which(compiler[0]) is None:
        raise CommlensError(f"{compiler[0]}: no such compiler. {SET_MPICC}")
    command = [*compiler, "-O2", "-o", str(program), str(source), "-lm", "-ldl"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise CommlensError(f"{compiler[0]}: cannot be started: {error.strerror}") from None
    if done.returncode != 0:
        raise CommlensError(
            f"'{shlex.join(command)}' ended with {done.returncode}", done.stderr.splitlines()[:3]
        )
    return program
