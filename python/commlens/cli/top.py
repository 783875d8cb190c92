# SPDX-License-Identifier: Apache-2.0
"""`commlens top`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click
from rich.text import Text

from commlens.base.errors import CommlensError
from commlens.cli.users import with_rights_of_user
from commlens.jobs.arenas import Job, find, jobs_of, looked_at, others_hint, places, read
from commlens.jobs.top import Look, between, draw, heading, look_at
from commlens.render.screen import Screen


def running(where: tuple[Path, ...]) -> list[Job]:
    """Return the jobs running on this machine."""
    return jobs_of(arena for arena in read(find(where or places(os.environ))) if arena.is_running)


def look(jobs: list[Job]) -> dict[tuple[str, int], Look]:
    """Sample all jobs, except those that end meanwhile."""
    looks = {}
    for job in jobs:
        try:
            with looked_at(job) as connection:
                looks[job.first.launch, job.first.pid] = look_at(connection)
        except CommlensError:
            if any(arena.is_running for arena in read([arena.file for arena in job.arenas])):
                raise
    return looks


@click.command()
@click.argument("where", nargs=-1, type=click.Path(path_type=Path), metavar="[PLACE]...")
@click.option(
    "-i",
    "--interval",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between two updates.",
)
@click.option(
    "-n",
    "--count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of updates. By default top ends when no job runs.",
)
@with_rights_of_user(all_users=False)
def top(where: tuple[Path, ...], interval: float, count: int | None) -> None:
    """Show repeatedly what the jobs on this machine do in MPI.

    Shows for each job the share of time in MPI, and the communicators and operations with the most time and their
    rates, since the last update; the first update covers the time since MPI_Init. The elapsed time of a call in
    progress is included; "ranks in it" is the number of ranks in the call at this moment. On a terminal the table is
    updated in place; press Ctrl-C to end.

    Only reads the arenas of the processes; neither stops nor slows them. PLACE is a folder with arenas; by default
    COMMLENS_ARENA_DIR, /dev/shm and $TMPDIR.
    """
    jobs = running(where)
    if not jobs:
        raise CommlensError(
            f"no process of this user runs under commlens here{others_hint(where or places(os.environ))}"
        )
    screen = Screen()
    before: dict[tuple[str, int], Look] = {}

    def frame() -> list[Text]:
        nonlocal before
        now, lines = look(jobs), []
        for job in jobs:
            key = (job.first.launch, job.first.pid)
            if key not in now:
                continue
            since = between(before.get(key, Look()), now[key])
            lines += [Text(heading(job, since), style="bold"), *draw(since).lines(screen.width), Text("")]
        before = now
        return lines[:-1]

    done = 0
    try:
        with screen.renewed() as show:
            while jobs:
                lines = frame()
                if screen.width is None:
                    lines.append(Text(""))
                if lines:
                    show(lines)
                done += 1
                if count is not None and done >= count:
                    break
                time.sleep(interval)
                jobs = running(where)
    except KeyboardInterrupt:
        return
