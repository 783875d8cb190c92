# SPDX-License-Identifier: Apache-2.0
"""Finds the arenas of processes that run or did not reach MPI_Finalize, groups them into jobs, and makes profiles.

`commlens-arena` reads them: it is installed with the library and compiled with the same layout.
"""

from __future__ import annotations

import math
import os
import re
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from commlens.base import owned, users
from commlens.base.errors import CommlensError
from commlens.base.users import name_of
from commlens.launch.runner import find_runner
from commlens.launch.settings import read_settings
from commlens.profile import open_profile
from commlens.profile.incomplete import complain
from commlens.selection.words import range_text

TOOL = "commlens-arena"
STARTING = "its process was still in MPI_Init"
USUAL_PLACES = ("/usr/local/libexec/commlens", "/usr/libexec/commlens", "/opt/commlens/libexec/commlens")
TOOL_PLACES = (".", "../libexec/commlens")  # from the folder of commlens-run
COLUMNS = (
    *(
        "file",
        "device",
        "inode",
        "bytes",
        "pid",
        "liveness",
        "is_of_this_boot",
        "error",
        "notice",
        "state",
        "rank",
    ),
    *("size", "launch", "node", "program", "start_time", "output", "app_ns"),
)  # of what `commlens-arena list` prints
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


@dataclass(frozen=True)
class Arena:
    """The arena of one process.

    Attributes
    ----------
    file : Path
    device, inode : int
        Of the file that was read; 0 if it could not be opened.
    bytes : int
        Size of the file.
    pid : int
    liveness : str
        running: the process runs on this machine; gone: it does not; unknown: it is or was a process of another PID
        namespace (a container), which this process cannot see.
    is_of_this_boot : bool
        The process ran on this machine since its last boot.
    error : str
        Why it cannot be read, else empty.  With an error, the attributes below are unknown.
    notice : str
        Missing or unreadable parts; else empty.
    state : str
        As in rank.state of a profile.
    rank, size : int
        In MPI_COMM_WORLD; -1 and 0 if unknown.
    launch : str
        The same for all processes that one launcher started on a machine, or with most launchers on all of them.
    start_time : str
        Time at which MPI_Init returned, UTC, ISO 8601; empty if unknown.
    output : str
        Planned path of the profile. The process wrote it: a name to show, never a path to write to.
    app_ns : int
        Time from MPI_Init to the last sign of life.
    """

    file: Path
    device: int
    inode: int
    bytes: int
    pid: int
    liveness: str
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
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self.liveness == "running"

    @property
    def is_part(self) -> bool:
        """Whether it is the part of a process that has ended, for a profile that others have not made yet."""
        return self.file.suffix == ".part"

    @property
    def is_stored(self) -> bool:
        """Whether it is the last snapshot of a process whose profile is stored: nothing is left to recover."""
        return self.state == "finalized" and self.file.suffix == ".history"

    @property
    def is_starting(self) -> bool:
        """Whether it is running and still in MPI_Init."""
        return self.is_running and self.error.endswith(STARTING)


