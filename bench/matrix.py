# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of matrices: heat maps of operation x message size x ranks, on against off; and their size.

    .venv/bin/python bench/matrix.py                    # some minutes
    .venv/bin/python bench/matrix.py --svg DIRECTORY    # and the maps as pictures

Each number is a median over runs in which all ways are measured in turns; in brackets, the quartiles of the ratio.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import scale
from bench.run import HERE, RUNNER, launch, machine, rows_of

WAYS = ("off", "p2p", "all")
"""Values of COMMLENS_MATRIX; all are compared with the first."""
Times = dict[tuple[str, int], dict[str, list[float]]]
"""Operation and bytes -> way -> nanoseconds, one for each round."""


def measure(mpi: str, ranks: int, rounds: int, program: Path, scratch: Path) -> Times:
    """Run all ways in turns."""
    found: Times = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        for way in WAYS[number % len(WAYS) :] + WAYS[: number % len(WAYS)]:
            profile = scratch / f"{ranks}-{number}-{way}.db"
            output = launch(
                mpi, ranks, ["env", f"COMMLENS_MATRIX={way}", str(RUNNER), program], None, profile
            )
            for row, ns in rows_of(output).items():
                found[row][way].append(ns)
            if sys.stderr.isatty():
                print(
                    f"\r{mpi}, {ranks} ranks: run {number + 1} of {rounds}, {way}   ", end="", file=sys.stderr
                )
    return found


def ratios(times: dict[str, list[float]], way: str) -> list[float]:
    """Return the ratio of each round's time in this way to the time without matrices."""
    return [a / b for a, b in zip(times[way], times[WAYS[0]], strict=True)]


def size_of(number: int) -> str:
    """Return bytes with a unit."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024 or unit == "MiB":
            return f"{number} {unit}"
        number //= 1024
    raise AssertionError


def heat_map(found: Times, way: str) -> list[str]:
    """Return the table of one way: percent added, quartiles, nanoseconds added."""
    sizes = sorted({size for _, size in found})
    lines = [
        "| operation | " + " | ".join(map(size_of, sizes)) + " |",
        "|---|" + "--:|" * len(sizes),
    ]
    for operation in dict.fromkeys(name for name, _ in found):
        cells = []
        for size in sizes:
            times = found[operation, size]
            percent = [100 * (r - 1) for r in ratios(times, way)]
            low, middle, high = statistics.quantiles(percent, n=4, method="inclusive")
            added = statistics.median(a - b for a, b in zip(times[way], times[WAYS[0]], strict=True))
            cells.append(f"{middle:+.1f} % ({low:+.1f} .. {high:+.1f}), {added:+.0f} ns")
        lines.append(f"| {operation} | " + " | ".join(cells) + " |")
    return lines


def median_over_1_kib(found: Times, way: str) -> float:
    """Return the median of all ratios of messages of 1 KiB and more, in percent added."""
    return statistics.median(
        100 * (r - 1) for (_, size), times in found.items() if size >= 1024 for r in ratios(times, way)
    )


def median_percent(found: Times, way: str) -> dict[tuple[str, int], float]:
    """Return the median of what a way adds to the time, in percent, by operation and bytes."""
    return {row: 100 * (statistics.median(ratios(times, way)) - 1) for row, times in found.items()}


def picture(percent: Mapping[tuple[str, int], float], title: str) -> str:
    """Return a map of percent added by operation and bytes as SVG: red is more, blue is less, full colour is 10 %."""
    sizes = sorted({size for _, size in percent})
    operations = list(dict.fromkeys(name for name, _ in percent))
    width, height, left, top = 84, 28, 120, 56
    total = (left + width * len(sizes) + 12, top + height * len(operations) + 12)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total[0]}" height="{total[1]}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{total[0]}" height="{total[1]}" fill="white"/>',
        f'<text x="12" y="20" font-weight="bold">{title}</text>',
    ]
    for x, size in enumerate(sizes):
        at = left + width * x + width // 2
        parts.append(f'<text x="{at}" y="{top - 8}" text-anchor="middle">{size_of(size)}</text>')
    for y, operation in enumerate(operations):
        at = top + height * y
        parts.append(f'<text x="{left - 8}" y="{at + 19}" text-anchor="end">{operation}</text>')
        for x, size in enumerate(sizes):
            added = percent[operation, size]
            fade = round(255 * (1 - min(abs(added) / 10, 1)))
            colour = f"rgb(255,{fade},{fade})" if added > 0 else f"rgb({fade},{fade},255)"
            parts.append(
                f'<rect x="{left + width * x}" y="{at}" width="{width - 2}" height="{height - 2}" '
                f'fill="{colour}" stroke="#ccc"/>'
                f'<text x="{left + width * x + width // 2}" y="{at + 19}" text-anchor="middle">{added:+.1f} %</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def stored(ranks: int, neighbours: int) -> list[str]:
    """Return what the matrix of a job of virtual ranks takes in its profile, and how long it is drawn."""
    without = scale.measure(ranks, "1")
    place = Path(tempfile.mkdtemp(prefix="commlens-matrix-")) / "profile"
    try:
        with_matrix = scale.measure(ranks, "1", neighbours=neighbours, keep=place)
        command = [str(HERE.parent / ".venv" / "bin" / "commlens"), "matrix", str(place / "profile.db")]
        begin = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        drawn = time.monotonic() - begin
    finally:
        shutil.rmtree(place.parent)
    size = with_matrix.profile_bytes - without.profile_bytes
    return [
        f"{ranks} virtual ranks, {neighbours} neighbours each: {size / 1e6:.1f} MB in the profile, "
        f"{size / (2 * ranks * neighbours):.1f} bytes a row, drawn in {drawn:.2f} s"
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mpi", nargs="+", default=["openmpi", "mpich"])
    parser.add_argument(
        "--ranks",
        nargs="+",
        type=int,
        default=[2**n for n in range(1, (os.cpu_count() or 2).bit_length())],
        help="default: powers of two as far as each has a core",
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--svg", type=Path, help="directory for the pictures")
    options = parser.parse_args()
    print(f"{machine()}. {options.rounds} runs of each, in turns.\n")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        for mpi in options.mpi:
            program = scratch / f"matrix-{mpi}"
            compile_it = [f"mpicc.{mpi}", "-O2", "-w", str(HERE / "matrix.c"), "-o", str(program)]
            subprocess.run(compile_it, check=True)
            for ranks in options.ranks:
                found = measure(mpi, ranks, options.rounds, program, scratch)
                for way in WAYS[1:]:
                    title = f"{mpi}, {ranks} ranks: COMMLENS_MATRIX={way} against {WAYS[0]}"
                    print(f"### {title}\n")
                    print("\n".join(heat_map(found, way)))
                    print(
                        f"\nMedian of all from 1 KiB on: {median_over_1_kib(found, way):+.2f} %\n", flush=True
                    )
                    if options.svg is not None:
                        options.svg.mkdir(parents=True, exist_ok=True)
                        (options.svg / f"matrix-{mpi}-{ranks}-{way}.svg").write_text(
                            picture(median_percent(found, way), title)
                        )
    print("\n".join(stored(4096, 26)))


if __name__ == "__main__":
    main()
