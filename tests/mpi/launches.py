# SPDX-License-Identifier: Apache-2.0
"""Launches programs on MPI ranks, and repeats a launch that failed because of the launcher or the machine."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from build_once import PATIENCE
from processes import is_alive
from profile_rows import Profile

SUMMARY = re.compile(r"commlens: (<?[0-9.]+) % of the time in MPI(: .*)?")
"""The line about the share of MPI."""
WARNING = "launch of a test: "
"""How each warning of this file begins. pyproject.toml keeps these warnings from becoming errors, unlike all others."""
REPEATS = 10
"""Number of further launches after one that did not end in time."""
Launch = tuple[list[str], dict[str, str]]
"""A command line and the whole environment."""
RANKS = ".ranks"
"""Folder in which MPICH's launcher writes the output of each rank to a file; removed when the launch has ended."""
# kill_all() finds the processes that outlive their launcher by this variable.
LAUNCH_MARK = "MPI_TEST_LAUNCH"
"""Environment variable whose value tells the processes of one launch from all others."""


def _warn(text: str, command: Sequence[str]) -> None:
    """Warn about the caller's launch."""
    warnings.warn(f"{WARNING}{text}: {' '.join(command)}", stacklevel=4)


def without_summary(stderr: str) -> list[str]:
    """Return the lines of `stderr` but for those with the share of MPI and the first finding.

    Both depend on the load of the machine.
    """
    return [line for line in stderr.splitlines() if not SUMMARY.fullmatch(line)]


@dataclass(frozen=True)
class Result:
    """How a launch ended."""

    rc: int
    stdout: str
    stderr: str
    profile: Path
    seconds: float
    command: list[str] = field(repr=False)

    @property
    def said(self) -> list[str]:
        """The lines that commlens printed to stderr, except the one with the share of MPI."""
        return without_summary("\n".join(self._said))

    @property
    def summary(self) -> list[str]:
        """The lines with the share of MPI and the first finding."""
        return [line for line in self._said if SUMMARY.fullmatch(line)]

    @property
    def _said(self) -> list[str]:
        return [line for line in self.stderr.splitlines() if line.startswith("commlens")]

    @property
    def lines(self) -> list[str]:
        """The output of the ranks, in an order that does not depend on their timing."""
        return sorted(self.stdout.splitlines())

    def open(self) -> Profile:
        """Open the profile this launch wrote."""
        assert self.profile.is_file(), f"no profile {self.profile.name}; {self}"
        return Profile(self.profile)


def launch(under: Launch, plain: Launch | None, timeout: float, cwd: Path, profile: Path) -> Result:
    """Launch a program, again if it does not end in time; fail the test if it hangs only with commlens.

    MPICH 4.0.2 hangs sometimes without commlens, and a machine may be busy for a minute. Such a hang rarely occurs
    again in REPEATS launches, which have more time. If it does, it is a fault of commlens, unless the launch without
    commlens hangs, too.

    Parameters
    ----------
    under, plain : command and environment with and without commlens; plain is None if there is no such launch
    """
    before = _files_of(cwd, profile)

    def again(once: Launch) -> Result | None:
        _remove_all_but(before, cwd, profile)
        return launch_once(*once, 3 * timeout, cwd, profile)

    result = launch_once(*under, timeout, cwd, profile)
    if result is not None:
        return result
    _warn(f"did not end within {timeout} s, repeated", under[0])
    for _ in range(REPEATS):
        result = again(under)
        if result is None:
            break
    if result is not None:
        return result
    if plain is None or all(again(plain) for _ in range(REPEATS)):
        twins = 0 if plain is None else REPEATS
        pytest.fail(
            f"did not end within {timeout} s, and again within {3 * timeout} s; {twins} times without commlens it did: {' '.join(under[0])}"
        )
    _warn("hangs without commlens, too", under[0])
    result = again(under)
    assert result is not None, f"did not end within {3 * timeout} s, twice: {' '.join(under[0])}"
    return result


def launch_once(
    command: Sequence[str], env: Mapping[str, str], timeout: float, cwd: Path, profile: Path
) -> Result | None:
    """Run `command` once; return None if it had to be killed.

    Open MPI's launcher crashes in about 1 of 200 launches in which a rank calls MPI_Abort, also without commlens. commlens
    is not loaded into the launcher. Such a launch is repeated, and so is one that ended as _CALLED_UNLOADED or
    _REMOVED_MEANWHILE says.
    """
    before = _files_of(cwd, profile)
    result = _launch(command, env, timeout, cwd, profile)
    for _ in range(2):
        fault = "" if result is None else _fault_of_open_mpi(result)
        if not fault:
            break
        _warn(f"{fault}, repeated", command)
        _remove_all_but(before, cwd, profile)
        result = _launch(command, env, timeout, cwd, profile)
    return result


