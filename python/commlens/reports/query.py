# SPDX-License-Identifier: Apache-2.0
"""The SQL behind a report, as text that any SQLite client can run.

A few statements, with the same beginning, give the kinds of lines of a report:

    regions         by region only: one row per code region, of the calls that no region within it has
    procedures      by op only: one row per MPI procedure
    communicators   one row per family of communicators (or per communicator, unfolded, or per size), of each row above
    operations      one row per line above, operation and size bucket (and call site)
    members         one row per communicator of the lines above, with its ranks
    ranks           one row per row of operations and world rank

What makes them fast is their order: every cell is read once and added up per key, which is the order
in which cells lie in the file; only the maximum over ranks looks at cells again, group by group.

A profile of summary detail has no cells: its keys are added up already, and the maximum over ranks of a
line stands in table spread, if it is the maximum of just that line.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

from commlens.reports.present import PRESENT, WITH_PRESENT
from commlens.selection.conditions import any_of, comm_conditions, in_rows, quoted, where
from commlens.selection.sizes import BinRange, Buckets

LOG2 = Buckets("log2")

# Value of --sort -> ORDER BY in communicators, operations and ranks; --reverse inverts it.  The statements below break ties.
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
         COALESCE(MIN(CASE WHEN {0}calls > 0 AND {0}{1}max_ns > 0 THEN {0}{1}min_ns END), 0) AS call_min_ns,
         MAX({0}{1}max_ns) AS call_max_ns,
         SUM({0}bytes_sent) AS bytes_sent, SUM({0}bytes_received) AS bytes_received,
         SUM({0}noncontiguous) AS noncontiguous"""
SUMS_OF_CELLS = SUMS.format("cell.", "time_")
SUMS_OF_PARTS = SUMS.format("part.", "call_")
CALL_AVERAGE = "(2 * time_ns + calls) / (2 * calls) AS call_avg_ns"
AVERAGES = f"{CALL_AVERAGE}, 1.0 * calls / ranks AS calls_per_rank"
COMM_SIZE = "comm.size + COALESCE(comm.remote_size, 0)"
# Name of a column -> what a line of communicators is of a row of comm.
LINES = {"family": "comm.family", "comm": "comm.id", "comm_size": f"COALESCE({COMM_SIZE}, 0)"}
# Value of --by -> the column of key that groups lines of communicators, the title of its rows, and their name.
GROUPS = {"region": ("region", "regions", "path"), "op": ("op", "procedures", "operation")}
SHARED = "CASE WHEN op.class IN ('collective', 'neighbor') THEN selected.members END AS members"
WITH_OP = "JOIN (SELECT id, name AS operation, class FROM op) AS op ON op.id = total.op"
BINS = "MIN(CASE WHEN bin >= 0 THEN bin END) AS bin_low, MAX(CASE WHEN bin >= 0 THEN bin END) AS bin_high"


def directed(order: str, *, reverse: bool) -> str:
    """Return an ORDER BY term, or its inverse; unknown values stay last.

    >>> directed("calls DESC", reverse=True), directed("rank", reverse=True)
    ('calls IS NULL, calls', 'rank DESC')
    """
    if not reverse:
        return order
    column = order.removesuffix(" DESC")
    return f"{column} DESC" if column == order else f"{column} IS NULL, {column}"


@dataclass(frozen=True)
class Selection:
    """Selects the counters of a report; an empty tuple means all."""

    comms: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    ranks: tuple[tuple[int, int], ...] = ()
    size: BinRange | None = None
    time_ns: tuple[int, int | None] | None = None

    def comm_conditions(self) -> list[str]:
        """Return the conditions on a row of comm."""
        return comm_conditions(self.comms)

    def key_conditions(self) -> list[str]:
        """Return the conditions on a row of key joined with op."""
        conditions = []
        if self.operations:
            conditions.append(f"op.name IN ({', '.join(map(quoted, self.operations))})")
        if self.classes:
            conditions.append(f"op.class IN ({', '.join(map(quoted, self.classes))})")
        if self.size:
            conditions.append(self.size.sql())
        return conditions

    def rank_conditions(self, column: str) -> list[str]:
        """Return the conditions on a world rank."""
        return any_of(
            [
                f"{column} = {first}" if first == last else f"{column} BETWEEN {first} AND {last}"
                for first, last in self.ranks
            ]
        )

    def time_condition(self, column: str) -> str:
        """Return the conditions on the time of a row."""
        assert self.time_ns is not None
        low, high = self.time_ns
        return f"{column} >= {low}" if high is None else f"{column} BETWEEN {low} AND {high}"


