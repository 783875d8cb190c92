# SPDX-License-Identifier: Apache-2.0
"""What a command writes: there as a whole or not at all, and never over what is there."""

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
"""What a hard link fails with on a file system that has none: vfat, some servers of CIFS, some of FUSE."""


class CsvWriter:
    """Writes records of CSV, each as one line of text that can be shown on a terminal; None is an empty field."""

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
    """Return a number as JSON can have it: no infinity, which a sum becomes beyond what a number can hold."""
    return value if value is None or math.isfinite(value) else None


@contextmanager
def new(output: Path) -> Iterator[Path]:
    """Name a place to write to; what is there in the end, a file or a directory, becomes `output`.

    Raises
    ------
    CommlensError
        `output` exists or cannot be written.
    """
    try:
        if os.path.lexists(output):
            raise CommlensError(f"{output}: exists")
        # In a folder of its own: where others may write, they could have put a link under any name that they can guess.
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
    """Give a file its name; in contrast to a renaming alone this fails where somebody was faster."""
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
