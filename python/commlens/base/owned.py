# SPDX-License-Identifier: Apache-2.0
"""Finds files of the current user in folders to which others may also write.

Links and files of other users in /dev/shm or in a shared output folder are never followed, opened or removed. A folder
is opened once; its files are examined and removed relative to that descriptor (docs/decisions/0015-other-users.md).
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ARENAS = ("*.arena",)
UNFINISHED = ("*.arena.flush", "*.arena.last")
HISTORIES = ("*.history",)
"""Snapshots of the arenas of one node (COMMLENS_FLUSH_EVERY)."""
COPIES = "commlens-arenas-*"
"""Folders in which a job stores copies of its arenas, and their history."""
PARTS = ".commlens-" + "[0-9a-f]" * 16
"""Folders in which ranks store their parts, if they cannot send each other messages (docs/decisions/0007-sessions.md)."""
PART_FILES = ("*.part",)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def is_own(facts: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user and is not writable for others."""
    return facts.st_uid == os.geteuid() and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """Open a folder that the user named; follows a symbolic link.

    Raises
    ------
    OSError
        It does not exist, is not a folder, or cannot be read.
    """
    descriptor = os.open(folder, _FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_within(folder: int, name: str) -> Iterator[int]:
    """Open a folder within another one, if it belongs to this user.

    Raises
    ------
    OSError
        It does not exist, is a symbolic link, or others may write to it.
    """
    descriptor = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    try:
        if not is_own(os.fstat(descriptor)):
            raise PermissionError(1, "belongs to another user, or others may write to it", name)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _opened_parent(file: Path) -> Iterator[tuple[int, int | None]]:
    """Open the folder of a file and, if it is a folder for copies, its parent."""
    if not fnmatch.fnmatch(file.parent.name, COPIES):
        with opened(file.parent) as folder:
            yield folder, None
        return
    with opened(file.parent.parent) as around, opened_within(around, file.parent.name) as folder:
        yield folder, around


def names(folder: int) -> list[str]:
    """Return the names in an open folder."""
    return os.listdir(folder)


def listed(folder: Path, patterns: Iterable[str], *, parts: bool = False) -> dict[Path, os.stat_result]:
    """Return this user's regular files with matching names in a folder and in its folders for copies.

    Files of other users take no memory: there may be millions. A folder for copies to which others may write is returned
    itself instead of its files.

    Parameters
    ----------
    parts : bool
        Also the parts in its folders for parts, or in itself if it is one.

    Raises
    ------
    OSError
        The folder cannot be read.
    """
    is_wanted, is_part = _matching(patterns), _matching(PART_FILES)
    is_for_parts = _matching([PARTS])
    found: dict[Path, os.stat_result] = {}
    with opened(folder) as descriptor:
        found.update(_own_files(descriptor, folder, is_wanted))
        if parts and is_for_parts(folder.resolve().name):
            found.update(_parts_among(_own_files(descriptor, folder, is_part)))
        for name, facts in sorted(_own(descriptor, _matching([COPIES, *([PARTS] if parts else [])]))):
            if stat.S_ISDIR(facts.st_mode) and not is_own(facts):
                found[folder / name] = facts
            # The folder may be a link, writable for others, or removed meanwhile.
            with suppress(OSError), opened_within(descriptor, name) as copies:
                if is_for_parts(name):
                    found.update(_parts_among(_own_files(copies, folder / name, is_part)))
                else:
                    found.update(_own_files(copies, folder / name, is_wanted))
    return found


def _parts_among(files: list[tuple[Path, os.stat_result]]) -> list[tuple[Path, os.stat_result]]:
    """Return the parts that have content: a rank that found no room leaves an empty one, and its arena."""
    return [(file, facts) for file, facts in files if facts.st_size != 0]


def owners(folder: Path, patterns: Iterable[str]) -> set[int]:
    """Return the owners of the regular files with such names and of the folders for copies in a folder; opens none.

    Raises
    ------
    OSError
        The folder cannot be read.
    """
    is_wanted, is_for_copies = _matching(patterns), _matching([COPIES])
    found = set()
    with opened(folder) as descriptor:
        for name, facts in _all(descriptor, lambda name: is_wanted(name) or is_for_copies(name)):
            is_kind = stat.S_ISREG if is_wanted(name) else stat.S_ISDIR
            if is_kind(facts.st_mode):
                found.add(facts.st_uid)
    return found


def _matching(patterns: Iterable[str]) -> Callable[[str], object]:
    """Return a function that returns true for names that match one of the patterns."""
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns)).match


def _all(descriptor: int, is_wanted: Callable[[str], object]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield names and their `os.stat_result`, without following links."""
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if is_wanted(entry.name):
                with suppress(OSError):  # jobs that end take their files with them
                    yield entry.name, entry.stat(follow_symlinks=False)


def _own(descriptor: int, is_wanted: Callable[[str], object]) -> Iterator[tuple[str, os.stat_result]]:
    uid = os.geteuid()
    return ((name, facts) for name, facts in _all(descriptor, is_wanted) if facts.st_uid == uid)


def _own_files(
    descriptor: int, folder: Path, is_wanted: Callable[[str], object]
) -> list[tuple[Path, os.stat_result]]:
    """Return the regular files of this user by name."""
    found = sorted(
        (name, facts) for name, facts in _own(descriptor, is_wanted) if stat.S_ISREG(facts.st_mode)
    )
    return [(folder / name, facts) for name, facts in found]


def remove(file: Path, device: int, inode: int) -> bool:
    """Remove a file if it is still the one that was checked; return whether it was.

    Also removes its folder for copies if that becomes empty.

    Raises
    ------
    OSError
        It cannot be removed.
    """
    try:
        with _opened_parent(file) as (folder, around):
            facts = os.stat(file.name, dir_fd=folder, follow_symlinks=False)
            if (facts.st_dev, facts.st_ino) != (device, inode):
                return False
            os.unlink(file.name, dir_fd=folder)
            if around is not None and not names(folder):
                os.rmdir(file.parent.name, dir_fd=around)
    except FileNotFoundError:
        return False  # jobs that end take their files with them
    return True
