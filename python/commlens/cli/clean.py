# SPDX-License-Identifier: Apache-2.0
"""`commlens clean`."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import click

from commlens.base import owned
from commlens.cli.users import with_rights_of_user
from commlens.jobs.arenas import Arena, find, places, read
from commlens.profile.shards import complain
from commlens.render.screen import Screen
from commlens.render.units import bytes_text


def is_left(arena: Arena, node: str) -> bool:
    """Return whether no process can need this file any more.

    One of another machine may still run there, and one of another container here: only a user who can see the process
    knows. One
    that was never finished is left alone unless it is of this machine.
    """
    if arena.liveness != "gone":
        return False
    return arena.is_of_this_boot or arena.node == node


@click.command()
@click.argument("where", nargs=-1, type=click.Path(path_type=Path), metavar="[PLACE]...")
@click.option("-n", "--dry-run", is_flag=True, help="List the files, but remove nothing.")
@with_rights_of_user(all_users=True)
def clean(where: tuple[Path, ...], dry_run: bool) -> None:
    """Remove the files of jobs that did not reach MPI_Finalize.

    PLACE is a folder, as for commlens recover; by default COMMLENS_ARENA_DIR, /dev/shm and $TMPDIR of this machine. Keeps
    the files of running processes, of other users, of other machines, and of containers that are not visible from here.
    """
    node = socket.gethostname()
    removed = kept = size = 0
    for arena in read(find(where or places(os.environ), unfinished=True)):
        if not arena.inode:
            continue  # not a file of this user, or gone meanwhile
        if not is_left(arena, node):
            kept += 1
            continue
        if not dry_run and not _is_removed(arena):
            continue
        what = f"{arena.program}, rank {arena.rank} of {arena.size}" if not arena.error else "unfinished"
        Screen().line(f"{arena.file}: {what}")
        size += arena.bytes
        removed += 1
    verb = "would be removed" if dry_run else "removed"
    Screen().line(
        f"{removed} files {verb}, {bytes_text(size)}; {kept} kept: their processes run, or are not visible from here"
    )


def _is_removed(arena: Arena) -> bool:
    """Remove a file if it is the one that was read; return whether it was."""
    try:
        return owned.remove(arena.file, arena.device, arena.inode)
    except OSError as error:
        complain(f"{arena.file}: cannot be removed: {error.strerror}")
        return False
