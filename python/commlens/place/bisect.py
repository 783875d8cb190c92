# SPDX-License-Identifier: Apache-2.0
"""Divides ranks among the groups of a machine: recursive bisection, in which all parts of one depth are divided at once.

Each bisection is multilevel: pairs of ranks with much traffic are merged until the graph is small, an approximate Fiedler
vector divides the small graph, and swaps improve the division at each size. All steps are operations on arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commlens.base.arrays import Flags, Ints
from commlens.place.machine import Floats, Machine
from commlens.place.objective import Graph

SMALL = 48  # vertices of a part that are no longer merged
STALLED = 0.9  # of the vertices that may remain after merging
HEAVIEST = 64  # ranks of a merged vertex
POWER_STEPS, FEW_STEPS = 300, 60  # of small graphs, and of those with more than MANY vertices
MANY = 5000
SWAP_ROUNDS = 12
NOISE = 1e-6  # relative to the traffic: decides between equals

Random = np.random.Generator


@dataclass
class Parts:
    """A graph without entries between its parts; each part is to be divided in two.

    Attributes
    ----------
    graph : Graph
    part : Ints
        Part of each vertex.
    size : Ints
        Ranks of each vertex.
    wanted : Ints
        Ranks of side 0 of each part.
    fixed : Ints
        Side of each vertex that must be there; -1: either.
    """

    graph: Graph
    part: Ints
    size: Ints
    wanted: Ints
    fixed: Ints


def divide(graph: Graph, machine: Machine, random: Random, pins: Ints) -> Ints:
    """Return a slot for each vertex; there are as many vertices as slots.

    Parameters
    ----------
    pins : Ints
        Slot of each vertex that must have it, else -1.
    """
    bounds = [np.flatnonzero(np.diff(level.groups, prepend=-1)) for level in machine.levels]
    flat = _first_level_that_matters(machine)
    low = np.zeros(graph.size, dtype=np.int64)
    high = np.full(graph.size, graph.size, dtype=np.int64)
    middle_of: dict[tuple[int, int], int] = {}
    while True:
        first, number = np.unique(low, return_inverse=True)
        last = np.zeros(len(first), dtype=np.int64)
        last[number] = high
        for span in zip(first.tolist(), last.tolist()):
            if span not in middle_of:
                middle_of[span] = _middle(*span, bounds[flat:])
        middle = np.array([middle_of[span] for span in zip(first.tolist(), last.tolist())], dtype=np.int64)
        split = middle[number] >= 0
        if not split.any():
            return _in_order(low, pins)
        at = np.flatnonzero(split)
        numbers = np.full(graph.size, -1, dtype=np.int64)
        numbers[at] = np.arange(len(at))
        kept = split[graph.row] & (low[graph.row] == low[graph.column])
        sub = Graph.of_entries(
            len(at), numbers[graph.row[kept]], numbers[graph.column[kept]], graph.weight[kept]
        )
        names, part = np.unique(number[at], return_inverse=True)
        fixed = np.where(pins[at] < 0, -1, (pins[at] >= middle[number[at]]).astype(np.int64))
        side = bisect(
            Parts(sub, part, np.ones(len(at), dtype=np.int64), middle[names] - first[names], fixed), random
        )
        cut = middle[number[at]]
        high[at], low[at] = np.where(side == 0, cut, high[at]), np.where(side == 1, cut, low[at])


def _first_level_that_matters(machine: Machine) -> int:
    """Return the innermost level below which all slots of a group are equally far from each other."""
    return 1 if len(machine.levels) > 1 else 0


def _middle(low: int, high: int, bounds: list[Ints]) -> int:
    """Return the boundary of groups next to the middle of some slots, of the outermost level that has one; else -1."""
    for starts in reversed(bounds):
        begin, end = np.searchsorted(starts, [low + 1, high])
        if end > begin:
            inside = starts[begin:end]
            return int(inside[np.argmin(np.abs(2 * inside - low - high))])
    return -1


def _in_order(low: Ints, pins: Ints) -> Ints:
    """Return different slots for the vertices of each group, pinned ones first."""
    slots = np.full(len(low), -1, dtype=np.int64)
    pinned = pins >= 0
    slots[pinned] = pins[pinned]
    free = np.ones(len(low), dtype=bool)
    free[slots[pinned]] = False
    others = np.flatnonzero(~pinned)
    order = others[np.argsort(low[others], kind="stable")]
    slots[order] = np.flatnonzero(free)
    return slots


def bisect(parts: Parts, random: Random) -> Ints:
    """Return the side, 0 or 1, of each vertex."""
    merged = _merged(parts, random)
    if merged is None:
        side = _by_fiedler(parts, random)
    else:
        coarse, parent = merged
        side = bisect(coarse, random)[parent]
    if np.all(parts.size == 1):
        _balance(parts, side)
    _swap(parts, side, random)
    return side


def _merged(parts: Parts, random: Random) -> tuple[Parts, Ints] | None:
    """Return the graph with pairs of vertices merged, and the new number of each; None if it is small or cannot."""
    graph = parts.graph
    if not len(graph.row) or np.bincount(parts.part).max() <= SMALL:
        return None
    most = np.minimum(HEAVIEST, np.maximum(1, parts.wanted // 8))[parts.part]
    mate = _mates(parts, most, random)
    alone = np.arange(graph.size)
    leader = np.minimum(alone, mate)
    names, parent = np.unique(leader, return_inverse=True)
    if len(names) > STALLED * graph.size:
        return None
    parent = parent.astype(np.int64)
    coarse = Graph.of_entries(len(names), parent[graph.row], parent[graph.column], graph.weight)
    size = np.bincount(parent, weights=parts.size).astype(np.int64)
    return Parts(coarse, parts.part[names], size, parts.wanted, parts.fixed[names]), parent


def _mates(parts: Parts, most: Ints, random: Random) -> Ints:
    """Return for each vertex the one to merge it with, or itself: free vertices choose the heaviest, in rounds."""
    graph, size = parts.graph, parts.size
    mate = np.arange(graph.size)
    row, column, weight = (
        graph.row,
        graph.column,
        graph.weight / np.sqrt(size[graph.row] * size[graph.column]),
    )
    fits = (parts.fixed[row] < 0) & (parts.fixed[column] < 0) & (size[row] + size[column] <= most[row])
    row, column, weight = row[fits], column[fits], weight[fits]
    for _ in range(5):
        if not len(row):
            break
        noise = random.random(graph.size)
        lot = weight * (1 + 0.001 * ((noise[row] + noise[column]) % 1))
        first = np.flatnonzero(np.diff(row, prepend=-1))
        best = np.maximum.reduceat(lot, first)
        is_best = lot == np.repeat(best, np.diff(np.append(first, len(row))))
        choice = np.full(graph.size, -1, dtype=np.int64)
        choice[row[is_best]] = column[is_best]
        chosen = np.flatnonzero(choice >= 0)
        mutual = chosen[choice[choice[chosen]] == chosen]
        mate[mutual] = choice[mutual]
        free = mate == np.arange(graph.size)
        left = free[row] & free[column]
        row, column, weight = row[left], column[left], weight[left]
    return mate


def _by_fiedler(parts: Parts, random: Random) -> Ints:
    """Return sides by the order of the slowest mode of diffusion in each part."""
    graph, part, size = parts.graph, parts.part, parts.size
    value = random.standard_normal(graph.size)
    degree = np.bincount(graph.row, weights=graph.weight, minlength=graph.size)
    mass = np.where(degree > 0, degree, 1.0)
    share = graph.weight / mass[graph.row]
    whole = np.bincount(part, weights=mass)
    for _ in range(POWER_STEPS if graph.size <= MANY else FEW_STEPS):
        value = value - (np.bincount(part, weights=mass * value) / whole)[part]
        spread = np.bincount(graph.row, weights=share * value[graph.column], minlength=graph.size)
        value = 0.5 * (value + np.where(degree > 0, spread, value))
        norm = np.sqrt(np.bincount(part, weights=mass * value * value) / whole)
        value = value / np.where(norm > 0, norm, 1.0)[part]
    value = np.where(parts.fixed == 0, -np.inf, np.where(parts.fixed == 1, np.inf, value))
    order = np.lexsort((value, part))
    before = np.cumsum(size[order]) - size[order]
    start = np.zeros(len(parts.wanted))
    np.minimum.at(start, part[order], np.inf)
    first = np.flatnonzero(np.diff(part[order], prepend=-1))
    start[part[order][first]] = before[first]
    middle = before - start[part[order]] + size[order] / 2
    side = np.zeros(graph.size, dtype=np.int64)
    side[order] = (middle > parts.wanted[part[order]]).astype(np.int64)
    return np.where(parts.fixed >= 0, parts.fixed, side)


def _gains(graph: Graph, side: Ints) -> Floats:
    """Return by how much the traffic between the sides falls if a vertex changes its side."""
    signed = np.where(side[graph.row] == side[graph.column], -graph.weight, graph.weight)
    return np.asarray(np.bincount(graph.row, weights=signed, minlength=graph.size), dtype=np.float64)


def _balance(parts: Parts, side: Ints) -> None:
    """Move single ranks until each part has as many on side 0 as wanted: in steps, the best ones first."""
    for _ in range(64):
        excess = (
            np.bincount(parts.part, weights=side == 0, minlength=len(parts.wanted)).astype(np.int64)
            - parts.wanted
        )
        if not excess.any():
            return
        gain = _gains(parts.graph, side)
        away = np.where(side == 0, excess[parts.part] > 0, excess[parts.part] < 0) & (parts.fixed < 0)
        at = np.flatnonzero(away)
        order = at[np.lexsort((-gain[at], parts.part[at]))]
        first = np.flatnonzero(np.diff(parts.part[order], prepend=-1))
        lengths = np.diff(np.append(first, len(order)))
        place = np.arange(len(order)) - np.repeat(first, lengths)
        step = -(-np.abs(excess) // 4)
        moved = order[place < step[parts.part[order]]]
        if not len(moved):
            return
        side[moved] = 1 - side[moved]


def _swap(parts: Parts, side: Ints, random: Random) -> None:
    """Swap vertices of equal size between the sides as long as it helps."""
    graph = parts.graph
    if not len(graph.row):
        return
    kind = parts.part * (int(parts.size.max()) + 1) + parts.size
    scale = float(graph.weight.max())
    for _ in range(SWAP_ROUNDS):
        gain = _gains(graph, side)
        lot = gain + scale * 0.01 * random.random(graph.size)
        one, other = _couples(kind, lot, side, parts.fixed < 0)
        together = gain[one] + gain[other] - 2 * weights_of(graph, one, other)
        helps = together > NOISE * scale
        one, other, together = one[helps], other[helps], together[helps]
        kept = independent(graph, one, other, together + scale * 1e-3 * random.random(len(one)))
        if not len(one):
            return
        side[one[kept]], side[other[kept]] = 1, 0


def _couples(kind: Ints, lot: Floats, side: Ints, free: Flags) -> tuple[Ints, Ints]:
    """Return for each kind of vertex the best of both sides, then the second best, and so on."""
    both = []
    for which in (0, 1):
        at = np.flatnonzero(free & (side == which))
        order = at[np.lexsort((-lot[at], kind[at]))]
        first = np.flatnonzero(np.diff(kind[order], prepend=-1))
        place = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
        both.append((order, kind[order] * (len(kind) + 1) + place))
    _, here, there = np.intersect1d(both[0][1], both[1][1], assume_unique=True, return_indices=True)
    return both[0][0][here], both[1][0][there]


def weights_of(graph: Graph, one: Ints, other: Ints) -> Floats:
    """Return the traffic of pairs of vertices."""
    if not len(graph.row):
        return np.zeros(len(one))
    codes = graph.row * graph.size + graph.column
    wanted = one * graph.size + other
    at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return np.where(codes[at] == wanted, graph.weight[at], 0.0)


def independent(graph: Graph, one: Ints, other: Ints, lot: Floats) -> Flags:
    """Return which couples to swap: no two of them have traffic with each other or a vertex in common."""
    order = np.argsort(np.argsort(lot))
    couple = np.full(graph.size, -1, dtype=np.int64)
    ranked = np.argsort(order)
    couple[one[ranked]] = ranked
    clash = couple[one] != np.arange(len(one))
    taken = np.full(graph.size, -1, dtype=np.int64)
    best = np.full(graph.size, -1, dtype=np.int64)
    np.maximum.at(best, one, order)
    np.maximum.at(best, other, order)
    kept = (best[one] == order) & (best[other] == order) & ~clash
    at = np.flatnonzero(kept)
    taken[one[at]], taken[other[at]] = at, at
    a, b = taken[graph.row], taken[graph.column]
    meet = (a >= 0) & (b >= 0) & (a != b)
    a, b = a[meet], b[meet]
    kept[a[order[a] < order[b]]] = False
    return np.asarray(kept, dtype=np.bool_)
