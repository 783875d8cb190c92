# SPDX-License-Identifier: Apache-2.0
"""Placements of grids of ranks: each group of the machine gets a block of the grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from commlens.base.arrays import Ints
from commlens.matrix.patterns import Grid, divisors
from commlens.place.machine import Machine
from commlens.place.objective import Graph


def fits(graph: Graph, grid: Grid, positions: Ints) -> bool:
    """Return whether all traffic is between neighbours of a grid."""
    at = np.stack(np.unravel_index(positions, grid.dims))
    apart = np.abs(at[:, graph.row] - at[:, graph.column])
    length = np.array(grid.dims)[:, None]
    around = np.array(grid.periods)[:, None]
    apart = np.where(around, np.minimum(apart, length - apart), apart)
    return bool(np.all(apart.sum(axis=0) == 1))


def blocks(graph: Graph, machine: Machine, grid: Grid, positions: Ints) -> Ints | None:
    """Return slots for the ranks of a grid, so that each group of each level has a block of it.

    None if the groups of a level differ in size, or no blocks of that size divide the grid.
    """
    if graph.size != len(machine) or int(np.prod(grid.dims)) != graph.size:
        return None
    at = np.stack(np.unravel_index(positions, grid.dims))
    weights = _weights(graph, at)
    keys: list[Ints] = []
    shape, periods = grid.dims, grid.periods
    for level in list(reversed(machine.levels))[1:]:
        rooms = np.bincount(level.groups)
        size = int(rooms[0])
        if np.any(rooms != size):
            return None
        block = best_block(shape, size, weights, periods)
        if block is None:
            return None
        number = np.ravel_multi_index(
            tuple(at[axis] // block[axis] for axis in range(len(shape))),
            tuple(-(-length // step) for length, step in zip(shape, block)),
        )
        keys.append(number.astype(np.int64))
        at = at % np.array(block)[:, None]
        periods = tuple(around and step == length for around, step, length in zip(periods, block, shape))
        shape = block
    order = np.lexsort(tuple(reversed(keys)))
    slots = np.empty(graph.size, dtype=np.int64)
    slots[order] = np.arange(graph.size)
    return slots


def _weights(graph: Graph, at: Ints) -> list[float]:
    """Return the mean traffic of a pair of neighbours in each direction."""
    found = []
    for axis in range(len(at)):
        step = at[axis][graph.row] != at[axis][graph.column]
        found.append(float(graph.weight[step].mean()) if step.any() else 0.0)
    return found


def best_block(
    shape: Sequence[int], size: int, weights: Sequence[float], periods: Sequence[bool]
) -> tuple[int, ...] | None:
    """Return the block of `size` positions that divides a grid and has the least traffic between blocks.

    >>> open_ends = (False, False)
    >>> best_block((8, 8), 16, (1.0, 1.0), open_ends), best_block((8, 8), 16, (9.0, 1.0), open_ends)
    ((4, 4), (8, 2))
    >>> best_block((3, 3), 2, (1.0, 1.0), open_ends)
    """

    def options(rest: int, lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
        if not lengths:
            if rest == 1:
                yield ()
            return
        for step in divisors(lengths[0]):
            if rest % step == 0:
                for more in options(rest // step, lengths[1:]):
                    yield (step, *more)

    def cut(block: tuple[int, ...]) -> float:
        """Return the traffic across all planes between blocks."""
        total = math.prod(shape)
        return sum(
            w * total / length * (length // step - (0 if around and length > 2 and step < length else 1))
            for w, step, length, around in zip(weights, block, shape, periods)
        )

    return min(options(size, tuple(shape)), key=lambda block: (cut(block), block), default=None)
