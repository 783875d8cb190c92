# SPDX-License-Identifier: Apache-2.0
"""What the calls of commlens.h cost: regions, loops and metrics, beside two bare time stamps and beside empty functions.

    .venv/bin/python bench/regions.py                                   # a minute
    .venv/bin/python bench/regions.py --before ../old/build/release     # and an older build, in turns with this one

Each row is a median over runs of the fastest of its blocks (bench/README.md says why), with quartiles and extremes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.run import BUILD, HERE, Row, launch, machine, rows_of

STAMPS: Row = ("two time stamps", 1)
EMPTY = "empty"


def compile_annotated(mpi: str, source: Path, to: Path, *options: str) -> Path:
    """Compile a program that uses commlens.h, as its guide says: linked to the library of empty functions."""
    lib = BUILD / "lib"
    subprocess.run(
        [
            f"mpicc.{mpi}", "-O2", "-Wall", *options, f"-I{HERE.parent / 'include'}", str(source), "-o", str(to),
            f"-L{lib}", "-lcommlens-api", f"-Wl,-rpath,{lib}", "-lm",
        ],
        check=True,
    )  # fmt: skip
    return to


def measure(
    mpi: str, rounds: int, builds: dict[str, Path], scratch: Path
) -> dict[str, dict[Row, list[float]]]:
    """Return nanoseconds by leg, EMPTY or a build, and row: one for each round, legs in turns."""
    program = compile_annotated(mpi, HERE / "regions.c", scratch / f"regions-{mpi}")
    legs = [(EMPTY, None), *((name, build / "bin" / "commlens-run") for name, build in builds.items())]
    taken: dict[str, dict[Row, list[float]]] = {name: defaultdict(list) for name, _ in legs}
    for number in range(rounds):
        for name, runner in legs[number % len(legs) :] + legs[: number % len(legs)]:
            output = launch(mpi, 1, [program], runner, scratch / f"{name}-{number}.db")
            for row, ns in rows_of(output).items():
                taken[name][row].append(ns)
    return taken


def quartiles(values: Sequence[float]) -> str:
    """Return median and quartiles as text."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.1f} ({low:.1f} .. {high:.1f})"


def table(taken: dict[str, dict[Row, list[float]]]) -> list[str]:
    """Return the rows in Markdown: the empty functions, each build, and how much of that is not the time stamps."""
    builds = [name for name in taken if name != EMPTY]
    heads = [f"{name}{what}" for name in builds for what in (", ns", ", less two stamps")]
    lines = [
        f"| what | regions | empty functions, ns | {' | '.join(heads)} |",
        "|---|--:|--:|" + "--:|" * len(heads),
    ]
    for row in taken[EMPTY]:
        cells = []
        for name in builds:
            under = taken[name][row]
            beyond = [ns - stamps for ns, stamps in zip(under, taken[name][STAMPS])]
            cells += [
                quartiles(under),
                quartiles(beyond) if row[0].startswith("pair") else "",
            ]
        lines.append(f"| {row[0]} | {row[1]} | {quartiles(taken[EMPTY][row])} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=12, help="runs of each (default: %(default)s)")
    parser.add_argument("--mpi", default="openmpi", help="which MPI library (default: %(default)s)")
    parser.add_argument(
        "--before",
        type=Path,
        help="another build to take in turns with this one: build/release of an older checkout",
    )
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: at least 2, the spread needs them")
    builds = {"commlens": BUILD}
    if options.before:
        builds["before"] = options.before.resolve()
    begun = machine()
    with tempfile.TemporaryDirectory(prefix="commlens-bench-") as place:
        lines = table(measure(options.mpi, options.rounds, builds, Path(place)))
    print("\n".join(lines))
    print(
        f"\n{begun}; at the end {machine().rsplit(', load ', 1)[1]}. {options.rounds} runs of each, in turns."
    )


if __name__ == "__main__":
    main()
