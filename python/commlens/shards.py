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

from commlens import _schema
from commlens.errors import CommlensError
from commlens.progress import tracked

INDEX = "index.db"
ROWS = ("rank", "slice", "position", "overhead")
NAMES = ("comm", "comm_set", "op", "region", "callsite", "key")

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
    index = path / INDEX if path.is_dir() else None
    world = None
    shards = [Shard(-1, path)]
    if index is not None:
        known = listed(index)
        shards = known or [Shard(-1, file) for file in sorted(path.glob("shard.*.db"), key=by_number)]
        if known is not None:
            copy(into, index, ("meta", "coverage", "shard", *NAMES))
        else:
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
                copy(into, shard.path, (*(() if index and shard.number >= 0 else ("meta", *NAMES)), *ROWS))
                read += 1
                continue
            except sqlite3.DatabaseError as error:
                wrong = f"is damaged: {error}"
        complain(f"{shard.name()} {wrong}")
    if read == 0:
        raise CommlensError(f"{path}: none of its files can be read")
    into.commit()


def by_number(file: Path) -> tuple[int, str]:
    """Return what sorts shard.9.db before shard.10.db."""
    return len(file.name), file.name


def listed(index: Path) -> list[Shard] | None:
    """Return what the index lists, or None when it cannot be read."""
    from commlens.profile import check_header

    try:
        check_header(index)
        with closing(
            sqlite3.connect(f"{index.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as connection:
            rows = connection.execute(
                "SELECT number, file, first_rank, ranks, bytes, crc32 FROM shard"
            ).fetchall()
    except (CommlensError, sqlite3.DatabaseError):
        return None
    return [
        Shard(number, index.parent / (file or f"shard.{number}.db"), first, ranks, size, crc)
        for number, file, first, ranks, size, crc in rows
    ]


def fault(shard: Shard) -> str | None:
    """Return what is wrong with a file, or None."""
    from commlens.profile import check_header

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
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as connection:
            row = connection.execute("SELECT world FROM rank LIMIT 1").fetchone()
    except sqlite3.DatabaseError:
        return None
    return row[0] if row else None


def most_common_world(shards: Iterable[Shard]) -> int | None:
    """Return the id of the job most files are of."""
    worlds = Counter(
        world for shard in shards if fault(shard) is None and (world := world_of(shard.path)) is not None
    )
    return worlds.most_common(1)[0][0] if worlds else None


def copy(into: sqlite3.Connection, path: Path, tables: Iterable[str]) -> None:
    """Add rows of these tables; those that are there already stay."""
    into.commit()
    into.execute("ATTACH ? AS part", (f"{path.resolve().as_uri()}?mode=ro&immutable=1",))
    try:
        with into:
            for table in tables:
                columns = ", ".join(column_names(into, table))
                into.execute(
                    f"INSERT OR IGNORE INTO main.{table} ({columns}) SELECT {columns} FROM part.{table}"
                )
            if "rank" in tables:
                into.execute(CELLS)
    finally:
        into.execute("DETACH part")


def column_names(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Return the columns the file has of a table."""
    for _, name, *_ in connection.execute(f"PRAGMA part.table_info({table})"):
        yield name