@dataclass(frozen=True)
class Shape:
    """The layout of a report.

    Attributes
    ----------
    by : str
        What the first rows are: family, region, comm-size or op.
    fold : bool
        Whether lines are families, and not single communicators.
    tree : bool
        Show call paths as a tree, if the profile has any.
    flat : bool
        Add up the calls of one place, on whatever path it was reached.
    depth : int or None
        Show call paths only to this number of functions, from the outermost.
    wrappers : tuple of str
        Patterns of functions that only pass calls on to MPI. The call site is where they were called.
    """

    by: str = "family"
    fold: bool = True
    callsites: bool = False
    members: bool = False
    all_ranks: bool = False
    buckets: Buckets = LOG2
    sort: str = "time"
    reverse: bool = False
    top: int | None = None
    tree: bool = False
    flat: bool = False
    depth: int | None = None
    wrappers: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """Column of the rows above the communicators: region, op or none."""
        return GROUPS[self.by][0] if self.by in GROUPS else ""

    @property
    def line(self) -> str:
        """Column of the lines of communicators."""
        return "comm_size" if self.by == "comm-size" else "family" if self.fold else "comm"


class Queries:
    """The statements for one selection and shape, for a profile of full or summary detail.

    `sites` is the query for the call sites, and for each the one that stands for it in a row; empty if each stands for itself.
    `lacks_members`: communicators have members that the profile lacks.
    """

    def __init__(
        self,
        selection: Selection,
        shape: Shape,
        *,
        is_summary: bool = False,
        sites: str = "",
        lacks_members: bool = False,
    ):
        self.selection = selection
        self.shape = shape
        self.is_summary = is_summary
        self.sites = sites
        self.lacks_members = lacks_members
        self.line = LINES[shape.line]
        self.line_name = shape.line
        self.group = [shape.group] if shape.group else []
        self.line_row = [*self.group, "line"]
        op = [] if shape.group == "op" else ["op"]
        self.row = [*self.line_row, *op, "bucket", *(["callsite"] if shape.callsites else [])]

    def whole(self) -> Queries:
        """Return the statements for all rows, whatever the number of those to show."""
        queries = copy(self)
        queries.shape = replace(self.shape, top=None)
        return queries

    @staticmethod
    def same(row: Sequence[str], left: str, right: str) -> str:
        """Return the condition that joins rows of two tables for the same row of the report."""
        return " AND ".join(f"{left}.{column} = {right}.{column}" for column in row)

    def most_spent(self, row: Sequence[str]) -> str:
        """Return the expression for the maximum time of a rank in the keys of `chosen` of a row."""
        if self.has_spent(row):
            return "spent.rank_max_ns"
        if self.is_summary:
            return self.most_spent_of_all(row)
        condition = self.same(row, "chosen", "total")
        ranks = "".join(f" AND {c}" for c in self.selection.rank_conditions("cell.rank"))
        return f"""\
(SELECT MAX(spent) FROM (
    SELECT SUM(cell.time_ns) AS spent FROM chosen JOIN cell ON cell.key = chosen.key
     WHERE {condition}{ranks} GROUP BY cell.rank))"""

    def has_spent(self, row: Sequence[str]) -> bool:
        """Return whether table `spent` has the maximum over ranks: used if searching the keys of each row takes long.

        There are many regions and call sites, and no index from a region, an operation or a call site to its keys. In summary detail it is for rows that were not
        reduced themselves: their values are those of their only key.
        """
        if self.group or "callsite" not in row:
            return bool(self.group)
        return not self.is_summary or self.line_name == "comm"

    def spent(self, row: Sequence[str]) -> str:
        """Return the table `spent`, if it is needed, after the others."""
        if not self.has_spent(row):
            return ""
        columns = ", ".join(row)
        if self.is_summary:
            return f""",
  spent AS (
  SELECT {columns}, CASE COUNT(*) WHEN 1 THEN MAX(max) END AS rank_max_ns
    FROM chosen JOIN (SELECT said.key, max FROM scope AS said JOIN spread ON spread.scope = said.id
                       WHERE counter = 'time_ns' AND said.key IS NOT NULL) AS said ON said.key = chosen.key
   GROUP BY {columns})"""
        return f""",
  spent AS (
  SELECT {columns}, MAX(spent) AS rank_max_ns
    FROM (SELECT {columns}, SUM(cell.time_ns) AS spent
            FROM chosen JOIN cell ON cell.key = chosen.key{where(self.selection.rank_conditions("cell.rank"))}
           GROUP BY {columns}, cell.rank)
   GROUP BY {columns})"""

    def with_spent(self, row: Sequence[str]) -> str:
        """Return the join with the columns of `spent`, if it is needed."""
        return f" LEFT JOIN spent USING ({', '.join(row)})" if self.has_spent(row) else ""

    def most_spent_of_all(self, row: Sequence[str]) -> str:
        """Return the same for summary detail: NULL if the ranks did not reduce this row."""
        if self.line_name == "comm_size":
            return "NULL"
        is_line = row == ["line"]
        if self.selection.key_conditions() if is_line else self.shape.buckets.kind != "log2":
            return "NULL"
        conditions = [f"said.{self.line_name} = total.line", "lines.is_whole"]
        conditions += [
            "said.op IS NULL" if is_line else "said.op = total.op AND said.bin = total.bucket",
            *(["said.callsite = total.callsite"] if "callsite" in row else []),
        ]
        if "callsite" in row and self.sites:
            conditions.append(
                "NOT EXISTS (SELECT 1 FROM site WHERE site.place = total.callsite AND site.id <> site.place)"
            )
        return f"""\
(SELECT max FROM scope AS said JOIN spread ON spread.scope = said.id AND counter = 'time_ns'
     WHERE {" AND ".join(conditions)}
     ORDER BY said.callsite IS NOT NULL LIMIT 1)"""

    def line_ranks(self) -> str:
        """Return the query for the number of members of a line."""
        if self.is_summary and self.line_name == "comm_size":
            return "SELECT NULL AS line, NULL AS ranks"
        if self.is_summary:
            return f"""\
SELECT lines.line, members AS ranks
    FROM scope AS said JOIN lines ON lines.line = said.{self.line_name} AND lines.is_whole
   WHERE members IS NOT NULL"""
        ranks = "".join(f" AND {c}" for c in self.selection.rank_conditions("rank.rank"))
        return f"""\
SELECT line, COUNT(DISTINCT rank.rank) AS ranks
    FROM (SELECT DISTINCT line, low, high, stride
            FROM selected JOIN member_range ON member_range.comm = selected.comm) AS members
         JOIN rank ON rank.rank BETWEEN low AND high AND (rank.rank - low) % stride = 0{ranks}
   GROUP BY line"""

    def families(self) -> str:
        """Return the table `named`: the names of families, if the lines are families."""
        is_family = self.line_name == "family"
        return "  named AS (SELECT family, name, communicators FROM family),\n" if is_family else ""

    def with_families(self) -> str:
        """Return the joins with the names of the family of a line and of its parent."""
        if self.line_name != "family":
            return ""
        return """
         LEFT JOIN named ON named.family = line
         LEFT JOIN named AS above ON above.family = parent.family"""

    def line_label(self) -> str:
        """Return the expression for the name of a line: a part of a family has its name unless it is one communicator."""
        if self.line_name == "comm_size":
            return "CASE line WHEN 0 THEN 'no communicator' ELSE 'size ' || line END"
        if self.line_name == "comm":
            return "MIN(comm.name)"
        return """\
CASE WHEN COUNT(*) = 1 AND comm.communicators <> named.communicators
              THEN comm.name ELSE named.name END"""

    def line_origin(self) -> str:
        """Return the columns for the origin of a line: unknown for communicators that share no more than their size."""
        if self.line_name == "comm_size":
            return """\
         CASE WHEN MIN(comm.kind) = MAX(comm.kind) THEN MIN(comm.kind) END AS kind,
         NULL AS parent, NULL AS creator, NULL AS created_at"""
        return f"""\
         MIN(comm.kind) AS kind,
         MIN({"above.name" if self.line_name == "family" else "parent.name"}) AS parent,
         MIN(creator.name) AS creator,
         MIN(comm.callsite) AS created_at"""

    def selected(self, lines: Sequence[tuple[int, ...]] | None) -> str:
        """Return the tables `selected`, `lines` and `line_ranks`.

        Selected communicators, their names, their members.
        """
        conditions = self.selection.comm_conditions()
        if lines is not None:
            conditions.append(f"{self.line} IN ({', '.join(map(str, sorted({line[-1] for line in lines})))})")
        sites = f"""\
  -- call sites, and the one that stands for each in the report
  site(id, place) AS (
  {self.sites}),
"""
        members = "present.members" if self.lacks_members else COMM_SIZE
        return f"""\
{sites if self.sites else ""}{PRESENT if self.lacks_members else ""}  -- the communicators asked for, and the line of the report each belongs to
  selected AS (
  SELECT comm.id AS comm, {self.line} AS line, {members} AS members
    FROM comm{WITH_PRESENT if self.lacks_members else ""}{where(conditions)}),
{self.families()}  lines AS (
  SELECT line,
         {self.line_label()} AS communicator,
         CASE WHEN COUNT(comm.user_name) = COUNT(*) AND MIN(comm.user_name) = MAX(comm.user_name)
              THEN MIN(comm.user_name) END AS user_name,
         SUM(comm.communicators) AS communicators,
         COUNT(*) = (SELECT COUNT(*) FROM comm WHERE {self.line} = line) AS is_whole,
         MIN({COMM_SIZE}) AS size_min,
         MAX({COMM_SIZE}) AS size_max,
{self.line_origin()},
         CASE WHEN COUNT(comm.topology) = COUNT(*) AND MIN(comm.topology) = MAX(comm.topology)
              THEN MIN(comm.topology) END AS topology
    FROM selected JOIN comm ON comm.id = selected.comm
         LEFT JOIN comm AS parent ON parent.id = comm.parent
         LEFT JOIN op AS creator ON creator.id = comm.creator{self.with_families()}
   GROUP BY line),
  line_ranks AS (
  {self.line_ranks()}),"""

    def chosen(self, lines: Sequence[tuple[int, ...]] | None = None) -> str:
        """Return the table `chosen`: the selected keys, and the row of the report that each belongs to."""
        conditions = self.selection.key_conditions()
        if lines is not None and self.group:
            conditions.append(in_rows([f"key.{self.group[0]}", "selected.line"], lines))
        name = "chosen" if self.selection.time_ns is None else "chosen_before_time"
        site = "COALESCE(site.place, key.callsite) AS callsite" if self.sites else "key.callsite"
        with_site = " LEFT JOIN site ON site.id = key.callsite" if self.sites else ""
        text = f"""
  -- the keys asked for, and the row of the report each belongs to
  {name} AS (
  SELECT key.id AS key,{" key.region," if self.shape.by == "region" else ""} selected.line, key.op, {self.shape.buckets.bucket_sql()} AS bucket, {site}, key.bin,
         {SHARED}
    FROM key JOIN selected ON selected.comm = key.comm JOIN op ON op.id = key.op{with_site}\
{where(conditions)}),"""
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
      ON {self.same(self.row, "in_time", "chosen_before_time")}),"""

    def part(self) -> str:
        """Return the table `part`: the counters of each key, summed over the ranks."""
        conditions = ["cell.key IN (SELECT key FROM chosen)", *self.selection.rank_conditions("cell.rank")]
        cells = "key_total AS cell" if self.is_summary else "cell"
        return f"""
  part AS (
  SELECT cell.key,
         {SUMS_OF_CELLS}
    FROM {cells}{where(conditions)}
   GROUP BY cell.key)"""

    def all_time(self) -> str:
        """Return the subquery for the denominator of shares: all MPI time of the selected ranks."""
        if self.is_summary:
            return (
                "(SELECT NULLIF(sum, 0) FROM scope AS said JOIN spread ON spread.scope = said.id"
                " WHERE said.family IS NULL AND said.comm IS NULL AND said.region IS NULL AND counter = 'mpi_ns')"
            )
        conditions = self.selection.rank_conditions("rank")
        return f"(SELECT NULLIF(SUM(mpi_ns), 0) FROM rank{' WHERE ' + conditions[0] if conditions else ''})"

    def row_columns(self) -> str:
        """Return the columns that identify a row of operations."""
        return f"""{self.row_group()}total.line AS {self.line_name}, communicator, user_name, communicators, size_min, size_max, ranks,
         total.op, operation, class, bucket,
         {self.shape.buckets.low_sql()} AS size_low,
         {self.shape.buckets.high_sql()} AS size_high{", total.callsite" if self.shape.callsites else ""}"""

    def row_group(self) -> str:
        """Return the columns that identify the region of a row of operations; its procedure is in the row anyway."""
        return self.group_columns() if self.shape.by == "region" else ""

    def group_columns(self) -> str:
        """Return the columns that identify the region or the procedure of a line."""
        return {"region": "total.region, path, ", "op": "total.op, operation, class, "}.get(self.shape.by, "")

    def with_group(self, *, has_op: bool = False) -> str:
        """Return the join with the columns of a region or a procedure; `has_op` if those of a procedure are there."""
        if self.shape.by == "region":
            return "\n         JOIN (SELECT region AS id, path FROM region_path) AS region ON region.id = total.region"
        return "" if has_op or not self.group else f"\n         {WITH_OP}"

    def group_ranks(self) -> str:
        """Return the join with the number of ranks in a region; all ranks are in region 0, and call any procedure."""
        if self.is_summary:
            ranks = "SELECT 0 AS region, MAX(members) AS ranks FROM scope WHERE family IS NULL AND comm IS NULL AND region IS NULL"
        elif self.shape.by == "op":
            ranks = f"SELECT COUNT(*) AS ranks FROM rank{where(self.selection.rank_conditions('rank'))}"
        else:
            ranks = f"SELECT region, COUNT(*) AS ranks FROM region_rank{where(self.selection.rank_conditions('rank'))} GROUP BY region"
        on = "present.region = total.region" if self.shape.by == "region" else "1"
        return f"LEFT JOIN ({ranks}) AS present ON {on}"

    def collectives(self) -> str:
        """Return the column of collective operations: unknown of some ranks only, whose calls are a part of each."""
        if self.selection.ranks:
            return "NULL AS collectives"
        return "SUM(1.0 * part.calls / chosen.members) AS collectives"

    def order(self, rows: int) -> str:
        """Return the order of communicators (0), operations (1) or ranks (2)."""
        return directed(ORDERS[self.shape.sort][rows], reverse=self.shape.reverse)

    def cut(self, groups: list[str], order: str, *, and_last: bool = False) -> str:
        """Return the last part of a statement: `report` in order, each group limited to the top rows, and the last."""
        over = f"PARTITION BY {', '.join(groups)}" if groups else ""
        # Numbering a million rows takes far longer than sorting them, so only where it cuts.
        if self.shape.top is None:
            return f"SELECT * FROM report\n ORDER BY {', '.join([*groups, order])}"
        return f"""\
