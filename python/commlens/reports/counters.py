# SPDX-License-Identifier: Apache-2.0
"""Hardware counters and software events of a run (COMMLENS_COUNTERS), by code region and MPI procedure."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.profile import meta
from commlens.profile.shape import has_table, version_of
from commlens.render.table import Column, Table
from commlens.render.units import path_text, share_text, time_text
from commlens.reports.query import Selection
from commlens.reports.regions import NOT_IN_SUMMARIES
from commlens.reports.regions_query import Ranges
from commlens.selection.conditions import where
from commlens.selection.names import check_ranks

Row = dict[str, Any]

NO_COUNTERS = "no counters: set COMMLENS_COUNTERS in the run, such as COMMLENS_COUNTERS=cycles,instructions"
OUTSIDE_REGIONS, OUTSIDE_MPI = "(outside all regions)", "outside MPI"
WHOLE = "whole program"

# Events of the ranks are scaled one by one: the kernel takes turns on each of them for itself.
COUNTERS_SQL = """\
SELECT event, unit, region, path, operation, SUM("count") AS "count", SUM(events) AS events,
       MIN(counted) AS least_counted, COUNT(*) - COUNT(events) AS unknown
  FROM event{chosen}
 GROUP BY event, unit, region, operation ORDER BY path, region, operation IS NOT NULL, operation, event, unit"""


@dataclass
class Counters:
    """What was counted.

    Attributes
    ----------
    rows : list of dict
        One row per event, region and procedure, summed over ranks and communicators. `operation` is None outside MPI;
        `events` is the estimated number, None if it is unknown.
    statement : str
        The SQL.
    columns : list of str
        The names of its columns.
    """

    rows: list[Row]
    statement: str
    columns: list[str]

    def events(self) -> list[tuple[str, str]]:
        """Return the names and units of the events, in the order of their names."""
        return sorted({(row["event"], row["unit"]) for row in self.rows})


def read_counters(connection: sqlite3.Connection, names: Sequence[str] = (), ranks: Ranges = ()) -> Counters:
    """Read the events that one of the globs `names` matches, or all, on these ranks, or on all."""
    if not has_table(connection, "event_count"):
        version = version_of(connection)
        raise CommlensError(f"this profile has schema version {version}: counters need version 16 or later")
    if meta.is_summary(connection):
        raise CommlensError(f"counters: {NOT_IN_SUMMARIES}")
    check_ranks(connection, ranks)
    conditions = list(Selection(ranks=ranks).rank_conditions("rank"))
    if names:
        known = [name for (name,) in connection.execute("SELECT DISTINCT event FROM event ORDER BY event")]
        for name in names:
            if not any(fnmatchcase(event, name) for event in known):
                raise CommlensError(f"no event {name!r} in this profile")
        wanted = [event for event in known if any(fnmatchcase(event, name) for name in names)]
        quoted = ", ".join("'" + event.replace("'", "''") + "'" for event in wanted)
        conditions.append(f"event IN ({quoted})")
    sql = COUNTERS_SQL.format(chosen=where(conditions))
    cursor = connection.execute(sql)
    columns = [column[0] for column in cursor.description]
    return Counters([dict(row) for row in cursor], sql, columns)


def number_text(value: float | None, unit: str) -> str:
    """Return a number of events, or a time.

    >>> number_text(1234567.4, ""), number_text(1500.0, "ns"), number_text(None, "")
    ('1,234,567', '1.50 µs', '?')
    """
    if value is None:
        return "?"
    return time_text(round(value)) if unit == "ns" else f"{value:,.0f}"


def _total(rows: Sequence[Row], event: tuple[str, str]) -> float | None:
    """Return the sum of an event over rows; None if there are some, all of which are unknown."""
    own = [row["events"] for row in rows if (row["event"], row["unit"]) == event]
    known = [value for value in own if value is not None]
    return None if own and not known else float(sum(known))


def draw(found: Counters) -> Table:
    """Return a table with a line per region and, below it, one per procedure; a column per event."""
    events = found.events()
    table = Table([Column("region", right=False), *(Column(event) for event, _ in events)])

    def add(name: str, rows: Sequence[Row], style: str = "") -> None:
        table.add([name, *(number_text(_total(rows, event), event[1]) for event in events)], style)

    add(WHOLE, found.rows, "bold")
    add("  in MPI", [row for row in found.rows if row["operation"] is not None])
    for (path, _), group in groupby(found.rows, key=lambda row: (row["path"], row["region"])):
        rows = list(group)
        table.say("")
        add(path_text(path) or OUTSIDE_REGIONS, rows, "bold")
        for operation, own in groupby(rows, key=lambda row: row["operation"]):
            add(f"  {operation or OUTSIDE_MPI}", list(own))
    return table


def notes(found: Counters) -> list[str]:
    """Return a line for each event that was not counted all the time."""
    lines = []
    for event, unit in found.events():
        own = [row for row in found.rows if (row["event"], row["unit"]) == (event, unit)]
        least = min((row["least_counted"] for row in own if row["least_counted"] is not None), default=1.0)
        if least < 1:
            unknown = sum(row["unknown"] for row in own)
            said = f"; of {count_text(unknown, 'row')} nothing is known" if unknown else ""
            lines.append(
                f"{event}: the processor had too few counters, so that the kernel counted it for a part of the time, at least "
                f"{share_text(least)}; its numbers are estimates{said}"
            )
    return lines
