# SPDX-License-Identifier: Apache-2.0
"""The SQL behind a report, as text that any SQLite client can run.

Three statements, with the same beginning, give the three kinds of lines of a report:

    communicators   one row per family of communicators (or per communicator, unfolded)
    operations      one row per line above, operation and size bucket (and call site)
    ranks           one row per row of operations and world rank

What makes them fast is their order: every cell is read once and added up per key, which is the order
in which cells lie in the file; only the maximum over ranks looks at cells again, group by group.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from commlens.sizes import BinRange, Buckets

LOG2 = Buckets("log2")

# What --sort knows -> ORDER BY in communicators, operations and ranks.  Ties are broken below.
ORDERS = {
    "time": ("time_ns DESC", "time_ns DESC", "time_ns DESC"),
    "max": ("rank_max_ns DESC", "rank_max_ns DESC", "time_ns DESC"),
    "avg": ("rank_avg_ns DESC", "rank_avg_ns DESC", "time_ns DESC"),
    "calls": ("calls DESC", "calls DESC", "calls DESC"),
    "sent": ("bytes_sent DESC", "bytes_sent DESC", "bytes_sent DESC"),
    "received": ("bytes_received DESC", "bytes_received DESC", "bytes_received DESC"),
    "size": ("size_max DESC", "size_low DESC", "rank"),
    "name": ("communicator", "operation", "rank"),
}

SUMS = """SUM({0}calls) AS calls, SUM({0}time_ns) AS time_ns,
         MIN({0}{1}min_ns) AS call_min_ns, MAX({0}{1}max_ns) AS call_max_ns,
         SUM({0}bytes_sent) AS bytes_sent, SUM({0}bytes_received) AS bytes_received,
         SUM({0}noncontiguous) AS noncontiguous"""
SUMS_OF_CELLS = SUMS.format("cell.", "time_")
SUMS_OF_PARTS = SUMS.format("part.", "call_")
BINS = "MIN(CASE WHEN bin >= 0 THEN bin END) AS bin_low, MAX(CASE WHEN bin >= 0 THEN bin END) AS bin_high"


def quoted(text: str) -> str:
    """Return `text` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def comm_condition(pattern: str) -> str:
    """Return the condition that a communicator is meant by `pattern`: its id, or its name or a glob."""
    if pattern.isascii() and pattern.isdigit():
        return f"comm.id = {int(pattern)}"
    text = quoted(pattern)
    return f"({text} IN (comm.name, comm.user_name) OR comm.name GLOB {text} OR comm.user_name GLOB {text})"


def any_of(conditions: Sequence[str]) -> list[str]:
    """Return the conditions joined by OR, as a list of one, or of none if there is none."""
    if len(conditions) > 1:
        return ["(" + " OR ".join(conditions) + ")"]
    return list(conditions)


def where(conditions: Sequence[str]) -> str:
    """Return a WHERE clause, or nothing."""
    return "\n   WHERE " + "\n     AND ".join(conditions) if conditions else ""


@dataclass(frozen=True)
class Selection:
    """Which counters a report is about; an empty tuple means all."""

    comms: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    ranks: tuple[tuple[int, int], ...] = ()
    size: BinRange | None = None
    time_ns: tuple[int, int | None] | None = None

    def comm_conditions(self) -> list[str]:
        """Return what must hold for a row of comm."""
        return any_of([comm_condition(pattern) for pattern in self.comms])

    def key_conditions(self) -> list[str]:
        """Return what must hold for a row of key joined with op."""
        conditions = []
        if self.operations:
            conditions.append(f"op.name IN ({', '.join(map(quoted, self.operations))})")
        if self.classes:
            conditions.append(f"op.class IN ({', '.join(map(quoted, self.classes))})")
        if self.size:
            conditions.append(self.size.sql())
        return conditions

    def rank_conditions(self, column: str) -> list[str]:
        """Return what must hold for a world rank."""
        return any_of(
            [
                f"{column} = {first}" if first == last else f"{column} BETWEEN {first} AND {last}"
                for first, last in self.ranks
            ]
        )

    def time_condition(self, column: str) -> str:
        """Return what must hold for the time of a row."""
        assert self.time_ns is not None
        low, high = self.time_ns
        return f"{column} >= {low}" if high is None else f"{column} BETWEEN {low} AND {high}"


