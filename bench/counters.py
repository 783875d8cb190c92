# SPDX-License-Identifier: Apache-2.0
"""What a call costs with COMMLENS_COUNTERS.

    .venv/bin/python bench/counters.py [--rounds 12] [--mpi openmpi,mpich]

bench/calls.c runs under commlens without the option, with one and three events of the kernel, and with cycles and
instructions where the processor counts them, in turns.  Prints what the events add to a call, the median and the quartiles
of the differences within rounds.  Every call reads the events twice.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.run import HERE, RUNNER, Row, launch, machine, rows_of, spread  # noqa: E402

LEGS = ("", "page-faults", "page-faults,context-switches,task-clock", "cycles,instructions")


def measure(mpi: str, rounds: int, program: Path, scratch: Path) -> list[str]:
    """Return the lines of the table for one MPI library."""
    taken: dict[str, dict[Row, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        first = number % len(LEGS)
        for i, leg in enumerate(LEGS[first:] + LEGS[:first]):
            profile = scratch / f"{mpi}-{number}-{i}.db"
            output = launch(mpi, 1, [program, "1"], RUNNER, profile, COUNTERS=leg)
            for row, ns in rows_of("\n".join(line for line in output.splitlines() if "|" in line)).items():
                taken[leg][row].append(ns)
    lines = []
    for row, baseline in taken[""].items():
        for leg in LEGS[1:] if row[1] else ():
            added = [under - alone for alone, under in zip(baseline, taken[leg][row], strict=True)]
            lines.append(f"{mpi:8} {row[0]:30} {leg:40} {spread(added, 'ns')}")
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a call costs with COMMLENS_COUNTERS.")
    parser.add_argument("--rounds", type=int, default=12, help="at least 2 (default 12)")
    parser.add_argument("--mpi", default="openmpi,mpich", help="which MPI libraries (default openmpi,mpich)")
    options = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(prefix="commlens-counters-") as name:
        scratch = Path(name)
        for mpi in options.mpi.split(","):
            program = scratch / f"calls-{mpi}"
            subprocess.run([f"mpicc.{mpi}", "-O2", "-w", HERE / "calls.c", "-o", program], check=True)
            print("\n".join(measure(mpi, options.rounds, program, scratch)), flush=True)


if __name__ == "__main__":
    main()
