# SPDX-License-Identifier: Apache-2.0
"""Trees of rows with parents, and the lines drawn before each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

DEEPEST_PREFIX = 45  # characters; a chain of a thousand duplicates of duplicates stays within the page


@dataclass
class Tree:
    """Rows that may have a parent; children are in the order of the rows.

    Attributes
    ----------
    labels : dict of int to str
        Labels of the call sites of communicators.
    id, parent : str
        Names of the columns with the id of a row and of its parent.
    """

    rows: list[Row]
    labels: dict[int, str] = field(default_factory=dict)
    id: str = "line"
    parent: str = "parent_line"

    def walk(self, top: int | None) -> list[tuple[str, str, Row | int]]:
        """Return the tree depth first: the prefix of a row, the prefix of its second line, and the row.

        If `top` limits the children of a node, a number replaces the row: how many are left out.
        """
        parents = rooted({row[self.id]: row[self.parent] for row in self.rows})
        children: dict[int | None, list[Row]] = {}
        for row in self.rows:
            children.setdefault(parents[row[self.id]], []).append(row)
        result: list[tuple[str, str, Row | int]] = []
        # Rows that are still to be drawn, the last first.  A stack instead of recursion, for chains of any length.
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
    """Return the parents of rows; None for a row whose parent does not exist, and for one row of each loop.

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


def prefix_text(prefix: str) -> str:
    """Return the lines before a node; for very deep nodes only their last part."""
    return prefix if len(prefix) <= DEEPEST_PREFIX else "… " + prefix[2 - DEEPEST_PREFIX :]
