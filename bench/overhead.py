# SPDX-License-Identifier: Apache-2.0
"""Measure what commlens costs and write docs/evidence/overhead.md.

    .venv/bin/python bench/overhead.py                       # all programs, 30 rounds, both MPI libraries
    .venv/bin/python bench/overhead.py --only cg --rounds 6  # some of it
    .venv/bin/python bench/overhead.py --render              # only writes the page again

The numbers are kept in docs/evidence/overhead/ after every program.  A measurement that was stopped goes on where it was: what has
all its rounds is not measured again (--again), and the page says of which versions the numbers are.
bench/overhead_page.md.in has the words, bench/overhead_page.py the tables.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("", "python")]

from bench.apps import PROGRAMS, Program, build  # noqa: E402
from bench.overhead_page import (  # noqa: E402
    ALONE,
    APPS,
    CALLS,
    FINALIZE,
    MACHINE,
    MEMORY,
    MINIMAL,
    ROOT,
    STOPWATCH_WITH,
    STOPWATCH_WITHOUT,
    App,
    Call,
    Phase,
    Row,
    read,
    read_json,
    read_rows,
    write,
    write_json,
    write_rows,
)
from bench.run import ENVIRONMENT, HERE, machine, rows_of  # noqa: E402
from bench.scale import phases_of  # noqa: E402

from commlens.base.errors import CommlensError  # noqa: E402
from commlens.base.interrupt import interruptible  # noqa: E402
from commlens.doctor.families import TITLES  # noqa: E402
from commlens.overhead.estimate import whole_rounds  # noqa: E402
from commlens.overhead.legs import (  # noqa: E402
    BASELINE,
    COMMLENS,
    Tool,
    commlens_tool,
    find_stopwatch,
    split,
)
from commlens.overhead.measure import read_times, rounds  # noqa: E402

NUMBERS, PAGE = ROOT / "docs" / "evidence" / "overhead", ROOT / "docs" / "evidence" / "overhead.md"
RANKS = 2
BUSY = 0.5  # load
COMMUNICATORS = {"openmpi": (1, 64, 4096), "mpich": (1, 64, 2000)}
UNDER_MINIMAL = ("bcast_barrier",)
"""Also run under a wrapper that does the least: their calls are so short that looking at the clock is much of them."""
OF_FINALIZE = ("bcast_barrier 1000", "many_comms 256 1000")
CALLS_SECONDS, FINALIZE_SECONDS, APP_SECONDS = 1.5, 0.7, 2.0
MEMORY_SECONDS = 60.0
"""What a run of each kind takes, about, as long as none has been measured."""


class Step(NamedTuple):
    """A part of the measurement that is kept as a whole."""

    name: str
    seconds: float  # about
    measure: Callable[[], None]


def version(mpi: str) -> str:
    """Return what the launcher says that it is."""
    said = subprocess.run([f"mpirun.{mpi}", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return f"{TITLES[mpi]} {found[0] if found else ''}".strip()


def facts(mpis: Sequence[str], count: int) -> dict[str, str]:
    """Return what the page says of the machine and of how it was measured."""
    git = partial(subprocess.run, cwd=ROOT, capture_output=True, text=True, check=False)
    commit = git(["git", "describe", "--always"]).stdout.strip()
    # The numbers and the page are under docs, and change here.
    if git(["git", "diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs"]).returncode == 1:
        commit += "-dirty"
    return {
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        "commlens": f"{(ROOT / 'VERSION').read_text().strip()}, {commit}",
        "machine": machine(),
        "MPI": ", ".join(version(mpi) for mpi in mpis),
        "rounds asked for": str(count),
        **({"beware": "others used the machine when this began"} if os.getloadavg()[0] > BUSY else {}),
    }


def gone_on(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of a measurement that goes on where another one was stopped: what both were made with.

    >>> gone_on({"commlens": "a", "MPI": "x"}, {"commlens": "b", "MPI": "x", "beware": "busy"})
    {'commlens': 'a; b', 'MPI': 'x', 'beware': 'busy'}
    """
    return {
        name: "; ".join(
            dict.fromkeys(
                word for facts in (before, now) if name in facts for word in facts[name].split("; ")
            )
        )
        for name in dict.fromkeys((*before, *now))
    }


def measure_app(place: Path, mpi: str, command: str, count: int) -> None:
    """Run one program in rounds, and keep them."""
    program, *arguments = command.split()
    executable = build(PROGRAMS[program], mpi)
    launch = split([f"mpirun.{mpi}", "-n", str(RANKS), str(executable), *arguments])
    tools = [commlens_tool()]
    with tempfile.TemporaryDirectory() as scratch:
        if program in UNDER_MINIMAL:
            tools.append(Tool(MINIMAL, library=str(minimal(mpi, Path(scratch)))))
        found = [
            App(**vars(run), mpi=mpi, program=command)
            for run in rounds(tools, launch, find_stopwatch(), count, 1)
        ]
    failed = [run for run in found if run.failure]
    if failed:
        raise CommlensError(
            f"{command}, {mpi}: {failed[0].tool}, round {failed[0].round}: {failed[0].failure}"
        )
    others = [row for row in read_rows(place / APPS, App) if (row.mpi, row.program) != (mpi, command)]
    write_rows(place / APPS, App, [*others, *found])