@dataclass(frozen=True)
class Shape:
    """How a report is laid out."""

    fold: bool = True
    callsites: bool = False
    all_ranks: bool = False
    buckets: Buckets = LOG2
    sort: str = "time"
    top: int | None = None


class Queries:
    """The statements for one selection and shape."""

    def __init__(self, selection: Selection, shape: Shape):
        self.selection = selection
        self.shape = shape
        self.line = "comm.family" if shape.fold else "comm.id"
        self.line_name = "family" if shape.fold else "comm"
        self.row = ["line", "op", "bucket", *(["callsite"] if shape.callsites else [])]

    def same_row(self, left: str, right: str) -> str:
        """Return the condition that two tables mean the same row of the report."""
        return " AND ".join(f"{left}.{column} = {right}.{column}" for column in self.row)

    def spent(self, keys: str, condition: str) -> str:
        """Return a subquery: the time each rank spent in the keys that meet the condition."""
        ranks = "".join(f" AND {c}" for c in self.selection.rank_conditions("cell.rank"))
        return (
            f"SELECT SUM(cell.time_ns) AS spent FROM {keys} JOIN cell ON cell.key = {keys}.key"
            f"\n     WHERE {condition}{ranks} GROUP BY cell.rank"
        )

    def selected(self, lines: Sequence[int] | None) -> str:
        """Return the tables `selected`, `line` and `line_ranks`: what is meant, its name, its members."""
        conditions = self.selection.comm_conditions()
        if lines is not None:
            conditions.append(f"{self.line} IN ({', '.join(map(str, lines))})")
        first, count = "SUBSTR(MIN(comm.name), 1, 1)", "SUBSTR(comm.name, INSTR(comm.name, '.') + 1)"
        ranks = "".join(f" AND {c}" for c in self.selection.rank_conditions("rank.rank"))
        return f"""\
  -- the communicators asked for, and the line of the report each belongs to
  selected AS (
  SELECT comm.id AS comm, {self.line} AS line FROM comm{where(conditions)}),
  line AS (
  SELECT line,
         CASE WHEN COUNT(*) = 1 THEN MIN(comm.name)
              WHEN MIN(comm.kind) = 'set' THEN '{{*}}'
              ELSE {first}
                || CASE WHEN MIN(comm.leader) = MAX(comm.leader) THEN MIN(comm.leader) ELSE '*' END || '.'
                || CASE WHEN MIN({count})
                           = MAX({count})
                        THEN MIN({count}) ELSE '*' END
         END AS communicator,
         CASE WHEN COUNT(comm.user_name) = COUNT(*) AND MIN(comm.user_name) = MAX(comm.user_name)
              THEN MIN(comm.user_name) END AS user_name,
         COUNT(*) AS communicators,
         MIN(comm.size + COALESCE(comm.remote_size, 0)) AS size_min,
         MAX(comm.size + COALESCE(comm.remote_size, 0)) AS size_max,
         MIN(comm.kind) AS kind,
         MIN(parent.{"family" if self.shape.fold else "name"}) AS parent,
         MIN(creator.name) AS creator,
         MIN(comm.callsite) AS created_at,
         CASE WHEN COUNT(comm.topology) = COUNT(*) AND MIN(comm.topology) = MAX(comm.topology)
              THEN MIN(comm.topology) END AS topology
    FROM selected JOIN comm ON comm.id = selected.comm
         LEFT JOIN comm AS parent ON parent.id = comm.parent
         LEFT JOIN op AS creator ON creator.id = comm.creator
   GROUP BY line),
  line_ranks AS (
  SELECT line, COUNT(DISTINCT rank.rank) AS ranks
    FROM (SELECT DISTINCT line, low, high, stride
            FROM selected JOIN member_range ON member_range.comm = selected.comm) AS members
         JOIN rank ON rank.rank BETWEEN low AND high AND (rank.rank - low) % stride = 0{ranks}
   GROUP BY line),"""

    def chosen(self) -> str:
        """Return the table `chosen`: the keys that count, and the row of the report each belongs to."""
        name = "chosen" if self.selection.time_ns is None else "chosen_before_time"
        text = f"""
  -- the keys asked for, and the row of the report each belongs to
  {name} AS (
  SELECT key.id AS key, selected.line, key.op, {self.shape.buckets.bucket_sql()} AS bucket, key.callsite, key.bin
    FROM key JOIN selected ON selected.comm = key.comm JOIN op ON op.id = key.op\
{where(self.selection.key_conditions())}),"""
        if self.selection.time_ns is None:
            return text
        columns = ", ".join(self.row)
        condition = self.selection.time_condition("spent")
        having = f"MAX({condition})" if self.shape.all_ranks else self.selection.time_condition("MAX(spent)")
        # Found once and kept: `chosen` is asked for every line of the report.  Before 3.35 SQLite does not know the word.
        keep = "MATERIALIZED " if sqlite3.sqlite_version_info >= (3, 35) else ""
        return f"""{text}
  -- of these rows, those whose time is in the range asked for
  in_time AS (
  SELECT {columns}
    FROM (SELECT {columns}, SUM(cell.time_ns) AS spent
            FROM chosen_before_time JOIN cell ON cell.key = chosen_before_time.key\
{where(self.selection.rank_conditions("cell.rank"))}
           GROUP BY {columns}, cell.rank)
   GROUP BY {columns} HAVING {having}),
  chosen AS {keep}(
  SELECT chosen_before_time.* FROM chosen_before_time JOIN in_time
      ON {self.same_row("in_time", "chosen_before_time")}),"""

    def part(self) -> str:
        """Return the table `part`: the counters of each key, all ranks added up."""
        conditions = ["cell.key IN (SELECT key FROM chosen)", *self.selection.rank_conditions("cell.rank")]
        return f"""
  part AS (
  SELECT cell.key,
         {SUMS_OF_CELLS}
    FROM cell{where(conditions)}
   GROUP BY cell.key)"""

    def all_time(self) -> str:
        """Return the subquery for the time that shares are shares of: all MPI time of the ranks asked for."""
        conditions = self.selection.rank_conditions("rank")
        return f"(SELECT NULLIF(SUM(mpi_ns), 0) FROM rank{' WHERE ' + conditions[0] if conditions else ''})"

    def row_columns(self) -> str:
        """Return the columns that say what a row of operations is about."""
        return f"""total.line AS {self.line_name}, communicator, user_name, communicators, size_min, size_max, ranks,
         total.op, operation, class, bucket,
         {self.shape.buckets.low_sql()} AS size_low,
         {self.shape.buckets.high_sql()} AS size_high{", total.callsite" if self.shape.callsites else ""}"""

    def cut(self, groups: list[str], order: str) -> str:
        """Return the last part of a statement: `report` in order, each group cut after the top rows."""
        over = f"PARTITION BY {', '.join(groups)}" if groups else ""
        # Numbering a million rows takes far longer than sorting them, so only where it cuts.
        if self.shape.top is None:
            return f"SELECT * FROM report\n ORDER BY {', '.join([*groups, order])}"
        return f"""\
SELECT * FROM (
  SELECT report.*,
         ROW_NUMBER() OVER ({over} ORDER BY {order}) AS place,
         COUNT(*) OVER ({over}) AS of_lines,
         SUM(time_ns) OVER ({over}) AS of_time_ns
    FROM report)
 WHERE place <= {self.shape.top}
 ORDER BY {", ".join([*groups, "place"])}"""

    def communicators(self) -> str:
        """Return the statement for the communicator lines."""
        order = f"{ORDERS[self.shape.sort][0]}, time_ns DESC, {self.line_name}"
        return f"""\
WITH
{self.selected(None)}{self.chosen()}{self.part()},
  total AS (
  SELECT line,
         {SUMS_OF_PARTS}
    FROM part JOIN chosen ON chosen.key = part.key
   GROUP BY line),
  report AS (
SELECT total.line AS {self.line_name}, communicator, user_name, kind, communicators, size_min, size_max, ranks,
       {"family.name" if self.shape.fold else "line.parent"} AS parent, line.creator, created_at, line.topology,
       calls, time_ns,
       (SELECT MAX(spent) FROM (
    {self.spent("chosen", "chosen.line = total.line")})) AS rank_max_ns,
       (2 * time_ns + ranks) / (2 * ranks) AS rank_avg_ns,
       1.0 * time_ns / {self.all_time()} AS share,
       call_min_ns, call_max_ns, bytes_sent, bytes_received, noncontiguous
  FROM total JOIN line ON line.line = total.line LEFT JOIN line_ranks ON line_ranks.line = total.line\
{" LEFT JOIN (SELECT family, name FROM family) AS family ON family.family = line.parent" if self.shape.fold else ""})
{self.cut([], order)}"""

    def operations(self, lines: Sequence[int] | None) -> str:
        """Return the statement for the operation lines, of the given communicator lines or of all."""
        order = ", ".join([ORDERS[self.shape.sort][1], "time_ns DESC", *self.row[1:]])
        columns = ", ".join(f"chosen.{column}" for column in self.row)
        return f"""\
WITH
{self.selected(lines)}{self.chosen()}{self.part()},
  total AS (
  SELECT {columns},
         {BINS},
         {SUMS_OF_PARTS}
    FROM part JOIN chosen ON chosen.key = part.key
   GROUP BY {columns}),
  report AS (
  SELECT {self.row_columns()}, calls, time_ns,
         (SELECT MAX(spent) FROM (
    {self.spent("chosen", self.same_row("chosen", "total"))})) AS rank_max_ns,
         (2 * time_ns + ranks) / (2 * ranks) AS rank_avg_ns,
         1.0 * time_ns / {self.all_time()} AS share,
         call_min_ns, call_max_ns, bytes_sent, bytes_received, noncontiguous
    FROM total JOIN line ON line.line = total.line LEFT JOIN line_ranks ON line_ranks.line = total.line
         JOIN (SELECT id, name AS operation, class FROM op) AS op ON op.id = total.op)
{self.cut([self.line_name], order)}"""

    def ranks(self, rows: Sequence[tuple[int, ...]] | None) -> str:
        """Return the statement for the lines of single ranks, of the given rows of operations or of all."""
        lines = None if rows is None else sorted({row[0] for row in rows})
        conditions = self.selection.rank_conditions("cell.rank")
        columns = ", ".join(f"chosen.{column}" for column in self.row)
        if rows is not None:
            values = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
            conditions.append(f"({columns}) IN (VALUES {values})")
        having = ""
        if self.selection.time_ns is not None:
            having = f"\n  HAVING {self.selection.time_condition('SUM(cell.time_ns)')}"
        order = f"{ORDERS[self.shape.sort][2]}, rank"
        return f"""\
WITH
{self.selected(lines)}{self.chosen().rstrip(",")},
  total AS (
  SELECT {columns}, cell.rank,
         {BINS},
         {SUMS_OF_CELLS}
    FROM chosen JOIN cell ON cell.key = chosen.key{where(conditions)}
   GROUP BY {columns}, cell.rank{having}),
  report AS (
  SELECT {self.row_columns()}, total.rank, calls, time_ns,
         1.0 * time_ns / {self.all_time()} AS share,
         call_min_ns, call_max_ns, bytes_sent, bytes_received, noncontiguous
    FROM total JOIN line ON line.line = total.line LEFT JOIN line_ranks ON line_ranks.line = total.line
         JOIN (SELECT id, name AS operation, class FROM op) AS op ON op.id = total.op)
{self.cut([self.line_name, *self.row[1:]], order)}"""
