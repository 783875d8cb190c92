# SPDX-License-Identifier: Apache-2.0
"""SQL conditions for the user's selection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, groupby


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


def comm_condition(pattern: str) -> str:
    """Return the condition that `pattern` selects a communicator: by id, name or glob."""
    if re.fullmatch("[0-9]{1,18}", pattern):
        return f"comm.id = {int(pattern)}"
    text = quoted(pattern)
    return f"({text} IN (comm.name, comm.user_name) OR comm.name GLOB {text} OR comm.user_name GLOB {text})"


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
