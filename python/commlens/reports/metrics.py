# SPDX-License-Identifier: Apache-2.0
"""The metrics of the application: their sums, and their values in the order in which ranks recorded them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any, NamedTuple

from rich.text import Text

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.base.outputs import finite
from commlens.profile import meta
from commlens.render.table import Column, Table, fold
from commlens.render.units import name_text, time_text
from commlens.reports.query import Selection
from commlens.reports.regions import BLOCKS, NOT_IN_SUMMARIES, refuse_older, value_text
from commlens.reports.regions_query import Ranges
from commlens.selection.conditions import where
from commlens.selection.names import check_ranks

Row = dict[str, Any]

NO_METRICS = "no metrics: the application records them with commlens_record() of commlens.h, in C, C++, Fortran and Python"
NO_SERIES = "no values one by one: set COMMLENS_METRIC_SERIES in the run"
CELLS, FEWEST_CELLS = 60, 10
GAP = "·"

METRICS_SQL = """\
SELECT metric.id AS metric, metric.name, metric.unit, COUNT(DISTINCT rank) AS ranks,
       COUNT(DISTINCT region) AS regions, SUM("count") AS "count",
       CASE WHEN COUNT("sum") = COUNT(*) THEN SUM("sum") END AS "sum", MIN("min") AS "min",
       MAX("max") AS "max", SUM(not_finite) AS not_finite
  FROM metric_value JOIN metric ON metric.id = metric_value.metric{chosen}
 GROUP BY metric.id ORDER BY metric.name, metric.unit, metric.id"""

SERIES_SQL = """\
SELECT metric.id AS metric, metric.name, metric.unit, rank, thread, number, time_ns, path, execution, iteration, value
  FROM metric_series JOIN metric ON metric.id = metric_series.metric
       JOIN region_path ON region_path.region = metric_series.region{chosen}
 ORDER BY metric.name, metric.unit, metric.id, rank, thread, number"""


@dataclass
class Metrics:
    """The metrics of a profile.

    Attributes
    ----------
    rows : list of dict
        One row per metric, summed over ranks and regions.
    series : list of dict or None
        Single values in order, if they were asked for.
    statements : list of (title, SQL)
    columns : dict
        Title of a statement -> names of its columns.
    """

    rows: list[Row]
    series: list[Row] | None
    statements: list[tuple[str, str]]
    columns: dict[str, list[str]]


def matching(connection: sqlite3.Connection, names: Sequence[str]) -> list[int]:
    """Return the numbers of the metrics whose names match one of the globs; refuse one that no metric matches."""
    known = [tuple(row) for row in connection.execute("SELECT id, name FROM metric ORDER BY id")]
    for name in names:
        if not any(fnmatchcase(metric, name) for _, metric in known):
            raise CommlensError(f"no metric {name!r} in this profile")
    return [number for number, metric in known if any(fnmatchcase(metric, name) for name in names)]


def read_metrics(
    connection: sqlite3.Connection, names: Sequence[str] = (), ranks: Ranges = (), *, series: bool = False
) -> Metrics:
    """Read the metrics that one of the globs `names` matches, or all, on these ranks, or on all."""
    refuse_older(connection)
    if meta.is_summary(connection):
        raise CommlensError(f"metrics: {NOT_IN_SUMMARIES}")
    check_ranks(connection, ranks)
    conditions = list(Selection(ranks=ranks).rank_conditions("rank"))
    if names:
        conditions.append(f"metric.id IN ({', '.join(map(str, matching(connection, names)))})")
    chosen = where(conditions)
    statements = [("metrics", METRICS_SQL.format(chosen=chosen))]
    if series:
        statements.append(("series", SERIES_SQL.format(chosen=chosen)))
    columns: dict[str, list[str]] = {}
    found: dict[str, list[Row]] = {}
    for title, sql in statements:
        cursor = connection.execute(sql)
        columns[title] = [column[0] for column in cursor.description]
        found[title] = [dict(row) for row in cursor]
    return Metrics(found["metrics"], found.get("series"), statements, columns)


def draw(rows: Sequence[Row]) -> Table:
    """Return a table with a line per metric."""
    titles = ("values", "min", "average", "max", "sum", "not finite", "ranks", "regions")
    table = Table(
        [Column("metric", right=False), *(Column(title, seldom=title == "not finite") for title in titles)]
    )
    for row in rows:
        count, unit = row["count"], name_text(row["unit"])
        total = finite(row["sum"])
        average = None if total is None or not count else total / count
        name = name_text(row["name"]) + ("" if unit in ("", "1") else f" [{unit}]")
        numbers = [
            "" if value is None or not count else value_text(value, "")
            for value in (row["min"], average, row["max"], total)
        ]
        not_finite = f"{row['not_finite']:,}" if row["not_finite"] else ""
        table.add([name, f"{count:,}", *numbers, not_finite, str(row["ranks"]), str(row["regions"])])
    return table


class Scale(NamedTuple):
    """What the lines of one metric have in common: the ends of the time, and of the values."""

    begin: int
    end: int
    low: float
    high: float

    def level(self, value: float) -> str:
        """Return the block for a value.

        >>> Scale(0, 1, 0.0, 7.0).level(7.0), Scale(0, 1, 0.0, 7.0).level(0.5), Scale(0, 1, 3.0, 3.0).level(3.0)
        ('█', '▁', '▄')
        >>> Scale(0, 1, -1.7e308, 1.7e308).level(0.0)
        '▅'
        """
        if self.low == self.high:
            return BLOCKS[len(BLOCKS) // 2 - 1]
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # halves: no overflow
        return BLOCKS[min(int(share * len(BLOCKS)), len(BLOCKS) - 1)]


def sparkline(values: Sequence[tuple[int, float]], scale: Scale, cells: int) -> str:
    """Return the averages of (time, value) over equal parts of the time; a point stands for a part without values.

    >>> values = [(0, 1.0), (1, 3.0), (5, 8.0), (9, 0.0)]
    >>> sparkline(values, Scale(0, 9, 0.0, 8.0), 5)
    '▃·█·▁'
    """
    found: list[list[float]] = [[] for _ in range(cells)]
    length = scale.end - scale.begin + 1
    for time, value in values:
        found[(time - scale.begin) * cells // length].append(value)
    return "".join(
        scale.level(sum(value / len(part) for value in part)) if part else GAP for part in found
    ).rstrip()


def draw_series(found: Metrics, width: int | None) -> list[Text]:
    """Return the lines of a table for each metric: a line per rank, or per thread of a rank, with its values over the time."""
    lines: list[Text] = []
    recorded = {row["metric"]: row["count"] for row in found.rows}
    # A library writes finite values only; a profile of others may have any.
    series = [row for row in found.series or () if finite(row["value"]) is not None]
    for metric, group in groupby(series, key=lambda row: row["metric"]):
        rows = list(group)
        times, values = [row["time_ns"] for row in rows], [row["value"] for row in rows]
        scale = Scale(min(times), max(times), min(values), max(values))
        threads = {(row["rank"], row["thread"]) for row in rows}
        by_thread = len({rank for rank, _ in threads}) < len(threads)
        unit = name_text(rows[0]["unit"])
        heading = name_text(rows[0]["name"]) + ("" if unit in ("", "1") else f" [{unit}]")
        heading += f": {len(rows):,} of {count_text(recorded.get(metric, len(rows)), 'value')}, {value_text(scale.low, '')} (▁) to "
        heading += (
            f"{value_text(scale.high, '')} (█), from {time_text(scale.begin)} to {time_text(scale.end)}"
        )
        table = Table([Column("rank", right=False), Column("values"), Column("over time", right=False)])
        lines += [*([Text("")] if lines else []), *fold("", heading, width, "bold")]
        cells = max(FEWEST_CELLS, min(CELLS, (width or CELLS + 30) - 30))
        for (rank, thread), own in groupby(rows, key=lambda row: (row["rank"], row["thread"])):
            points = [(row["time_ns"], row["value"]) for row in own]
            name = f"{rank}.{thread}" if by_thread else str(rank)
            table.add([name, f"{len(points):,}", sparkline(points, scale, cells)])
        lines += table.lines(width)
    return lines
