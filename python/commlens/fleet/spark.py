# SPDX-License-Identifier: Apache-2.0
"""Opens a dataset for queries with Spark: the same views as DuckDB, for a centre that outgrows one machine.

The dataset is on a file system that all workers reach, under the same path.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from threading import Timer
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.messages import print_message
from commlens.base.packages import load
from commlens.fleet._dataset import TABLES
from commlens.fleet.engine import UNREADABLE_SQL, Answer, Scope, View, asked_sql, plain, views_of

LOCAL = "local[*]"
IDLE_S = 30.0
"""Time after which a query is told to wait for workers: Spark itself waits without a word."""
SETTINGS = {
    "spark.app.name": "commlens fleet",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # A division by zero is NULL, and not an error.  DuckDB returns infinity or NaN.  The questions do not depend on it: their
    # divisors are not 0, or NULLIF makes them NULL.
    "spark.sql.ansi.enabled": "false",
}


class SparkEngine:
    """Spark with the tables of a dataset as views.

    Parameters
    ----------
    master : str
        As of spark-submit: spark://HOST:PORT, yarn, local[4].
    """

    def __init__(self, root: Path, scope: Scope, *, master: str = LOCAL):
        views = views_of(root, scope)
        self._master = master
        sql = load("pyspark.sql", "pyspark")
        self._errors: tuple[type[BaseException], ...] = (
            load("pyspark.errors", "pyspark").PySparkException,
            load("py4j.protocol", "pyspark").Py4JError,
        )
        builder = sql.SparkSession.builder.master(master)
        for name, value in {**SETTINGS, "spark.pyspark.python": sys.executable}.items():
            builder = builder.config(name, value)
        try:
            self._session = builder.getOrCreate()
        except Exception as error:  # without Java, or without a cluster at this address: of several packages
            raise CommlensError(
                f"Spark cannot be started with master {master}: {_first_line(error)}"
            ) from None
        for name, view in views.items():
            self._open(name, view)
        for sql in (asked_sql(scope), UNREADABLE_SQL):
            self.run(sql)

    def _open(self, name: str, view: View) -> None:
        """Create a view; columns that older files lack are NULL.

        Spark gets the columns, so that it need not open all files to find them.
        """
        columns = ", ".join(f"`{column.name}` {_type(column.type)}" for column in TABLES[view.table].columns)
        if view.paths:
            paths = [path.resolve().as_uri() for path in view.paths]
            frame = self._session.read.schema(columns).parquet(*paths)
        else:
            frame = self._session.createDataFrame([], columns)
        frame.where(view.condition).createOrReplaceTempView(name)

    def run(self, sql: str) -> Answer:
        """Run a statement; return titles and rows.

        Raises
        ------
        CommlensError
            Spark refuses it, or a file of the dataset is damaged.
        """
        try:
            frame = self._session.sql(sql)
            with self._notice():
                return list(frame.columns), [plain(tuple(map(_value, row))) for row in frame.collect()]
        except self._errors as error:
            raise CommlensError(f"SQL: {_first_line(error)}") from None

    def query(self, sql: str) -> Answer:
        """Run a query of the user, who may do with Spark what its own shell allows."""
        return self.run(sql)

    @contextmanager
    def _notice(self) -> Iterator[None]:
        """Print a line if no worker takes the work within IDLE_S."""
        timer = Timer(IDLE_S, self._say_if_idle)
        timer.daemon = True
        if not self._master.startswith("local"):
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _say_if_idle(self) -> None:
        with suppress(*self._errors):  # it has ended meanwhile
            tracker = self._session.sparkContext._jsc.sc().statusTracker()
            if len(tracker.getExecutorInfos()) <= 1:  # the driver
                print_message(
                    f"no worker of {self._master} has taken the work within {IDLE_S:.0f} s: is the cluster busy, or are its "
                    "workers smaller than spark.executor.memory and spark.executor.cores?"
                )

    def stop(self) -> None:
        """End Spark."""
        self._session.stop()


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _type(name: str) -> str:
    """Return the name of a type in Spark. Times have no zone, as in DuckDB."""
    return {"TEXT": "STRING", "TIMESTAMP": "TIMESTAMP_NTZ"}.get(name, name)


def _value(value: Any) -> Any:
    """Return a value as DuckDB has it: times in UTC without a zone."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return value