@dataclass(frozen=True)
class Job:
    """The arenas of one job, by rank."""

    arenas: tuple[Arena, ...]

    @property
    def first(self) -> Arena:
        """The arena of the lowest rank."""
        return self.arenas[0]

    @property
    def may_run(self) -> bool:
        """Whether any of its processes is running, or may be: one that left no file, while others have left parts."""
        has_parts = any(arena.is_part for arena in self.arenas)
        return any(arena.liveness != "gone" for arena in self.arenas) or (has_parts and bool(self.missing()))

    @property
    def name(self) -> str:
        """Return the id by which `commlens recover --job` selects it."""
        return self.first.launch

    def is_named(self, wanted: str) -> bool:
        """Return whether `wanted` is one of its ids, or begins one.  With a launch per node, a job has several ids.

        >>> a = Arena(Path("a"), 1, 2, 3, 4, "gone", True, "", "", "ended", 0, 4, "1f", "n1", "app", "2026-01-01T00:00:00Z", "x", 0)
        >>> Job((a,)).is_named("1"), Job((a,)).is_named("f"), Job((a,)).is_named("")
        (True, False, False)
        """
        return bool(wanted) and any(arena.launch.startswith(wanted.lower()) for arena in self.arenas)

    @property
    def title(self) -> str:
        """Return one line that identifies the job.

        >>> a = Arena(Path("a"), 1, 2, 3, 4, "gone", True, "", "", "ended", 0, 4, "1f", "n1", "app", "2026-01-01T00:00:00Z", "x", 0)
        >>> Job((a,)).title
        'app, 1 of 4 ranks, began 2026-01-01T00:00:00Z'
        """
        first = self.first
        return f"{first.program}, {len(self.arenas)} of {first.size} ranks, began {first.start_time or 'at an unknown time'}"

    def missing(self, others: Iterable[int] = ()) -> str:
        """Return the ranks without an arena that are not in `others`, as ranges.

        >>> a = Arena(Path("a"), 1, 2, 3, 4, "gone", True, "", "", "ended", 2, 9, "1f", "n1", "app", "", "x", 0)
        >>> Job((a,)).missing(), Job((a,)).missing([0, 8])
        ('0-1, 3-8', '1, 3-7')
        """
        # A damaged arena may claim any size, so only existing ranks are listed one by one.
        there = sorted({arena.rank for arena in self.arenas} | set(others))
        gaps = [(low + 1, high - 1) for low, high in zip([-1, *there], [*there, self.first.size])]
        return ", ".join(range_text(gap) for gap in gaps if gap[0] <= gap[1])


def places(env: Mapping[str, str]) -> list[Path]:
    """Return the folders in which a process with this environment puts its arena, if this user can read them."""
    settings, _ = read_settings(env)
    named = [settings["COMMLENS_ARENA_DIR"], "/dev/shm", env.get("TMPDIR", "")]
    return [Path(place) for place in dict.fromkeys(named) if place and os.access(place, os.R_OK | os.X_OK)]


def find(
    where: Iterable[Path], *, unfinished: bool = False, histories: bool = False, parts: bool = False
) -> list[Path]:
    """Return this user's arenas in folders, in the folders commlens-arenas-* there, and the named files.

    Parameters
    ----------
    unfinished : bool
        Include copies that are incomplete, because their process ended or still writes them.
    histories : bool
        Include the snapshots of COMMLENS_FLUSH_EVERY; each such file has several processes.
    parts : bool
        Include the parts of ranks that have ended, which wait for the other ranks.

    Raises
    ------
    CommlensError
        A place does not exist or cannot be read.
    """
    patterns = (
        owned.ARENAS + (owned.UNFINISHED if unfinished else ()) + (owned.HISTORIES if histories else ())
    )
    found: dict[Path, None] = {}
    for place in where:
        with _readable(place) as is_folder:
            if not is_folder:
                found[place] = None
                continue
            files = owned.listed(place, patterns, parts=parts)
            found.update(dict.fromkeys(file for file, facts in files.items() if owned.is_own(facts)))
            _say_writable(place, files)
    return list(found)


def find_some(where: Iterable[Path]) -> list[Path]:
    """Return arenas, histories and parts as find() does, but continue past unreadable places, with a message about each.

    Raises
    ------
    CommlensError
        No arena was found, and a place cannot be read.
    """
    found: dict[Path, None] = {}
    errors: list[CommlensError] = []
    for place in where:
        try:
            found.update(dict.fromkeys(find([place], histories=True, parts=True)))
        except CommlensError as error:
            errors.append(error)
    if errors and not found:
        raise errors.pop(0)
    for failure in errors:
        complain(failure.message)
    return list(found)


def _say_writable(place: Path, files: Mapping[Path, os.stat_result]) -> None:
    """Warn about files of this user that are ignored, because others may write to them."""
    mine = [file for file, facts in files.items() if not owned.is_own(facts)]
    if mine:
        more = f" and {len(mine) - 1} more in {place}" if len(mine) > 1 else ""
        complain(
            f"{mine[0]}{more}: not read, because other users may write to it; run chmod go-w, or copy it to a folder of your own"
        )


def owners(where: Iterable[Path]) -> set[int]:
    """Return the ids of the users with data in these folders; files are ignored.

    Raises
    ------
    CommlensError
        A place does not exist or cannot be read.
    """
    found: set[int] = set()
    for place in where:
        with _readable(place) as is_folder:
            if is_folder:
                found |= owned.owners(place, owned.ARENAS + owned.UNFINISHED)
    return found


