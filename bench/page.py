#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of `commlens html`, or of `commlens view`, for a large profile, in the command and in a browser.

    .venv/bin/python bench/page.py [--ranks 4096] [--rows 1000000] [--comms 2000] [--served]

Makes up a profile: a grid of ranks with 26 neighbours each, communicators of 64 ranks, and as many rows of counters as
asked for.  Prints the time of the command and the size of the page, the time until the first view is drawn, the time
from a click until the next drawing for every view, and the memory of the tab.  Needs chromium and chromium-driver.

A drawing is complete: numbers, charts and tables of the whole view; only a long table below the window waits for the
reader to scroll.  Each filter is a new one, so that its sums are not known yet.  Processor time is that of the thread
that draws: beside other programs, it says more than the time.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMLENS = ROOT / ".venv" / "bin" / "commlens"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "python")]

from browser import VIEWS, Browser, browser  # noqa: E402
from build_profile import OP_ID, ProfileBuilder  # noqa: E402

MEMBERS = 64
OPS = ("MPI_Allreduce", "MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Bcast", "MPI_Alltoallv", "MPI_Put")
SIDE_OF_NEIGHBOURS = (-1, 0, 1)
ROUNDS = 5
FILTERS = {
    "family": [f"family={4 + i}" for i in range(ROUNDS)],
    "operation": [f"op={OP_ID[name]}" for name in OPS[:ROUNDS]],
    "rank": [f"rank={17 + 300 * i}" for i in range(ROUNDS)],
    "everything": [""] * ROUNDS,
}
"""Filters of each kind; the last one is the way back to the whole run."""


def neighbours(rank: int, side: int) -> Iterator[int]:
    """Yield the 26 neighbours of a rank in a periodic cube."""
    x, y, z = rank // (side * side), rank // side % side, rank % side
    for dx in SIDE_OF_NEIGHBOURS:
        for dy in SIDE_OF_NEIGHBOURS:
            for dz in SIDE_OF_NEIGHBOURS:
                if (dx, dy, dz) != (0, 0, 0):
                    yield ((x + dx) % side * side + (y + dy) % side) * side + (z + dz) % side


