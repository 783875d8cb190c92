# SPDX-License-Identifier: Apache-2.0
"""`commlens clean`."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import click

from commlens.arenas import Arena, find, places, read
from commlens.units import bytes_text


def is_left(arena: Arena, node: str) -> bool:
    """Return whether no process can need this file any more.

    One of another machine may still run there: only a machine knows its own processes.  One that was never finished is
    left alone unless it is of this machine.
    """
    if arena.is_running:
        return False
    return arena.is_of_this_boot or arena.node == node


def facts_of(file: Path) -> os.stat_result | None:
    """Return the facts of a file; None when it is gone: jobs that end take theirs with them."""
    try:
        return file.stat()
    except OSError:
        return None


def is_own(file: Path) -> bool:
    """Return whether the file is there, and of this user."""
    facts = facts_of(file)
    return facts is not None and facts.st_uid == os.getuid()


@click.command()
@click.argument("where", nargs=-1, type=click.Path(path_type=Path), metavar="[PLACE]...")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be removed.")
def clean(where: tuple[Path, ...], dry_run: bool) -> None:
    """Remove what jobs have left that did not reach MPI_Finalize.

    PLACE is a folder, as for commlens recover; by default COMMLENS_ARENA_DIR, /dev/shm and $TMPDIR of this machine. Files
    of processes that still run, of other users, and of other machines stay.
    """
    node = socket.gethostname()
    removed = kept = size = 0
    for arena in read([file for file in find(where or places(os.environ), unfinished=True) if is_own(file)]):
        facts = facts_of(arena.file)
        if facts is None:
            continue
        if not is_left(arena, node):
            kept += 1
            continue
        what = f"{arena.program}, rank {arena.rank} of {arena.size}" if not arena.error else "unfinished"
        click.echo(f"{arena.file}: {what}")
        size += facts.st_size
        removed += 1
        if not dry_run:
            arena.file.unlink(missing_ok=True)
            if arena.file.parent.name.startswith("commlens-arenas-") and not any(arena.file.parent.iterdir()):
                arena.file.parent.rmdir()
    verb = "would be removed" if dry_run else "removed"
    click.echo(
        f"{removed} files {verb}, {bytes_text(size)}; {kept} kept, whose processes run or are of other machines"
    )
