# SPDX-License-Identifier: Apache-2.0
"""The ranks of a run side by side: time in and outside MPI, calls, bytes."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from commlens.profile import meta
from commlens.render.table import Column, Table
from commlens.render.units import bytes_text, share_text, time_text
from commlens.reports.query import Selection, directed
from commlens.reports.silent import SILENT_RANKS_SQL
from commlens.selection.conditions import where
from commlens.selection.names import check_ranks

Row = dict[str, Any]

# Value of --sort -> ORDER BY; --reverse inverts it.
ORDERS = {
    "outside": "outside_ns DESC",
    "time": "app_ns DESC",
    "mpi": "mpi_ns DESC",
    "share": "mpi_share DESC",
    "calls": "calls DESC",
    "sent": "bytes_sent DESC",
    "received": "bytes_received DESC",
    "rank": "rank.rank",
    "node": "node",
}

COLUMNS = (
    Column("rank"),
    Column("time", wide=2),
    Column("in MPI"),
    Column("share"),
    Column("outside MPI"),
    Column("calls"),
    Column("sent"),
    Column("received"),
    Column("CPU time", wide=3, seldom=True),
    Column("preempted", wide=3, seldom=True),
    Column("node", right=False, wide=1),
    Column("", right=False, seldom=True),
)

UNKNOWN = "outside MPI is -: unknown, because several threads of the rank call MPI and their times overlap"
SILENT = (
    "outside MPI is -: unknown, because the rank left no time of death; it counts up to its last sign of life, and no rank "
    "is marked busiest or idlest"
)


@dataclass(frozen=True)
class Ranks:
    """The rows of all ranks in the order asked for, and the statement that returned them."""

    rows: list[Row]
    sql: str


def ranks_sql(ranks: tuple[tuple[int, int], ...], sort: str, *, reverse: bool) -> str:
    """Return the statement for the ranks in these ranges, or for all."""
    chosen = where(Selection(ranks=ranks).rank_conditions("rank.rank"))
    return f"""\
SELECT rank.rank, node, app_ns, mpi_ns, 1.0 * mpi_ns / NULLIF(app_ns, 0) AS mpi_share,
       -- unknown where threads overlap or a rank has no time of death; an estimate of the time in MPI may be more than
       -- there is
       CASE WHEN threads <= 1 AND silent.rank IS NULL THEN MAX(app_ns - mpi_ns, 0) END AS outside_ns,
       calls, COALESCE(bytes_sent, 0) AS bytes_sent, COALESCE(bytes_received, 0) AS bytes_received, threads, state,
       cpu_ns, preempted
       -- the cast gives the column a type: SQLite builds no automatic index for a join on a column without one
  FROM rank LEFT JOIN (SELECT CAST(rank AS INTEGER) AS rank, SUM(bytes_sent) AS bytes_sent,
                              SUM(bytes_received) AS bytes_received
                         FROM cell GROUP BY rank) AS moved ON moved.rank = rank.rank
       LEFT JOIN ({SILENT_RANKS_SQL}) AS silent ON silent.rank = rank.rank{chosen}
 ORDER BY {directed(ORDERS[sort], reverse=reverse)}, rank.rank"""


def read_ranks(
    connection: sqlite3.Connection, ranks: tuple[tuple[int, int], ...], sort: str, *, reverse: bool
) -> Ranks:
    """Read the rows of the ranks in these ranges, or of all.

    Raises
    ------
    CommlensError
        The profile has no single ranks, or none in one of the ranges.
    """
    if meta.is_summary(connection):
        raise meta.no_single_ranks("the list of ranks")
    check_ranks(connection, ranks)
    sql = ranks_sql(ranks, sort, reverse=reverse)
    return Ranks([dict(row) for row in connection.execute(sql)], sql)


def is_silent(row: Row) -> bool:
    """Return whether the time outside MPI is unknown although the rank has one thread: it left no time of death."""
    return row["outside_ns"] is None and row["threads"] <= 1


def extremes(rows: list[Row]) -> dict[int, str]:
    """Return the positions of the busiest and the idlest rank, by their time outside MPI.

    None if all have the same, or if a rank has no time of death.
    """
    if any(is_silent(row) for row in rows):
        return {}
    known = [i for i, row in enumerate(rows) if row["outside_ns"] is not None]
    if not known:
        return {}
    busiest = min(known, key=lambda i: (-rows[i]["outside_ns"], rows[i]["rank"]))
    idlest = min(known, key=lambda i: (rows[i]["outside_ns"], rows[i]["rank"]))
    return {} if busiest == idlest else {busiest: "busiest", idlest: "idlest"}


def draw(ranks: Ranks, top: int | None) -> Table:
    """Return the first ranks, the last one, the busiest and the idlest, with a line for those between."""
    rows, marks = ranks.rows, extremes(ranks.rows)
    shown = set(range(len(rows) if top is None else min(top, len(rows)))) | set(marks) | {len(rows) - 1}
    table = Table(COLUMNS)
    begin = 0
    for i in sorted(shown):
        if i > begin:
            table.say(left_out(rows[begin:i]))
        table.add(cells(rows[i], marks.get(i, "")), "bold" if i in marks else "")
        begin = i + 1
    unknown = [row for row in rows if row["outside_ns"] is None]
    if unknown:
        table.say("")
    if any(not is_silent(row) for row in unknown):
        table.say(UNKNOWN)
    if any(is_silent(row) for row in unknown):
        table.say(SILENT)
    return table


def cells(row: Row, mark: str) -> list[str]:
    """Return the cells of a rank."""
    ended = "" if row["state"] == "finalized" else row["state"]
    return [
        str(row["rank"]),
        time_text(row["app_ns"]),
        time_text(row["mpi_ns"]),
        share_text(row["mpi_share"]),
        time_text(row["outside_ns"]),
        f"{row['calls']:,}",
        bytes_text(row["bytes_sent"]),
        bytes_text(row["bytes_received"]),
        "" if row["cpu_ns"] is None else time_text(row["cpu_ns"]),
        "" if row["preempted"] is None else f"{row['preempted']:,}",
        row["node"],
        ", ".join(filter(None, (mark, ended))),
    ]


def left_out(rows: list[Row]) -> str:
    """Return the line about ranks that are not shown: their number and the range of their times outside MPI."""
    text = f"and {len(rows):,} more {'rank' if len(rows) == 1 else 'ranks'}"
    outside = [row["outside_ns"] for row in rows if row["outside_ns"] is not None]
    if not outside:
        return text
    low, high = time_text(min(outside)), time_text(max(outside))
    if low == high:
        return f"{text} with {low} outside MPI"
    mean = time_text(round(sum(outside) / len(outside)))
    return f"{text} with {low} to {high} outside MPI, {mean} on average"
