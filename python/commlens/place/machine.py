# SPDX-License-Identifier: Apache-2.0
"""The machine as a tree: slots for ranks, the levels that slots share, and the distance at each level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from commlens.base.arrays import Ints, ints
from commlens.base.errors import CommlensError

Floats = NDArray[np.float64]

SLOT, CACHE, NUMA, SOCKET, NODE, NETWORK = "core", "core complex", "NUMA domain", "socket", "node", "network"

DISTANCES = {SLOT: 0.0, CACHE: 1.0, NUMA: 2.0, SOCKET: 3.0, NODE: 4.0, NETWORK: 20.0}
"""Distance of two slots that share this level, but none nearer. A convention: only the ratios matter."""

ONE_SWITCH = 10.0  # that each level of switches adds

MOST_SLOTS = 1 << 22
MOST_MERGED = 8  # levels that a table of distances is approximated by


@dataclass(frozen=True)
class Slot:
    """Room for one rank.

    Attributes
    ----------
    node : str
        Name of the host.
    cpus : tuple of int
        CPUs as the system numbers them; empty if unknown.
    cores : tuple of int
        Cores of the node as hwloc numbers them, in the order of the topology; empty if unknown.
    inside : tuple of int
        Socket, NUMA domain and core complex, each numbered within the node; -1: unknown.
    """

    node: str
    cpus: tuple[int, ...] = ()
    cores: tuple[int, ...] = ()
    inside: tuple[int, int, int] = (-1, -1, -1)


@dataclass(frozen=True)
class Level:
    """One level of the tree.

    Attributes
    ----------
    name : str
        What its groups are: "socket", "node".
    groups : Ints
        Group of each slot.
    distance : float
        Distance of two slots of one group that share no group further inside.
    per_message : float
        Bytes that a message between two such slots counts beside its own.
    """

    name: str
    groups: Ints
    distance: float
    per_message: float = 0.0


@dataclass(frozen=True)
class Machine:
    """Slots and the levels that they share.

    Attributes
    ----------
    slots : list of Slot
        In the order of the tree: the slots of each group of each level follow each other.
    levels : tuple of Level
        From the slot itself to the whole machine; each nested in the next.
    between : array or None
        Distance of each pair of nodes, which replaces the distances of the levels outside a node.
    """

    slots: Sequence[Slot]
    levels: tuple[Level, ...]
    between: Floats | None = None

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def node(self) -> Ints:
        """Number of the node of each slot."""
        return next(level.groups for level in self.levels if level.name == NODE)

    @property
    def nodes(self) -> list[str]:
        """Name of each node, by its number."""
        first = np.unique(self.node, return_index=True)[1]
        return [self.slots[at].node for at in first.tolist()]

    def levels_of(self, one: Ints, other: Ints) -> Ints:
        """Return the number of the innermost level that each pair of slots shares."""
        found = np.full(len(one), len(self.levels) - 1, dtype=np.int64)
        for number in range(len(self.levels) - 2, -1, -1):
            groups = self.levels[number].groups
            found[groups[one] == groups[other]] = number
        return found

    def distances(self, one: Ints, other: Ints) -> Floats:
        """Return the distance of each pair of slots."""
        by_level = np.array([level.distance for level in self.levels])
        found: Floats = by_level[self.levels_of(one, other)]
        if self.between is not None:
            a, b = self.node[one], self.node[other]
            found = np.where(a == b, found, self.between[a, b])
        return found

    def distance_range(self, number: int) -> tuple[float, float]:
        """Return the least and the largest distance of two slots that share a level and no level inside it.

        Parameters
        ----------
        number : int
            Place of the level in `levels`.
        """
        level = self.levels[number]
        first = np.unique(self.node, return_index=True)[1]
        if self.between is None or number <= [one.name for one in self.levels].index(NODE) or len(first) < 2:
            return level.distance, level.distance
        one, other = np.triu_indices(len(first), 1)
        found = self.between[one, other][self.levels_of(first[one], first[other]) == number]
        return (float(found.min()), float(found.max())) if len(found) else (level.distance, level.distance)

    @property
    def per_message(self) -> Floats:
        """Bytes that a message counts beside its own, by level."""
        return np.array([level.per_message for level in self.levels])

    @property
    def is_uniform(self) -> bool:
        """Whether a message counts as many bytes more at each level that two slots can share."""
        per_message = self.per_message[1:]
        return bool(np.all(per_message == per_message[-1]))

    def message_distances(self, one: Ints, other: Ints) -> Floats:
        """Return for each pair of slots distance times bytes of a message beyond those that it counts in the network."""
        per_message = self.per_message
        found: Floats = (
            self.distances(one, other) * (per_message - per_message[-1])[self.levels_of(one, other)]
        )
        return found

    def part(self, kept: Ints) -> Machine:
        """Return the machine with some of its slots, in their order."""
        levels = tuple(
            replace(level, groups=np.unique(level.groups[kept], return_inverse=True)[1].astype(np.int64))
            for level in self.levels
        )
        between = self.between
        if between is not None:
            nodes = np.unique(self.node[kept])
            between = between[np.ix_(nodes, nodes)]
        return Machine([self.slots[at] for at in kept.tolist()], levels, between)

    def check_names(self, wanted: Iterable[str]) -> None:
        """Raise CommlensError if there is no such level."""
        names = [level.name for level in self.levels]
        for name in wanted:
            if name not in names:
                raise CommlensError(f"this machine has no level '{name}'; it has {', '.join(names)}")

    def with_distances(self, changed: Mapping[str, float]) -> Machine:
        """Return the machine with other distances at some levels.

        Raises
        ------
        CommlensError
            There is no such level, or a level would be nearer than one inside it.
        """
        self.check_names(changed)
        levels = tuple(
            replace(level, distance=changed.get(level.name, level.distance)) for level in self.levels
        )
        for inner, outer in zip(levels, levels[1:]):
            if inner.distance > outer.distance:
                raise CommlensError(
                    f"distance {outer.distance:g} of level {outer.name} is below {inner.distance:g} of level "
                    f"{inner.name}, which lies inside it"
                )
        return replace(self, levels=levels)


def with_messages(machine: Machine, everywhere: float, changed: Mapping[str, float]) -> Machine:
    """Return the machine with the bytes that a message counts beside its own: everywhere, and at some levels.

    Raises
    ------
    CommlensError
        There is no such level.
    """
    machine.check_names(changed)
    return replace(
        machine,
        levels=tuple(
            replace(level, per_message=changed.get(level.name, everywhere)) for level in machine.levels
        ),
    )


def build(slots: Sequence[Slot], network: Sequence[tuple[str, Mapping[str, int]]] = ()) -> Machine:
    """Return the machine of these slots.

    Parameters
    ----------
    network : sequence of (name, groups of nodes)
        Levels between node and whole machine, such as switches, from the inside. A node that is in no group is one of
        its own.

    Raises
    ------
    CommlensError
        There are no slots, or far too many.
    """
    if not slots:
        raise CommlensError("the machine has no slot for a rank")
    if len(slots) > MOST_SLOTS:
        raise CommlensError(f"the machine has {len(slots):,} slots; at most {MOST_SLOTS:,} are supported")
    names = list(dict.fromkeys(slot.node for slot in slots))
    number = {name: at for at, name in enumerate(names)}
    keys = [ints(number[slot.node] for slot in slots)]
    titles = [NODE]
    for at, title in enumerate((SOCKET, NUMA, CACHE)):
        keys.append(ints(slot.inside[at] for slot in slots))
        titles.append(title)
    for title, groups in network:
        alone = {name: max(groups.values(), default=-1) + 1 + at for name, at in number.items()}
        of_node = ints(groups.get(name, alone[name]) for name in names)
        keys.insert(0, of_node[keys[titles.index(NODE)]])
        titles.insert(0, title)
    order = np.lexsort(tuple(reversed(keys)))
    levels = [Level(NETWORK, np.zeros(len(slots), dtype=np.int64), 0.0)]
    groups_now = levels[0].groups
    for title, key in zip(titles, keys):
        key = key[order]
        if title in (SOCKET, NUMA, CACHE) and np.any(key < 0):
            key = np.where(key < 0, 0, key)
        starts = np.concatenate(([False], (key[1:] != key[:-1]) | (groups_now[1:] != groups_now[:-1])))
        groups_now = np.cumsum(starts).astype(np.int64)
        levels.insert(0, Level(title, groups_now, 0.0))
    levels.insert(0, Level(SLOT, np.arange(len(slots), dtype=np.int64), 0.0))
    return Machine([slots[at] for at in order.tolist()], _measured(_distinct(levels)))


def _distinct(levels: Sequence[Level]) -> list[Level]:
    """Return the levels without those that divide nothing; slot, node and network always remain."""
    kept: list[Level] = []
    for level in levels:
        equal = bool(kept) and int(kept[-1].groups[-1]) == int(level.groups[-1])
        if equal and level.name not in (NODE, NETWORK) and kept[-1].name in (SLOT, NODE):
            continue
        if equal and kept[-1].name not in (SLOT, NODE):
            kept.pop()  # the outer name says more: a socket with one core complex is a socket
        kept.append(level)
    return kept


def _measured(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return the levels with the usual distances."""
    found = []
    switches = 0
    for level in levels:
        distance = DISTANCES.get(level.name)
        if distance is None or level.name == NETWORK:
            distance = DISTANCES[NETWORK] + ONE_SWITCH * switches
            switches += 1
        found.append(replace(level, distance=distance))
    return tuple(found)


