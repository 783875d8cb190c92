# SPDX-License-Identifier: Apache-2.0
"""Merges the shards of a profile.

A job of many ranks leaves a directory: `shard.N.db` with the rows of a block of ranks, and `index.db` with the shared
tables and the list of shards. Numbers mean the same in all of them.
"""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.progress import tracked
from commlens.profile import _schema
from commlens.profile.checked import Checker
from commlens.profile.database import Database, attach, connect
from commlens.profile.header import check_header
from commlens.profile.incomplete import complain
from commlens.profile.limits import SECONDS_PER_BYTE
from commlens.profile.regular import ProfileFile, opened
from commlens.profile.shape import TABLES, shape_of, version_of

__all__ = ["INDEX", "NO_ROOM", "is_directory", "merge"]

INDEX = "index.db"
ROWS = (
    *("rank", "slice", "peer", "position", "overhead"),
    *("region_time", "loop_time", "loop_bin", "region_slice", "metric_value", "metric_series", "waiting"),
    *("thread", "thread_cell", "thread_region", "untimed", "event_count", "datatype_use"),
)
NAMES = ("comm", "comm_set", "op", "flow", "region", "metric", "datatype", "tag", "callsite", "key")
OF_INDEX = ("meta", "setting", "coverage", "shard", "clock", "sampled", "unsplit", "frame")

# Each shard has the usual values of its own block in table key; the rows of its cell_row are differences to them.
CELLS = """
INSERT OR IGNORE INTO main.cell_row
SELECT r.id, theirs.usual_calls + r.calls - ours.usual_calls, time_ns, time_min_ns, time_max_ns,
       theirs.usual_sent + r.bytes_sent - ours.usual_sent,
       theirs.usual_received + r.bytes_received - ours.usual_received,
       theirs.usual_noncontig + r.noncontiguous - ours.usual_noncontig
  FROM part.key AS theirs CROSS JOIN main.key AS ours ON ours.id = theirs.id
       CROSS JOIN part.cell_row AS r ON r.id BETWEEN theirs.id
       AND theirs.id + (SELECT CAST(value AS INTEGER) FROM part.meta WHERE key = 'ranks') - 1"""

OF_CELLS = ("meta", "key", "cell_row")

# SQLite's messages if the file that it writes cannot grow: no space, quota or size limit.
NO_ROOM = ("database or disk is full", "disk I/O error")


@dataclass(frozen=True)
class Shard:
    """One shard of a profile, as listed in the index; -1: unknown."""

    number: int
    path: Path
    first_rank: int = -1
    ranks: int = -1
    size: int = -1
    crc32: int = -1

    def name(self) -> str:
        """Return the file's name and, if known, the ranks whose rows it has."""
        last = self.first_rank + self.ranks - 1
        return f"{self.path} (ranks {self.first_rank} to {last})" if self.first_rank >= 0 else str(self.path)


def is_directory(path: Path) -> bool:
    """Return whether a directory looks like a profile."""
    return path.is_dir() and ((path / INDEX).exists() or any(path.glob("shard.*.db")))


MOST_SHARDS = 1 << 16
MOST_COMPLAINTS = 100  # printed one by one
MOST_NAME = 255  # bytes of a file's name
PART_OF_TIME = 0.5  # share of the time for all queries; a file gets half of the remaining time


@contextmanager
def folder_of(path: Path) -> Iterator[int | None]:
    """Open a directory; None for a single file."""
    if not path.is_dir():
        yield None
        return
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CommlensError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        yield folder
    finally:
        os.close(folder)


def merge(path: Path, into: Database) -> None:
    """Merge a directory, or one shard, into an empty database.

    Warns
    -----
    IncompleteProfile
        A file is missing or damaged, or belongs to another job; all others are merged. Or rows are invalid.

    Raises
    ------
    CommlensError
        No file can be read.
    """
    into.executescript(_schema.SQL + _schema.ADDED_SQL)
    with folder_of(path) as folder:
        into.guard(0)
        merging = Merging(path, folder, into)
        has_names = merging.run()
    checker = Checker(into, is_part=not has_names)
    checker.check()
    for name, source in checker.sources.items():
        if source == f"temp.{name}":
            into.execute(f"DELETE FROM main.{name}")
            into.execute(f"INSERT INTO main.{name} SELECT * FROM temp.{name}")
            into.execute(f"DROP TABLE temp.{name}")
    # The tables are those of the present version. Those that the version of the files lacks are empty (has_table()).
    into.execute(f"PRAGMA main.user_version = {merging.version}")
    for complaint in checker.complaints:
        complain(f"{path}: {complaint}")


