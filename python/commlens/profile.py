# SPDX-License-Identifier: Apache-2.0
"""Opens a profile, or says in one line why the file is none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from commlens.errors import CommlensError
from commlens.header import check_header
from commlens.outputs import new
from commlens.shards import NO_ROOM, is_directory, merge

OLDEST_SQLITE = (3, 25, 0)  # window functions


def connect(path: Path) -> sqlite3.Connection:
    """Return a read-only connection; works on read-only media."""
    uri = path.resolve().as_uri()
    # A file somebody put into WAL mode needs a second file beside it, even for reading.  Where that
    # cannot be made, the only way is to promise that nobody changes the profile meanwhile.
    for mode in ("?mode=ro", "?mode=ro&immutable=1"):
        connection = sqlite3.connect(uri + mode, uri=True)
        try:
            connection.execute("SELECT value FROM meta LIMIT 1")
        except sqlite3.DatabaseError as error:
            connection.close()
            failure = error
            if isinstance(error, sqlite3.OperationalError):
                continue
            break
        connection.execute("PRAGMA cache_size = -65536")  # 64 MiB: a large profile is read more than once
        connection.row_factory = sqlite3.Row
        connection.set_authorizer(_authorize)
        return connection
    raise failure


def _authorize(action: int, *_: object) -> int:
    """Deny other files: ATTACH, and VACUUM INTO which needs it, would write them even so."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


def is_shard(connection: sqlite3.Connection) -> bool:
    """Tell whether a file is one of several of a profile."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'shard'").fetchone()
    return bool(row and row["value"])


def connect_all(path: Path) -> sqlite3.Connection:
    """Return a connection to a profile: a file, a directory with several, or one of these."""
    if not is_directory(path):
        check_header(path)
        connection = connect(path)
        if not is_shard(connection):
            return connection
        connection.close()
    return put_together(path)


def put_together(path: Path) -> sqlite3.Connection:
    """Return a profile of several files, or one of these, as one in memory."""
    connection = sqlite3.connect(":memory:", uri=True)
    try:
        merge(path, connection)
        connection.execute("PRAGMA query_only = 1")
    except BaseException:
        connection.close()
        raise
    connection.row_factory = sqlite3.Row
    connection.set_authorizer(_authorize)
    return connection


def merged_file(directory: Path, output: Path) -> None:
    """Write a profile of several files as one; never over an existing file.

    Raises
    ------
    CommlensError
        None of the files can be read, or `output` exists or cannot be written.
    """
    with new(output) as temporary:
        try:
            with closing(sqlite3.connect(temporary, uri=True)) as connection:
                connection.execute("PRAGMA journal_mode = OFF")
                connection.execute("PRAGMA synchronous = OFF")
                merge(directory, connection)
                connection.execute("DELETE FROM shard")
                connection.commit()
                connection.execute("VACUUM")  # pages in the order of their keys
        except sqlite3.Error as error:
            why = str(error)
            if why in NO_ROOM:
                why = refusal(temporary) or f"{why}: no room in the folder for temporary files (TMPDIR)"
            raise CommlensError(f"{output}: cannot be written: {why}") from error


def refusal(path: Path) -> str | None:
    """Return why a file cannot grow, in the words of the system; SQLite knows one reason for all."""
    try:
        with path.open("ab", buffering=0) as file:
            for _ in range(64):
                file.write(bytes(4096))
    except OSError as error:
        return error.strerror
    return None


@contextmanager
def open_profile(name: str) -> Iterator[sqlite3.Connection]:
    """Open a profile for reading: a file, or a directory with several.

    Warns
    -----
    IncompleteProfile
        Some of several files cannot be read.

    Raises
    ------
    CommlensError
        The file is no profile, or turns out to be damaged while it is read.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise CommlensError(f"this Python has SQLite {sqlite3.sqlite_version}; commlens needs {needed}")
    path = Path(name)
    try:
        with closing(connect_all(path)) as connection:
            yield connection
    except sqlite3.DatabaseError as error:
        raise CommlensError(f"{path}: damaged: {error}") from error
