# SPDX-License-Identifier: Apache-2.0
"""`commlens recover`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from commlens.base.errors import CommlensError
from commlens.base.messages import print_message
from commlens.cli.options import OutputPath
from commlens.cli.users import with_rights_of_user
from commlens.jobs.arenas import Arena, Job, find_some, jobs_of, merge, others_hint, places, read
from commlens.jobs.stored import Stored, find_stored
from commlens.profile.incomplete import complain
from commlens.render.screen import Screen
from commlens.selection.words import ranges_text

LONGEST_NAME = 200  # bytes; file systems take 255, and a number or an ending may be added
NAMELESS = "recovered.db"


@click.command()
@click.argument("where", nargs=-1, type=click.Path(path_type=Path), metavar="[PLACE]...")
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    help="Path of the profile. By default the current directory, with the name that the job would have used. An "
    "existing "
    "file is never overwritten.",
)
@click.option(
    "--job",
    "names",
    multiple=True,
    metavar="ID",
    help="Only this job, by the id that --list shows, or its beginning. Repeatable.",
)
@click.option("--list", "only_lists", is_flag=True, help="List the jobs, but make no profile.")
@with_rights_of_user(all_users=False)
def recover(where: tuple[Path, ...], output: Path | None, names: tuple[str, ...], only_lists: bool) -> None:
    """Make a profile of a job that did not reach MPI_Finalize.

    PLACE is an arena, a crash copy, a history or a part, or a folder with such files: the folder commlens-arenas-* beside
    the output, if the processes could still write it when they ended or the run took snapshots (COMMLENS_FLUSH_EVERY);
    the folder .commlens-* there, if ranks that cannot send messages ended and another was killed; or COMMLENS_ARENA_DIR,
    /dev/shm or $TMPDIR of a node on which processes were killed. By default all of these on this machine. Several places, also of several nodes, are merged
    into one profile. Only files of the current user are read.

    Makes one profile of each job that no longer runs. If there are several jobs, lists them first, with their ids. The
    profile records how each rank ended and in which call its threads were (tables rank and position). Ranks that left
    no file are missing in it. The files stay; remove them with commlens clean, and folders .commlens-* by hand. If a job was killed after it had stored
    its profile, recover prints the path of that profile instead; -o makes one from the remaining files.

    Prints a message about each file, folder or job that cannot be read, and continues with the others. Exit code 3:
    ranks, or other parts of a profile, or jobs are missing.
    """
    present = [Path()] if os.access(".", os.R_OK | os.X_OK) else []
    found = [
        arena for arena in read(find_some(where or [*places(os.environ), *present])) if not arena.is_stored
    ]
    # A process that is still in MPI_Init has no counters.
    refused = [arena for arena in found if arena.error and (where or not arena.is_running)]
    for arena in refused:
        complain(arena.error)
    all_jobs = jobs_of(found)
    if only_lists and all_jobs:
        _list(_named(all_jobs, names))
        return
    jobs = _ended_jobs(_named(all_jobs, names), bool(where or names), refused, where)
    if output is not None and len(jobs) > 1:
        listed = "; ".join(f"{job.name}: {job.first.file.parent}: {job.title}" for job in jobs)
        raise CommlensError(
            f"-o is for one job, but {len(jobs)} were found: {listed}. Select one with --job ID"
        )
    if len(all_jobs) > 1 and not names:
        _list(all_jobs)
    _recover_each(jobs, output)


def _named(jobs: list[Job], names: tuple[str, ...]) -> list[Job]:
    """Return the jobs with these ids; all where none is given.

    Raises
    ------
    CommlensError
        An id is that of no job, or of several.
    """
    selected = []
    for name in names:
        matching = [job for job in jobs if job.is_named(name)]
        if len(matching) != 1:
            what = "no job has this id" if not matching else f"{len(matching)} jobs have an id that begins so"
            listed = "; ".join(f"{job.name}: {job.title}" for job in matching or jobs) or "no job"
            raise CommlensError(f"--job {name}: {what}; found: {listed}")
        selected += [job for job in matching if job not in selected]
    return selected if names else jobs


def _list(jobs: list[Job]) -> None:
    """Print a line about each job."""
    for job in jobs:
        folders = ", ".join(dict.fromkeys(str(arena.file.parent) for arena in job.arenas))
        state = "may still run" if job.may_run else "ended"
        Screen().line(f"job {job.name}: {job.title}, {state}, in {folders}")


def _ended_jobs(
    all_jobs: list[Job], even_running: bool, refused: list[Arena], where: tuple[Path, ...]
) -> list[Job]:
    """Return the jobs to recover; includes running jobs only if the user named a place or an id."""
    jobs = [job for job in all_jobs if even_running or not job.may_run]
    if jobs:
        return jobs
    if all_jobs:
        titles = "; ".join(f"{job.name}: {job.title}" for job in all_jobs)
        raise CommlensError(
            f"all jobs found still run, or may run in a container that is not visible from here: {titles}. To recover "
            "one anyway, name it with --job ID, or name its folder as PLACE"
        )
    if refused:
        raise CommlensError("nothing to recover: the files that processes left cannot be read")
    hint = others_hint(where or places(os.environ))
    raise CommlensError(f"nothing to recover: no process of this user left files{hint}")


def _recover_each(jobs: list[Job], output: Path | None) -> None:
    """Make the profiles of all jobs; if that fails for one of them, go on with the next.

    Raises
    ------
    CommlensError
        It fails for all of them; the error of the last one.
    """
    failed = 0
    for job in jobs:
        try:
            _recover(job, output)
        except CommlensError as error:
            failed += 1
            if failed == len(jobs):
                raise
            complain(f"job {job.name}: {job.title}: not recovered: {error.message}")


def _recover(job: Job, output: Path | None) -> None:
    """Make the profile of one job, unless the job has already stored it."""
    for arena in job.arenas:
        if arena.notice:
            complain(f"rank {arena.rank}: {arena.file}: {arena.notice}")
    stored = find_stored(job)
    if stored is not None and output is None and stored.replaces(job):
        _say_stored(job, stored)
        return
    path, notices = merge(job, output or _default_output(job.first))
    for notice in notices:
        print_message(notice)
    missing = job.missing()
    Screen().line(f"{path}: {job.title}" + (f"; missing: {missing}" if missing else ""))
    if missing and stored is not None:
        complain(
            f"{path}: ranks {ranges_text(stored.ranks)} of this job are in {stored.path}, which the job stored itself"
        )
    elif missing:
        complain(f"{path}: missing ranks, which left no files in the folders searched: {missing}")


def _say_stored(job: Job, stored: Stored) -> None:
    """Print that the job stored its profile before it was killed."""
    missing = job.missing(stored.ranks)
    Screen().line(
        f"{stored.path}: {job.first.program}, {len(stored.ranks)} of {job.first.size} ranks, was stored by the job "
        "itself: nothing to recover; remove the remaining files " + _how_to_remove(job)
    )
    if missing:
        complain(f"{stored.path}: missing ranks: {missing}")


def _how_to_remove(job: Job) -> str:
    """Return with what the files of a job are removed."""
    parts = [arena.file.parent for arena in job.arenas if arena.is_part]
    ways = [] if len(parts) == len(job.arenas) else ["with commlens clean"]
    ways += [f"in {folder} by hand" for folder in dict.fromkeys(parts)]
    return ", and ".join(ways)


def _default_output(arena: Arena) -> Path:
    """Return the default path of a profile: never a folder that only the arena names.

    The process wrote that path. It is used if it lies in the current directory; otherwise only its last component is.
    """
    wanted = "".join(c if c.isprintable() else "_" for c in arena.output.rpartition("/")[2])
    name = wanted.encode(errors="replace")[:LONGEST_NAME].decode(errors="ignore")
    name = NAMELESS if name in ("", ".", "..") else name
    if not os.access(".", os.W_OK):
        raise CommlensError(
            "cannot write to the current directory: name the profile with -o, or change the directory"
        )
    return Path(name)
