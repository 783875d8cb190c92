# SPDX-License-Identifier: Apache-2.0
"""Reading a configuration file, with the rules of core/base/config_file.cpp."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from commlens.base.inputs import open_checked

MOST_BYTES = 64 << 10
MOST_COMPLAINTS = 5
"""Number of invalid lines of a file that are listed; the others are counted."""
_SHOWN = 60


class UnusableError(Exception):
    """Reason why a configuration file is not used."""

    def __init__(self, reason: str, *, is_absent: bool = False) -> None:
        super().__init__(reason)
        self.is_absent = is_absent


def _check(facts: os.stat_result) -> None:
    if stat.S_ISDIR(facts.st_mode):
        raise UnusableError("it is a directory")
    if stat.S_ISFIFO(facts.st_mode):
        raise UnusableError("it is a FIFO, not a regular file")
    if not stat.S_ISREG(facts.st_mode):
        raise UnusableError("it is not a regular file")
    with contextlib.suppress(OSError):  # no standard input
        if os.path.samestat(facts, os.fstat(0)):
            raise UnusableError("it is the standard input")
    if facts.st_size > MOST_BYTES:
        raise UnusableError("it is larger than 64 KiB")


def is_null_device(facts: os.stat_result) -> bool:
    """Return whether this is /dev/null, under any name."""
    return stat.S_ISCHR(facts.st_mode) and facts.st_rdev == os.makedev(1, 3)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a configuration file.  Opens no device or FIFO, and reads at most the file's size."""
    try:
        if is_null_device(path.stat()):
            return []
        descriptor = open_checked(path, _check)
        try:
            text = os.read(descriptor, min(os.fstat(descriptor).st_size, MOST_BYTES))
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        absent = isinstance(error, (FileNotFoundError, NotADirectoryError))
        raise UnusableError(reason, is_absent=absent) from None
    lines = text.decode("utf-8", "replace").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def excerpt(text: str) -> str:
    """Return the beginning of a text in printable ASCII, for a message."""
    shown = "".join(c if " " <= c <= "~" else "?" for c in text[:_SHOWN])
    return shown + ("..." if len(text) > _SHOWN else "")
