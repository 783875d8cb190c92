# SPDX-License-Identifier: Apache-2.0
"""What snapshots of all counters cost (COMMLENS_FLUSH_EVERY): time of the recorder, bytes, time of the application.

    .venv/bin/python bench/history.py                      # five minutes
    .venv/bin/python bench/history.py --ranks 128 --seconds 30

Writes docs/evidence/history.md's table to the standard output.  Runs with snapshots and without form pairs; the last column
is how much longer a step takes with snapshots, from the differences within the pairs, with its 95 % interval (six pairs or
more).  The processor time of the recorder is the kernel's, so other programs do not distort it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.regions import compile_annotated, quartiles
from bench.run import BUILD, ENVIRONMENT, HERE, RUNNER, machine

from commlens.overhead.estimate import FEWEST, relative

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def recorder_of(folder: Path) -> Path | None:
    """Return the folder in /proc of the process that records the job."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "cmdline").read_bytes().split(b"\0")
            if words[1:2] == [b"record"] and any(bytes(folder) in word for word in words):
                return path
    return None


def run(program: Path, ranks: int, seconds: int, every: int, folder: Path) -> tuple[list[float], float, int]:
    """Run the program; return the times of its steps in us, the recorder's processor time in s, and its memory in KiB."""
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMLENS_")}
    environment.update(ENVIRONMENT, COMMLENS_OUTPUT=str(folder / "profile.db"), COMMLENS_QUIET="1")
    environment.update(OMPI_MCA_mpi_yield_when_idle="1", COMMLENS_FLUSH_EVERY=str(every))
    command = [
        "mpirun.openmpi",
        "-n",
        str(ranks),
        str(RUNNER),
        str(program),
        "run",
        str(seconds // 2),
        "2",
        "0",
    ]
    spent, memory = 0.0, 0
    with (folder / "output").open("w+") as output:
        job = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output)
        recorder = None
        while job.poll() is None:
            time.sleep(0.1)
            if every and recorder is None:  # once: reading all of /proc takes time from the ranks
                recorder = recorder_of(folder)
            with suppress(OSError):
                if recorder is not None:
                    fields = (recorder / "stat").read_text().rpartition(")")[2].split()
                    spent = (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
                    memory = max(memory, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") // 1024)
        if job.returncode != 0:
            sys.exit(f"{command} ended with {job.returncode}")
        output.seek(0)
        lines = [[int(word) for word in line.split("|")[1:]] for line in output]
    return [line[1] / line[0] / 1000 for line in lines], spent, memory


def snapshots_of(folder: Path) -> list[int]:
    """Return the bytes of each snapshot."""
    files = list(folder.glob("commlens-arenas-*/*.history"))
    done = subprocess.run(
        [BUILD / "bin" / "commlens-arena", "snapshots", *files],
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return [int(line.split("\t")[3]) for line in done.stdout.splitlines()[1:]]


def change_text(without: list[float], with_: list[float]) -> str:
    """Return the relative change from the first times to the second, pair by pair, with its interval.

    >>> change_text([100.0] * 6, [101.0] * 6), change_text([100.0], [99.0])
    ('+1.00 % (+1.00 to +1.00 %)', '-1.00 % (too few pairs for an interval)')
    """
    found = relative(with_, without, np.random.default_rng(1))
    if found is None:
        return "no pairs"
    interval = "too few pairs for an interval"
    if not np.isnan(found.low):
        interval = f"{100 * found.low:+.2f} to {100 * found.high:+.2f} %"
    return f"{100 * found.value:+.2f} % ({interval})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 32])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=FEWEST)
    arguments = parser.parse_args()
    print(f"Measured on {machine()}.\n")
    print(
        "| ranks | snapshots | bytes of the first, of each further one | processor time of a snapshot | share of one "
        "core, every 10 s | memory of the recorder | step without, us | step with, us | with to without |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as scratch:
        program = compile_annotated("openmpi", HERE / "stencil.c", Path(scratch) / "stencil")
        for ranks in arguments.ranks:
            steps: dict[int, list[float]] = {0: [], arguments.every: []}
            cost: list[float] = []
            most = 0
            for number in range(arguments.pairs):
                for every in (0, arguments.every) if number % 2 == 0 else (arguments.every, 0):
                    folder = Path(scratch) / f"{ranks}-{number}-{every}"
                    times, spent, memory = run(program, ranks, arguments.seconds, every, folder)
                    steps[every].append(statistics.mean(times))
                    if every:
                        sizes = snapshots_of(folder)
                        cost.append(spent / len(sizes))
                        most = max(most, memory)
            each = statistics.median(cost)
            print(
                f"| {ranks} | {len(sizes)} | {sum(sizes[:2]):,}, {statistics.median(sizes[2:]):,.0f} "
                f"| {1000 * each:.1f} ms | {100 * each / 10:.3f} % | {most / 1024:.1f} MiB "
                f"| {quartiles(steps[0])} | {quartiles(steps[arguments.every])} "
                f"| {change_text(steps[0], steps[arguments.every])} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
