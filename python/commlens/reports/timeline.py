# SPDX-License-Identifier: Apache-2.0
"""The run over time: the share of MPI in each slice, of which communicators, and on which ranks.

A row of the timeline is one slice of the profile, or several consecutive ones. All shares are shares of the time that
the selected ranks were running in the row.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from commlens.base.errors import CommlensError
from commlens.profile import meta
from commlens.profile.shape import has_table, version_of
from commlens.reports.query import Selection
from commlens.selection.conditions import comm_condition, where

Row = dict[str, Any]

MOST_ROWS = 256
"""A run has at most 128 slices; a file that claims more is folded."""

LONGEST_SLICE_NS = 1 << 46
"""20 hours, of which 128 are a run of 100 days; the ends of 65,536 of them fit into 64 bits."""

# Slices go by the clock, but pauses and cleared time are not in app_ns: then the last slice counts.
EXTENT_SQL = """\
SELECT rank.rank, MAX(app_ns, CASE WHEN last * {slice_ns} >= app_ns THEN (last + 1) * {slice_ns} ELSE 0 END) AS extent_ns
    FROM rank LEFT JOIN (SELECT rank, MAX(slot) AS last FROM slice GROUP BY rank) AS logged ON logged.rank = rank.rank"""


@dataclass(frozen=True)
class Pieces:
    """The division of the run into rows.

    Attributes
    ----------
    slice_ns : int
        Length of a slice.
    slices : int
        Number of slices from the beginning of the run to its end.
    fold : int
        Slices in a row; the last row may have fewer.
    """

    slice_ns: int
    slices: int
    fold: int

    @property
    def count(self) -> int:
        """Number of rows."""
        return -(-self.slices // self.fold)

    @property
    def length_ns(self) -> int:
        """Length of a row."""
        return self.slice_ns * self.fold

    def folded(self, most: int) -> Pieces:
        """Return at most `most` rows of equal length.

        >>> Pieces(100, 65, 1).folded(32).count
        22
        """
        return Pieces(self.slice_ns, self.slices, max(1, -(-self.slices // max(most, 1))))


class Extent(NamedTuple):
    """What a selection covers.

    Attributes
    ----------
    pieces : Pieces
        One row per slice of the profile, or per few slices if it claims more than `MOST_ROWS`.
    ranks : int
        Number of selected ranks.
    has_threads : bool
        Whether a rank has times of several threads, which are summed.
    """

    pieces: Pieces
    ranks: int
    has_threads: bool


@dataclass
class Timeline:
    """The rows of a timeline, and the statements that returned them.

    Attributes
    ----------
    pieces : Pieces
        The division of the run into these rows.
    rows : list of dict
        One for each piece of the run.
    communicators, procedures : dict
        Number of a row -> its communicators or procedures, those with the most time first.
    lines : list of dict
        The communicators of the whole run, those with the most time first.
    ranks : list of dict
        The ranks of each row; only for JSON.
    """

    pieces: Pieces
    rows: list[Row] = field(default_factory=list)
    communicators: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    procedures: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    lines: list[Row] = field(default_factory=list)
    ranks: list[Row] = field(default_factory=list)
    statements: list[tuple[str, str]] = field(default_factory=list)
    columns: dict[str, list[str]] = field(default_factory=dict)

    def plain_rows(self, title: str) -> list[Row]:
        """Return the rows of a statement, as its SQL gives them."""
        if title in ("slices", "ranks"):
            return self.rows if title == "slices" else self.ranks
        found = self.communicators if title == "communicators" else self.procedures
        return [row for rows in found.values() for row in rows]


@dataclass(frozen=True)
class Queries:
    """The statements for a selection; `line` is the column of comm by which communicators are summed."""

    selection: Selection
    line: str
    slice_ns: int

    def ranks_sql(self) -> str:
        """Return the query for the selected ranks, and the time at which each ends."""
        conditions = self.selection.rank_conditions("rank.rank")
        if self.selection.comms:
            members = f"SELECT comm.id FROM comm{where(self.selection.comm_conditions())}"
            conditions.append(
                f"rank.rank IN (SELECT rank FROM rank JOIN (SELECT DISTINCT low, high, stride FROM member_range"
                f" WHERE comm IN ({members})) AS members ON rank BETWEEN low AND high AND (rank - low) % stride = 0)"
            )
        return EXTENT_SQL.format(slice_ns=self.slice_ns) + where(conditions)

    def begin(self, pieces: Pieces) -> str:
        """Return the first tables: the rows, the ranks in each, and what these spent."""
        conditions = [
            *self.selection.comm_conditions(),
            *self.selection.key_conditions(),
            *self.selection.rank_conditions("slice.rank"),
        ]
        # The last row includes what a rounded slice number would put behind the end of the run.
        return f"""\
