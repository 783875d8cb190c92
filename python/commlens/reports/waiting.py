# SPDX-License-Identifier: Apache-2.0
"""The waiting in the messages and collectives of a report: two more columns of its rows of operations."""

from __future__ import annotations

import sqlite3

from commlens.base.errors import CommlensError
from commlens.profile.meta import is_summary
from commlens.profile.shape import has_table, version_of
from commlens.reports.query import LINES
from commlens.reports.report import Report
from commlens.selection.conditions import where

COLUMNS = ("waiting_ns", "operation_ns")
"""Estimated time of all ranks, ns; NULL for rows without samples."""

LEAST_KNOWN = 0.5  # share of the time of a row in communicators with samples from which on it has an estimate


def refuse_without_samples(connection: sqlite3.Connection) -> None:
    """Refuse a profile that cannot have samples of calls.

    Raises
    ------
    CommlensError
        The profile is older than samples, or a summary.
    """
    if not has_table(connection, "waiting"):
        version = version_of(connection)
        raise CommlensError(f"this profile has schema version {version}: waiting needs version 11 or later")
    if is_summary(connection):
        raise CommlensError("a profile of summary detail (COMMLENS_DETAIL) has no samples of calls")


def waiting_sql(report: Report) -> str:
    """Return the statement for the waiting in each row of operations.

    Times are of the communicators and ranks that have samples: known_ns is the time of all their calls, waiting_ns the
    estimated part of it, by the share of each rank, as in view split.
    """
    shape, conditions = report.shape, report.selection.comm_conditions()
    return f"""\
SELECT {LINES[shape.line]} AS {shape.line}, key.op, {shape.buckets.bucket_sql()} AS bucket,
       SUM(key.time_ns) AS known_ns, SUM(key.time_ns * share) AS waiting_ns
  FROM (SELECT key.comm, key.op, key.bin, cell.rank, SUM(cell.time_ns) AS time_ns
          FROM cell JOIN key ON key.id = cell.key
         GROUP BY key.comm, key.op, key.bin, cell.rank) AS key
       JOIN (SELECT comm, op, bin, rank, 1.0 * SUM(waiting_ns) / SUM(time_ns) AS share
               FROM waiting GROUP BY comm, op, bin, rank HAVING SUM(time_ns) > 0) AS part
         ON part.comm = key.comm AND part.op = key.op AND part.bin = key.bin AND part.rank = key.rank
       JOIN comm ON comm.id = key.comm{where(conditions)}
 GROUP BY 1, 2, 3"""


def add_waiting(connection: sqlite3.Connection, report: Report) -> None:
    """Add the columns to the rows of operations of a report."""
    refuse_without_samples(connection)
    sql = waiting_sql(report)
    report.statements.append(("waiting", sql))
    known = {report.key_of(row): row for row in map(dict, connection.execute(sql))}
    report.columns["operations"] += COLUMNS
    for row in report.operation_rows():
        found = known.get(report.key_of(row))
        row.update(dict.fromkeys(COLUMNS))
        if found is not None and found["known_ns"] and found["known_ns"] >= LEAST_KNOWN * row["time_ns"]:
            waiting = round(row["time_ns"] * found["waiting_ns"] / found["known_ns"])
            row.update(waiting_ns=waiting, operation_ns=row["time_ns"] - waiting)
