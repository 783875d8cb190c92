# SPDX-License-Identifier: Apache-2.0
"""Reports which MPI procedures the application imports, and whether their calls are measured."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.profile.shape import has_table
from commlens.render.table import Column, Table
from commlens.reports._bindings import CXX, CXX_TITLE

Row = dict[str, Any]

STATES = ("unseen", "measured", "skipped", "absent")
"""In the order of the list."""

COLUMNS = (
    Column("procedure", right=False),
    Column("calls"),
    Column("class", right=False),
    Column("imported by", right=False, wide=1),
)


def statement(states: Sequence[str] = ()) -> str:
    """Return the SQL for the rows, with these states or all."""
    order = " ".join(f"WHEN '{state}' THEN {i}" for i, state in enumerate(STATES))
    chosen = f"\n WHERE state IN ({', '.join(repr(state) for state in states)})" if states else ""
    executable = "(SELECT value FROM meta WHERE key = 'program')"
    by_executable = f"INSTR(',' || objects || ',', ',' || {executable} || ',') > 0"
    return (
        "SELECT procedure, class, state, reason, calls, objects\n  FROM procedure"
        f"{chosen}\n ORDER BY CASE state {order} END, reason, COALESCE(calls, 0) > 0 DESC,\n"
        f"          COALESCE({by_executable}, 0) DESC, calls DESC, procedure"
    )


def read_coverage(connection: sqlite3.Connection, sql: str) -> list[Row]:
    """Return the rows of a statement; refuse a profile that is older than this table."""
    if not has_table(connection, "coverage"):
        raise CommlensError(
            "this profile does not contain the imports of the application: an older commlens wrote it"
        )
    return [dict(row) for row in connection.execute(sql)]


def summary(rows: Sequence[Row]) -> str:
    """Return one sentence on all rows.

    >>> summary([{"state": "measured"}, {"state": "unseen"}, {"state": "measured"}])
    '3 procedures: 1 unseen, 2 measured'
    """
    counts = {state: sum(row["state"] == state for row in rows) for state in STATES}
    parts = [f"{count} {state}" for state, count in counts.items() if count]
    noun = "procedure" if len(rows) == 1 else "procedures"
    return f"{len(rows)} {noun}" + (f": {', '.join(parts)}" if parts else "")


def importers(row: Row) -> list[str]:
    """Return the file names of the objects that import a procedure."""
    return row["objects"].split(",") if row["objects"] else []


def with_bindings(rows: Sequence[Row]) -> set[str]:
    """Return the objects that contain the C++ bindings: those that import nearly all procedures that these call.

    Releases of an MPI library differ in a few.
    """
    found = Counter(name for row in rows if row["procedure"] in CXX for name in set(importers(row)))
    return {name for name, count in found.items() if count >= 0.9 * len(CXX)}


def of_bindings(rows: Sequence[Row]) -> list[Row]:
    """Return the measured procedures without calls that only the C++ bindings import."""
    objects = with_bindings(rows)
    return [
        row
        for row in rows
        if row["procedure"] in CXX
        and row["state"] == "measured"
        and row["calls"] == 0
        and set(importers(row)) <= objects
    ]


def bindings_text(folded: Sequence[Row]) -> str:
    """Return the line that stands for the procedures of the C++ bindings."""
    names = ", ".join(sorted({name for row in folded for name in importers(row)}))
    return (
        f"and {count_text(len(folded), 'procedure')} without calls, which {CXX_TITLE} import into {names}; "
        "'commlens coverage --state measured' lists them"
    )


def draw(rows: Sequence[Row], folded: Sequence[Row] = ()) -> Table:
    """Return the procedures as a table, grouped by reason; those of `folded` share one line."""
    table = Table(COLUMNS)
    hidden = {row["procedure"] for row in folded}
    for (state, reason), group in groupby(rows, key=lambda row: (row["state"], row["reason"])):
        is_measured = (state, reason) == ("measured", None)
        if table.rows or not is_measured:
            if table.rows:
                table.say("")
            heading = state + (f": {reason}" if reason else "")
            table.say(heading, style="yellow" if state == "unseen" else "bold")
        for row in group:
            if is_measured and row["procedure"] in hidden:
                continue
            calls = "" if row["calls"] is None else f"{row['calls']:,}"
            objects = "looked up by name" if row["objects"] is None else ", ".join(importers(row))
            table.add([row["procedure"], calls, row["class"] or "", objects])
        if is_measured and folded:
            table.say(bindings_text(folded))
    return table
