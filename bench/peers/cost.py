# SPDX-License-Identifier: Apache-2.0
"""Parts "overhead", "finalize", "calls" and "instructions": what each tool costs.

A round runs a program without a tool and with every tool, in random order, and is kept when it is whole. Rounds of all
programs of all parts take turns, so that a measurement that ends early has nearly the same number of rounds of each.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.apps import PROGRAMS
from bench.apps import build as build_app
from bench.instructions import dumps
from bench.peers import applications, hosts, places, runs
from bench.peers.results import ENOUGH, Budget, Store
from bench.peers.tools import Configuration
from bench.run import rows_of

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
    "message_rate": (8_000, 64),
    "polling": (2_500, 500),
    "wildcard": (150_000,),
    "onesided": (5_000, 200),
    "many_comms": (256, 500_000),
    "comm_churn": (15_000,),
    "rows_columns": (150_000,),
}
"""Arguments for a quarter of the usual time, or less where a tool that unwinds the stack needs many times that."""
FEW_RANKS = 2
"""Size "mixed" runs the usual applications on up to this many ranks."""
COMMS_OF_FINALIZE = (1, 100, 1000)
RANKS_OF_FINALIZE = (2, 4, 16, 32)
COMMS_OF_CALLS = {"openmpi": (1, 64, 4096), "mpich": (1, 64, 2000)}
BLOCKS_OF_CALLS = 4  # bench/peers/page.md.in says so, too
COMMS_OF_INSTRUCTIONS = 1024
LIMIT = 60.0
GUESS = 15.0
"""Seconds of a round of a program that was never measured."""
SLOWER = 20
"""A run with a tool hangs if it takes so many times as long as alone, and LIMIT seconds."""
GIVES_UP = 2
"""A tool that failed so often with a program is not run with it again."""


@dataclass(frozen=True)
class Setup:
    """A program that is run in rounds.

    `arguments` of an application are the size of its problem and what it counts.
    """

    mpi: str
    ranks: int
    program: str
    arguments: tuple[int | str, ...]
    hosts: int = 1

    @property
    def key(self) -> tuple[str, str, str]:
        """Without the round."""
        where = f" on {self.hosts} hosts" if self.hosts > 1 else ""
        return self.mpi, f"{self.ranks}{where}", " ".join(map(str, (self.program, *self.arguments)))

    @property
    def application(self) -> applications.Application | None:
        """The application, if it is one."""
        return applications.BY_NAME.get(self.program)

    def argv(self) -> list[str | Path]:
        """Return its command line.

        Raises
        ------
        FileNotFoundError
            It is an application that is not there.
        """
        if self.application is None:
            return [build_app(PROGRAMS[self.program], self.mpi), *map(str, self.arguments)]
        program = self.application.executable(self.mpi)
        if program is None:
            raise FileNotFoundError(f"{self.program} is not built")
        return [program, *map(str, self.application.arguments(self.ranks, int(self.arguments[0])))]

    def files(self) -> dict[str, str]:
        """Return the texts of its input files, by name."""
        if self.application is None:
            return {}
        return dict(self.application.files(self.ranks, int(self.arguments[0])))


def chosen(mpi: str, names: Sequence[str] | None) -> list[Configuration]:
    """Return the configurations whose cost is measured, of those named."""
    return [one for one in runs.present(mpi, cost=True) if names is None or one.name in names]


def version_of(
    tools: Sequence[Configuration], mpi: str, application: applications.Application | None = None
) -> str:
    """Return what the results of a round depend on."""
    of_tools = [runs.version(tool, mpi) for tool in tools]
    return " | ".join([*of_tools, application.version()] if application else of_tools)


def measured(
    configuration: Configuration | None,
    setup: Setup,
    argv: Sequence[str | Path],
    folder: Path,
    round: int,
    position: int,
    limit: float,
) -> dict[str, Any]:
    """Run a program once under the stopwatch and return its times, memory and bytes of output."""
    tool = Tool(BASELINE) if configuration is None else runs.as_tool(configuration, setup.mpi)
    name = BASELINE if configuration is None else configuration.name
    (folder / "out").mkdir(parents=True)
    work = folder / "work"
    work.mkdir()
    for file, text in setup.files().items():
        (work / file).write_text(text, encoding="utf-8")
    launch = split([*hosts.launcher(setup.mpi, setup.ranks, setup.hosts), *map(str, argv)])
    words = hosts.on_first(tool.command(launch, find_stopwatch(), folder), work, setup.hosts)
    is_crowded = setup.ranks > (os.cpu_count() or 1)
    code, said, seconds = runs.execute(
        words, limit, work, is_crowded=is_crowded, more=hosts.settings(setup.hosts)
    )
    times = read_times(folder)
    failure = f"{runs.HUNG}: not ended after {limit:.0f} s" if code is None else runs.failure_of(code, said)
    if not failure and len(times) != setup.ranks:
        failure = f"{len(times)} of {setup.ranks} processes reached the end of MPI_Finalize"
    if not failure and not all(process.has_tool for process in times):
        failure = "its library is not loaded"
    if failure:
        shutil.rmtree(folder)
        own = [word.replace(str(folder), "WORK") for word in words]
        return {"tool": name, "failure": failure, "command": runs.shown(own)}
    # Some tools write into the current folder whatever their options say. So do applications.
    size = runs.size_of(folder / "out") + (0 if setup.application else runs.size_of(work))
    run = summarize(times, round_ns(seconds), size, round, position, name)
    shutil.rmtree(folder)
    return {**asdict(run), "finalize_ns": max(process.finalize for process in times)}


def round_ns(seconds: float) -> int:
    """Return whole nanoseconds."""
    return round(seconds * 1e9)


def failures(store: Store, key: Sequence[str], version: str, tool: str) -> int:
    """Return how often a tool of this version has failed with a program; a run that did not end is enough to give up."""
    return sum(
        (GIVES_UP if run["failure"].startswith(runs.HUNG) else 1)
        for record in store
        if record["key"][:-1] == list(key) and record["version"] == version
        for run in record["runs"]
        if run["tool"] == tool and run["failure"]
    )


def wall_seconds(run: dict[str, Any]) -> float:
    """Return how long a run took; 0 if it failed."""
    return float(sum(run.get(f"{part}_ns", 0) for part in ("net", "hook", "wrap"))) / 1e9


def one_round(store: Store, setup: Setup, number: int, tools: Sequence[Configuration], scratch: Path) -> None:
    """Run a program without and with each tool, and keep the runs.

    Before the first round it runs once for nothing; if that fails, it runs with no tool, because nobody can be blamed.
    """
    argv = setup.argv()
    name = re.sub(r"\W+", "-", " ".join(setup.key))
    version = version_of(tools, setup.mpi, setup.application)
    if not any(record["key"][:-1] == list(setup.key) and record["version"] == version for record in store):
        trial = measured(None, setup, argv, scratch / name, number, 0, LIMIT)
        if trial["failure"]:
            store.put((*setup.key, str(number)), version, runs=[trial])
            return
        alone = wall_seconds(trial)
    else:
        alone = max(
            wall_seconds(run)
            for record in store
            if record["key"][:-1] == list(setup.key)
            for run in record["runs"]
            if run["tool"] == BASELINE
        )
    limit = max(LIMIT, SLOWER * alone)
    begin = time.monotonic()
    legs: list[Configuration | None] = [
        None,
        *(tool for tool in tools if failures(store, setup.key, version, tool.name) < GIVES_UP),
    ]
    random.Random(f"{setup.key}{number}").shuffle(legs)
    found = [
        measured(leg, setup, argv, scratch / f"{name}-{number}-{position}", number, position, limit)
        for position, leg in enumerate(legs, 1)
    ]
    store.put(
        (*setup.key, str(number)), version, runs=found, seconds=round(time.monotonic() - begin, 2),
    )  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A program that is measured in rounds, in turns with others.

    Attributes
    ----------
    store : Store
    key : tuple of str
        Of its results, without the round.
    version : str
        What they depend on.
    measure : callable
        Measures a round, of this number, and keeps it.
    """

    store: Store
    key: tuple[str, ...]
    version: str
    measure: Callable[[int], None]

    def has(self, number: int) -> bool:
        """Return whether this round is measured, or the program fails without a tool."""
        return self.store.has((*self.key, str(number)), self.version) or self.is_given_up()

    def is_given_up(self) -> bool:
        """Return whether the program fails without a tool."""
        return self.store.part != CALLS and failures(self.store, self.key, self.version, BASELINE) >= GIVES_UP

    def missing(self, rounds: int) -> int:
        """Return how many of these rounds are not measured."""
        return sum(not self.has(number) for number in range(1, rounds + 1))

    def seconds(self) -> float | None:
        """Return how long a round takes, the median of all, or None if none is measured."""
        took = [
            record["seconds"]
            for record in self.store
            if tuple(record["key"][:-1]) == self.key and "seconds" in record
        ]
        return statistics.median(took) if took else None


