# SPDX-License-Identifier: Apache-2.0
"""Runs a query of the user's own on a profile."""

from __future__ import annotations

import sqlite3
from typing import Any

from commlens.base.errors import CommlensError
from commlens.profile.database import Database

Rows = list[tuple[Any, ...]]


def answer(connection: Database, query: str, most: int = -1) -> tuple[list[str], Rows]:
    """Return the column names and rows of one SQL statement.

    Parameters
    ----------
    most : int
        Largest number of rows; -1 means all.

    Raises
    ------
    CommlensError
        SQLite refuses the statement.
    """
    if "\0" in query:
        raise CommlensError("SQL: the query contains a null character")
    try:
        cursor = connection.execute(query)
        rows = [tuple(row) for row in (cursor if most < 0 else cursor.fetchmany(most))]
    # Older Pythons raise sqlite3.Warning for a second statement.
    except (sqlite3.OperationalError, sqlite3.ProgrammingError, sqlite3.Warning) as error:
        if str(error) == "interrupted":
            raise  # by Ctrl-C, as open_profile() knows
        raise CommlensError(f"SQL: {error}") from None
    except UnicodeDecodeError:  # a column name of a hostile profile
        raise CommlensError("SQL: a name in the profile is not UTF-8") from None
    except sqlite3.DatabaseError as error:
        if "authoriz" in str(error):
            raise CommlensError("SQL: other files cannot be attached or written") from None
        raise
    return [column[0] for column in cursor.description or ()], rows