def minimal(mpi: str, scratch: Path, *flags: str) -> Path:
    """Compile the minimal wrapper, with these flags."""
    library = scratch / f"minimal-{mpi}.so"
    source = HERE / "tools" / "minimal.c"
    subprocess.run(
        [f"mpicc.{mpi}", "-O2", "-w", "-shared", "-fPIC", *flags, source, "-o", library], check=True
    )
    return library


def measure_calls(
    place: Path, mpi: str, count: int, communicators: Sequence[int], *, small: bool = False
) -> None:
    """Run calls.c in rounds, and keep them; if `small`, with fewer repetitions."""
    found = []
    environment = {**os.environ, **({"CALLS_BLOCKS": "1"} if small else {})}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        program, library = scratch / f"calls-{mpi}", minimal(mpi, scratch)
        subprocess.run([f"mpicc.{mpi}", "-O2", "-w", HERE / "calls.c", "-o", program], check=True)
        launch = split([f"mpirun.{mpi}", "-n", "1", str(program), *map(str, communicators)])
        tools = [Tool(BASELINE), Tool(MINIMAL, library=str(library)), commlens_tool()]
        stopwatch = find_stopwatch()
        for round in range(count + 1):
            for tool in tools[round % 3 :] + tools[: round % 3]:
                folder = scratch / "run"
                (folder / "out").mkdir(parents=True)
                done = subprocess.run(
                    tool.command(launch, stopwatch, folder),
                    capture_output=True, text=True, check=False, env=environment,
                )  # fmt: skip
                shutil.rmtree(folder)
                if done.returncode != 0:
                    raise CommlensError(f"calls.c under {tool.name}: {done.stderr.strip()}")
                if round > 0:
                    which = ALONE if tool.name == BASELINE else tool.name
                    for (row, number), ns in rows_of(done.stdout).items():
                        found.append(Call(mpi, row, number, which, round, ns))
    others = [row for row in read_rows(place / CALLS, Call) if row.mpi != mpi]
    write_rows(place / CALLS, Call, [*others, *found])


