# SPDX-License-Identifier: Apache-2.0
"""Collects the tree of call paths for the page: its nodes, and the node of each call site."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from commlens.base.arrays import Ints
from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape
from commlens.page.pack import Packed, compressed, pack
from commlens.page.tables import Folded
from commlens.reports import wrappers
from commlens.symbols.paths import PathTree, distinct_labels, has_paths, labels_in

SHARE = 0.05
"""Part of the budget for the tree, its names included."""

SITES_SQL = """\
SELECT id FROM callsite
 WHERE id NOT IN (SELECT caller FROM callsite WHERE caller IS NOT NULL)
    OR id IN (SELECT callsite FROM key) OR id IN (SELECT callsite FROM comm)
 ORDER BY id"""
"""The call sites that call MPI themselves, without those that are only callers."""

NO_ROWS = {name: np.empty(0, dtype=np.int64) for name in ("parent", "name")}
NO_LEAVES = {name: np.empty(0, dtype=np.int64) for name in ("callsite", "node")}


@dataclass(frozen=True)
class Paths:
    """What the page has about call sites.

    Attributes
    ----------
    sites : dict of int to str
        Label of each call site.
    names : list of str
        The names of nodes, each once.
    nodes, leaves : Packed
        Parent (-1: none) and name of each node, which comes right before those inside it; and call sites with their node.
    losses : list of str
        What was given up to keep to the budget.
    """

    sites: dict[int, str]
    names: list[str] = field(default_factory=list)
    nodes: Packed = field(default_factory=lambda: pack(NO_ROWS))
    leaves: Packed = field(default_factory=lambda: pack(NO_LEAVES))
    losses: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes in the page."""
        names = compressed(json.dumps(self.names, ensure_ascii=False).encode("utf-8", "replace"))
        return len(self.nodes.block) + len(self.leaves.block) + len(names)


@dataclass(frozen=True)
class Flat:
    """A tree as lists: the node of each call site may be moved to one further out."""

    names: list[str]
    parents: list[int]
    levels: list[int]
    leaf: dict[int, int]


def in_order(tree: PathTree) -> Flat:
    """Return the nodes so that all inside a node follow it: a range of numbers is then a part of the tree."""
    inside: dict[int, list[int]] = defaultdict(list)
    for number, node in enumerate(tree.nodes):
        inside[-1 if node.parent is None else node.parent].append(number)
    places: dict[int, int] = {-1: -1}
    waiting = inside[-1][::-1]
    while waiting:
        number = waiting.pop()
        places[number] = len(places) - 1
        waiting += inside[number][::-1]
    order = [number for number in places if number >= 0]
    nodes = [tree.nodes[number] for number in order]
    return Flat(
        [escape(node.name, Target.LINE) for node in nodes],
        [places[-1 if node.parent is None else node.parent] for node in nodes],
        [node.level for node in nodes],
        {site: places[number] for site, number in tree.leaf.items()},
    )


def cut(flat: Flat, depth: int) -> Flat:
    """Return only the outermost levels of a tree; calls from further inside belong to the last of these.

    >>> cut(Flat(["main", "solve", "exchange", "setup"], [-1, 0, 1, 0], [0, 1, 2, 1], {7: 2, 8: 3}), 2)
    Flat(names=['main', 'solve', 'setup'], parents=[-1, 0, 0], levels=[0, 1, 1], leaf={7: 1, 8: 2})
    """
    place: list[int] = []
    kept: list[int] = []
    for number, level in enumerate(flat.levels):
        if level < depth:
            place.append(len(kept))
            kept.append(number)
        else:
            place.append(place[flat.parents[number]])
    return Flat(
        [flat.names[number] for number in kept],
        [-1 if flat.parents[number] < 0 else place[flat.parents[number]] for number in kept],
        [flat.levels[number] for number in kept],
        {site: place[number] for site, number in flat.leaf.items()},
    )


def packed(flat: Flat, sites: dict[int, str], losses: list[str]) -> Paths:
    """Return a tree as the page has it."""
    names = {name: i for i, name in enumerate(dict.fromkeys(flat.names))}
    nodes = {"parent": flat.parents, "name": [names[name] for name in flat.names]}
    leaves = {"callsite": list(flat.leaf), "node": list(flat.leaf.values())}
    return Paths(sites, list(names), pack(arrays(nodes)), pack(arrays(leaves)), losses)


def arrays(columns: Mapping[str, Sequence[int]]) -> dict[str, Ints]:
    """Return lists as columns."""
    return {name: np.array(values, dtype=np.int64) for name, values in columns.items()}


def fitting(flat: Flat, sites: dict[int, str], most: int) -> Paths:
    """Return as many of the outer levels of a tree as take at most `most` bytes."""
    whole = max(flat.levels, default=0) + 1
    found = packed(flat, sites, [])
    depth = whole
    while found.size > most and depth > 1:
        depth -= max(1, depth // 8)
        told = f"call paths: only the {depth} outermost of {whole} functions are told apart"
        found = packed(cut(flat, depth), sites, [told])
    return found if found.size <= most else Paths(sites, losses=["call paths: left out"])


def read_paths(
    connection: sqlite3.Connection, tables: Mapping[str, Folded], budget: int, given: Sequence[str] = ()
) -> Paths:
    """Return the labels of call sites and, if the profile has call paths and the page call sites, their tree.

    Parameters
    ----------
    tables : dict of str to Folded
        The counters of the page.
    budget : int
        Bytes that all tables of the page may take together.
    given : sequence of str
        Patterns of wrapper functions, as option --wrapper has them.

    Raises
    ------
    CommlensError
        There are patterns, but the profile has no call paths.
    """
    sites = [site for (site,) in connection.execute(SITES_SQL)]
    if not has_paths(connection):
        if given:
            raise CommlensError(wrappers.no_paths("--wrapper"))
        labels = distinct_labels(connection, sites)
        return Paths({site: escape(label, Target.LINE) for site, label in labels.items()})
    tree = PathTree(connection, sites, wrappers.chosen(connection, given))
    safe = {site: escape(label, Target.LINE) for site, (label, _) in labels_in(tree).items()}
    if "callsite" in tables["cells"].lost:
        return Paths(safe)
    used = connection.execute("SELECT DISTINCT callsite FROM key ORDER BY callsite").fetchall()
    flat = in_order(tree)
    leaf = {site: flat.leaf[site] for (site,) in used if site in flat.leaf}
    return fitting(Flat(flat.names, flat.parents, flat.levels, leaf), safe, int(budget * SHARE))
