# SPDX-License-Identifier: Apache-2.0
"""How the counters of a job developed from snapshot to snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.spelling import did_you_mean
from commlens.jobs.history import History, profile_of
from commlens.profile import open_profile
from commlens.render.table import Column, Table
from commlens.render.units import average_text, bytes_text, share_text, time_text
from commlens.selection import names
from commlens.selection.conditions import comm_conditions, quoted, where

BAR = 24

RANKS_SQL = "SELECT COUNT(*) AS ranks, SUM(app_ns) AS app_ns, MAX(threads) AS threads FROM rank"
CALLS_SQL = """\
SELECT SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(bytes_sent) AS bytes_sent,
       SUM(bytes_received) AS bytes_received
  FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op JOIN comm ON comm.id = key.comm"""
REGIONS_SQL = """\
SELECT SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(mpi_ns) AS mpi_ns
  FROM region_total JOIN region_path ON region_path.region = region_total.region WHERE """
PATHS_SQL = "SELECT path FROM region_path WHERE depth > 0"
METRIC_SQL = """\
SELECT SUM(count) AS count, CASE WHEN COUNT(sum) = COUNT(*) THEN SUM(sum) END AS sum
  FROM metric_value JOIN metric ON metric.id = metric_value.metric
 WHERE """
METRICS_SQL = "SELECT name FROM metric WHERE name IS NOT NULL"


@dataclass(frozen=True)
class Subject:
    """What is shown: calls of MPI, by communicator and procedure; or a region; or a metric."""

    comms: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    region: str | None = None
    metric: str | None = None

    def checked(self, connection: sqlite3.Connection) -> Subject:
        """Return the subject with the names of procedures that its patterns match.

        Raises
        ------
        CommlensError
            A name matches nothing.
        """
        names.check_communicators(connection, self.comms)
        for name, what, sql, condition in (
            (self.region, "region", PATHS_SQL, _region_condition(self.region or "")),
            (self.metric, "metric", METRICS_SQL, _metric_condition(self.metric or "")),
        ):
            if name is not None and connection.execute(f"{sql} AND {condition}").fetchone() is None:
                known = [known for (known,) in connection.execute(sql)]
                raise CommlensError(f"no {what} '{name}' in this run{did_you_mean(name, known)}")
        self._refuse_several_units(connection)
        return replace(self, operations=names.matching_operations(connection, self.operations))

    def _refuse_several_units(self, connection: sqlite3.Connection) -> None:
        """Refuse a metric whose values have several units, which are metrics of their own."""
        if self.metric is None:
            return
        sql = f"SELECT name || ' ' || unit FROM metric WHERE {_metric_condition(self.metric)} ORDER BY 1"
        found = [name or "" for (name,) in connection.execute(sql)]
        if len(found) > 1:
            raise CommlensError(f"several metrics are called '{self.metric}'; choose one: {', '.join(found)}")

    def sql(self) -> str:
        """Return the query for what a profile has counted."""
        if self.region is not None:
            return REGIONS_SQL + _region_condition(self.region)
        if self.metric is not None:
            return METRIC_SQL + _metric_condition(self.metric)
        conditions = comm_conditions(self.comms)
        if self.operations:
            conditions.append(f"op.name IN ({', '.join(map(quoted, self.operations))})")
        return CALLS_SQL + where(conditions)


def _region_condition(pattern: str) -> str:
    """Return the condition on a row of region_path. A glob matches regions of one depth only, so that no time counts twice.

    >>> _region_condition("solve/*")
    "(path = 'solve/*' OR path GLOB 'solve/*' AND depth = 2)"
    """
    return f"(path = {quoted(pattern)} OR path GLOB {quoted(pattern)} AND depth = {pattern.count('/') + 1})"


def _metric_condition(name: str) -> str:
    """Return the SQL condition that a metric has this name, or this name and unit with a blank between them.

    >>> _metric_condition("memory MiB")
    "(metric.name = 'memory MiB' OR metric.name || ' ' || metric.unit = 'memory MiB')"
    """
    return f"(metric.name = {quoted(name)} OR metric.name || ' ' || metric.unit = {quoted(name)})"


Row = dict[str, Any]


def read_development(history: History, subject: Subject) -> list[Row]:
    """Return a row for each snapshot: what was counted since the one before.

    Raises
    ------
    CommlensError
        A snapshot cannot be read, or the subject has a name that is unknown.
    """
    rows: list[Row] = []
    snapshots = history.snapshots
    with profile_of(history, snapshots[-1:]) as path, open_profile(path) as connection:
        subject = subject.checked(connection)
    for i, snapshot in enumerate(snapshots):
        # The tool subtracts process by process: one may have cleared its counters in between, and another not.
        with profile_of(history, snapshots[max(i - 1, 0) : i + 1]) as path, open_profile(path) as connection:
            (ranks,) = connection.execute(RANKS_SQL).fetchall()
            (counted,) = connection.execute(subject.sql()).fetchall()
        new = {name: value or 0 for name, value in (*zip(ranks.keys(), ranks), *zip(counted.keys(), counted))}
        if subject.metric is not None and new["count"]:
            new["sum"] = counted["sum"]  # NULL if it is unknown after an overflow
        row = {"seconds": snapshot.seconds, "time_ns": snapshot.time_ns, "file_bytes": snapshot.bytes}
        row |= {f"new_{name}": value for name, value in new.items() if name not in ("ranks", "threads")}
        rows.append({**row, "ranks": new["ranks"], "threads": new["threads"]})
    return rows


def draw(rows: Sequence[Row], subject: Subject) -> Table:
    """Return the rows as a table with a bar: the share of the ranks' time, or the average of a metric."""
    is_metric = subject.metric is not None
    share = "in region" if subject.region is not None else "average" if is_metric else "in MPI"
    more = (
        ("values",)
        if is_metric
        else ("entered", "in MPI")
        if subject.region is not None
        else ("calls", "calls/s", "avg/call", "sent", "received")
    )
    values = [_value(row, is_metric=is_metric) for row in rows]
    highest = max((abs(value) for value in values if value is not None), default=0) if is_metric else 1
    table = Table(
        [Column("until"), Column("time"), Column(share), Column("", right=False), *map(Column, more)]
    )
    since = 0.0
    for row, value in zip(rows, values):
        filled = 0 if value is None or not highest else round(BAR * min(abs(value) / highest, 1))
        table.add(
            [
                f"{row['seconds']:.3f} s",
                time_text(round(max(row["seconds"] - since, 0) * 1e9)),
                ("" if value is None else f"{value:.6g}") if is_metric else share_text(value),
                "█" * filled,
                *_texts(row, subject, row["seconds"] - since),
            ]
        )
        since = row["seconds"]
    return table


def _value(row: Row, *, is_metric: bool) -> float | None:
    """Return what the bar of a row shows; None if it is unknown.

    The time of a rank with several threads is their sum, and may be more than the run takes.
    """
    if not is_metric and row["threads"] > 1:
        return None
    value, of = ("new_sum", "new_count") if is_metric else ("new_time_ns", "new_app_ns")
    return row[value] / row[of] if row[of] and row[value] is not None else None


def _texts(row: Row, subject: Subject, seconds: float) -> list[str]:
    """Return the other columns of a row."""
    if subject.metric is not None:
        return [f"{row['new_count']:,}"]
    if subject.region is not None:
        time = row["new_time_ns"]
        return [f"{row['new_calls']:,}", share_text(row["new_mpi_ns"] / time if time else None)]
    calls = row["new_calls"]
    return [
        f"{calls:,}",
        average_text(calls / seconds) if seconds > 0 else "",
        time_text(round(row["new_time_ns"] / calls)) if calls else "",
        bytes_text(row["new_bytes_sent"]),
        bytes_text(row["new_bytes_received"]),
    ]