def regular(
    nodes: int, sockets: int, cores: int, numa: int = 1, per_rank: int = 1, names: Sequence[str] = ()
) -> list[Slot]:
    """Return the slots of equal nodes.

    Parameters
    ----------
    cores, numa : int
        Cores and NUMA domains of a socket.
    per_rank : int
        Cores of a slot.
    """
    if nodes * sockets * cores > MOST_SLOTS:
        raise CommlensError(
            f"the machine has {nodes * sockets * cores:,} cores; at most {MOST_SLOTS:,} are supported"
        )
    slots = []
    for node in range(nodes):
        name = names[node] if node < len(names) else f"node{node}"
        for socket in range(sockets):
            for first in range(0, cores - per_rank + 1, per_rank):
                base = socket * cores + first
                domain = first * numa // cores
                if (first + per_rank - 1) * numa // cores != domain and per_rank <= cores // numa:
                    continue
                some = tuple(range(base, base + per_rank))
                slots.append(Slot(name, some, some, (socket, socket * numa + domain, -1)))
    return slots


def with_table(machine: Machine, names: Sequence[str], table: Floats) -> Machine:
    """Return the machine with these distances between its nodes.

    The levels outside a node become groups of nodes that are near each other.

    Raises
    ------
    CommlensError
        A node has no row in the table.
    """
    row = {name: at for at, name in enumerate(names)}
    for name in machine.nodes:
        if name not in row:
            raise CommlensError(f"the table of distances has no row for node '{name}'")
    of_node = ints(row[name] for name in machine.nodes)
    between = table[np.ix_(of_node, of_node)]
    known = {level.name: level.distance for level in machine.levels}
    off = between[~np.eye(len(between), dtype=bool)]
    steps = np.unique(off)
    if len(steps) > MOST_MERGED:
        steps = np.unique(np.quantile(off, np.linspace(0, 1, MOST_MERGED)))
    apart = {f"distance {step:g}": float(step) for step in steps}
    network = [
        (name, dict(zip(machine.nodes, _near(between, step).tolist())))
        for name, step in list(apart.items())[:-1]
    ]
    tree = build(machine.slots, network)
    # The order of the nodes may have changed.
    at = ints(machine.nodes.index(name) for name in tree.nodes)
    farthest = float(steps[-1]) if len(steps) else known[NODE]
    known = {**known, **apart, NETWORK: farthest}
    levels = tuple(replace(level, distance=known[level.name]) for level in tree.levels)
    return Machine(tree.slots, levels, between[np.ix_(at, at)])


def _near(between: Floats, limit: float) -> Ints:
    """Return a number for each node, equal for nodes that steps of at most `limit` connect."""
    group = np.arange(len(between), dtype=np.int64)
    near = between <= limit
    np.fill_diagonal(near, True)
    while True:
        least = np.where(near, group[None, :], len(group)).min(axis=1)
        if np.array_equal(least, group):
            return group
        group = least
