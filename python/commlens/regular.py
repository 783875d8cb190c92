# SPDX-License-Identifier: Apache-2.0
"""Opens the file of a profile once: what is checked is what is read, and nothing but a regular file is waited for."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commlens.errors import CommlensError

DESCRIPTORS = Path("/proc/self/fd")


@dataclass(frozen=True)
class ProfileFile:
    """An open regular file.

    Attributes
    ----------
    path : Path
        Its name, for messages.
    descriptor : int
    size : int
        Bytes.
    inode : (int, int)
        Device and inode.
    is_own : bool
        It belongs to the user who reads it, or is one of root's.
    """

    path: Path
    descriptor: int
    size: int
    inode: tuple[int, int]
    is_own: bool

    def read(self, size: int) -> bytes:
        """Return the first bytes."""
        return os.pread(self.descriptor, size, 0)

    def content(self) -> Iterator[bytes]:
        """Yield all bytes, some at a time, and no more than there were when it was opened."""
        at = 0
        while at < self.size and (part := os.pread(self.descriptor, min(1 << 20, self.size - at), at)):
            at += len(part)
            yield part

    def uri(self) -> str:
        """Return the URI by which SQLite reads this file and makes no other beside it."""
        path = DESCRIPTORS / str(self.descriptor)
        path = path if path.exists() else self.path.absolute()
        return f"{path.as_uri()}?mode=ro&immutable=1"

    def is_open_again(self) -> bool:
        """Tell whether this process has the file open a second time: SQLite opens by name, which may be another's by then."""
        if not DESCRIPTORS.is_dir():
            there = self.path.stat()
            return (there.st_dev, there.st_ino) == self.inode
        for entry in DESCRIPTORS.iterdir():
            number = int(entry.name)
            try:
                other = os.fstat(number)
            except OSError:  # the one by which the folder was listed
                continue
            if number != self.descriptor and (other.st_dev, other.st_ino) == self.inode:
                return True
        return False


@contextmanager
def opened(path: Path, folder: int | None = None) -> Iterator[ProfileFile]:
    """Open a file for reading; `path` may be a link, but not a name in a folder that is open as `folder`.

    Raises
    ------
    CommlensError
        There is none, it cannot be read, or it is no regular file.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if folder is None:
            descriptor = os.open(path, flags)
        else:
            descriptor = os.open(path.name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        raise CommlensError(f"{path}: no such file") from None
    except OSError as error:
        if folder is not None and error.errno == errno.ELOOP:
            raise CommlensError(f"{path}: a symbolic link, which is not followed here") from None
        if error.errno == errno.ENXIO:  # a socket
            raise CommlensError(f"{path}: not a profile, not even a file") from None
        raise CommlensError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise CommlensError(f"{path}: not a profile, not even a file")
        inode = (facts.st_dev, facts.st_ino)
        yield ProfileFile(path, descriptor, facts.st_size, inode, facts.st_uid in (0, os.geteuid()))
    finally:
        os.close(descriptor)
