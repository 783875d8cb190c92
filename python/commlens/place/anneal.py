# SPDX-License-Identifier: Apache-2.0
"""Simulated annealing: ranks move to the group of one of their partners.

At first a rank may also move where the cost rises. The further the search gets, the smaller such a rise must be, and at the
end hardly any is accepted. A group may have more ranks than slots for a while. This adds a penalty to the cost, which grows
until few groups are too full. Ranks that have no traffic with each other decide at the same time, by operations on arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commlens.base.arrays import Ints
from commlens.place.bisect import Random
from commlens.place.groups import Seating
from commlens.place.machine import Floats
from commlens.place.objective import Graph

CLASSES = 8
"""Sets of ranks that decide at the same time. A denser graph needs more, and the last sets then have neighbours inside."""

HOT, COLD = 0.5, 0.1
"""Temperature at the start and at the end, relative to the mean traffic of a pair over the largest distance."""

CROWDED, FULL = 0.2, 0.8
"""What a rank above the room of a group costs, at the start and at the end, in the same unit."""


@dataclass(frozen=True)
class Turn:
    """Ranks that decide at the same time, and their traffic.

    Attributes
    ----------
    rank, count, start : Ints
        The ranks, the number of their partners, and where these start.
    which, partner, weight : arrays
        Index of the rank, partner and traffic of each entry.
    """

    rank: Ints
    count: Ints
    start: Ints
    which: Ints
    partner: Ints
    weight: Floats


def anneal(seating: Seating, random: Random, sweeps: int, hot: float = HOT) -> None:
    """Change the groups of ranks; some groups may be too full afterwards."""
    distance = seating.groups.distance
    far = float(distance.max() - distance.min())
    turns = _turns(seating, random)
    if not turns or far <= 0:
        return
    unit = float(seating.graph.weight.mean()) * far
    flat = np.ascontiguousarray(distance).ravel()
    for sweep in range(sweeps):
        progress = sweep / max(1, sweeps - 1)
        heat = unit * hot * (COLD / hot) ** progress
        price = unit * CROWDED * (FULL / CROWDED) ** progress
        for turn in turns:
            _decide(seating, turn, random, flat, heat, price)


def _decide(seating: Seating, turn: Turn, random: Random, flat: Floats, heat: float, price: float) -> None:
    """Let ranks move to the group of one of their partners."""
    own, excess, count = seating.own, seating.excess, len(seating.groups)
    beside = own[turn.partner]
    here = own[turn.rank]
    there = beside[turn.start + (random.random(len(here)) * turn.count).astype(np.int64)]
    change = flat[(there * count)[turn.which] + beside] - flat[(here * count)[turn.which] + beside]
    more = np.add.reduceat(turn.weight * change, turn.start)
    floor = 0 if excess.sum() < 0 else int(excess.min()) - 1
    more += price * (_crowd(excess[there], 1, floor) + _crowd(excess[here], -1, floor))
    moves = np.flatnonzero((there != here) & (more < -heat * np.log(1 - random.random(len(here)))))
    # One rank a turn enters or leaves a group: more of them would all take the same room.
    moves = moves[np.unique(there[moves], return_index=True)[1]]
    moves = moves[np.unique(here[moves], return_index=True)[1]]
    own[turn.rank[moves]] = there[moves]
    excess[here[moves]] -= 1
    excess[there[moves]] += 1


def _crowd(excess: Ints, step: int, floor: int) -> Ints:
    """Return by how much the square of the ranks that are too many changes if some come or go.

    Without room to spare, a rank too few is as bad as one too many; else only those above `floor` count.
    """
    change: Ints = np.maximum(floor, excess + step) ** 2 - np.maximum(floor, excess) ** 2
    return change


def _turns(seating: Seating, random: Random) -> list[Turn]:
    """Return the free ranks with traffic in sets."""
    graph = seating.graph
    degree = np.diff(graph.start)
    colour = _colours(graph, random)
    turns = []
    for number in range(CLASSES):
        rank = random.permutation(np.flatnonzero((colour == number) & seating.free & (degree > 0)))
        if not len(rank):
            continue
        count = degree[rank]
        start = np.cumsum(count) - count
        entry = np.arange(int(count.sum())) + np.repeat(graph.start[rank] - start, count)
        which = np.repeat(np.arange(len(rank)), count)
        turns.append(Turn(rank, count, start, which, graph.column[entry], graph.weight[entry]))
    return turns


def _colours(graph: Graph, random: Random) -> Ints:
    """Return a set for each rank; all sets but the last ones have no traffic inside."""
    order = random.permutation(graph.size)
    colour = random.integers(CLASSES // 2, CLASSES, graph.size)
    left = np.ones(graph.size, dtype=bool)
    earlier = order[graph.row] < order[graph.column]
    for number in range(CLASSES):
        open_to = left.copy()
        for _ in range(4):
            loses = np.zeros(graph.size, dtype=bool)
            loses[graph.row[earlier & open_to[graph.row] & open_to[graph.column]]] = True
            wins = open_to & ~loses
            colour[wins] = number
            left &= ~wins
            open_to &= ~wins
            open_to[graph.column[wins[graph.row]]] = False
        if not left.any():
            break
    return colour.astype(np.int64)
