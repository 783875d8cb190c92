# SPDX-License-Identifier: Apache-2.0
"""Measure what the choices of an option add to a call: each against the first one, in turns, as bench/run.py does it.

.venv/bin/python bench/option_calls.py MATRIX off p2p all
.venv/bin/python bench/option_calls.py CLOCK every sampled --mpi mpich
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.run import HERE, RUNNER, Row, launch, machine, rows_of, spread


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("option", help="without COMMLENS_")
    parser.add_argument("choices", nargs="+", help="two or more of its values")
    parser.add_argument("--rounds", type=int, default=12, help="runs with each choice (default 12)")
    parser.add_argument("--mpi", default="openmpi", help="which MPI library (default openmpi)")
    options = parser.parse_args()
    first, *others = options.choices
    print(
        f"{machine()}\n{options.rounds} interleaved rounds; call, communicators, COMMLENS_{options.option}, ns with "
        f"{first}, ns with this choice, added: median of the differences within rounds"
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
                at = number % len(options.choices)
                for choice in options.choices[at:] + options.choices[:at]:
                    profile = scratch / f"{ranks}-{number}-{choice}.db"
                    output = launch(
                        options.mpi, ranks, [program], RUNNER, profile, **{options.option: choice}
                    )
                    for row, ns in rows_of(output).items():
                        taken[choice, row].append(ns)
            for row in [row for choice, row in taken if choice == first]:
                base = taken[first, row]
                for choice in others:
                    added = [b - a for a, b in zip(base, taken[choice, row])]
                    print(
                        f"{row[0]:30} {row[1]:5} {choice:7} {statistics.median(base):9.1f} "
                        f"{statistics.median(taken[choice, row]):9.1f}   {spread(added, 'ns')}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
