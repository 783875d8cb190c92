# SPDX-License-Identifier: Apache-2.0
"""Regions of many ranks beside the files of Caliper: time to write, bytes, and time to load.

    pip install caliper-reader                           # what reads such files; without it these columns stay empty
    .venv/bin/python bench/annotated_scale.py            # virtual ranks up to 4,096, and real ones of Intel MPI up to 64
    .venv/bin/python bench/annotated_scale.py --large    # to 32,768, and real ones up to 256

Caliper itself is in no package that PyPI or Debian have, so nothing of it runs here. What is compared is its format: a file
with a line for every region of every rank, as its region profiles have, with the columns that commlens keeps. It is written
by this program, and read by Caliper's own reader.
"""

from __future__ import annotations

import argparse
import importlib
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import scale

sys.path.insert(0, str(scale.ROOT / "tests" / "mpi"))
from bench.run import BUILD, machine
from harness import Mpi

from commlens.profile import open_profile

REGIONS = 50
VIRTUAL, LARGE = (2, 16, 256, 4096), (32768,)
REAL, REAL_LARGE = (2, 16, 64), (256,)
ROWS = """SELECT path, rank, calls, time_ns, time_min_ns, time_max_ns, nested_ns, mpi_ns
            FROM region_time JOIN region_path USING (region)"""
# Names of Caliper's, and the numbers of its first nodes: those of the types, which a file does not have.
COLUMNS = ("mpi.rank", "region.count", "sum#time.duration", "min#time.duration", "max#time.duration",
           "sum#exclusive", "sum#mpi.time")  # fmt: skip
STRING, FIRST_FREE = 3, 40


def rows_of(profile: Path) -> list[tuple[object, ...]]:
    """Load all regions of all ranks, by the reader."""
    with open_profile(str(profile)) as db:
        return [tuple(row) for row in db.execute(ROWS)]


def write_cali(rows: list[tuple[object, ...]], to: Path) -> None:
    """Write the same rows as Caliper's text: nodes for names and paths, and a line of numbers for each."""
    attribute = FIRST_FREE + 1
    lines = [
        f"__rec=node,id={FIRST_FREE},attr=10,data=276,parent={STRING}",
        f"__rec=node,id={attribute},attr=8,data=region,parent={FIRST_FREE}",
    ]
    numbers = []
    for name in COLUMNS:
        attribute += 1
        numbers.append(str(attribute))
        lines.append(f"__rec=node,id={attribute},attr=8,data={name},parent={STRING}")
    nodes: dict[str, int] = {}
    for path, rank, calls, total, shortest, longest, nested, mpi in sorted(rows, key=lambda row: str(row[0])):
        at = str(path)
        if at not in nodes:
            parent, _, name = at.rpartition("/")
            nodes[at] = attribute + 1 + len(nodes)
            within = f",parent={nodes[parent]}" if parent else ""
            lines.append(f"__rec=node,id={nodes[at]},attr={FIRST_FREE + 1},data={name}{within}")
        seconds = [
            f"{int(str(ns)) / 1e9:.6f}"
            for ns in (total, shortest, longest, int(str(total)) - int(str(nested)), mpi)
        ]
        values = "=".join([str(rank), str(calls), *seconds])
        lines.append(f"__rec=ctx,ref={nodes[at]},attr={'='.join(numbers)},data={values}")
    to.write_text("\n".join(lines) + "\n")


def beside(profile: Path, scratch: Path) -> tuple[int, float, float, float]:
    """Return rows, seconds to load them, and of Caliper's format megabytes and seconds to load."""
    begin = time.perf_counter()
    rows = rows_of(profile)
    ours = time.perf_counter() - begin
    if not rows:
        raise SystemExit(f"{profile}: no regions in it")
    cali = scratch / "profile.cali"
    write_cali(rows, cali)
    try:
        reader = importlib.import_module("caliperreader").CaliperReader()
    except ImportError:
        return len(rows), ours, cali.stat().st_size / 1e6, float("nan")
    begin = time.perf_counter()
    reader.read(str(cali))
    theirs = time.perf_counter() - begin
    if len(reader.records) != len(rows):
        raise SystemExit(f"{len(reader.records)} records instead of {len(rows)}")
    return len(rows), ours, cali.stat().st_size / 1e6, theirs


