# SPDX-License-Identifier: Apache-2.0
"""SQL conditions for the constraints of spec/schema.toml on the values of a column."""

from __future__ import annotations

from typing import NamedTuple

from commlens.profile._schema import Column

LARGEST = 1 << 60
"""Upper bound of a counter, and of a checked sum of counters."""


class Ids(NamedTuple):
    """The ids of the rows of a table.

    Attributes
    ----------
    source : str
        The table.
    low, high : int or None
        The first and last id, if all ids between exist.
    """

    source: str
    low: int | None
    high: int | None


def is_difference(column: Column) -> bool:
    """Return whether a column contains differences of counters."""
    return column.low == -LARGEST


def good(column: Column, value: str, span: tuple[int, int], ids: Ids | None, *, exactly: bool) -> str:
    """Return the condition that a value is valid.

    Parameters
    ----------
    value : str
        The expression for the value.
    span : (int, int)
        The smallest and the largest allowed number.
    ids : Ids or None
        The rows that it may refer to.
    exactly : bool
        Distinguish 2.5 from an integer, which takes longer.
    """
    if column.type == "TEXT":
        condition = _good_text(column, value)
    elif column.type == "REAL":
        condition = f"typeof({value}) IN ('real', 'integer')"
    else:
        # Without the sign SQLite would convert the text '5' to a number, because of the type of the column.
        condition = f"+{value} BETWEEN {span[0]} AND {span[1]}"
        if column.low < -LARGEST:
            condition = f"typeof({value}) = 'integer'"
        elif exactly:
            condition = f"typeof({value}) = 'integer' AND {condition}"
        if ids is not None:
            condition += f" AND {_good_id(value, ids, is_zero_good=column.zero)}"
    return f"({value} IS NULL OR ({condition}))" if column.null else condition


def _good_text(column: Column, value: str) -> str:
    if column.values:
        return f"{value} IN ({', '.join(map(repr, column.values))})"
    return f"typeof({value}) = 'text' AND LENGTH(CAST({value} AS BLOB)) <= {column.most}"


def _good_id(value: str, ids: Ids, *, is_zero_good: bool) -> str:
    if ids.low is not None and ids.high is not None:
        condition = f"+{value} BETWEEN {ids.low} AND {ids.high}"
    else:
        condition = f"+{value} IN (SELECT id FROM {ids.source})"
    return f"(+{value} = 0 OR {condition})" if is_zero_good else condition


def temporary(sql: str) -> str:
    """Return the statement that creates a table or view in the temporary schema.

    >>> temporary("CREATE VIEW pair AS SELECT 1")
    'CREATE TEMP VIEW pair AS SELECT 1'
    """
    create, kind, rest = sql.split(" ", 2)
    return f"{create} TEMP {kind} {rest}"
