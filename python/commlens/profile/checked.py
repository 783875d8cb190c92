# SPDX-License-Identifier: Apache-2.0
"""Checks a profile against the constraints of spec/schema.toml, and replaces invalid tables by their valid rows.

The file itself is never written. SQLite searches the temporary schema first. It contains our own views in place of those
of the file. It also contains a replacement for each table that has invalid rows, or that older versions lack. A valid
table is read in place, after one pass over its rows.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from commlens.base.counts import count_text
from commlens.profile import parents
from commlens.profile._schema import FORMER, RELATIONS, Column, Relation
from commlens.profile.cells import Cells
from commlens.profile.database import Database
from commlens.profile.facts import LARGEST, Ids, good, is_difference, temporary
from commlens.profile.meta import mend_meta
from commlens.profile.shape import TABLES, Shape, relation_of, shape_of, version_of

MOST_RANKS = 1 << 20
"""Limit of world ranks and numbers of ranks, whatever the number of rows."""
RANKS_PER_ROW = 16
ROWS_AT_ONCE = 1000
ADDED_AT_ONCE = 7
"""Number of counter columns that one expression adds: their sum cannot overflow."""
LEAST_ROW = 8  # bytes of a row of cell_row
LEAST_CELL = 4  # of a row of any table
BYTES_AT_ONCE = 1 << 24
PART_OF_TIME = 0.5
"""Share of the time for all queries that the checks may take; a table gets half of the remaining time."""

# Row 0, "unknown", of tables to which others refer.
UNKNOWN = {
    "op": "(0, 'unknown', 'other')",
    "comm": "(0, 0, '-', NULL, 'none', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1)",
    "callsite": "(0, '', '', 0, NULL)",
    "region": "(0, NULL, '', 'program')",
}

# Column that names a row of the same table; such rows must not name each other in a loop.
PARENT = {"comm": "parent", "callsite": "caller"}

# Checked first, each table after those to which it refers; meta and rank determine the number of ranks.
FIRST = ("meta", "rank", "op", "callsite", "comm", "region", "metric", "flow", "key", "scope")
ORDER = (*FIRST, *(name for name in TABLES if name not in FIRST), *FORMER)


class SharedPages(sqlite3.DatabaseError):
    """A table has more rows or longer texts than fit into the file: its pages refer to each other repeatedly."""


@dataclass
class Table:
    """A table of the file that is being checked.

    Attributes
    ----------
    source : str
        The name of the table in the file.
    shape : Shape
    count : int
        Its rows.
    """

    name: str
    relation: Relation
    source: str
    shape: Shape
    count: int = 0

    def value(self, column: Column) -> str:
        """Return the SQL expression for a column, with the default of the schema for columns that older versions lack.

        A column that a damaged table lacks is NULL, or empty if the readers require a value.
        """
        if column.name in self.shape.columns:
            return self.shape.value(column.name)
        if column.absent != "NULL" or column.null:
            return column.absent
        return "''" if column.type == "TEXT" else "0"


class Checker:
    """Checks all tables of one file.

    Attributes
    ----------
    complaints : list of str
        Missing or ignored data, one line each.
    sources : dict of str to str
        Table -> the table or view with its valid rows.
    """

    def __init__(self, connection: Database, *, is_part: bool = False):
        self.connection = connection
        self.version = version_of(connection)
        self.is_part = is_part
        self.complaints: list[str] = []
        self.sources: dict[str, str] = {}
        self.ids: dict[str, Ids] = {}
        self.most_ranks = MOST_RANKS
        self.ranks = 0
        self.most_difference = LARGEST

    def check(self) -> None:
        """Check all tables, and create their replacements."""
        left = self.connection.limit_s * PART_OF_TIME
        for name in ORDER:
            relation = relation_of(self.connection, "main", name, self.version)
            if relation is None:
                continue
            with self.connection.within(left / 2) as deadline:
                self._check(name, relation)
            left -= deadline.spent_s
        for name, view in RELATIONS.items():
            if view.kind == "view" and name not in self.sources:
                self.connection.execute(temporary(view.sql))

    def _check(self, name: str, relation: Relation) -> None:
        """Check one table; a table that cannot be read becomes empty."""
        try:
            table = self._table(name, relation)
            if table is None:
                self._empty(name, relation)
                self._add_unknown(name)
            elif not self._is_sound(table):
                self._copy(table)
            elif self._is_older(table):
                self._translate(table)
            self._more(name)
        except sqlite3.DatabaseError:
            self._empty(name, relation)
            self._add_unknown(name)
            self.complaints.append(f"table {name} is damaged and cannot be read")

    def _table(self, name: str, relation: Relation) -> Table | None:
        """Return a table of the file, or None if it is missing."""
        shape = shape_of(self.connection, "main", name, relation)
        self.sources[name] = source = f"main.{shape.name}"
        if shape.is_other:
            self.complaints.append(f"table {name} was not written by commlens and is left out")
        elif not shape.columns and self.version >= relation.since and not relation.added_by:
            self.complaints.append(f"table {name} is missing")
        missing = [c for c in relation.columns if c.name not in shape.columns]
        if not shape.columns or any(c.name in relation.key for c in missing):
            return None
        if any(self.version >= c.since for c in missing):
            named = ", ".join(c.name for c in missing)
            self.complaints.append(f"table {name} lacks the columns {named}")
        return Table(name, relation, source, shape)

    def _is_sound(self, table: Table) -> bool:
        """Return whether all rows are valid, in one pass over the table."""
        try:
            self._prepare(table)
            if table.name != "cell_row":
                sound = self._has_sound_rows(table)
            else:
                # Nearly all differences are so small that their sums cannot overflow and need no check.
                self.most_difference = LARGEST // max(self.connection.size // LEAST_ROW, 1)
                sound = self._has_sound_rows(table, self.most_difference)
                if not sound:
                    self.most_difference = LARGEST
                    sound = self._has_sound_rows(table)
        except SharedPages:
            raise
        except sqlite3.DatabaseError:  # damaged, with some readable rows perhaps; or too large for a sum
            return False
        return sound and table.shape.is_ours and self._has_unknown(table) and not self._has_loop(table)

    def _has_sound_rows(self, table: Table, most_difference: int = LARGEST) -> bool:
        """Return whether all rows are valid, and no sum of counters overflows SQLite's integers."""
        columns = [c for c in table.relation.columns if c.name in table.shape.columns]
        conditions = [
            self._good(table, c, most=most_difference if is_difference(c) else LARGEST) for c in columns
        ]
        # A sum is an integer only if all values are: a comparison does not distinguish 2.5 from an integer.
        added = [
            c
            for c in columns
            if c.type == "INTEGER" and c.low >= -LARGEST and (c.name,) != table.relation.key
        ]
        values = [f"COALESCE({table.value(c)}, 0)" if c.null else table.value(c) for c in added]
        groups = [values[i : i + ADDED_AT_ONCE] for i in range(0, len(values), ADDED_AT_ONCE)]
        sums = "".join(f", SUM({' + '.join(group)})" for group in groups)
        texts = [f"TOTAL(LENGTH(CAST({table.value(c)} AS BLOB)))" for c in columns if is_free_text(c)]
        table.count, sound, length, *totals = self.connection.execute(
            f"SELECT COUNT(*), COUNT(CASE WHEN {' AND '.join(conditions)} THEN 1 END), {' + '.join(texts) or 0}{sums}"
            f" FROM {table.source} NOT INDEXED"
        ).fetchone()
        if max(table.count * LEAST_CELL, length) > self.connection.size:
            raise SharedPages
        self._set_ids(table.name)
        return sound == table.count and all(total is None or isinstance(total, int) for total in totals)

    def _prepare(self, table: Table) -> None:
        """Compute the values that the conditions on a table need."""
        if table.name == "rank":
            self.most_ranks = max(MOST_RANKS, RANKS_PER_ROW * self._size(table.source))
        self._set_ids(table.name)

    def _size(self, source: str) -> int:
        """Return the number of rows; COUNT(*) alone would not check the deadline."""
        sql = f"SELECT COUNT(*), MAX(1) FROM {source} NOT INDEXED"
        return int(self.connection.execute(sql).fetchone()[0])

    def _set_ids(self, name: str) -> None:
        """Store the ids of a table to which other tables refer."""
        relation = TABLES.get(name)
        if relation is not None and relation.key == ("id",) and name != "cell_row":
            low, high, count = self.connection.execute(
                f"SELECT MIN(id), MAX(id), COUNT(*) FROM {self.sources[name]} NOT INDEXED"
            ).fetchone()
            is_whole = isinstance(low, int) and isinstance(high, int) and count == high - low + 1
            self.ids[name] = Ids(self.sources[name], low if is_whole else None, high if is_whole else None)

    def _good(self, table: Table, column: Column, *, most: int = LARGEST, exactly: bool = False) -> str:
        """Return the condition that a value is valid."""
        high = min(column.high, self.most_ranks if column.is_of_world else most)
        low = max(column.low, -most) if is_difference(column) else column.low
        target = column.ref.partition(".")[0]
        ids = None if target == "rank" else self.ids.get(target)
        condition = good(column, table.value(column), (low, high), ids, exactly=exactly)
        if (table.name, column.name) == ("region", "parent"):
            condition = f"({condition} AND (parent IS NULL OR +parent < id))"
        if (table.name, column.name) == ("key", "id") and self._has_cells():
            condition += f" AND id % {max(self.ranks, 1)} = 0"
        return condition

    def _has_cells(self) -> bool:
        """Return whether there are rows whose ids combine a key and a rank."""
        return self._has_columns("cell_row") and self._any("cell_row", "1")

    def _keys_fit(self, ranks: int) -> bool:
        """Return whether all keys are multiples of a number of ranks, if this can be checked."""
        if not (self._has_columns("key") and self._has_cells()):
            return True
        return ranks > 0 and not self._any("key", f"id % {ranks} <> 0")

    def _has_columns(self, name: str) -> bool:
        return bool(shape_of(self.connection, "main", name, TABLES[name]).columns)

    def _any(self, name: str, condition: str) -> bool:
        try:
            found = self.connection.execute(f"SELECT 1 FROM main.{name} WHERE {condition} LIMIT 1").fetchone()
        except sqlite3.DatabaseError:  # reported when the table is checked
            return False
        return found is not None

    def _has_unknown(self, table: Table) -> bool:
        """Return whether a table has the row "unknown", to which other tables refer."""
        if table.name not in UNKNOWN:
            return True
        sql = f"SELECT 1 FROM {table.source} WHERE id = 0"
        return self.connection.execute(sql).fetchone() is not None

    def _has_loop(self, table: Table) -> bool:
        if table.name in PARENT:
            return bool(parents.in_loops(self.connection, table.source, parent_of(table)))
        return table.name == "region" and bool(parents.too_deep(self.connection, table.source))

    # Replacements of tables.

    def _empty(self, name: str, relation: Relation) -> None:
        """Replace a table by an empty one."""
        self.connection.execute(f"DROP TABLE IF EXISTS temp.{name}")
        self.connection.execute(temporary(relation.sql))
        self.sources[name] = f"temp.{name}"
        self._set_ids(name)

    def _add_unknown(self, name: str) -> bool:
        """Add the row "unknown"; return whether it was missing."""
        if name not in UNKNOWN:
            return False
        added = self.connection.execute(f"INSERT OR IGNORE INTO temp.{name} VALUES {UNKNOWN[name]}").rowcount
        self._set_ids(name)
        return added > 0

    def _is_older(self, table: Table) -> bool:
        """Return whether queries on the table of the present version do not fit the table of the file."""
        shape = table.shape
        return (
            shape.name != table.name
            or bool(shape.translated)
            or len(shape.columns) < len(table.relation.columns)
        )

    def _translate(self, table: Table) -> None:
        """Replace a table of an older version by a view with the names, columns and texts of the present one."""
        values = ", ".join(f"{table.value(c)} AS {c.name}" for c in table.relation.columns)
        self.connection.execute(f"CREATE TEMP VIEW {table.name} AS SELECT {values} FROM {table.source}")
        self.sources[table.name] = f"temp.{table.name}"

    def _copy(self, table: Table) -> None:
        """Replace a table by its valid rows."""
        name, columns = table.name, table.relation.columns
        with suppress(sqlite3.DatabaseError):  # readable rows are counted later
            table.count = table.count or self._size(table.source)
        # A sum of counters must not exceed SQLite's integers.
        most = LARGEST // max(table.count, 1) if self._overflows(table) else LARGEST
        tests = {c.name: self._good(table, c, most=most, exactly=True) for c in columns}
        wanted = " AND ".join(tests[c.name] for c in columns if not may_be_unknown(c)) or "1"
        values = ", ".join(
            f"CASE WHEN {tests[c.name]} THEN {table.value(c)} ELSE {'NULL' if c.null else 0} END"
            if may_be_unknown(c)
            else table.value(c)
            for c in columns
        )
        self._empty(name, table.relation)
        into = f"INSERT OR IGNORE INTO temp.{name} ({', '.join(c.name for c in columns)})"
        select = f"SELECT {values} FROM {table.source} NOT INDEXED WHERE {wanted}"
        is_whole = True
        try:
            self.connection.execute(f"{into} {select}")
        except sqlite3.DatabaseError:
            if self.connection.is_over:
                raise
            is_whole = False
            self._salvage(table, into, select)
        self._say(table, tests, is_whole)
        if self._add_unknown(name) and is_whole and table.count == 0:
            self.complaints.append(f"table {name} has no rows")
        if name in PARENT:
            self._cut(name, parents.in_loops(self.connection, f"temp.{name}", PARENT[name]))
        if name == "region":
            self._cut("region", parents.mend_regions(self.connection))
        self._set_ids(name)

    def _overflows(self, table: Table) -> bool:
        """Return whether the sum of a column overflows."""
        counters = [
            c for c in table.relation.columns if c.type == "INTEGER" and not c.ref and c.low > -LARGEST
        ]
        sums = ", ".join(f"TOTAL(ABS(CAST({table.value(c)} AS REAL)))" for c in counters)
        try:
            found = self.connection.execute(
                f"SELECT TOTAL(0), {sums or 0} FROM {table.source} NOT INDEXED"
            ).fetchone()
        except sqlite3.DatabaseError:
            return True
        return any(total > LARGEST for total in found)

    def _salvage(self, table: Table, into: str, select: str) -> None:
        """Copy the rows before and after an unreadable part."""
        into += f" VALUES ({', '.join('?' * len(table.relation.columns))})"
        keys = table.relation.key or ("rowid",)
        for way in ("ASC", "DESC"):
            order = ", ".join(f"{key} {way}" for key in keys)
            rows = self._readable(f"{select} ORDER BY {order}")
            # A transaction that reads a damaged page cannot be committed.
            while some := list(first(rows, ROWS_AT_ONCE, BYTES_AT_ONCE)):
                self.connection.execute("BEGIN")
                self.connection.executemany(into, some)
                self.connection.execute("COMMIT")

    def _readable(self, select: str) -> Iterator[tuple[object, ...]]:
        """Yield rows up to the first unreadable one."""
        try:
            yield from self.connection.execute(select)
        except sqlite3.DatabaseError:
            if self.connection.is_over:
                raise

    def _say(self, table: Table, tests: dict[str, str], is_whole: bool) -> None:
        """Add complaints about the rows left out of a table."""
        name = table.name
        (kept,) = self.connection.execute(f"SELECT COUNT(*) FROM temp.{name}").fetchone()
        if not is_whole:
            what = f": {count_text(kept, 'row')} can be read" if kept else " and cannot be read"
            self.complaints.append(f"table {name} is damaged{what}")
            return
        left_out = table.count - kept
        if self.is_part and left_out:
            left_out = table.count - self._count(
                table, {c: t for c, t in tests.items() if not self._refers(table, c)}
            )
        if left_out:
            verb = "is invalid and" if left_out == 1 else "are invalid and"
            self.complaints.append(f"table {name}: {count_text(left_out, 'row')} {verb} left out")
        unknown = {c.name for c in table.relation.columns if may_be_unknown(c)}
        if unknown and not self.is_part:
            changed = self._count(table, {c: t for c, t in tests.items() if c not in unknown})
            changed -= self._count(table, tests)
            if changed:
                self.complaints.append(
                    f"table {name}: an invalid value is left out in {count_text(changed, 'row')}"
                )

    def _refers(self, table: Table, column: str) -> bool:
        return any(c.name == column and c.ref for c in table.relation.columns)

    def _count(self, table: Table, tests: dict[str, str]) -> int:
        wanted = " AND ".join(tests.values()) or "1"
        sql = f"SELECT COUNT(*) FROM {table.source} NOT INDEXED WHERE {wanted}"
        return int(self.connection.execute(sql).fetchone()[0])

    def _cut(self, name: str, ids: Sequence[int]) -> None:
        """Clear the parents of some rows, and of the rows whose parent was left out."""
        parent = PARENT.get(name, "parent")
        self.connection.executemany(
            f"UPDATE temp.{name} SET {parent} = NULL WHERE id = ?", [(id,) for id in ids]
        )
        self.connection.execute(
            f"UPDATE temp.{name} SET {parent} = NULL WHERE {parent} NOT IN (SELECT id FROM temp.{name})"
        )
        if ids:
            self.complaints.append(f"table {name}: {count_text(len(ids), 'row')} have an invalid {parent}")

    def _more(self, name: str) -> None:
        """Check conditions that involve several tables."""
        if name == "rank" and "meta" in self.sources:
            self.ranks, complaints = mend_meta(self.connection, self.sources, self.most_ranks, self._keys_fit)
            self.complaints += complaints
        if name == "cell_row":
            self._check_cells()

    def _check_cells(self) -> None:
        """Check the counters, and that each belongs to a key."""
        source, relation = self.sources["cell_row"], TABLES["cell_row"]
        count = self._size(source)
        cells = Cells(self.connection, self.sources, self.ranks, count, self.most_difference)
        found, is_sound = cells.look()
        if found < count and not self.is_part:
            self.complaints.append(
                f"table cell_row: {count_text(count - found, 'row')} belong to no key and are left out"
            )
        if not is_sound:
            columns = ", ".join(f"cell_row.{c.name} AS {c.name}" for c in relation.columns)
            kept = cells.keep_sound(temporary(relation.sql), columns)
            self.sources["cell_row"] = "temp.cell_row"
            self.complaints.append(
                f"table cell_row: {count_text(found - kept, 'row')} are invalid and left out"
            )


def parent_of(table: Table) -> str:
    """Return the expression for the row of the same table that a row names."""
    return next(table.value(c) for c in table.relation.columns if c.name == PARENT[table.name])


def is_free_text(column: Column) -> bool:
    """Return whether a column has texts without length limit."""
    return column.type == "TEXT" and not column.values


def first(
    rows: Iterator[tuple[object, ...]], most_rows: int, most_bytes: int
) -> Iterator[tuple[object, ...]]:
    """Yield the first rows: a fixed number, or fewer if their values are long."""
    for row in rows:
        yield row
        most_rows -= 1
        most_bytes -= sum(map(sys.getsizeof, row))
        if most_rows <= 0 or most_bytes <= 0:
            return


def may_be_unknown(column: Column) -> bool:
    """Return whether a row with an invalid value in this column is kept."""
    return column.null or column.zero
