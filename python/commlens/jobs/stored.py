# SPDX-License-Identifier: Apache-2.0
"""Finds the profile of a killed job: stored by the job late in MPI_Finalize, or made by commlens recover."""

from __future__ import annotations

import fnmatch
import os
import re
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from commlens.base import owned
from commlens.base.errors import CommlensError
from commlens.jobs.arenas import Arena, Job, seconds_of
from commlens.profile import open_profile

MOST = 32
"""Number of profiles to open, newest first: a folder may contain those of thousands of jobs with one name."""
MOST_KEPT_RANKS = 1024
"""What larger profiles contain is not kept in memory."""
CLOCKS_DIFFER = 60  # seconds, between a node and its file server

# commlens recover may have made a profile while the job still ran.
RANKS_SQL = (
    "SELECT rank, node, pid FROM rank WHERE state = 'finalized' "
    "AND NOT EXISTS (SELECT 1 FROM meta WHERE key = 'open_calls' AND value = 'counted')"
)
RECOVERED_SQL = "SELECT rank, node, pid FROM rank WHERE state <> 'running'"
SIZE_SQL = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'ranks'"


@dataclass(frozen=True)
class Stored:
    """A profile that contains ranks of a job.

    Attributes
    ----------
    path : Path
    ranks : frozenset of int
        World ranks that it contains.
    is_whole : bool
        It has all ranks of the job, and all its files can be read.
    """

    path: Path
    ranks: frozenset[int]
    is_whole: bool

    def replaces(self, job: Job) -> bool:
        """Return whether it replaces a recovered profile.

        It is complete, or has the ranks of all arenas while other ranks lack one.
        """
        has_all = all(arena.rank in self.ranks for arena in job.arenas)
        return self.is_whole or (has_all and bool(job.missing()))


def find_stored(job: Job) -> Stored | None:
    """Return the profile at the job's output path that contains the most ranks of the job, or None.

    Only profiles of this user and of the same processes count: rank, host and process id are equal, and the file is
    younger than the process. Returns None for copies in a folder that the application named: they contain a phase of
    the job, the profile all of it.
    """
    if _is_phase(job.first.file.absolute()):
        return None
    processes = {(arena.rank, arena.node, arena.pid) for arena in job.arenas}
    found = [stored for path in _candidates(job.first) if (stored := _read(path, processes)) is not None]
    return max(found, key=lambda stored: (stored.is_whole, len(stored.ranks)), default=None)


def find_profile(job: Job) -> Path | None:
    """Return a profile with all processes of a killed job that left files, or None.

    Searches the present folder, that of the job's output, and $TMPDIR. Does not count a profile that was made while one
    of these processes ran, because the process counted on.
    """
    processes = {(arena.rank, arena.node, arena.pid) for arena in job.arenas}
    output = Path(job.first.output)
    for path in _profiles(job.first, (Path(), output.parent), re.compile(r".*\.(db|commlens)")):
        rows = _rows(path, RECOVERED_SQL)
        if rows is not None and processes <= rows[0]:
            return path
    return None


def _is_phase(file: Path) -> bool:
    """Return whether the application requested this copy, with a flush to a folder of its own."""
    is_copy = file.name.startswith("rank") and file.suffix == ".arena"
    return is_copy and not fnmatch.fnmatch(file.parent.name, owned.COPIES)


def _candidates(arena: Arena) -> Iterator[Path]:
    """Return profiles with the job's output name, with or without number, newest first."""
    output = Path(arena.output)
    stem = re.escape(output.name.removesuffix(".db"))
    return _profiles(arena, (output.parent,), re.compile(rf"{stem}(\.\d+)?(\.db|\.commlens)?"))


def _profiles(arena: Arena, folders: tuple[Path, ...], pattern: re.Pattern[str]) -> Iterator[Path]:
    """Return this user's files in folders, and in that for temporary files, with such names, newest first.

    Leaves out files that are older than the process.
    """
    began = seconds_of(arena.start_time) or 0.0
    found: dict[Path, float] = {}
    for folder in dict.fromkeys((*folders, Path(os.environ.get("TMPDIR") or "/tmp"))):
        try:
            with owned.opened(folder) as descriptor:
                for name in owned.names(descriptor):
                    if not pattern.fullmatch(name):
                        continue
                    with suppress(FileNotFoundError):
                        facts = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                        if facts.st_uid == os.geteuid() and facts.st_mtime >= began - CLOCKS_DIFFER:
                            found[folder / name] = facts.st_mtime
        except (OSError, ValueError):  # ValueError: the output has a character that no path can have
            continue
    yield from sorted(found, key=lambda path: -found[path])[:MOST]


def _read(path: Path, processes: set[tuple[int, str, int]]) -> Stored | None:
    """Return a profile if it contains any of these processes."""
    found = _rows(path, RANKS_SQL)
    if found is None or not found[0] & processes:
        return None
    rows, size, is_readable = found
    ranks = frozenset(rank for rank, _, _ in rows)
    return Stored(path, ranks, len(ranks) == size and is_readable)


Rows = tuple[frozenset[tuple[int, str, int]], int, bool]

# Each of a hundred dead jobs looks at the same profiles, and a check of one takes 20 ms.
_kept: dict[tuple[Path, int, str], Rows] = {}


def _rows(path: Path, sql: str) -> Rows | None:
    """Return the processes that a query finds in a profile, its number of ranks, and whether all of it is readable.

    Returns None if the file is not a profile.
    """
    try:
        key = (path, path.stat().st_mtime_ns, sql)
    except OSError:
        return None
    if key not in _kept:
        found = _read_rows(path, sql)
        if found is None or len(found[0]) > MOST_KEPT_RANKS:
            return found
        _kept[key] = found
    return _kept[key]


def _read_rows(path: Path, sql: str) -> Rows | None:
    """Return _rows() of a file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # the caller that opens it reports missing parts
        try:
            with open_profile(str(path)) as connection:
                rows = frozenset((row["rank"], row["node"], row["pid"]) for row in connection.execute(sql))
                (size,) = connection.execute(SIZE_SQL).fetchone() or (0,)
        except (CommlensError, sqlite3.Error):
            return None
    return rows, size, not caught
