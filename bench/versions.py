# SPDX-License-Identifier: Apache-2.0
"""Compare two builds of commlens: what each adds to programs that are hard on a profiler.

    .venv/bin/python bench/versions.py OLD                       # OLD: build/release of another checkout
    .venv/bin/python bench/versions.py OLD --minutes 15 --to docs/evidence/versions.md

Each round runs every program without commlens, with the old build, with this one, and with a wrapper that does the
least that a profiler can do, in random order.  It runs as many rounds as the time allows, but at least six.  The method
is that of `commlens overhead`: differences within rounds, their Hodges-Lehmann estimate and its 95 % interval.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("", "python")]

from bench.apps import PROGRAMS, build  # noqa: E402
from bench.overhead import minimal  # noqa: E402
from bench.run import ENVIRONMENT, RUNNER, machine  # noqa: E402

from commlens.base.errors import CommlensError  # noqa: E402
from commlens.overhead.estimate import Cost, Estimate, costs  # noqa: E402
from commlens.overhead.legs import OUTPUT, Tool, find_stopwatch, split  # noqa: E402
from commlens.overhead.measure import Run, rounds  # noqa: E402
from commlens.render.units import bytes_text  # noqa: E402

BEFORE, NOW, LEAST_WORK = "before", "now", "least"
LEAST = 6
"""Rounds: fewer give no interval."""


class Case(NamedTuple):
    """A program and the number of its ranks."""

    mpi: str
    ranks: int
    command: str

    @property
    def launch(self) -> list[str]:
        """Return the command that starts it."""
        program, *arguments = self.command.split()
        return [
            f"mpirun.{self.mpi}",
            "-n",
            str(self.ranks),
            str(build(PROGRAMS[program], self.mpi)),
            *arguments,
        ]


CALLS = (
    "amr 1000 3 10 16",
    "message_rate 50000 64",
    "onesided 10000 200",
    "polling 15000 500",
    "wildcard 1000000",
)
"""Half a second to a second each, nearly all of it in MPI calls."""
SMALL = "bcast_barrier 1000"
COMMUNICATORS = "many_comms 100 200"


def cases(mpis: Sequence[str]) -> list[Case]:
    """Return what is measured."""
    found = []
    for mpi in mpis:
        found += [Case(mpi, 2, command) for command in (*CALLS, SMALL)]
        found += [Case(mpi, ranks, COMMUNICATORS) for ranks in ((4, 16, 32) if mpi == "openmpi" else (4,))]
    return found


def tool(name: str, build_folder: Path) -> Tool:
    """Return a build of commlens as a tool."""
    runner = build_folder.absolute() / "bin" / "commlens-run"
    return Tool(name, wrapper=(str(runner),), variables={"COMMLENS_OUTPUT": f"{OUTPUT}/profile.db"})


def least_work(mpi: str, folder: Path) -> Tool:
    """Compile the wrapper that counts calls and looks at the clock only in those that can wait."""
    return Tool(LEAST_WORK, library=str(minimal(mpi, folder, "-DONLY_WAITING")))


def commit(build_folder: Path) -> str:
    """Return the commit of the checkout that a build is of."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=build_folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or str(build_folder)


def measure(
    all_cases: Sequence[Case], tools_of: Mapping[str, Sequence[Tool]], seconds: float
) -> dict[Case, list[Run]]:
    """Run the cases in turns, a round of each, until the time is over; returns their runs.

    tools_of : the tools for programs of each MPI library
    """
    stopwatch = find_stopwatch()
    under_way: dict[Case, Iterator[Run]] = {
        case: rounds(tools_of[case.mpi], split(case.launch), stopwatch, 1000, 1) for case in all_cases
    }
    found: dict[Case, list[Run]] = defaultdict(list)
    broken: list[Case] = []  # a run without a tool failed
    end = time.monotonic() + seconds
    each = max(map(len, tools_of.values())) + 1
    for number in range(1001):
        if number > LEAST and time.monotonic() > end:
            break
        print(f"round {number}" if number else "warm-up", file=sys.stderr, flush=True)
        for case, runs in under_way.items():
            try:
                found[case] += [next(runs) for _ in range(each)]
            except CommlensError as error:
                print(f"{case.command}, {case.mpi}: {error}; not measured on", file=sys.stderr, flush=True)
                broken.append(case)
        for case in broken:
            under_way.pop(case, None)
    return {case: runs for case, runs in found.items() if len(runs) > each}