def file_of(folder: Path) -> Path:
    """Return the profile below `folder`: one file, or a directory of shards."""
    return next(path for path in folder.iterdir() if path.name.startswith("profile"))


def virtual(ranks: int, scratch: Path) -> str:
    """Return the row of a job of virtual ranks."""
    keep = scratch / f"virtual-{ranks}"
    with_regions = scale.measure(ranks, scale.DEFAULT, regions=REGIONS, keep=keep)
    without = scale.measure(ranks, scale.DEFAULT)
    summary = scale.measure(ranks, scale.SUMMARY, regions=REGIONS)
    rows, ours, cali_mb, theirs = beside(file_of(keep), scratch)
    added = with_regions.profile_bytes - without.profile_bytes
    return (
        f"| {ranks:,} | {rows:,} | {1e3 * without.seconds:,.0f} | {1e3 * with_regions.seconds:,.0f} "
        f"| {1e3 * summary.seconds:,.0f} | {added / 1e6:,.2f} | {added / rows:.1f} | {cali_mb:,.2f} | {1e6 * cali_mb / rows:.1f} "
        f"| {ours:.3f} | {theirs:.3f} |"
    )


def real(mpi: Mpi, program: Path, ranks: int, scratch: Path) -> str:
    """Return the row of a real job."""
    results = []
    for regions in ("0", str(REGIONS)):
        result = mpi.run(
            ranks, [program, "3", regions], {"COMMLENS_AGGREGATORS": "1"}, timeout=300, once=True
        )
        if result.rc != 0:
            raise SystemExit(
                f"{' '.join(result.command)}: exit code {result.rc}\n{result.stdout}{result.stderr}"
            )
        with closing(sqlite3.connect(result.profile)) as db:
            (write,) = db.execute(
                "SELECT SUM(ns) / 1e6 FROM overhead WHERE what IN ('agree', 'write')"
            ).fetchone()
        results.append((result, write))
    (without, write_without), (under, write) = results
    rows, ours, cali_mb, theirs = beside(under.profile, scratch)
    added = under.profile.stat().st_size - without.profile.stat().st_size
    return (
        f"| {ranks:,} | {rows:,} | {write_without:,.1f} | {write:,.1f} | {added / 1e6:,.2f} | {added / rows:.1f} "
        f"| {cali_mb:,.2f} | {1e6 * cali_mb / rows:.1f} | {ours:.3f} | {theirs:.3f} |"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--large", action="store_true", help="32,768 virtual and 256 real ranks, too")
    parser.add_argument(
        "--mpi", default="intel", help="for real ranks, as tests/mpi names it (default: %(default)s)"
    )
    options = parser.parse_args()
    begun = machine()
    with tempfile.TemporaryDirectory(prefix="commlens-scale-") as place:
        scratch = Path(place)
        print(f"Virtual ranks, {REGIONS} regions each:\n")
        print("| ranks | rows of regions | finalize without, ms | with, ms | summary, ms | regions, MB | bytes a row "
              "| Caliper's format, MB | bytes a row | load, s | caliper-reader, s |")  # fmt: skip
        print("|" + "--:|" * 11)
        for ranks in VIRTUAL + (LARGE if options.large else ()):
            print(virtual(ranks, scratch), flush=True)
        mpi = Mpi(options.mpi, scratch)
        lib = BUILD / "lib"
        program = mpi.compile(
            scale.ROOT / "bench" / "scale" / "pattern.c", None, f"-L{lib}", "-lcommlens-api", f"-Wl,-rpath,{lib}",
            flags=["-DWITH_REGIONS", f"-I{scale.ROOT / 'include'}"],
        )  # fmt: skip
        print(f"\nReal ranks, {options.mpi} {mpi.release}, {REGIONS} regions each:\n")
        print("| ranks | rows of regions | write without, ms | with, ms | regions, MB | bytes a row | Caliper's format, MB "
              "| bytes a row | load, s | caliper-reader, s |")  # fmt: skip
        print("|" + "--:|" * 10)
        for ranks in REAL + (REAL_LARGE if options.large else ()):
            print(real(mpi, program, ranks, scratch), flush=True)
    print(f"\n{begun}; at the end {machine().rsplit(', load ', 1)[1]}.")


if __name__ == "__main__":
    main()
