# SPDX-License-Identifier: Apache-2.0
"""What an MPI library declares: its header as the C compiler sees it."""

from __future__ import annotations

import re
import subprocess

from build_once import PATIENCE
from harness import Mpi

_DECLARATION = re.compile(r"\bint (MPI_[A-Z]\w*) ?\(([^()]*(?:\([^()]*\)[^()]*)*)\)")


def preprocessed(mpi: Mpi, *options: str) -> str:
    """Return what the C compiler makes of `#include <mpi.h>` and, with options, of the source these name."""
    command = [
        mpi.compilers["c"],
        *mpi.flags,
        "-E",
        "-include",
        "mpi.h",
        *(options or ("-P", "-x", "c", "/dev/null")),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60 * PATIENCE).stdout


def declared(mpi: Mpi) -> dict[str, str]:
    """Return the procedures mpi.h declares, in order, and the text of their parameters."""
    return dict(sorted(_DECLARATION.findall(preprocessed(mpi))))


def parameters(text: str) -> list[tuple[str, str]]:
    """Return (type, name) of each parameter.

    >>> parameters("const int sendcounts[], MPI_Comm comm")
    [('int*', 'sendcounts'), ('MPI_Comm', 'comm')]
    """
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if part in ("void", "..."):
            return []
        words = re.sub(r"\bconst\b|\bstruct\b|\[\w*\]", " ", part).replace("*", " * ").split()
        stars = "*" * (words.count("*") + part.count("["))
        names = [word for word in words if word != "*"]
        found.append((names[0] + stars, names[-1] if len(names) > 1 else ""))
    return found
