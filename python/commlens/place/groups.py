# SPDX-License-Identifier: Apache-2.0
"""Ranks in the innermost groups of a machine, within which all slots are equally far from each other.

A placement of this kind names a group for each rank, not a slot. Ranks without traffic have none: they fill what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commlens.base.arrays import Flags, Ints
from commlens.place.machine import Floats, Machine
from commlens.place.objective import Graph

INNERMOST = 1  # level of the groups; level 0 are the slots
MOST_GROUPS = 2048  # whose distances fit into a table


@dataclass(frozen=True)
class Groups:
    """The innermost groups of a machine.

    Attributes
    ----------
    of_slot : Ints
        Group of each slot.
    first : Ints
        First slot of each group; its slots follow each other.
    room : Ints
        Slots of each group.
    distance : Floats
        Distance of two slots of each pair of groups.
    """

    of_slot: Ints
    first: Ints
    room: Ints
    distance: Floats

    def __len__(self) -> int:
        return len(self.room)


def of_machine(machine: Machine) -> Groups | None:
    """Return the innermost groups; None if there are too many, or only one."""
    level = machine.levels[min(INNERMOST, len(machine.levels) - 1)]
    count = int(level.groups[-1]) + 1
    if not 1 < count <= MOST_GROUPS:
        return None
    first = np.searchsorted(level.groups, np.arange(count)).astype(np.int64)
    distance = machine.distances(np.repeat(first, count), np.tile(first, count)).reshape(count, count)
    np.fill_diagonal(distance, level.distance)
    return Groups(level.groups, first, np.bincount(level.groups).astype(np.int64), distance)


@dataclass
class Seating:
    """Which ranks are in which group.

    Attributes
    ----------
    own : Ints
        Group of each rank.
    free : Flags
        Ranks that may move.
    excess : Ints
        Ranks with traffic, and pinned ones, above the room of each group; below 0: room is left.
    """

    graph: Graph
    groups: Groups
    own: Ints
    free: Flags
    excess: Ints

    @property
    def cost(self) -> float:
        """Sum over all pairs of traffic times distance."""
        graph, own = self.graph, self.own
        return float((graph.weight * self.groups.distance[own[graph.row], own[graph.column]]).sum()) / 2


def seat(graph: Graph, groups: Groups, slots: Ints, pins: Ints) -> Seating:
    """Return the groups of ranks that have slots.

    Parameters
    ----------
    pins : Ints
        Slot of each rank that must have it, else -1.
    """
    own = groups.of_slot[slots]
    counts = (np.diff(graph.start) > 0) | (pins >= 0)
    excess = np.bincount(own[counts], minlength=len(groups)) - groups.room
    return Seating(graph, groups, own, counts & (pins < 0), excess.astype(np.int64))


def slots_of(seating: Seating, pins: Ints) -> Ints:
    """Return a slot for each rank in its group; ranks without traffic and pin get any."""
    groups = seating.groups
    slots = pins.copy()
    open_slots = np.ones(len(groups.of_slot), dtype=bool)
    open_slots[pins[pins >= 0]] = False
    left = np.flatnonzero(open_slots)
    movers = np.flatnonzero(seating.free)
    movers = movers[np.argsort(seating.own[movers], kind="stable")]
    own = seating.own[movers]
    place = np.arange(len(own)) - np.searchsorted(own, own)
    taken = np.searchsorted(groups.of_slot[left], own) + place
    slots[movers] = left[taken]
    open_slots[slots[movers]] = False
    slots[slots < 0] = np.flatnonzero(open_slots)[: int(np.count_nonzero(slots < 0))]
    return slots