WITH RECURSIVE piece(row, begin_ns, end_ns) AS (
  SELECT 0, 0, {pieces.length_ns}
  UNION ALL SELECT row + 1, end_ns, end_ns + {pieces.length_ns} FROM piece WHERE row + 1 < {pieces.count}),
  -- the ranks asked for
  chosen AS (
  {self.ranks_sql()}),
  present AS (
  SELECT row, rank, MIN(end_ns, extent_ns) - begin_ns AS present_ns FROM chosen JOIN piece ON begin_ns < extent_ns),
  spent AS (
  SELECT MIN(slot / {pieces.fold}, {pieces.count - 1}) AS row, slice.rank, comm.{self.line} AS line, slice.op, calls, time_ns, bytes_sent, bytes_received
    FROM slice JOIN comm ON comm.id = slice.comm JOIN op ON op.id = slice.op{where(conditions)})"""

    def of_ranks(self, pieces: Pieces) -> str:
        """Return the first tables, and the sums of each rank in each row."""
        return f"""{self.begin(pieces)},
  of_rank AS (
  SELECT present.row, present.rank, present_ns, COALESCE(calls, 0) AS calls, COALESCE(time_ns, 0) AS time_ns,
         COALESCE(bytes_sent, 0) AS bytes_sent, COALESCE(bytes_received, 0) AS bytes_received,
         1.0 * COALESCE(time_ns, 0) / present_ns AS share
    FROM present LEFT JOIN (
         SELECT row, rank, SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(bytes_sent) AS bytes_sent,
                SUM(bytes_received) AS bytes_received FROM spent GROUP BY row, rank) AS spent
         ON spent.row = present.row AND spent.rank = present.rank)"""

    def slices(self, pieces: Pieces) -> str:
        """Return the statement for the rows of the timeline."""
        return f"""{self.of_ranks(pieces)},
  ordered AS (
  SELECT of_rank.*, ROW_NUMBER() OVER (PARTITION BY row ORDER BY share, rank) AS from_least,
         ROW_NUMBER() OVER (PARTITION BY row ORDER BY share DESC, rank) AS from_most
    FROM of_rank)
SELECT piece.row, begin_ns, MIN(end_ns, (SELECT MAX(extent_ns) FROM chosen)) AS end_ns, COUNT(rank) AS ranks,
       COALESCE(SUM(present_ns), 0) AS run_ns, COALESCE(SUM(time_ns), 0) AS time_ns,
       1.0 * SUM(time_ns) / NULLIF(SUM(present_ns), 0) AS share,
       MAX(CASE from_least WHEN 1 THEN rank END) AS least_rank, MAX(CASE from_least WHEN 1 THEN share END) AS least_share,
       MAX(CASE from_most WHEN 1 THEN rank END) AS most_rank, MAX(CASE from_most WHEN 1 THEN share END) AS most_share,
       COALESCE(SUM(calls), 0) AS calls, COALESCE(SUM(bytes_sent), 0) AS bytes_sent,
       COALESCE(SUM(bytes_received), 0) AS bytes_received
  FROM piece LEFT JOIN ordered ON ordered.row = piece.row
 GROUP BY piece.row ORDER BY piece.row"""

    def parts(self, pieces: Pieces, key: str, names: str, columns: str) -> str:
        """Return the statement for the parts of each row, the largest first."""
        return f"""{self.begin(pieces)},
  part AS (SELECT row, {key}, SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(bytes_sent) AS bytes_sent,
                  SUM(bytes_received) AS bytes_received FROM spent GROUP BY row, {key})
