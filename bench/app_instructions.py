# SPDX-License-Identifier: Apache-2.0
"""Count the instructions that commlens adds to a program of bench/apps, and how its options change the number.

Per message, test or put; on any machine, however busy.
Each program runs under callgrind as one process, with two numbers of rounds.  The difference leaves out how the
program begins and ends.

    .venv/bin/python bench/app_instructions.py
    .venv/bin/python bench/app_instructions.py message_rate --mpi mpich
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.apps import PROGRAMS, build
from bench.run import ENVIRONMENT, RUNNER


@dataclass(frozen=True)
class Runs:
    """The arguments of two runs of a program; how many `more` operations the second one makes, and `what` they are."""

    few: str
    many: str
    more: int
    what: str


RUNS = {
    "message_rate": Runs("200 64", "1200 64", 64_000, "message"),
    "polling": Runs("10 500", "210 500", 100_000, "test"),
    "wildcard": Runs("5000", "55000", 50_000, "message"),
    "onesided": Runs("20 200", "220 200", 40_000, "put"),
}
LEGS: dict[str, dict[str, str] | None] = {
    "alone": None,
    "added": {},
    "no matrix": {"COMMLENS_MATRIX": "off"},
    "no samples": {"COMMLENS_WAITING": "0"},
    "all timed": {"COMMLENS_CLOCK": "every"},
}
"""The options of each; None: without commlens."""


def count(program: Path, arguments: str, options: dict[str, str] | None) -> int:
    """Return the instructions of a whole run."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMLENS_")}
    environment.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as scratch:
        environment.update(options or {}, COMMLENS_OUTPUT=f"{scratch}/profile.db", COMMLENS_QUIET="1")
        command = ["valgrind", "--tool=callgrind", "--trace-children=yes"]
        command += [f"--callgrind-out-file={scratch}/counted.%p"]
        command += [*([] if options is None else [str(RUNNER)]), str(program), *arguments.split()]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
    # Open MPI starts another process beside one without launcher.
    ours = re.match(r"==(\d+)==", done.stderr)
    total = ours and re.search(rf"^=={ours[1]}== Collected : (\d+)", done.stderr, re.MULTILINE)
    if done.returncode != 0 or not total:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stderr}")
    return int(total[1])


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"default: {', '.join(RUNS)}")
    parser.add_argument("--mpi", action="append", choices=["openmpi", "mpich"], help="default: both")
    given = parser.parse_args()
    if unknown := sorted({*given.programs} - RUNS.keys()):
        parser.error(f"no such program: {', '.join(unknown)}")
    print(f"{'mpi':8} {'program':13} {'per':13}" + "".join(f"{leg:>11}" for leg in LEGS))
    for mpi in given.mpi or ["openmpi", "mpich"]:
        for name in given.programs or RUNS:
            runs, program = RUNS[name], build(PROGRAMS[name], mpi)
            print(f"{mpi:8} {name:13} {runs.what:13}", end="", flush=True)
            alone = 0.0
            for options in LEGS.values():
                few, many = (count(program, arguments, options) for arguments in (runs.few, runs.many))
                taken = (many - few) / runs.more - alone
                alone = alone or taken
                print(f"{taken:11.0f}", end="", flush=True)
            print()


if __name__ == "__main__":
    main()
