# SPDX-License-Identifier: Apache-2.0
"""What is built from the source of others: a profiler or an application, at one commit, for both MPI libraries.

A build step is a line of bash that runs in a checkout of the source. `{mpi}` is the suffix of the compiler wrappers
("openmpi", "mpich"), `{prefix}` where the result is installed, `{jobs}` how many compilers may run at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.peers import places


@dataclass(frozen=True)
class Source:
    """A profiler or an application that is built.

    Attributes
    ----------
    name : str
    repository : str
        Where its source is. The last part of the address is the name of its folder.
    commit : str
    steps : tuple of str
        How it is built, after its own documentation.
    product : str
        Pattern of the library to preload or of the program, below the prefix.
    needs : tuple of str
        Debian packages, beside a compiler, CMake and the MPI libraries.
    with_submodules : bool
        Whether it needs the submodules of its repository.
    """

    name: str
    repository: str
    commit: str
    steps: tuple[str, ...]
    product: str
    needs: tuple[str, ...] = ()
    with_submodules: bool = False

    @property
    def folder(self) -> str:
        """The name of its folder, as git clone chooses it."""
        return self.repository.rsplit("/", 1)[1]

    def prefix(self, mpi: str) -> Path:
        """Where it is installed for one MPI library."""
        return places.INSTALLED / f"{self.name}-{mpi}"

    def built(self, mpi: str) -> Path | None:
        """Return its library or program for one MPI library, or None if it is not built."""
        return next(iter(sorted(self.prefix(mpi).glob(self.product))), None)