def others_hint(where: Iterable[Path]) -> str:
    """Return a hint how root can read the data of other users in these places; empty if there is none."""
    others = sorted(owners(where) - {0}) if os.geteuid() == 0 else []
    if not others:
        return ""
    shown = ", ".join(name_of(uid) for uid in others[:3]) + (", …" if len(others) > 3 else "")
    return f"; other users ({shown}) have files there: select one with --user NAME"


@contextmanager
def _readable(place: Path) -> Iterator[bool]:
    """Return whether a place is a folder; refuse it if it cannot be read."""
    try:
        place.lstat()
        yield place.is_dir()
    except FileNotFoundError:
        raise CommlensError(f"{place}: no such file or directory") from None
    except OSError as error:
        raise CommlensError(f"{place}: cannot be read: {error.strerror}") from None


def find_tool(env: Mapping[str, str]) -> Path | None:
    """Return commlens-arena: near commlens-run, from PATH, or in a usual prefix."""
    runner = find_runner(None, env)
    folders = [] if runner is None else [runner.resolve().parent / place for place in TOOL_PLACES]
    in_path = map(Path, env.get("PATH", "").split(os.pathsep))
    folders += [folder for folder in in_path if folder.is_absolute()]
    folders += map(Path, USUAL_PLACES)
    return next((folder / TOOL for folder in folders if os.access(folder / TOOL, os.X_OK)), None)


