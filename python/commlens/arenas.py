# SPDX-License-Identifier: Apache-2.0
"""The arenas of processes that run, or that never reached MPI_Finalize: found, grouped into jobs, made profiles.

`commlens-arena`, which is installed with the library and knows the layout, reads them.
"""

from __future__ import annotations

import csv
import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commlens.doctor.installation import find_runner
from commlens.errors import CommlensError
from commlens.profile import open_profile

TOOL = "commlens-arena"
STARTING = "its process had not come out of MPI_Init"
PATTERNS = ("*.arena", "commlens-arenas-*/*.arena")
UNFINISHED = ("commlens-arenas-*/*.arena.flush", "commlens-arenas-*/*.arena.last")
TOOL_PLACES = (".", "../libexec/commlens")  # from the folder of commlens-run


@dataclass(frozen=True)
class Arena:
    """What one process left, or still has.

    Attributes
    ----------
    file : Path
    pid : int
    is_running : bool
        The process is there, on this machine.
    is_of_this_boot : bool
        It is, or was, a process of this machine since it was started last.
    error : str
        Why it cannot be read, else empty; then nothing below is known.
    notice : str
        What of it cannot be read, or is missing; else empty.
    state : str
        As in rank.state of a profile.
    rank, size : int
        In MPI_COMM_WORLD; -1 and 0 when it is not known.
    launch : str
        The same for all processes that one launcher started on a machine, or with most launchers on all of them.
    output : str
        Where the profile would have gone.
    app_ns : int
        Time from MPI_Init to the last sign of life.
    """

    file: Path
    pid: int
    is_running: bool
    is_of_this_boot: bool
    error: str
    notice: str
    state: str
    rank: int
    size: int
    launch: str
    node: str
    program: str
    start_time: str
    output: str
    app_ns: int

    @property
    def is_starting(self) -> bool:
        """Whether it is there, and has not come out of MPI_Init."""
        return self.is_running and self.error.endswith(STARTING)


@dataclass(frozen=True)
class Job:
    """The arenas of one job, by rank."""

    arenas: tuple[Arena, ...]

    @property
    def first(self) -> Arena:
        """The one of the lowest rank."""
        return self.arenas[0]

    @property
    def is_running(self) -> bool:
        """Whether any of its processes is there."""
        return any(arena.is_running for arena in self.arenas)

    @property
    def title(self) -> str:
        """Return one line that names it.

        >>> a = Arena(Path("a"), 1, False, True, "", "", "ended", 0, 4, "1f", "n1", "app", "2026-01-01T00:00:00Z", "x.db", 0)
        >>> Job((a,)).title
        'app, 1 of 4 ranks, began 2026-01-01T00:00:00Z'
        """
        first = self.first
        return f"{first.program}, {len(self.arenas)} of {first.size} ranks, began {first.start_time}"


def places(env: Mapping[str, str]) -> list[Path]:
    """Return where a process of this environment leaves its arena."""
    named = [env.get("COMMLENS_ARENA_DIR", ""), "/dev/shm", env.get("TMPDIR", "")]
    return [Path(place) for place in dict.fromkeys(named) if place and Path(place).is_dir()]


def find(where: Iterable[Path], *, unfinished: bool = False) -> list[Path]:
    """Return the arenas in folders, in what jobs left there (commlens-arenas-*), and those that are named themselves.

    Parameters
    ----------
    unfinished : bool
        Also copies that a process was making when it ended, or still makes.

    Raises
    ------
    CommlensError
        A place is not there or cannot be read.
    """
    found: dict[Path, None] = {}
    for place in where:
        if not place.exists():
            raise CommlensError(f"{place}: no such file or directory")
        if place.is_file():
            found[place] = None
            continue
        try:
            for pattern in PATTERNS + (UNFINISHED if unfinished else ()):
                found.update(dict.fromkeys(sorted(place.glob(pattern))))
        except OSError as error:
            raise CommlensError(f"{place}: cannot be read: {error.strerror}") from None
    return list(found)