def _files_of(cwd: Path, profile: Path) -> list[Path]:
    """Return what is in the folder of a launch, and its profiles; each folder comes after what it contains."""
    profile = cwd / profile
    # Others may use the folder of the profile, too. The names of shards and of profiles of single ranks begin like the
    # name of the profile.
    _, folders, files = next(os.walk(profile.parent), ("", [], []))
    profiles = [
        profile.parent / name
        for name in (*files, *folders)
        if name == profile.name or name.startswith(f"{profile.stem}.")
    ]
    below = [
        Path(folder, name)
        for top in (cwd, *profiles)
        for folder, folders, files in os.walk(top, topdown=False)
        for name in (*files, *folders)
    ]
    return [*below, *profiles]


def _remove_all_but(before: Sequence[Path], cwd: Path, profile: Path) -> None:
    """Remove what a launch has left, so that a test finds only the files of the launch that counts."""
    kept = set(before)
    for path in _files_of(cwd, profile):
        if path in kept:
            continue
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


_CALLED_UNLOADED = re.compile(
    r"(Failing at address: |address not mapped to object at address )0x[0-9a-f]+6f0\)?$", re.MULTILINE
)
"""In Open MPI 4.1.4, MPI_Finalize unloads mca_pmix_ext3x.so while a PMIx event may still be pending. The progress thread of
Open MPI then calls process_event() at 0x56f0 of that library. commlens has no thread there. MPI_Init causes
the event (PMIX_MODEL_DECLARED), so only programs that end soon after MPI_Init are affected. In a process that has loaded
UCX, for example to create a window, UCX's signal handler prints the address, not Open MPI's."""


_REMOVED_MEANWHILE = "A call to mkdir was unable to create the desired directory"
"""All launchers of Open MPI that a user runs share a folder in /tmp. The last one to end removes it, even while another one
starts."""


def _fault_of_open_mpi(result: Result) -> str:
    """Return the fault of Open MPI that ended a launch; empty if there was none."""
    if result.rc < 0:
        return f"launcher died of signal {-result.rc}"
    if result.rc == 1 and _REMOVED_MEANWHILE in result.stderr:
        return "another launcher removed the folder of Open MPI's sessions"
    return "Open MPI called what it had unloaded" if called_unloaded(result.rc, result.stderr) else ""


def called_unloaded(rc: int, written: str) -> bool:
    """Return whether a launch crashed as _CALLED_UNLOADED describes; `written` is what Open MPI wrote to stderr."""
    return rc == 139 and _CALLED_UNLOADED.search(written) is not None


def _launch(
    command: Sequence[str], env: Mapping[str, str], timeout: float, cwd: Path, profile: Path
) -> Result | None:
    """Run `command`; return None if it had to be killed."""
    # Files, not pipes: a process that outlives its launcher would keep a pipe open, and the test would never end.
    out_path, err_path, ranks = cwd / ".stdout", cwd / ".stderr", cwd / RANKS
    ranks.mkdir()
    mark = uuid.uuid4().hex
    begin = time.monotonic()
    with out_path.open("wb") as out, err_path.open("wb") as err:
        process = subprocess.Popen(
            command,
            env={**env, LAUNCH_MARK: mark},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            rc = process.wait(timeout * PATIENCE)
            late = False
        except subprocess.TimeoutExpired:
            late = True
            rc = -1
        finally:
            kill_all(process, mark)
    by_rank = sorted(ranks.iterdir(), key=lambda path: [int(part) for part in path.name.split(".")])
    printed = [path.read_text(errors="replace") for path in (out_path, *by_rank)]
    shutil.rmtree(ranks)
    if late:
        return None
    return Result(
        rc,
        "".join(printed),
        err_path.read_text(errors="replace"),
        profile,
        time.monotonic() - begin,
        list(command),
    )


@contextlib.contextmanager
def started(command: Sequence[str], env: Mapping[str, str], where: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a launch in `where`, with its output in the file stdout there; at the end, kill all its processes."""
    mark = uuid.uuid4().hex
    with (where / "stdout").open("wb") as out:
        process = subprocess.Popen(
            command, env={**env, LAUNCH_MARK: mark}, cwd=where, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            kill_all(process, mark)


def kill_all(leader: subprocess.Popen[bytes], mark: str) -> None:
    """Kill the processes that a launch has left running, and wait until they have ended.

    Launchers put ranks in process groups, some in sessions, of their own.
    """
    if leader.poll() is None:
        leader.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            leader.wait(5)
    killed = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if f"{LAUNCH_MARK}={mark}\0".encode() in (entry / "environ").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)
                killed.append(int(entry.name))
    with contextlib.suppress(subprocess.TimeoutExpired):
        leader.wait(60 * PATIENCE)
    end = time.monotonic() + 60 * PATIENCE
    while any(map(is_alive, killed)) and time.monotonic() < end:
        time.sleep(0.005)
