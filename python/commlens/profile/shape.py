# SPDX-License-Identifier: Apache-2.0
"""Compares the tables of a file with the schema: which exist, with which columns and keys, and under which names."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from commlens.profile._schema import FORMER, FORMER_UNTIL, RELATIONS, VERSION, Column, Relation

TABLES = {name: relation for name, relation in RELATIONS.items() if relation.kind == "table"}


@dataclass(frozen=True)
class Shape:
    """A table as the file has it.

    Attributes
    ----------
    name : str
        Its name in the file, which older versions spelt differently.
    columns : frozenset of str
        The columns of the schema that it has; empty if the table is missing or `is_other`.
    translated : mapping of str to str
        Column -> SQL expression for its value, for columns whose name or texts were others in older versions.
    is_ours : bool
        It has the key of the schema and no additional index.
    is_other : bool
        The name belongs to something else: a view, a virtual table, or a table with generated columns.
    """

    name: str = ""
    columns: frozenset[str] = frozenset()
    translated: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    is_ours: bool = False
    is_other: bool = False

    def value(self, column: str) -> str:
        """Return the SQL expression for a column that the table has."""
        return self.translated.get(column, f'"{column}"')


def shape_of(connection: sqlite3.Connection, schema: str, name: str, relation: Relation) -> Shape:
    """Return the shape of a table without reading its rows, and without running code of a virtual table.

    A table that is missing is looked for under its former name.
    """
    shape = _shape_of(connection, schema, name, relation)
    if shape == Shape(name) and relation.former_name:
        former = _shape_of(connection, schema, relation.former_name, relation)
        return former if former.columns else shape
    return shape


def _shape_of(connection: sqlite3.Connection, schema: str, name: str, relation: Relation) -> Shape:
    made = connection.execute(
        f"SELECT type, sql FROM {schema}.sqlite_master WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')",
        (name,),
    ).fetchall()
    if not made:
        return Shape(name)
    kind, sql = made[0]
    is_table = kind == "table" and str(sql).upper().startswith("CREATE TABLE")
    if len(made) > 1 or not is_table:
        return Shape(name, is_other=True)
    info = connection.execute(f"PRAGMA {schema}.table_xinfo({name})").fetchall()
    if not info or any(row[6] for row in info):
        return Shape(name, is_other=True)
    in_file = {row[1] for row in info}
    translated = _translated(relation, in_file, version_of(connection, schema))
    there = {
        column.name for column in relation.columns if column.name in in_file or column.name in translated
    }
    renamed = {c.former_name: c.name for c in relation.columns if c.former_name and c.name in translated}
    key = tuple(renamed.get(row[1], row[1]) for row in sorted(info, key=lambda row: row[5]) if row[5])
    indices = connection.execute(f"PRAGMA {schema}.index_list({name})").fetchall()
    return Shape(
        name,
        frozenset(there),
        translated,
        is_ours=key == relation.key and not any(row[3] == "c" for row in indices),
    )


def _translated(relation: Relation, in_file: set[str], version: int) -> dict[str, str]:
    """Return expressions for the columns whose name or texts were others in a version."""
    found = {}
    for column in relation.columns:
        if column.name not in in_file and column.former_name in in_file:
            found[column.name] = f'"{column.former_name}"'
        elif column.name in in_file and column.former_values and version < VERSION:
            found[column.name] = _today(column)
    return found


def _today(column: Column) -> str:
    r"""Return the expression that replaces the former texts of a column.

    >>> _today(Column("name", "TEXT", "", "", former_values=(("put", "written"),)))
    'CASE "name" WHEN \'written\' THEN \'put\' ELSE "name" END'
    """
    cases = " ".join(f"WHEN '{former}' THEN '{today}'" for today, former in column.former_values)
    return f'CASE "{column.name}" {cases} ELSE "{column.name}" END'


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


def has_rows(connection: sqlite3.Connection, table: str) -> bool:
    """Return whether a table, which must be there, has rows."""
    return bool(connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").fetchone()[0])


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether a profile has a table, which older versions may lack, or which a command adds.

    A merged profile has all tables of the present version; those that its files lack are empty.
    """
    sql = "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ?"
    if connection.execute(sql, (name,)).fetchone() is None:
        return False
    is_always_there = version_of(connection) >= TABLES[name].since and not TABLES[name].added_by
    return is_always_there or has_rows(connection, name)


def version_of(connection: sqlite3.Connection, schema: str = "main") -> int:
    """Return the schema version of a file."""
    (version,) = connection.execute(f"PRAGMA {schema}.user_version").fetchone()
    return int(version)