def run_tool(arguments: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    """Run commlens-arena.

    Raises
    ------
    CommlensError
        It is not installed.
    """
    runner = find_runner(None, os.environ)
    folders = [] if runner is None else [runner.resolve().parent / place for place in TOOL_PLACES]
    tool = next((folder / TOOL for folder in folders if os.access(folder / TOOL, os.X_OK)), None)
    if tool is None:
        raise CommlensError(f"{TOOL} is not found: make install, and put its bin into PATH")
    # Names come from applications and file systems: any bytes, as Python's own file names keep them.
    return subprocess.run(
        [tool, *arguments], capture_output=True, encoding="utf-8", errors="surrogateescape", check=False
    )


def read(files: Sequence[Path]) -> list[Arena]:
    """Return what is known of each file.

    Raises
    ------
    CommlensError
        The tool is not installed, or did not come to its end.
    """
    if not files:
        return []
    done = run_tool(["list", *files])
    if done.returncode != 0:
        raise CommlensError(ended(done))
    lines = done.stdout.split("\n")
    return [
        Arena(
            Path(row["file"]),
            int(row["pid"]),
            row["is_running"] == "1",
            row["is_of_this_boot"] == "1",
            row["error"],
            row["notice"],
            row["state"],
            int(row["rank"]),
            int(row["size"]),
            row["launch"],
            row["node"],
            row["program"],
            row["start_time"],
            row["output"],
            int(row["app_ns"]),
        )
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    ]


def jobs_of(arenas: Iterable[Arena]) -> list[Job]:
    """Group arenas that can be read into jobs, oldest first.

    Processes of one launch belong together; where every node has a launch of its own (Hydra's proxies), so do those of
    the same program and number of ranks that began within a minute, as long as no rank comes twice.
    """
    launches: dict[str, dict[int, Arena]] = {}
    for arena in arenas:
        if arena.error:
            continue
        ranks = launches.setdefault(arena.launch, {})
        known = ranks.get(arena.rank)
        # A copy beside the output and the file on the node are the same process, the later one counts.
        if known is None or known.app_ns < arena.app_ns:
            ranks[arena.rank] = arena
    jobs: list[dict[int, Arena]] = []
    for ranks in sorted(launches.values(), key=lambda ranks: min(a.start_time for a in ranks.values())):
        one = next(iter(ranks.values()))
        for job in jobs:
            other = next(iter(job.values()))
            if (
                (one.program, one.size) == (other.program, other.size)
                and one.node not in {arena.node for arena in job.values()}
                and not ranks.keys() & job.keys()
                and _seconds_between(one.start_time, other.start_time) <= 60
            ):
                job.update(ranks)
                break
        else:
            jobs.append(dict(ranks))
    return [Job(tuple(job[rank] for rank in sorted(job))) for job in jobs]


def _seconds_between(a: str, b: str) -> float:
    from datetime import datetime

    return abs(
        (datetime.fromisoformat(a.rstrip("Z")) - datetime.fromisoformat(b.rstrip("Z"))).total_seconds()
    )


def merge(job: Job, output: Path) -> tuple[Path, list[str]]:
    """Write one profile of a job's arenas; return its path, which is another one if `output` exists, and notices.

    Raises
    ------
    CommlensError
        None of them can be read, or the profile cannot be written.
    """
    done = run_tool(["merge", output, *(arena.file for arena in job.arenas)])
    if done.returncode != 0:
        raise CommlensError(ended(done))
    return Path(done.stdout.removesuffix("\n")), done.stderr.splitlines()


@contextmanager
def looked_at(job: Job) -> Iterator[sqlite3.Connection]:
    """Open a profile of what a job has counted by now; it is gone afterwards.

    Raises
    ------
    CommlensError
        Nothing can be read, or there is no room for the profile in the folder for temporary files.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="commlens-")
    except OSError as error:
        raise CommlensError(f"no folder for temporary files (TMPDIR): {error.strerror}") from None
    with folder:
        path, _ = merge(job, Path(folder.name) / "now.db")
        try:
            with open_profile(str(path)) as connection:
                yield connection
        finally:
            path.unlink(missing_ok=True)  # it may have found room elsewhere only


def ended(done: subprocess.CompletedProcess[str]) -> str:
    r"""Return why the tool has failed, in one line.

    >>> ended(subprocess.CompletedProcess([], 1, "", "x.arena: not a file\ncannot write x.db\n"))
    'x.arena: not a file; cannot write x.db'
    """
    return "; ".join(done.stderr.splitlines()) or f"{TOOL} ended with code {done.returncode}"


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges.

    >>> ranges([5, 0, 1, 2, 7])
    '0-2, 5, 7'
    """
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