def interval(of: Callable[[Cost], Estimate | None], cost: Cost, text: Callable[[float], str]) -> str:
    """Return an estimate with its interval."""
    estimate = of(cost)
    if estimate is None:
        return f"**failed**: {cost.crashed}"
    failed = f"; **{cost.crashed}**" if cost.crashed else ""
    if cost.runs < LEAST:
        return f"{text(estimate.value)}{failed}"
    return f"{text(estimate.value)} ({text(estimate.low)} to {text(estimate.high)}){failed}"


def percent(value: float) -> str:
    """Return a share with its sign."""
    return f"{100 * value:+.1f} %"


def milliseconds(value: float) -> str:
    """Return a time with its sign."""
    return f"{value / 1e6:+.2f} ms"


def mebibytes(value: float) -> str:
    """Return a size with its sign."""
    return f"{value / 2**20:+.2f} MiB"


def lines(case: Case, runs: Sequence[Run]) -> list[list[str]]:
    """Return the rows of a case: what is compared, without commlens, before, now and the least."""
    by_tool = {cost.tool: cost for cost in costs(runs)}
    alone, shown_tools = by_tool["baseline"], [by_tool[name] for name in (BEFORE, NOW, LEAST_WORK)]
    name = [f"`{case.command}`", str(case.ranks), str(alone.runs)]
    found = []
    if case.command in CALLS:
        shown = [interval(lambda cost: cost.ratio, cost, percent) for cost in shown_tools]
        found.append([*name, "between MPI_Init and MPI_Finalize", f"{alone.net_ns / 1e6:,.0f} ms", *shown])
        return found
    shown = [interval(lambda cost: cost.hook, cost, milliseconds) for cost in shown_tools]
    found.append([*name, "in MPI_Init and MPI_Finalize", f"{alone.hook_ns / 1e6:,.1f} ms", *shown])
    if case.command == SMALL:
        shown = [interval(lambda cost: cost.memory, cost, mebibytes) for cost in shown_tools]
        found.append([*name, "memory (VmHWM)", bytes_text(round(alone.memory_bytes)), *shown])
        found.append([*name, "output", "–", *(bytes_text(round(cost.output_bytes)) for cost in shown_tools)])
    return found


PAGE = """\
# What commlens cost, and costs now

    .venv/bin/python bench/versions.py OLD {options}

OLD is the folder `build/release` of a checkout of {before}. Each round runs a program in random order: without commlens,
with the old build, with the one of {now}, and with a wrapper that does the least that a profiler can do. That wrapper
counts each call, and looks at the clock twice in calls that can wait ([minimal.c](../../bench/tools/minimal.c)).

The table shows what is added: the Hodges-Lehmann estimate of the differences within rounds, and its 95 % interval.
[The guide](../guide/overhead.md) has the method, [bench/apps](../../bench/README.md#programs) the programs.

Machine: {machine}.
"""


def page(found: dict[Case, list[Run]], before: Path, options: Sequence[str], machine: str) -> str:
    """Return the page."""
    text = PAGE.format(
        options=shlex.join(options), before=commit(before), now=commit(RUNNER.parent), machine=machine
    )
    for mpi, title in (("openmpi", "Open MPI"), ("mpich", "MPICH")):
        rows = list(chain.from_iterable(lines(case, runs) for case, runs in found.items() if case.mpi == mpi))
        if rows:
            text += (
                f"\n## {title}\n\n| program | ranks | rounds | what | without | before | now | the least |\n"
                "|---|--:|--:|---|--:|--:|--:|--:|\n"
            )
            text += "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return text


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, metavar="OLD", help="build/release of another checkout")
    parser.add_argument("--minutes", type=float, default=15, help="about; at least six rounds (default 15)")
    parser.add_argument("--mpi", action="append", choices=["openmpi", "mpich"], help="default: both")
    parser.add_argument("--only", action="append", help="only programs whose command has this; repeatable")
    parser.add_argument("--to", type=Path, help="also write the page")
    given = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    chosen = [
        case
        for case in cases(given.mpi or ["openmpi", "mpich"])
        if given.only is None or any(part in case.command for part in given.only)
    ]
    before = machine()  # the load is that at the beginning
    with tempfile.TemporaryDirectory(prefix="versions-") as name:
        tools = {
            mpi: [tool(BEFORE, given.old), tool(NOW, RUNNER.parents[1]), least_work(mpi, Path(name))]
            for mpi in {case.mpi for case in chosen}
        }
        found = measure(chosen, tools, 60 * given.minutes)
    text = page(found, given.old, sys.argv[2:], before)
    print(text)
    if given.to:
        given.to.write_text(text)


if __name__ == "__main__":
    main()
