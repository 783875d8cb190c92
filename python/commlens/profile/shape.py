# SPDX-License-Identifier: Apache-2.0
"""Compares the tables of a file with the schema: which exist, with which columns and keys."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from commlens.profile._schema import FORMER, FORMER_UNTIL, RELATIONS, Relation

TABLES = {name: relation for name, relation in RELATIONS.items() if relation.kind == "table"}


@dataclass(frozen=True)
class Shape:
    """A table as the file has it.

    Attributes
    ----------
    columns : frozenset of str
        The columns of the schema that it has; empty if the table is missing or `is_other`.
    is_ours : bool
        It has the key of the schema and no additional index.
    is_other : bool
        The name belongs to something else: a view, a virtual table, or a table with generated columns.
    """

    columns: frozenset[str] = frozenset()
    is_ours: bool = False
    is_other: bool = False


def shape_of(connection: sqlite3.Connection, schema: str, name: str, relation: Relation) -> Shape:
    """Return the shape of a table without reading its rows, and without running code of a virtual table."""
    made = connection.execute(
        f"SELECT type, sql FROM {schema}.sqlite_master WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')",
        (name,),
    ).fetchall()
    if not made:
        return Shape()
    kind, sql = made[0]
    is_table = kind == "table" and str(sql).upper().startswith("CREATE TABLE")
    if len(made) > 1 or not is_table:
        return Shape(is_other=True)
    info = connection.execute(f"PRAGMA {schema}.table_xinfo({name})").fetchall()
    if not info or any(row[6] for row in info):
        return Shape(is_other=True)
    there = {row[1] for row in info}
    key = tuple(row[1] for row in sorted(info, key=lambda row: row[5]) if row[5])
    indices = connection.execute(f"PRAGMA {schema}.index_list({name})").fetchall()
    return Shape(
        frozenset(column.name for column in relation.columns if column.name in there),
        is_ours=key == relation.key and not any(row[3] == "c" for row in indices),
    )


def relation_of(connection: sqlite3.Connection, schema: str, name: str, version: int) -> Relation | None:
    """Return the table that a name stands for in a schema version, or None if it is a view there."""
    former = FORMER.get(name)
    if (
        former is not None
        and version <= FORMER_UNTIL[name]
        and shape_of(connection, schema, name, former).columns
    ):
        return former
    return TABLES.get(name)


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether a profile has a table, which older versions may lack.

    A merged profile has all tables of the present version; those that its own version lacks are empty.
    """
    sql = "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ?"
    if connection.execute(sql, (name,)).fetchone() is None:
        return False
    is_always_there = version_of(connection) >= TABLES[name].since
    return is_always_there or connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() is not None


def version_of(connection: sqlite3.Connection, schema: str = "main") -> int:
    """Return the schema version of a file."""
    (version,) = connection.execute(f"PRAGMA {schema}.user_version").fetchone()
    return int(version)
