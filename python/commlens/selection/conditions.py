# SPDX-License-Identifier: Apache-2.0
"""SQL conditions for the user's selection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from typing import Any


def quoted(text: str) -> str:
    r"""Return text as an SQL literal, with the code of each character that cannot be shown.

    Bytes that are not UTF-8 are replaced as in a profile.

    >>> print(quoted("it's"), quoted("a\x1bb\n"), quoted("caf\udce9"))
    'it''s' ('a' || char(27) || 'b' || char(10)) 'caf�'
    """
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    runs = ((shown, "".join(run)) for shown, run in groupby(text, str.isprintable))
    parts = [[quoted(run)] if shown else [f"char({ord(c)})" for c in run] for shown, run in runs]
    return f"({' || '.join(chain.from_iterable(parts))})"


MOST_RANKS = 999_999_999
COMM_ID = re.compile("[0-9]{1,18}")

PREDEFINED = {"W": "MPI_COMM_WORLD", "S": "MPI_COMM_SELF"}
"""Names in MPI by the letter that the names of predefined communicators in a profile begin with."""

PREDEFINED_SQL = f"""\
CASE WHEN comm.kind = 'intra' AND comm.creator IS NULL
     THEN CASE SUBSTR(comm.name, 1, 1) {" ".join(f"WHEN '{letter}' THEN '{name}'" for letter, name in PREDEFINED.items())} END END"""
"""Expression for the name in MPI of a predefined communicator, NULL for others."""


def predefined_name(line: Mapping[str, Any]) -> str | None:
    """Return the name in MPI of a predefined communicator, from its `communicator`, `kind` and `creator`.

    >>> predefined_name({"communicator": "S*.1", "kind": "intra", "creator": None})
    'MPI_COMM_SELF'
    """
    is_predefined = line["kind"] == "intra" and line["creator"] is None
    return PREDEFINED.get(line["communicator"][:1]) if is_predefined else None


def comm_condition(pattern: str) -> str:
    """Return the condition that `pattern` selects a communicator.

    A pattern is an id, a name or glob, or the name of a family with its number.

    >>> comm_condition("12"), comm_condition("d0.*#7").split(" OR ")[-1]
    ('comm.id = 12', "(comm.family = 7 AND comm.name GLOB 'd0.*'))")
    """
    if COMM_ID.fullmatch(pattern):
        return f"comm.id = {int(pattern)}"
    text = quoted(pattern)
    names = ("comm.name", "comm.user_name", PREDEFINED_SQL)
    conditions = [f"{text} IN ({', '.join(names)})", *(f"{name} GLOB {text}" for name in names)]
    family = re.fullmatch("(.*)#([0-9]{1,18})", pattern, re.DOTALL)
    if family:
        conditions.append(f"(comm.family = {int(family[2])} AND comm.name GLOB {quoted(family[1])})")
    return f"({' OR '.join(conditions)})"


class CommSize(str):
    """Selects communicators by their number of ranks; the text says so in words.

    Attributes
    ----------
    low, high : int
        Smallest and largest number, both included; of an intercommunicator, of both groups together.
    """

    __slots__ = ("high", "low")
    low: int
    high: int

    def __new__(cls, low: int, high: int) -> CommSize:
        """Return the selection."""
        noun = "rank" if high == 1 else "ranks"
        number = str(low) if low == high else f"{low} or more" if high == MOST_RANKS else f"{low} to {high}"
        size = super().__new__(cls, f"communicators of {number} {noun}")
        size.low, size.high = low, high
        return size

    def sql(self) -> str:
        """Return the condition on a row of comm."""
        return f"comm.size + COALESCE(comm.remote_size, 0) BETWEEN {self.low} AND {self.high}"


def parse_comm_size(text: str) -> CommSize:
    """Return the communicators of a size, or of a range of sizes with both bounds.

    >>> [str(parse_comm_size(text)) for text in ("16", "2:64", "8:", ":1")]
    ['communicators of 16 ranks', 'communicators of 2 to 64 ranks', 'communicators of 8 or more ranks', \
'communicators of 1 rank']
    """
    match = re.fullmatch("([0-9]{0,9})(:?)([0-9]{0,9})", text)
    if not match or not (match[1] or match[3]):
        raise ValueError(f"'{text}' is neither a number of ranks nor a range LOW:HIGH")
    low = int(match[1] or 1)
    high = int(match[3] or MOST_RANKS) if match[2] else low
    if high < low:
        raise ValueError(f"'{text}' is an empty range")
    return CommSize(low, high)


def comm_conditions(patterns: Sequence[str]) -> list[str]:
    """Return the conditions on a row of comm: one of the names matches, and one of the sizes.

    Ids are one list, because SQLite limits the depth of an expression, and each OR adds to it.

    >>> comm_conditions(["7"]), comm_conditions(["7", "12"])
    (['comm.id = 7'], ['comm.id IN (7, 12)'])
    """
    names = [pattern for pattern in patterns if not isinstance(pattern, CommSize)]
    ids = [str(int(name)) for name in names if COMM_ID.fullmatch(name)]
    several = [f"comm.id IN ({', '.join(ids)})"] if len(ids) > 1 else []
    others = [comm_condition(name) for name in names if not several or not COMM_ID.fullmatch(name)]
    sizes = [pattern.sql() for pattern in patterns if isinstance(pattern, CommSize)]
    return [*any_of([*several, *others]), *any_of(sizes)]


def any_of(conditions: Sequence[str]) -> list[str]:
    """Return the conditions joined by OR, as a list of one condition; empty without conditions."""
    if len(conditions) > 1:
        return ["(" + " OR ".join(conditions) + ")"]
    return list(conditions)


def in_rows(columns: Sequence[str], rows: Sequence[tuple[int, ...]]) -> str:
    """Return the condition that columns have the values of one of the rows.

    >>> in_rows(["region", "line"], [(0, 1), (2, 5)])
    '(region, line) IN (VALUES (0, 1), (2, 5))'
    """
    values = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
    return f"({', '.join(columns)}) IN (VALUES {values})" if rows else "0"


def where(conditions: Sequence[str]) -> str:
    """Return a WHERE clause, or an empty text."""
    return "\n   WHERE " + "\n     AND ".join(conditions) if conditions else ""
