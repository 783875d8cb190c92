# SPDX-License-Identifier: Apache-2.0
"""Tables and views of a profile as data frames of pandas or Polars.

>>> commlens.frames.pandas("job.db", "region_total").sort_values("time_ns")  # doctest: +SKIP
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from commlens.base.packages import load
from commlens.base.progress import tracked
from commlens.export.relations import batches, columns, known
from commlens.profile import open_profile


def names(profile: str | os.PathLike[str]) -> list[str]:
    """Return the names of the tables and views of a profile; `commlens schema` describes them."""
    with open_profile(os.fspath(profile)) as connection:
        return list(known(connection))


def pandas(profile: str | os.PathLike[str], name: str) -> Any:
    """Return a table or view as a pandas.DataFrame.

    Parameters
    ----------
    profile : path
        Path of the profile: a file, or a directory of shards.
    name : str
        Name of the table or view.

    Returns
    -------
    pandas.DataFrame
        One row per row of the table, one column per column. Types are Int64, Float64 and string; NULL is pandas.NA.

    Raises
    ------
    CommlensError
        The profile cannot be read, the table or view does not exist, or the package pandas is missing.
    """
    package = load("pandas")
    types = {"INTEGER": "Int64", "REAL": "Float64", "TEXT": "string"}
    with open_profile(os.fspath(profile)) as connection:
        known(connection, (name,))
        parts = [
            package.DataFrame(
                {
                    column.name: package.array(values, dtype=types[column.type])
                    for column, values in zip(columns(connection, name), across)
                }
            )
            for across in transposed(connection, name)
        ]
    return package.concat(parts, ignore_index=True)


def polars(profile: str | os.PathLike[str], name: str) -> Any:
    """Return a table or view as a polars.DataFrame.

    Parameters and errors are those of `pandas`.

    Returns
    -------
    polars.DataFrame
        One row per row of the table, one column per column. Types are Int64, Float64 and String; NULL is null.
    """
    package = load("polars")
    types = {"INTEGER": package.Int64, "REAL": package.Float64, "TEXT": package.String}
    with open_profile(os.fspath(profile)) as connection:
        known(connection, (name,))
        schema = {column.name: types[column.type] for column in columns(connection, name)}
        parts = [
            package.DataFrame(dict(zip(schema, across)), schema=schema)
            for across in transposed(connection, name)
        ]
    return package.concat(parts)


def transposed(connection: sqlite3.Connection, name: str) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield a table or view in parts, each as a list of columns; an empty table yields one part without rows."""
    is_empty = True
    for rows in tracked(batches(connection, name), name):
        is_empty = False
        yield list(zip(*rows))
    if is_empty:
        yield [[] for _ in columns(connection, name)]
