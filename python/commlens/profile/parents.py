# SPDX-License-Identifier: Apache-2.0
"""Finds loops and excessive depth among rows that name a parent: communicators, call sites and code regions."""

from __future__ import annotations

import sqlite3

MOST_DEPTH = 129
"""Nesting depth of regions: a thread stores 128 levels and counts all deeper regions as one more."""
MOST_PATHS = 1 << 27
"""Characters in the paths of all regions, added up."""


def in_loops(connection: sqlite3.Connection, source: str, column: str) -> list[int]:
    """Return one row of each loop of parents, which are in a column or an expression."""
    sql = f"SELECT 1 FROM {source} WHERE {column} >= id LIMIT 1"
    if connection.execute(sql).fetchone() is None:
        return []  # parents with smaller numbers end somewhere
    parent = dict(connection.execute(f"SELECT id, {column} FROM {source}").fetchall())
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
    """Return the regions nested too deeply or with too long a path. Parents have smaller ids than their children."""
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
    """Make the temporary table of regions a tree below region 0; return the regions that were moved there."""
    connection.execute("UPDATE temp.region SET parent = NULL, kind = 'program' WHERE id = 0")
    connection.execute("INSERT OR IGNORE INTO temp.region VALUES (0, NULL, '', 'program')")
    connection.execute(
        "UPDATE temp.region SET parent = 0 WHERE id <> 0 AND (parent IS NULL OR parent NOT IN (SELECT id FROM temp.region))"
    )
    found = too_deep(connection, "temp.region")
    connection.executemany("UPDATE temp.region SET parent = 0 WHERE id = ?", [(id,) for id in found])
    return found