SELECT * FROM (
  SELECT report.*,
         ROW_NUMBER() OVER ({over} ORDER BY {order}) AS place,
         COUNT(*) OVER ({over}) AS of_lines,
         SUM(time_ns) OVER ({over}) AS of_time_ns,
         SUM(share) OVER ({over}) AS of_share
    FROM report)
 WHERE place <= {self.shape.top}{" OR place = of_lines" if and_last else ""}
 ORDER BY {", ".join([*groups, "place"])}"""

    def groups(self) -> str:
        """Return the statement for the code regions that have calls of their own, or for the procedures."""
        group, _, name = GROUPS[self.shape.by]
        order = {"size": "ranks DESC", "name": name}.get(self.shape.sort, ORDERS[self.shape.sort][0])
        order = directed(order, reverse=self.shape.reverse)
        return f"""\
WITH
{self.selected(None)}{self.chosen()}{self.part()}{self.spent(self.group)},
  total AS (
  SELECT {"chosen." + group}, {self.collectives()},
         {SUMS_OF_PARTS}
    FROM part JOIN chosen ON chosen.key = part.key
   GROUP BY chosen.{group}),
  report AS (
  SELECT {self.group_columns()}ranks, calls, collectives, time_ns,
         {self.most_spent(self.group)} AS rank_max_ns,
         (2 * time_ns + ranks) / (2 * ranks) AS rank_avg_ns,
         {AVERAGES},
         1.0 * time_ns / {self.all_time()} AS share,
         call_min_ns, call_max_ns, bytes_sent, bytes_received, noncontiguous
    FROM total{self.with_spent(self.group)}{self.with_group()}
         {self.group_ranks()})
{self.cut([], f"{order}, time_ns DESC, {group}")}"""

    def communicators(self, groups: Sequence[int] | None = None) -> str:
        """Return the statement for the communicator lines, of the given regions or procedures or of all."""
        order = f"{self.order(0)}, time_ns DESC, {self.line_name}"
        columns = ", ".join(self.line_row)
        wanted = [] if groups is None else [f"{self.group[0]} IN ({', '.join(map(str, groups))})"]
        return f"""\
