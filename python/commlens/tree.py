# SPDX-License-Identifier: Apache-2.0
"""Trees: the communicators of a run, which was made from which."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from commlens.callsites import callsite_labels
from commlens.report import line_origin, line_size, name_of
from commlens.table import Column, Table
from commlens.units import time_text

Row = dict[str, Any]

FOLDED_SQL = """\
SELECT family.family AS line, family.name AS communicator, user_name, kind, communicators,
       size_min, size_max, members, family.parent AS parent_line, above.name AS parent, creator,
       callsite AS created_at, topology, created_ns, freed, freed_ns,
       COALESCE(calls, 0) AS calls, COALESCE(time_ns, 0) AS time_ns, rank_max_ns, rank_avg_ns
  FROM family
       JOIN (SELECT family, MIN(created_ns) AS created_ns, MAX(freed_ns) AS freed_ns,
                    SUM(CASE WHEN freed_ns IS NULL THEN 0 ELSE communicators END) AS freed,
                    CASE WHEN COUNT(*) = 1 THEN MIN(members) END AS members
               FROM comm GROUP BY family) AS life ON life.family = family.family
       LEFT JOIN (SELECT family, name FROM family) AS above ON above.family = family.parent
       LEFT JOIN family_total ON family_total.family = family.family
 WHERE kind IN ('intra', 'inter')
 ORDER BY created_ns, line"""

UNFOLDED_SQL = """\
SELECT comm.id AS line, comm.name AS communicator, comm.user_name, comm.kind, 1 AS communicators,
       comm.size + COALESCE(comm.remote_size, 0) AS size_min, comm.size + COALESCE(comm.remote_size, 0) AS size_max,
       comm.members, comm.parent AS parent_line, above.name AS parent, op.name AS creator,
       comm.callsite AS created_at, comm.topology, comm.created_ns, comm.freed_ns IS NOT NULL AS freed, comm.freed_ns,
       COALESCE(calls, 0) AS calls, COALESCE(time_ns, 0) AS time_ns, rank_max_ns, rank_avg_ns
  FROM comm
       LEFT JOIN comm AS above ON above.id = comm.parent
       LEFT JOIN op ON op.id = comm.creator
       LEFT JOIN comm_total ON comm_total.comm = comm.id
 WHERE comm.kind IN ('intra', 'inter')
 ORDER BY comm.created_ns, line"""

COLUMNS = (
    Column("communicator", right=False),
    Column("size", right=False),
    Column("calls"),
    Column("max/rank"),
    Column("avg/rank"),
    Column("created", wide=1),
    Column("freed", wide=2),
)

DEEPEST_PREFIX = 45  # characters; a chain of a thousand duplicates of duplicates stays within the page
MEMBERS_SHOWN = 40  # characters; longer lists of ranks are in csv, json and the table comm


@dataclass
class Tree:
    """Rows of which each may have a parent, and the children of each in the order of the rows.

    Attributes
    ----------
    labels : dict of int to str
        What call sites of communicators are called.
    id, parent : str
        Columns with the number of a row, and with that of its parent.
    """

    rows: list[Row]
    labels: dict[int, str] = field(default_factory=dict)
    id: str = "line"
    parent: str = "parent_line"

    def walk(self, top: int | None) -> list[tuple[str, str, Row | int]]:
        """Return the tree depth first: the prefix of a row, that of its second line, and the row.

        In place of a row stands a number where `top` cut the children of a node: how many are left out.
        """
        parents = rooted({row[self.id]: row[self.parent] for row in self.rows})
        children: dict[int | None, list[Row]] = {}
        for row in self.rows:
            children.setdefault(parents[row[self.id]], []).append(row)
        result: list[tuple[str, str, Row | int]] = []
        # What is still to be drawn, last first: a stack instead of recursion, for chains of any length.
        stack: list[tuple[str, bool, bool, Row | int]] = [
            ("", True, True, row) for row in reversed(children.get(None, []))
        ]
        while stack:
            prefix, is_root, is_last, node = stack.pop()
            own = "" if is_root else prefix + ("└─ " if is_last else "├─ ")
            below = "" if is_root else prefix + ("   " if is_last else "│  ")
            below_rows = [] if isinstance(node, int) else children.get(node[self.id], [])
            result.append((own, below + ("│ " if below_rows else "  "), node))
            nodes: list[Row | int] = list(below_rows)
            if top is not None and len(below_rows) > top:
                nodes[top:] = [len(below_rows) - top]
            stack += [
                (below, False, i + 1 == len(nodes), node) for i, node in reversed(list(enumerate(nodes)))
            ]
        return result


def rooted(parent: Mapping[int, int | None]) -> dict[int, int | None]:
    """Return the parents of rows; None for one whose parent is no row, and for one of each loop.

    >>> rooted({1: None, 2: 1, 3: 9, 4: 5, 5: 4})
    {1: None, 2: 1, 3: None, 4: None, 5: 4}
    """
    result = {id: above if above in parent else None for id, above in parent.items()}
    done: set[int] = set()
    for start in result:
        path: set[int] = set()
        id: int | None = start
        while id is not None and id not in done and id not in path:
            path.add(id)
            id = result[id]
        if id is not None and id in path:
            result[id] = None
        done |= path
    return result


def read_tree(connection: sqlite3.Connection, sql: str) -> Tree:
    """Read the communicators."""
    rows = [dict(row) for row in connection.execute(sql)]
    sites = [row["created_at"] for row in rows if row["created_at"] is not None]
    return Tree(rows, callsite_labels(connection, sites))


def freed_text(row: Row) -> str:
    """Return when a communicator was freed, or how many of a family were."""
    count, freed = row["communicators"], row["freed"]
    if count == 1:
        return time_text(row["freed_ns"]) if freed else "-"
    if freed in (0, count):
        return "all" if freed else "-"
    return f"{freed} of {count}"


def prefix_text(prefix: str) -> str:
    """Return the lines in front of a node; of very deep ones the last part."""
    return prefix if len(prefix) <= DEEPEST_PREFIX else "… " + prefix[2 - DEEPEST_PREFIX :]


def draw(tree: Tree, top: int | None) -> Table:
    """Return the tree as a table, with two lines for each communicator that was made from another."""
    table = Table(COLUMNS)
    for prefix, below, row in tree.walk(top):
        prefix, below = prefix_text(prefix), prefix_text(below)
        if isinstance(row, int):
            table.say(f"and {row:,} more", prefix)
            continue
        table.add(
            [
                prefix + name_of(row),
                line_size(row),
                f"{row['calls']:,}",
                time_text(row["rank_max_ns"]),
                time_text(row["rank_avg_ns"]),
                time_text(row["created_ns"]),
                freed_text(row),
            ],
            "" if prefix else "bold",
        )
        members = row["members"] or ""
        is_short = 0 < len(members) <= MEMBERS_SHOWN and (row["size_max"] or 0) > 1
        origin = [f"ranks {members}"] if is_short else []
        origin += [line_origin(row, tree.labels)]
        text = ", ".join(part for part in origin if part)
        if text:
            table.say(text, below)
    return table
