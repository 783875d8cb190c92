# SPDX-License-Identifier: Apache-2.0
"""Adds to a profile a table that the library does not write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.outputs import replacing
from commlens.profile._schema import RELATIONS
from commlens.profile.database import Database, read_schema
from commlens.profile.open import BESIDE, is_shard, refusal
from commlens.profile.shape import shape_of
from commlens.profile.shards import INDEX, NO_ROOM, is_directory


def replace_table(path: Path, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Give a table these rows, in a file or in the index of a directory; the profile is whole at any time.

    Raises
    ------
    CommlensError
        The file cannot be changed, or is only a part of a profile.
    """
    file = path / INDEX if is_directory(path) else path
    for ending in BESIDE:
        beside = file.with_name(file.name + ending)
        if beside.is_file() and beside.stat().st_size:
            raise CommlensError(f"{file}: cannot be changed: {beside} has a change that was not finished")
    with replacing(file) as copy:
        try:
            with closing(sqlite3.connect(copy, factory=Database)) as connection:
                _replace(connection, file, name, rows)
        except sqlite3.Error as error:
            why = str(error)
            if why in NO_ROOM:
                why = refusal(copy) or why
            raise CommlensError(f"{file}: cannot be changed: {why}") from error


def _replace(connection: Database, file: Path, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Create the table, or create it again."""
    relation = RELATIONS[name]
    connection.guard(file.stat().st_size)
    read_schema(connection)
    connection.execute("PRAGMA journal_mode = MEMORY")  # a copy needs no journal
    connection.execute("PRAGMA synchronous = OFF")
    if is_shard(connection):
        raise CommlensError(f"{file}: is a part of a profile; use the directory {file.absolute().parent}")
    if shape_of(connection, "main", name, relation).is_other:
        raise CommlensError(f"{file}: cannot be changed: its table {name} was not written by commlens")
    connection.execute("BEGIN")
    connection.execute(f"DROP TABLE IF EXISTS main.{name}")
    connection.execute(relation.sql)
    marks = ", ".join("?" * len(relation.columns))
    connection.executemany(f"INSERT INTO main.{name} VALUES ({marks})", rows)
    connection.execute("COMMIT")
