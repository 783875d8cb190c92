# SPDX-License-Identifier: Apache-2.0
"""`commlens hang`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click
from rich.text import Text

from commlens.arenas import find, jobs_of, merge, places, read
from commlens.errors import CommlensError
from commlens.hang import draw, read_places
from commlens.profile import open_profile
from commlens.screen import Screen


@click.command()
@click.argument("where", nargs=-1, type=click.Path(path_type=Path), metavar="[PLACE]...")
def hang(where: tuple[Path, ...]) -> None:
    """Say where the ranks of the jobs that run on this machine are.

    Ranks are grouped by the MPI call they are in and its communicator, with the time since the call began; below, those
    members of the communicator that are not in that call. A rank outside MPI is named with its last call.

    Reads what the processes write anyway: neither stops nor slows them. PLACE is a folder with arenas; by default
    COMMLENS_ARENA_DIR, /dev/shm and $TMPDIR.
    """
    arenas = read([file for file in find(where or places(os.environ)) if os.access(file, os.R_OK)])
    jobs = jobs_of(arena for arena in arenas if arena.is_running)
    if not jobs:
        raise CommlensError("no process under commlens runs here")
    screen = Screen()
    with tempfile.TemporaryDirectory() as folder:
        for number, job in enumerate(jobs):
            path, _ = merge(job, Path(folder) / f"{number}.db")
            with open_profile(str(path)) as connection:
                groups = read_places(connection)
            if number:
                screen.lines([Text("")])
            screen.lines([Text(job.title, style="bold")])
            screen.lines(draw(groups).lines(screen.width))
