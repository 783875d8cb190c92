# SPDX-License-Identifier: Apache-2.0
"""What a placement costs: the sum over all pairs of ranks of traffic times distance; and a bound that none can beat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from commlens.base.arrays import Ints
from commlens.matrix.pairs import Pairs
from commlens.matrix.patterns import Grid
from commlens.place.machine import NODE, Floats, Machine

COUNTED = {1: 0, 2: 128, 3: 24}
"""Largest sets of a grid of 2 and 3 dimensions for which all numbers of lines are tried."""

SPECTRAL = 1200  # ranks up to which eigenvalues are computed
ROUNDING = 1e-9  # relative error of the bound, which is taken off


@dataclass(frozen=True)
class Graph:
    """Undirected traffic between ranks, each pair twice, ordered by rank (compressed sparse rows).

    Attributes
    ----------
    size : int
        Number of ranks.
    row, column : Ints
        The two ranks of each entry.
    weight : Floats
        Traffic of both directions.
    start : Ints
        First entry of each rank, and the end.
    messages : Floats or None
        Messages of each entry, if the bytes that one counts beside its own differ between levels. `weight` then counts
        them as in the network.
    """

    size: int
    row: Ints
    column: Ints
    weight: Floats
    start: Ints
    messages: Floats | None = None

    @classmethod
    def of_entries(cls, size: int, row: Ints, column: Ints, weight: Floats) -> Graph:
        """Return the graph of entries in any order; repeated ones are added up and entries of one rank left out."""
        others = row != column
        code = row[others] * size + column[others]
        order = np.argsort(code, kind="stable")
        code, weight = code[order], weight[others][order]
        first = np.flatnonzero(np.concatenate(([True], code[1:] != code[:-1]))) if len(code) else code
        weight = np.add.reduceat(weight, first) if len(code) else weight
        code = code[first]
        row = code // max(size, 1)
        start = np.searchsorted(row, np.arange(size + 1)).astype(np.int64)
        return cls(size, row, code - row * size, weight, start)

    @property
    def total(self) -> float:
        """Traffic between different ranks."""
        return float(self.weight.sum()) / 2


def traffic(pairs: Pairs, size: int, per_message: float = 0.0, by_level: bool = False) -> Graph:
    """Return the traffic that a placement is judged by.

    Parameters
    ----------
    per_message : float
        Bytes that a message costs beside its own: its latency times the bandwidth.
    by_level : bool
        Whether they differ between levels: `per_message` is then that of the network.
    """
    weight = pairs.bytes + per_message * pairs.messages
    both = (
        np.concatenate([pairs.source, pairs.destination]),
        np.concatenate([pairs.destination, pairs.source]),
    )
    graph = Graph.of_entries(size, *both, np.concatenate([weight, weight]).astype(np.float64))
    if not by_level:
        return graph
    messages = np.concatenate([pairs.messages, pairs.messages]).astype(np.float64)
    return replace(graph, messages=Graph.of_entries(size, *both, messages).weight)


def cost(graph: Graph, machine: Machine, slots: Ints) -> float:
    """Return the sum over all pairs of traffic times distance."""
    ends = slots[graph.row], slots[graph.column]
    found = graph.weight * machine.distances(*ends)
    if graph.messages is not None:
        found += graph.messages * machine.message_distances(*ends)
    return float(found.sum()) / 2


def by_level(graph: Graph, machine: Machine, slots: Ints) -> Floats:
    """Return the traffic at each level, the innermost first."""
    levels = machine.levels_of(slots[graph.row], slots[graph.column])
    weight = graph.weight
    if graph.messages is not None:
        weight = weight + graph.messages * (machine.per_message - machine.per_message[-1])[levels]
    found: Floats = np.bincount(levels, weights=weight, minlength=len(machine.levels)) / 2
    return found


def lower_bound(graph: Graph, machine: Machine, grids: Sequence[tuple[Grid, Ints]] = ()) -> float:
    """Return a cost that no placement can go below.

    A placement costs the traffic times the largest distance, less what each level saves. What lies inside the groups of
    a level is bounded for each level by itself: by the heaviest partners that fit beside each rank, by the heaviest
    pairs that fit, by the eigenvalues of the traffic, and on a grid by its surface.

    Parameters
    ----------
    grids : sequence of (grid, positions)
        Grids all traffic of which is between neighbours, and the position of each rank on them.
    """
    if graph.messages is not None:
        return _bound_by_parts(graph, machine, grids)
    least = _least_distances(machine)
    if not graph.total:
        return 0.0
    bound = graph.total * least[-1]
    eigenvalues = _eigenvalues(graph) if graph.size <= SPECTRAL else None
    for level in range(len(machine.levels) - 1):
        saved = least[level + 1] - least[level]
        if saved > 0:
            rooms = np.sort(np.bincount(machine.levels[level].groups))[::-1].astype(np.int64)
            bound -= saved * most_inside(graph, rooms, eigenvalues, grids)
    return max(0.0, float(bound - ROUNDING * graph.total * least[-1]))


def _bound_by_parts(graph: Graph, machine: Machine, grids: Sequence[tuple[Grid, Ints]]) -> float:
    """Return the sum of the bounds of bytes and of messages, each by itself."""
    assert graph.messages is not None
    per_message = machine.per_message
    bytes = replace(graph, weight=graph.weight - per_message[-1] * graph.messages, messages=None)
    of_messages = replace(
        machine,
        levels=tuple(replace(level, distance=level.distance * level.per_message) for level in machine.levels),
        between=None
        if machine.between is None
        else machine.between
        * min(
            level.per_message
            for level in machine.levels[[one.name for one in machine.levels].index(NODE) + 1 :]
        ),
    )
    messages = replace(graph, weight=graph.messages, messages=None)
    return lower_bound(bytes, machine, grids) + lower_bound(messages, of_messages, grids)


def _least_distances(machine: Machine) -> Floats:
    """Return for each level a distance that two slots that share no inner level have at least."""
    distance = np.array([level.distance for level in machine.levels])
    if machine.between is not None:
        node = [level.name for level in machine.levels].index("node")
        first = np.unique(machine.node, return_index=True)[1].astype(np.int64)
        one, other = (side.ravel() for side in np.meshgrid(first, first))
        levels, apart = machine.levels_of(one, other), machine.distances(one, other)
        for level in range(node + 1, len(distance)):
            here = apart[(levels == level) & (one != other)]
            distance[level] = here.min() if len(here) else np.inf
    if not np.isfinite(distance[-1]):
        distance[-1] = distance[np.isfinite(distance)].max()
    return np.minimum.accumulate(distance[::-1])[::-1]


def most_inside(
    graph: Graph, rooms: Ints, eigenvalues: Floats | None = None, grids: Sequence[tuple[Grid, Ints]] = ()
) -> float:
    """Return an upper bound of the traffic inside groups of ranks.

    Parameters
    ----------
    rooms : Ints
        Largest number of ranks of each group, falling.
    """
    largest = min(int(rooms[0]), graph.size)
    if largest >= graph.size:
        return graph.total
    found = [graph.total, _by_partners(graph, largest), _by_pairs(graph, rooms)]
    if eigenvalues is not None:
        found.append(_by_eigenvalues(graph, rooms, eigenvalues))
    found += [_by_surface(graph, largest, grid, positions) for grid, positions in grids]
    return max(0.0, min(found))


def _by_partners(graph: Graph, largest: int) -> float:
    """Bound by partners: each rank has at most its heaviest ones beside it."""
    order = np.lexsort((-graph.weight, graph.row))
    place = np.arange(len(order)) - graph.start[graph.row[order]]
    return float(graph.weight[order][place < largest - 1].sum()) / 2


def _by_pairs(graph: Graph, rooms: Ints) -> float:
    """Bound by pairs: only so many fit into the groups, the most if the largest groups are full."""
    left, pairs = graph.size, 0
    for room in rooms.tolist():
        some = min(room, left)
        pairs += some * (some - 1) // 2
        left -= some
        if not left:
            break
    heaviest = -np.sort(-graph.weight[graph.row < graph.column])
    return float(heaviest[:pairs].sum())


def _eigenvalues(graph: Graph) -> Floats:
    """Return the eigenvalues of the Laplacian, rising."""
    dense = np.zeros((graph.size, graph.size))
    dense[graph.row, graph.column] = -graph.weight
    dense[np.arange(graph.size), np.arange(graph.size)] = -dense.sum(axis=1)
    return np.sort(np.linalg.eigvalsh(dense)) if graph.size else np.zeros(0)


def _by_eigenvalues(graph: Graph, rooms: Ints, eigenvalues: Floats) -> float:
    """Bound the traffic between groups: at least half the sum of sizes times eigenvalues (Donath and Hoffman 1973)."""
    left, cut = graph.size, 0.0
    for room, value in zip(rooms.tolist(), eigenvalues.tolist()):
        some = min(room, left)
        cut += some * max(0.0, value) / 2
        left -= some
    return graph.total - cut * (1 - 1e-9)


def _by_surface(graph: Graph, largest: int, grid: Grid, positions: Ints) -> float:
    """Bound by lines: s positions of a grid on p lines of a direction have at most s - p pairs in that direction.

    The numbers of lines multiply to at least s**(d-1) (Loomis and Whitney 1949). A periodic line that the set fills has
    one pair more.
    """
    dims = [(axis, length) for axis, length in enumerate(grid.dims) if length > 1]
    if len(dims) > 3 or not dims:
        return graph.total
    at = np.stack(np.unravel_index(positions, grid.dims))
    step = at[:, graph.row] != at[:, graph.column]
    weights = [float(graph.weight[step[axis]].max(initial=0.0)) for axis, _ in dims]
    best = 0.0
    for size in range(1, largest + 1):
        best = max(best, _of_set(size, [length for _, length in dims], weights, grid, dims) / size)
    return best * graph.size


def _of_set(
    size: int, lengths: Sequence[int], weights: Sequence[float], grid: Grid, dims: Sequence[tuple[int, int]]
) -> float:
    """Return an upper bound of the traffic inside a set of `size` positions of a grid."""
    whole = [size // length if grid.periods[axis] and length > 2 else 0 for axis, length in dims]
    count = len(dims)
    if count == 1:
        return weights[0] * (size - 1 + min(1, whole[0]))
    # The numbers of lines of all directions but the last; that of the last follows from their product.
    least = [-(-size // length) for length in lengths]
    free = [range(least[at], size + 1) for at in range(count - 1)]
    if size > COUNTED[count]:
        return _of_large_set(size, weights, whole)
    best = 0.0
    for lines in product(*free):
        rest = 1
        for number in lines:
            rest *= number
        last = max(least[-1], -(-(size ** (count - 1)) // rest), 1)
        if last > size:
            continue
        every = (*lines, last)
        inside = sum(w * (size - p + min(p, f)) for w, p, f in zip(weights, every, whole))
        best = max(best, inside)
    return best


def _of_large_set(size: int, weights: Sequence[float], whole: Sequence[int]) -> float:
    """Return the same by the inequality of means, without counting lines."""
    count = len(weights)
    mean = math.prod(weights) ** (1 / count)
    lines = count * mean * float(size) ** ((count - 1) / count)
    return float(sum(w * (size + f) for w, f in zip(weights, whole)) - lines * (1 - 1e-12))
