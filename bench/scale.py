# SPDX-License-Identifier: Apache-2.0
"""What MPI_Finalize costs when many ranks become one profile: the real code, for virtual ranks.

    .venv/bin/python bench/scale.py                    # up to 4,096 ranks: a minute
    .venv/bin/python bench/scale.py --large            # up to 32,768: ten minutes, 8 GB of memory
    .venv/bin/python bench/scale.py --large --page     # and writes docs/evidence/scale.md and docs/evidence/scale.svg

Every rank runs the code of core/collect and core/out on a clock of its own (bench/scale/fibers.h): what it computes takes
the time it takes here, messages take the time of a network, and one server serves all files, one after the other.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from commlens.reports.run import PHASES  # noqa: E402

PROGRAM = ROOT / "build" / "release" / "bin" / "commlens-scale"
PAGE, PICTURE = ROOT / "docs" / "evidence" / "scale.md", ROOT / "docs" / "evidence" / "scale.svg"
MARK = "<!-- written by bench/scale.py; DO NOT EDIT below -->"

DUPLICATES, OPERATIONS = 19, 5  # of MPI_COMM_WORLD beside it; in each: 100 rows a rank
SMALL, LARGE = (16, 64, 256, 1024, 4096), (16384, 32768)

# A network of today, and a parallel file system that is not busy.
LATENCY_NS, NS_PER_BYTE = 2000, 0.1  # of a message; 10 GB/s
FILE_OP_NS, FILE_NS_PER_BYTE = 100_000, 0.5  # 10,000 operations on names a second; 2 GB/s, for all together


@dataclass(frozen=True)
class Point:
    """One job."""

    ranks: int
    aggregators: int
    rows: int
    seconds: float
    messages: int
    bytes: int
    file_operations: int
    profile_bytes: int
    peak_kib: int
    phases: Mapping[str, float]  # seconds, of the rank where each took longest


@dataclass(frozen=True)
class Curve:
    """One number of ranks."""

    points: list[Point]  # by aggregators, from one to one for each rank
    default: Point
    summary: Point


DEFAULT, SUMMARY = "0", "summary"


def phases_of(profile: Path) -> dict[str, int]:
    """Return the phases of MPI_Finalize in a profile, a file or a folder, each of the rank where it took longest, in ns."""
    found = dict.fromkeys(("wait", *PHASES), 0)
    for path in profile.glob("shard.*.db") if profile.is_dir() else [profile]:
        with closing(sqlite3.connect(path)) as db:
            told = dict(db.execute("SELECT what, MAX(ns) FROM overhead GROUP BY what"))
            told.update(  # where the ranks have no rows of their own
                db.execute(
                    "SELECT substr(counter, 5, length(counter) - 7), max FROM spread WHERE counter LIKE 'own_%'"
                )
            )
            if "store" not in told:
                raise SystemExit(f"{path}: the phases of MPI_Finalize are not in it")
            found = {phase: max(ns, told.get(phase, 0)) for phase, ns in found.items()}
    return found


def measure(
    ranks: int,
    aggregators: str,
    duplicates: int = DUPLICATES,
    slices: int = 0,
    regions: int = 0,
    neighbours: int = 0,
    keep: Path | None = None,
) -> Point:
    """Run one job with that many aggregators, with DEFAULT as many as the library takes, or in SUMMARY detail.

    Its profile goes to `keep`, which must not be there, or nowhere.
    """
    place = Path(tempfile.mkdtemp(prefix="commlens-scale-"))
    try:
        done = subprocess.run(
            [
                str(PROGRAM), str(place), str(ranks), aggregators, str(duplicates), str(OPERATIONS), str(slices),
                str(regions), str(neighbours), str(LATENCY_NS), str(NS_PER_BYTE), str(FILE_OP_NS),
                str(FILE_NS_PER_BYTE),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"{PROGRAM}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        (profile,) = place.iterdir()
        phases = {phase: ns / 1e9 for phase, ns in phases_of(profile).items()}
        if keep is not None:
            shutil.copytree(place, keep)
    finally:
        shutil.rmtree(place)
    found = dict(word.split("=") for word in done.stdout.split())
    seconds = float(found["finalize_ns"]) / 1e9
    # Of one writer; several are not each the slowest in every phase.
    if profile.suffix == ".db" and sum(ns for phase, ns in phases.items() if phase != "collect") > seconds:
        raise SystemExit(f"{ranks} ranks: the phases {phases} are more than all of MPI_Finalize, {seconds} s")
    return Point(
        int(found["ranks"]), int(found["aggregators"]), int(found["rows"]), seconds,
        int(found["messages"]), int(found["bytes"]), int(found["file_operations"]), int(found["profile_bytes"]),
        int(found["peak_kib"]), phases,
    )  # fmt: skip


def sweep(sizes: Iterable[int], repeats: int) -> dict[int, Curve]:
    """Measure all numbers of ranks with 1, 4, 16, ... aggregators, with the default and in summary detail; medians."""
    found = {}
    for ranks in sizes:
        wanted = [*(str(4**i) for i in range(10) if 4**i < ranks), str(ranks), DEFAULT, SUMMARY]
        runs: dict[str, list[Point]] = {aggregators: [] for aggregators in wanted}
        for _ in range(repeats if ranks <= max(SMALL) else 1):
            for aggregators in wanted:  # in turns: what disturbs one disturbs all
                begin = time.monotonic()
                runs[aggregators].append(measure(ranks, aggregators))
                if sys.stderr.isatty():
                    print(f"\r{ranks} ranks, {aggregators} aggregators: {time.monotonic() - begin:.1f} s    ",
                          end="", file=sys.stderr)  # fmt: skip
        *points, default, summary = (
            sorted(of_one, key=lambda p: p.seconds)[len(of_one) // 2] for of_one in runs.values()
        )
        found[ranks] = Curve(points, default, summary)
    return found


def fit(points: Sequence[Point]) -> tuple[float, float]:
    """Return the seconds of a row and of a file that fit best: seconds = row * rows / A + file * A, relative errors."""
    xx = xy = yy = x1 = y1 = 0.0
    for p in points:
        x, y = p.rows / p.aggregators / p.seconds, p.aggregators / p.seconds
        xx, xy, yy, x1, y1 = xx + x * x, xy + x * y, yy + y * y, x1 + x, y1 + y
    determinant = xx * yy - xy * xy
    return (x1 * yy - y1 * xy) / determinant, (y1 * xx - x1 * xy) / determinant


def table(found: dict[int, Curve]) -> list[str]:
    """Return one line for each number of ranks: milliseconds by aggregators, by default, and in summary detail."""
    columns = sorted({p.aggregators for curve in found.values() for p in curve.points[:-1]})
    names = [*(f"A = {a:,}" for a in columns), "A = ranks", "default", "its A", "summary"]
    lines = [f"| ranks | rows | {' | '.join(names)} |", "|--:|--:|" + "--:|" * len(names)]
    for ranks, curve in found.items():
        by_a = {p.aggregators: p for p in curve.points[:-1]}
        best = min(p.seconds for p in curve.points)
        cells = [by_a.get(a) for a in columns] + [curve.points[-1], curve.default]
        texts = [
            ""
            if p is None
            else f"**{1e3 * p.seconds:,.1f}**"
            if p.seconds == best
            else f"{1e3 * p.seconds:,.1f}"
            for p in cells
        ]
        texts += [f"{curve.default.aggregators:,}", f"{1e3 * curve.summary.seconds:,.1f}"]
        lines.append(f"| {ranks:,} | {curve.default.rows:,} | {' | '.join(texts)} |")
    return lines


def volumes(found: dict[int, Curve]) -> list[str]:
    """Return what is sent and written, for the default, the two ends, and summary detail."""
    lines = [
        "| ranks | A | messages | sent, MB | file operations | profile, MB | memory of the laboratory, MB |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for ranks, curve in found.items():
        shown = {str(p.aggregators): p for p in (curve.points[0], curve.default, curve.points[-1])}
        for a, p in {**shown, SUMMARY: curve.summary}.items():
            lines.append(
                f"| {ranks:,} | {a} | {p.messages:,} | {p.bytes / 1e6:,.2f} | {p.file_operations:,} "
                f"| {p.profile_bytes / 1e6:,.2f} | {p.peak_kib / 1024:,.0f} |"
            )
    return lines


def composed(found: dict[int, Curve]) -> list[str]:
    """Return the phases of MPI_Finalize by the number of ranks, by default and in summary detail."""
    lines = [
        f"| ranks | detail | A | {' | '.join(PHASES)} | all |",
        "|--:|---|--:|" + "--:|" * (len(PHASES) + 1),
    ]
    for ranks, curve in found.items():
        for detail, p in (("full", curve.default), ("summary", curve.summary)):
            times = " | ".join(f"{1e3 * p.phases[phase]:,.1f}" for phase in PHASES)
            lines.append(f"| {ranks:,} | {detail} | {p.aggregators:,} | {times} | {1e3 * p.seconds:,.1f} |")
    return lines


def picture(found: dict[int, Curve]) -> str:
    """Return the curves as SVG: seconds over aggregators, both logarithmic; a ring marks the default."""
    width, height, left, bottom = 720, 420, 70, 50
    points = [p for curve in found.values() for p in (*curve.points, curve.default)]
    x_max = math.log10(max(p.aggregators for p in points))
    y_low = math.floor(math.log10(min(p.seconds for p in points)))
    y_high = math.ceil(math.log10(max(p.seconds for p in points)))

    def x(aggregators: float) -> float:
        return left + (width - left - 110) * math.log10(aggregators) / x_max

    def y(seconds: float) -> float:
        return 20 + (height - bottom - 20) * (y_high - math.log10(seconds)) / (y_high - y_low)

    colours = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for power in range(y_low, y_high + 1):
        at = y(10.0**power)
        label = f"{10.0 ** (power + 3):,.0f} ms" if power < 0 else f"{10**power:,} s"
        parts.append(f'<path d="M{left} {at:.1f}H{width - 110}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    for power in range(int(x_max) + 1):
        at = x(10.0**power)
        parts.append(f'<path d="M{at:.1f} 20V{height - bottom}" stroke="#eee"/>')
        parts.append(
            f'<text x="{at:.1f}" y="{height - bottom + 18}" text-anchor="middle">{10**power:,}</text>'
        )
    parts.append(
        f'<text x="{(left + width - 110) / 2}" y="{height - 10}" text-anchor="middle">aggregators</text>'
    )
    for (ranks, curve), colour in zip(found.items(), colours):
        line = " ".join(f"{x(p.aggregators):.1f},{y(p.seconds):.1f}" for p in curve.points)
        last = curve.points[-1]
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<circle cx="{x(curve.default.aggregators):.1f}" cy="{y(curve.default.seconds):.1f}" r="5" fill="none" '
            f'stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(
            f'<text x="{x(last.aggregators) + 6:.1f}" y="{y(last.seconds) + 4:.1f}" fill="{colour}">{ranks:,} ranks</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def text(found: dict[int, Curve]) -> str:
    """Return what is measured, in Markdown."""
    points = [p for curve in found.values() for p in curve.points if p.ranks >= 256]
    row, file = fit(points)
    errors = [
        abs(row * p.rows / p.aggregators + file * p.aggregators - p.seconds) / p.seconds for p in points
    ]
    nekbone, summary = (measure(1024, detail, 102) for detail in ("1", SUMMARY))
    sliced = measure(1024, "1", 102, 16)  # 8,240 entries, about as many as a thread keeps
    million = 100_000 * 463
    best = math.sqrt(million * row / file)

    def predicted(aggregators: float) -> str:
        return f"{row * million / aggregators + file * aggregators:,.2f} s"

    return "\n".join(
        [
            *table(found),
            "",
            "Milliseconds from the call of MPI_Finalize to the last rank's return from collecting; the best of full detail is bold.",
            "",
            *composed(found),
            "",
            "Milliseconds by phase, as table `overhead` of the profile has them ([tables](../reference/tables.md)), each of the rank "
            "where it took longest; *all* has the name of the file, the table of shards and the word to the other ranks besides.",
            "",
            *volumes(found),
            "",
            f"**Fit** for 256 ranks and more: {1e6 * row:.2f} µs · rows / A + {1e3 * file:.2f} ms · A; half of the points are "
            f"within {100 * statistics.median(errors):.0f} % of it, all within {100 * max(errors):.0f} %.",
            "",
            f"**100,000 ranks with 463 rows each**, by that: {predicted(1)} with one aggregator, {predicted(best)} with "
            f"{best:,.0f}, {predicted(100_000 / 16)} with one for 16 ranks, {predicted(100_000)} with a file for each.",
            "",
            f"**The pattern of the paper's Nekbone run**, 1,024 ranks, 102 duplicates of MPI_COMM_WORLD beside it, 5 procedures "
            f"in each: {nekbone.rows:,} rows, {nekbone.profile_bytes / 1e6:.2f} MB, "
            f"{nekbone.profile_bytes / nekbone.rows:.1f} bytes a row, {nekbone.seconds:.2f} s with one aggregator; "
            f"with slices of time {sliced.profile_bytes / 1e6:.2f} MB; "
            f"in summary detail {summary.profile_bytes / 1e3:,.0f} kB, {summary.seconds:.2f} s.",
            "",
        ]
    )


def main() -> None:
    """Measure, print, and write the page if that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--large", action="store_true", help="up to 32,768 ranks")
    parser.add_argument("--repeats", type=int, default=3, help="of up to 4,096 ranks (default: %(default)s)")
    parser.add_argument(
        "--page", action="store_true", help="write docs/evidence/scale.md and docs/evidence/scale.svg, too"
    )
    options = parser.parse_args()
    found = sweep((*SMALL, *(LARGE if options.large else ())), options.repeats)
    words = text(found)
    print(words)
    if options.page:
        PAGE.write_text(PAGE.read_text().split(MARK)[0] + MARK + "\n\n" + words)
        PICTURE.write_text(picture(found))


if __name__ == "__main__":
    main()