class Merging:
    """Merges the files of one profile into a database.

    Attributes
    ----------
    version : int
        The schema version of the files; the newest if they differ, which no library writes.
    """

    def __init__(self, path: Path, folder: int | None, into: Database):
        self.path, self.folder, self.into = path, folder, into
        self.left_s = into.limit_s * PART_OF_TIME
        self.counted: set[tuple[int, int]] = set()
        self.complaints = 0
        self.version = 0

    def run(self) -> bool:
        """Read all readable files; return whether the index provided the shared tables."""
        world = None
        has_names = False
        shards = [Shard(-1, self.path)]
        if self.folder is not None:
            index = self.path / INDEX
            known = self.listed(index)
            shards = known or [
                Shard(-1, file) for file in sorted(self.path.glob("shard.*.db"), key=by_number)[:MOST_SHARDS]
            ]
            has_names = known is not None and self.takes_names(index)
            if not has_names:
                self.complain(
                    f"{index} cannot be read: communicators, regions and other names that no readable rank used are missing"
                )
                world = self.most_common_world(shards)
        read = 0
        for shard in tracked(shards, str(self.path)):
            try:
                with self.sound(shard) as file:
                    own = self.world_of(file)
                    world = own if world is None else world
                    if own not in (world, None):
                        raise CommlensError(f"{shard.path}: belongs to another job")
                    names = () if has_names and shard.number >= 0 else ("meta", *NAMES)
                    self.copy(file, (*names, *ROWS))
                    read += 1
            except CommlensError as error:
                self.complain(f"{shard.name()} {unnamed(error, shard.path)}")
            except sqlite3.DatabaseError as error:
                if has_no_room(self.into, error):
                    raise
                why = (
                    "it takes too long to read" if self.into.is_over or "interrupted" in str(error) else error
                )
                self.complain(f"{shard.name()} is damaged: {why}")
        if self.complaints > MOST_COMPLAINTS:
            complain(f"{self.path}: {self.complaints - MOST_COMPLAINTS:,} more of its files cannot be read")
        if read == 0:
            raise CommlensError(f"{self.path}: none of its files can be read")
        return has_names

    def complain(self, what: str) -> None:
        """Warn that a file cannot be read, for the first of very many."""
        self.complaints += 1
        if self.complaints <= MOST_COMPLAINTS:
            complain(what)

    @contextmanager
    def opened(self, path: Path) -> Iterator[ProfileFile]:
        """Open a file that can be a profile, and add its size to the limits of time and memory once."""
        with opened(path, self.folder) as file:
            check_header(file)
            if file.inode not in self.counted:
                self.counted.add(file.inode)
                self.into.grow(file.stored)
                self.left_s += file.stored * SECONDS_PER_BYTE * PART_OF_TIME
            yield file

    @contextmanager
    def limited(self) -> Iterator[float]:
        """Yield the seconds that may be spent, and subtract the time spent from the rest."""
        begin = time.thread_time()
        try:
            yield max(self.left_s, 0) / 2
        finally:
            self.left_s -= time.thread_time() - begin

    def asked(self, file: ProfileFile, table: str, values: Mapping[str, str]) -> list[tuple[Any, ...]]:
        """Return values of the rows of a table, for SQL expressions by column."""
        with self.limited() as most_s, closing(connect(file, most_s)) as connection:
            if not set(values) <= shape_of(connection, "main", table, TABLES[table]).columns:
                return []
            sql = f"SELECT {', '.join(values.values())} FROM main.{table} NOT INDEXED LIMIT {MOST_SHARDS}"
            return connection.execute(sql).fetchall()

    def world_of(self, file: ProfileFile) -> int | None:
        """Return the random id of the job, or None if no row has it."""
        try:
            rows = self.asked(file, "rank", {"world": integer("world")})
        except sqlite3.DatabaseError:
            return None
        return rows[0][0] if rows else None

    @contextmanager
    def sound(self, shard: Shard) -> Iterator[ProfileFile]:
        """Open a file if its bytes are unchanged.

        Raises
        ------
        CommlensError
            The file is damaged; the message has the reason.
        """
        with self.opened(shard.path) as file:
            if shard.crc32 >= 0:
                try:
                    with self.limited() as most_s:
                        is_same = file.size == shard.size and crc32_of(file, most_s) == shard.crc32
                except OSError as error:
                    raise CommlensError(f"{shard.path}: cannot be read: {error.strerror}") from None
                if not is_same:
                    raise CommlensError(f"{shard.path}: is damaged: its size or checksum is wrong")
            yield file

    def listed(self, index: Path) -> list[Shard] | None:
        """Return the shards that the index lists, or None if it cannot be read."""
        numbers = ("number", "first_rank", "ranks", "bytes", "crc32")
        is_name = f"typeof(file) = 'text' AND LENGTH(CAST(file AS BLOB)) <= {MOST_NAME}"
        name = f"CASE WHEN {is_name} THEN file WHEN file IS NOT NULL THEN '' END"
        try:
            with self.opened(index) as file:
                rows = self.asked(file, "shard", {"file": name, **{n: integer(n) for n in numbers}})
        except (CommlensError, sqlite3.DatabaseError):
            return None
        found: dict[str, Shard] = {}
        for name, number, *facts in rows:
            name = f"shard.{number}.db" if name is None else name
            is_number = all(isinstance(fact, int) for fact in (number, *facts))
            if not is_number or not is_plain(name) or name in found:
                self.complain(f"{index}: the entry of file {number} is invalid and left out")
                continue
            found[name] = Shard(number, index.parent / name, *facts)
        return list(found.values())

    def takes_names(self, index: Path) -> bool:
        """Copy the shared tables from the index; return whether it can be read."""
        try:
            with self.opened(index) as file:
                self.copy(file, (*OF_INDEX, *NAMES))
        except CommlensError:
            return False
        except sqlite3.DatabaseError as error:
            if has_no_room(self.into, error):
                raise
            return False
        return True

    def most_common_world(self, shards: Iterable[Shard]) -> int | None:
        """Return the id of the job that most files belong to."""
        worlds: Counter[int] = Counter()
        for shard in shards:
            try:
                with self.sound(shard) as file:
                    worlds.update(world for world in [self.world_of(file)] if world is not None)
            except CommlensError:  # reported when it is read
                continue
        return worlds.most_common(1)[0][0] if worlds else None

    def copy(self, file: ProfileFile, tables: Sequence[str]) -> None:
        """Add the rows of these tables; existing rows are kept."""
        into = self.into
        into.is_own = into.is_own and file.is_own
        with self.limited() as most_s, into.within(most_s):
            # So that a statement of its schema that is damaged hides no table (read_schema()).
            into.execute("PRAGMA writable_schema = ON")
            try:
                attach(into, file, most_s)
                try:
                    into.execute("BEGIN")
                    for sql in copies(into, tables):
                        into.execute(sql)
                    into.execute("COMMIT")
                    self.version = max(self.version, version_of(into, "part"))
                finally:
                    if into.in_transaction:
                        into.execute("ROLLBACK")
                    into.execute("DETACH part")
            finally:
                into.execute("PRAGMA writable_schema = OFF")


