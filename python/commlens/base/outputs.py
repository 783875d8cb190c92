# SPDX-License-Identifier: Apache-2.0
"""Output files: written completely or not at all; an existing file is only replaced by its changed copy."""

from __future__ import annotations

import csv
import errno
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape

NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Errors of a hard link on file systems without hard links: vfat, some CIFS servers, some FUSE file systems."""


class CsvWriter:
    """Writes CSV records, each as one line that is safe for a terminal; None is an empty field."""

    def __init__(self, file: IO[str]):
        self._writer = csv.writer(file, lineterminator="\n")

    def writerow(self, row: Iterable[Any]) -> None:
        """Write one record."""
        self._writer.writerow(
            [escape(value, Target.CSV) if isinstance(value, str) else value for value in row]
        )

    def writerows(self, rows: Iterable[Iterable[Any]]) -> None:
        """Write records."""
        for row in rows:
            self.writerow(row)


def finite(value: float | None) -> float | None:
    """Return a number that JSON can represent: infinity, from a sum that overflows, becomes None."""
    return value if value is None or math.isfinite(value) else None


@contextmanager
def new(output: Path) -> Iterator[Path]:
    """Provide a temporary path; at the end, the file or directory there is renamed to `output`.

    Raises
    ------
    CommlensError
        `output` exists or cannot be written.
    """
    try:
        if os.path.lexists(output):
            raise CommlensError(f"{output}: exists")
        # A private folder: in a shared folder, another user could create a link under a name that can be guessed.
        with tempfile.TemporaryDirectory(prefix=".commlens-", dir=output.parent) as folder:
            temporary = Path(folder, output.name)
            yield temporary
            if temporary.is_dir():
                temporary.rename(output)
            else:
                _publish(temporary, output)
    except OSError as error:
        raise CommlensError(f"{output}: cannot be written: {error.strerror or error}") from None


def _publish(temporary: Path, output: Path) -> None:
    """Give a file its name; unlike a plain rename this fails if the name exists meanwhile."""
    try:
        os.link(temporary, output)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # Take the name first, then replace our own empty file, as write_file() in core/out/files.cpp does.
        os.close(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            temporary.rename(output)
        except OSError:
            output.unlink()
            raise


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Provide the path of a copy of a file; at the end, the changed copy takes the place of the file.

    The file is complete at any time, also if the process is killed. The copy has its permissions, and its owner if the
    user may set it.

    Raises
    ------
    CommlensError
        The file is read-only, or another process has changed it meanwhile, or the copy cannot be written.
    """
    real = Path(os.path.realpath(path))
    try:
        facts = real.stat()
        # The rename would also replace a read-only file.
        if not facts.st_mode & 0o222 or not os.access(real, os.W_OK):
            raise CommlensError(f"{path}: cannot be changed: it is read-only")
        with tempfile.TemporaryDirectory(prefix=".commlens-", dir=real.parent) as folder:
            copy = Path(folder, real.name)
            shutil.copy2(real, copy)
            yield copy
            with copy.open("rb+") as file:
                os.fsync(file.fileno())
            shutil.copymode(real, copy)
            with suppress(OSError):
                os.chown(copy, facts.st_uid, facts.st_gid)
            if state_of(real.stat()) != state_of(facts):
                raise CommlensError(f"{path}: was changed by another process meanwhile; try again")
            copy.replace(real)
        sync_folder(real.parent)
    except OSError as error:
        raise CommlensError(f"{path}: cannot be changed: {error.strerror or error}") from None


def state_of(facts: os.stat_result) -> tuple[int, int, int, int]:
    """Return the facts that differ when a file was replaced or written."""
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder to the disk; some file systems do not support that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
