# SPDX-License-Identifier: Apache-2.0
"""Opens regular files for reading, with a limit on their size."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

DESCRIPTORS = Path("/proc/self/fd")


def open_checked(path: Path, check: Callable[[os.stat_result], None], folder: int | None = None) -> int:
    """Return a descriptor of the file if `check` accepts it; a refused file is never opened.

    Opening alone has effects: it waits for the other end of a FIFO, rewinds a tape, starts a watchdog.

    Parameters
    ----------
    check : callable
        Gets the file's `os.stat_result`, and raises for an unwanted file.
    folder : int, optional
        Descriptor of the folder in which `path.name` is; no symbolic link is followed then.

    Raises
    ------
    OSError
        The file is missing or unreadable.
    """
    if folder is None:
        seen = os.open(path, os.O_PATH | os.O_CLOEXEC)
    else:
        seen = os.open(path.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        facts = os.fstat(seen)
        check(facts)
        if DESCRIPTORS.is_dir():
            return os.open(DESCRIPTORS / str(seen), flags)
        # Without /proc the file can only be opened by name, which may belong to another file by now.
        name = path if folder is None else path.name
        descriptor = os.open(name, flags | (0 if folder is None else os.O_NOFOLLOW), dir_fd=folder)
        if os.path.samestat(facts, os.fstat(descriptor)):
            return descriptor
        os.close(descriptor)
        raise OSError(errno.ESTALE, "it was replaced while it was opened", str(path))
    finally:
        os.close(seen)


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading.

    Raises
    ------
    OSError
        The file is missing, unreadable or not a regular file.
    """

    def check(facts: os.stat_result) -> None:
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))

    return os.fdopen(open_checked(path, check), "rb")


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file.

    Raises
    ------
    OSError
        As in `open_regular`, or the file has more than `most_bytes`.
    """
    with open_regular(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes:,} bytes", str(path))
    return content
