# SPDX-License-Identifier: Apache-2.0
"""What a call costs with call paths of several lengths, and beside mpiP if its library is given.

    .venv/bin/python bench/call_paths.py [--rounds 12] [--mpi openmpi,mpich] [--mpip LIBRARY]

bench/calls.c runs under more than 16 frames: without a tool, with COMMLENS_FRAMES=1, 4 and 16, and with mpiP's -k 1 and
-k 4, in turns.  LIBRARY is a libmpiP.so for the MPI library that --mpi names.  Prints what each adds to a call: the median
and the quartiles of the differences within rounds.
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

ALONE = "alone"


def measure(mpi: str, rounds: int, program: Path, mpip: Path | None, scratch: Path) -> list[str]:
    """Return the lines of the table for one MPI library."""
    taken: dict[str, dict[Row, list[float]]] = defaultdict(lambda: defaultdict(list))
    legs = [ALONE, "1", "4", "16", *(["mpiP -k 1", "mpiP -k 4"] if mpip else [])]
    for number in range(rounds):
        for leg in legs[number % len(legs) :] + legs[: number % len(legs)]:
            profile = scratch / f"{mpi}-{number}-{leg}.db"
            if leg.startswith("mpiP"):
                options = leg.partition(" ")[2]
                argv = ["env", f"LD_PRELOAD={mpip}", f"MPIP={options} -f {scratch}", str(program), "1"]
                output = launch(mpi, 1, argv, None, profile)
            elif leg == ALONE:
                output = launch(mpi, 1, [program, "1"], None, profile)
            else:
                output = launch(mpi, 1, [program, "1"], RUNNER, profile, FRAMES=leg)
            # mpiP writes to the standard output, too.
            for row, ns in rows_of("\n".join(line for line in output.splitlines() if "|" in line)).items():
                taken[leg][row].append(ns)
    lines = []
    for row, baseline in taken[ALONE].items():
        for leg in legs[1:] if row[1] else ():
            added = [under - alone for alone, under in zip(baseline, taken[leg][row], strict=True)]
            name = leg if leg.startswith("mpiP") else f"{leg} frames"
            lines.append(f"{mpi:8} {row[0]:30} {name:10} {spread(added, 'ns')}")
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a call costs with call paths of several lengths.")
    parser.add_argument("--rounds", type=int, default=12, help="at least 2 (default 12)")
    parser.add_argument("--mpi", default="openmpi,mpich", help="which MPI libraries (default openmpi,mpich)")
    parser.add_argument("--mpip", type=Path, help="libmpiP.so, for one MPI library")
    options = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(prefix="commlens-paths-") as name:
        scratch = Path(name)
        for mpi in options.mpi.split(","):
            program = scratch / f"calls-{mpi}"
            subprocess.run([f"mpicc.{mpi}", "-O2", "-w", HERE / "calls.c", "-o", program], check=True)
            print("\n".join(measure(mpi, options.rounds, program, options.mpip, scratch)), flush=True)


if __name__ == "__main__":
    main()