def fitting(cells: Sequence[Cell], rounds: int, budget: Budget) -> list[Cell]:
    """Return the first cells whose missing rounds take no more than the time that is left.

    Rounds of a cell that was never measured count as no time, so that its first round tells.
    """
    left = budget.left()
    found = []
    for cell in cells:
        time_of = (cell.seconds() or 0) * cell.missing(rounds)
        if time_of <= left:
            left -= time_of
            found.append(cell)
    return found


def in_turns(cells: Sequence[Cell], rounds: int, budget: Budget) -> None:
    """Measure all cells in rounds, in turns, until all have their rounds or the time is over.

    If the time is too short for six rounds of all cells, the first ones that fit get theirs, because fewer are not shown;
    the others are left for the next command.
    """
    told = 0
    for number in range(1, rounds + 1):
        fit = fitting(cells, max(number, min(ENOUGH, rounds)), budget)
        waiting = len(cells) - len(fit)
        if waiting > told and number <= ENOUGH:
            told = waiting
            print(f"{waiting} of {len(cells)} programs wait: no time for {ENOUGH} rounds of them", flush=True)
        for cell in fit:
            if cell.has(number) or not budget.allows(cell.seconds() or GUESS):
                continue
            cell.measure(number)
            print(f"{cell.store.part:8} {' '.join(cell.key)}, round {number} of {rounds}", flush=True)


