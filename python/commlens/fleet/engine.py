# SPDX-License-Identifier: Apache-2.0
"""Opens a dataset for queries, with DuckDB: each table of spec/dataset.toml is a view on the files that count."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from commlens.base.errors import CommlensError
from commlens.base.packages import load
from commlens.fleet._dataset import TABLES
from commlens.fleet.files import cluster_folder
from commlens.fleet.log import DataFile, Log

Answer = tuple[list[str], list[tuple[Any, ...]]]
MEMORY = re.compile(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", re.IGNORECASE)


@dataclass(frozen=True)
class Scope:
    """Which jobs a question is about. Empty texts: all.

    Attributes
    ----------
    since, until : str
        First and last month, as 2026-03.
    at : datetime or None
        The date of a change, for question regressions; without it, 30 days before the newest job.
    """

    code: str = ""
    cluster: str = ""
    since: str = ""
    until: str = ""
    at: datetime | None = None

    def takes(self, file: DataFile) -> bool:
        """Return whether a file may have rows of these jobs."""
        return (
            (not self.cluster or file.cluster == cluster_folder(self.cluster))
            and (not self.since or file.month >= self.since)
            and (not self.until or file.month <= self.until)
        )

    def condition(self, table: str) -> str:
        """Return the condition that a row is of these jobs."""
        parts = [f"cluster = {quoted(self.cluster)}"] if self.cluster else []
        parts += [f"month >= {quoted(self.since)}"] if self.since else []
        parts += [f"month <= {quoted(self.until)}"] if self.until else []
        if self.code and TABLES[table].is_of_job:
            parts.append(f"code = {quoted(self.code)}")
        return " AND ".join(parts) or "1 = 1"


class Engine(Protocol):
    """What answers queries."""

    def run(self, sql: str) -> Answer:
        """Run a statement; return titles and rows."""

    def query(self, sql: str) -> Answer:
        """Run a query of the user; return titles and rows."""


def quoted(text: str) -> str:
    """Return a text as SQL.

    >>> quoted("it's")
    "'it''s'"
    """
    if "\\" in text or "\0" in text:
        raise CommlensError("a backslash cannot be part of a name here")
    return "'" + text.replace("'", "''") + "'"


IS_PLAUSIBLE = "COALESCE(job.start <= job.changed + INTERVAL 1 DAY, true)"
"""Condition on a row of table job: it did not start more than a day after its profile was written, as by a wrong clock."""


def asked_sql(scope: Scope) -> str:
    """Return the statement for view asked, whose one row has the date of --at."""
    if scope.at is not None:
        value = f"SELECT CAST('{scope.at:%Y-%m-%d %H:%M:%S}' AS TIMESTAMP) AS at"
    else:
        value = f"SELECT MAX(start) - INTERVAL 30 DAY AS at FROM job WHERE {IS_PLAUSIBLE}"
    return f"CREATE OR REPLACE TEMPORARY VIEW asked AS {value}"


UNREADABLE_SQL = """
CREATE OR REPLACE TEMPORARY VIEW unreadable AS
SELECT id, cluster, month, changed, owner, profile, reason
  FROM (SELECT refused.*, ROW_NUMBER() OVER (PARTITION BY cluster, profile ORDER BY changed DESC, id) AS place
          FROM refused) AS latest
 WHERE place = 1 AND NOT EXISTS (
       SELECT 1 FROM every_job
        WHERE every_job.cluster = latest.cluster AND every_job.profile = latest.profile
          AND every_job.changed >= latest.changed)
"""
"""View unreadable: the newest refusal of each profile that was not read since, as one that was still being copied."""


@dataclass(frozen=True)
class View:
    """A view on rows of files.

    Attributes
    ----------
    table : str
        Table of these files.
    condition : str
        Which of their rows.
    """

    table: str
    paths: list[Path]
    condition: str


def views_of(root: Path, scope: Scope) -> dict[str, View]:
    """Return the views by name: each table with the rows of some jobs, and every_job.

    View every_job has the jobs of all codes and months. Rows without a code are matched with it, and rows with a month of
    another time zone.

    Raises
    ------
    CommlensError
        The folder is no dataset.
    """
    state = Log(root).read()

    def view(table: str, of: Scope) -> View:
        paths = [root / file.path for file in state.of(table) if of.takes(file)]
        return View(table, paths, of.condition(table))

    views = {table: view(table, scope) for table in TABLES}
    return {**views, "every_job": view("job", Scope(cluster=scope.cluster))}


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with floating-point numbers in the place of decimal ones, which literals such as 0.5 are.

    >>> plain(("a", 1, Decimal("1.50")))
    ('a', 1, 1.5)
    """
    return tuple(float(value) if isinstance(value, Decimal) else value for value in row)


class DuckEngine:
    """DuckDB with the tables of a dataset as views.

    Parameters
    ----------
    memory : str
        Most memory, such as 4GB; empty: what DuckDB takes by itself.
    threads : int
        Most threads; 0: all processors.
    """

    def __init__(self, root: Path, scope: Scope, *, memory: str = "", threads: int = 0):
        views = views_of(root, scope)
        duckdb = load("duckdb")
        self._error, self._select = duckdb.Error, duckdb.StatementType.SELECT
        self._connection = duckdb.connect(":memory:")
        if memory and not MEMORY.fullmatch(memory):
            raise CommlensError(f"--memory {memory}: is not like 4GB")
        settings = {"memory_limit": memory, "threads": threads, "TimeZone": "UTC"}
        for name, value in settings.items():
            if value:
                self._connection.execute(f"SET {name} = '{value}'")
        for name, view in views.items():
            self._open(name, view)
        for sql in (asked_sql(scope), UNREADABLE_SQL):
            self._connection.execute(sql)
        # Queries of users read the dataset and nothing else.
        self._connection.execute(f"SET allowed_directories = [{quoted(str(root.resolve()))}]")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def _open(self, name: str, view: View) -> None:
        """Create a view; columns that older files lack are NULL."""
        have: set[str] = set()
        source = ""
        if view.paths:
            listed = ", ".join(quoted(str(path.resolve())) for path in view.paths)
            source = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
            have = {row[0] for row in self._fetch(f"DESCRIBE SELECT * FROM {source}")}
        columns = ", ".join(
            f"CAST({column.name if column.name in have else 'NULL'} AS {column.type}) AS {column.name}"
            for column in TABLES[view.table].columns
        )
        where = f"FROM {source} WHERE {view.condition}" if view.paths else "WHERE false"
        self._fetch(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT {columns} {where}")

    def _fetch(self, sql: str) -> list[tuple[Any, ...]]:
        return self.run(sql)[1]

    def run(self, sql: str) -> Answer:
        """Run a statement; return titles and rows.

        Raises
        ------
        CommlensError
            DuckDB refuses it, or a file of the dataset is damaged.
        """
        try:
            done = self._connection.execute(sql)
            return [column[0] for column in done.description or ()], list(map(plain, done.fetchall()))
        except self._error as error:
            raise refused(error) from None

    def query(self, sql: str) -> Answer:
        """Run a query of the user: one SELECT statement, which changes nothing.

        Raises
        ------
        CommlensError
            It is something else, or as run().
        """
        try:
            kinds = [statement.type for statement in self._connection.extract_statements(sql)]
        except self._error as error:
            raise refused(error) from None
        if kinds != [self._select]:
            raise CommlensError("SQL: a query is one SELECT statement")
        return self.run(sql)


def refused(error: Exception) -> CommlensError:
    """Return the error of DuckDB as one line."""
    lines = str(error).splitlines()
    return CommlensError(f"SQL: {lines[0] if lines else error}")
