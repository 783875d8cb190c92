# SPDX-License-Identifier: Apache-2.0
"""Measures the collectives of a plan with each algorithm: compiles the program, starts it, and keeps its times."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from commlens.algorithms.offered import library_of
from commlens.base.errors import CommlensError
from commlens.base.progress import announced
from commlens.launch.compiler import can_compile, compile_with_mpicc
from commlens.launch.job import end_job
from commlens.overhead.legs import HERE
from commlens.tune.candidates import way_of
from commlens.tune.cases import Cases
from commlens.tune.jobs import Jobs
from commlens.tune.measurements import FAILED, HEADER, PLAN, TIMES, Measurements, plan_text, read_measurements

SOURCE = Path(__file__).with_name("replay.c")
PROGRAM = "replay"
SAID = "replay.log"
ERRORS = "replay.err"
OURS = "commlens-replay: "
AT_LAUNCH = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
"""Open MPI's variables for algorithms count only if this one is set when the job starts."""

IN_PYTHON = (
    "There is no mpicc: measured in Python, by mpi4py. All times contain some microseconds of Python, so that changes of "
    "short calls look smaller than they are."
)

LAUNCHING = 3.0  # seconds kept for the start and the end of the job
LEAST = 2.0  # seconds of measurement, however long the compiler took
GRACE = 10.0  # seconds after the budget, until the job is ended
JOB = 10.0  # seconds of measurement of a job that measures one algorithm, at most
SLOW_LAUNCH = 120.0  # the same for a job that has not yet begun to measure


def replay(
    cases: Cases,
    launch: Sequence[str],
    folder: Path,
    *,
    budget_s: float = 60.0,
    seed: int = 1,
    announce: bool = True,
) -> Measurements:
    """Measure the cases, or go on with a measurement of the same cases in this folder.

    Parameters
    ----------
    launch : what `overhead.legs.split` returned
    budget_s : seconds for all, with compiling and starting
    announce : whether to show how long it takes

    Raises
    ------
    CommlensError
        No compiler, another MPI library or number of processes, a folder that cannot be written, a failed launch.
    """
    begin = time.monotonic()
    if way_of(cases.library) is None:
        raise CommlensError(
            f"commlens does not know how to choose algorithms of {cases.library or 'an unknown MPI library'}"
        )
    _make_folder(folder, plan_text(cases, seed))
    if not cases.cases:
        found = read_measurements(folder)
        found.notes.extend(cases.notes)
        return found
    program = find_program(folder)
    seconds = max(LEAST, budget_s - (time.monotonic() - begin) - LAUNCHING)
    words = [str(folder.absolute() / name) for name in (PLAN, TIMES)]
    if way_of(cases.library) == "job":
        told = _run_jobs([*program, *words], launch, folder, cases, seconds, seed, announce=announce)
    else:
        command = replaced(launch, [*program, *words, f"{seconds:.1f}"])
        told = [
            f"{name} cannot be set while a job runs: its algorithms were not tried."
            for name in _run(command, folder, cases.library, seconds, announce)
        ]
    (folder / PROGRAM).unlink(missing_ok=True)
    found = replace(read_measurements(folder), module=_module(folder / SAID))
    found.notes.extend(cases.notes)
    if program[0] == sys.executable:
        found.notes.append(IN_PYTHON)
    found.notes.extend(told)
    return found


def measured_before(cases: Cases, folder: Path, seed: int = 1) -> Measurements | None:
    """Return what was measured of these cases in a folder; None if it has no measurements, or those of other cases.

    Raises
    ------
    CommlensError
        A file is damaged.
    """
    try:
        if (folder / PLAN).read_text(encoding="utf-8") != plan_text(cases, seed):
            return None
    except (OSError, UnicodeDecodeError):
        return None
    found = replace(read_measurements(folder), module=_module(folder / SAID))
    found.notes.extend(cases.notes)
    return found


def replaced(launch: Sequence[str], program: Sequence[str]) -> list[str]:
    """Return the command that starts a program in place of the application.

    >>> replaced(["mpirun", "-n", "4", "{}", "./app", "input"], ["replay", "plan"])
    ['mpirun', '-n', '4', 'replay', 'plan']
    >>> replaced(["mpirun", "-n", "1", "{}", "./a", ":", "-n", "2", "{}", "./b", "1"], ["r"])
    ['mpirun', '-n', '1', 'r', ':', '-n', '2', 'r']
    """
    words: list[str] = []
    is_application = False
    for word in launch:
        if word == ":":
            is_application = False
        if word == HERE:
            is_application = True
            words += program
        elif not is_application:
            words.append(word)
    return words


def _make_folder(folder: Path, plan: str) -> None:
    """Create the folder with the plan; leave what was measured for the same plan."""
    path, times = folder / PLAN, folder / TIMES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.read_bytes() != plan.encode():
            raise CommlensError(
                f"{folder} has measurements of another plan: remove it, or choose another folder"
            )
        if not path.exists():  # under its name it is whole, also after an interruption
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text(plan, encoding="utf-8")
            unfinished.replace(path)
        text = times.read_bytes() if times.exists() else b""
        with times.open("ab") as file:
            if not text:
                file.write(f"{HEADER}\n".encode())
            elif not text.endswith(b"\n"):  # the last line was cut short
                file.write(b"\n")
    except OSError as error:
        raise CommlensError(f"{folder}: cannot be written: {error.strerror}") from None


