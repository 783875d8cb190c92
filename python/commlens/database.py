# SPDX-License-Identifier: Apache-2.0
"""A connection to a database that may be damaged or forged: SQLite with limits."""

from __future__ import annotations

import sqlite3
import time

from commlens.errors import CommlensError
from commlens.regular import ProfileFile

LIMIT_S = 5.0
SECONDS_PER_BYTE = 4.0e-6
"""Processor time for all queries on a file. A sound profile needs a fiftieth of it or less."""
OPERATIONS = 1000
"""Steps of SQLite's machine from one look at the clock to the next: a step may copy a text of megabytes."""
LONGEST_TEXT = 1 << 26  # bytes of a text or a row

# Nothing that is stored in the file runs: no function that a view or an index calls may do more than compute. Damaged
# pages are noticed when they are read; the file is read and not mapped, so that one that is cut short is no signal.
SAFE = """
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
"""
CACHE = "PRAGMA cache_size = -65536"  # 64 MiB: a large profile is read more than once


class Database(sqlite3.Connection):
    """A connection whose queries come to an end.

    Attributes
    ----------
    is_own : bool
        The file belongs to the user who reads it, or to root.
    size : int
        Bytes of the file, or of all files that are put together.
    is_over : bool
        A query was ended because all of them together took too long.
    """

    is_own = True
    is_over = False
    size = 0
    limit_s = LIMIT_S
    _end = 0.0

    def guard(self, size: int) -> None:
        """Limit what queries may take on files of `size` bytes in all."""
        self.text_factory = text_of
        self.isolation_level = None  # a transaction begins where it is written
        self.executescript(SAFE)
        if hasattr(self, "setlimit"):  # from Python 3.11 on
            self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_TEXT)
            self.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1)
            self.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
        self.size = size
        self.limit_s = LIMIT_S + size * SECONDS_PER_BYTE
        self._end = time.process_time() + self.limit_s
        self.set_progress_handler(self._is_late, OPERATIONS)

    def take_time(self) -> None:
        """Let the queries that follow take as long as they do: they are the user's own. Ctrl-C ends them."""
        self._end = float("inf")

    def within(self, seconds: float) -> Deadline:
        """Return a context in which queries end sooner."""
        return Deadline(self, seconds)

    def _is_late(self) -> bool:
        self.is_over = self.is_over or time.process_time() > self._end
        return self.is_over


class Deadline:
    """While it is entered, queries of a database have so many seconds; one that is ended is no reason to end others."""

    def __init__(self, database: Database, seconds: float):
        self.database, self.seconds = database, seconds

    def __enter__(self) -> Deadline:
        self.kept = self.database._end
        self.begin = time.process_time()
        self.database._end = min(self.kept, self.begin + self.seconds)
        return self

    def __exit__(self, *_: object) -> None:
        self.database._end = self.kept
        self.database.is_over = time.process_time() > self.kept

    @property
    def spent_s(self) -> float:
        """Processor time since it was entered."""
        return time.process_time() - self.begin


def text_of(content: bytes) -> str:
    """Return a text; what is no UTF-8 becomes a replacement character."""
    return content.decode("utf-8", "replace")


def connect(file: ProfileFile) -> Database:
    """Return a read-only connection to a file; makes none beside it, and works on read-only media.

    Raises
    ------
    CommlensError
        Another file has taken the place of this one.
    """
    connection = sqlite3.connect(file.uri(), uri=True, factory=Database)
    try:
        if not file.is_open_again():
            raise CommlensError(f"{file.path}: was replaced while it was opened; try again")
        connection.is_own = file.is_own
        connection.guard(file.size)
        read_schema(connection)
        connection.execute(CACHE)
    except BaseException:
        connection.close()
        raise
    return connection


def read_schema(connection: Database) -> None:
    """Read which tables there are.

    One statement that is damaged, be it a view nobody needs, would keep SQLite from all tables. Where it may be written,
    which it is not here, SQLite takes what it understands.
    """
    sql = "SELECT 1 FROM main.sqlite_master LIMIT 1"
    try:
        connection.execute(sql).fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError):  # a message with bytes that are no text
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(sql).fetchone()
