# SPDX-License-Identifier: Apache-2.0
"""Reports which MPI procedures the application imports, and whether their calls are measured."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from commlens.base.errors import CommlensError
from commlens.profile.shape import has_table
from commlens.render.table import Column, Table

Row = dict[str, Any]

# In the order of the list, with the heading of each.
STATES = {
    "unseen": "not measured",
    "measured": "measured",
    "skipped": "deliberately skipped",
    "absent": "not in this MPI library",
}

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
    return (
        "SELECT procedure, class, state, reason, calls, objects\n  FROM procedure"
        f"{chosen}\n ORDER BY CASE state {order} END, reason, calls DESC, procedure"
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
    '3 procedures: 1 not measured, 2 measured'
    """
    counts = {state: sum(row["state"] == state for row in rows) for state in STATES}
    parts = [f"{count} {STATES[state]}" for state, count in counts.items() if count]
    noun = "procedure" if len(rows) == 1 else "procedures"
    return f"{len(rows)} {noun}" + (f": {', '.join(parts)}" if parts else "")


def draw(rows: Sequence[Row]) -> Table:
    """Return the procedures as a table, grouped by reason."""
    table = Table(COLUMNS)
    heading: tuple[str, str | None] = ("measured", None)
    for row in rows:
        here = (row["state"], row["reason"])
        if here != heading:
            if table.rows:
                table.say("")
            heading = here
            reason = f": {row['reason']}" if row["reason"] else ""
            table.say(STATES[row["state"]] + reason, style="yellow" if row["state"] == "unseen" else "bold")
        calls = "" if row["calls"] is None else f"{row['calls']:,}"
        objects = "looked up by name" if row["objects"] is None else row["objects"].replace(",", ", ")
        table.add([row["procedure"], calls, row["class"] or "", objects])
    return table
