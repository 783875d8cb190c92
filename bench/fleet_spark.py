# SPDX-License-Identifier: Apache-2.0
"""How the questions to a dataset scale with the workers of a Spark cluster on this machine.

    build/spark/bin/python bench/fleet_spark.py /scratch/fleet --jobs 5000    # after make test-spark; ten minutes

Writes a table of docs/evidence/fleet.md to the standard output. Each number of workers gets a session of its own on one cluster;
the first rounds, in which the JVMs compile, do not count. Where the machine has fewer processors than workers, or is busy, the time
tells little: then look at the processor time of the tasks of the busiest worker, which the kernel counts. It falls as the time would.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing import Process
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.fleet_wide import write_wide
from bench.run import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "spark"))

from cluster import cluster, use_workers

from commlens.fleet.answer import ask
from commlens.fleet.engine import Scope
from commlens.fleet.questions import read_question
from commlens.fleet.spark import SparkEngine

ASKED = ("procedures", "misuse")
TICKS = os.sysconf("SC_CLK_TCK")
WARM_UP = 2


def executors(application: str) -> dict[int, float]:
    """Return the executors of an application of Spark, with the seconds of processors that their tasks took.

    Other threads of an executor, above all those that compile, take most of the time of a short measurement.
    """
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "cmdline").read_bytes().split(b"\0")
            if (
                b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words
                and application.encode() in words
            ):
                found[int(path.name)] = sum(map(task_seconds, (path / "task").iterdir()))
    return found


def task_seconds(thread: Path) -> float:
    """Return the seconds of processors of a thread, if it runs tasks of Spark."""
    name, _, rest = (thread / "stat").read_text().rpartition(")")
    fields = rest.split()
    return (int(fields[11]) + int(fields[12])) / TICKS if "(Executor task" in name else 0.0


def round_of(engine: SparkEngine) -> tuple[float, list[float]]:
    """Ask all once; return the time, and the processor time of each executor, the busiest first."""
    application = engine._session.sparkContext.applicationId
    before, begin = executors(application), time.monotonic()
    for name in ASKED:
        ask(engine, read_question(name))
    took = time.monotonic() - begin
    after = executors(application)
    return took, sorted((spent - before.get(pid, 0) for pid, spent in after.items()), reverse=True)


def measure(dataset: Path, master: str, workers: int, count: int) -> None:
    """Ask a number of workers in some rounds; print the line of the table."""
    use_workers(workers)
    engine = SparkEngine(dataset, Scope(), master=master)
    rounds = [round_of(engine) for _ in range(WARM_UP + count)][WARM_UP:]
    assert all(len(spent) == workers for _, spent in rounds)
    engine.stop()
    of_round = zip(*((took, sum(spent), spent[0]) for took, spent in rounds))
    took, whole, most = (statistics.median(values) for values in of_round)
    print(f"| {workers} | {took:.1f} | {whole:.1f} | {most:.1f} |", flush=True)


def main() -> None:
    """Measure with one worker, then with more."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    dataset = options.folder / f"spark{options.jobs}"
    if not dataset.exists():
        write_wide(dataset, options.jobs)
    print(f"{machine()}\n\n{options.jobs:,} jobs; {', '.join(ASKED)}, one after the other\n")
    print(
        "| workers | s | s of processor, tasks of all workers | of the busiest one |\n|--:|--:|--:|--:|",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), options.workers) as master:
        for workers in range(1, options.workers + 1):
            # In a process of its own: the JVM of a process keeps the settings with which it began.
            one = Process(target=measure, args=(dataset, master, workers, options.rounds))
            one.start()
            one.join()
            assert one.exitcode == 0


if __name__ == "__main__":
    main()