def measure_finalize(place: Path, mpi: str, command: str, count: int) -> None:
    """Run a short program in rounds, and keep where MPI_Finalize was."""
    program, *arguments = command.split()
    launch = split([f"mpirun.{mpi}", "-n", str(RANKS), str(build(PROGRAMS[program], mpi)), *arguments])
    tools = [Tool(BASELINE), commlens_tool()]
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        for round in range(count + 1):
            for tool in tools if round % 2 else tools[::-1]:
                (folder / "out").mkdir(parents=True)
                done = subprocess.run(
                    tool.command(launch, find_stopwatch(), folder),
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
                times = read_times(folder)
                if done.returncode != 0 or len(times) != RANKS:
                    raise CommlensError(f"{command} under {tool.name}: {done.stderr.strip()}")
                is_ours = tool.name == COMMLENS
                took = {
                    STOPWATCH_WITH if is_ours else STOPWATCH_WITHOUT: max(time.finalize for time in times),
                    **(phases_of(folder / "out" / "profile.db") if is_ours else {}),
                }
                shutil.rmtree(folder)
                if round > 0:
                    found += [Phase(mpi, command, round, what, ns) for what, ns in took.items()]
    others = [row for row in read_rows(place / FINALIZE, Phase) if (row.mpi, row.program) != (mpi, command)]
    write_rows(place / FINALIZE, Phase, [*others, *found])


def measure_memory(place: Path, mpi: str) -> None:
    """Keep what bench/memory.py finds."""
    memory = importlib.import_module("bench.memory")
    found = dataclasses.asdict(memory.measure(mpi))
    found["churn"] = {memory.KINDS[kind]: of for kind, of in found["churn"].items()}
    write_json(place / MEMORY, {**read_json(place / MEMORY), mpi: found})


def steps(place: Path, given: argparse.Namespace, chosen: Sequence[Program]) -> Iterator[Step]:
    """Return what there is to measure, without what is there already."""
    kept = read(place)
    count = given.rounds
    has_all = given.only is None
    for mpi in given.mpi:
        for program in chosen:
            arguments = program.small if given.small else program.usual
            command = " ".join(map(str, (program.name, *arguments)))
            runs = [run for run in kept.apps if (run.mpi, run.program) == (mpi, command)]
            if given.again or len(whole_rounds(runs)) < count:
                each = max((run.wall_ns for run in runs), default=APP_SECONDS * 1e9) / 1e9

                def app(mpi: str = mpi, command: str = command) -> None:
                    measure_app(place, mpi, command, count)

                tools = 3 if program.name in UNDER_MINIMAL else 2
                yield Step(f"{command}, {mpi}", tools * (count + 1) * each, app)
        if not has_all and not given.calls:
            continue
        done = {row.round for row in kept.calls if row.mpi == mpi}
        if given.again or len(done) < count:
            communicators = given.communicators or COMMUNICATORS[mpi]

            def calls(mpi: str = mpi, communicators: Sequence[int] = communicators) -> None:
                measure_calls(place, mpi, count, communicators, small=given.small)

            yield Step(f"calls, {mpi}", 3 * (count + 1) * CALLS_SECONDS, calls)
        if (HERE / "memory.py").exists() and not given.small and (given.again or mpi not in kept.memory):

            def memory(mpi: str = mpi) -> None:
                measure_memory(place, mpi)

            yield Step(f"memory, {mpi}", MEMORY_SECONDS, memory)
        for command in OF_FINALIZE:
            done = {row.round for row in kept.finalize if (row.mpi, row.program) == (mpi, command)}
            if given.again or len(done) < count:

                def finalize(mpi: str = mpi, command: str = command) -> None:
                    measure_finalize(place, mpi, command, count)

                yield Step(f"MPI_Finalize, {command}, {mpi}", 2 * (count + 1) * FINALIZE_SECONDS, finalize)


def drop_rows(path: Path, kind: type[Row], mpis: Sequence[str]) -> int:
    """Take the rows of these MPI libraries out of a file; return how many are left."""
    rows = [row for row in read_rows(path, kind) if row.mpi not in mpis]
    write_rows(path, kind, rows)
    return len(rows)


def forget(place: Path, mpis: Sequence[str]) -> None:
    """Take out all that was measured with these MPI libraries; and what it was measured with, if nothing is left."""
    rows = (
        drop_rows(place / APPS, App, mpis)
        + drop_rows(place / CALLS, Call, mpis)
        + drop_rows(place / FINALIZE, Phase, mpis)
    )
    memory = {mpi: of for mpi, of in read_json(place / MEMORY).items() if mpi not in mpis}
    write_json(place / MEMORY, memory)
    if rows + len(memory) == 0:
        (place / MACHINE).unlink(missing_ok=True)


def announced(all_steps: Sequence[Step]) -> Iterator[Step]:
    """Return the steps one by one, and say before each when the last one will end."""
    begin, done = time.monotonic(), 0.0
    total = sum(step.seconds for step in all_steps)
    for number, step in enumerate(all_steps, 1):
        spent = time.monotonic() - begin
        # What was measured tells how far off the guesses are.
        rest = (total - done) * (spent / done if done else 1.0)
        until = time.strftime("%H:%M", time.localtime(time.time() + rest))
        print(f"{number} of {len(all_steps)}: {step.name}; the end is about {until}", flush=True)
        yield step
        done += step.seconds


def parse() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30, help="default: %(default)s")
    parser.add_argument("--only", action="append", choices=sorted(PROGRAMS), help="this program; repeatable")
    parser.add_argument("--calls", action="store_true", help="with --only: calls and MPI_Finalize, too")
    parser.add_argument("--mpi", action="append", choices=sorted(COMMUNICATORS), help="default: both")
    parser.add_argument("--small", action="store_true", help="with the arguments that tests use")
    parser.add_argument("--communicators", type=int, nargs="+", help="of calls.c, instead of the usual ones")
    parser.add_argument(
        "--again",
        action="store_true",
        help="measure what is there already, too; without --only, forget all that is there of these MPI libraries first",
    )
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument(
        "--numbers", type=Path, default=NUMBERS, help="where the numbers are (default: docs/overhead)"
    )
    parser.add_argument(
        "--page", type=Path, default=PAGE, help="what is written (default: docs/evidence/overhead.md)"
    )
    given = parser.parse_args()
    given.mpi = given.mpi or sorted(COMMUNICATORS, reverse=True)
    if given.rounds < 1:
        parser.error("--rounds: at least 1")
    return given


def main() -> None:
    """Measure what is missing and write the page."""
    given = parse()
    place: Path = given.numbers.absolute()
    page: Path = given.page.absolute()
    if not given.render:
        place.mkdir(parents=True, exist_ok=True)
        if given.again and given.only is None:
            forget(place, given.mpi)
        os.environ.update(ENVIRONMENT)
        os.environ["PATH"] = f"{ROOT / 'build' / 'release' / 'bin'}:{os.environ['PATH']}"
        chosen = [PROGRAMS[name] for name in given.only] if given.only else list(PROGRAMS.values())
        missing = list(steps(place, given, chosen))
        if missing:
            write_json(place / MACHINE, gone_on(read_json(place / MACHINE), facts(given.mpi, given.rounds)))
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)  # where `rounds` keeps its files
            for step in announced(missing):
                try:
                    step.measure()
                except CommlensError as error:
                    sys.exit(f"{step.name}: {error}")
            os.chdir(ROOT)
    write(read(place), place, page)
    print(page)


if __name__ == "__main__":
    with interruptible():  # SIGTERM, too, removes the folder of the runs
        main()
