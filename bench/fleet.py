# SPDX-License-Identifier: Apache-2.0
"""A dataset as large as that of a centre: how fast profiles go in, how large it is, and how long each question takes.

    .venv/bin/python bench/fleet.py /scratch/fleet                    # 100,000 jobs, 10^8 rows: 10 GB, half an hour
    .venv/bin/python bench/fleet.py /scratch/fleet --parts questions  # the questions again
    .venv/bin/python bench/fleet.py /scratch/fleet --jobs 5000

Writes the tables of docs/evidence/fleet.md to the standard output. Each question runs in a process of its own, with DuckDB on two
threads and 4 GB; the rounds go through all questions in turn. Processor time and memory are those of the whole process, as the
kernel counts them, so that other programs do not distort them as they do the time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.fleet_wide import FAMILIES, write_wide
from bench.run import machine

from commlens.fleet.log import Log
from commlens.fleet.questions import NAMES

ROOT = Path(__file__).resolve().parents[1]
APPLICATIONS = ROOT / "tests" / "profiles" / "applications"
LIMITS = ("--threads", "2", "--memory", "4GB")
LIMIT_S = 600


class Cost(NamedTuple):
    """What a process cost: seconds, seconds of processors, MB of memory at most."""

    wall: float
    processor: float
    memory: float


def cost_of(*arguments: object) -> Cost:
    """Run `commlens` and return what it cost."""
    command = [sys.executable, "-m", "commlens", *map(str, arguments)]
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return Cost(time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def spread(values: Sequence[float], form: str = ".1f") -> str:
    """Return the median of values with the smallest and the largest one.

    >>> spread([1.0, 4.0, 2.0])
    '2.0 (1.0 .. 4.0)'
    """
    middle, *ends = (format(value, form) for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({' .. '.join(ends)})"


def load() -> str:
    """Return the load of the machine."""
    return f"load {os.getloadavg()[0]:.0f}"


def make(folder: Path, jobs: int) -> None:
    """Write the dataset, if it is not there, and print how large it is."""
    if not (folder / "set").exists():
        begin, spent = time.monotonic(), time.process_time()
        write_wide(folder / "set", jobs)
        print(
            f"written in {time.monotonic() - begin:.0f} s, {time.process_time() - spent:.0f} s of processor\n"
        )
    rows: dict[str, int] = defaultdict(int)
    size: dict[str, int] = defaultdict(int)
    state = Log(folder / "set").read()
    for file in state.files.values():
        rows[file.table] += file.rows
        size[file.table] += file.bytes
    jobs = rows["job"]
    print("| table | rows | files | MB | bytes a row |\n|---|--:|--:|--:|--:|")
    for table in sorted(rows, key=lambda table: -size[table]):
        files = len(state.of(table))
        print(
            f"| {table} | {rows[table]:,} | {files} | {size[table] / 1e6:,.1f} | {size[table] / rows[table]:.1f} |"
        )
    whole = sum(size.values())
    print(
        f"\n{jobs:,} jobs, {whole / 1e9:.2f} GB: {whole / rows['comm_family']:.0f} bytes a job and family"
        f" ({FAMILIES} families), {whole / jobs / 1000:.1f} kB a job\n"
    )


def copies(folder: Path, count: int) -> None:
    """Write profiles: recorded ones of applications, each many times with job ids of its own."""
    folder.mkdir()
    sources = sorted(APPLICATIONS.glob("*.db"))
    for number in range(count):
        path = folder / f"{number:05d}.db"
        shutil.copyfile(sources[number % len(sources)], path)
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA synchronous = OFF")
            db.execute("DELETE FROM meta WHERE key = 'job_id'")
            db.execute("INSERT INTO meta (key, value) VALUES ('job_id', ?)", (str(number),))


def ingest(folder: Path, profiles: int) -> None:
    """Print how fast profile files go in, how large they then are, and how fast they are known again."""
    shutil.rmtree(folder / "profiles", ignore_errors=True)
    shutil.rmtree(folder / "small", ignore_errors=True)
    copies(folder / "profiles", profiles)
    print(
        "| | profiles | s | s of processor | profiles a minute of processor | memory, MB |\n|---|--:|--:|--:|--:|--:|"
    )
    for name in ("new", "known before"):
        cost = cost_of("ingest", folder / "profiles", "--into", folder / "small")
        rate = 60 * profiles / cost.processor
        print(
            f"| {name} | {profiles:,} | {cost.wall:.0f} | {cost.processor:.1f} | {rate:,.0f} | {cost.memory:.0f} |"
        )
    print(f"\n{load()}\n")
    shutil.rmtree(folder / "profiles")


def questions(folder: Path, rounds: int) -> None:
    """Print what each question costs."""
    costs: dict[str, list[Cost]] = defaultdict(list)
    for _ in range(rounds):
        for name in NAMES:
            costs[name].append(cost_of("fleet", folder / "set", name, *LIMITS))
        costs["`--html`"].append(cost_of("fleet", folder / "set", "--html", folder / "page.html", *LIMITS))
        (folder / "rules.toml").write_text("last_days = 0\n", encoding="utf-8")
        costs["`--query`, one row"].append(
            cost_of("fleet", folder / "set", "--query", "SELECT COUNT(*) FROM job", *LIMITS)
        )
        print(f"<!-- {load()} -->", flush=True)
    print("| question | s | s of processor | half of it | memory, MB |\n|---|--:|--:|--:|--:|")
    for name, some in costs.items():
        wall, processor, memory = zip(*some)
        half = statistics.median(processor) / 2
        print(f"| {name} | {spread(wall)} | {spread(processor)} | {half:.1f} | {max(memory):,.0f} |")


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--profiles", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default="make,ingest,questions", help="some of them, with commas")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print(f"{machine()}, {os.cpu_count()} processors, {load()}\n")
    parts = options.parts.split(",")
    if "make" in parts:
        make(options.folder, options.jobs)
    if "ingest" in parts:
        ingest(options.folder, options.profiles)
    if "questions" in parts:
        questions(options.folder, options.rounds)


if __name__ == "__main__":
    main()