def needed(cells: Sequence[Cell], rounds: int) -> str:
    """Return how long all rounds that are left take, as a sentence."""
    known = [seconds for cell in cells if (seconds := cell.seconds()) is not None]
    usual = statistics.mean(known) if known else GUESS
    left = dict.fromkeys(sorted({min(ENOUGH, rounds), rounds}), 0.0)
    for cell in cells:
        for count in left:
            left[count] += cell.missing(count) * (cell.seconds() or usual)
    texts = [f"{seconds / 60:.1f} minutes for {count} rounds" for count, seconds in left.items()]
    unknown = f" ({len(cells) - len(known)} of them never measured)" if len(known) < len(cells) else ""
    return f"{len(cells)} programs{unknown} need {', '.join(texts)}"


def cells_of(
    store: Store, setups: Sequence[Setup], scratch: Path, names: Sequence[str] | None = None
) -> list[Cell]:
    """Return programs that run under the stopwatch.

    names : of the configurations; None: all
    """
    cells = []
    for setup in setups:
        tools = chosen(setup.mpi, names)
        cells.append(
            Cell(
                store,
                setup.key,
                version_of(tools, setup.mpi, setup.application),
                lambda number, setup=setup, tools=tools: one_round(store, setup, number, tools, scratch),  # type: ignore[misc]
            )
        )
    return cells


