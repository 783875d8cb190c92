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
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.peers import build, correct, cost, features, places
from bench.peers.results import Budget, Store
from bench.peers.tools import MPIS, PEERS
from run import machine

PARTS = (build.PART, correct.PART, features.PART, cost.INSTRUCTIONS, cost.FINALIZE, cost.CALLS, cost.OVERHEAD)
"""In the order in which they run."""


def commit() -> str:
    """Return the commit of this tree; beside docs/, where the page changes, it must be as committed."""
    named = places.HOME / "commit"
    if named.exists() and not (places.ROOT / ".git").exists():  # in a bundle
        return named.read_text().strip()
    git = ["git", "-C", str(places.ROOT)]
    found = subprocess.run(
        [*git, "describe", "--always"], capture_output=True, text=True, check=False
    ).stdout.strip()
    changed = subprocess.run(
        [*git, "diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs"], check=False
    ).returncode
    return f"{found}-dirty" if changed == 1 else found


def mpi_version(mpi: str) -> str:
    """Return name and version of an MPI library, as its launcher says."""
    said = subprocess.run([f"mpirun.{mpi}", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return f"{MPIS[mpi]} {found[0] if found else ''}".strip()


def facts(mpis: Sequence[str], rounds: int | None) -> dict[str, str]:
    """Return what the page states of how a part is measured."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "commit": commit(),
        "date": f"{now:%Y-%m-%d}",
        "machine": machine().partition(", load")[0],
        "MPI": ", ".join(mpi_version(mpi) for mpi in mpis),
        **(
            {"rounds asked for": str(rounds), "load at the beginning": f"{os.getloadavg()[0]:.1f}"}
            if rounds
            else {}
        ),
    }


def numbers(text: str) -> list[int]:
    """Return the numbers of a list with commas."""
    return [int(word) for word in text.split(",")]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="bench.peers", description=__doc__)
    parser.add_argument("--parts", default="", help=f"of {','.join(PARTS)} (default: all)")
    parser.add_argument("--mpi", default=",".join(MPIS), help="default: %(default)s")
    parser.add_argument(
        "--peers", default="", help="folder with a git clone of each tool (default: clone from the network)"
    )
    parser.add_argument(
        "--tools", default=",".join(peer.name for peer in PEERS), help="to build (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=30, help="of what takes times (default: %(default)s)")
    parser.add_argument(
        "--minutes", type=float, help="begin no step that would end later (default: no limit)"
    )
    parser.add_argument(
        "--ranks", type=numbers, default=[2], help="of the programs of part overhead (default: 2)"
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
        choices=("usual", "quick", "small"),
        default="usual",
        help="of the programs of part overhead: seconds, a quarter of that, milliseconds (default: %(default)s)",
    )
    parser.add_argument("--with", dest="names", help="configurations whose cost is measured (default: all)")
    parser.add_argument("--again", action="store_true", help="forget the results of these parts first")
    parser.add_argument("--render", action="store_true", help="only write the page")
    parser.add_argument("--no-page", action="store_true", help="write no page")
    parser.add_argument("--page", type=Path, default=places.PAGE, help="default: docs/comparison.md")
    parser.add_argument(
        "--bundle", type=Path, metavar="FILE", help="only pack what the timing parts need on another machine"
    )
    parser.add_argument(
        "--add", type=Path, metavar="FOLDER", help="only add the results that a bundle measured elsewhere"
    )
    given = parser.parse_args(arguments)
    given.parts = given.parts.split(",") if given.parts else list(PARTS)
    given.mpi = given.mpi.split(",")
    for names, known in (
        (given.parts, PARTS),
        (given.mpi, MPIS),
        (given.tools.split(","), [p.name for p in PEERS]),
    ):
        for name in names:
            if name not in known:
                parser.error(f"{name} is none of {', '.join(known)}")
    return given


def measure(given: argparse.Namespace, part: str, budget: Budget, scratch: Path) -> None:
    """Measure one part."""
    store = Store(part)
    names = given.names.split(",") if given.names else None
    timed = part in (cost.FINALIZE, cost.CALLS, cost.OVERHEAD)
    store.add_facts(facts(given.mpi, given.rounds if timed else None))
    if part == correct.PART:
        correct.measure(store, given.mpi, range(1, given.seeds + 1), budget, scratch)
    elif part == features.PART:
        features.measure(store, given.mpi, budget)
    elif part == cost.INSTRUCTIONS:
        cost.measure_instructions(store, given.mpi, budget, scratch)
    elif part == cost.CALLS:
        cost.measure_calls(store, given.mpi, given.rounds, budget, names)
    elif part == cost.FINALIZE:
        setups = cost.setups_of_finalize(given.mpi, given.finalize_ranks)
        cost.in_rounds(store, setups, given.rounds, budget, scratch, names)
    else:
        setups = cost.setups_of_overhead(given.mpi, given.ranks, given.size)
        chosen = [setup for setup in setups if not given.only or setup.program in given.only.split(",")]
        cost.in_rounds(store, chosen, given.rounds, budget, scratch, names)


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks."""
    given = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PATH"] = f"{places.RUNNER.parent}:{os.environ['PATH']}"
    if given.bundle:
        from bench.peers.bundle import pack

        pack(given.bundle)
        return
    if given.add:
        from bench.peers import page

        page.add_results(given.add)
        given.render = True
    if not given.render:
        if build.PART in given.parts:
            build.build_all(Path(given.peers) if given.peers else None, given.tools.split(","), given.mpi)
        if not places.RUNNER.exists():
            sys.exit("commlens is not built: run make build")
        # Time is shared between the parts that are left, so that the last one is not left without any.
        rest = [part for part in PARTS if part in given.parts and part != build.PART]
        whole = Budget(given.minutes)
        with tempfile.TemporaryDirectory(prefix="peers-") as name:
            for number, part in enumerate(rest):
                if given.again:
                    Store(part).forget()
                scratch = Path(name) / part
                scratch.mkdir()
                measure(given, part, whole.share(len(rest) - number), scratch)
    if not given.no_page:
        from bench.peers import page  # needs numpy, which a machine that only measures may lack

        page.write(given.page)
        print(given.page)
