# SPDX-License-Identifier: Apache-2.0
"""Runs the application without and with each tool in rounds, and reads the times."""

from __future__ import annotations

import errno
import os
import random
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

from commlens.base.errors import CommlensError
from commlens.base.messages import print_message
from commlens.launch.job import end_job
from commlens.overhead.legs import BASELINE, Tool

# So many lines of a failed run are shown, if they are not too long.  The last ones can be those of the MPI launcher.
LAST_WORDS, LAST_BYTES = 25, 1 << 16
# How launchers name the signal that ended a process, where their own exit status does not.
OF_LAUNCHERS = re.compile(r"exited on signal (\d{1,2})\b|\(signal (\d{1,2})\)")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
    failure : str
        "signal 11" or "exit code 1" of a run that failed, which has no times; else empty.
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
    failure: str = ""

    @property
    def wall_ns(self) -> int:
        """Time of the whole command."""
        return self.net_ns + self.hook_ns + self.wrap_ns


COLUMNS = tuple(field.name for field in fields(Run))


class FailedRunError(CommlensError):
    """A run whose command failed."""

    def __init__(self, message: str, details: Sequence[str], failure: str) -> None:
        super().__init__(message, details)
        self.failure = failure


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
    """Return the times that the stopwatch wrote, one per process; leaves out a file that a full disk has cut short."""
    lines = [path.read_text(encoding="ascii").split() for path in sorted(folder.glob("*.*"))]
    return [Times(*map(int, words)) for words in lines if len(words) == len(Times._fields)]


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


def outcome(status: int, said: str) -> str:
    """Return how a command failed, by its exit status and the last lines of its output.

    >>> outcome(139, ""), outcome(-6, ""), outcome(3, ""), outcome(1, "process rank 0 exited on signal 11 (Segmentation fault)")
    ('signal 11', 'signal 6', 'exit code 3', 'signal 11')
    """
    if status < 0:
        return f"signal {-status}"
    if 128 < status <= 128 + 64:
        return f"signal {status - 128}"
    named = OF_LAUNCHERS.search(said)
    return f"signal {named[1] or named[2]}" if named else f"exit code {status}"


def check_room(folder: Path) -> None:
    """Refuse a folder in which no file can be written any more.

    Raises
    ------
    CommlensError
        The disk is full, the quota is exceeded, or files may not become as large as 4 KiB.
    """
    path = folder / "room"
    try:
        with path.open("wb") as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
    except OSError as error:
        path.unlink(missing_ok=True)
        reason = "disk full" if error.errno in NO_ROOM else "cannot be written"
        raise CommlensError(
            f"{Path.cwd()}: {reason} ({error.strerror}): the runs write their times below it, and tools their "
            "files. Start commlens overhead in a folder with more room"
        ) from None


def _execute(command: Sequence[str], said: Path) -> tuple[int, int, str]:
    """Run a command; return its exit status, the time that it took, and the end of its output."""
    with said.open("w+b") as file:
        begin = time.monotonic_ns()
        try:
            job = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise CommlensError(f"{command[0]}: cannot be started: {error.strerror or error}") from None
        try:
            rc = job.wait()
        finally:
            end_job(job)
        wall = time.monotonic_ns() - begin
        file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES))
        return rc, wall, file.read().decode(errors="replace").strip()


def run_once(
    tool: Tool, launch: Sequence[str], stopwatch: Path, folder: Path, round: int, position: int
) -> Run:
    """Run the application with a tool in `folder`, which is created and removed.

    Raises
    ------
    FailedRunError
        The command failed.
    CommlensError
        No process completed MPI_Init and MPI_Finalize, the tool was not loaded, or the disk is full.
    """
    try:
        (folder / "out").mkdir(parents=True)
        command = tool.command(launch, stopwatch, folder)
        rc, wall, said = _execute(command, folder / "said")
    except OSError as error:
        check_room(folder.parent)
        raise CommlensError(f"{folder}: {error.strerror or error}") from None
    words = said.splitlines()[-LAST_WORDS:]
    which = f"{tool.name}, round {round}"
    times = read_times(folder)
    check_room(folder)
    if rc != 0:
        shutil.rmtree(folder)
        raise FailedRunError(f"{which}: '{shlex.join(command)}' ended with {rc}", words, outcome(rc, said))
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
    tools: Sequence[Tool],
    launch: Sequence[str],
    stopwatch: Path,
    number: int,
    seed: int,
    *,
    may_fail: bool = False,
) -> Iterator[Run]:
    """Yield the runs of all rounds, each in random order; round 0 is the warm-up, which callers discard.

    A tool whose run fails is measured on, as the others are; its first failure is printed.

    may_fail : go on even if the warm-up of all tools failed

    Raises
    ------
    CommlensError
        A run without a tool failed, the warm-up of all tools failed, a run cannot be measured, or it had another number
        of processes than the first.
    """
    legs = [Tool(BASELINE), *tools]
    shuffle = random.Random(seed).shuffle
    processes = 0
    failed: set[str] = set()
    writes: set[str] = set()
    with scratch() as folder:
        for round in range(number + 1):
            if round > 0:
                shuffle(legs)
            for position, tool in enumerate(legs, 1):
                try:
                    run = run_once(tool, launch, stopwatch, folder / f"{round}-{position}", round, position)
                except FailedRunError as error:
                    is_first = tool.name not in failed
                    failed.add(tool.name)
                    if tool.name == BASELINE or (round == 0 and len(failed) == len(tools) and not may_fail):
                        raise
                    if is_first:
                        print_message(error.message, error.details)
                    yield Run(round, position, tool.name, 0, 0, 0, 0, 0, 0, error.failure)
                    continue
                processes = processes or run.processes
                if run.processes != processes:
                    raise CommlensError(
                        f"{tool.name}, round {round}: {run.processes} processes reached MPI_Init and MPI_Finalize, but "
                        f"{processes} in the first run"
                    )
                if run.output_bytes == 0 and tool.name in writes:
                    raise CommlensError(
                        f"{tool.name}, round {round}: the tool wrote no file, other than before. Is there room for its "
                        f"output in {Path.cwd()}?"
                    )
                if run.output_bytes != 0:
                    writes.add(tool.name)
                yield run
