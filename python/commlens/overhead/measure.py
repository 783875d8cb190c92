# SPDX-License-Identifier: Apache-2.0
"""Runs the application without and with each tool in rounds, and reads the times."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

from commlens.base.errors import CommlensError
from commlens.overhead.legs import BASELINE, Tool

LAST_WORDS, LAST_BYTES = 3, 1 << 16  # of a run that failed: so many lines, if they are not too long
GRACE = 5.0  # seconds that a launcher has to end its processes


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes
    ----------
    round : int
        From 1; each has one run with each tool and one without.
    position : int
        In the round, from 1.
    tool : str
        BASELINE: none.
    processes : int
    net_ns : int
        Time from leaving MPI_Init to entering MPI_Finalize, of the process with the longest.
    hook_ns : int
        Additional time from entering MPI_Init to leaving MPI_Finalize, of the process with the longest.
    wrap_ns : int
        Remaining time of the whole command.
    memory_bytes : int
        Most memory that was resident in a process at any time, of the process with most.
    output_bytes : int
        Size of the files that the tool wrote.
    """

    round: int
    position: int
    tool: str
    processes: int
    net_ns: int
    hook_ns: int
    wrap_ns: int
    memory_bytes: int
    output_bytes: int

    @property
    def wall_ns(self) -> int:
        """Time of the whole command."""
        return self.net_ns + self.hook_ns + self.wrap_ns


COLUMNS = tuple(field.name for field in fields(Run))


class Times(NamedTuple):
    """The times that the stopwatch wrote for a process.

    Nanoseconds in MPI_Init, between and in MPI_Finalize; KiB that were resident; 0 where another library's MPI_Init came
    before its own; 0 where the tool's library is not loaded, or
    commlens is without being asked for.
    """

    init: int
    net: int
    finalize: int
    memory: int
    is_first: int
    has_tool: int


def read_times(folder: Path) -> list[Times]:
    """Return the times that the stopwatch wrote, one per process."""
    files = sorted(folder.glob("*.*"))
    return [Times(*map(int, path.read_text(encoding="ascii").split())) for path in files]


def summarize(
    times: Sequence[Times],
    wall_ns: int,
    output_bytes: int,
    round: int,
    position: int,
    tool: str,
) -> Run:
    """Return one run from the times of its processes."""
    net = max(process.net for process in times)
    inside = max(process.init + process.net + process.finalize for process in times)
    memory = max(process.memory for process in times) * 1024
    return Run(round, position, tool, len(times), net, inside - net, wall_ns - inside, memory, output_bytes)


def run_once(
    tool: Tool, launch: Sequence[str], stopwatch: Path, folder: Path, round: int, position: int
) -> Run:
    """Run the application with a tool in `folder`, which is created and removed.

    Raises
    ------
    CommlensError
        The run failed, no process completed MPI_Init and MPI_Finalize, or the tool was not loaded.
    """
    (folder / "out").mkdir(parents=True)
    command = tool.command(launch, stopwatch, folder)
    with (folder / "said").open("w+b") as said:
        begin = time.monotonic_ns()
        try:
            rc = _wait(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
            )
        except OSError as error:
            raise CommlensError(f"{command[0]}: cannot be started: {error.strerror or error}") from None
        wall = time.monotonic_ns() - begin
        said.seek(max(0, said.seek(0, os.SEEK_END) - LAST_BYTES))
        words = said.read().decode(errors="replace").strip().splitlines()[-LAST_WORDS:]
    which = f"{tool.name}, round {round}"
    if rc != 0:
        raise CommlensError(f"{which}: '{shlex.join(command)}' ended with {rc}", words)
    times = read_times(folder)
    if not times:
        raise CommlensError(
            f"{which}: no process reached MPI_Init and MPI_Finalize in '{shlex.join(command)}'. Is it an MPI program, "
            "linked with its MPI library dynamically, and is this folder the same on all nodes?"
        )
    if not all(process.is_first for process in times):
        raise CommlensError(
            f"{which}: the tool is loaded before the stopwatch, so the times would not show its cost"
        )
    if not all(process.has_tool for process in times):
        if tool.name == BASELINE:
            raise CommlensError(
                f"{which}: commlens is loaded in the run without a tool: remove it from LD_PRELOAD and from the scripts "
                "that start the application"
            )
        raise CommlensError(
            f"{which}: {tool.library} is not loaded: it does not exist on all nodes, or cannot be preloaded here",
            words,
        )
    output = sum(path.lstat().st_size for path in (folder / "out").rglob("*") if not path.is_dir())
    shutil.rmtree(folder)
    return summarize(times, wall, output, round, position, tool.name)


def _wait(launcher: subprocess.Popen[bytes]) -> int:
    """Return the exit status of a launcher; if it must be stopped, give it time to end its processes."""
    try:
        return launcher.wait()
    finally:
        if launcher.poll() is None:
            launcher.terminate()
            try:
                launcher.wait(GRACE)
            except subprocess.TimeoutExpired:
                launcher.kill()
                launcher.wait()


@contextmanager
def interruptible() -> Iterator[None]:
    """Treat the signals at the end of a batch job and of a closed terminal like Ctrl-C."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    ours = [
        number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL
    ]
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a folder for the runs in the current directory, which all nodes share, and remove it at the end.

    Raises
    ------
    CommlensError
        It cannot be created.
    """
    try:
        folder = tempfile.mkdtemp(prefix=".commlens-overhead-", dir=Path.cwd())
    except OSError as error:
        raise CommlensError(
            f"{Path.cwd()}: cannot write the times of the runs there: {error.strerror}"
        ) from None
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rounds(
    tools: Sequence[Tool], launch: Sequence[str], stopwatch: Path, number: int, seed: int
) -> Iterator[Run]:
    """Yield the runs of all rounds, each in random order; round 0 is the warm-up, which callers discard.

    Raises
    ------
    CommlensError
        A run failed, or had another number of processes than the first.
    """
    legs = [Tool(BASELINE), *tools]
    shuffle = random.Random(seed).shuffle
    processes = 0
    with scratch() as folder:
        for round in range(number + 1):
            if round > 0:
                shuffle(legs)
            for position, tool in enumerate(legs, 1):
                run = run_once(tool, launch, stopwatch, folder / f"{round}-{position}", round, position)
                processes = processes or run.processes
                if run.processes != processes:
                    raise CommlensError(
                        f"{tool.name}, round {round}: {run.processes} processes reached MPI_Init and MPI_Finalize, but "
                        f"{processes} in the first run"
                    )
                yield run


def free_name(path: Path) -> None:
    """Refuse the name of an existing file, before the measurement.

    Raises
    ------
    CommlensError
        The file exists, or its folder does not.
    """
    if path.exists():
        raise CommlensError(f"{path}: exists")
    if not os.access(path.parent, os.W_OK):
        raise CommlensError(f"{path.parent}: cannot be written")
