# SPDX-License-Identifier: Apache-2.0
"""Real applications under the tools: from source for both MPI libraries, or as Debian packages them, for Open MPI.

The whole problem is the same for all numbers of ranks. A run takes one to two seconds on two ranks.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.peers import places
from bench.peers.sources import Source

INPUTS = places.ROOT / "tests" / "mpi" / "apps_inputs"
PSEUDOPOTENTIAL = "Si.UPF"
Grid = tuple[int, int, int]


def grid(ranks: int) -> Grid:
    """Return the most cubic grid of processes, the longest side first.

    >>> grid(2), grid(8), grid(16), grid(6)
    ((2, 1, 1), (2, 2, 2), (4, 2, 2), (3, 2, 1))
    """
    sides = range(1, ranks + 1)
    all_of = [(x, y, ranks // (x * y)) for x in sides if ranks % x == 0 for y in sides if ranks // x % y == 0]
    return min(
        (found for found in all_of if found[0] >= found[1] >= found[2]), key=lambda found: (sum(found), found)
    )


@dataclass(frozen=True)
class Application:
    """An application.

    Attributes
    ----------
    name : str
    usual, quick : int
        Size of its problem: for seconds, for a quarter of that. What the size counts is in `unit`.
    unit : str
    arguments : callable
        (ranks, size) -> its command line, without the program.
    files : callable
        (ranks, size) -> texts of its input files, by name.
    source : Source, optional
        None: Debian packages it.
    program, package : str
        The program of a Debian package, which is for Open MPI.
    """

    name: str
    usual: int
    quick: int
    unit: str
    arguments: Callable[[int, int], Sequence[object]]
    files: Callable[[int, int], Mapping[str, str]] = lambda _ranks, _size: {}
    source: Source | None = None
    program: str = ""
    package: str = ""

    def size(self, name: str) -> int:
        """Return the size of its problem; size "small" is the quick one."""
        return self.usual if name == "usual" else self.quick

    def executable(self, mpi: str) -> Path | None:
        """Return its program for an MPI library, or None if there is none."""
        if self.source is not None:
            return self.source.built(mpi)
        found = shutil.which(self.program) if mpi == "openmpi" else None
        return Path(found) if found else None

    def version(self) -> str:
        """Return the commit of its source; a Debian package is part of the machine."""
        return self.source.commit[:12] if self.source else self.package


def of_amg(ranks: int, edge: int) -> list[object]:
    """Return the arguments of AMG for a cube of `edge` cells a side; the size that it takes is that of a process."""
    sides = grid(ranks)
    return ["-problem", 1, "-P", *sides, "-n", *(max(edge // side, 1) for side in sides)]


def of_miniamr(ranks: int, steps: int) -> list[object]:
    """Return the arguments of miniAMR: the surface of a ball moves through 4 x 4 x 4 blocks, which it refines twice."""
    x, y, z = grid(ranks)
    blocks = [max(4 // side, 1) for side in (x, y, z)]
    return [
        "--npx", x, "--npy", y, "--npz", z,
        "--init_x", blocks[0], "--init_y", blocks[1], "--init_z", blocks[2],
        "--nx", 8, "--ny", 8, "--nz", 8, "--num_refine", 2, "--max_blocks", 2000, "--num_tsteps", steps,
        "--stages_per_ts", 10, "--num_vars", 10, "--refine_freq", 2, "--num_objects", 1,
        "--object", 2, 0, *(0.3, 0.3, 0.3), *(0.02, 0.02, 0.02), *(0.2, 0.2, 0.2), *(0.0, 0.0, 0.0),
    ]  # fmt: skip


def melt(_ranks: int, steps: int) -> dict[str, str]:
    """Return the input of LAMMPS: a Lennard-Jones melt of 2,048 atoms."""
    text = (INPUTS / "lammps.in").read_text(encoding="utf-8")
    return {"melt.in": re.sub(r"^run .*", f"run {steps}", text, flags=re.MULTILINE)}


def pseudopotential() -> str:
    """Return the pseudopotential of silicon, which a program of the package computes once."""
    kept = places.HOME / "inputs" / PSEUDOPOTENTIAL
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as name:
            shutil.copy(INPUTS / "pseudopotential.in", name)
            command = ["ld1.x", "-in", "pseudopotential.in"]
            subprocess.run(command, cwd=name, check=True, capture_output=True, stdin=subprocess.DEVNULL)
            shutil.move(str(Path(name) / PSEUDOPOTENTIAL), str(kept))
    return kept.read_text(encoding="utf-8")


def silicon(_ranks: int, cutoff: int) -> dict[str, str]:
    """Return the input of Quantum ESPRESSO: two atoms of silicon, with a cutoff in Rydberg."""
    text = (INPUTS / "silicon.in").read_text(encoding="utf-8")
    text = text.replace("ecutwfc = 10.0", f"ecutwfc = {cutoff}.0").replace("2 2 2 0 0 0", "8 8 8 0 0 0")
    return {"silicon.in": text, PSEUDOPOTENTIAL: pseudopotential()}


def hpccinf(ranks: int, size: int) -> dict[str, str]:
    """Return the input of hpcc: the order of the matrix, from which it derives all other sizes, and the grid."""
    rows = max(side for side in range(1, ranks + 1) if ranks % side == 0 and side * side <= ranks)
    text = (INPUTS / "hpccinf.txt").read_text(encoding="utf-8")
    for name, value in (("Ns", size), ("Ps", rows), ("Qs", ranks // rows)):
        text = re.sub(rf"^\d+( +{name}$)", rf"{value}\1", text, flags=re.MULTILINE)
    return {"hpccinf.txt": text}


APPLICATIONS = (
    Application(
        "AMG", 80, 48, "cells a side", of_amg,
        source=Source(
            "AMG",
            "https://github.com/LLNL/AMG",
            "3ada8a128e311543e84d9d66344ece77924127a8",
            (
                # Its flags, without OpenMP.
                "make CC=mpicc.{mpi} INCLUDE_CFLAGS='-O2 -w -DTIMER_USE_MPI -DHYPRE_HOPSCOTCH "
                "-DHYPRE_USING_PERSISTENT_COMM -DHYPRE_BIGINT' INCLUDE_LFLAGS=-lm",
                "install -D -t {prefix}/bin test/amg",
            ),
            "bin/amg",
        ),
    ),
    Application(
        "miniAMR", 10, 4, "time steps", of_miniamr,
        source=Source(
            "miniAMR",
            "https://github.com/Mantevo/miniAMR",
            "635fef2f83558f09805725428daf366c32428d0c",
            ("make -C ref -j {jobs} CC=mpicc.{mpi} LD=mpicc.{mpi}", "install -D -t {prefix}/bin ref/miniAMR.x"),
            "bin/miniAMR.x",
        ),
    ),
    Application(
        "fftMPI", 100, 25, "transforms of 64 x 64 x 64",
        lambda _ranks, times: ["-g", 64, 64, 64, "-n", times],
        source=Source(
            "fftMPI",
            "https://github.com/lammps/fftmpi",
            "3c2b939e12734282923b459268990364c116be48",
            (
                # Its memory.cpp does not include the header of malloc_usable_size().
                "make -C src -j {jobs} CC=mpicxx.{mpi} CCFLAGS='-g -O3 -include malloc.h' tbb=no static3d",
                "make -C test MPICC=mpicxx.{mpi} tbb=no test3d",
                "install -D -t {prefix}/bin test/test3d",
            ),
            "bin/test3d",
        ),
    ),
    Application(
        "LAMMPS", 3000, 800, "steps", lambda _ranks, _size: ["-in", "melt.in"], melt,
        program="lmp", package="lammps",
    ),
    Application(
        "Quantum-ESPRESSO", 60, 25, "Ry", lambda _ranks, _size: ["-nk", 2, "-in", "silicon.in"], silicon,
        program="pw.x", package="quantum-espresso",
    ),
    Application("hpcc", 720, 360, "rows", lambda _ranks, _size: [], hpccinf, program="hpcc", package="hpcc"),
)  # fmt: skip
"""In the order of the page."""

BY_NAME = {one.name: one for one in APPLICATIONS}
SOURCES = tuple(one.source for one in APPLICATIONS if one.source is not None)
