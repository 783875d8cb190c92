# SPDX-License-Identifier: Apache-2.0
"""Snapshots that a job took while it ran (COMMLENS_FLUSH_EVERY): finds them, and makes profiles of them.

The files are read by `commlens-arena`, like arenas.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commlens.base import owned
from commlens.base.errors import CommlensError
from commlens.jobs.arenas import (
    Arena,
    failure_text,
    jobs_of,
    read,
    rows_of,
    run_tool,
    seconds_between,
    temporary_profile,
)
from commlens.profile import meta, open_profile
from commlens.profile.incomplete import complain

HINT = "a run takes them with COMMLENS_FLUSH_EVERY=SECONDS"
COLUMNS = ("file", "time", "processes", "bytes", "began")  # of what `commlens-arena snapshots` prints
SECOND = 10**9
ONE_RUN_S = 60  # between the begins of the launches of one run, as in jobs_of()


@dataclass(frozen=True)
class Snapshot:
    """One snapshot of all nodes.

    Attributes
    ----------
    time_ns : int
        Since 1970.
    seconds : float
        Since the first rank returned from MPI_Init.
    processes : int
        Of which it has the counters.
    bytes : int
        That its differences take in the files.
    """

    time_ns: int
    seconds: float
    processes: int
    bytes: int


@dataclass(frozen=True)
class History:
    """The snapshots of one job: one file per node, and the snapshots that all nodes have, oldest first."""

    files: tuple[Path, ...]
    snapshots: tuple[Snapshot, ...]

    def at(self, seconds: float) -> Snapshot | None:
        """Return the last snapshot at or before a time; None if that is before the first one.

        >>> history = History((), (Snapshot(10, 1.0, 4, 9), Snapshot(20, 2.0, 4, 9)))
        >>> [history.at(t) and history.at(t).time_ns for t in (0.9, 1.0, 1.9, 7)]
        [None, 10, 10, 20]
        """
        return next((one for one in reversed(self.snapshots) if one.seconds <= seconds), None)


def open_history(name: str) -> History:
    """Return the history of a profile, or the one in a file or folder.

    Raises
    ------
    CommlensError
        There is none, or a folder has those of several jobs.
    """
    path = Path(name)
    if path.suffix == ".history" or fnmatch.fnmatch(path.absolute().name, owned.COPIES):
        files = _of_one_job(path)
    else:
        files = _of_profile(path)
    return _history(files)


def _histories(folder: Path) -> list[Path]:
    """Return this user's histories in a folder, and in its folders for copies."""
    try:
        found = owned.listed(folder, owned.HISTORIES)
    except OSError as error:
        raise CommlensError(f"{folder}: cannot be read: {error.strerror}") from None
    return [file for file, facts in found.items() if owned.is_own(facts) and file.suffix == ".history"]


def _of_one_job(path: Path) -> list[Path]:
    """Return the histories that a path names."""
    files = [path] if path.suffix == ".history" else _histories(path)
    arenas = _readable(read(files))
    jobs = jobs_of(arenas)
    if len(jobs) > 1:
        raise CommlensError(f"{path}: has snapshots of {len(jobs)} jobs; name one of its files")
    if not jobs:
        raise CommlensError(f"{path}: no snapshots that can be read; {HINT}")
    return list(dict.fromkeys(arena.file for arena in arenas))


def _of_profile(path: Path) -> list[Path]:
    """Return the histories beside a profile that are of its run."""
    with open_profile(str(path)) as connection:
        rows = connection.execute("SELECT rank, node, pid FROM rank ORDER BY rank")
        processes = [(row["rank"], row["node"], row["pid"]) for row in rows]
        facts = meta.facts(connection)
    began, size = facts.get("start_time", ""), meta.number(facts, "ranks")
    arenas = _readable(read(_histories(path.absolute().parent)))
    mine = of_run(arenas, processes, began) if processes else of_start(arenas, size, began)
    if not mine and arenas and not processes:
        raise CommlensError(
            f"{path}: not clear which snapshots beside it are of this run, because this profile has summary detail: "
            "name its folder commlens-arenas-*"
        )
    if not mine:
        raise CommlensError(f"{path}: no snapshots of this run beside it; {HINT}")
    return list(dict.fromkeys(arena.file for arena in mine))


def of_run(arenas: Sequence[Arena], processes: Sequence[tuple[int, str, int]], began: str) -> list[Arena]:
    """Return those of one run.

    Another run may have the same process ids, in containers even the next one. The start time tells them apart. A launch
    of other nodes, without the first process of the profile, began within a minute of it.

    Parameters
    ----------
    processes : sequence of (rank, node, pid)
        Of the profile, by rank.
    began : str
        When MPI_Init returned on the first of them, as in a profile; empty if unknown.
    """
    ids = set(processes)
    launches: dict[str, list[Arena]] = {}
    for arena in arenas:
        if (arena.rank, arena.node, arena.pid) in ids:
            launches.setdefault(arena.launch, []).append(arena)
    found: list[Arena] = []
    for launch in launches.values():
        of_first = [arena for arena in launch if arena.rank == processes[0][0]]
        if began and not any(
            seconds_between(arena.start_time, began) <= (0 if of_first else ONE_RUN_S)
            for arena in of_first or launch
        ):
            continue
        found += launch
    return found


