# SPDX-License-Identifier: Apache-2.0
"""TinyProf's compact CSV: a line for every region, in each field the values of all processes, executions and iterations.

docs/reference/exports.md has the layout.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import IO, NamedTuple

from commlens.base.errors import CommlensError
from commlens.base.outputs import CsvWriter
from commlens.base.progress import tracked
from commlens.export.calltree import apart, has_regions
from commlens.profile.meta import facts, number

PROCESS, EXECUTION, ITERATION = "|", "-", "+"
MOST_EMPTY = 1 << 27
"""Largest number of empty places in a file, for ranks, executions and iterations that are far apart."""

VALUES = ("calls", "open", "time_ns", "time_min_ns", "time_max_ns", "nested_ns", "mpi_ns")
HEADING = ("region", "line", *VALUES)

REGION_SQL = f"""\
SELECT rank, execution, MAX(iteration, 0) AS iteration, {", ".join(VALUES)}
  FROM region_time WHERE region = ? AND (iteration >= 0) = ? ORDER BY rank, execution, iteration"""

LOOP_SQL = f"""\
SELECT rank, execution, MAX(iteration, 0) AS iteration, iterations, NULL, {", ".join(VALUES[2:])}
  FROM loop_time WHERE region = ? AND (iteration >= 0) = ? ORDER BY rank, execution, iteration"""


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

    def compact(self, rows: Sequence[Sequence[int | None]], column: int, ranks: int) -> str:
        """Return one value of rows of rank, execution and iteration, in this order, as a field."""

        def iterations(rows: Iterable[Sequence[int | None]]) -> str:
            return self.placed(((row[2] or 0, str(row[column])) for row in rows), ITERATION)

        def executions(rows: Iterable[Sequence[int | None]]) -> str:
            return self.placed(
                ((key or 0, iterations(some)) for key, some in groupby(rows, key=lambda row: row[1])),
                EXECUTION,
            )

        by_rank = ((key or 0, executions(some)) for key, some in groupby(rows, key=lambda row: row[0]))
        return self.placed(by_rank, PROCESS, ranks - 1)

    def fields(self, rows: Sequence[Sequence[int | None]], ranks: int) -> list[str]:
        """Return the fields of a line; a field without values is empty."""
        return [
            self.compact(rows, column, ranks) if any(row[column] is not None for row in rows) else ""
            for column in range(3, 3 + len(VALUES))
        ]


def lines(connection: sqlite3.Connection, source: str) -> Iterator[list[str]]:
    """Return the lines without heading: the whole program, then regions by path."""
    (ranks,) = connection.execute("SELECT MAX(rank) + 1 FROM rank").fetchone()
    ranks = max(ranks or 0, number(facts(connection), "ranks"))
    places = Places()
    program = [
        (rank, 0, 0, 1, None, app_ns, None, None, None, mpi_ns)
        for rank, app_ns, mpi_ns in connection.execute("SELECT rank, app_ns, mpi_ns FROM rank ORDER BY rank")
    ]
    yield ["", "program", *places.fields(program, ranks)]
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
                yield [name, line.name, *places.fields(rows, ranks)]


def write_tinyprof(connection: sqlite3.Connection, file: IO[str], source: str) -> None:
    """Write the file."""
    writer = CsvWriter(file)
    writer.writerow(HEADING)
    writer.writerows(lines(connection, source))
