# SPDX-License-Identifier: Apache-2.0
"""`commlens hang`."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.text import Text

from commlens.base.errors import CommlensError, NothingThereError
from commlens.cli.users import with_rights_of_user
from commlens.jobs.arenas import find, jobs_of, looked_at, others_hint, places, read
from commlens.jobs.hang import draw, read_places
from commlens.render.screen import Screen
from commlens.selection.words import ranges_text


@click.command()
@click.argument("where", nargs=-1, type=click.Path(path_type=Path), metavar="[PLACE]...")
@with_rights_of_user(all_users=True)
def hang(where: tuple[Path, ...]) -> None:
    """Show where the ranks of the jobs on this machine are.

    Groups the ranks by their current MPI call and its communicator, with the time since the call began. Lists below
    each group the members of the communicator that are not in that call, the source lines that called it, and the code
    regions if the application marks them. A rank outside MPI is listed with its last call. Processes that are still in
    MPI_Init, and so have no rank yet, are listed at the end.

    Only reads the arenas of the processes; neither stops nor slows them. PLACE is a folder with arenas; by default
    COMMLENS_ARENA_DIR, /dev/shm and $TMPDIR.
    """
    arenas = read(find(where or places(os.environ)))
    blocks = []
    for job in jobs_of(arena for arena in arenas if arena.is_running):
        try:
            with looked_at(job) as connection:
                blocks.append((job.title, read_places(connection)))
        except CommlensError:  # unless it has ended meanwhile
            if any(arena.is_running for arena in read([arena.file for arena in job.arenas])):
                raise
    starting = [arena.pid for arena in arenas if arena.is_starting]
    if not blocks and not starting:
        raise NothingThereError(
            f"no process of this user runs under commlens here{others_hint(where or places(os.environ))}"
        )
    screen = Screen()
    for number, (title, groups) in enumerate(blocks):
        if number:
            screen.lines([Text("")])
        screen.lines([Text(title, style="bold")])
        screen.lines(draw(groups).lines(screen.width))
    if starting:
        screen.lines([Text(f"still in MPI_Init: processes {ranges_text(starting)}")])