def make(path: Path, ranks: int, rows: int, comms: int) -> None:
    """Write the profile."""
    build = ProfileBuilder(
        ranks=ranks, nodes=ranks // MEMBERS, meta={"program": "made-up", "slice_ns": "50000000"}
    )
    for i in range(comms):
        first = i * MEMBERS % ranks
        members = list(range(first, first + MEMBERS))
        build.comm(
            f"s{first}.{i}", members, family=2 + i // 100, parent=1, creator="MPI_Comm_split", callsite=1,
            members=f"{first}-{first + MEMBERS - 1}",
        )  # fmt: skip
    build.sites.update({i: ("/opt/made-up", "", 64 * i) for i in range(1, 40)})
    build.write(path)
    dice = random.Random(1)
    connection = sqlite3.connect(path)
    with connection:
        keys: list[tuple[int, ...]] = []
        cells: list[tuple[int, ...]] = []
        while len(cells) < rows:
            comm = 1 if len(keys) % 5 == 0 else dice.randrange(2, comms + 2)
            where = range(ranks) if comm == 1 else build.comms[comm].ranks
            id = len(keys) * ranks
            op = OP_ID[dice.choice(OPS)]
            keys.append((id, comm, op, dice.randrange(0, 24), 0, dice.randrange(1, 40), 0, 0, 0, 0))
            for rank in where:
                calls, each = dice.randrange(1, 2000), dice.randrange(1000, 100_000)
                cells.append((id + rank, calls, calls * each, each // 2, 3 * each, 1024 * calls, 0, 0))
        unique = {key[1:6]: key for key in keys}
        kept = {key[0] for key in unique.values()}
        connection.executemany("INSERT INTO key VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", unique.values())
        connection.executemany(
            "INSERT INTO cell_row VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (cell for cell in cells if cell[0] // ranks * ranks in kept),
        )
        side = round(ranks ** (1 / 3))
        connection.executemany(
            "INSERT INTO peer VALUES (1, 0, 0, NULL, 0, 0, ?, ?, NULL, 1, 14, ?, ?, NULL)",
            (
                (rank, peer, 100, 100 * 8192 * (1 + peer % 3))
                for rank in range(side**3)
                for peer in neighbours(rank, side)
            ),
        )
    connection.close()


def processor(tab: Browser) -> float:
    """Return the milliseconds of processor time that the thread of the page has used."""
    metrics = tab.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return 1000 * float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


def drawn(tab: Browser, fragment: str) -> tuple[float, float]:
    """Return the milliseconds from a change of the address until the browser has drawn, and those of the processor."""
    script = """\
const [fragment, done] = arguments, begin = performance.now();
addEventListener("hashchange", () => requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin))), {once: true});
location.hash = fragment"""
    before = processor(tab)
    passed = float(tab.run_async(script, fragment))
    return passed, processor(tab) - before


def in_browser(page: Path | str) -> None:
    """Print the times and the memory of a tab. page: a file or an address."""
    with browser() as tab:
        if isinstance(page, str):
            tab.connect()
        begin = time.perf_counter()
        tab.open(page)
        print(f"first view                     {time.perf_counter() - begin:7.2f} s")
        tab.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        print("milliseconds from a click until the view is complete: median (largest), processor time")
        print(f"{'':<14}" + "".join(f"{kind:>20}" for kind in FILTERS))
        for view in VIEWS:
            print(f"{view:<14}" + "".join(f"{interaction(tab, view, kind):>20}" for kind in FILTERS))
        print(f"memory of the tab              {resident() / 2**20:7.0f} MiB")


def interaction(tab: Browser, view: str, kind: str) -> str:
    """Return how long a view takes under each filter of a kind."""
    found = []
    for wanted in FILTERS[kind]:
        drawn(tab, f"#view={view}&node=1")
        found.append(drawn(tab, f"#view={view}&{wanted}"))
    times, processors = zip(*found)
    return f"{statistics.median(times):.0f} ({max(times):.0f}), {statistics.median(processors):.0f}"


def resident() -> int:
    """Return the resident memory of the largest process that draws a tab, in bytes."""
    found = [0]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if b"--type=renderer" in status.with_name("cmdline").read_bytes():
                line = next(each for each in status.read_text().splitlines() if each.startswith("VmRSS"))
                found.append(int(line.split()[1]) * 1024)
        except OSError:
            continue  # it has just ended
    return max(found)


def saved(profile: Path) -> Path:
    """Make the page as a file, and print its cost."""
    page = profile.with_suffix(".html")
    page.unlink(missing_ok=True)
    begin = time.perf_counter()
    subprocess.run([COMMLENS, "html", profile, "-o", page], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"commlens html                  {seconds:7.2f} s, {most:.0f} MiB")
    print(f"page                           {page.stat().st_size / 1e6:7.1f} MB")
    return page


@contextmanager
def served(profile: Path) -> Iterator[str]:
    """Serve the page, print the time until its address is known, and return the address."""
    begin = time.perf_counter()
    with subprocess.Popen([COMMLENS, "view", profile], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = next(found[0] for line in server.stdout if (found := re.search(r"http://127\S+", line)))
        print(f"commlens view                  {time.perf_counter() - begin:7.2f} s")
        try:
            yield address
        finally:
            server.terminate()


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--comms", type=int, default=2000)
    parser.add_argument("--keep", type=Path, help="folder for profile and page")
    parser.add_argument("--served", action="store_true", help="the page of commlens view")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        profile = (wanted.keep or Path(folder)) / "large.db"
        if not profile.exists():
            make(profile, wanted.ranks, wanted.rows, wanted.comms)
        print(f"profile                        {profile.stat().st_size / 1e6:7.1f} MB")
        if not wanted.served:
            in_browser(saved(profile))
            return
        with served(profile) as address:
            in_browser(address)


if __name__ == "__main__":
    main()
