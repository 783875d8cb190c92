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
    help="Where the profile goes. By default the present folder, under the name it would have had. An existing file is "
    "never overwritten.",
)
@with_rights_of_user(all_users=False)
def recover(where: tuple[Path, ...], output: Path | None) -> None:
    """Make a profile of a job that did not reach MPI_Finalize.

    PLACE is a folder with what processes left, or such a file: the commlens-arenas-* folder beside the output of a
    job that could still say something when it ended, or COMMLENS_ARENA_DIR, /dev/shm or $TMPDIR of a node on which
    processes were killed. By default all of these of this machine. Several places, of several nodes, make one profile.
    Only files of the user who asks count.

    Each job that is found, and does not run any more, makes one profile. It says of every rank how it ended and in
    which call its threads were (tables rank and position); ranks that left nothing are not in it. What processes left
    stays: commlens clean removes it. Where a job was killed after it had stored its profile, that profile is named
    instead; with -o one is made of what is left.

    What cannot be read is said; the exit code is 3 when something of a profile is missing for that reason, or when ranks
    are missing.
    """
    present = [Path()] if os.access(".", os.R_OK | os.X_OK) else []
    found = read(find(where or [*places(os.environ), *present]))
    # A process that has not come out of MPI_Init yet has nothing to tell.
    refused = [arena for arena in found if arena.error and (where or not arena.is_running)]
    for arena in refused:
        complain(arena.error)
    jobs = _ended_jobs(found, where, refused)
    if output is not None and len(jobs) > 1:
        listed = "; ".join(f"{job.first.file.parent}: {job.title}" for job in jobs)
        raise CommlensError(f"-o is for one job, and there are {len(jobs)}: {listed}")
    for job in jobs:
        _recover(job, output)


def _ended_jobs(found: list[Arena], where: tuple[Path, ...], refused: list[Arena]) -> list[Job]:
    """Return the jobs to recover; those that run only where a place was named."""
    all_jobs = jobs_of(found)
    jobs = [job for job in all_jobs if where or not job.may_run]
    if jobs:
        return jobs
    if all_jobs:
        titles = "; ".join(job.title for job in all_jobs)
        raise CommlensError(
            f"all jobs found there still run, or may run in a container that cannot be seen from here: {titles}. Name "
            "the place to look at them even so"
        )
    if refused:
        raise CommlensError("nothing to recover: what processes have left there cannot be read")
    hint = others_hint(where or places(os.environ))
    raise CommlensError(f"nothing to recover: no process of this user has left anything there{hint}")


def _recover(job: Job, output: Path | None) -> None:
    """Make the profile of one job, unless the job has stored it itself."""
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
            f"{path}: ranks {ranges(stored.ranks)} of this job are in {stored.path}, which the job had stored"
        )
    elif missing:
        complain(f"{path}: ranks {missing} are missing: they left nothing in the places looked at")


def _say_stored(job: Job, stored: Stored) -> None:
    """Say that the job had stored its profile before it was killed."""
    missing = job.missing(stored.ranks)
    Screen().line(
        f"{stored.path}: {job.first.program}, {len(stored.ranks)} of {job.first.size} ranks, was stored by the job "
        "itself: nothing to recover; commlens clean removes what is left"
    )
    if missing:
        complain(f"{stored.path}: ranks {missing} are missing")


def _default_output(arena: Arena) -> Path:
    """Return where a profile goes that the user names no place for: never where only the arena says.

    The process wrote that path; it is taken as it is where it lies in the present folder, else its last part counts.
    """
    wanted = "".join(c if c.isprintable() else "_" for c in arena.output.rpartition("/")[2])
    name = wanted.encode(errors="replace")[:LONGEST_NAME].decode(errors="ignore")
    name = NAMELESS if name in ("", ".", "..") else name
    if not os.access(".", os.W_OK):
        raise CommlensError(
            "cannot write to the present folder: name the profile with -o, or go to another folder"
        )
    return Path(name)
