# SPDX-License-Identifier: Apache-2.0
"""Traffic of ranks for bench/placement.py, with the ranks shuffled: stencils, butterflies, random graphs, applications."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from commlens.place.objective import Graph

Edges = tuple[np.ndarray, np.ndarray, np.ndarray]


def shuffled(size: int, edges: Edges) -> Graph:
    """Return the graph of edges, each given once, with the vertices renamed at random."""
    rank = np.random.default_rng(0).permutation(size)
    one, other, weight = edges
    one, other = rank[one], rank[other]
    both = np.concatenate([weight, weight]).astype(np.float64)
    return Graph.of_entries(size, np.concatenate([one, other]), np.concatenate([other, one]), both)


def squarest(size: int, count: int) -> tuple[int, ...]:
    """Return the most equal lengths of a grid, falling, as MPI_Dims_create does.

    >>> squarest(4096, 3), squarest(1024, 3), squarest(48, 2)
    ((16, 16, 16), (16, 8, 8), (8, 6))
    """
    if count == 1:
        return (size,)
    first = min((d for d in range(1, size + 1) if size % d == 0 and d**count >= size), default=size)
    return (first, *squarest(size // first, count - 1))


def grid_edges(dims: tuple[int, ...], *, box: bool = False, around: bool = False) -> Edges:
    """Return the edges of a stencil; faces weigh most if it is a box."""
    size = math.prod(dims)
    at = np.stack(np.unravel_index(np.arange(size), dims))
    one, other, weight = [], [], []
    zero = (0,) * len(dims)
    for step in itertools.product((-1, 0, 1), repeat=len(dims)):
        if step <= zero or (not box and sum(map(abs, step)) > 1):
            continue
        there = at + np.array(step)[:, None]
        inside = np.all((there >= 0) & (there < np.array(dims)[:, None]), axis=0) | around
        there = there % np.array(dims)[:, None]
        one.append(np.flatnonzero(inside))
        other.append(np.ravel_multi_index(tuple(there[:, inside]), dims))
        weight.append(np.full(len(one[-1]), 100.0 if not box else (64.0, 8.0, 1.0)[sum(map(abs, step)) - 1]))
    return np.concatenate(one), np.concatenate(other), np.concatenate(weight)


def butterfly(size: int, growing: float) -> Edges:
    """Return the exchanges with rank XOR 2**i; each step's messages are `growing` times those before."""
    every = np.arange(size)
    steps = range(int(math.log2(size)))
    one = np.concatenate([every[every < every ^ 1 << i] for i in steps])
    other = np.concatenate([every[every < every ^ 1 << i] ^ 1 << i for i in steps])
    return one, other, np.concatenate([np.full(size // 2, 100 * growing**i) for i in steps])


def geometric(size: int, dims: int, degree: float = 8.0) -> Edges:
    """Return a random geometric graph: points in a cube, those nearer than a radius exchange."""
    point = np.random.default_rng(7).random((size, dims))
    volume = math.pi if dims == 2 else 4 / 3 * math.pi
    radius = (degree / size / volume) ** (1 / dims)
    far = np.sqrt(((point[:, None] - point[None]) ** 2).sum(axis=2))
    one, other = np.nonzero(np.triu(far < radius, 1))
    return one, other, np.rint(10 + 90 * (1 - far[one, other] / radius))


def fft(size: int) -> Edges:
    """Return a pencil FFT: all-to-all in the rows and in the columns of a grid."""
    rows, columns = squarest(size, 2)
    pairs = [
        (r * columns + a, r * columns + b, 100.0 / columns)
        for r in range(rows)
        for a, b in itertools.combinations(range(columns), 2)
    ] + [
        (a * columns + c, b * columns + c, 100.0 / rows)
        for c in range(columns)
        for a, b in itertools.combinations(range(rows), 2)
    ]
    one, other, weight = (np.array(some) for some in zip(*pairs))
    return one.astype(np.int64), other.astype(np.int64), np.maximum(1, np.rint(10 * weight))


def conjugate(size: int) -> Edges:
    """Return NPB CG: sums along the rows of a grid by doubling, and an exchange with the transposed position."""
    rows, columns = squarest(size, 2)[::-1]
    row, column = np.divmod(np.arange(size), columns)
    one, other = [], []
    for i in range(int(math.log2(columns))):
        one.append(np.arange(size))
        other.append(row * columns + (column ^ 1 << i))
    one.append(np.arange(size))
    twice = columns // rows
    other.append((column // twice) * columns + row * twice + column % twice)
    a, b = np.concatenate(one), np.concatenate(other)
    keep = a < b
    return a[keep], b[keep], np.full(int(keep.sum()), 100.0)


def quadtree(least: int) -> list[tuple[float, float, float]]:
    """Return the lower corners and the sides of at least so many squares along a Z curve, small ones around a circle."""
    squares = [(0.0, 0.0, 1.0)]
    below: dict[int, range] = {}
    heap = [(0.0, 0)]
    while len(heap) < least:
        at = heapq.heappop(heap)[1]
        x, y, half = squares[at][0], squares[at][1], squares[at][2] / 2
        below[at] = range(len(squares), len(squares) + 4)
        squares += [(x, y, half), (x + half, y, half), (x, y + half, half), (x + half, y + half, half)]
        for child in below[at]:
            x, y, side = squares[child]
            off = abs(math.hypot(x + side / 2 - 0.4, y + side / 2 - 0.45) - 0.3)
            heapq.heappush(heap, (-(side**1.5) / (0.02 + off), child))

    def along(at: int) -> Iterator[tuple[float, float, float]]:
        if at not in below:
            yield squares[at]
        for child in below.get(at, ()):
            yield from along(child)

    return list(along(0))


def refined(size: int) -> Edges:
    """Return an adaptive mesh: a quadtree that is finer around a circle, its leaves dealt along a Z curve."""
    leaves = quadtree(4 * size)
    box = np.array(leaves)
    owner = np.arange(len(leaves)) * size // len(leaves)
    low, high = box[:, :2], box[:, :2] + box[:, 2:]
    traffic: dict[tuple[int, int], float] = {}
    for at in range(len(leaves)):
        shared = np.minimum(high[at], high) - np.maximum(low[at], low)
        near = np.flatnonzero(
            (shared.min(axis=1) > -1e-12) & (shared.max(axis=1) > 1e-12) & (owner > owner[at])
        )
        for there in near.tolist():
            pair = (int(owner[at]), int(owner[there]))
            traffic[pair] = traffic.get(pair, 0.0) + 10.0
    one, other = (np.array(some, dtype=np.int64) for some in zip(*traffic))
    return one, other, np.array([*traffic.values()])


def with_sums(size: int, edges: Edges) -> Edges:
    """Return traffic with sums over all ranks: exchanges with rank XOR 2**i, of a hundredth of a message."""
    one, other, weight = butterfly(size, 1.0)
    return (
        np.concatenate([edges[0], one]),
        np.concatenate([edges[1], other]),
        np.concatenate([edges[2], weight / 100]),
    )


def patches(size: int, count: int = 64) -> Edges:
    """Return the traffic of bench/apps/amr.c: `count` sets of ranks in a row; in each a ring, and sums by doubling."""
    one, other = [], []
    for patch in range(count):
        members = 1 + (patch * 37) % size
        member = np.arange(members)
        rank = (3 * patch + member) % size
        one.append(rank)
        other.append(np.roll(rank, -1))
        whole = 1 << members.bit_length() - 1
        for step in range(members.bit_length() - 1):
            low = member[:whole][member[:whole] & 1 << step == 0]
            one.append(rank[low])
            other.append(rank[low ^ 1 << step])
    a, b = np.concatenate(one), np.concatenate(other)
    return a, b, np.full(len(a), 8.0)


def sort(size: int) -> Edges:
    """Return the traffic of bench/apps/sample_sort.c: parts of all sizes from everybody to everybody."""
    one, other = np.nonzero(np.triu(np.ones((size, size)), 1))
    return one, other, np.rint(1000 * np.random.default_rng(3).exponential(size=len(one))) + 1


FAMILIES: dict[str, Callable[[int], Edges]] = {
    "2-D stencil": lambda size: grid_edges(squarest(size, 2)),
    "3-D stencil": lambda size: grid_edges(squarest(size, 3)),
    "3-D torus": lambda size: grid_edges(squarest(size, 3), around=True),
    "2-D torus": lambda size: grid_edges(squarest(size, 2), around=True),
    "9 points": lambda size: grid_edges(squarest(size, 2), box=True),
    "27 points": lambda size: grid_edges(squarest(size, 3), box=True),
    "butterfly": lambda size: butterfly(size, 1.0),
    "growing butterfly": lambda size: butterfly(size, 2.0),
    "geometric 2-D": lambda size: geometric(size, 2),
    "geometric 3-D": lambda size: geometric(size, 3, 12.0),
    "FFT": fft,
    "CG": conjugate,
    "refined mesh": refined,
    "halo.c": lambda size: with_sums(size, grid_edges(squarest(size, 3), around=True)),
    "cg.c": lambda size: with_sums(size, grid_edges((size,))),
    "amr.c": patches,
    "sample_sort.c": sort,
}

MOST = {"sample_sort.c": 256}
"""Ranks up to which a family is measured: everybody with everybody is too much for all mappers."""


def instance(name: str, size: int) -> Graph:
    """Return the traffic of a family."""
    return shuffled(size, FAMILIES[name](size))
