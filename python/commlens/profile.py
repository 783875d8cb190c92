# SPDX-License-Identifier: Apache-2.0
"""Opens a profile, or says in one line why the file is none."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from commlens._schema import APPLICATION_ID, VERSION
from commlens.errors import CommlensError
from commlens.shards import is_directory, merge

OLDEST_VERSION = 2
OLDEST_SQLITE = (3, 25, 0)  # window functions

MAGIC = b"SQLite format 3\0"
HEADER_SIZE = 100  # https://www.sqlite.org/fileformat.html, section 1.3


def check_header(path: Path) -> None:
    """Refuse a file that cannot be a profile this reader understands.

    Looks at the first bytes only: SQLite itself would take an empty file for an empty database, and
    would notice a missing end only when a query happens to need it.

    Raises
    ------
    CommlensError
        The file is missing, unreadable, no profile, truncated, too new or too old.
    """
    try:
        if not path.exists():
            raise CommlensError(f"{path}: no such file")
        if not path.is_file():
            raise CommlensError(f"{path}: not a profile, not even a file")
        with path.open("rb") as file:
            header = file.read(HEADER_SIZE)
        file_size = path.stat().st_size
    except OSError as error:
        raise CommlensError(f"{path}: cannot be read: {error.strerror}") from None
    if not header:
        raise CommlensError(f"{path}: not a profile: the file is empty")
    if not header.startswith(MAGIC) and not MAGIC.startswith(header):
        raise CommlensError(f"{path}: not a profile: no SQLite file")
    if len(header) < HEADER_SIZE:
        raise CommlensError(f"{path}: truncated: {file_size} bytes are left")
    (application_id,) = struct.unpack_from(">i", header, 68)
    if application_id != APPLICATION_ID:
        raise CommlensError(f"{path}: not a profile: an SQLite file of another program")
    (version,) = struct.unpack_from(">i", header, 60)
    if version > VERSION:
        raise CommlensError(
            f"{path}: has schema version {version}, this commlens reads up to {VERSION}: use a newer commlens"
        )
    if version < OLDEST_VERSION:
        raise CommlensError(
            f"{path}: has schema version {version}, this commlens reads from {OLDEST_VERSION}: use an older one"
        )
    page_size, pages = struct.unpack_from(">H", header, 16)[0], struct.unpack_from(">I", header, 28)[0]
    page_size = 65536 if page_size == 1 else page_size
    if file_size < page_size * pages:
        raise CommlensError(f"{path}: truncated: {file_size} of {page_size * pages} bytes are left")


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


def is_shard(path: Path) -> bool:
    """Tell whether a file is one of several of a profile."""
    with closing(connect(path)) as connection:
        row = connection.execute("SELECT value FROM meta WHERE key = 'shard'").fetchone()
    return bool(row and row["value"])


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
    temporary = output.with_name(f"{output.name}.tmp.{os.getpid()}")
    try:
        if output.exists():
            raise CommlensError(f"{output}: exists")
        with closing(sqlite3.connect(temporary, uri=True)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            merge(directory, connection)
            connection.execute("DELETE FROM shard")
            connection.commit()
            connection.execute("VACUUM")  # pages in the order of their keys
        os.link(temporary, output)
    except sqlite3.Error as error:
        raise CommlensError(f"{output}: cannot be written: {error}") from error
    except OSError as error:
        raise CommlensError(f"{output}: cannot be written: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


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
    is_one_file = not is_directory(path)
    if is_one_file:
        check_header(path)
    try:
        is_whole = is_one_file and not is_shard(path)
        with closing(connect(path) if is_whole else put_together(path)) as connection:
            yield connection
    except sqlite3.DatabaseError as error:
        raise CommlensError(f"{path}: damaged: {error}") from error
