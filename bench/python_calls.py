# SPDX-License-Identifier: Apache-2.0
"""What a call of MPI costs in Python: at one depth and at many, in generators, and in another thread.

    .venv/bin/python bench/python_calls.py [--rounds 12] [--versions 3.9,3.12]    # after tools/pythons.sh

Each version of Python runs this file with Open MPI, without commlens and with it, in turns.  Prints what an MPI_Iprobe takes
without commlens, and what commlens adds to it: the median and the quartiles of the differences within rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # this file also runs where nothing is installed
    from mpi4py import MPI

CALLS = 20_000
DEPTHS = 20


def call_at_depths(comm: MPI.Comm, depths: int) -> None:
    """Call MPI_Iprobe at each depth of a recursion."""
    comm.Iprobe()
    if depths > 1:
        call_at_depths(comm, depths - 1)


def call_in_generators(comm: MPI.Comm, depths: int) -> Iterator[None]:
    """Call MPI_Iprobe in generators inside generators."""
    comm.Iprobe()
    yield
    if depths > 1:
        yield from call_in_generators(comm, depths - 1)


def time_shapes() -> None:
    """Print the microseconds of a call for each shape of program."""
    from mpi4py import MPI

    comm = MPI.COMM_SELF

    def call_in_loop() -> None:
        for _ in range(CALLS):
            comm.Iprobe()

    def call_in_recursion() -> None:
        for _ in range(CALLS // DEPTHS):
            call_at_depths(comm, DEPTHS)

    def call_generators() -> None:
        for _ in range(CALLS // DEPTHS):
            for _ in call_in_generators(comm, DEPTHS):
                pass

    def call_in_thread() -> None:
        thread = threading.Thread(target=call_in_loop)
        thread.start()
        thread.join()

    shapes = {
        "a loop": call_in_loop,
        f"a recursion, {DEPTHS} depths": call_in_recursion,
        f"{DEPTHS} nested generators": call_generators,
        "a loop in another thread": call_in_thread,
    }
    for name, function in shapes.items():
        function()
        begin = time.perf_counter()
        function()
        print(f"{name}|{(time.perf_counter() - begin) / CALLS * 1e6}")


def measure(version: str, rounds: int, scratch: Path) -> list[str]:
    """Return the lines of the table for one version of Python."""
    from bench.run import RUNNER, launch, spread

    pythons = Path(__file__).resolve().parents[1] / "build" / "pythons" / version
    argv = ["env", f"PYTHONPATH={pythons / 'packages'}", "MPI4PY_MPIABI=openmpi", str(pythons / "python")]
    taken: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for number in range(rounds):
        for is_under in (number % 2 == 0, number % 2 == 1):
            runner = RUNNER if is_under else None
            output = launch("openmpi", 1, [*argv, __file__, "--time"], runner, scratch / f"{number}.db")
            for line in output.splitlines():
                name, _, microseconds = line.partition("|")
                taken[name, is_under].append(float(microseconds))
    lines = []
    for name in dict.fromkeys(name for name, _ in taken):
        alone, under = taken[name, False], taken[name, True]
        added = [b - a for a, b in zip(alone, under, strict=True)]
        lines.append(f"{version:5} {name:24} {statistics.median(alone):5.1f} us, and {spread(added, 'us')}")
    return lines


def main() -> None:
    """Measure and print."""
    root = Path(__file__).resolve().parents[1]
    sys.path.insert(0, str(root))
    from bench.run import machine

    parser = argparse.ArgumentParser(description="What a call of MPI costs in Python.")
    parser.add_argument("--rounds", type=int, default=12, help="at least 2 (default 12)")
    parser.add_argument("--versions", help="which versions of Python (default: all of build/pythons)")
    options = parser.parse_args()
    known = sorted(path.parent.name for path in root.glob("build/pythons/*/python"))
    versions = options.versions.split(",") if options.versions else sorted(known, key=lambda v: int(v[2:]))
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(prefix="commlens-python-") as name:
        for version in versions:
            print("\n".join(measure(version, options.rounds, Path(name))), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--time"]:
        time_shapes()
    else:
        main()
