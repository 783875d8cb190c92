# SPDX-License-Identifier: Apache-2.0
"""Recognises known patterns in a matrix.

A pattern is a set of pairs.  A matrix has the pattern if all these pairs communicate and carry nearly all traffic.  A
few other messages do not hide a pattern, but a missing pair does.  Ranks are in the order of the communicator; a grid in
another order is found only from a Cartesian topology.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product

import numpy as np

from commlens.base.arrays import Ints, ints
from commlens.matrix.pairs import Pairs

ENOUGH = 0.95  # share of the traffic
MOST_DIMENSIONS = 6
MOST_CART = 32  # dimensions of a topology: the limit of numpy
SAMPLE = 16
MOST_GRIDS = 2048  # number of grids to try

Edges = tuple[Ints, Ints]

NONE = "none"


@dataclass(frozen=True)
class Pattern:
    """A known pattern.

    Attributes
    ----------
    name : str
        "none", "ring", "nearest neighbour", "transpose", "all-to-all", "one-to-all", "all-to-one", "one-to-all and
        back", "pairs", "chain", "own", "one rank".
    detail : str
        Its grid or root.
    share : float
        Share of the traffic that is between its pairs.
    """

    name: str
    detail: str = ""
    share: float = 1.0

    def text(self) -> str:
        """Return the grid in words."""
        words = f"{self.name}, {self.detail}" if self.detail else self.name
        return (
            words if self.name == NONE or self.share > 0.9995 else f"{words} ({100 * self.share:.1f} % of it)"
        )


@dataclass(frozen=True)
class Grid:
    """A grid of ranks, the last coordinate the fastest, as in MPI_Cart_create."""

    dims: tuple[int, ...]
    periods: tuple[bool, ...]

    def text(self) -> str:
        """Return the grid in the format of table comm."""
        periods = "".join("1" if period else "0" for period in self.periods)
        return f"{'x'.join(map(str, self.dims))} periodic {periods}"

    def neighbours(self, steps: Sequence[Sequence[int]], ranks: Ints) -> Edges:
        """Return the pairs from these ranks to those at the given steps."""
        at = np.stack(np.unravel_index(ranks, self.dims))
        size = np.array(self.dims)[:, None]
        around = np.array(self.periods)[:, None]
        sources, destinations = [ints()], [ints()]
        for step in steps:
            there = at + np.array(step)[:, None]
            there = np.where(around, there % size, there)
            is_in = np.all((there >= 0) & (there < size), axis=0)
            to = np.ravel_multi_index(tuple(there[:, is_in]), self.dims)
            sources.append(ranks[is_in])
            destinations.append(to.astype(np.int64))
        source, destination = np.concatenate(sources), np.concatenate(destinations)
        others = source != destination
        return source[others], destination[others]


def axis_steps(dimensions: int, directions: Sequence[int]) -> list[tuple[int, ...]]:
    """Return one step along each axis, in these directions."""
    return [
        tuple(direction if i == axis else 0 for i in range(dimensions))
        for axis in range(dimensions)
        for direction in directions
    ]


# Name of a neighbourhood -> function that returns the steps to the neighbours for a number of dimensions.
SHAPES: dict[str, Callable[[int], list[tuple[int, ...]]]] = {
    "": lambda n: axis_steps(n, (-1, 1)),
    "with diagonals": lambda n: [step for step in product((-1, 0, 1), repeat=n) if any(step)],
    "one way": lambda n: axis_steps(n, (1,)),
    "one way, backwards": lambda n: axis_steps(n, (-1,)),
}


class Finder:
    """Compares the pairs of `size` ranks with known patterns."""

    def __init__(self, pairs: Pairs, size: int, what: str):
        others = pairs.chosen(pairs.source != pairs.destination)
        # Traffic without bytes is compared by messages.
        weights = others.values(what) if others.total(what) else others.messages
        self.size = size
        self.source, self.destination = others.source, others.destination
        self.codes = others.codes(size)  # rising
        self.weights = weights.astype(np.float64)
        self.total = float(self.weights.sum())
        self.distances = set(np.unique(self.destination - self.source).tolist())

    def has(self, source: int, destination: int) -> bool:
        """Return whether a pair communicates."""
        return self.all_talk((ints([source]), ints([destination])))

    def all_talk(self, edges: Edges) -> bool:
        """Return whether all pairs of a set communicate."""
        wanted = edges[0] * self.size + edges[1]
        if not len(wanted) or not len(self.codes):
            return False
        at = np.searchsorted(self.codes, wanted)
        return bool(np.all(at < len(self.codes)) and np.all(self.codes[at] == wanted))

    def share(self, edges: Edges) -> float:
        """Return the share of the traffic between pairs of a set; 0 if one of them does not communicate."""
        if not self.all_talk(edges):
            return 0.0
        inside = np.isin(self.codes, edges[0] * self.size + edges[1])
        return float(self.weights[inside].sum()) / self.total

    def pattern(self, grids: Sequence[tuple[str, Grid, Ints]] = ()) -> Pattern:
        """Return the known pattern; `grids` are topologies: name, grid, and the rank at each position."""
        if self.size <= 1:
            return Pattern("one rank")
        if not len(self.codes) or not self.total:
            return Pattern("own", "each rank to itself")
        for name, edges in chain(
            self.simple(), self.transposes()
        ):  # one at a time: with a million ranks each is large
            share = self.share(edges)
            if share >= ENOUGH:
                return Pattern(*name, share)
        found = self.nearest(grids)
        return found if found.share >= ENOUGH else Pattern(NONE, share=0.0)

    def simple(self) -> Iterator[tuple[tuple[str, str], Edges]]:
        """Return the patterns without a grid."""
        everybody = np.arange(self.size, dtype=np.int64)
        if len(self.codes) == self.size * (self.size - 1) and self.size > 2:
            # If all pairs communicate, the pattern is all-to-all unless few pairs carry nearly all traffic.
            heavy = float(np.sort(self.weights)[-(len(self.weights) // 2) :].sum())
            if heavy < ENOUGH * self.total:
                yield ("all-to-all", ""), (self.source, self.destination)
        partners = np.bincount(self.source, minlength=self.size) + np.bincount(
            self.destination, minlength=self.size
        )
        root = int(partners.argmax())
        others = everybody[everybody != root]
        roots = np.full(len(others), root, dtype=np.int64)
        if self.size > 2:
            yield ("one-to-all", f"root {root}"), (roots, others)
            yield ("all-to-one", f"root {root}"), (others, roots)
            both = (np.concatenate([roots, others]), np.concatenate([others, roots]))
            yield ("one-to-all and back", f"root {root}"), both
        for detail, step in (("", 1), ("backwards", -1)):
            if self.size > 2:
                yield ("ring", detail or "one way"), (everybody, (everybody + step) % self.size)
        if self.size > 3:
            ahead, back = (everybody + 1) % self.size, (everybody - 1) % self.size
            ends = (np.concatenate([everybody, everybody]), np.concatenate([ahead, back]))
            yield ("ring", "both ways"), ends

    def transposes(self) -> Iterator[tuple[tuple[str, str], Edges]]:
        """Return the transposes of grids, and exchanges of pairs."""
        everybody = np.arange(self.size, dtype=np.int64)
        for rows in divisors(self.size):
            columns = self.size // rows
            if rows < 2 or columns < 2 or self.size < 6:
                continue
            other = everybody % columns * rows + everybody // columns
            moves = other != everybody
            yield ("transpose", f"{rows}x{columns}"), (everybody[moves], other[moves])
        # The partner with the most traffic, if that is mutual.
        order = np.lexsort((-self.weights, self.source))
        first = order[np.unique(self.source[order], return_index=True)[1]]
        partner = np.full(self.size, -1, dtype=np.int64)
        partner[self.source[first]] = self.destination[first]
        talks = partner >= 0
        mutual = talks & (np.where(talks, partner[partner], -1) == everybody)
        if self.size == 2 or mutual.any():
            yield ("pairs", f"{int(mutual.sum()) // 2:,} of them"), (everybody[mutual], partner[mutual])

    def nearest(self, grids: Sequence[tuple[str, Grid, Ints]]) -> Pattern:
        """Return the grid whose neighbours explain the largest share; prefers grids of topologies."""
        best = Pattern(NONE, share=0.0)
        for name, grid, order in grids:
            best = better(best, self.on_grid(grid, order, f", as {name} has it"))
        if best.share >= ENOUGH:
            return best
        for dims in self.grids():
            around = []
            stride = self.size
            for length in dims:
                stride //= length
                around.append(
                    length > 2 and (self.has(0, (length - 1) * stride) or self.has((length - 1) * stride, 0))
                )
            best = better(best, self.on_grid(Grid(dims, tuple(around)), None, ""))
        return best

    def on_grid(self, grid: Grid, order: Ints | None, origin: str) -> Pattern:
        """Return the share that neighbours on a grid explain."""
        dimensions = sum(length > 1 for length in grid.dims)
        best = Pattern(NONE, share=0.0)
        everybody = np.arange(self.size, dtype=np.int64)
        few = everybody[:: max(1, self.size // SAMPLE)]
        for shape, steps in SHAPES.items():
            if shape == "with diagonals" and dimensions == 1:
                continue
            moves = steps(len(grid.dims))
            # Checks few ranks first, because most grids fail there.
            if not self.all_talk(ordered(grid.neighbours(moves, few), order)):
                continue
            share = self.share(ordered(grid.neighbours(moves, everybody), order))
            noun = "dimension" if dimensions == 1 else "dimensions"
            way = f", {shape}" if shape else ""
            name = "chain" if dimensions == 1 and shape.startswith("one way") else "nearest neighbour"
            found = Pattern(name, f"{dimensions} {noun}, {grid.text()}{way}{origin}", share)
            best = better(best, found)
        return best

    def grids(self) -> Iterator[tuple[int, ...]]:
        """Return the grids whose strides are distances of communicating pairs."""

        def further(rest: int, stride: int, dims: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if rest == 1:
                yield dims
                return
            if len(dims) == MOST_DIMENSIONS or not (stride in self.distances or -stride in self.distances):
                return
            for length in divisors(rest):
                if length > 1:
                    yield from further(rest // length, stride * length, (length, *dims))

        yield from sorted(islice(further(self.size, 1, ()), MOST_GRIDS), key=len)


def better(one: Pattern, other: Pattern) -> Pattern:
    """Return the pattern with the larger share; the first if they are equal."""
    return other if other.share > one.share + 1e-9 else one


def ordered(edges: Edges, order: Ints | None) -> Edges:
    """Return pairs of positions as pairs of the ranks at these positions."""
    return edges if order is None else (order[edges[0]], order[edges[1]])


def divisors(number: int) -> list[int]:
    """Return all divisors, rising.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    low = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return low + [number // d for d in reversed(low) if d * d != number]


def cart_grid(topology: str | None) -> Grid | None:
    """Return the grid of a Cartesian topology from its text in table comm.

    >>> cart_grid("cart 4x2 periodic 10")
    Grid(dims=(4, 2), periods=(True, False))
    """
    words = (topology or "").split()
    if len(words) != 4 or words[0] != "cart":
        return None
    try:
        dims = tuple(int(length) for length in words[1].split("x")[: MOST_CART + 1])
    except ValueError:
        return None
    if len(dims) > MOST_CART:
        return None
    periods = tuple(period == "1" for period in words[3])
    return Grid(dims, periods) if len(dims) == len(periods) and min(dims) > 0 else None
