# SPDX-License-Identifier: Apache-2.0
"""What longer call paths add to a profile, for a program of yours.

    .venv/bin/python bench/path_lengths.py [--rounds 5] [--frames 1,4,16,64] -- mpirun.openmpi -n 2 ./app input

Runs the command with each COMMLENS_FRAMES in turns, as `commlens overhead` does, which puts commlens-run in front of the
application.  Prints for each: families of communicators, call paths, call sites on these,
counters of all ranks, the size of the profile, and the time of commlens in MPI_Finalize without waiting for other ranks: the
median of the slowest ranks.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.run import BUILD, ENVIRONMENT, machine  # noqa: E402

from commlens.overhead.legs import HERE, split  # noqa: E402

COUNTED = {
    "families": "SELECT COUNT(DISTINCT family) FROM comm",
    "paths": "SELECT COUNT(DISTINCT callsite) FROM key",
    "sites": "SELECT COUNT(*) FROM callsite",
    "counters": "SELECT COUNT(*) FROM cell_row",
}
FINALIZE = """\
SELECT MAX(ns) FROM (SELECT rank, SUM(ns) AS ns FROM overhead WHERE what NOT IN ('init', 'wait') GROUP BY rank)"""


def profiled(command: Sequence[str], frames: str, profile: Path) -> dict[str, float]:
    """Run the command once; return the columns of the table."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMLENS_")}
    environment.update(ENVIRONMENT, COMMLENS_OUTPUT=str(profile), COMMLENS_QUIET="1", COMMLENS_FRAMES=frames)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=600)
    with sqlite3.connect(profile) as connection:
        found: dict[str, float] = {
            name: connection.execute(sql).fetchone()[0] for name, sql in COUNTED.items()
        }
        found["KiB"] = profile.stat().st_size / 1024
        found["ms"] = connection.execute(FINALIZE).fetchone()[0] / 1e6
    connection.close()
    profile.unlink()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measures what longer call paths add to a profile.")
    parser.add_argument("--rounds", type=int, default=5, help="default 5")
    parser.add_argument("--frames", default="1,4,16,64", help="values of COMMLENS_FRAMES (default 1,4,16,64)")
    parser.add_argument("command", nargs="+", help="launcher, its options, and the program")
    options = parser.parse_args()
    lengths = options.frames.split(",")
    runner = str(BUILD / "bin" / "commlens-run")
    command = [runner if word == HERE else word for word in split(options.command)]
    found: dict[str, list[dict[str, float]]] = {frames: [] for frames in lengths}
    with tempfile.TemporaryDirectory(prefix="commlens-lengths-") as scratch:
        for number in range(options.rounds):
            for frames in lengths[number % len(lengths) :] + lengths[: number % len(lengths)]:
                found[frames].append(profiled(command, frames, Path(scratch) / "profile.db"))
    print(machine())
    print(f"{'frames':>6} {'families':>9} {'paths':>7} {'sites':>7} {'counters':>9} {'KiB':>8} {'ms':>8}")
    for frames, runs in found.items():
        middle = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        print(
            f"{frames:>6} {middle['families']:9,.0f} {middle['paths']:7,.0f} {middle['sites']:7,.0f}"
            f" {middle['counters']:9,.0f} {middle['KiB']:8,.0f} {middle['ms']:8.1f}"
        )


if __name__ == "__main__":
    main()
