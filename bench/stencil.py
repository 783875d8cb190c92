# SPDX-License-Identifier: Apache-2.0
"""Measure what annotation costs an application (stencil.c), and what copying its counters every two seconds costs.

    .venv/bin/python bench/stencil.py              # four minutes
    .venv/bin/python bench/stencil.py --rounds 3 --seconds 20

The runs without and with commlens take turns. In each, blocks of steps with and without annotation alternate: their
difference is the cost of annotation. The difference between the runs is the cost of the profiler.
While the job runs, the script recovers a profile from every copy, checks that it does not contradict itself, and compares it
with the one before.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.regions import compile_annotated, quartiles
from bench.run import ENVIRONMENT, HERE, RUNNER, launch, machine

COMMLENS = Path(sys.executable).with_name("commlens")
EVERY = 2  # seconds between two copies


def percent(ratios: Sequence[float]) -> str:
    """Return how much more than 1 these are: median and quartiles, in percent."""
    low, middle, high = (100 * (value - 1) for value in statistics.quantiles(ratios, n=4, method="inclusive"))
    return f"{middle:+.2f} % ({low:+.2f} .. {high:+.2f})"


def application(mpi: str, program: Path, ranks: int, rounds: int, pairs: int, scratch: Path) -> list[str]:
    """Return rows of Markdown: what annotation and profiler add to the application's steps."""
    taken: dict[str, list[float]] = defaultdict(list)
    legs: list[tuple[str, Path | None]] = [("without ", None), ("under ", RUNNER)]
    for number in range(rounds):
        for leg, runner in legs if number % 2 == 0 else reversed(legs):
            output = launch(
                mpi, ranks, [program, "ab", str(pairs)], runner, scratch / f"ab-{ranks}-{number}.db"
            )
            for line in output.splitlines():
                _, what, value = line.split("|")
                taken[leg + what].append(float(value))
    neither, annotated = taken["without 0"], taken["under 1"]
    under = [b / a for a, b in zip(neither, taken["under 0"])]
    both = [b / a for a, b in zip(neither, annotated)]
    return [
        f"| {ranks} | {statistics.median(taken['under regions a second']):,.0f} | {quartiles([ns / 1000 for ns in neither])} "
        f"| {percent(taken['without ratio'])} | {percent(taken['under ratio'])} | {percent(under)} | {percent(both)} |"
    ]  # fmt: skip


def faults_of(db: sqlite3.Connection) -> list[str]:
    """Return the contradictions within a profile.  Times were rounded to nanoseconds one by one."""
    checks = {
        "a region is shorter than the regions in it": "SELECT COUNT(*) FROM region_time WHERE nested_ns > time_ns",
        "a region is shorter than its MPI calls": "SELECT COUNT(*) FROM region_time WHERE mpi_ns > time_ns",
        "a region's nested time is not that of its children": """
            SELECT COUNT(*) FROM (SELECT parent.region, parent.execution, parent.rank, SUM(parent.nested_ns) AS nested,
              COALESCE((SELECT SUM(child.time_ns) FROM region_time child JOIN region ON region.id = child.region
                WHERE region.parent = parent.region AND child.execution = parent.execution AND child.rank = parent.rank), 0)
                AS inside, COUNT(*) AS terms
              FROM region_time parent GROUP BY 1, 2, 3) WHERE ABS(nested - inside) > 64 * terms""",
        "a loop's bins are not its iterations": """
            SELECT COUNT(*) FROM (SELECT region, execution, rank, SUM(iterations) AS n FROM loop_time GROUP BY 1, 2, 3)
              LEFT JOIN (SELECT region, execution, rank, SUM(iterations) AS m FROM loop_bin GROUP BY 1, 2, 3)
              USING (region, execution, rank) WHERE n IS NOT m""",
        "a rank's MPI calls are not its cells": """
            SELECT COUNT(*) FROM rank WHERE calls <> (SELECT SUM(cell.calls) FROM cell WHERE cell.rank = rank.rank)""",
    }
    return [what for what, sql in checks.items() if db.execute(sql).fetchone()[0]]


