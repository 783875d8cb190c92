# SPDX-License-Identifier: Apache-2.0
"""The best placement of few ranks: all placements are tried, but for those that cannot be better."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from commlens.base.arrays import Ints
from commlens.place.machine import Machine
from commlens.place.objective import Graph

MOST_RANKS = 9
MOST_SLOTS = 1024
MOST_STEPS, MOST_LOOKS = 400_000, 20_000_000  # each step looks at all slots


def best(graph: Graph, machine: Machine, pins: Ints, start: Ints, start_cost: float) -> Ints | None:
    """Return an optimal placement; None if that takes too many steps, or the machine is too large for it.

    Parameters
    ----------
    start, start_cost
        A placement, and its cost.
    """
    size = graph.size
    if size > MOST_RANKS or len(machine) > MOST_SLOTS:
        return None
    order = sorted(
        range(size), key=lambda rank: (pins[rank] < 0, -float(graph.weight[graph.row == rank].sum()))
    )
    weight = np.zeros((size, size))
    weight[graph.row, graph.column] = graph.weight
    messages = None
    if graph.messages is not None:
        messages = np.zeros((size, size))
        messages[graph.row, graph.column] = graph.messages
    search = _Search(machine, weight, messages, order, pins, start.tolist(), start_cost)
    return search.found() if search.run(0, 0.0) else None


class _Search:
    """Depth first, with the ranks in a fixed order."""

    def __init__(
        self,
        machine: Machine,
        weight: np.ndarray,
        messages: np.ndarray | None,
        order: list[int],
        pins: Ints,
        start: list[int],
        cost: float,
    ):
        count = len(machine)
        every = np.arange(count)
        distance = machine.distances(np.repeat(every, count), np.tile(every, count)).reshape(count, count)
        self.distance = distance.tolist()
        self.messages = self.of_message = None
        least = distance[~np.eye(count, dtype=bool)].min() if count > 1 else 0.0
        least_weight = weight
        if messages is not None:
            of_message = machine.message_distances(np.repeat(every, count), np.tile(every, count))
            self.messages, self.of_message = messages.tolist(), of_message.reshape(count, count).tolist()
            # A message may count less than in the network: then only the bytes are sure to be paid.
            least_weight = weight - machine.per_message[-1] * messages
        self.order, self.pins, self.weight = order, pins.tolist(), weight.tolist()
        self.machine, self.best, self.cost = machine, start, cost
        self.slots = [-1] * len(order)
        self.used: set[int] = {slot for slot in self.pins if slot >= 0}
        self.groups = [level.groups.tolist() for level in machine.levels]
        self.members = [[set(some) for some in _members(groups)] for groups in self.groups]
        rest = [0.0]
        for at in range(len(order) - 1, -1, -1):
            rest.append(rest[-1] + least * sum(least_weight[order[at], order[other]] for other in range(at)))
        self.rest = rest[::-1]
        self.left = min(MOST_STEPS, MOST_LOOKS // count)
        self.symmetric = machine.between is None and not self.used

    def found(self) -> Ints:
        """Return the best placement."""
        return np.array(self.best, dtype=np.int64)

    def run(self, at: int, cost: float) -> bool:
        """Place the ranks from the given one on; return whether all placements were considered."""
        self.left -= 1
        if self.left < 0:
            return False
        if at == len(self.order):
            if cost < self.cost * (1 - 1e-12):
                self.best, self.cost = self.slots.copy(), cost
            return True
        rank = self.order[at]
        placed = [(self.slots[other], self.weight[rank][other]) for other in self.order[:at]]
        options = []
        for slot in [self.pins[rank]] if self.pins[rank] >= 0 else self._free():
            row = self.distance[slot]
            total = cost + sum(w * row[there] for there, w in placed)
            if self.messages is not None and self.of_message is not None:
                of_message, own = self.of_message[slot], self.messages[rank]
                total += sum(own[other] * of_message[self.slots[other]] for other in self.order[:at])
            options.append((total, slot))
        for total, slot in sorted(options):
            if total + self.rest[at + 1] >= self.cost * (1 - 1e-12):
                break
            self.slots[rank] = slot
            self.used.add(slot)
            done = self.run(at + 1, total)
            if self.pins[rank] < 0:
                self.used.discard(slot)
            if not done:
                return False
        return True

    def _free(self) -> list[int]:
        """Return free slots; of empty groups that are alike only the first."""
        found, seen = [], set()
        for slot in range(len(self.distance)):
            if slot in self.used:
                continue
            if self.symmetric:
                kind = self._kind(slot)
                if kind in seen:
                    continue
                seen.add(kind)
            found.append(slot)
        return found

    def _kind(self, slot: int) -> tuple[object, ...]:
        """Return what makes a free slot differ: the innermost group of it that is in use, and the shape inside it."""
        shape: list[object] = []
        for groups, members in zip(self.groups, self.members):
            group = groups[slot]
            if members[group] & self.used:
                return (tuple(shape), len(shape), group)
            shape.append(self._shape(len(shape), group))
        return (tuple(shape), -1, -1)

    def _shape(self, level: int, group: int) -> object:
        """Return the sizes of the groups inside a group."""
        if level == 0:
            return 1
        inner = sorted({self.groups[level - 1][slot] for slot in self.members[level][group]})
        return tuple(sorted(repr(self._shape(level - 1, one)) for one in inner))


def _members(groups: list[int]) -> list[list[int]]:
    """Return the slots of each group; the slots of a group follow each other."""
    return [[slot for slot, _ in some] for _, some in groupby(enumerate(groups), key=lambda item: item[1])]
