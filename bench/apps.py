# SPDX-License-Identifier: Apache-2.0
"""The programs of bench/apps: what each stresses, how it is called, and on paper how often it calls what.

Names no program to list them; those it names it builds and runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.run import launch  # noqa: E402

SOURCES = ROOT / "bench" / "apps"
BUILD = ROOT / "build" / "apps"

Calls = Counter[str]
"""Calls of all ranks by MPI procedure."""


def rows_of(ranks: int) -> int:
    """Return the rows of the squarest grid, as app_rows() of app.h does."""
    return max(rows for rows in range(1, ranks + 1) if ranks % rows == 0 and rows * rows <= ranks)


def each(ranks: int, **times: int) -> Calls:
    """Return calls that every rank makes as often, with those of app.h."""
    calls = Counter(MPI_Comm_rank=ranks, MPI_Comm_size=ranks, MPI_Allreduce=ranks)
    calls.update({f"MPI_{name}": ranks * n for name, n in times.items()})
    return calls


@dataclass(frozen=True)
class Program:
    """One program.

    Attributes
    ----------
    stresses : what it is hard on, or whom it resembles
    usual : arguments for one or two seconds on two ranks with a core each
    small : arguments for some milliseconds
    calls : (ranks, *arguments) -> the calls of all ranks; whole, but for what begins and ends a program
    others : further arguments worth a run, as long as the usual ones
    needs : what numbers of ranks it takes
    """

    name: str
    stresses: str
    usual: tuple[int, ...]
    small: tuple[int, ...]
    calls: Callable[..., Calls]
    others: tuple[tuple[int, ...], ...] = ()
    needs: str = "any"

    @property
    def source(self) -> Path:
        """Where it is."""
        return next(SOURCES.glob(f"{self.name}.[cf]*"))


def pingpong(ranks: int, rounds: int, largest: int) -> Calls:
    """Return the calls of pingpong.c."""
    sizes = largest.bit_length()
    return each(ranks, Send=rounds * sizes, Recv=rounds * sizes)


def cg(ranks: int, _: int, iterations: int) -> Calls:
    """Return the calls of cg.c: two energies beside the iterations, with an exchange and a sum each, and two sums."""
    exchanges = iterations + 2
    return each(ranks, Irecv=2 * exchanges, Isend=2 * exchanges, Waitall=exchanges) + Counter(
        MPI_Allreduce=ranks * (2 * iterations + 4)
    )


def halo(ranks: int, _: int, variables: int, steps: int) -> Calls:
    """Return the calls of halo.c."""
    times = variables * steps
    return each(
        ranks, Dims_create=1, Cart_create=1, Cart_coords=1, Cart_shift=3, Comm_free=1,
        Irecv=6 * times, Isend=6 * times, Waitall=times,
    ) + Counter(MPI_Allreduce=ranks * times)  # fmt: skip


def amr(ranks: int, patches: int, regrids: int, steps: int, _edge: int) -> Calls:
    """Return the calls of amr.c: a rank is in a patch as often as the patch has ranks."""
    parts = sum(1 + (patch + regrid) % ranks for patch in range(patches) for regrid in range(regrids))
    return each(ranks, Comm_group=1, Group_free=1) + Counter(
        MPI_Group_incl=parts,
        MPI_Comm_create_group=parts,
        MPI_Group_free=parts,
        MPI_Comm_free=parts,
        MPI_Sendrecv=parts * steps,
        MPI_Allreduce=parts * steps + ranks * regrids,
    )


STRESS = (
    Program(
        "bcast_barrier", "two collectives as fast as they go", (1_000_000,), (10,),
        lambda ranks, calls: each(ranks, Bcast=calls, Barrier=calls),
    ),
    Program(
        "pingpong", "blocking messages of all sizes", (10_000, 1 << 17), (2, 300), pingpong, needs="even",
    ),
    Program(
        "message_rate", "many requests under way", (100_000, 64), (5, 8),
        lambda ranks, windows, window: each(
            ranks, Isend=windows * window, Irecv=windows * window, Waitall=windows
        ),
    ),
    Program(
        "polling", "tests that find nothing", (30_000, 500), (5, 20),
        lambda ranks, rounds, polls: each(
            ranks, Irecv=rounds, Test=rounds * polls, Barrier=rounds, Send=rounds, Wait=rounds
        ),
    ),
    Program(
        "wildcard", "receives from anybody with any tag", (2_000_000,), (50,),
        lambda ranks, messages: each(ranks, Isend=messages, Recv=messages, Wait=messages),
    ),
    Program(
        "onesided", "puts, sums and flushes", (20_000, 200), (10, 20),
        lambda ranks, windows, window: each(
            ranks, Win_allocate=1, Win_lock_all=1, Win_sync=2, Barrier=2, Put=windows * window,
            Accumulate=windows, Win_flush=windows, Win_unlock_all=1, Win_free=1,
        ),
    ),
    Program(
        "many_comms", "communicators in turns", (256, 2_000_000), (16, 100),
        lambda ranks, comms, calls: each(ranks, Comm_set_errhandler=2, Comm_dup=comms, Comm_free=comms)
        + Counter(MPI_Allreduce=ranks * calls),
        others=((1, 2_000_000), (16, 2_000_000), (4_096, 2_000_000)),
    ),
    Program(
        "comm_churn", "communicators made and freed", (60_000,), (20,),
        lambda ranks, rounds: each(
            ranks, Comm_dup=rounds, Bcast=rounds, Comm_split=rounds, Scan=rounds, Comm_free=2 * rounds
        ),
    ),
    Program(
        "threads", "calls of several threads at once", (2, 5_000), (3, 20),
        lambda ranks, threads, calls: each(
            ranks, Comm_dup=threads, Sendrecv=threads * calls, Comm_free=threads
        ) + Counter(MPI_Allreduce=ranks * threads * calls),
    ),
    Program(
        "rows_columns", "tiny collectives on rows and columns", (600_000,), (50,),
        lambda ranks, calls: each(ranks, Comm_split=2, Bcast=2 * calls, Comm_free=2)
        + Counter(MPI_Allreduce=2 * ranks * calls),
    ),
    Program(
        "fortran_loop", "calls from Fortran", (1_500_000,), (50,),
        lambda ranks, calls: each(ranks, Sendrecv=calls) + Counter(MPI_Allreduce=ranks * calls),
    ),
)  # fmt: skip
"""Each a worst case for profilers."""

MINI = (
    Program("cg", "conjugate gradients on a sparse matrix", (112, 150), (6, 10), cg, needs="up to POINTS"),
    Program(
        "halo", "a 3-D stencil with messages for each variable, like MiniGhost", (48, 8, 500), (4, 3, 4), halo,
        others=((48, 1, 4_000), (48, 40, 100)),
    ),
    Program(
        "fft", "a 3-D transform with row and column communicators", (64, 80), (8, 2),
        lambda ranks, _, repeats: each(ranks, Comm_split=2, Alltoall=4 * repeats, Comm_free=2),
        needs="a power of two",
    ),
    Program(
        "wavefront", "a pipeline of sweeps, like LU", (32, 64, 1_300), (3, 4, 3),
        lambda ranks, _, planes, sweeps: each(ranks, Recv=4 * planes * sweeps, Send=4 * planes * sweeps),
    ),
    Program(
        "amr", "thousands of communicators of changing ranks, like adaptive grids", (1_000, 10, 10, 16), (10, 3, 2, 3), amr,
    ),
    Program(
        "sample_sort", "all-to-alls of all sizes, like graphs", (100_000, 80), (200, 4),
        lambda ranks, _, rounds: each(ranks, Allgather=rounds, Alltoall=rounds, Alltoallv=rounds, Exscan=rounds)
        + Counter(MPI_Allreduce=ranks * rounds),
    ),
    Program(
        "closure", "transitive closure, a broadcast a row", (4_000, 8), (70, 2),
        lambda ranks, vertices, repeats: each(ranks, Bcast=vertices * repeats),
    ),
)  # fmt: skip
"""Small applications of the kinds there are."""

PROGRAMS = {program.name: program for program in (*STRESS, *MINI)}


def build(program: Program, mpi: str) -> Path:
    """Compile with the wrapper of "openmpi" or "mpich", if it is not there or older than its source."""
    target = BUILD / mpi / program.name
    newest = max(path.stat().st_mtime for path in (program.source, SOURCES / "app.h"))
    if not target.exists() or target.stat().st_mtime < newest:
        target.parent.mkdir(parents=True, exist_ok=True)
        compiler = f"mpifort.{mpi}" if program.source.suffix == ".f90" else f"mpicc.{mpi}"
        # -w: mpi.h of MPICH has gcc find faults where there are none.
        subprocess.run(
            [compiler, "-O2", "-g", "-w", "-pthread", program.source, "-lm", "-o", target], check=True
        )
    return target


def main() -> None:
    """List, or build and run."""
    parser = argparse.ArgumentParser(description="Builds and runs the programs of bench/apps.")
    parser.add_argument("programs", nargs="*", help="their names, or all; without any, lists what there is")
    parser.add_argument("--mpi", default="openmpi", help="openmpi (default) or mpich")
    parser.add_argument("--ranks", type=int, default=2, help="default 2")
    parser.add_argument("--small", action="store_true", help="with the arguments that tests use")
    parser.add_argument("--others", action="store_true", help="with the further arguments, too")
    options = parser.parse_args()
    names = list(PROGRAMS) if options.programs == ["all"] else options.programs
    for name in names:
        if name not in PROGRAMS:
            parser.error(f"{name} is none of {', '.join(PROGRAMS)}")
    if not names:
        for program in PROGRAMS.values():
            print(f"{program.name:14} {program.stresses}; ranks: {program.needs}")
            for arguments in (program.usual, *program.others):
                print(f"{'':14} {program.name} {' '.join(map(str, arguments))}")
    for name in names:
        program = PROGRAMS[name]
        executable = build(program, options.mpi)
        usual = (program.usual, *(program.others if options.others else ()))
        for arguments in (program.small,) if options.small else usual:
            begin = time.monotonic()
            printed = launch(
                options.mpi, options.ranks, [executable, *map(str, arguments)], None, Path(os.devnull)
            )
            command = " ".join(map(str, (name, *arguments)))
            print(f"{command:30} {time.monotonic() - begin:6.2f} s   {printed.strip()}", flush=True)


if __name__ == "__main__":
    main()