def find_program(folder: Path) -> list[str]:
    """Return the words that start the program: compiled into the folder, or in Python if there is no mpicc.

    Raises
    ------
    CommlensError
        There is neither a compiler nor mpi4py, or the compiler fails.
    """
    if not can_compile("the replay"):
        return [sys.executable, "-m", "commlens.tune.replay_mpi4py"]
    return [str(compile_with_mpicc(SOURCE, folder / PROGRAM).absolute())]


def is_same_library(wanted: str, found: str) -> bool:
    """Return whether two first lines of MPI_Get_library_version name the same library, major and minor version.

    >>> is_same_library("Open MPI v4.1.4, package: a", "Open MPI v4.1.5, package: b"), is_same_library("Open MPI v4.1.4", "MPICH Version: 4.0")
    (True, False)
    """
    first, second = library_of(wanted), library_of(found)
    return (
        first is not None
        and second is not None
        and (first[0].title, first[1]) == (second[0].title, second[1])
    )


def _run_jobs(
    words: Sequence[str],
    launch: Sequence[str],
    folder: Path,
    cases: Cases,
    seconds: float,
    seed: int,
    *,
    announce: bool,
) -> list[str]:
    """Run a job for each algorithm and round; return what the user must know, in sentences."""

    def start(variables: Mapping[str, str], job: Sequence[str]) -> None:
        command = replaced(launch, [*words, f"{JOB:.1f}", *job])
        _run(command, folder, cases.library, JOB, announce=False, variables=variables)

    jobs = Jobs(cases.library, start, lambda: read_measurements(folder), seed)
    ticks = _each_second(jobs.run(seconds))
    for _ in announced(ticks, round(seconds), 2, "seconds of measurement") if announce else ticks:
        pass
    return jobs.notes(read_measurements(folder))


def _each_second(jobs: Iterator[int]) -> Iterator[int]:
    """Yield a number for each second that the jobs took."""
    begin, second = time.monotonic(), 0
    for _ in jobs:
        while second < time.monotonic() - begin:
            yield (second := second + 1)


def _run(
    command: Sequence[str],
    folder: Path,
    library: str,
    seconds: float,
    announce: bool,
    variables: Mapping[str, str] | None = None,
) -> list[str]:
    """Run the job; return the names of variables that cannot be set."""
    environment = {**os.environ, **AT_LAUNCH, **(variables or {})}
    said, failed = folder / SAID, folder / f"{PLAN}{FAILED}"
    failed.unlink(missing_ok=True)
    with _created(said) as output, _created(folder / ERRORS) as errors:
        try:
            job = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise CommlensError(f"{command[0]}: cannot be started: {error.strerror}") from None
        try:
            ticks = _seconds(job, said, library, seconds)
            for _ in announced(ticks, round(seconds), 2, "seconds of measurement") if announce else ticks:
                pass
        finally:
            end_job(job)
    lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
    _check(job.returncode, command, lines, folder / ERRORS, failed)
    failed.unlink(missing_ok=True)
    return sorted(set(_said(said, "refused")))


def _created(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise CommlensError(f"{path}: cannot be written: {error.strerror}") from None


def _seconds(job: subprocess.Popen[bytes], said: Path, library: str, seconds: float) -> Iterator[int]:
    """Yield a number each second while the job runs; end one with another library, or one that does not end."""
    until = time.monotonic() + seconds + SLOW_LAUNCH
    is_checked, is_ready, second = False, False, 0
    while True:
        try:
            job.wait(1.0)
            _check_library(said, library)
            return
        except subprocess.TimeoutExpired:
            second += 1
        is_checked = is_checked or _check_library(said, library)
        if not is_ready and _said(said, "ready"):
            is_ready, until = True, time.monotonic() + seconds + GRACE
        if time.monotonic() > until:
            raise CommlensError("the replay did not end in time and was stopped; what it measured is kept")
        yield second


def _check_library(said: Path, library: str) -> bool:
    """Refuse another library than that of the profile; return whether the job has named its own."""
    names = _said(said, "library")
    if names and not is_same_library(library, names[0]):
        raise CommlensError(
            f"the run used '{library}', but the replay '{names[0]}': set MPICC to the mpicc of the run's library"
        )
    if len(names) > 1:
        raise CommlensError(
            "the launcher and the mpicc belong to different MPI libraries: each process is alone. Set MPICC"
        )
    return bool(names)


def _check(rc: int, command: Sequence[str], lines: Sequence[str], errors: Path, failed: Path) -> None:
    """Refuse a job that failed, with its own words if it has said why."""
    if rc == 0:
        return
    told = errors.read_text(encoding="utf-8", errors="replace").splitlines()
    ours = [line.partition(OURS)[2] for line in told if OURS in line]
    if failed.exists():
        ours = failed.read_text(encoding="utf-8", errors="replace").splitlines()
    if ours:
        raise CommlensError(ours[0])
    raise CommlensError(f"'{shlex.join(command)}' ended with {rc}", [*lines, *told][-3:])


def _module(said: Path) -> str:
    """Return the file of the MPI library that the job has named; empty if it has not."""
    return next(iter(_said(said, "module")), "")


def _said(path: Path, name: str) -> list[str]:
    """Return what the job has written behind a word at the beginning of a line, or behind a rank that the launcher adds.

    Launchers write it as "0: ", "[0] ", "[1,0]<stdout>:" or "[node:12,0]<stdout>: ".
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    line = re.compile(rf"^(?:\d+: ?|\[[^]\n]*\](?:<\w+>)?:? ?)?{name}(?: (.*))?$", re.MULTILINE)
    return [(found[1] or "").strip() for found in line.finditer(text)]
