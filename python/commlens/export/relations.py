# SPDX-License-Identifier: Apache-2.0
"""Tables and views unchanged, as CSV and Parquet, in batches."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.outputs import CsvWriter
from commlens.base.packages import load
from commlens.base.progress import tracked
from commlens.base.spelling import did_you_mean
from commlens.profile._schema import FORMER, FORMER_UNTIL, RELATIONS, Relation
from commlens.profile.shape import has_table, version_of

Rows = list[tuple[Any, ...]]

ROWS_AT_ONCE = 65_536


def known(connection: sqlite3.Connection, names: tuple[str, ...] = ()) -> dict[str, Relation]:
    """Return the selected tables and views, or all of this profile.

    Raises
    ------
    CommlensError
        There is no table or view with that name.
    """
    version = version_of(connection)
    all = {
        name: relation
        for name, relation in RELATIONS.items()
        if (has_table(connection, name) if relation.kind == "table" else version >= relation.since)
        or (name in FORMER and version <= FORMER_UNTIL[name])
    }
    for name in names:
        if name not in all:
            raise CommlensError(f"no table or view '{name}'{did_you_mean(name, list(all))}")
    return {name: all[name] for name in names or all}


def columns(connection: sqlite3.Connection, name: str) -> list[Any]:
    """Return the columns of a table or view in this profile; older profiles may have fewer."""
    there = {column for (_, column, *_) in connection.execute(f"PRAGMA table_info({name})")}
    return [column for column in RELATIONS[name].columns if column.name in there]


def batches(connection: sqlite3.Connection, name: str) -> Iterator[Rows]:
    """Yield the rows of a table or view in batches."""
    wanted = ", ".join(f'"{column.name}"' for column in columns(connection, name))
    cursor = connection.cursor()
    cursor.row_factory = None
    cursor.execute(f"SELECT {wanted} FROM {name}")
    while rows := cursor.fetchmany(ROWS_AT_ONCE):
        yield rows


def write_csv(connection: sqlite3.Connection, name: str, path: Path, source: str) -> None:
    """Write a table or view as CSV with a heading; NULL is an empty field."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = CsvWriter(file)
        writer.writerow([column.name for column in columns(connection, name)])
        for rows in tracked(batches(connection, name), f"{name} of {source}"):
            writer.writerows(rows)


def write_parquet(connection: sqlite3.Connection, name: str, path: Path, source: str) -> None:
    """Write a table or view as Parquet, with the unit and description of each column."""
    arrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    types = {"INTEGER": arrow.int64(), "REAL": arrow.float64(), "TEXT": arrow.string()}
    schema = arrow.schema(
        [
            arrow.field(column.name, types[column.type], metadata={"unit": column.unit, "doc": column.doc})
            for column in columns(connection, name)
        ],
        metadata={"commlens": RELATIONS[name].doc},
    )
    # An open file instead of its name: pyarrow treats a:b as an address, and accepts only UTF-8 names.
    with path.open("wb") as file, parquet.ParquetWriter(file, schema) as writer:
        for rows in tracked(batches(connection, name), f"{name} of {source}"):
            arrays = [arrow.array(values, field.type) for values, field in zip(zip(*rows), schema)]
            writer.write_batch(arrow.record_batch(arrays, schema=schema))