def copies(connection: sqlite3.Connection, tables: Sequence[str]) -> Iterator[str]:
    """Yield the statements that copy the tables of a file; only tables of the expected shape are copied."""
    version = version_of(connection, "part")
    shapes = {name: shape_of(connection, "part", name, TABLES[name]) for name in (*tables, *OF_CELLS)}
    for table in tables:
        there = shapes[table].columns
        # Columns that older versions lack have the default of the schema.
        values = {
            column.name: shapes[table].value(column.name) if column.name in there else column.absent
            for column in TABLES[table].columns
            if column.name in there or version < column.since
        }
        if there:
            yield (
                f"INSERT OR IGNORE INTO main.{table} ({', '.join(values)})"
                f" SELECT {', '.join(values.values())} FROM part.{shapes[table].name} NOT INDEXED"
            )
    if "rank" in tables and all(
        len(shapes[name].columns) == len(TABLES[name].columns) and shapes[name].is_ours for name in OF_CELLS
    ):
        yield CELLS


def has_no_room(connection: sqlite3.Connection, error: sqlite3.DatabaseError) -> bool:
    """Return whether the file that this connection writes caused an error, not a file that it reads."""
    return str(error) in NO_ROOM and bool(connection.execute("PRAGMA database_list").fetchone()[2])


def unnamed(error: CommlensError, path: Path) -> str:
    """Return the message of an error without the leading file name."""
    return error.message.removeprefix(CommlensError(f"{path}: ").message)


def by_number(file: Path) -> tuple[int, str]:
    """Return a sort key that puts shard.9.db before shard.10.db."""
    return len(file.name), file.name


def is_plain(name: object) -> bool:
    """Return whether a name is a plain file name within its folder.

    >>> [is_plain(name) for name in ("shard.0.db", "../x", "/etc/passwd", "..", "", 7)]
    [True, False, False, False, False, False]
    """
    return isinstance(name, str) and name not in ("", ".", "..") and "/" not in name and "\0" not in name


def integer(column: str) -> str:
    """Return the SQL expression for a column of integers; other values, which may be long, become NULL."""
    return f"CASE WHEN typeof({column}) = 'integer' THEN {column} END"


def crc32_of(file: ProfileFile, most_s: float) -> int:
    """Return the CRC-32 of the bytes of a file."""
    found = 0
    for part in file.content(most_s):
        found = zlib.crc32(part, found)
    return found