def setups_of_overhead(
    mpis: Sequence[str], ranks: Sequence[int], size: str = "usual", counts: Sequence[int] = (1,)
) -> list[Setup]:
    """Return the applications that are there, and the programs, of part "overhead".

    size : "usual" for one or two seconds, "quick" for a quarter of that, "small" for milliseconds; "mixed" for the usual
        applications on FEW_RANKS, and everything else quick: ranks that share cores take many times as long
    counts : of hosts; on several only applications run, because the programs call MPI so often that they take minutes
    """

    def arguments(name: str, n: int) -> tuple[int | str, ...]:
        if name in applications.BY_NAME:
            application = applications.BY_NAME[name]
            is_usual = size == "mixed" and n <= FEW_RANKS
            return (application.size("usual" if is_usual else size), application.unit)
        program = PROGRAMS[name]
        if size in ("quick", "mixed"):
            return QUICK[name]
        return tuple(program.small if size == "small" else program.usual)

    def is_there(name: str, mpi: str) -> bool:
        return name not in applications.BY_NAME or applications.BY_NAME[name].executable(mpi) is not None

    return [
        Setup(mpi, n, name, arguments(name, n), count)
        for n in ranks
        for count in counts
        for name in (*applications.BY_NAME, *PROGRAMS_OF_OVERHEAD)
        for mpi in mpis
        if is_there(name, mpi)
        and (count == 1 or (mpi == hosts.MPI and n >= count and name in applications.BY_NAME))
    ]


def setups_of_finalize(mpis: Sequence[str], ranks: Sequence[int]) -> list[Setup]:
    """Return the programs of part "finalize": duplicates of MPI_COMM_WORLD, each used twice.

    With MPICH, whose waiting ranks do not yield, 1,000 duplicates take minutes where ranks share cores.
    """
    cores = os.cpu_count() or 1
    return [
        Setup(mpi, n, "many_comms", (comms, 2 * comms))
        for mpi in mpis
        for n in ranks
        for comms in COMMS_OF_FINALIZE
        if comms < COMMS_OF_FINALIZE[-1] or mpi == "openmpi" or n <= cores
    ]


def cells_of_calls(store: Store, mpis: Sequence[str], names: Sequence[str] | None = None) -> list[Cell]:
    """Return bench/calls.c for each MPI library: nanoseconds of a call, on one and on many communicators."""
    cells = []
    for mpi in mpis:
        tools = chosen(mpi, names)
        cells.append(
            Cell(
                store,
                (mpi,),
                version_of(tools, mpi),
                lambda number, mpi=mpi, tools=tools: one_round_of_calls(store, mpi, number, tools),  # type: ignore[misc]
            )
        )
    return cells


def one_round_of_calls(store: Store, mpi: str, number: int, tools: Sequence[Configuration]) -> None:
    """Run bench/calls.c without and with each tool, and keep the times of its rows."""
    begin = time.monotonic()
    program = runs.compiled(places.ROOT / "bench" / "calls.c", mpi)
    legs: list[Configuration | None] = [None, *tools]
    random.Random(f"{mpi}{number}").shuffle(legs)
    found = {}
    for leg in legs:
        arguments: list[str | Path] = [program, *map(str, COMMS_OF_CALLS[mpi])]
        with runs.run(leg, mpi, 1, arguments, 2 * LIMIT, {"CALLS_BLOCKS": str(BLOCKS_OF_CALLS)}) as ran:
            lines = [line for line in ran.said.splitlines() if line.count("|") == 2]
            found[BASELINE if leg is None else leg.name] = {
                "failure": ran.failure,
                "command": ran.command,
                "ns": [[*row, ns] for row, ns in rows_of("\n".join(lines)).items()],
            }
    store.put(
        (mpi, str(number)), version_of(tools, mpi), runs=found, seconds=round(time.monotonic() - begin, 2)
    )


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
            code, said, _ = runs.execute(words, 20 * LIMIT, folder)
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