WITH
{self.selected(None)}{self.chosen()}{self.part()}{self.spent(self.line_row)},
  total AS (
  SELECT {columns}, {self.collectives()},
         {SUMS_OF_PARTS}
    FROM part JOIN chosen ON chosen.key = part.key{where(wanted)}
   GROUP BY {columns}),
  report AS (
SELECT {self.group_columns()}total.line AS {self.line_name}, communicator, user_name, kind, communicators, size_min, size_max, ranks,
       lines.parent, lines.creator, created_at, lines.topology,
       calls, collectives, time_ns,
       {self.most_spent(self.line_row)} AS rank_max_ns,
       (2 * time_ns + ranks) / (2 * ranks) AS rank_avg_ns,
       {AVERAGES},
       1.0 * time_ns / {self.all_time()} AS share,
       call_min_ns, call_max_ns, bytes_sent, bytes_received, noncontiguous
  FROM total{self.with_spent(self.line_row)} JOIN lines ON lines.line = total.line
       LEFT JOIN line_ranks ON line_ranks.line = total.line\
{self.with_group()})
{self.cut(self.group, order)}"""

    def members(self, lines: Sequence[tuple[int, ...]] | None) -> str:
        """Return the statement for the members of the communicators, of the given lines or of all."""
        conditions = self.selection.comm_conditions()
        if lines is not None:
            conditions.append(in_rows([self.line], sorted({line[-1:] for line in lines})))
        return f"""\
