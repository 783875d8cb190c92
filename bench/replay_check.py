# SPDX-License-Identifier: Apache-2.0
"""Compare the time of collectives in programs with that of their replay, with the library's own choice of algorithm.

    PYTHONPATH=python python bench/replay_check.py [--mpi openmpi] [--pairs 10] [--seconds 5] [PROGRAM...]

Runs each program of bench/apps and the replay of its collectives in turns. Both give the operation time per call, the mean of
the processes as `commlens waits` defines it: the time without waiting for late ones. A line of the table has the medians
of the pairs, the relative difference with its 95 % interval, and "yes" if this contains zero. Two ranks, so that each
has a processor. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.apps import PROGRAMS, build  # noqa: E402
from bench.run import ENVIRONMENT, launch  # noqa: E402

from commlens.overhead.estimate import relative  # noqa: E402
from commlens.overhead.legs import split  # noqa: E402
from commlens.profile import open_profile  # noqa: E402
from commlens.tune.cases import read_cases  # noqa: E402
from commlens.tune.measurements import Measurements  # noqa: E402
from commlens.tune.model import Case  # noqa: E402
from commlens.tune.plan import read_plan  # noqa: E402
from commlens.tune.replay import replay  # noqa: E402

NAMES = ("bcast_barrier", "rows_columns", "fft", "cg", "amr", "sample_sort")
RANKS = 2
LEAST_CALLS = 50

SPLIT_SQL = """\
SELECT SUM(sampled.time_ns), SUM(sampled.waiting_ns), SUM(total.time_ns), SUM(total.calls)
  FROM sampled JOIN comm ON comm.id = sampled.comm JOIN op ON op.id = sampled.op
       JOIN (SELECT key.comm, key.op, key.bin, SUM(part.time_ns) AS time_ns, SUM(part.calls) AS calls
               FROM key_total AS part JOIN key ON key.id = part.key GROUP BY key.comm, key.op, key.bin) AS total
       ON total.comm = sampled.comm AND total.op = sampled.op AND total.bin = sampled.bin
 WHERE comm.family = ? AND comm.size = ? AND op.name = ? AND sampled.bin = ?"""

Pair = tuple[float, float]
"""Operation time per call in a run and in its replay, ns."""


def wait_for_quiet(seconds: float) -> None:
    """Wait until no other process wanted a processor for a second, but no longer than this."""
    until, quiet = time.monotonic() + seconds, 0
    while quiet < 10 and time.monotonic() < until:
        running = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].split("/")[0])
        quiet = quiet + 1 if running <= 1 else 0
        time.sleep(0.1)


def operation_ns(connection: sqlite3.Connection, case: Case) -> float | None:
    """Return the operation time per call of a rank in a profile; None if no call was split."""
    key = (case.family, case.comm_size, f"MPI_{case.collective.capitalize()}", case.bin)
    sampled, waiting, spent, calls = connection.execute(SPLIT_SQL, key).fetchone()
    return float(spent) * (1 - waiting / sampled) / calls if sampled and calls else None


def replayed_ns(found: Measurements, case: int) -> float | None:
    """Return the operation time per call of the library's own choice: the mean of all repetitions."""
    times = [one.operation_ns for one in found.times if (one.case, one.candidate) == (case, 0) and one.round]
    return fmean(times) if times else None


def measure(name: str, mpi: str, runner: Path, seconds: float, folder: Path) -> dict[Case, Pair]:
    """Run a program and its replay once."""
    program = PROGRAMS[name]
    binary = build(program, mpi)
    profile = folder / f"{name}.db"
    launch(mpi, RANKS, [binary, *map(str, program.usual)], runner, profile)
    pairs = {}
    with open_profile(str(profile)) as connection:
        plan = read_plan(connection, (), ())
        places = [
            place for place in plan.places if (place.calls_per_rank or 0) >= LEAST_CALLS or place.is_worth
        ]
        cases = read_cases(connection, plan, places)
        words = split([f"mpirun.{mpi}", "-n", str(RANKS), str(binary)])
        found = replay(cases, words, folder / f"{name}.tune", budget_s=seconds, announce=False)
        for i, case in enumerate(found.cases):
            values = operation_ns(connection, case), replayed_ns(found, i)
            if values[0] is not None and values[1] is not None:
                pairs[replace(case, message_bytes=0, family=0)] = (values[0], values[1])
    return pairs


def line(name: str, case: Case, pairs: list[Pair]) -> str:
    """Return the line of a case."""
    change = relative(
        [after for _, after in pairs], [before for before, _ in pairs], np.random.default_rng(1)
    )
    assert change is not None, "both took time"
    run, again = (median(pair[i] for pair in pairs) / 1000 for i in (0, 1))
    agrees = "" if np.isnan(change.low) else "yes" if change.low <= 0 <= change.high else "no"
    bin = "" if case.bin <= 0 else f"{2 ** (case.bin - 1):,} B"
    between = f"{change.low:+8.1%} to {change.high:+7.1%}"
    return f"{name:14} {case.collective:10} {bin:>11} {run:10.2f} {again:10.2f} {change.value:+8.1%} {between} {agrees}"


def main() -> None:
    """Check the programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=NAMES)
    parser.add_argument("--mpi", default="openmpi", choices=("openmpi", "mpich"))
    parser.add_argument("--seconds", type=float, default=5.0, help="for each replay")
    parser.add_argument("--patience", type=float, default=10.0, help="seconds to wait for a quiet machine")
    parser.add_argument("--pairs", type=int, default=10, help="runs and replays; 6 give an interval")
    parser.add_argument("--runner", type=Path, default=ROOT / "build" / "release" / "bin" / "commlens-run")
    given = parser.parse_args()
    os.environ.update(ENVIRONMENT, MPICC=f"mpicc.{given.mpi}")
    found: dict[tuple[str, Case], list[Pair]] = defaultdict(list)
    for _ in range(given.pairs):
        for name in given.programs:
            wait_for_quiet(given.patience)
            with tempfile.TemporaryDirectory() as folder:
                for case, pair in measure(name, given.mpi, given.runner, given.seconds, Path(folder)).items():
                    found[name, case].append(pair)
                    times = f"run {pair[0] / 1000:.2f} us, replay {pair[1] / 1000:.2f} us"
                    print(f"{name} {case.collective}: {times}", file=sys.stderr, flush=True)
    print("program        collective        size     run us  replay us   change  95 % interval        agrees")
    for (name, case), pairs in found.items():
        print(line(name, case, pairs))


if __name__ == "__main__":
    main()
