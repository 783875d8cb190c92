# SPDX-License-Identifier: Apache-2.0
"""Suggests names that are similar to a misspelt one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def did_you_mean(name: str, known: Sequence[str], most: int = 3) -> str:
    """Return at most `most` names most like `name`, best first, as the end of a sentence; empty if none is.

    >>> did_you_mean("Alreduce", ["MPI_Bcast", "MPI_Allreduce"])
    '; did you mean MPI_Allreduce?'
    """
    plain = {stem(k): k for k in known}
    close = difflib.get_close_matches(stem(name), list(plain), n=most, cutoff=0.6)
    return f"; did you mean {' or '.join(plain[c] for c in close)}?" if close else ""


def stem(name: str) -> str:
    """Return the part of a name that is compared: without MPI_, in lower case."""
    return name.lower().removeprefix("mpi_")
