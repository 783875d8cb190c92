# SPDX-License-Identifier: Apache-2.0
"""A profile of several files, put together.

A job of many ranks leaves a directory: `shard.N.db` with the rows of a block of ranks, and `index.db` with what they
have in common and which of them there are. Numbers mean the same in all of them.
"""

from __future__ import annotations

import sqlite3
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commlens import _schema
from commlens.errors import CommlensError
from commlens.header import check_header
from commlens.progress import tracked

INDEX = "index.db"
ROWS = (
    *("rank", "slice", "peer", "position", "overhead"),
    *("region_time", "loop_time", "loop_bin", "region_slice", "metric_value"),
)
NAMES = ("comm", "comm_set", "op", "flow", "region", "metric", "tag", "callsite", "key")

# What is usual for a key is that for one block only, and the rows of a block are differences to it.
CELLS = """
INSERT OR IGNORE INTO main.cell_row
SELECT r.id, theirs.usual_calls + r.calls - ours.usual_calls, time_ns, time_min_ns, time_max_ns,
       theirs.usual_sent + r.bytes_sent - ours.usual_sent,
       theirs.usual_received + r.bytes_received - ours.usual_received,
       theirs.usual_noncontig + r.noncontiguous - ours.usual_noncontig
  FROM part.key AS theirs CROSS JOIN main.key AS ours ON ours.id = theirs.id
       CROSS JOIN part.cell_row AS r ON r.id BETWEEN theirs.id
       AND theirs.id + (SELECT CAST(value AS INTEGER) FROM part.meta WHERE key = 'ranks') - 1"""

# What SQLite says where the file it writes cannot grow: without space, over a quota, at a limit of sizes.
NO_ROOM = ("database or disk is full", "disk I/O error")


class IncompleteProfile(UserWarning):
    """Something of a profile cannot be read; the rest can."""


@dataclass(frozen=True)
class Shard:
    """One file of a profile, as the index has it; -1: not known."""

    number: int
    path: Path
    first_rank: int = -1
    ranks: int = -1
    size: int = -1
    crc32: int = -1

    def name(self) -> str:
        """Return the file's name, and whose rows are in it if that is known."""
        last = self.first_rank + self.ranks - 1
        return f"{self.path} (ranks {self.first_rank} to {last})" if self.first_rank >= 0 else str(self.path)


def is_directory(path: Path) -> bool:
    """Tell whether a directory looks like a profile."""
    return path.is_dir() and ((path / INDEX).exists() or any(path.glob("shard.*.db")))


def complain(what: str) -> None:
    """Warn that something is missing."""
    warnings.warn(IncompleteProfile(what), stacklevel=3)


def merge(path: Path, into: sqlite3.Connection) -> None:
    """Put a directory, or one shard, into an empty database.

    Warns
    -----
    IncompleteProfile
        A file is missing or damaged, or belongs to another job; all others are there.

    Raises
    ------
    CommlensError
        No file can be read.
    """
    into.executescript(_schema.SQL)
    world = None
    has_names = False
    shards = [Shard(-1, path)]
    if path.is_dir():
        index = path / INDEX
        known = listed(index)
        shards = known or [Shard(-1, file) for file in sorted(path.glob("shard.*.db"), key=by_number)]
        has_names = known is not None and takes_names(into, index)
        if not has_names:
            complain(f"{index} cannot be read: what no rank below has used is missing")
            world = most_common_world(shards)
    read = 0
    for shard in tracked(shards, str(path)):
        wrong = fault(shard)
        if wrong is None:
            own = world_of(shard.path)
            world = own if world is None else world
            wrong = None if own in (world, None) else "belongs to another job"
        if wrong is None:
            try:
                copy(
                    into, shard.path, (*(() if has_names and shard.number >= 0 else ("meta", *NAMES)), *ROWS)
                )
                read += 1
                continue
            except sqlite3.DatabaseError as error:
                if has_no_room(into, error):
                    raise
                wrong = f"is damaged: {error}"
        complain(f"{shard.name()} {wrong}")
    if read == 0:
        raise CommlensError(f"{path}: none of its files can be read")
    into.commit()


def takes_names(into: sqlite3.Connection, index: Path) -> bool:
    """Take what all ranks have in common from the index; tell whether it can be read."""
    try:
        copy(into, index, ("meta", "coverage", "shard", *NAMES))
    except sqlite3.DatabaseError as error:
        if has_no_room(into, error):
            raise
        return False
    return True


def has_no_room(connection: sqlite3.Connection, error: sqlite3.DatabaseError) -> bool:
    """Tell whether it is the file this connection writes that has caused an error, not one that it reads."""
    return str(error) in NO_ROOM and bool(connection.execute("PRAGMA database_list").fetchone()[2])


def by_number(file: Path) -> tuple[int, str]:
    """Return what sorts shard.9.db before shard.10.db."""
    return len(file.name), file.name


def asked(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query, from a file that nobody changes."""
    with closing(sqlite3.connect(frozen(path), uri=True)) as connection:
        return connection.execute(sql).fetchall()


def frozen(path: Path) -> str:
    """Return the URI by which SQLite only reads a file, and needs no second one for it."""
    return f"{path.resolve().as_uri()}?mode=ro&immutable=1"


def listed(index: Path) -> list[Shard] | None:
    """Return what the index lists, or None when it cannot be read."""
    try:
        check_header(index)
        rows = asked(index, "SELECT number, file, first_rank, ranks, bytes, crc32 FROM shard")
    except (CommlensError, sqlite3.DatabaseError):
        return None
    return [
        Shard(number, index.parent / (file or f"shard.{number}.db"), first, ranks, size, crc)
        for number, file, first, ranks, size, crc in rows
    ]


def fault(shard: Shard) -> str | None:
    """Return what is wrong with a file, or None."""
    try:
        check_header(shard.path)
        if shard.crc32 < 0:
            return None
        content = shard.path.read_bytes()
    except CommlensError as error:
        return error.message.removeprefix(f"{shard.path}: ")
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if len(content) != shard.size or zlib.crc32(content) != shard.crc32:
        return "is damaged: its bytes are not those that were written"
    return None


def world_of(path: Path) -> int | None:
    """Return the random id of the job, or None where no row tells it."""
    try:
        rows = asked(path, "SELECT world FROM rank LIMIT 1")
    except sqlite3.DatabaseError:
        return None
    return rows[0][0] if rows else None


def most_common_world(shards: Iterable[Shard]) -> int | None:
    """Return the id of the job most files are of."""
    worlds = Counter(
        world for shard in shards if fault(shard) is None and (world := world_of(shard.path)) is not None
    )
    return worlds.most_common(1)[0][0] if worlds else None


def copy(into: sqlite3.Connection, path: Path, tables: Iterable[str]) -> None:
    """Add rows of these tables; those that are there already stay."""
    into.commit()
    into.execute("ATTACH ? AS part", (frozen(path),))
    try:
        with into:
            for table in tables:
                columns = ", ".join(column_names(into, table))
                if columns:
                    into.execute(
                        f"INSERT OR IGNORE INTO main.{table} ({columns}) SELECT {columns} FROM part.{table}"
                    )
            if "rank" in tables:
                into.execute(CELLS)
    finally:
        into.execute("DETACH part")


def column_names(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Return the columns the file has of a table; none where it is from before there was this table."""
    for _, name, *_ in connection.execute(f"PRAGMA part.table_info({table})"):
        yield name
