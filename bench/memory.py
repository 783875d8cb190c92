# SPDX-License-Identifier: Apache-2.0
"""Measures the memory of commlens, and its cost for a communicator that is created and freed.

    .venv/bin/python bench/memory.py                  # both MPI libraries: two minutes
    .venv/bin/python bench/memory.py --mpi openmpi --rounds 20

memory.c runs without and with commlens, one process each time.  Memory is what is resident, and what is reserved in the
arena beyond that.  Times are those of the fastest hundred communicators of a run; the median of the differences within
rounds, with the quartiles.  Instructions are counted by valgrind's callgrind, of the twenty with fewest after the first
thousand: in some a slice of time ends.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.run import ENVIRONMENT, HERE, RUNNER  # noqa: E402

KINDS = {"dup": "MPI_Comm_dup", "split": "MPI_Comm_split", "group": "MPI_Comm_create_group"}
STEPS = (1_000, 10_000, 100_000)
LIVE, CELLS, REQUESTS = 1_000, 6_000, 20_000
INSTRUCTIONS = 3_000

Told = dict[tuple[str, int], int]
"""What memory.c says: (what, how many) -> KiB, or nanoseconds."""


def run(program: Path, *argv: object, runner: Path | None, before: tuple[str, ...] = ()) -> Told:
    """Run memory.c once, behind `runner` if there is one."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMLENS_")}
    with tempfile.TemporaryDirectory() as scratch:
        environment.update(ENVIRONMENT, COMMLENS_OUTPUT=f"{scratch}/profile.db", COMMLENS_QUIET="1")
        command = [*before, *([] if runner is None else [str(runner)]), str(program), *map(str, argv)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    lines = (line.split() for line in done.stdout.splitlines())
    return {(what, int(number)): int(value) for what, number, value in lines}


def instructions(program: Path, kind: str, runner: Path | None) -> float:
    """Return the instructions of one communicator made and freed, of the twenty with fewest beyond the first ones."""
    with tempfile.TemporaryDirectory() as scratch:
        before = (
            "valgrind",
            "--tool=callgrind",
            "--trace-children=yes",
            f"--callgrind-out-file={scratch}/counted.%p",
        )
        run(program, kind, INSTRUCTIONS, "unused", runner=runner, before=before)
        found = {}
        for path in Path(scratch).glob("counted.*"):
            text = path.read_text(errors="replace")
            total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
            if "Client Request: twenty" in text and total:
                found[int(path.suffix[1:])] = int(total[1])
    beyond = [total for number, total in sorted(found.items())][len(found) // 2 :]
    return min(beyond) / 20


@dataclass
class Churn:
    """What is added to communicators of one kind that are made and freed.

    Attributes
    ----------
    kib : memory that is added after so many of them, which were each used for two calls, KiB
    ns : to each of them, nanoseconds: the median over rounds, the lower and the upper quartile
    instructions : to each of them; None: not counted
    alone_ns : what one takes without commlens
    """

    kib: dict[int, int] = field(default_factory=dict)
    ns: tuple[float, float, float] = (0, 0, 0)
    instructions: float | None = None
    alone_ns: float = 0


@dataclass
class Memory:
    """What is added to a process with one MPI library.

    Attributes
    ----------
    alone_kib : what a process has after MPI_Init without commlens
    start_kib : what is added then
    peak_kib : what is added to the most that a process ever has which does nothing
    live_bytes : for a communicator that is in use: for two calls, which are three cells and three pairs of peers
    cell_bytes : for a cell
    request_bytes : for a request in flight
    churn : by kind of communicator, as in KINDS
    """

    mpi: str
    alone_kib: int
    start_kib: int
    peak_kib: int
    live_bytes: float
    cell_bytes: float
    request_bytes: float
    churn: dict[str, Churn]


def each(program: Path, what: str, number: int) -> float:
    """Return the bytes that commlens adds for one of `number`."""
    added = []
    for runner in (RUNNER, None):
        told = run(program, what, number, runner=runner)
        added.append(told[what, number] - told[what, 0])
    return (added[0] - added[1]) * 1024 / number


def measure_churn(program: Path, kind: str, rounds: int, count: bool) -> Churn:
    """Return what communicators of one kind take."""
    found = Churn()
    most = STEPS[-1]
    alone, under = run(program, kind, most, runner=None), run(program, kind, most, runner=RUNNER)
    found.kib = {number: under[kind, number] - alone[kind, number] for number in STEPS}
    differences, times = [], []
    for number in range(rounds):
        legs: list[Path | None] = [None, RUNNER] if number % 2 == 0 else [RUNNER, None]
        taken = {leg: run(program, kind, STEPS[1], "unused", runner=leg)["ns", STEPS[1]] for leg in legs}
        differences.append(taken[RUNNER] - taken[None])
        times.append(taken[None])
    low, middle, high = statistics.quantiles(differences, n=4)
    found.ns = (middle, low, high)
    found.alone_ns = statistics.median(times)
    if count:
        found.instructions = instructions(program, kind, RUNNER) - instructions(program, kind, None)
    return found


def measure(mpi: str, rounds: int = 10, count: bool = True) -> Memory:
    """Build memory.c for "openmpi" or "mpich" and measure; without instructions unless `count`."""
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "memory"
        subprocess.run([f"mpicc.{mpi}", "-O2", "-w", HERE / "memory.c", "-o", program], check=True)
        alone, under = run(program, "start", runner=None), run(program, "start", runner=RUNNER)
        return Memory(
            mpi=mpi,
            alone_kib=alone["start", 0],
            start_kib=under["start", 0] - alone["start", 0],
            peak_kib=under["end", 0] - alone["end", 0],
            live_bytes=each(program, "live", LIVE),
            cell_bytes=each(program, "cells", CELLS),
            request_bytes=each(program, "requests", REQUESTS),
            churn={kind: measure_churn(program, kind, rounds, count) for kind in KINDS},
        )


def show(found: Memory) -> None:
    """Print a table."""
    print(f"{found.mpi}: one process, {found.alone_kib:,} KiB after MPI_Init without commlens")
    print(f"  added after MPI_Init                     {found.start_kib:10,} KiB")
    print(f"  added to the most it ever has            {found.peak_kib:10,} KiB")
    print(f"  for a communicator in use, of {LIVE:,}      {found.live_bytes:10,.0f} B")
    print(f"  for a cell, of {CELLS:,}                     {found.cell_bytes:10,.0f} B")
    print(f"  for a request in flight, of {REQUESTS:,}       {found.request_bytes:10,.0f} B")
    numbers = "".join(f"{f'KiB after {number:,}':>19}" for number in STEPS)
    print(f"  {'made and freed':22}{numbers}{'alone ns':>10}{'added ns (quartiles)':>26}{'instructions':>14}")
    for kind, churn in found.churn.items():
        kib = "".join(f"{churn.kib[number]:19,}" for number in STEPS)
        middle, low, high = churn.ns
        counted = "" if churn.instructions is None else f"{churn.instructions:,.0f}"
        ns = f"{middle:,.0f} ({low:,.0f} .. {high:,.0f})"
        print(f"  {KINDS[kind]:22}{kib}{churn.alone_ns:10,.0f}{ns:>26}{counted:>14}")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpi", action="append", choices=["openmpi", "mpich"], help="default: both")
    parser.add_argument("--rounds", type=int, default=10, help="of times, default 10")
    parser.add_argument("--no-instructions", action="store_true", help="without valgrind")
    given = parser.parse_args()
    for mpi in given.mpi or ["openmpi", "mpich"]:
        show(measure(mpi, given.rounds, not given.no_instructions))


if __name__ == "__main__":
    main()