def of_start(arenas: Sequence[Arena], size: int, began: str) -> list[Arena]:
    """Return those of the only run that began at a time with so many ranks; none if several did.

    A profile of summary detail has no processes to compare.

    Parameters
    ----------
    began : str
        When MPI_Init returned on rank 0, as in a profile; empty if unknown.
    """
    by_folder: dict[Path, list[Arena]] = {}  # a later run under the same id has a folder of its own
    for arena in arenas:
        by_folder.setdefault(arena.file.parent, []).append(arena)
    jobs = [
        job
        for of_folder in by_folder.values()
        for job in jobs_of(of_folder)
        if (job.first.rank, job.first.size) == (0, size) and seconds_between(job.first.start_time, began) == 0
    ]
    return list(jobs[0].arenas) if len(jobs) == 1 else []


def _readable(arenas: Sequence[Arena]) -> list[Arena]:
    """Return the processes that can be read, with a message about each other one."""
    for arena in arenas:
        if arena.error:
            complain(arena.error)
    return [arena for arena in arenas if not arena.error]


def _history(files: Sequence[Path]) -> History:
    """Return the snapshots of the times that the files share."""
    rows = rows_of("snapshots", files, COLUMNS)
    by_file: dict[str, dict[int, tuple[int, int]]] = {}
    for row in rows:
        by_file.setdefault(row["file"], {})[int(row["time"])] = (int(row["processes"]), int(row["bytes"]))
    if not by_file:
        raise CommlensError(f"{files[0]}: no whole snapshot")
    began = min(
        (int(row["began"]) for row in rows if int(row["began"])), default=min(map(min, by_file.values()))
    )
    snapshots = []
    for time in shared_times(list(by_file.values())):
        # Of a node without a snapshot of this time, the last one before counts.
        parts = [
            of_file[max(t for t in of_file if t <= time)]
            for of_file in by_file.values()
            if min(of_file) <= time
        ]
        snapshots.append(
            Snapshot(time, (time - began) / SECOND, sum(p for p, _ in parts), sum(b for _, b in parts))
        )
    return History(tuple(files), tuple(snapshots))


def shared_times(files: Sequence[Collection[int]]) -> list[int]:
    """Return the times at which every file that has begun and not ended has a snapshot, and the last time of all.

    All nodes plan snapshots for the same times. The first and the last one are taken when the ranks of a node begin and
    end, and each node merges its old ones by itself.

    >>> shared_times([(3, 10, 20, 30, 38), (4, 10, 15)])  # the node of the second file is lost at 15
    [3, 10, 20, 30, 38]
    >>> shared_times([(3, 10, 20, 30, 38), (4, 20, 30, 39)])  # the second file has merged its first snapshots
    [3, 20, 30, 39]
    """
    of_all = [(min(times), max(times), frozenset(times)) for times in files]
    shared = {
        time
        for time in frozenset().union(*(times for _, _, times in of_all))
        if all(time in others for begin, end, others in of_all if begin <= time <= end)
    }
    return sorted(shared | {max(end for _, end, _ in of_all)})


def chosen(history: History, at: float | None, between: tuple[float, float] | None) -> tuple[Snapshot, ...]:
    """Return the snapshot at a time, or the two around an interval; one if this begins before the first snapshot.

    Raises
    ------
    CommlensError
        There is no snapshot at that time, or the interval has none within.
    """
    begin, end = between if between is not None else (None, at)
    assert end is not None
    first = history.snapshots[0]
    last = history.at(end)
    if last is None:
        raise CommlensError(
            f"no snapshot until {end:g} s: the first one is {first.seconds:.3f} s after MPI_Init"
        )
    before = None if begin is None else history.at(begin)
    if before is None:
        return (last,)
    if before.time_ns >= last.time_ns:
        raise CommlensError(
            f"no snapshot between {begin:g} s and {end:g} s; 'commlens history' lists the snapshots"
        )
    return before, last


def write_profile(history: History, snapshots: Sequence[Snapshot], output: Path) -> Path:
    """Write the profile of a snapshot, or of what was counted between two; return its path.

    Raises
    ------
    CommlensError
        The snapshots cannot be read, or the profile cannot be written.
    """
    command = "between" if len(snapshots) > 1 else "at"
    times = [str(one.time_ns) for one in snapshots]
    done = run_tool([command, output, *times], history.files)
    if done.returncode != 0:
        raise CommlensError(failure_text(done))
    for notice in done.stderr.splitlines():
        complain(notice)
    return Path(done.stdout.removesuffix("\n"))


@contextmanager
def profile_of(history: History, snapshots: Sequence[Snapshot]) -> Iterator[str]:
    """Return the path of a temporary profile, as write_profile() writes it.

    Raises
    ------
    CommlensError
        The folder for temporary files has no room for it.
    """
    with temporary_profile("snapshot.db", lambda path: write_profile(history, snapshots, path)) as path:
        yield str(path)
