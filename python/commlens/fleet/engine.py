# SPDX-License-Identifier: Apache-2.0
"""Opens a dataset for queries, with DuckDB: each table of spec/dataset.toml is a view on the files that count."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
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


def asked_sql(scope: Scope) -> str:
    """Return the statement for view asked, whose one row has the date of --at."""
    if scope.at is not None:
        value = f"SELECT CAST('{scope.at:%Y-%m-%d %H:%M:%S}' AS TIMESTAMP) AS at"
    else:
        value = "SELECT MAX(start) - INTERVAL 30 DAY AS at FROM job"
    return f"CREATE OR REPLACE TEMPORARY VIEW asked AS {value}"


UNREADABLE_SQL = """
CREATE OR REPLACE TEMPORARY VIEW unreadable AS
SELECT id, cluster, month, changed, owner, profile, reason
  FROM (SELECT refused.*, ROW_NUMBER() OVER (PARTITION BY cluster, profile ORDER BY changed DESC, id) AS place
          FROM refused) AS latest
 WHERE place = 1 AND NOT EXISTS (
       SELECT 1 FROM job
        WHERE job.cluster = latest.cluster AND job.profile = latest.profile AND job.changed >= latest.changed)
"""
"""View unreadable: the newest refusal of each profile that was not read since, as one that was still being copied."""


def files_of(root: Path, scope: Scope) -> dict[str, list[Path]]:
    """Return the files of each table that may have rows of some jobs.

    Raises
    ------
    CommlensError
        The folder is no dataset.
    """
    state = Log(root).read()
    return {table: [root / file.path for file in state.of(table) if scope.takes(file)] for table in TABLES}


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
        files = files_of(root, scope)
        duckdb = load("duckdb")
        self._error, self._select = duckdb.Error, duckdb.StatementType.SELECT
        self._connection = duckdb.connect(":memory:")
        if memory and not MEMORY.fullmatch(memory):
            raise CommlensError(f"--memory {memory}: is not like 4GB")
        settings = {"memory_limit": memory, "threads": threads, "TimeZone": "UTC"}
        for name, value in settings.items():
            if value:
                self._connection.execute(f"SET {name} = '{value}'")
        for table, paths in files.items():
            self._open(table, paths, scope.condition(table))
        for sql in (asked_sql(scope), UNREADABLE_SQL):
            self._connection.execute(sql)
        # Queries of users read the dataset and nothing else.
        self._connection.execute(f"SET allowed_directories = [{quoted(str(root.resolve()))}]")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def _open(self, table: str, paths: Sequence[Path], condition: str) -> None:
        """Create the view of a table; columns that older files lack are NULL."""
        have: set[str] = set()
        source = ""
        if paths:
            listed = ", ".join(quoted(str(path.resolve())) for path in paths)
            source = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
            have = {row[0] for row in self._fetch(f"DESCRIBE SELECT * FROM {source}")}
        columns = ", ".join(
            f"CAST({column.name if column.name in have else 'NULL'} AS {column.type}) AS {column.name}"
            for column in TABLES[table].columns
        )
        where = f"FROM {source} WHERE {condition}" if paths else "WHERE false"
        self._fetch(f"CREATE OR REPLACE TEMPORARY VIEW {table} AS SELECT {columns} {where}")

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
            return [column[0] for column in done.description or ()], done.fetchall()
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
