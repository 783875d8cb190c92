# SPDX-License-Identifier: Apache-2.0
"""`commlens recover`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from commlens.base.errors import CommlensError
from commlens.base.messages import print_message
from commlens.cli.users import with_rights_of_user
from commlens.jobs.arenas import Arena, Job, find, jobs_of, merge, others_hint, places, ranges, read
from commlens.jobs.stored import Stored, find_stored
from commlens.profile.shards import complain
from commlens.render.screen import Screen

LONGEST_NAME = 200  # bytes; file systems take 255, and a number or an ending may be added
NAMELESS = "recovered.db"


@click.command()
@click.argument("where", nargs=-1, type=click.Path(path_type=Path), metavar="[PLACE]...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Path of the profile. By default the current directory, with the name that the job would have used. An existing "
    "file is never overwritten.",
)
@with_rights_of_user(all_users=False)
def recover(where: tuple[Path, ...], output: Path | None) -> None:
    """Make a profile of a job that did not reach MPI_Finalize.

    PLACE is an arena or crash copy, or a folder with such files: the folder commlens-arenas-* beside the output, if the
    processes could still write it when they ended, or COMMLENS_ARENA_DIR, /dev/shm or $TMPDIR of a node on which
    processes were killed. By default all of these on this machine. Several places, also of several nodes, are merged
    into one profile. Only files of the current user are read.

    Makes one profile of each job that no longer runs. The profile records how each rank ended and in which call its
    threads were (tables rank and position). Ranks that left no file are missing in it. The files stay; remove them with
    commlens clean. If a job was killed after it had stored its profile, recover prints the path of that profile
    instead; -o makes one from the remaining files.

    Prints a message about each file that cannot be read. Exit code 3: ranks, or other parts of a profile, are missing.
    """
    present = [Path()] if os.access(".", os.R_OK | os.X_OK) else []
    found = read(find(where or [*places(os.environ), *present]))
    # A process that is still in MPI_Init has no counters.
    refused = [arena for arena in found if arena.error and (where or not arena.is_running)]
    for arena in refused:
        complain(arena.error)
    jobs = _ended_jobs(found, where, refused)
    if output is not None and len(jobs) > 1:
        listed = "; ".join(f"{job.first.file.parent}: {job.title}" for job in jobs)
        raise CommlensError(f"-o is for one job, but {len(jobs)} were found: {listed}")
    for job in jobs:
        _recover(job, output)


def _ended_jobs(found: list[Arena], where: tuple[Path, ...], refused: list[Arena]) -> list[Job]:
    """Return the jobs to recover; running jobs only if a place was named."""
    all_jobs = jobs_of(found)
    jobs = [job for job in all_jobs if where or not job.may_run]
    if jobs:
        return jobs
    if all_jobs:
        titles = "; ".join(job.title for job in all_jobs)
        raise CommlensError(
            f"all jobs found still run, or may run in a container that is not visible from here: {titles}. To recover "
            "them anyway, name their folder as PLACE"
        )
    if refused:
        raise CommlensError("nothing to recover: the files that processes left cannot be read")
    hint = others_hint(where or places(os.environ))
    raise CommlensError(f"nothing to recover: no process of this user left files{hint}")


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
            f"{path}: ranks {ranges(stored.ranks)} of this job are in {stored.path}, which the job stored itself"
        )
    elif missing:
        complain(f"{path}: ranks {missing} are missing: they left no files in the folders searched")


def _say_stored(job: Job, stored: Stored) -> None:
    """Print that the job stored its profile before it was killed."""
    missing = job.missing(stored.ranks)
    Screen().line(
        f"{stored.path}: {job.first.program}, {len(stored.ranks)} of {job.first.size} ranks, was stored by the job "
        "itself: nothing to recover; remove the remaining files with commlens clean"
    )
    if missing:
        complain(f"{stored.path}: ranks {missing} are missing")


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
