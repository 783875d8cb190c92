# SPDX-License-Identifier: Apache-2.0
"""Rows that name a parent: communicators and code regions. Following parents comes to an end."""

from __future__ import annotations

import sqlite3

MOST_DEPTH = 129
"""Regions within each other: a thread tells 128 apart, and the others are one more."""
MOST_PATHS = 1 << 27
"""Characters of the paths of all regions together."""


def in_loops(connection: sqlite3.Connection, source: str) -> list[int]:
    """Return the communicators whose parents lead back to them, one for each loop."""
    sql = f"SELECT 1 FROM {source} WHERE parent >= id LIMIT 1"
    if connection.execute(sql).fetchone() is None:
        return []  # parents with smaller numbers end somewhere
    parent = dict(connection.execute(f"SELECT id, parent FROM {source}").fetchall())
    done: set[int] = set()
    found = []
    for start in parent:
        path: dict[int, None] = {}
        id = start
        while id is not None and id in parent and id not in done and id not in path:
            path[id] = None
            id = parent[id]
        if id in path:
            found.append(id)
        done.update(path)
    return found


def too_deep(connection: sqlite3.Connection, source: str) -> list[int]:
    """Return the regions that lie deeper than any thread goes, or that need too long a path; parents come before them."""
    depths: dict[int, tuple[int, int]] = {}
    found = []
    total = 0
    for id, parent, length in connection.execute(
        f"SELECT id, parent, LENGTH(name) FROM {source} ORDER BY id"
    ):
        depth, path = depths.get(parent, (-1, 0))
        depths[id] = depth + 1, path + 1 + (length if isinstance(length, int) else 0)
        total += depths[id][1]
        if depths[id][0] > MOST_DEPTH or total > MOST_PATHS or (id == 0) != (parent is None):
            found.append(id)
            total -= depths[id][1]
            depths[id] = 0, length or 0
    return found


def mend_regions(connection: sqlite3.Connection) -> list[int]:
    """Make the temporary table of regions a tree: the whole program is there and has no parent; return who else has none."""
    connection.execute("UPDATE temp.region SET parent = NULL, kind = 'program' WHERE id = 0")
    connection.execute("INSERT OR IGNORE INTO temp.region VALUES (0, NULL, '', 'program')")
    connection.execute(
        "UPDATE temp.region SET parent = 0 WHERE id <> 0 AND (parent IS NULL OR parent NOT IN (SELECT id FROM temp.region))"
    )
    found = too_deep(connection, "temp.region")
    connection.executemany("UPDATE temp.region SET parent = 0 WHERE id = ?", [(id,) for id in found])
    return found