def run_tool(command: Sequence[str | Path], files: Iterable[Path]) -> subprocess.CompletedProcess[str]:
    """Run commlens-arena on any number of files.

    Raises
    ------
    CommlensError
        It is not installed, this user cannot run it, or the user as whom root runs it stopped it.
    """
    tool = find_tool(os.environ)
    if tool is None:
        raise CommlensError(
            f"{TOOL} not found, or this user may not run it: run make install and add its bin folder to PATH; or install cmake "
            "and a C++ compiler, and repeat pip install ."
        )
    # Names may contain any bytes, which surrogateescape preserves. With --user, root has become that user, who may trace
    # or stop the tool. So the tool gets neither root's terminal nor root's environment, and has a time limit.
    try:
        return subprocess.run(
            [tool, *command], input="".join(f"{file}\0" for file in files), start_new_session=True, env=_environment(),
            capture_output=True, encoding="utf-8", errors="surrogateescape", check=False,
            timeout=users.PATIENCE_S if users.has_become() else None,
            preexec_fn=users.end_with_parent if users.has_become() else None,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CommlensError(f"{TOOL} did not finish within {users.PATIENCE_S} s") from None


def _environment() -> dict[str, str]:
    """Return the environment variables for commlens-arena."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "LANG", "TMPDIR") or name.startswith(("LC_", "COMMLENS_"))
    }


def read(files: Sequence[Path]) -> list[Arena]:
    """Return the facts about each file.

    Raises
    ------
    CommlensError
        The tool is not installed, or failed.
    """
    return [_arena(row) for row in rows_of("list", files, COLUMNS)] if files else []


def rows_of(command: str, files: Iterable[Path], columns: Sequence[str]) -> list[dict[str, str]]:
    """Return the lines that a command of commlens-arena prints about files, by the names of the columns.

    Raises
    ------
    CommlensError
        The tool is not installed, failed, or prints other columns.
    """
    done = run_tool([command], files)
    if done.returncode != 0:
        raise CommlensError(failure_text(done))
    heading, *lines = done.stdout.removesuffix("\n").split("\n")
    if heading.split("\t") != list(columns):
        raise CommlensError(
            f"{TOOL} and this command have different versions: install both from the same release"
        )
    return [dict(zip(columns, map(unescaped, line.split("\t")))) for line in lines]


def _arena(row: Mapping[str, str]) -> Arena:
    """Return the arena described by one line."""
    number = {name: int(row[name]) for name in ("device", "inode", "bytes", "pid", "rank", "size", "app_ns")}
    return Arena(
        Path(row["file"]),
        number["device"],
        number["inode"],
        number["bytes"],
        number["pid"],
        row["liveness"],
        row["is_of_this_boot"] == "1",
        row["error"],
        row["notice"],
        row["state"],
        number["rank"],
        number["size"],
        row["launch"],
        row["node"],
        row["program"],
        row["start_time"] if seconds_of(row["start_time"]) is not None else "",
        row["output"],
        number["app_ns"],
    )


def unescaped(field: str) -> str:
    r"""Return a field of `commlens-arena list` without its escapes.

    >>> unescaped(r"a\tb\\c\x1bd") == "a\tb\\c\x1bd"
    True
    """
    return re.sub(
        r"\\(x([0-9a-f]{2})|.)", lambda m: chr(int(m[2], 16)) if m[2] else ESCAPES.get(m[1], m[0]), field
    )


def jobs_of(arenas: Iterable[Arena]) -> list[Job]:
    """Group readable arenas into jobs, oldest first.

    Processes of one launch belong together. If every node has a launch of its own (Hydra's proxies), processes of the
    same program and number of ranks that began within a minute belong together, unless a rank occurs twice.
    """
    launches: dict[str, dict[int, Arena]] = {}
    for arena in arenas:
        if arena.error:
            continue
        ranks = launches.setdefault(arena.launch, {})
        known = ranks.get(arena.rank)
        # A copy or a snapshot beside the output and the file on the node belong to the same process; the later one counts.
        # So does that of the later run, if a batch system runs a job again under the same id.
        if known is None or is_later(arena, known):
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
                and seconds_between(one.start_time, other.start_time) <= 60
            ):
                job.update(ranks)
                break
        else:
            jobs.append(dict(ranks))
    return [Job(tuple(job[rank] for rank in sorted(job))) for job in jobs]


def is_later(arena: Arena, other: Arena) -> bool:
    """Return whether a file of a rank has more of its process than another, or is of a process that began later."""
    if seconds_between(arena.start_time, other.start_time) > 60 and arena.start_time and other.start_time:
        return arena.start_time > other.start_time
    return arena.app_ns > other.app_ns


def seconds_of(time: str) -> float | None:
    """Return the time stamp of an arena in seconds since 1970, or None if it is invalid.

    >>> seconds_of("1970-01-02T00:00:00Z"), seconds_of("0000-00-00T00:00:00Z"), seconds_of("")
    (86400.0, None, None)
    """
    try:
        return datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def seconds_between(a: str, b: str) -> float:
    """Return the distance of two time stamps; infinite if one is unknown."""
    first, second = seconds_of(a), seconds_of(b)
    return math.inf if first is None or second is None else abs(first - second)


def merge(job: Job, output: Path) -> tuple[Path, list[str]]:
    """Write a profile of a job's arenas; return its path, which differs from `output` if that exists, and notices.

    Raises
    ------
    CommlensError
        None of them can be read, or the profile cannot be written.
    """
    done = run_tool(["merge", output], dict.fromkeys(arena.file for arena in job.arenas))
    if done.returncode != 0:
        raise CommlensError(failure_text(done))
    return Path(done.stdout.removesuffix("\n")), done.stderr.splitlines()


@contextmanager
def temporary_profile(name: str, write: Callable[[Path], Path]) -> Iterator[Path]:
    """Write a profile to a temporary folder and return its path; remove both at the end.

    write : writes to the given path, or to another one, which it returns

    Raises
    ------
    CommlensError
        The folder for temporary files has no room.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="commlens-")
    except OSError as error:
        raise CommlensError(
            f"cannot create a folder for temporary files (TMPDIR): {error.strerror}"
        ) from None
    with folder:
        path = write(Path(folder.name) / name)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def looked_at(job: Job) -> Iterator[sqlite3.Connection]:
    """Open a temporary profile of the current counters of a job.

    Raises
    ------
    CommlensError
        No arena can be read, or the folder for temporary files has no room for the profile.
    """
    with (
        temporary_profile("now.db", lambda path: merge(job, path)[0]) as path,
        open_profile(str(path)) as connection,
    ):
        yield connection


def failure_text(done: subprocess.CompletedProcess[str]) -> str:
    r"""Return the reason why the tool failed, in one line.

    >>> failure_text(subprocess.CompletedProcess([], 1, "", "x.arena: not a file\ncannot write x.db\n"))
    'x.arena: not a file; cannot write x.db'
    """
    return "; ".join(done.stderr.splitlines()) or f"{TOOL} ended with code {done.returncode}"
