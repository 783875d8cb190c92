# SPDX-License-Identifier: Apache-2.0
"""Improves a placement by swaps under its real cost."""

from __future__ import annotations

import numpy as np

from commlens.base.arrays import Ints
from commlens.place.bisect import Random, independent, weights_of
from commlens.place.machine import Floats, Machine
from commlens.place.objective import Graph

DENSE = 4096  # vertices up to which each is compared with all others
PASSES = 30
ROUNDS = 40  # of random swaps in a large graph
GAIN = 1e-9  # relative to the cost, that a swap must bring


class Dense:
    """A placement with the cost of each vertex in each slot."""

    def __init__(self, graph: Graph, machine: Machine, slots: Ints, pinned: Ints):
        self.graph = graph
        count = graph.size
        every = np.arange(count)
        self.distance = machine.distances(np.repeat(every, count), np.tile(every, count)).reshape(
            count, count
        )
        self.of_message = None
        if graph.messages is not None:
            self.of_message = machine.message_distances(
                np.repeat(every, count), np.tile(every, count)
            ).reshape(count, count)
        self.slots = slots.copy()
        self.pinned = pinned >= 0
        self.at = np.zeros((count, count))
        for vertex in range(count):
            some = slice(graph.start[vertex], graph.start[vertex + 1])
            self.at[vertex] = graph.weight[some] @ self.distance[self.slots[graph.column[some]]]
            if graph.messages is not None and self.of_message is not None:
                self.at[vertex] += graph.messages[some] @ self.of_message[self.slots[graph.column[some]]]
        self.least = GAIN * max(self.cost(), 1e-300)

    def cost(self) -> float:
        """Return the cost."""
        return float(self.at[np.arange(len(self.slots)), self.slots].sum()) / 2

    def changes(self, vertex: int) -> Floats:
        """Return by how much the cost changes if a vertex swaps its slot with each other one."""
        slots, graph = self.slots, self.graph
        own = self.at[np.arange(len(slots)), slots]
        found = self.at[vertex, slots] + self.at[:, slots[vertex]] - own - own[vertex]
        some = slice(graph.start[vertex], graph.start[vertex + 1])
        near = graph.column[some]
        found[near] += 2 * graph.weight[some] * self.distance[slots[near], slots[vertex]]
        if graph.messages is not None and self.of_message is not None:
            found[near] += 2 * graph.messages[some] * self.of_message[slots[near], slots[vertex]]
        found[self.pinned] = np.inf
        found[vertex] = 0.0
        return np.asarray(found, dtype=np.float64)

    def swap(self, one: int, other: int) -> None:
        """Swap the slots of two vertices."""
        graph, slots = self.graph, self.slots
        moved = self.distance[slots[other]] - self.distance[slots[one]]
        if self.of_message is not None:
            moved_messages = self.of_message[slots[other]] - self.of_message[slots[one]]
        for vertex, sign in ((one, 1.0), (other, -1.0)):
            some = slice(graph.start[vertex], graph.start[vertex + 1])
            self.at[graph.column[some]] += sign * graph.weight[some][:, None] * moved
            if graph.messages is not None:
                self.at[graph.column[some]] += sign * graph.messages[some][:, None] * moved_messages
        slots[one], slots[other] = slots[other], slots[one]

    def descend(self, random: Random, vertices: Ints) -> None:
        """Swap as long as a swap with one of these vertices, or of those it moves, helps."""
        waiting = set(vertices.tolist())
        for _ in range(PASSES):
            if not waiting:
                return
            now, waiting = random.permutation(sorted(waiting)), set()
            for vertex in now.tolist():
                if self.pinned[vertex]:
                    continue
                change = self.changes(vertex)
                other = int(change.argmin())
                if change[other] < -self.least:
                    self.swap(vertex, other)
                    waiting |= {vertex, other}
                    for moved in (vertex, other):
                        waiting |= set(
                            self.graph.column[self.graph.start[moved] : self.graph.start[moved + 1]].tolist()
                        )


