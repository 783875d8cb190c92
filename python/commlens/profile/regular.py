# SPDX-License-Identifier: Apache-2.0
"""Opens the file of a profile once, so that the checked file is the one that is read; opens regular files only."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from commlens.base.errors import CommlensError
from commlens.base.fixed_names import is_fixed
from commlens.base.inputs import DESCRIPTORS, open_checked
from commlens.base.progress import tracked
from commlens.profile.limits import stored_bytes

CHUNK = 1 << 20
NOTHING = bytes(CHUNK)


@dataclass
class ProfileFile:
    """An open regular file.

    Attributes
    ----------
    path : Path
        Its path, for messages.
    descriptor : int
    size : int
        Size in bytes, including holes.
    stored : int
        Size in bytes without holes, which limits time and memory for reading.
    inode : (int, int)
        Device and inode.
    is_own : bool
        It belongs to the user who reads it, or to root.
    is_alone : bool
        It is not a shard, so that a progress bar shows the copying.
    """

    path: Path
    descriptor: int
    size: int
    stored: int
    inode: tuple[int, int]
    is_own: bool
    is_alone: bool
    _until_closed: ExitStack = field(default_factory=ExitStack)
    _copy: Path | None = None

    def read(self, size: int) -> bytes:
        """Return the first bytes."""
        return os.pread(self.descriptor, size, 0)

    def content(self, most_s: float) -> Iterator[bytes]:
        """Yield all bytes in blocks, at most as many as the file had when it was opened.

        Raises
        ------
        CommlensError
            It takes longer than `most_s` of processor time.
        """
        return self._parts(range(0, self.size, CHUNK), most_s)

    def _parts(self, places: Iterable[int], most_s: float) -> Iterator[bytes]:
        end = time.thread_time() + most_s
        for at in places:
            if time.thread_time() > end:
                why = f"; only {self.stored:,} of its {self.size:,} bytes are stored"
                raise CommlensError(
                    f"{self.path}: is damaged: it takes too long to read{why if self.stored < self.size else ''}"
                )
            # If the file was truncated meanwhile, SQLite detects that in the copy.
            yield os.pread(self.descriptor, min(CHUNK, self.size - at), at)

    def uri(self, most_s: float) -> str:
        """Return the URI with which SQLite reads this file without creating others beside it.

        SQLite opens by name. If another user could replace the file behind the name, for example by a FIFO on which
        SQLite would wait, this is the name of a copy in a private folder, read from this descriptor. The copy exists
        until the file is closed.

        Raises
        ------
        CommlensError
            It cannot be copied, or that takes longer than `most_s` of processor time.
        """
        name = self._copy or self._fixed_name() or self._copied(most_s)
        return f"{name.as_uri()}?mode=ro&immutable=1"

    def _fixed_name(self) -> Path | None:
        """Return the name of this file; None without a name, or if other users can replace the file behind it."""
        try:
            if DESCRIPTORS.is_dir():
                name = (DESCRIPTORS / str(self.descriptor)).readlink()
            else:
                name = Path(os.path.realpath(self.path))
            facts = name.lstat()
        except (OSError, ValueError):
            return None
        is_this = name.is_absolute() and (facts.st_dev, facts.st_ino) == self.inode
        return name if is_this and is_fixed(name) else None

    def _copied(self, most_s: float) -> Path:
        """Return the name of a copy, which keeps holes."""
        folder = self._until_closed.enter_context(own_folder(self.path))
        name = folder / "profile.db"
        places: Iterable[int] = range(0, self.size, CHUNK)
        if self.is_alone:
            places = tracked(places, f"{self.path} into a copy")
        try:
            with name.open("xb") as copy:
                for part in self._parts(places, most_s):
                    if part == NOTHING:
                        copy.seek(len(part), os.SEEK_CUR)
                    else:
                        copy.write(part)
                copy.truncate()
        except OSError as error:
            raise CommlensError(
                f"{self.path}: other users can replace this file while it is read, and it cannot be copied to {folder.parent}"
                f" before: {error.strerror}; set TMPDIR to a folder with room for {self.stored:,} bytes"
            ) from None
        facts = name.stat()
        self._copy, self.inode = name, (facts.st_dev, facts.st_ino)
        return name

    def has_name(self) -> bool:
        """Return whether SQLite can still open it by name."""
        return self._copy is not None or self._fixed_name() is not None

    def is_open_again(self) -> bool:
        """Return whether this process has opened the file twice.

        The name that SQLite opened may belong to another file.
        """
        if not DESCRIPTORS.is_dir():
            there = (self._copy or self.path).stat()
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
def own_folder(path: Path) -> Iterator[Path]:
    """Create a folder for a copy of `path` that other users can neither enter nor replace; remove it at the end.

    Raises
    ------
    CommlensError
        No folder can be created.
    """
    for place in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):
        try:
            made = tempfile.TemporaryDirectory(prefix="commlens-", dir=os.path.realpath(place))
        except OSError:
            continue
        with made as name:
            if is_fixed(Path(name, "file")):
                yield Path(name)
                return
    raise CommlensError(
        f"{path}: other users can replace this file while it is read, and there is no folder for a copy that only you"
        " may change: set TMPDIR to one"
    )


@contextmanager
def opened(path: Path, folder: int | None = None) -> Iterator[ProfileFile]:
    """Open a file for reading; `path` may be a link, unless it is a name in the open `folder`.

    Raises
    ------
    CommlensError
        It does not exist, cannot be read, or is not a regular file.
    """

    def check(facts: os.stat_result) -> None:
        if stat.S_ISLNK(facts.st_mode):
            raise CommlensError(f"{path}: a symbolic link, which commlens does not follow here")
        if stat.S_ISDIR(facts.st_mode):
            raise CommlensError(f"{path}: not a profile: a folder without index.db and shard.*.db")
        if not stat.S_ISREG(facts.st_mode):
            raise CommlensError(f"{path}: not a profile: neither a file nor a folder")

    try:
        descriptor = open_checked(path, check, folder)
    except FileNotFoundError:
        raise CommlensError(f"{path}: no such file") from None
    except OSError as error:
        raise CommlensError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        facts = os.fstat(descriptor)
        inode = (facts.st_dev, facts.st_ino)
        is_own = facts.st_uid in (0, os.geteuid())
        stored = stored_bytes(descriptor)
        with ExitStack() as until_closed:
            yield ProfileFile(
                path, descriptor, facts.st_size, stored, inode, is_own, folder is None, until_closed
            )
    finally:
        os.close(descriptor)