def totals_of(db: sqlite3.Connection) -> dict[tuple[str, ...], int]:
    """Return all counters that must not decrease."""
    found: dict[tuple[str, ...], int] = {}
    path = "(SELECT path FROM region_path WHERE region_path.region = {}.region)"
    for table, columns in {  # by names: numbers are those of one file
        "SELECT 'cell', rank, operation, communicator, bin, {} FROM counter": ("calls", "time_ns", "bytes_sent"),
        f"SELECT 'region', rank, {path.format('region_time')}, execution, iteration, {{}} FROM region_time":
            ("calls", "time_ns", "nested_ns", "mpi_ns"),
        f"SELECT 'loop', rank, {path.format('loop_time')}, execution, iteration, {{}} FROM loop_time":
            ("iterations", "time_ns"),
        f"SELECT 'value', rank, {path.format('metric_value')}, execution, metric, {{}} FROM metric_value": ("count",),
    }.items():  # fmt: skip
        sums = ", ".join(f"SUM({column})" for column in columns)
        for row in db.execute(table.format(sums) + " GROUP BY 1, 2, 3, 4, 5"):
            for column, value in zip(columns, row[5:]):
                found[(*map(str, row[:5]), column)] = value
    return found


def shrunk(
    before: dict[tuple[str, ...], int], now: dict[tuple[str, ...], int]
) -> tuple[list[tuple[str, ...]], float]:
    """Return the counts that decreased, and the largest decrease of a time in ms.

    A time may decrease for two reasons. A region that is open when the copy is made lasts until the copy is made; the next
    copy may show that it ended before. And each copy computes the length of a clock tick from the time up to this copy, so
    that two copies differ a little.
    """
    less = {key: before[key] - now.get(key, 0) for key in before if now.get(key, 0) < before[key]}
    counts = [key for key in less if not key[-1].endswith("_ns")]
    return counts, max((value / 1e6 for key, value in less.items() if key[-1].endswith("_ns")), default=0.0)


