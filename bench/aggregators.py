# SPDX-License-Identifier: Apache-2.0
"""How many ranks should write the profile: real jobs on a slow file system, beside the scale laboratory.

    .venv/bin/python bench/aggregators.py                    # 512 ranks of Intel MPI, 3 rounds: a quarter of an hour
    .venv/bin/python bench/aggregators.py --page             # and writes docs/evidence/aggregators.md

The file system is bench/slow_files.c: one server, which takes a set time for each operation on a name and for each byte,
one request after the other. The laboratory (bench/scale.py) has the same server. Needs root, fuse3 and libfuse3-dev.

A time is that from the call of MPI_Finalize on the last rank to the moment at which the last rank has left commlens.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import scale
from bench.run import machine

sys.path.insert(0, str(scale.ROOT / "tests" / "mpi"))
from harness import Mpi

PAGE = scale.ROOT / "docs" / "evidence" / "aggregators.md"
MARK = "<!-- written by bench/aggregators.py; DO NOT EDIT below -->"
HERE = scale.ROOT / "bench"
ROWS = 100  # of each rank, in the program and in the laboratory


@contextmanager
def slow_files(place: Path, name_us: float, byte_ns: float) -> Iterator[Path]:
    """Mount the slow file system, empty."""
    server, below, mounted = place / "slow_files", place / "below", place / "mounted"
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True
    ).stdout.split()
    subprocess.run(["cc", "-O2", str(HERE / "slow_files.c"), "-o", str(server), *flags], check=True)
    below.mkdir()
    mounted.mkdir()
    command = [str(server), str(below), str(name_us), str(byte_ns), str(mounted), "-f", "-s"]
    # The server of a cluster does not share its processors with the ranks.
    process = subprocess.Popen(["nice", "-n", "-19", *command], stdin=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while not mounted.is_mount():
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("the slow file system was not mounted")
            time.sleep(0.05)
        yield mounted
    finally:
        subprocess.run(["fusermount3", "-u", str(mounted)], check=False)
        process.wait()


def finalize_seconds(mpi: Mpi, program: Path, ranks: int, aggregators: int, folder: Path) -> float:
    """Run one job, whose profile goes to the folder, and return what its MPI_Finalize took."""
    profile = folder / f"{aggregators}-{time.monotonic_ns()}.db"
    settings = {"COMMLENS_AGGREGATORS": str(aggregators)}
    done = mpi.run(ranks, [program], settings, timeout=900, profile=profile, once=True)
    times = [tuple(map(float, line.split())) for line in done.lines if line]
    if done.rc != 0 or len(times) != ranks or any(left == 0 for _, left in times):
        raise SystemExit(f"{' '.join(done.command)}: exit code {done.rc}\n{done.stderr}")
    written = profile if aggregators == 1 else profile.with_suffix(".commlens")
    if not written.exists():
        raise SystemExit(f"{written} is missing\n{done.stderr}")
    if aggregators == 1:
        with closing(sqlite3.connect(written)) as db:
            (rows,) = db.execute(
                "SELECT COUNT(*) FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op WHERE op.name IN "
                "('MPI_Irecv', 'MPI_Isend', 'MPI_Send', 'MPI_Recv', 'MPI_Sendrecv')"
            ).fetchone()
        if rows != ROWS * ranks:
            raise SystemExit(f"{rows} rows instead of {ROWS * ranks}")
    return max(left for _, left in times) - max(called for called, _ in times)


def laboratory(options: argparse.Namespace, wanted: Sequence[int]) -> dict[int, float]:
    """Return the laboratory's time for each number of aggregators, with the same server."""
    scale.FILE_OP_NS, scale.FILE_NS_PER_BYTE = int(1e3 * options.name_us), options.byte_ns
    return {
        aggregators: statistics.median(
            scale.measure(options.ranks, str(aggregators)).seconds for _ in range(options.rounds)
        )
        for aggregators in wanted
    }


def table(found: dict[int, list[float]], virtual: dict[int, float]) -> list[str]:
    """Return the curve in Markdown: medians, the range of the rounds, and the laboratory's time."""
    best = min(found, key=lambda aggregators: statistics.median(found[aggregators]))
    best_virtual = min(virtual, key=lambda aggregators: virtual[aggregators])
    lines = [
        "| aggregators | real job, median, s | of the rounds, s | laboratory, s |",
        "|--:|--:|--:|--:|",
    ]
    for aggregators, seconds in found.items():
        mark = "**" if aggregators == best else ""
        mark_virtual = "**" if aggregators == best_virtual else ""
        lines.append(
            f"| {aggregators:,} | {mark}{statistics.median(seconds):.2f}{mark} | {min(seconds):.2f} to {max(seconds):.2f} "
            f"| {mark_virtual}{virtual[aggregators]:.3f}{mark_virtual} |"
        )
    return lines


def sweep(options: argparse.Namespace, wanted: Sequence[int]) -> dict[int, list[float]]:
    """Run the jobs of each round in turns."""
    found: dict[int, list[float]] = {aggregators: [] for aggregators in wanted}
    with tempfile.TemporaryDirectory(prefix="commlens-aggregators-") as name:
        place = Path(name)
        mpi = Mpi(options.mpi, place)
        program = mpi.compile(HERE / "finalize_rows.c")
        with slow_files(place, options.name_us, options.byte_ns) as folder:
            for number in range(options.rounds):
                for aggregators in wanted if number % 2 == 0 else wanted[::-1]:
                    seconds = finalize_seconds(mpi, program, options.ranks, aggregators, folder)
                    found[aggregators].append(seconds)
                    print(f"{aggregators} aggregators: {seconds:.3f} s", file=sys.stderr, flush=True)
    return found


def rounds_of(number: int) -> str:
    """Return the number of rounds in words."""
    return "one round" if number == 1 else f"{number} rounds in turns"


def main() -> None:
    """Run, print, and write the page if that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mpi", default="intel", help="as tests/mpi names it (default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=512, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument(
        "--name-us", type=float, default=2000, help="of an operation on a name (default: %(default)s)"
    )
    parser.add_argument("--byte-ns", type=float, default=0.5, help="of a byte (default: %(default)s)")
    parser.add_argument("--page", action="store_true", help="write docs/evidence/aggregators.md, too")
    options = parser.parse_args()
    wanted = [*(4**power for power in range(10) if 4**power < options.ranks), options.ranks]
    load = os.getloadavg()[0]
    virtual = laboratory(options, wanted)
    found = sweep(options, wanted)
    words = "\n".join(
        [
            f"{options.mpi}, {options.ranks} ranks on this machine with {ROWS} rows each, {rounds_of(options.rounds)}; "
            f"{options.name_us:g} µs for each operation on a name, {options.byte_ns:g} ns for each byte. {machine()}; load "
            f"of other work before {load:.0f}.",
            "",
            *table(found, virtual),
            "",
        ]
    )
    print(words)
    if options.page:
        PAGE.write_text(
            PAGE.read_text(encoding="utf-8").split(MARK)[0] + MARK + "\n\n" + words, encoding="utf-8"
        )


if __name__ == "__main__":
    main()