SELECT part.row, {columns}, calls, time_ns,
       1.0 * time_ns / NULLIF(run_ns, 0) AS share, bytes_sent, bytes_received
  FROM part JOIN {names}
       LEFT JOIN (SELECT row, SUM(present_ns) AS run_ns FROM present GROUP BY row) AS whole ON whole.row = part.row
 ORDER BY part.row, time_ns DESC, calls DESC, part.{key}"""

    def communicators(self, pieces: Pieces) -> str:
        """Return the statement for the communicators of each row."""
        names = "(SELECT id AS line, name, user_name, communicators FROM comm)"
        if self.line == "family" and self.selection.comms:
            names = self.selected_families()
        elif self.line == "family":
            names = "(SELECT family AS line, name, user_name, communicators FROM family)"
        columns = f"part.line AS {'family' if self.line == 'family' else 'comm'}, named.name AS communicator, user_name, communicators"
        return self.parts(pieces, "line", f"{names} AS named ON named.line = part.line", columns)

    def selected_families(self) -> str:
        """Return the query for the names of families of which only some communicators are selected, as in a report."""
        return f"""\
(SELECT comm.family AS line,
               CASE WHEN COUNT(*) = 1 AND comm.communicators <> family.communicators THEN comm.name ELSE family.name END AS name,
               CASE WHEN COUNT(comm.user_name) = COUNT(*) AND MIN(comm.user_name) = MAX(comm.user_name)
                    THEN MIN(comm.user_name) END AS user_name,
               SUM(comm.communicators) AS communicators
          FROM comm JOIN family ON family.family = comm.family{where(self.selection.comm_conditions())}
         GROUP BY comm.family)"""

    def procedures(self, pieces: Pieces) -> str:
        """Return the statement for the procedures of each row."""
        return self.parts(pieces, "op", "op ON op.id = part.op", "part.op, op.name AS operation")

    def ranks(self, pieces: Pieces) -> str:
        """Return the statement for the ranks in each row."""
        return f"""{self.of_ranks(pieces)}
SELECT row, rank, present_ns AS run_ns, calls, time_ns, share, bytes_sent, bytes_received
  FROM of_rank ORDER BY row, rank"""

    def heat(self, pieces: Pieces, block: int) -> str:
        """Return the statement for blocks of ranks: the share of MPI of each in each row that it has time in."""
        return f"""{self.begin(pieces)},
  placed AS (SELECT rank, (ROW_NUMBER() OVER (ORDER BY rank) - 1) / {block} AS block FROM chosen)
