# SPDX-License-Identifier: Apache-2.0
"""Connects to a database that may be damaged or forged, with limits on time, memory and features."""

from __future__ import annotations

import sqlite3
import time

from commlens.base.errors import CommlensError
from commlens.profile import limits
from commlens.profile.regular import ProfileFile

OPERATIONS = 1000
"""Virtual-machine steps between two checks of the deadline: one step may copy a text of megabytes."""

# Views and indices of the file may only call functions without side effects. SQLite checks pages when it reads them. The
# file is read and not mapped, because a mapped file that is truncated raises SIGBUS.
SAFE = """
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
"""
CACHE = "PRAGMA cache_size = -65536"  # 64 MiB: a large profile is read more than once


class Database(sqlite3.Connection):
    """A connection whose queries have a deadline.

    Attributes
    ----------
    is_own : bool
        The file belongs to the user who reads it, or to root.
    size : int
        Bytes stored in the file, or in all files that are merged.
    is_over : bool
        A query was interrupted because all queries together took too long.
    """

    is_own = True
    is_over = False
    size = 0
    limit_s = limits.LIMIT_S
    _end = 0.0

    def guard(self, size: int, most_s: float = float("inf")) -> None:
        """Set the limits for files of `size` stored bytes in all, with a deadline of at most `most_s` seconds."""
        self.text_factory = text_of
        self.isolation_level = None  # a transaction begins where it is written
        self.executescript(SAFE)
        if hasattr(self, "setlimit"):  # from Python 3.11 on
            self.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1)
            self.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
        self.size = size
        self.limit_s = min(limits.seconds_for(size), most_s)
        self.limit_texts(limits.LEAST_TEXT)
        self._end = time.thread_time() + self.limit_s
        self.set_progress_handler(self._is_late, OPERATIONS)

    def grow(self, size: int) -> None:
        """Raise the limits for another file of `size` stored bytes."""
        self.size += size
        added_s = limits.seconds_for(self.size) - self.limit_s
        self.limit_s += added_s
        self._end += added_s
        self.limit_copies()

    def limit_copies(self) -> None:
        """Limit the size of copied tables and of texts. Requires a readable schema."""
        for schema in ("main", "temp"):
            self.execute(f"PRAGMA {schema}.max_page_count = {limits.pages_for(self.size)}")
        self.limit_texts(limits.longest_for(self.size))

    def limit_texts(self, most: int) -> None:
        """Limit the size of a text, in bytes; has no effect before Python 3.11."""
        if hasattr(self, "setlimit"):
            self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)

    def take_time(self) -> None:
        """Remove the deadline for the user's own queries, which Ctrl-C interrupts."""
        self._end = float("inf")
        self.limit_texts(limits.LONGEST_TEXT)

    def within(self, seconds: float) -> Deadline:
        """Return a context manager that sets an earlier deadline."""
        return Deadline(self, seconds)

    def _is_late(self) -> bool:
        self.is_over = self.is_over or time.thread_time() > self._end
        return self.is_over


class Deadline:
    """Sets a deadline for the queries inside a with statement; queries after it have the former deadline again."""

    def __init__(self, database: Database, seconds: float):
        self.database, self.seconds = database, seconds

    def __enter__(self) -> Deadline:
        self.kept = self.database._end
        self.begin = time.thread_time()
        self.database._end = min(self.kept, self.begin + self.seconds)
        return self

    def __exit__(self, *_: object) -> None:
        self.database._end = self.kept
        self.database.is_over = time.thread_time() > self.kept

    @property
    def spent_s(self) -> float:
        """Processor time, in seconds, since the with statement was entered."""
        return time.thread_time() - self.begin


def text_of(content: bytes) -> str:
    """Decode UTF-8; invalid bytes become replacement characters."""
    return content.decode("utf-8", "replace")


def connect(file: ProfileFile, most_s: float = float("inf")) -> Database:
    """Return a read-only connection to a file. Creates no file beside it and works on read-only media.

    Raises
    ------
    CommlensError
        Another file has taken the place of this one, or it is gone.
    """
    uri = file.uri(min(most_s, limits.seconds_for(file.stored)))
    try:
        connection = sqlite3.connect(uri, uri=True, factory=Database)
    except sqlite3.OperationalError as error:
        raise not_opened(file, error) from None
    try:
        if not file.is_open_again():
            raise not_opened(file)
        connection.is_own = file.is_own
        connection.guard(file.stored, most_s)
        read_schema(connection)
        connection.limit_copies()
        connection.execute(CACHE)
    except BaseException:
        connection.close()
        raise
    return connection


def attach(connection: Database, file: ProfileFile, most_s: float) -> None:
    """Attach a file to a connection as schema `part`.

    Raises
    ------
    CommlensError
        Another file has taken the place of this one, or it is gone.
    """
    uri = file.uri(most_s)
    connection.limit_texts(limits.LEAST_TEXT)  # SQLite reads the schema of the file immediately
    try:
        connection.execute("ATTACH ? AS part", (uri,))
    except sqlite3.OperationalError as error:
        if str(error).startswith("unable to open"):
            raise not_opened(file, error) from None
        raise
    finally:
        connection.limit_texts(limits.longest_for(connection.size))
    if not file.is_open_again():
        connection.execute("DETACH part")
        raise not_opened(file)


def not_opened(file: ProfileFile, error: sqlite3.Error | None = None) -> CommlensError:
    """Return the error for a file that this process has open but that SQLite could not open by its name."""
    if error is not None and file.has_name():
        return CommlensError(f"{file.path}: cannot be opened by SQLite: {error}")
    return CommlensError(f"{file.path}: was removed or replaced while it was opened; try again")


def read_schema(connection: Database) -> None:
    """Read the schema.

    One damaged statement, even of an unused view, makes SQLite refuse all tables. With writable_schema it
    skips statements that it cannot parse. The connection stays read-only.
    """
    sql = "SELECT 1 FROM main.sqlite_master LIMIT 1"
    try:
        connection.execute(sql).fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError):  # SQLite's message may contain invalid UTF-8
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(sql).fetchone()
