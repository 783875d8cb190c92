# SPDX-License-Identifier: Apache-2.0
"""Output files: written completely or not at all, and never over an existing file."""

from __future__ import annotations

import csv
import errno
import math
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