SELECT placed.block, present.row,
       1.0 * COALESCE(SUM(time_ns), 0) / SUM(present_ns) AS share
  FROM placed JOIN present ON present.rank = placed.rank
       LEFT JOIN (SELECT row, rank, SUM(time_ns) AS time_ns FROM spent GROUP BY row, rank) AS spent
       ON spent.row = present.row AND spent.rank = present.rank
 GROUP BY placed.block, present.row ORDER BY placed.block, present.row"""


def refuse_without_slices(connection: sqlite3.Connection) -> None:
    """Refuse a profile that cannot have time slices."""
    if not has_table(connection, "slice"):
        version = version_of(connection)
        raise CommlensError(f"this profile has schema version {version}: time slices need version 3 or later")
    if meta.is_summary(connection):
        raise meta.no_single_ranks("the timeline")


def refuse_parts_of_families(connection: sqlite3.Connection, selection: Selection) -> None:
    """Refuse communicators that are not a whole family, if the slices are those of families."""
    for pattern in selection.comms:
        row = connection.execute(
            f"SELECT family.name FROM comm JOIN family ON family.family = comm.family"
            f" GROUP BY comm.family HAVING COUNT(*) > SUM(COALESCE({comm_condition(pattern)}, 0)) "
            f"AND SUM(COALESCE({comm_condition(pattern)}, 0)) > 0 LIMIT 1"
        ).fetchone()
        if row is not None:
            raise CommlensError(
                f"--comm {pattern}: the time slices of this profile are those of families, and '{row[0]}' is one: "
                "select all of it"
            )


def queries_of(connection: sqlite3.Connection, selection: Selection, *, fold: bool) -> Queries:
    """Return the statements for a profile that has time slices."""
    refuse_without_slices(connection)
    if meta.slices_are_of_families(connection):
        if not fold:
            raise meta.no_slices_of_communicators()
        refuse_parts_of_families(connection, selection)
    slice_ns = min(meta.number(meta.facts(connection), "slice_ns"), LONGEST_SLICE_NS)
    return Queries(selection, "family" if fold else "id", slice_ns)


def read_extent(connection: sqlite3.Connection, queries: Queries) -> Extent:
    """Return what the selection covers; refuse a profile that has no slices."""
    if not queries.slice_ns or connection.execute("SELECT 1 FROM slice LIMIT 1").fetchone() is None:
        raise CommlensError("this profile has no time slices: its table slice is empty")
    extent_ns, ranks, threads = connection.execute(
        "SELECT MAX(extent_ns), COUNT(*), MAX(threads)"
        f" FROM rank JOIN ({queries.ranks_sql()}) AS chosen ON chosen.rank = rank.rank"
    ).fetchone()
    slices = max(1, -(-int(extent_ns or 0) // queries.slice_ns))
    return Extent(Pieces(queries.slice_ns, slices, 1).folded(MOST_ROWS), ranks, (threads or 0) > 1)


def read_timeline(
    connection: sqlite3.Connection, queries: Queries, pieces: Pieces, *, with_ranks: bool
) -> Timeline:
    """Read the rows of a timeline, and the ranks of each if asked for."""
    result = Timeline(pieces)

    def rows(title: str, sql: str) -> list[Row]:
        result.statements.append((title, sql))
        cursor = connection.execute(sql)
        result.columns[title] = [column[0] for column in cursor.description]
        return [dict(row) for row in cursor]

    result.rows = rows("slices", queries.slices(pieces))
    whole: dict[int, Row] = {}
    for row in rows("communicators", queries.communicators(pieces)):
        result.communicators[row["row"]].append(row)
        line = row["family" if queries.line == "family" else "comm"]
        whole.setdefault(line, {**row, "time_ns": 0})["time_ns"] += row["time_ns"]
    result.lines = sorted(whole.values(), key=lambda row: -row["time_ns"])
    for row in rows("procedures", queries.procedures(pieces)):
        result.procedures[row["row"]].append(row)
    if with_ranks:
        result.ranks = rows("ranks", queries.ranks(pieces))
    return result


@dataclass
class Heat:
    """The share of MPI of blocks of ranks over time.

    Attributes
    ----------
    shares : list of list of float or None
        For each block, one value per row of `pieces`; None if no rank of the block was running.
    first_ranks : list of int
        First rank of each block.
    size : int
        Ranks in a block; the last may have fewer.
    """

    pieces: Pieces
    size: int
    shares: list[list[float | None]] = field(default_factory=list)
    first_ranks: list[int] = field(default_factory=list)


def read_heat(connection: sqlite3.Connection, queries: Queries, pieces: Pieces, block: int) -> Heat:
    """Read the share of MPI of blocks of ranks."""
    ranks = [
        rank for (rank,) in connection.execute(f"SELECT rank FROM ({queries.ranks_sql()}) ORDER BY rank")
    ]
    first_ranks = ranks[::block]
    heat = Heat(pieces, block, [[None] * pieces.count for _ in first_ranks], first_ranks)
    for row in connection.execute(queries.heat(pieces, block)):
        heat.shares[row["block"]][row["row"]] = row["share"]
    return heat
