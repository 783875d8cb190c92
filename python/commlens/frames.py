# SPDX-License-Identifier: Apache-2.0
"""A profile in Python: its tables and views as data frames of pandas or Polars, and its page in a notebook.

>>> job = commlens.open("job.db")  # doctest: +SKIP
>>> job.pandas("region_total").sort_values("time_ns")  # doctest: +SKIP
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from commlens.base.escape import in_attribute
from commlens.base.packages import load
from commlens.base.progress import tracked
from commlens.export.relations import batches, columns, known
from commlens.profile import open_profile


class Profile:
    """A profile; `commlens.open` returns it. Each method opens and checks the file, and closes it again.

    Parameters
    ----------
    path : path
        Path of the profile: a file, or a directory of shards.

    Raises
    ------
    CommlensError
        The profile cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open_profile(self.path):
            pass

    def __repr__(self) -> str:
        return f"commlens.open({self.path!r})"

    def names(self) -> list[str]:
        """Return the names of the tables and views; `commlens schema` describes them."""
        with open_profile(self.path) as connection:
            return list(known(connection))

    def pandas(self, name: str) -> Any:
        """Return a table or view as a pandas.DataFrame.

        Parameters
        ----------
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
        with open_profile(self.path) as connection:
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

    def polars(self, name: str) -> Any:
        """Return a table or view as a polars.DataFrame.

        Parameters and errors are those of `pandas`.

        Returns
        -------
        polars.DataFrame
            One row per row of the table, one column per column. Types are Int64, Float64 and String; NULL is null.
        """
        package = load("polars")
        types = {"INTEGER": package.Int64, "REAL": package.Float64, "TEXT": package.String}
        with open_profile(self.path) as connection:
            known(connection, (name,))
            schema = {column.name: types[column.type] for column in columns(connection, name)}
            parts = [
                package.DataFrame(dict(zip(schema, across)), schema=schema)
                for across in transposed(connection, name)
            ]
        return package.concat(parts)

    def page(self, view: str = "summary", height: int = 700) -> Page:
        """Return the page of `commlens html`; a notebook displays it if it is the value of a cell.

        Parameters
        ----------
        view : str
            The view to show first: summary, communicators, sizes, ranks, peers, regions, callsites, timeline, cost or
            query; with a filter as in the address of a page: "sizes&family=2".
        height : int
            Height in the notebook, in pixels.
        """
        from commlens.page.build import page  # needs numpy, which takes longer to load than the rest

        with open_profile(self.path) as connection:
            return Page(page(connection, Path(self.path), start=f"view={view}"), height)


class Page:
    """A page of HTML; `text` can be written to a file.

    Parameters
    ----------
    text : str
        The page.
    height : int
        Height in a notebook, in pixels.
    """

    def __init__(self, text: str, height: int) -> None:
        self.text, self.height = text, height

    def _repr_html_(self) -> str:
        """Return a frame with the page, for a notebook. Its script cannot reach the notebook."""
        return (
            f'<iframe sandbox="allow-scripts" style="width:100%;height:{self.height}px;border:0" '
            f'srcdoc="{in_attribute(self.text)}"></iframe>'
        )


def transposed(connection: sqlite3.Connection, name: str) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield a table or view in parts, each as a list of columns; an empty table yields one part without rows."""
    is_empty = True
    for rows in tracked(batches(connection, name), name):
        is_empty = False
        yield list(zip(*rows))
    if is_empty:
        yield [[] for _ in columns(connection, name)]