def refine(graph: Graph, machine: Machine, slots: Ints, pins: Ints, random: Random, kicks: int = 0) -> Ints:
    """Return a placement that no swap of two ranks improves; of a large one, one with many improving swaps done.

    Parameters
    ----------
    kicks : int
        How often to shuffle a few ranks and try again; the better one stays.
    """
    if graph.size > DENSE:
        return _sampled(graph, machine, slots, pins, random)
    found = Dense(graph, machine, slots, pins)
    free = np.flatnonzero(pins < 0)
    found.descend(random, free)
    if len(free) < 3:
        return found.slots
    best, best_cost = found.slots.copy(), found.cost()
    for _ in range(kicks):
        some = _near(graph, free, random, int(random.integers(3, 3 + min(8, len(free)))))
        before = found.slots.copy()
        for one, other in zip(some.tolist(), np.roll(some, 1).tolist()[:-1]):
            found.swap(one, other)
        found.descend(random, some)
        now = found.cost()
        if now < best_cost - found.least:
            best, best_cost = found.slots.copy(), now
        elif now > best_cost + found.least:
            _return(found, before)
    return best


def _near(graph: Graph, free: Ints, random: Random, count: int) -> Ints:
    """Return some free vertices, half of them neighbours of one."""
    first = int(random.choice(free))
    near = graph.column[graph.start[first] : graph.start[first + 1]]
    near = near[np.isin(near, free)]
    near = random.permutation(near)[: count // 2]
    some = np.unique(
        np.concatenate([[first], near, random.choice(free, min(count, len(free)), replace=False)])
    )
    return random.permutation(some)[: max(2, count)].astype(np.int64)


def _return(found: Dense, slots: Ints) -> None:
    """Go back to an earlier placement, swap by swap."""
    holder = np.argsort(found.slots)
    for vertex in np.flatnonzero(found.slots != slots).tolist():
        while found.slots[vertex] != slots[vertex]:
            other = int(holder[slots[vertex]])
            found.swap(vertex, other)
            holder[found.slots[vertex]], holder[found.slots[other]] = vertex, other


def _sampled(graph: Graph, machine: Machine, slots: Ints, pins: Ints, random: Random) -> Ints:
    """Swap ranks with ranks beside one of their partners, where that helps; all at once that do not disturb each other."""
    slots = slots.copy()
    node = machine.node
    degree = np.diff(graph.start)
    movable = np.flatnonzero((pins < 0) & (degree > 0))
    first = np.searchsorted(node, np.arange(int(node[-1]) + 2))
    for _ in range(ROUNDS):
        apart = graph.weight * machine.distances(slots[graph.row], slots[graph.column])
        own = np.bincount(graph.row, weights=apart, minlength=graph.size)
        pick = graph.start[movable] + (random.random(len(movable)) * degree[movable]).astype(np.int64)
        there = node[slots[graph.column[pick]]]
        away = there != node[slots[movable]]
        one, there = movable[away], there[away]
        if not len(one):
            return slots
        holder = np.argsort(slots)
        room = first[there + 1] - first[there]
        other = holder[first[there] + (random.random(len(there)) * room).astype(np.int64)]
        fine = pins[other] < 0
        one, other = one[fine], other[fine]
        change = _elsewhere(graph, machine, slots, one, slots[other]) - own[one]
        change += _elsewhere(graph, machine, slots, other, slots[one]) - own[other]
        change += 2 * weights_of(graph, one, other) * machine.distances(slots[one], slots[other])
        helps = change < -GAIN * (own[one] + own[other])
        one, other, change = one[helps], other[helps], change[helps]
        kept = independent(graph, one, other, -change)
        one, other = one[kept], other[kept]
        slots[one], slots[other] = slots[other], slots[one]
    return slots


def _elsewhere(graph: Graph, machine: Machine, slots: Ints, vertices: Ints, there: Ints) -> Floats:
    """Return the cost of vertices in other slots."""
    count = graph.start[vertices + 1] - graph.start[vertices]
    total = int(count.sum())
    which = np.repeat(np.arange(len(vertices)), count)
    entry = (
        np.arange(total)
        - np.repeat(np.cumsum(count) - count, count)
        + np.repeat(graph.start[vertices], count)
    )
    apart = graph.weight[entry] * machine.distances(there[which], slots[graph.column[entry]])
    return np.asarray(np.bincount(which, weights=apart, minlength=len(vertices)), dtype=np.float64)
