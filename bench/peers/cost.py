# SPDX-License-Identifier: Apache-2.0
"""Parts "overhead", "finalize", "calls" and "instructions": what each tool costs.

A round runs a program without a tool and with every tool, in random order, and is kept when it is whole. Rounds of all
programs take turns, so that a measurement that ends early has the same number of rounds of each.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.apps import PROGRAMS
from bench.apps import build as build_app
from bench.peers import places, runs
from bench.peers.results import Budget, Store
from bench.peers.tools import Configuration
from bench.run import rows_of
from instructions import dumps

from commlens.overhead.legs import BASELINE, Tool, find_stopwatch, split
from commlens.overhead.measure import read_times, summarize

OVERHEAD, FINALIZE, CALLS, INSTRUCTIONS = "overhead", "finalize", "calls", "instructions"
PROGRAMS_OF_OVERHEAD = (
    "cg", "halo", "fft", "wavefront", "amr", "sample_sort", "closure", "bcast_barrier", "pingpong", "message_rate",
    "polling", "wildcard", "onesided", "many_comms", "comm_churn", "rows_columns",
)  # fmt: skip
QUICK: dict[str, tuple[int, ...]] = {
    "cg": (112, 40),
    "halo": (48, 8, 120),
    "fft": (64, 20),
    "wavefront": (32, 64, 350),
    "amr": (1_000, 3, 10, 16),
    "sample_sort": (100_000, 20),
    "closure": (4_000, 2),
    "bcast_barrier": (250_000,),
    "pingpong": (2_500, 1 << 17),
    "message_rate": (25_000, 64),
    "polling": (8_000, 500),
    "wildcard": (500_000,),
    "onesided": (5_000, 200),
    "many_comms": (256, 500_000),
    "comm_churn": (15_000,),
    "rows_columns": (150_000,),
}
"""Arguments for a quarter of the usual time."""
COMMS_OF_FINALIZE = {"openmpi": (1, 100, 1000), "mpich": (1, 100, 1000)}
RANKS_OF_FINALIZE = (2, 4, 16, 32)
COMMS_OF_CALLS = {"openmpi": (1, 64, 4096), "mpich": (1, 64, 2000)}
COMMS_OF_INSTRUCTIONS = 1024
LIMIT = 120.0
GIVES_UP = 2
"""A tool that failed so often with a program is not run with it again."""


@dataclass(frozen=True)
class Setup:
    """A program that is run in rounds."""

    mpi: str
    ranks: int
    program: str
    arguments: tuple[int, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """Without the round."""
        return self.mpi, str(self.ranks), " ".join(map(str, (self.program, *self.arguments)))


def chosen(mpi: str, names: Sequence[str] | None) -> list[Configuration]:
    """Return the configurations whose cost is measured, of those named."""
    return [one for one in runs.present(mpi, cost=True) if names is None or one.name in names]


def version_of(tools: Sequence[Configuration], mpi: str) -> str:
    """Return what the results of a round depend on."""
    return " | ".join(runs.version(tool, mpi) for tool in tools)


def measured(
    configuration: Configuration | None,
    setup: Setup,
    argv: Sequence[str | Path],
    folder: Path,
    round: int,
    position: int,
) -> dict[str, Any]:
    """Run a program once under the stopwatch and return its times, memory and bytes of output."""
    tool = Tool(BASELINE) if configuration is None else runs.as_tool(configuration, setup.mpi)
    name = BASELINE if configuration is None else configuration.name
    (folder / "out").mkdir(parents=True)
    launch = split([f"mpirun.{setup.mpi}", "-n", str(setup.ranks), *map(str, argv)])
    words = tool.command(launch, find_stopwatch(), folder)
    code, said, seconds = runs.execute(words, LIMIT, folder, is_crowded=setup.ranks > (os.cpu_count() or 1))
    times = read_times(folder)
    failure = f"{runs.HUNG}: not ended after {LIMIT:.0f} s" if code is None else runs.failure_of(code, said)
    if not failure and len(times) != setup.ranks:
        failure = f"{len(times)} of {setup.ranks} processes reached the end of MPI_Finalize"
    if not failure and not all(process.has_tool for process in times):
        failure = "its library is not loaded"
    if failure:
        shutil.rmtree(folder)
        own = [word.replace(str(folder), "WORK") for word in words]
        return {"tool": name, "failure": failure, "command": runs.shown(own)}
    # Some tools write into the current folder whatever their options say. The stopwatch's files are not theirs.
    size = sum(
        path.lstat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not (path.parent == folder and is_of_stopwatch(path))
    )
    run = summarize(times, round_ns(seconds), size, round, position, name)
    shutil.rmtree(folder)
    return {**asdict(run), "finalize_ns": max(process.finalize for process in times)}


def is_of_stopwatch(path: Path) -> bool:
    """Return whether a file was written by the stopwatch: six numbers in a line."""
    words = path.read_bytes()[:200].split()
    return len(words) == 6 and all(word.isdigit() for word in words)


def round_ns(seconds: float) -> int:
    """Return whole nanoseconds."""
    return round(seconds * 1e9)


def failures(store: Store, setup: Setup, tool: str) -> int:
    """Return how often a tool has failed with a program; a run that did not end is enough to give up."""
    return sum(
        (GIVES_UP if run["failure"].startswith(runs.HUNG) else 1)
        for record in store
        if tuple(record["key"][:3]) == setup.key
        for run in record["runs"]
        if run["tool"] == tool and run["failure"]
    )


def one_round(store: Store, setup: Setup, number: int, tools: Sequence[Configuration], scratch: Path) -> None:
    """Run a program without and with each tool, and keep the runs."""
    argv = [build_app(PROGRAMS[setup.program], setup.mpi), *map(str, setup.arguments)]
    legs: list[Configuration | None] = [
        None,
        *(tool for tool in tools if failures(store, setup, tool.name) < GIVES_UP),
    ]
    random.Random(f"{setup.key}{number}").shuffle(legs)
    found = [
        measured(leg, setup, argv, scratch / f"{number}-{position}", number, position)
        for position, leg in enumerate(legs, 1)
    ]
    store.put((*setup.key, str(number)), version_of(tools, setup.mpi), runs=found)


def seconds_of(store: Store, setup: Setup) -> float:
    """Return how long the longest round of a program took, or a guess."""
    took = [
        sum(run.get("net_ns", 0) + run.get("hook_ns", 0) + run.get("wrap_ns", 0) for run in record["runs"])
        / 1e9
        for record in store
        if tuple(record["key"][:3]) == setup.key
    ]
    return max(took, default=10.0)


def in_rounds(
    store: Store,
    setups: Sequence[Setup],
    rounds: int,
    budget: Budget,
    scratch: Path,
    names: Sequence[str] | None = None,
) -> None:
    """Run all programs in rounds, in turns, until all have their rounds or the time is over.

    names : of the configurations; None: all
    """
    for number in range(1, rounds + 1):
        for setup in setups:
            tools = chosen(setup.mpi, names)
            if store.has((*setup.key, str(number)), version_of(tools, setup.mpi)):
                continue
            if not budget.allows(seconds_of(store, setup)):
                continue
            one_round(store, setup, number, tools, scratch)
            print(f"{store.part:8} {' '.join(setup.key)}, round {number} of {rounds}", flush=True)


def setups_of_overhead(mpis: Sequence[str], ranks: Sequence[int], size: str = "usual") -> list[Setup]:
    """Return the programs of part "overhead".

    size : "usual" for one or two seconds, "quick" for a quarter of that, "small" for milliseconds
    """

    def arguments(name: str) -> tuple[int, ...]:
        program = PROGRAMS[name]
        return QUICK[name] if size == "quick" else program.small if size == "small" else program.usual

    return [
        Setup(mpi, n, name, arguments(name)) for name in PROGRAMS_OF_OVERHEAD for mpi in mpis for n in ranks
    ]


def setups_of_finalize(mpis: Sequence[str], ranks: Sequence[int]) -> list[Setup]:
    """Return the programs of part "finalize": duplicates of MPI_COMM_WORLD, each used twice."""
    return [
        Setup(mpi, n, "many_comms", (comms, 2 * comms))
        for mpi in mpis
        for n in ranks
        for comms in COMMS_OF_FINALIZE[mpi]
    ]


def measure_calls(
    store: Store, mpis: Sequence[str], rounds: int, budget: Budget, names: Sequence[str] | None = None
) -> None:
    """Run bench/calls.c in rounds: nanoseconds of a call, on one and on many communicators."""
    for number in range(1, rounds + 1):
        for mpi in mpis:
            tools = chosen(mpi, names)
            key, version = (mpi, str(number)), version_of(tools, mpi)
            if store.has(key, version) or not budget.allows(20):
                continue
            program = runs.compiled(places.ROOT / "bench" / "calls.c", mpi)
            legs: list[Configuration | None] = [None, *tools]
            random.Random(f"{mpi}{number}").shuffle(legs)
            found = {}
            for leg in legs:
                with runs.run(leg, mpi, 1, [program, *map(str, COMMS_OF_CALLS[mpi])], LIMIT) as ran:
                    lines = [line for line in ran.said.splitlines() if line.count("|") == 2]
                    found[BASELINE if leg is None else leg.name] = {
                        "failure": ran.failure,
                        "command": ran.command,
                        "ns": [[*row, ns] for row, ns in rows_of("\n".join(lines)).items()],
                    }
            store.put(key, version, runs=found)
            print(f"calls    {mpi}, round {number} of {rounds}", flush=True)


def measure_instructions(store: Store, mpis: Sequence[str], budget: Budget, scratch: Path) -> None:
    """Count the instructions of a call without and with each tool, by valgrind's callgrind."""
    for mpi in mpis:
        program = runs.compiled(places.ROOT / "bench" / "instructions.c", mpi, "-O2")
        legs: list[Configuration | None] = [None, *runs.present(mpi, cost=True)]
        for leg in legs:
            name = BASELINE if leg is None else leg.name
            version = "" if leg is None else runs.version(leg, mpi)
            if store.has((mpi, name), version) or not budget.allows(60):
                continue
            folder = scratch / f"{mpi}-{runs.as_tool(leg, mpi).name if leg else name}"
            (folder / "out").mkdir(parents=True)
            words = runs.words_of(leg, mpi, 1, [program, str(COMMS_OF_INSTRUCTIONS)], folder / "out")
            valgrind = [
                "valgrind", "--tool=callgrind", "--trace-children=yes", "--collect-atstart=no",
                f"--callgrind-out-file={folder}/counted.%p",
            ]  # fmt: skip
            # Alone, without a launcher, as a job of one process.
            words = [*valgrind, *words[3:]]
            code, said, _ = runs.execute(words, 10 * LIMIT, folder)
            found = dumps(folder)
            failure = runs.HUNG if code is None else runs.failure_of(code, said)
            if not found and not failure:
                failure = "no counts"
            store.put(
                (mpi, name), version, failure=failure, command=runs.shown(words).replace(str(folder), "WORK"),
                counts=[[*row, count] for row, count in sorted(found.items())],
            )  # fmt: skip
            print(f"instructions {mpi} {name}: {failure or f'{len(found)} rows'}", flush=True)
            shutil.rmtree(folder)


def differences(
    records: Iterator[dict[str, Any]] | Sequence[dict[str, Any]], what: str
) -> dict[str, list[tuple[float, float]]]:
    """Return for each tool the pairs (without, with) of the rounds in which neither failed."""
    found: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        of = {run["tool"]: run for run in record["runs"] if not run["failure"]}
        if BASELINE not in of:
            continue
        for tool, run in of.items():
            if tool != BASELINE:
                found.setdefault(tool, []).append((of[BASELINE][what], run[what]))
    return found
