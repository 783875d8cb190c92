# SPDX-License-Identifier: Apache-2.0
"""Count the instructions that commlens adds to a call: the same on every machine, however busy.

    .venv/bin/python bench/instructions.py           # counts, beside those of instructions.csv
    .venv/bin/python bench/instructions.py --save    # writes instructions.csv

instructions.c runs under valgrind's callgrind, without and with commlens; the difference of all instructions of the
process during a block of calls is what is printed, of the block with fewest: the first one sets up, and in some a slice
of time ends.
tests/mpi/test_instructions.py holds new counts against the table.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.run import ENVIRONMENT, HERE, RUNNER

TABLE = HERE / "instructions.csv"
COLUMNS = (
    "compiler",
    "mpi",
    "call",
    "communicators",
    "alone",
    "matrix_off",
    "added",
    "frames_4",
    "frames_16",
)

Row = tuple[str, str, int]
"""MPI, call, communicators in turn."""

LEGS: dict[str, dict[str, str] | None] = {
    "alone": None,
    "matrix_off": {"COMMLENS_MATRIX": "off"},
    "added": {},
    "frames_4": {"COMMLENS_FRAMES": "4"},
    "frames_16": {"COMMLENS_FRAMES": "16"},
}
"""The options of each; None: without commlens."""


def compiler() -> str:
    """Return what compiled the library, as far as it matters for the code it makes: "g++ 12"."""
    done = subprocess.run(["c++", "-dumpversion"], capture_output=True, text=True, check=True)
    return f"g++ {done.stdout.split('.')[0].strip()}"


def dumps(folder: Path) -> dict[tuple[str, int], float]:
    """Return instructions per call, by call and communicators, of what callgrind has written."""
    found: dict[tuple[str, int], float] = {}
    for path in folder.glob("counted.*"):
        text = path.read_text(errors="replace")
        label = re.search(r"^desc: Trigger: Client Request: (.*)\|(\d+)\|(\d+)$", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
        if label and total:
            row, counted = (label[1], int(label[2])), int(total[1]) / int(label[3])
            found[row] = min(counted, found.get(row, counted))
    return found


def count(
    program: Path, settings: dict[str, str] | None, runner: Path, most: int, layout: int
) -> dict[tuple[str, int], float]:
    """Run `program` under callgrind, without commlens or with it and these options.

    most : communicators in turn of its last rows
    layout : where the communicators lie; see instructions.c
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command = [
            "valgrind",
            "--tool=callgrind",
            "--trace-children=yes",
            "--collect-atstart=no",  # the program says when
            f"--callgrind-out-file={folder}/counted.%p",
        ]
        command += [*([] if settings is None else [str(runner)]), str(program), str(most), str(layout)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMLENS_")}
        environment.update(ENVIRONMENT)
        environment.update(settings or {}, COMMLENS_OUTPUT=f"{folder}/profile.db")
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        found = dumps(folder)
        if done.returncode != 0 or not found:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return found


def measure(
    mpi: str, program: Path, runner: Path = RUNNER, most: int = 1024, layout: int = 0
) -> dict[Row, dict[str, float]]:
    """Return, for each row, what it takes alone, and what is added: without matrices, and with longer call paths."""
    legs = {leg: count(program, settings, runner, most, layout) for leg, settings in LEGS.items()}
    return {
        (mpi, call, communicators): {
            leg: round(counted[call, communicators] - (0 if leg == "alone" else alone), 1)
            for leg, counted in legs.items()
        }
        for (call, communicators), alone in sorted(legs["alone"].items())
    }


def read_table() -> dict[Row, dict[str, str]]:
    """Return the lines of instructions.csv."""
    with TABLE.open(newline="") as file:
        return {
            (line["mpi"], line["call"], int(line["communicators"])): line for line in csv.DictReader(file)
        }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpi", action="append", choices=["openmpi", "mpich"], help="default: both")
    parser.add_argument("--save", action="store_true", help="write instructions.csv")
    parser.add_argument("--runner", type=Path, default=RUNNER, help="commlens-run of another build")
    given = parser.parse_args()
    found: dict[Row, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for mpi in given.mpi or ["openmpi", "mpich"]:
            program = Path(scratch) / f"instructions-{mpi}"
            subprocess.run([f"mpicc.{mpi}", "-O2", "-w", HERE / "instructions.c", "-o", program], check=True)
            found.update(measure(mpi, program, given.runner))
    before = read_table() if TABLE.exists() else {}
    print(
        f"{'mpi':8} {'call':28} {'communicators':>13} {'alone':>8} {'matrix off':>10} {'added':>8} {'4 frames':>8} {'16':>8} {'table':>8}"
    )
    for row, counted in found.items():
        kept = before.get(row, {}).get("added", "")
        numbers = f"{counted['alone']:8.1f} {counted['matrix_off']:10.1f}"
        numbers += "".join(f" {counted[leg]:8.1f}" for leg in ("added", "frames_4", "frames_16"))
        print(f"{row[0]:8} {row[1]:28} {row[2]:13} {numbers} {kept:>8}")
    if given.save:
        with TABLE.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for row, counted in found.items():
                writer.writerow([compiler(), *row, *counted.values()])


if __name__ == "__main__":
    main()
