# SPDX-License-Identifier: Apache-2.0
"""Measure what COMMLENS_MATRIX adds to a call: each choice against `off`, in turns, as bench/run.py does it."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from run import HERE, RUNNER, Row, launch, machine, rows_of, spread

CHOICES = ("off", "p2p", "all")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12, help="runs with each choice (default 12)")
    parser.add_argument("--mpi", default="openmpi", help="which MPI library (default openmpi)")
    options = parser.parse_args()
    print(
        f"{machine()}\n{options.rounds} interleaved rounds; added to off: median of the differences within rounds"
    )
    with tempfile.TemporaryDirectory(prefix="commlens-bench-") as name:
        scratch = Path(name)
        program = scratch / "calls"
        subprocess.run(
            [f"mpicc.{options.mpi}", "-O2", "-w", str(HERE / "calls.c"), "-o", str(program)], check=True
        )
        for ranks in (1, 2):
            taken: dict[tuple[str, Row], list[float]] = defaultdict(list)
            for number in range(options.rounds):
                at = number % len(CHOICES)
                for choice in CHOICES[at:] + CHOICES[:at]:
                    profile = scratch / f"{ranks}-{number}-{choice}.db"
                    output = launch(options.mpi, ranks, [program], RUNNER, profile, MATRIX=choice)
                    for row, ns in rows_of(output).items():
                        taken[choice, row].append(ns)
            for row in [row for choice, row in taken if choice == "off"]:
                off = taken["off", row]
                for choice in CHOICES[1:]:
                    added = [b - a for a, b in zip(off, taken[choice, row])]
                    print(
                        f"{row[0]:30} {row[1]:5} {choice:4} {statistics.median(off):9.1f} "
                        f"{statistics.median(taken[choice, row]):9.1f}   {spread(added, 'ns')}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