SELECT {self.line} AS {self.line_name}, comm.name AS communicator, members
  FROM comm{where([*conditions, "members IS NOT NULL"])}
 ORDER BY {self.line_name}, created_ns, comm.id"""

    def operations(self, lines: Sequence[tuple[int, ...]] | None) -> str:
        """Return the statement for the operation lines, of the given communicator lines or of all."""
        order = ", ".join([self.order(1), "time_ns DESC", *self.row[len(self.line_row) :]])
        columns = ", ".join(f"chosen.{column}" for column in self.row)
        return f"""\
WITH
{self.selected(lines)}{self.chosen(lines)}{self.part()}{self.spent(self.row)},
  total AS (
  SELECT {columns}, {self.collectives()},
         {BINS},
         {SUMS_OF_PARTS}
    FROM part JOIN chosen ON chosen.key = part.key
   GROUP BY {columns}),
  report AS (
  SELECT {self.row_columns()}, calls, collectives, time_ns,
         {self.most_spent(self.row)} AS rank_max_ns,
         (2 * time_ns + ranks) / (2 * ranks) AS rank_avg_ns,
         {AVERAGES},
         1.0 * time_ns / {self.all_time()} AS share,
         call_min_ns, call_max_ns, bytes_sent, bytes_received, noncontiguous
    FROM total{self.with_spent(self.row)} JOIN lines ON lines.line = total.line
         LEFT JOIN line_ranks ON line_ranks.line = total.line
         {WITH_OP}{self.with_group(has_op=True)})
{self.cut([*self.group, self.line_name], order)}"""

    def ranks(self, rows: Sequence[tuple[int, ...]] | None) -> str:
        """Return the statement for the lines of single ranks, of the given rows of operations or of all."""
        width = len(self.line_row)
        lines = None if rows is None else sorted({row[:width] for row in rows})
        conditions = self.selection.rank_conditions("cell.rank")
        columns = ", ".join(f"chosen.{column}" for column in self.row)
        if rows is not None:
            conditions.append(in_rows([f"chosen.{column}" for column in self.row], rows))
        having = ""
        if self.selection.time_ns is not None:
            having = f"\n  HAVING {self.selection.time_condition('SUM(cell.time_ns)')}"
        order = f"{self.order(2)}, rank"
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
  SELECT {self.row_columns()}, total.rank, calls, time_ns, {CALL_AVERAGE},
         1.0 * time_ns / {self.all_time()} AS share,
         call_min_ns, call_max_ns, bytes_sent, bytes_received, noncontiguous
    FROM total JOIN lines ON lines.line = total.line LEFT JOIN line_ranks ON line_ranks.line = total.line
         {WITH_OP}{self.with_group(has_op=True)})
{self.cut([*self.group, self.line_name, *self.row[width:]], order, and_last=True)}"""
