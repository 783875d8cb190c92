# SPDX-License-Identifier: Apache-2.0
"""The binary interfaces of MPI, distinguished as in core/programs/commlens_run.c."""

from __future__ import annotations

TITLES = {"openmpi": "Open MPI", "mpich": "MPICH", "abi": "the standard ABI"}

LIBRARIES = {
    "openmpi": ("libmpi.so.40", "libmpi_mpifh.so", "libmpi_usempi", "libmpi_cxx.so.40"),
    "mpich": ("libmpich", "libmpi.so.12", "libmpifort.so.12", "libmpicxx.so.12"),
    "abi": ("libmpi_abi.so", "libmpifort_abi.so"),
}

# Programs that start ranks, by a part of their resolved name.
LAUNCHERS = {
    "openmpi": ("orterun", "prterun", "prun", "openmpi", "ompi"),
    "mpich": ("hydra", "mpich"),
}


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
