# SPDX-License-Identifier: Apache-2.0
"""The datatypes of the application: how they were constructed, and the calls, time and bytes of each."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from commlens.base.errors import CommlensError
from commlens.profile import meta
from commlens.render.table import Column, Table
from commlens.render.units import bytes_text, name_text, share_text, time_text
from commlens.reports.query import Selection
from commlens.reports.regions_query import Ranges
from commlens.selection.conditions import where
from commlens.selection.names import check_ranks

Row = dict[str, Any]

NO_DATATYPES = "no datatypes: set COMMLENS_DATATYPES=1 in the run"
NOT_IN_SUMMARIES = "a profile of summary detail has no rows per rank"

# A call that sends and receives the same datatype is one call of it.
USED = """\
WITH used AS (
  SELECT sent AS datatype, comm, op, rank, calls, time_ns, bytes_sent,
         CASE WHEN received = sent THEN bytes_received ELSE 0 END AS bytes_received
    FROM datatype_use WHERE sent <> 0
  UNION ALL
  SELECT received, comm, op, rank, calls, time_ns, 0, bytes_received
    FROM datatype_use WHERE received <> 0 AND received <> sent
  UNION ALL
  SELECT target, comm, op, rank, calls, time_ns, 0, 0
    FROM datatype_use WHERE target <> 0 AND target <> sent AND target <> received),
all_uses AS (SELECT SUM(calls) AS calls, SUM(bytes_sent + bytes_received) AS bytes FROM datatype_use{of_all})
"""

COLUMNS = """COUNT(DISTINCT rank) AS ranks, COALESCE(SUM(used.calls), 0) AS calls,
       1.0 * SUM(used.calls) / NULLIF(all_uses.calls, 0) AS share_of_calls, COALESCE(SUM(time_ns), 0) AS time_ns,
       COALESCE(SUM(bytes_sent), 0) AS bytes_sent, COALESCE(SUM(bytes_received), 0) AS bytes_received,
       1.0 * SUM(bytes_sent + bytes_received) / NULLIF(all_uses.bytes, 0) AS share_of_bytes"""

DATATYPES_SQL = (
    USED
    + f"""\
SELECT d.id AS datatype, d.tree, d.size, d.lower_bound, d.extent, {COLUMNS}
  FROM datatype d CROSS JOIN all_uses LEFT JOIN used ON used.datatype = d.id{{chosen}}
 WHERE d.id <> 0 AND (d.tree NOT GLOB 'MPI_*' OR EXISTS (
       SELECT 1 FROM datatype_use AS u WHERE d.id IN (u.sent, u.received, u.target)))
 GROUP BY d.id ORDER BY SUM(bytes_sent + bytes_received) DESC, SUM(used.calls) DESC, d.tree, d.id"""
)

USES_SQL = (
    USED
    + f"""\
SELECT d.id AS datatype, d.tree, comm.name AS communicator, op.name AS operation, {COLUMNS}
  FROM used JOIN datatype d ON d.id = used.datatype CROSS JOIN all_uses JOIN comm ON comm.id = used.comm
       JOIN op ON op.id = used.op{{chosen}}
 GROUP BY d.id, used.comm, used.op
 ORDER BY d.id, SUM(bytes_sent + bytes_received) DESC, SUM(used.calls) DESC, comm.name, op.name, used.comm, used.op"""
)


@dataclass
class Datatypes:
    """The datatypes of a profile.

    Attributes
    ----------
    rows : list of dict
        One row per datatype, also for those that no call used.
    uses : list of dict or None
        One row per datatype, communicator and procedure, if they were asked for.
    statements : list of (title, SQL)
    columns : dict
        Title of a statement -> names of its columns.
    """

    rows: list[Row]
    uses: list[Row] | None
    statements: list[tuple[str, str]]
    columns: dict[str, list[str]]


def read_datatypes(connection: sqlite3.Connection, ranks: Ranges = (), *, uses: bool = False) -> Datatypes:
    """Read the datatypes, with what calls on these ranks, or on all, used them for."""
    if meta.is_summary(connection):
        raise CommlensError(f"datatypes: {NOT_IN_SUMMARIES}")
    check_ranks(connection, ranks)
    conditions = list(Selection(ranks=ranks).rank_conditions("rank"))
    of_all = where(conditions).replace("\n", " ")
    on = f" AND {' AND '.join(conditions)}" if conditions else ""
    statements = [("datatypes", DATATYPES_SQL.format(of_all=of_all, chosen=on))]
    if uses:
        statements.append(("uses", USES_SQL.format(of_all=of_all, chosen=where(conditions))))
    columns: dict[str, list[str]] = {}
    found: dict[str, list[Row]] = {}
    for title, sql in statements:
        cursor = connection.execute(sql)
        columns[title] = [column[0] for column in cursor.description]
        found[title] = [dict(row) for row in cursor]
    return Datatypes(found["datatypes"], found.get("uses"), statements, columns)


def numbers(row: Row) -> list[str]:
    """Return the columns that a datatype and one of its uses have in common."""
    if not row["calls"]:
        return [""] * 6
    return [
        f"{row['calls']:,}",
        share_text(row["share_of_calls"]),
        time_text(row["time_ns"]),
        bytes_text(row["bytes_sent"]),
        bytes_text(row["bytes_received"]),
        share_text(row["share_of_bytes"]) if row["share_of_bytes"] is not None else "",
    ]


def draw(rows: Sequence[Row], uses: Sequence[Row] | None) -> Table:
    """Return a table with a line per datatype, and below it a line for each of its uses."""
    titles = ("calls", "of calls", "time", "sent", "received", "of bytes")
    table = Table(
        [Column("datatype", right=False), Column("size"), Column("extent"), *(Column(t) for t in titles)]
    )
    of_datatype = {
        number: list(group) for number, group in groupby(uses or (), key=lambda row: row["datatype"])
    }
    for row in rows:
        table.add([name_text(row["tree"]), f"{row['size']:,} B", f"{row['extent']:,} B", *numbers(row)])
        for use in of_datatype.get(row["datatype"], ()):
            table.add([f"  {name_text(use['communicator'])} {use['operation']}", "", "", *numbers(use)])
    return table
