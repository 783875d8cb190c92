# SPDX-License-Identifier: Apache-2.0
"""Measure how often `commlens compare` claims a difference between equal runs, and how often it finds one of 5 %.

    PYTHONPATH=python python bench/equal_runs.py [openmpi|mpich ...]

Runs the FFT of bench/apps 40 times with each MPI library. Then draws 10 against 10 of the runs, 1,000 times: once as they
are, and once with 5 % added to the time of the row that takes longest, in the runs of the second side. Runs are stored
in build/equal, and continue where they were stopped.
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path
from statistics import quantiles

from commlens.compare.model import Comparison, compare
from commlens.compare.read import RowKey, RunData, read_run
from commlens.reports.query import Selection

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from bench import study  # noqa: E402

FOLDER = ROOT / "build" / "equal"
RANKS, RUNS, SIDE, TRIES, EFFECT = 4, 40, 10, 1000, 0.05


def measure(mpi: str) -> list[RunData]:
    """Run the program with the library's defaults, and read the profiles."""
    folder = FOLDER / mpi
    environment = study.build(mpi, folder)
    paths = [folder / f"{number}.db" for number in range(RUNS)]
    for number, path in enumerate(paths):
        if not path.exists():
            print(f"{mpi}, run {number + 1} of {RUNS}", file=sys.stderr, flush=True)
            study.run(mpi, RANKS, path, environment)
    return [read_run(str(path), Selection()) for path in paths]


def has_claim(result: Comparison) -> bool:
    """Return whether a time is said to differ."""
    return any(row.is_significant for row in (result.whole, result.elapsed, *result.rows))


def slower(run: RunData, key: RowKey) -> RunData:
    """Return a run in which the calls of a row took longer."""
    counts = run.rows[key]
    return replace(run, rows={**run.rows, key: counts._replace(time_ns=round(counts.time_ns * (1 + EFFECT)))})


def main(libraries: list[str]) -> None:
    """Print a line for each library and question."""
    for mpi in libraries:
        runs = measure(mpi)
        longest = max(runs[0].rows, key=lambda key: runs[0].rows[key].time_ns)
        family = runs[0].families[longest.family].label
        dice = random.Random(1)
        claimed, found, beside = 0, 0, 0
        for _ in range(TRIES):
            drawn = dice.sample(runs, 2 * SIDE)
            first, second = drawn[:SIDE], drawn[SIDE:]
            claimed += has_claim(compare(first, second))
            rows = compare(first, [slower(run, longest) for run in second]).rows
            is_found = [
                (row.family, row.operation, row.bin) == (family, longest.operation, longest.bin)
                for row in rows
                if row.is_significant
            ]
            found += any(is_found)
            beside += not all(is_found)
        low, middle, high = quantiles(run.rows[longest].time_ns for run in runs)
        print(
            f"{mpi}, {RUNS} equal runs, {TRIES} times {SIDE} against {SIDE}: claims in {claimed};"
            f" {EFFECT:.0%} more in {longest.operation}, whose quartiles are {(high - low) / middle:.0%} apart:"
            f" found in {found}, with another claim in {beside}"
        )


if __name__ == "__main__":
    main(sys.argv[1:] or list(study.LIBRARIES))
