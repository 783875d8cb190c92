# SPDX-License-Identifier: Apache-2.0
"""The command: which parts, with which MPI libraries, how many rounds, how long."""

from __future__ import annotations

import argparse
import datetime
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.peers import build, correct, cost, features, hosts, places, state
from bench.peers.results import Budget, Store
from bench.peers.tools import MPIS
from bench.run import machine

PARTS = (build.PART, correct.PART, features.PART, cost.INSTRUCTIONS, cost.FINALIZE, cost.CALLS, cost.OVERHEAD)
"""In the order in which they run."""
TIMED = (cost.FINALIZE, cost.CALLS, cost.OVERHEAD)
"""Measured in rounds, which take turns over the programs of all these parts."""


def mpi_version(mpi: str) -> str:
    """Return name and version of an MPI library, as its launcher says."""
    said = subprocess.run([f"mpirun.{mpi}", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return f"{MPIS[mpi]} {found[0] if found else ''}".strip()


def facts(mpis: Sequence[str], *, has_times: bool) -> dict[str, str]:
    """Return what the page states of how a part is measured."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "commit": state.commit(),
        "date": f"{now:%Y-%m-%d}",
        "machine": machine().partition(", load")[0],
        "MPI": "; ".join(mpi_version(mpi) for mpi in mpis),
        **({"load at the beginning": f"{os.getloadavg()[0]:.1f}"} if has_times else {}),
    }


def numbers(text: str) -> list[int]:
    """Return the numbers of a list with commas."""
    return [int(word) for word in text.split(",")]


def add_actions(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is done with results."""
    parser.add_argument(
        "--again",
        nargs="?",
        const="",
        metavar="PARTS",
        help="forget the results of these parts first, and measure only them (default: those of --parts)",
    )
    parser.add_argument(
        "--status",
        action="store_true",
        help="only say of which commit each part is, and what is left to measure",
    )
    parser.add_argument("--render", action="store_true", help="only write the page")
    parser.add_argument("--no-page", action="store_true", help="write no page")
    parser.add_argument("--page", type=Path, default=places.PAGE, help="default: docs/comparison.md")
    parser.add_argument(
        "--bundle", type=Path, metavar="FILE", help="only pack what the timing parts need on another machine"
    )
    parser.add_argument(
        "--add",
        type=Path,
        metavar="RESULTS",
        help="only take over what was measured elsewhere: a folder build/peers/results, or docs/evidence/comparison.tar.xz",
    )


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="bench.peers", description=__doc__)
    parser.add_argument(
        "--parts",
        default="",
        help=f"of {','.join(PARTS)} (default: all). If the time is short, the first timed one has priority",
    )
    parser.add_argument("--mpi", default=",".join(MPIS), help="default: %(default)s")
    parser.add_argument(
        "--peers",
        default="",
        help="folder with a git clone of each tool and application (default: clone from the network)",
    )
    parser.add_argument(
        "--tools",
        default=",".join(one.name for one in build.ALL),
        help="and applications, to build (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=30, help="of what takes times (default: %(default)s)")
    parser.add_argument(
        "--minutes",
        type=float,
        help="begin no step that would end later (default: no limit). Rounds of all timed parts take turns",
    )
    parser.add_argument(
        "--ranks", type=numbers, default=[2], help="of the programs of part overhead (default: 2)"
    )
    parser.add_argument(
        "--hosts",
        type=numbers,
        default=[1],
        help="of the programs of part overhead: 1,4 for one, and for four simulated ones, as root (default: 1)",
    )
    parser.add_argument(
        "--finalize-ranks", type=numbers, default=list(cost.RANKS_OF_FINALIZE), help="default: 2,4,16,32"
    )
    parser.add_argument("--only", help="programs of part overhead, with commas (default: all)")
    parser.add_argument(
        "--seeds", type=int, default=12, help="random programs of part correct (default: %(default)s)"
    )
    parser.add_argument(
        "--size",
        choices=("usual", "mixed", "quick", "small"),
        default="usual",
        help="of the programs of part overhead. usual: they take seconds; quick: a quarter of that; mixed: usual for applications on two "
        "ranks, and quick for all others; small: milliseconds (default: %(default)s)",
    )
    parser.add_argument("--with", dest="names", help="configurations whose cost is measured (default: all)")
    add_actions(parser)
    given = parser.parse_args(arguments)
    given.parts = (given.again or given.parts or ",".join(PARTS)).split(",")
    given.mpi = given.mpi.split(",")
    sources = [one.name for one in build.ALL]
    for names, known in ((given.parts, PARTS), (given.mpi, MPIS), (given.tools.split(","), sources)):
        for name in names:
            if name not in known:
                parser.error(f"{name} is none of {', '.join(known)}")
    return given


def cells_of(given: argparse.Namespace, part: str, store: Store, scratch: Path) -> list[cost.Cell]:
    """Return the programs of a timed part."""
    names = given.names.split(",") if given.names else None
    if part == cost.CALLS:
        return cost.cells_of_calls(store, given.mpi, names)
    if part == cost.FINALIZE:
        setups = cost.setups_of_finalize(given.mpi, given.finalize_ranks)
    else:
        setups = cost.setups_of_overhead(given.mpi, given.ranks, given.size, given.hosts)
        setups = [setup for setup in setups if not given.only or setup.program in given.only.split(",")]
    return cost.cells_of(store, setups, scratch, names)


def measure(given: argparse.Namespace, part: str, budget: Budget, scratch: Path) -> None:
    """Measure a part that has no times."""
    store = Store(part, commit=state.commit())
    store.add_facts(facts(given.mpi, has_times=False))
    if part == correct.PART:
        correct.measure(store, given.mpi, range(1, given.seeds + 1), budget, scratch)
    elif part == features.PART:
        features.measure(store, given.mpi, budget)
    else:
        cost.measure_instructions(store, given.mpi, budget, scratch)


def timed_cells(given: argparse.Namespace, scratch: Path, *, is_begin: bool) -> list[cost.Cell]:
    """Return the programs of all timed parts that are asked for.

    is_begin : the measurement begins now, and what the page states of it is kept
    """
    cells = []
    for part in (part for part in given.parts if part in TIMED):  # the first one has priority
        store = Store(part, commit=state.commit())
        found = cells_of(given, part, store, scratch / part)
        if is_begin and found:
            store.add_facts(facts(given.mpi, has_times=True))
        cells += found
    return cells


def status(given: argparse.Namespace) -> list[str]:
    """Return of which commit each part is, and how long what is left will take."""
    lines = state.text([part for part in PARTS if part != build.PART])
    for part in (part for part in TIMED if part in given.parts):
        cells = cells_of(given, part, Store(part), Path())
        lines.append(f"{part:12} {cost.needed(cells, given.rounds)}")
    return [*lines, f"in sum       {cost.needed(timed_cells(given, Path(), is_begin=False), given.rounds)}"]


def measure_all(given: argparse.Namespace) -> None:
    """Measure all parts that are asked for: those without times, then the others in turns."""
    if given.again is not None:
        for part in given.parts:
            if part != build.PART:
                Store(part).forget()
    rest = [part for part in PARTS if part in given.parts and part not in (build.PART, *TIMED)]
    timed = [part for part in TIMED if part in given.parts]
    whole = Budget(given.minutes)
    with hosts.started(given.hosts), tempfile.TemporaryDirectory(prefix="peers-") as name:
        # Time is shared between the parts that are left, so that the last one is not left without any.
        for number, part in enumerate(rest):
            scratch = Path(name) / part
            scratch.mkdir()
            measure(given, part, whole.share(len(rest) - number + len(timed)), scratch)
        cells = timed_cells(given, Path(name), is_begin=True)
        if cells:
            print(cost.needed(cells, given.rounds), flush=True)
            cost.in_turns(cells, given.rounds, whole)


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks."""
    given = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PATH"] = f"{places.RUNNER.parent}:{os.environ['PATH']}"
    if given.status:
        print("\n".join(status(given)))
        return
    if given.bundle:
        from bench.peers.bundle import pack

        pack(given.bundle)
        return
    if given.add:
        from bench.peers import archive, page

        try:
            taken = archive.take(given.add, page.ALL)
        except (OSError, tarfile.TarError) as error:
            sys.exit(f"{given.add}: {error}")
        if not taken:
            sys.exit(f"{given.add} has no results")
        given.render = True
    if not given.render:
        # Not again inside the namespaces of simulated hosts, which have no network.
        if build.PART in given.parts and os.getpid() != 1:
            build.build_all(Path(given.peers) if given.peers else None, given.tools.split(","), given.mpi)
        if not places.RUNNER.exists():
            sys.exit("commlens is not built: run make build")
        measure_all(given)
        print("\n".join(state.text([part for part in PARTS if part != build.PART])))
    if not given.no_page:
        from bench.peers import archive, page  # need numpy, which a machine that only measures may lack

        page.write(given.page)
        archive.pack(given.page.parent / places.ARCHIVE, page.ALL)
        print(given.page)
