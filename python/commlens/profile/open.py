# SPDX-License-Identifier: Apache-2.0
"""Opens a profile, or reports in one line why the file is not a profile.

A profile may come from anybody: its content is checked before use (checked.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from commlens.base.errors import CommlensError
from commlens.base.outputs import new
from commlens.profile.checked import Checker
from commlens.profile.database import Database, connect
from commlens.profile.header import check_header
from commlens.profile.incomplete import complain
from commlens.profile.regular import opened
from commlens.profile.shards import NO_ROOM, is_directory, merge

OLDEST_SQLITE = (3, 26, 0)  # table_xinfo; window functions

# Files that SQLite creates beside a database that is being changed.  commlens neither creates nor reads them.
BESIDE = {
    "-wal": "its changes are not read; to apply them, run 'sqlite3 {path} .tables' as the owner",
    "-journal": "a change of the profile was not finished; to undo it, run 'sqlite3 {path} .tables' as the owner",
}


def _authorize(action: int, *_: object) -> int:
    """Deny access to other files: ATTACH and VACUUM INTO could write them even on a read-only connection."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


def is_shard(connection: sqlite3.Connection) -> bool:
    """Return whether a file is a shard of a profile."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'shard'").fetchone()
    return bool(row and row[0])


def connect_all(path: Path) -> Database:
    """Return a connection to a profile: a file, a directory of shards, or one shard."""
    if is_directory(path):
        return put_together(path)
    with opened(path) as file:
        check_header(file)
        connection = connect(file)
    try:
        checker = Checker(connection)
        checker.check()
        if is_shard(connection):
            connection.close()
            return put_together(path)
    except BaseException:
        connection.close()
        raise
    for complaint in checker.complaints:
        complain(f"{path}: {complaint}")
    for ending, what in BESIDE.items():
        beside = path.with_name(path.name + ending)
        if beside.is_file() and beside.stat().st_size:
            complain(f"{beside}: {what.format(path=path)}")
    return for_reading(connection)


def for_reading(connection: Database) -> Database:
    """Return a connection for queries only."""
    connection.execute("PRAGMA query_only = ON")
    connection.row_factory = sqlite3.Row
    connection.set_authorizer(_authorize)
    return connection


def put_together(path: Path) -> Database:
    """Return the shards of a profile, or one of them, merged into one database in memory."""
    connection = sqlite3.connect(":memory:", uri=True, factory=Database)
    try:
        merge(path, connection)
        return for_reading(connection)
    except BaseException:
        connection.close()
        raise


def merged_file(directory: Path, output: Path) -> None:
    """Merge the shards of a profile into one file; an existing file is never overwritten.

    Raises
    ------
    CommlensError
        None of the files can be read, or `output` exists or cannot be written.
    """
    with new(output) as temporary:
        try:
            with closing(sqlite3.connect(temporary, uri=True, factory=Database)) as connection:
                connection.execute("PRAGMA journal_mode = MEMORY")
                connection.execute("PRAGMA synchronous = OFF")
                merge(directory, connection)
                connection.execute("DELETE FROM shard")
                connection.execute("UPDATE meta SET value = '' WHERE key = 'shard'")
                connection.execute("VACUUM")  # pages in the order of their keys
        except sqlite3.Error as error:
            why = str(error)
            if why in NO_ROOM:
                why = refusal(temporary) or f"{why}: no room in the folder for temporary files (TMPDIR)"
            raise CommlensError(f"{output}: cannot be written: {why}") from error


def refusal(path: Path) -> str | None:
    """Return the error of the system when the file cannot grow; SQLite reports one message for all of them."""
    try:
        with path.open("ab", buffering=0) as file:
            for _ in range(64):
                file.write(bytes(4096))
    except OSError as error:
        return error.strerror
    return None


@contextmanager
def open_profile(name: str) -> Iterator[Database]:
    """Open a profile for reading: a file, or a directory of shards.

    Warns
    -----
    IncompleteProfile
        Some shards cannot be read, or some rows are invalid; both are left out.

    Raises
    ------
    CommlensError
        The file is not a profile, or is damaged; damage may show only while it is read.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise CommlensError(f"this Python has SQLite {sqlite3.sqlite_version}, but commlens needs {needed}")
    path = Path(name)
    connection = None
    try:
        with closing(connect_all(path)) as connection:
            yield connection
    except sqlite3.DatabaseError as error:
        if connection is not None and connection.is_over:
            raise CommlensError(
                f"{path}: damaged: a query on a file of this size must not take {connection.limit_s:.0f} s"
            ) from error
        if is_stopped(connection, error):
            raise KeyboardInterrupt from error
        raise CommlensError(f"{path}: damaged: {error}") from error


def is_stopped(connection: Database | None, error: sqlite3.DatabaseError) -> bool:
    """Return whether Ctrl-C ended a query: the sqlite3 module reports only that it was interrupted."""
    return connection is not None and not connection.is_over and str(error) == "interrupted"
