# SPDX-License-Identifier: Apache-2.0
"""`commlens recover`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from commlens.arenas import find, jobs_of, merge, places, ranges, read
from commlens.errors import CommlensError
from commlens.shards import complain


@click.command()
@click.argument("where", nargs=-1, type=click.Path(path_type=Path), metavar="[PLACE]...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Where the profile goes. By default where it would have gone. An existing file is never overwritten.",
)
def recover(where: tuple[Path, ...], output: Path | None) -> None:
    """Make a profile of a job that did not reach MPI_Finalize.

    PLACE is a folder with what processes left, or such a file: the commlens-arenas-* folder beside the output of a
    job that could still say something when it ended, or COMMLENS_ARENA_DIR, /dev/shm or $TMPDIR of a node on which
    processes were killed. By default all of these of this machine. Several places, of several nodes, make one profile.

    Each job that is found, and does not run any more, makes one profile. It says of every rank how it ended and in
    which call its threads were (tables rank and position); ranks that left nothing are not in it. What processes left
    stays: commlens clean removes it.

    What cannot be read is said; the exit code is 3 when something of a profile is missing for that reason.
    """
    found = read(find(where or [*places(os.environ), Path()]))
    # A process that has not come out of MPI_Init yet has nothing to tell.
    refused = [arena for arena in found if arena.error and (where or not arena.is_running)]
    for arena in refused:
        complain(arena.error)
    all_jobs = jobs_of(found)
    jobs = [job for job in all_jobs if where or not job.is_running]
    if all_jobs and not jobs:
        titles = "; ".join(job.title for job in all_jobs)
        raise CommlensError(
            f"all jobs found there still run: {titles}. Name the place to look at them even so"
        )
    if not jobs and refused:
        raise CommlensError("nothing to recover: what processes have left there cannot be read")
    if not jobs:
        raise CommlensError("nothing to recover: no process has left anything there")
    if output is not None and len(jobs) > 1:
        listed = "; ".join(f"{job.first.file.parent}: {job.title}" for job in jobs)
        raise CommlensError(f"-o is for one job, and there are {len(jobs)}: {listed}")
    for job in jobs:
        for arena in job.arenas:
            if arena.notice:
                complain(f"rank {arena.rank}: {arena.file}: {arena.notice}")
        path, notices = merge(job, output or Path(job.first.output))
        for notice in notices:
            click.echo(f"commlens: {notice}", err=True)
        missing = set(range(job.first.size)) - {arena.rank for arena in job.arenas}
        click.echo(f"{path}: {job.title}" + (f"; missing: {ranges(missing)}" if missing else ""))