class Watcher:
    """Recovers each copy that a running job makes of its counters."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder, self.scratch = folder, scratch
        self.copies = 0
        self.faults: list[str] = []
        self.bytes = 0
        self.ms = 0.0
        self.last: dict[tuple[str, ...], int] = {}
        self.seen: tuple[tuple[str, int], ...] = ()

    def look(self, ranks: int) -> None:
        """Recover what is there when all ranks have written something new since the last look."""
        places = list(self.folder.glob("commlens-arenas-*"))
        arenas = [path for place in places for path in sorted(place.glob("*.arena"))]
        histories = [path for place in places for path in sorted(place.glob("*.history"))]
        arenas, ranks = (histories, 1) if histories else (arenas, ranks)
        seen = tuple((path.name, path.stat().st_mtime_ns) for path in arenas)
        if len(arenas) < ranks or any(new in self.seen for new in seen):
            return
        self.seen = seen
        place = self.scratch / f"copy-{self.copies}"
        shutil.copytree(arenas[0].parent, place)
        profile = place / "profile.db"
        done = subprocess.run(
            [str(COMMLENS), "recover", str(place), "-o", str(profile)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            self.faults.append(f"copy {self.copies}: exit code {done.returncode}: {done.stderr.strip()}")
            return
        with closing(sqlite3.connect(profile)) as db:
            self.faults += [f"copy {self.copies}: {what}" for what in faults_of(db)]
            totals = totals_of(db)
        self.compare(f"copy {self.copies}", totals)
        self.bytes = sum((place / path.name).stat().st_size for path in arenas)
        self.copies += 1
        shutil.rmtree(place)

    def compare(self, name: str, totals: dict[tuple[str, ...], int]) -> None:
        """Store the counters that decreased since the last copy."""
        counts, ms = shrunk(self.last, totals)
        self.faults += [f"{name}: less than before: {'/'.join(key)}" for key in counts[:3]]
        self.ms = max(self.ms, ms)
        self.last = totals


def flushed(
    mpi: str, program: Path, ranks: int, executions: int, leg: str, folder: Path, watches: bool
) -> tuple[list[list[int]], Watcher]:
    """Run executions of EVERY seconds: without copies, with those of COMMLENS_FLUSH_EVERY, or with commlens_flush()."""
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMLENS_")}
    environment.update(ENVIRONMENT, COMMLENS_OUTPUT=str(folder / "profile.db"), COMMLENS_QUIET="1")
    environment["OMPI_MCA_mpi_yield_when_idle"] = "1"
    if leg == "every":
        environment["COMMLENS_FLUSH_EVERY"] = str(EVERY)
    command = [
        f"mpirun.{mpi}",
        "-n",
        str(ranks),
        str(RUNNER),
        str(program),
        "run",
        str(executions),
        str(EVERY),
        str(int(leg == "call")),
    ]
    watcher = Watcher(folder, folder)
    with (folder / "output").open("w+") as output:
        job = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output)
        while job.poll() is None:
            time.sleep(0.2)
            if watches:
                watcher.look(ranks)
        if job.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {job.returncode}")
        output.seek(0)
        lines = [[int(word) for word in line.split("|")[1:]] for line in output]
    with closing(sqlite3.connect(folder / "profile.db")) as db:
        watcher.faults += [f"at the end: {what}" for what in faults_of(db)]
        watcher.compare("at the end", totals_of(db))
    return lines, watcher


def copies(
    mpi: str, program: Path, ranks: int, seconds: int, minute: int, rounds: int, scratch: Path
) -> list[str]:
    """Return rows of Markdown: a step's time with copies and without, in turns, and a run of which each copy is recovered."""
    legs = ("none", "every", "call")
    wall: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, list[float]] = defaultdict(list)
    calls: list[float] = []
    for number in range(rounds):
        for leg in legs[number % 3 :] + legs[: number % 3]:
            lines, _ = flushed(mpi, program, ranks, seconds // EVERY, leg, scratch / f"{leg}-{number}", False)
            wall[leg] += [line[1] / line[0] / 1000 for line in lines]
            cpu[leg] += [line[2] / line[0] / 1000 for line in lines]
            calls += [line[3] / 1e6 for line in lines] if leg == "call" else []
    names = {
        "none": "no copies",
        "every": f"COMMLENS_FLUSH_EVERY={EVERY}",
        "call": "commlens_flush() behind each execution",
    }
    rows = [
        f"| {names[leg]} | {len(wall[leg])} | {quartiles(wall[leg])} | {quartiles(cpu[leg])} |"
        for leg in legs
    ]
    low, middle, high = statistics.quantiles(calls, n=4, method="inclusive")
    rows += [
        "",
        f"One commlens_flush(): {middle:.2f} ms ({low:.2f} .. {high:.2f}), the longest {max(calls):.2f}: "
        f"{100 * middle / (1000 * EVERY):.3f} % of {EVERY} s, the longest {100 * max(calls) / (1000 * EVERY):.2f} %.",
        "",
    ]
    for leg in ("every", "call"):
        _, watcher = flushed(mpi, program, 2, minute // EVERY, leg, scratch / f"minute-{leg}", True)
        verdict = (
            "; ".join(watcher.faults)
            or "each is consistent in itself, and none has fewer calls, iterations or values than the one before"
        )
        rows += [
            f"**{minute} s with {names[leg]}**, 2 ranks, {watcher.bytes / 1e6:.2f} MB a copy: {watcher.copies} copies recovered "
            f"while it ran; {verdict}; the most that a time has become less is {watcher.ms:.2f} ms.",
            "",
        ]
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=6, help="runs of each leg (default: %(default)s)")
    parser.add_argument(
        "--pairs", type=int, default=1000, help="blocks of steps of each kind in a run (default: %(default)s)"
    )
    parser.add_argument("--ranks", default="1,2", help="how many (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=10, help="of a run with copies (default: %(default)s)")
    parser.add_argument(
        "--minute",
        type=int,
        default=60,
        help="seconds of the runs of which each copy is recovered (default: %(default)s)",
    )
    parser.add_argument("--mpi", default="openmpi", help="which MPI library (default: %(default)s)")
    parser.add_argument("--only", choices=["steps", "copies"], help="one half (default: both)")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: at least 2, the spread needs them")
    begun = machine()
    with tempfile.TemporaryDirectory(prefix="commlens-bench-") as place:
        scratch = Path(place)
        program = compile_annotated(options.mpi, HERE / "stencil.c", scratch / "stencil")
        if options.only != "copies":
            print(
                "| ranks | regions a second | step, neither, us | annotation alone | annotation, under commlens | commlens alone | both |"
            )
            print("|--:|--:|--:|--:|--:|--:|--:|")
            for ranks in map(int, options.ranks.split(",")):
                print(
                    "\n".join(
                        application(options.mpi, program, ranks, options.rounds, options.pairs, scratch)
                    ),
                    flush=True,
                )
            print()
        if options.only != "steps":
            print("| copies | executions | wall time of a step, us | processor time, us |\n|---|--:|--:|--:|")
            print(
                "\n".join(
                    copies(
                        options.mpi,
                        program,
                        1,
                        options.seconds,
                        options.minute,
                        max(2, options.rounds // 2),
                        scratch,
                    )
                )
            )
    print(f"{begun}; at the end {machine().rsplit(', load ', 1)[1]}.")


if __name__ == "__main__":
    main()
