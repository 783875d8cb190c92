# SPDX-License-Identifier: Apache-2.0
"""TinyProf's compact CSV: a line for every region, in each field the values of all processes, executions and iterations.

docs/reference/exports.md has the layout.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import IO, NamedTuple, Union

from commlens.base.errors import CommlensError
from commlens.base.outputs import CsvWriter
from commlens.base.progress import tracked
from commlens.export.calltree import apart, has_regions
from commlens.profile.meta import facts, number
from commlens.profile.shape import has_table

PROCESS, EXECUTION, ITERATION = "|", "-", "+"
MOST_EMPTY = 1 << 27
"""Largest number of empty places in a file, for ranks, executions and iterations that are far apart."""

VALUES = ("calls", "open", "time_ns", "time_min_ns", "time_max_ns", "nested_ns", "mpi_ns")
METRIC_VALUES = ("count", "sum", "min", "max", "last")
HEADING = ("region", "line", *VALUES, "tag", "metric", *METRIC_VALUES)

REGION_SQL = f"""\
SELECT rank, execution, MAX(iteration, 0) AS iteration, {", ".join(VALUES)}
  FROM region_time WHERE region = ? AND (iteration >= 0) = ? ORDER BY rank, execution, iteration"""

LOOP_SQL = f"""\
SELECT rank, execution, MAX(iteration, 0) AS iteration, iterations, NULL, {", ".join(VALUES[2:])}
  FROM loop_time WHERE region = ? AND (iteration >= 0) = ? ORDER BY rank, execution, iteration"""


METRIC_SQL = f"""\
SELECT rank, execution, MAX(iteration, 0) AS iteration, {", ".join(f'"{value}"' for value in METRIC_VALUES)}
  FROM metric_value WHERE region = ? AND metric = ? AND (iteration >= 0) = ? ORDER BY rank, execution, iteration"""

METRICS_SQL = """\
SELECT DISTINCT region, metric.id, name, unit FROM metric_value JOIN metric ON metric.id = metric_value.metric
 ORDER BY region, name, unit, metric.id"""

Value = Union[int, float, None]


class Line(NamedTuple):
    """One kind of line: its table, and whether iterations are separate."""

    name: str
    sql: str
    by_iteration: bool


LINES = (
    Line("region", REGION_SQL, False),
    Line("region+", REGION_SQL, True),
    Line("loop", LOOP_SQL, False),
    Line("loop+", LOOP_SQL, True),
)


class Places:
    """Places texts by index, unless too many places between them are empty."""

    def __init__(self, empty: int = MOST_EMPTY):
        self.empty = empty

    def placed(self, values: Iterable[tuple[int, str]], separator: str, end: int = 0) -> str:
        """Return the texts at their places, with empty places between them, and `end` after the last.

        >>> Places().placed([(0, "7"), (3, "5")], "+"), Places().placed([(1, "7")], "|", 3)
        ('7+++5', '|7||')
        """
        text, at = [], 0
        for place, value in (*values, (end, "")):
            self.empty -= max(place - at - 1, 0)
            if self.empty < 0:
                raise CommlensError(
                    "tinyprof: the numbers of ranks, executions or iterations are too far apart for this format"
                )
            text.append(separator * (place - at) + value)
            at = max(at, place)
        return "".join(text)

    def compact(self, rows: Sequence[Sequence[Value]], column: int, ranks: int) -> str:
        """Return one value of rows of rank, execution and iteration, in this order, as a field."""

        def iterations(rows: Iterable[Sequence[Value]]) -> str:
            return self.placed(((int(row[2] or 0), value_text(row[column])) for row in rows), ITERATION)

        def executions(rows: Iterable[Sequence[Value]]) -> str:
            return self.placed(
                ((int(key or 0), iterations(some)) for key, some in groupby(rows, key=lambda row: row[1])),
                EXECUTION,
            )

        by_rank = ((int(key or 0), executions(some)) for key, some in groupby(rows, key=lambda row: row[0]))
        return self.placed(by_rank, PROCESS, ranks - 1)

    def fields(
        self, rows: Sequence[Sequence[Value]], ranks: int, values: Sequence[str] = VALUES
    ) -> list[str]:
        """Return the fields of a line; a field without values is empty."""
        return [
            self.compact(rows, column, ranks) if any(row[column] is not None for row in rows) else ""
            for column in range(3, 3 + len(values))
        ]


def value_text(value: Value) -> str:
    """Return a value without the characters that separate values: `~` is its minus sign, and it has no plus sign.

    >>> [value_text(value) for value in (7, -0.25, 1e21, 1e-7, float("inf"), None)]
    ['7', '~0.25', '1e21', '1e~07', 'inf', '']
    """
    return "" if value is None else str(value).replace("+", "").replace("-", "~")


def tag_text(name: str, value: str) -> str:
    """Return a tag; of the one that commlens/tinyprof.hpp sets, the value alone.

    >>> tag_text("tag", "COMM"), tag_text("kind", "IO")
    ('COMM', 'kind=IO')
    """
    return value if name == "tag" else f"{name}={value}"


class Regions:
    """The lines of regions: their times, their tags and the metrics recorded in them."""

    def __init__(self, connection: sqlite3.Connection):
        self.connection = connection
        (ranks,) = connection.execute("SELECT MAX(rank) + 1 FROM rank").fetchone()
        self.ranks = max(ranks or 0, number(facts(connection), "ranks"))
        self.places = Places()
        self.tags: dict[int, list[str]] = defaultdict(list)
        self.metrics: dict[int, list[tuple[int, str]]] = defaultdict(list)
        if not has_table(connection, "metric_value"):
            return
        for region, name, value in connection.execute("SELECT region, name, value FROM tag ORDER BY 1, 2, 3"):
            self.tags[region].append(tag_text(name, value))
        for region, metric, name, unit in connection.execute(METRICS_SQL):
            self.metrics[region].append((metric, name if unit in ("", "1") else f"{name} [{unit}]"))

    def line(self, region: int, name: str, line: str, rows: Sequence[Sequence[Value]]) -> list[str]:
        """Return a line of times."""
        values = self.places.fields(rows, self.ranks)
        return [name, line, *values, ";".join(self.tags[region]), "", *[""] * len(METRIC_VALUES)]

    def metric_lines(self, region: int, name: str) -> Iterator[list[str]]:
        """Return a line for each metric of a region, and one for its values in iterations."""
        for metric, metric_name in self.metrics[region]:
            for by_iteration in (False, True):
                found = self.connection.execute(METRIC_SQL, (region, metric, by_iteration))
                rows = [tuple(row) for row in found]
                if rows:
                    line = "metric+" if by_iteration else "metric"
                    values = self.places.fields(rows, self.ranks, METRIC_VALUES)
                    yield [name, line, *[""] * len(VALUES), ";".join(self.tags[region]), metric_name, *values]


def lines(connection: sqlite3.Connection, source: str) -> Iterator[list[str]]:
    """Return the lines without heading: the whole program, then regions by path."""
    regions = Regions(connection)
    program = [
        (rank, 0, 0, 1, None, app_ns, None, None, None, mpi_ns)
        for rank, app_ns, mpi_ns in connection.execute("SELECT rank, app_ns, mpi_ns FROM rank ORDER BY rank")
    ]
    yield regions.line(0, "", "program", program)
    yield from regions.metric_lines(0, "")
    if not has_regions(connection):
        return
    paths = connection.execute(
        "SELECT region, path FROM region_path WHERE region <> 0 ORDER BY path, region"
    ).fetchall()
    taken: dict[str, int] = {}
    for region, path in tracked(paths, source):
        name = apart(path, taken)
        for line in LINES:
            rows = [tuple(row) for row in connection.execute(line.sql, (region, line.by_iteration))]
            if rows:
                yield regions.line(region, name, line.name, rows)
        yield from regions.metric_lines(region, name)


def write_tinyprof(connection: sqlite3.Connection, file: IO[str], source: str) -> None:
    """Write the file."""
    writer = CsvWriter(file)
    writer.writerow(HEADING)
    writer.writerows(lines(connection, source))
