# SPDX-License-Identifier: Apache-2.0
"""Matches the families of several profiles by lineage: creator, call site, parent's family and size.

Profiles are matched one after the other to a forest of nodes, from parents to children. The first profile makes the
nodes; a family of a later profile without match becomes a new node. Names and numbers are never compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from commlens.compare.read import Family, RunHead

RULES = ("call site", "call site, other size", "function", "order of call sites")
"""The rules, strictest first."""


@dataclass
class Node:
    """A family in all profiles that have it.

    Attributes
    ----------
    families : list of Family
        The first family, and one of each profile that was matched by another rule than the call site.
    rule : int
        Index in RULES of the weakest rule that matched it.
    runs : set of int
        The profiles that have it, by their place in the list.
    """

    families: list[Family]
    parent: int | None
    members: frozenset[int]
    rule: int = 0
    runs: set[int] = field(default_factory=set)

    @property
    def first(self) -> Family:
        """The family in the first profile that has it."""
        return self.families[0]


def same_build(one: Family, other: Family) -> bool:
    """Return whether offsets of two call sites can be compared: same module, and not two different builds."""
    if one.site is None or other.site is None:
        return one.site is other.site
    return one.site[:2] == other.site[:2]


def place(family: Family) -> Hashable:
    """Return what identifies a call site within one build."""
    return family.site[:3] if family.site else None


def pair(
    nodes: list[int],
    mine: list[Family],
    of_node: Callable[[int], set[Hashable]],
    of_family: Callable[[Family], Hashable],
) -> list[tuple[int, Family]]:
    """Return the pairs whose value is equal and occurs once on each side."""
    left: dict[Hashable, list[int]] = defaultdict(list)
    right: dict[Hashable, list[Family]] = defaultdict(list)
    for node in nodes:
        for value in of_node(node):
            left[value].append(node)
    for family in mine:
        right[of_family(family)].append(family)
    return [
        (left[value][0], families[0])
        for value, families in right.items()
        if value is not None and len(families) == 1 and len(left[value]) == 1
    ]


class Forest:
    """The nodes of all profiles matched so far."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, run: int, data: RunHead) -> dict[int, int]:
        """Match a profile; return the node of each of its families."""
        found: dict[int, int] = {}
        waiting = [family for family in data.families.values() if family.kind != "set"]
        made = {family.number for family in waiting}  # a damaged profile may have a set as a parent
        while waiting:
            ready = [family for family in waiting if family.parent not in made or family.parent in found]
            groups: dict[tuple[Hashable, ...], list[Family]] = defaultdict(list)
            for family in ready:
                above = None if family.parent is None else found.get(family.parent)
                groups[above, family.kind, family.creator, family.predefined].append(family)
            for group, families in groups.items():
                self._match(run, group, families, found)
            waiting = [family for family in waiting if family.number not in found]
        for family in data.families.values():
            if family.kind == "set":
                members = frozenset(found[member] for member in family.members if member in found)
                known = [
                    i
                    for i, node in enumerate(self.nodes)
                    if node.first.kind == "set" and node.members == members
                ]
                self._take(run, known[0] if known else None, family, 0, None, members, found)
        return found

    def _take(
        self,
        run: int,
        node: int | None,
        family: Family,
        rule: int,
        above: int | None,
        members: frozenset[int],
        found: dict[int, int],
    ) -> None:
        """Give a family its node, or a new one."""
        if node is None:
            node = len(self.nodes)
            self.nodes.append(Node([family], above, members))
        elif rule:
            self.nodes[node].families.append(family)
        self.nodes[node].rule = max(self.nodes[node].rule, rule)
        self.nodes[node].runs.add(run)
        found[family.number] = node

    def _match(
        self, run: int, group: tuple[Hashable, ...], families: list[Family], found: dict[int, int]
    ) -> None:
        """Match the families of one parent and creator."""
        above, kind, creator, predefined = group
        nodes = [
            i
            for i, node in enumerate(self.nodes)
            if (node.parent, node.first.kind, node.first.creator, node.first.predefined)
            == (above, kind, creator, predefined)
        ]
        left = list(families)
        parent = above if isinstance(above, int) else None

        def settle(pairs: Sequence[tuple[int, Family]], rule: int) -> None:
            for node, family in pairs:
                if node in nodes and family in left:
                    nodes.remove(node)
                    left.remove(family)
                    self._take(run, node, family, rule, parent, frozenset(), found)

        def of_node(value: Callable[[Family], Hashable]) -> Callable[[int], set[Hashable]]:
            return lambda node: {value(family) for family in self.nodes[node].families}

        def exact(family: Family) -> Hashable:
            return (place(family), family.size, family.topology)

        def on_path(family: Family) -> Hashable:
            return (exact(family), family.site.callers if family.site else ())

        def by_site(family: Family) -> Hashable:
            return ("site", place(family))

        def by_function(family: Family) -> Hashable:
            return (family.site.function or None) if family.site else None

        settle(pair(nodes, left, of_node(on_path), on_path), 0)
        settle(pair(nodes, left, of_node(exact), exact), 0)
        settle(pair(nodes, left, of_node(by_site), by_site), 1)
        settle(pair(nodes, left, of_node(by_function), by_function), 2)
        settle(self._in_order(nodes, left), 3)
        for family in left:
            self._take(run, None, family, 0, parent, frozenset(), found)

    def _in_order(self, nodes: list[int], left: list[Family]) -> list[tuple[int, Family]]:
        """Return the pairs in the order of offset and size, if both sides have as many.

        Of one build, only families of the same call site are paired: another call site is another origin.
        """
        if len(nodes) != len(left):
            return []

        def order(family: Family) -> tuple[str, int, tuple[int, int]]:
            return (
                (family.site.module, family.site.offset, family.size) if family.site else ("", 0, family.size)
            )

        nodes = sorted(nodes, key=lambda node: order(self.nodes[node].families[-1]))
        pairs = list(zip(nodes, sorted(left, key=order)))
        for node, family in pairs:
            for known in self.nodes[node].families:
                if same_build(known, family) and place(known) != place(family):
                    return []
        return pairs
