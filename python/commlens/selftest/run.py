# SPDX-License-Identifier: Apache-2.0
"""Runs the program of the self-test without commlens, with it, and killed, and checks what it left."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from commlens.base.errors import CommlensError
from commlens.doctor.finding import Finding, ok, problem, warning
from commlens.jobs.arenas import Arena, Job, find, jobs_of, merge, read
from commlens.launch.compiler import can_compile, compile_with_mpicc
from commlens.launch.job import GRACE_S, end_job
from commlens.overhead.legs import our_runner
from commlens.profile import open_profile
from commlens.selftest.checks import LINE, Said, check_killed, check_profile, said

SOURCE = Path(__file__).with_name("selftest.c")
LAUNCHERS = ("mpirun", "mpiexec", "srun")
MOST_PROCESSES = 4  # without a launcher from the user
PATIENCE_S = 300.0
SHOWN = 8  # last lines of a job that failed

Done = subprocess.CompletedProcess[str]


class Plan(NamedTuple):
    """How to start the program.

    Attributes
    ----------
    launch : list of str
        Launcher with its options.
    program : list of str
    runner : Path
        commlens-run.
    folder : Path
        Where everything goes.
    """

    launch: list[str]
    program: list[str]
    runner: Path
    folder: Path


def plan(launch: Sequence[str], folder: Path) -> Plan:
    """Compile the program and find a launcher, if none is given.

    Raises
    ------
    CommlensError
        There is no launcher, no commlens-run, or neither a compiler nor mpi4py.
    """
    words = list(launch) or _default_launch()
    if shutil.which(words[0]) is None:
        raise CommlensError(f"{words[0]}: no such command")
    runner = our_runner()
    if can_compile("the self-test") and not only_python_fits(words[0]):
        program = [str(compile_with_mpicc(SOURCE, folder / "selftest"))]
    else:
        program = [sys.executable, "-m", "commlens.selftest.in_python"]
    return Plan(words, program, runner, folder)


def only_python_fits(launcher: str) -> bool:
    """Return whether the launcher is of this Python environment, where pip put it, but mpicc is not.

    Then mpicc is that of the system, for another MPI library than the launcher's, as Intel's package from PyPI has none.
    """
    found = [shutil.which(name) for name in (launcher, "mpicc")]
    of_environment = [path is not None and Path(path).parent == Path(sys.executable).parent for path in found]
    return of_environment == [True, False] and not os.environ.get("MPICC") and find_spec("mpi4py") is not None


def _default_launch() -> list[str]:
    found = next((name for name in LAUNCHERS if shutil.which(name)), None)
    if found is None:
        raise CommlensError(
            "no mpirun, mpiexec or srun in PATH: put the launcher after --, as in commlens self-test -- srun -n 4"
        )
    return [found, "-n", str(max(1, min(MOST_PROCESSES, len(os.sched_getaffinity(0)))))]


def self_test(plan: Plan) -> Iterator[Finding]:
    """Run the jobs; yield a finding as soon as it is known."""
    how = "compiled with mpicc" if plan.program[0] != sys.executable else "in Python, by mpi4py"
    yield ok("program", f"{how}; started by {shlex.join(plan.launch)}")
    alone = _run(plan, [])
    line = said(alone.stdout)
    if alone.returncode != 0 or line is None or line.wrong:
        yield problem(
            "without commlens",
            f"the program fails: {_why(alone, line)}",
            "First make the MPI library and its launcher work. Options for the launcher go after --",
        )
        return
    alike = len(LINE.findall(alone.stdout))
    if alike > 1:
        yield problem(
            "without commlens",
            f"the launcher started {alike:,} processes, and each is alone: the launcher and the program belong to different "
            "MPI libraries",
            "Set MPICC to the mpicc of the launcher's library, or name another launcher after --",
        )
        return
    yield ok("without commlens", f"{line.processes:,} processes; every result is right")
    yield from _with(plan, line)
    yield _killed(plan, line)


def _with(plan: Plan, line: Said) -> Iterator[Finding]:
    """Yield what a run with commlens shows."""
    profile = plan.folder / "profile.db"
    done = _run(plan, [str(plan.runner)], COMMLENS_OUTPUT=str(profile))
    found = said(done.stdout)
    if done.returncode != 0 or found is None or found[:3] != line[:3]:
        yield problem(
            "with commlens",
            f"the program does not do what it did without: {_why(done, found)}",
            "Please report this: it must not happen",
        )
        return
    yield ok("with commlens", "the same results")
    if not profile.exists():
        yield problem(
            "profile",
            "the run left no profile" + "".join(f"; {text}" for text in _ours(done)[:2]),
            "commlens doctor -- COMMAND says what is missing; on several nodes --folder must be on a file system that all "
            "of them share",
        )
        return
    with open_profile(str(profile)) as connection:
        meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        yield ok(
            "library",
            f"{meta['mpi_library'].splitlines()[0]}, counted by commlens {meta['commlens_version']}",
        )
        yield from check_profile(connection, found)


def _killed(plan: Plan, line: Said) -> Finding:
    """Kill a process in the middle, and return whether the counters of all are there: in arenas or in crash copies."""
    arenas = plan.folder / "arenas"
    arenas.mkdir()
    _run(
        plan,
        [str(plan.runner)],
        ["killed"],
        COMMLENS_OUTPUT=str(plan.folder / "killed.db"),
        COMMLENS_ARENA_DIR=str(arenas),
    )
    try:
        jobs = jobs_of(_left([plan.folder, arenas]))
        if not jobs:
            return problem("killed", "a run of which a process was killed left nothing to recover")
        path, _ = merge(jobs[0], plan.folder / "recovered.db")
        with open_profile(str(path)) as connection:
            found = check_killed(connection, line.processes, jobs[0].missing())
    except CommlensError as error:
        return problem("killed", error.message)
    return _partly(found, jobs[0])


def _left(places: Sequence[Path]) -> list[Arena]:
    """Return what the processes left; some may outlive their launcher for a moment, and write crash copies."""
    end = time.monotonic() + GRACE_S
    while True:
        found = read(find(places))
        busy = any(arena.is_running or not arena.file.exists() for arena in found)
        if not busy or time.monotonic() > end:
            return [arena for arena in found if not arena.error]
        time.sleep(0.1)


def _partly(found: Finding, job: Job) -> Finding:
    if found.state != "ok" or not job.missing():
        return found
    return warning(
        "killed", found.text, "Choose a --folder on a file system that all nodes share, to have all of them"
    )


def _run(plan: Plan, wrapper: Sequence[str], arguments: Sequence[str] = (), **settings: str) -> Done:
    """Run the program in the folder; return its output.

    Raises
    ------
    CommlensError
        The launcher cannot be started.
    """
    # Settings of the user or the site could change what is counted. Not all launchers pass the environment on to other
    # nodes, so that ours are on the command line.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMLENS_")}
    ours = [f"{name}={value}" for name, value in {**settings, "COMMLENS_CONFIG": os.devnull}.items()]
    command = [*plan.launch, *(["env", *ours] if wrapper else []), *wrapper, *plan.program, *arguments]
    try:
        job = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", cwd=plan.folder, env=environment, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise CommlensError(f"{command[0]}: cannot be started: {error.strerror}") from None
    with job:
        try:
            output, errors = job.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise CommlensError(f"'{shlex.join(command)}' did not finish within {PATIENCE_S:.0f} s") from None
        finally:
            end_job(job)
    return Done(command, job.returncode, output, errors)


def _why(done: Done, line: Said | None) -> str:
    """Return in one line why a run is not as it should be."""
    if done.returncode != 0 or line is None:
        told = [text.strip() for text in (done.stderr + done.stdout).splitlines() if text.strip(" -*=\t")]
        return f"exit code {done.returncode}" + (f": {' / '.join(told[:SHOWN])}" if told else "")
    return f"{line.wrong} wrong results, sum {line.sum}, {line.processes} processes"


def _ours(done: Done) -> list[str]:
    return [text for text in done.stderr.splitlines() if "commlens: " in text]
