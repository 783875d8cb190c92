# SPDX-License-Identifier: Apache-2.0
"""Recovers a grid of ranks from nothing but their traffic, whatever the order of the ranks.

In a grid, edges of one direction are opposite sides of squares, or follow each other without a square. These two rules
tell the directions apart (Feder 1992 factors any product of graphs by them). Without the edges of one direction, the
graph falls into layers, which are the positions in that direction. A hypercube, so a butterfly, is a grid of twos.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from commlens.base.arrays import Ints
from commlens.matrix.patterns import MOST_CART, Grid
from commlens.place.objective import Graph

MOST_CORNERS = 1 << 20  # pairs of partners of one rank, over all ranks
MOST_WEIGHTS = 4  # amounts of traffic from which on pairs are taken for neighbours


def grids(graph: Graph) -> Iterator[tuple[Grid, Ints]]:
    """Yield grids of all ranks, with the position of each, that all or the heaviest pairs are neighbours on."""
    if not 0 < len(graph.row) <= MOST_CORNERS:
        return
    amounts = np.unique(graph.weight)
    least = amounts[-1:] if len(amounts) > 64 else amounts[::-1][:MOST_WEIGHTS]
    for amount in dict.fromkeys([*least.tolist(), float(amounts[0])]):
        kept = graph.weight >= amount
        some = Graph.of_entries(graph.size, graph.row[kept], graph.column[kept], graph.weight[kept])
        found = grid_of(some)
        if found is not None:
            yield found


def grid_of(graph: Graph) -> tuple[Grid, Ints] | None:
    """Return the grid on which exactly the pairs with traffic are neighbours, or all ranks of a line; else None."""
    degree = np.diff(graph.start)
    if not graph.size or degree.min() < 1 or float((degree.astype(float) ** 2).sum()) > MOST_CORNERS:
        return None
    direction = _directions(graph)
    names = np.unique(direction)
    if len(names) > MOST_CART:
        return None
    dims, periods, at = [], [], []
    for name in names.tolist():
        layers = _layers(graph, direction == name)
        if layers is None:
            return None
        position, around = layers
        dims.append(int(position.max()) + 1)
        periods.append(around)
        at.append(position)
    if math.prod(dims) != graph.size:
        return None
    positions = np.ravel_multi_index(tuple(at), tuple(dims)).astype(np.int64)
    if len(np.unique(positions)) != graph.size:
        return None
    return Grid(tuple(dims), tuple(periods)), positions


def _directions(graph: Graph) -> Ints:
    """Return a number for each entry, equal for those of one direction."""
    size, degree = graph.size, np.diff(graph.start)
    code = graph.row * size + graph.column
    # Two partners of each rank, by the entries that name them.
    count = degree[graph.row]
    one = np.repeat(np.arange(len(code)), count)
    other = np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count) + graph.start[graph.row[one]]
    fine = graph.column[one] < graph.column[other]
    one, other = one[fine], other[fine]
    pair = graph.column[one] * size + graph.column[other]
    order = np.argsort(pair, kind="stable")
    one, other, pair = one[order], other[order], pair[order]
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    middles = np.diff(np.append(first, len(pair)))
    back = np.searchsorted(code, graph.column * size + graph.row)
    joined = [(np.arange(len(code)), back)]
    alone = first[middles == 1]  # no square: straight on, or a triangle
    joined.append((one[alone], other[alone]))
    square = first[middles == 2]
    joined += [(one[square], other[square + 1]), (other[square], one[square + 1])]
    at = np.minimum(np.searchsorted(code, pair), len(code) - 1)
    triangle = code[at] == pair
    joined.append((one[triangle], other[triangle]))
    return _components(len(code), *(np.concatenate(some) for some in zip(*joined)))


def _components(count: int, one: Ints, other: Ints) -> Ints:
    """Return the least member of the component of each of some things that are joined."""
    label = np.arange(count)
    while True:
        least = np.minimum(label[one], label[other])
        new = label.copy()
        np.minimum.at(new, label[one], least)
        np.minimum.at(new, label[other], least)
        new = new[new]
        if np.array_equal(new, label):
            return label.astype(np.int64)
        label = new


def _layers(graph: Graph, along: np.ndarray) -> tuple[Ints, bool] | None:
    """Return the position of each rank in a direction, and whether its ends meet; None if it is no line."""
    layer = _components(graph.size, graph.row[~along], graph.column[~along])
    names, layer = np.unique(layer, return_inverse=True)
    count = len(names)
    code = np.unique(layer[graph.row[along]] * count + layer[graph.column[along]])
    one, other = np.divmod(code, count)
    if np.any(one == other):
        return None
    degree = np.bincount(one, minlength=count)
    if degree.min() == count - 1:
        return layer.astype(np.int64), False  # all with all: any order will do
    if degree.max() > 2:
        return None
    ends = np.flatnonzero(degree == 1)
    start = np.searchsorted(one, np.arange(count))
    position = np.full(count, -1, dtype=np.int64)
    now = int(ends[0]) if len(ends) else 0
    for number in range(count):
        position[now] = number
        after = [
            there for there in other[start[now] : start[now] + degree[now]].tolist() if position[there] < 0
        ]
        if not after:
            break
        now = after[0]
    return (position[layer], not len(ends)) if position.min() >= 0 else None
