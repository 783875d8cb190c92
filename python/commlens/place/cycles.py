# SPDX-License-Identifier: Apache-2.0
"""Moves of ranks round several groups: each group gives one rank to the next, so that all stay as full as they are.

The cheapest move between each two groups makes a small graph. Its shortest paths empty groups that are too full; its
cycles of negative length improve a placement that no swap of two ranks improves (Sanders and Schulz 2013).
"""

from __future__ import annotations

import numpy as np

from commlens.base.arrays import Ints
from commlens.place.groups import Seating
from commlens.place.machine import Floats

LARGEST_TABLE = 1 << 25  # entries: ranks times groups
LEAST = 1e-9  # gain relative to the cost
LONGEST = 6  # moves of a cycle or path

Move = tuple[int, int, int]
"""A rank, its group, and the next one."""


class Table:
    """What each rank would cost in each group."""

    def __init__(self, seating: Seating):
        self.seating = seating
        graph, groups = seating.graph, seating.groups
        traffic = np.zeros((graph.size, len(groups)))
        np.add.at(traffic, (graph.row, seating.own[graph.column]), graph.weight)
        self.cost = traffic @ groups.distance
        self.movers = np.flatnonzero(seating.free)

    def apply(self, rank: int, there: int) -> float:
        """Move a rank; return by how much the cost rises."""
        seating, graph = self.seating, self.seating.graph
        here = int(seating.own[rank])
        rise = float(self.cost[rank, there] - self.cost[rank, here])
        some = slice(graph.start[rank], graph.start[rank + 1])
        step = seating.groups.distance[there] - seating.groups.distance[here]
        self.cost[graph.column[some]] += graph.weight[some][:, None] * step
        seating.own[rank] = there
        seating.excess[here] -= 1
        seating.excess[there] += 1
        return rise

    def cheapest(self) -> tuple[Floats, Ints]:
        """Return the least rise of a move between each two groups, and the rank that makes it."""
        own = self.seating.own[self.movers]
        order = self.movers[np.argsort(own, kind="stable")]
        own = self.seating.own[order]
        rise = self.cost[order] - self.cost[order, own][:, None]
        first = np.flatnonzero(np.diff(own, prepend=-1))
        count = self.cost.shape[1]
        least = np.full((count, count), np.inf)
        least[own[first]] = np.minimum.reduceat(rise, first, axis=0)
        np.fill_diagonal(least, np.inf)
        return least, order

    def mover(self, here: int, there: int) -> int:
        """Return the rank of a group that another group takes for the least rise."""
        some = self.movers[self.seating.own[self.movers] == here]
        return int(some[(self.cost[some, there] - self.cost[some, here]).argmin()])


def settle(seating: Seating, rounds: int) -> bool:
    """Empty the groups that are too full, then improve; return False if there are too many groups for that.

    Parameters
    ----------
    rounds : int
        Cycles to try at most.
    """
    if seating.graph.size * len(seating.groups) > LARGEST_TABLE:
        return False
    if not len(seating.own) or not seating.free.any():
        return bool(seating.excess.max(initial=0) <= 0)
    table = Table(seating)
    while seating.excess.max() > 0:
        if not _relieve(table):
            return False
    _improve(table, rounds)
    return True


def _relieve(table: Table) -> bool:
    """Move one rank too many along the cheapest way to a group with room."""
    least, _ = table.cheapest()
    excess = table.seating.excess
    far = np.where(excess > 0, 0.0, np.inf)
    before: list[Ints] = []
    every = np.arange(len(far))
    for _ in range(min(LONGEST, len(far))):
        ways = far[:, None] + least
        best = ways.argmin(axis=0)
        nearer = ways[best, every] < far
        before.append(np.where(nearer, best, -1).astype(np.int64))
        far = np.where(nearer, ways[best, every], far)
    ends = np.flatnonzero((excess < 0) & np.isfinite(far))
    if not len(ends):
        return False
    at = int(ends[far[ends].argmin()])
    way = [at]
    for step in reversed(before):
        if step[at] >= 0:
            at = int(step[at])
            way.append(at)
    for here, there in zip(way[:0:-1], way[-2::-1]):
        table.apply(table.mover(here, there), there)
    return True


def _improve(table: Table, rounds: int) -> None:
    """Move ranks round cycles of groups as long as that helps."""
    least_gain = LEAST * max(table.seating.cost, 1e-300)
    banned: set[tuple[int, ...]] = set()
    for _ in range(rounds):
        least, _ = table.cheapest()
        room = np.flatnonzero(table.seating.excess < 0)
        for cycle in _negative(least, room, least_gain):
            if cycle in banned:
                continue
            if _turn(table, cycle) < -least_gain:
                banned.clear()
                break
            banned.add(cycle)
        else:
            return


def _turn(table: Table, cycle: tuple[int, ...]) -> float:
    """Move a rank from each group of a cycle to the next; take all back if the cost does not fall."""
    done: list[Move] = []
    rise = 0.0
    for here, there in zip(cycle, cycle[1:]):
        rank = table.mover(here, there)
        rise += table.apply(rank, there)
        done.append((rank, here, there))
    if rise >= 0:
        for rank, here, _ in reversed(done):
            table.apply(rank, here)
    return rise


def _negative(least: Floats, room: Ints, least_gain: float) -> list[tuple[int, ...]]:
    """Return cycles of negative length, and ways to groups with room, the most negative first.

    Walks of up to LONGEST moves from each group, by the shortest way to each other one.
    """
    count = len(least)
    walk = least.copy()
    ways = [np.tile(np.arange(count), (count, 1))]
    found: list[tuple[float, tuple[int, ...]]] = []
    every = np.arange(count)
    for length in range(1, LONGEST):
        closed = walk + least.T
        for start, end in zip(*np.nonzero(closed < -least_gain)):
            found.append((float(closed[start, end]), (int(start), int(end), length)))
        for end in room.tolist():
            for start in np.flatnonzero(walk[:, end] < -least_gain).tolist():
                found.append((float(walk[start, end]), (start, end, -length)))
        if found or length == LONGEST - 1 or count > 256:
            break
        longer = np.full((count, count), np.inf)
        last = np.zeros((count, count), dtype=np.int64)
        for via in range(count):
            some = walk[:, via, None] + least[via]
            better = some < longer
            longer = np.where(better, some, longer)
            last[better] = via
        longer[every, every] = np.inf
        ways.append(last)
        walk = longer
    cycles = []
    for _, (start, end, length) in sorted(found)[:64]:
        cycles.append(_way(ways, start, end, abs(length)) + ((start,) if length > 0 else ()))
    return [cycle for cycle in dict.fromkeys(cycles) if len(set(cycle[:-1])) == len(cycle) - 1]


def _way(ways: list[Ints], start: int, end: int, length: int) -> tuple[int, ...]:
    """Return the groups of a walk."""
    way = [end]
    for step in range(length - 1, 0, -1):
        way.append(int(ways[step][start, way[-1]]))
    return (start, *reversed(way))
