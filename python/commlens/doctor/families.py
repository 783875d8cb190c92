# SPDX-License-Identifier: Apache-2.0
"""The binary interfaces of MPI, distinguished by the same facts as in core/programs/commlens_run.c."""

from __future__ import annotations

from commlens.doctor._launchers import LAUNCHERS, LIBRARIES, TITLES

__all__ = ["TITLES", "family_of_launcher", "family_of_library"]


def family_of_library(name: str) -> str | None:
    """Return the family a library belongs to by its file name.

    >>> family_of_library("libmpi.so.40.30.4"), family_of_library("libmpiP.so")
    ('openmpi', None)
    """
    for family, libraries in LIBRARIES.items():
        if name.startswith(libraries):
            return family
    return None


def family_of_launcher(path: str) -> str | None:
    """Return the family whose ranks a launcher starts, by its resolved path."""
    for family, names in LAUNCHERS.items():
        if any(name in path for name in names):
            return family
    return None
