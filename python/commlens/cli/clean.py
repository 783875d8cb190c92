# SPDX-License-Identifier: Apache-2.0
"""`commlens clean`."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import click

from commlens.base import owned
from commlens.cli.users import with_rights_of_user
from commlens.jobs.arenas import Arena, find, jobs_of, places, read
from commlens.jobs.stored import find_profile
from commlens.profile.incomplete import complain
from commlens.render.screen import Screen
from commlens.render.units import bytes_text


def is_removable(arena: Arena, node: str) -> bool:
    """Return whether no process can need this file any more.

    The process of another machine may still run there, and that of another container here. A file of an earlier boot is
    therefore kept unless it is of this machine.
    """
    if arena.liveness != "gone":
        return False
    return arena.is_of_this_boot or arena.node == node


@click.command()
@click.argument("where", nargs=-1, type=click.Path(path_type=Path), metavar="[PLACE]...")
@click.option("--yes", is_flag=True, help="Remove the files. Without it, they are only listed.")
@with_rights_of_user(all_users=True)
def clean(where: tuple[Path, ...], yes: bool) -> None:
    """List the files of jobs that did not reach MPI_Finalize; with --yes, remove them.

    Names each job, and the profile that has its data: one in the current directory, beside the output of the job, or in
    $TMPDIR. A job without such a profile is listed as not recovered, before and after its files are removed.

    PLACE is a folder, as for commlens recover; by default COMMLENS_ARENA_DIR, /dev/shm and $TMPDIR of this machine.
    Keeps the files of running processes, of other users, of other machines, and of containers that are not visible
    from here.
    """
    node = socket.gethostname()
    # Without inode: not a file of this user, or gone meanwhile.
    found = [arena for arena in read(find(where or places(os.environ), unfinished=True)) if arena.inode]
    left = [arena for arena in found if is_removable(arena, node)]
    others = [arena for arena in found if not is_removable(arena, node)]
    done: list[Arena] = []
    for title, arenas in _blocks(left):
        gone = [arena for arena in arenas if not yes or _is_removed(arena)]
        done += gone
        if gone:
            Screen().line(title)
        for arena in gone:
            Screen().line(f"  {arena.file}" + (f": rank {arena.rank}" if not arena.error else ""))
    for job in jobs_of(others):
        Screen().line(f"kept: {job.title}")
    verb = "removed" if yes else "would be removed"
    hint = "; --yes removes them" if done and not yes else ""
    Screen().line(
        f"{len(done)} files {verb}, {bytes_text(sum(arena.bytes for arena in done))}{hint}; {len(others)} kept: "
        f"their processes "
        "run, or are not visible from here"
    )


def _blocks(left: list[Arena]) -> Iterator[tuple[str, list[Arena]]]:
    """Yield a title and files: first those of each job, then each file that cannot be read."""
    rest = left
    for job in jobs_of(left):
        profile = find_profile(job)
        outcome = "not recovered" if profile is None else f"recovered in {profile}"
        processes = {(arena.launch, arena.rank) for arena in job.arenas}
        # A file and its copy are of the same process; the job has only one of them.
        is_mine = [not arena.error and (arena.launch, arena.rank) in processes for arena in rest]
        mine = [arena for arena, is_one in zip(rest, is_mine) if is_one]
        rest = [arena for arena, is_one in zip(rest, is_mine) if not is_one]
        yield f"job {job.name}: {job.title}: {outcome}", mine
    for arena in rest:
        yield f"unfinished, or cannot be read: not recovered: {arena.error}", [arena]


def _is_removed(arena: Arena) -> bool:
    """Remove a file if it is the one that was read; return whether it was."""
    try:
        return owned.remove(arena.file, arena.device, arena.inode)
    except OSError as error:
        complain(f"{arena.file}: cannot be removed: {error.strerror}")
        return False
