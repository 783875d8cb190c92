# SPDX-License-Identifier: Apache-2.0
"""The call sites of a report: which of them share a row, their labels, and the tree of call paths."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from commlens.base.errors import CommlensError
from commlens.render.units import share_text
from commlens.reports import cuts, wrappers
from commlens.reports.query import Shape
from commlens.symbols.callsites import stored_label
from commlens.symbols.paths import ARROW, MOST_LEVELS, PLACES_SQL, PathTree, has_paths

Row = dict[str, Any]

MOST_FOLDED = 30_000
"""Call sites in one list: SQLite accepts at most a million bytes of SQL."""

SUMS = ("calls", "collectives", "time_ns", "share", "bytes_sent", "bytes_received", "noncontiguous")
SORTED = {"time": "time_ns", "max": "time_ns", "avg": "time_ns", "calls": "calls"}
SORTED |= {"sent": "bytes_sent", "received": "bytes_received"}
"""Value of --sort -> column that orders the rows and paths below a path; without one, the order of the rows."""


@dataclass
class Sites:
    """The call sites of a report.

    Attributes
    ----------
    sql : str
        The query for the call sites and the one that stands for each; empty if each stands for itself.
    has_paths : bool
        The report has call sites, and the profile has their callers.
    is_tree : bool
        The report shows paths as a tree.
    labels : dict of int to str
        Labels of the call sites in rows.
    warnings : list of str
        Lines about paths that the run did not record to their begin, if the report shows a tree.
    hints : list of str
        Lines about functions that look like wrappers, if the report shows a tree and skips none.
    """

    sql: str = ""
    has_paths: bool = False
    is_tree: bool = False
    labels: dict[int, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    wrappers: tuple[str, ...] = ()
    paths: PathTree | None = None

    def name(self, connection: sqlite3.Connection, sites: set[int]) -> dict[int, str]:
        """Return the labels of call sites, each of which stands for all of its place."""
        if self.is_tree:
            return {}
        tree = self.paths or PathTree(connection, sites, self.wrappers)
        labels = {}
        for label, alike in tree.alike(sites & tree.leaf.keys()).items():
            for site in alike:
                module, _, offset = tree.stored[tree.shown[site].site]
                labels[site] = f"{label} ({stored_label(module, offset)})" if len(alike) > 1 else label
        return labels

    def walk(self, rows: list[Row], shape: Shape) -> Iterator[tuple[int, Row | str]]:
        """Yield the rows of a line below their paths: depth, and a row, a path with its sums, or what was left out.

        A path that leads only to one other is joined with it.
        """
        assert self.paths is not None
        nodes = self.paths.nodes
        sums: dict[int, Row] = {}
        below: dict[int | None, list[tuple[int | None, Row]]] = defaultdict(list)
        for row in rows:
            node: int | None = self.paths.leaf.get(row["callsite"])
            below[node].append((None, row))
            while node is not None:
                if node not in sums:
                    sums[node] = no_calls(row, nodes[node].name)
                    below[nodes[node].parent].append((node, sums[node]))
                add(sums[node], row)
                node = nodes[node].parent
        for total in sums.values():
            finish(total)
        stack: list[tuple[int, int | None, Row | str]] = self._cut(0, below[None], shape)
        while stack:
            depth, node, item = stack.pop()
            while node is not None and len(below[node]) == 1 and below[node][0][0] is not None:
                (node, inner), names = below[node][0], item
                assert isinstance(names, dict)
                item = {**inner, "call_path": names["call_path"] + ARROW + inner["call_path"]}
            yield depth, item
            if node is not None:
                stack += self._cut(depth + 1, below[node], shape)

    def _cut(
        self, depth: int, items: list[tuple[int | None, Row]], shape: Shape
    ) -> list[tuple[int, int | None, Row | str]]:
        """Return the items below a path, the last first: of --top the first ones."""
        column = SORTED.get(shape.sort)
        if column is not None:
            items = sorted(items, key=lambda item: item[1][column], reverse=not shape.reverse)
        left = items[shape.top :] if shape.top else []
        found: list[tuple[int, int | None, Row | str]] = [
            (depth, *item) for item in items[: len(items) - len(left)]
        ]
        if left:
            share = share_text(sum(item["share"] or 0 for _, item in left))
            noun = "row" if len(left) == 1 else "rows"
            found.append((depth, None, f"and {len(left):,} more {noun} with {share} of the MPI time"))
        return found[::-1]


def no_calls(row: Row, path: str) -> Row:
    """Return the sums of no rows: the maximum over ranks of several is not known."""
    found = dict.fromkeys(SUMS)
    return {**found, "call_path": path, "ranks": row["ranks"], "rank_max_ns": None, "call_max_ns": 0}


def add(total: Row, row: Row) -> None:
    """Add a row to the sums of a path; as in SQL, unknown values do not count."""
    for name in SUMS:
        if row[name] is not None:
            total[name] = (total[name] or 0) + row[name]
    total["call_max_ns"] = max(total["call_max_ns"], row["call_max_ns"])


def finish(total: Row) -> None:
    """Add the averages to the sums of a path."""
    calls, time_ns, ranks = total["calls"], total["time_ns"], total["ranks"]
    total["call_avg_ns"] = (2 * time_ns + calls) // (2 * calls) if calls else None
    total["rank_avg_ns"] = (2 * time_ns + ranks) // (2 * ranks) if ranks else None
    total["calls_per_rank"] = calls / ranks if ranks else None


def read_sites(connection: sqlite3.Connection, shape: Shape) -> Sites:
    """Read the call sites for a report.

    Raises
    ------
    CommlensError
        The profile has no call paths, but the shape needs them.
    """
    if not shape.callsites:
        return Sites()
    if not has_paths(connection):
        for option, is_asked in (("--depth", shape.depth), ("--wrapper", shape.wrappers)):
            if is_asked:
                raise CommlensError(wrappers.no_paths(option))
        return Sites()
    patterns = wrappers.chosen(connection, shape.wrappers)
    if shape.flat and not patterns:
        return Sites(PLACES_SQL, has_paths=True)
    if not (shape.tree or shape.flat or shape.depth or patterns):
        return Sites("", has_paths=True)
    called = [site for (site,) in connection.execute("SELECT DISTINCT callsite FROM key ORDER BY callsite")]
    tree = PathTree(connection, called, patterns, shape.depth or MOST_LEVELS)
    same: Mapping[int, Hashable] = {site: tree.place(site) for site in tree.leaf} if shape.flat else tree.leaf
    is_tree = shape.tree and not shape.flat
    found = Sites(folded_sql(same), True, is_tree, wrappers=patterns, paths=tree)
    if is_tree:
        found.warnings = cuts.warnings(connection, tree)
        found.hints = [] if patterns else wrappers.hints(connection, tree)
    return found


def folded_sql(same: Mapping[int, Hashable]) -> str:
    """Return the query for the call sites that another one stands for, and that one: the first with an equal value.

    >>> folded_sql({1: "a", 2: "b", 3: "a"}), folded_sql({1: "a"})
    ('SELECT id, column2 FROM (VALUES (3, 1)) JOIN callsite ON id = column1', '')
    """
    first: dict[Hashable, int] = {}
    pairs = [
        f"({site}, {first[value]})" for site, value in same.items() if first.setdefault(value, site) != site
    ]
    if len(pairs) > MOST_FOLDED:
        raise CommlensError(f"{len(pairs):,} call paths read alike: use --flat without --wrapper")
    # SQLite makes an index for the ids only because they have the type of a column: values alone have none.
    return (
        f"SELECT id, column2 FROM (VALUES {', '.join(pairs)}) JOIN callsite ON id = column1" if pairs else ""
    )
