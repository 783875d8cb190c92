# SPDX-License-Identifier: Apache-2.0
"""Measures the mapper of commlens place: cost, lower bound, cost of the known blocks, time and memory.

    PYTHONPATH=python .venv/bin/python bench/placement.py [--large]

Shuffled stencils on nodes of two sockets, without knowledge of their grid. --large: 10^5 ranks with 26 neighbours. If the
package kahip is installed, its partitioning into nodes is measured, too.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from commlens.matrix.patterns import Grid
from commlens.place.grids import blocks
from commlens.place.machine import build, regular
from commlens.place.mapper import place
from commlens.place.objective import Graph, by_level, cost, lower_bound

CASES = (
    ((8, 8), (4, 2, 8)),
    ((16, 16), (8, 2, 16)),
    ((8, 8, 8), (8, 2, 32)),
    ((32, 32), (32, 2, 16)),
    ((16, 16, 16), (64, 2, 32)),
)
LARGE = ((46, 46, 48), (3174, 2, 16))


def stencil(dims: tuple[int, ...], *, box: bool) -> tuple[Graph, np.ndarray]:
    """Return a stencil with shuffled ranks, and the position of each rank."""
    size = int(np.prod(dims))
    at = np.stack(np.unravel_index(np.arange(size), dims))
    rank = np.random.default_rng(0).permutation(size)
    rows, columns = [], []
    for step in itertools.product((-1, 0, 1), repeat=len(dims)):
        if not any(step) or (not box and sum(map(abs, step)) > 1):
            continue
        there = at + np.array(step)[:, None]
        inside = np.all((there >= 0) & (there < np.array(dims)[:, None]), axis=0)
        rows.append(rank[np.arange(size)[inside]])
        columns.append(rank[np.ravel_multi_index(tuple(there[:, inside]), dims)])
    row, column = np.concatenate(rows), np.concatenate(columns)
    return Graph.of_entries(size, row, column, np.ones(len(row))), np.argsort(rank)


def by_kahip(graph: Graph, nodes: int) -> str:
    """Return the traffic between nodes, and the time, of KaHIP's partitioning into equal nodes.

    The Python package has no process mapping.
    """
    if find_spec("kahip") is None:
        return "not installed"
    kahip = import_module("kahip")
    arrays = (
        [1] * graph.size,
        graph.start.tolist(),
        graph.weight.astype(int).tolist(),
        graph.column.tolist(),
    )
    begin = time.perf_counter()
    cut, _ = kahip.kaffpa(*arrays, nodes, 0.0, True, 1, kahip.ECO)
    return f"{cut:,.0f} in {time.perf_counter() - begin:.1f} s"


def main() -> None:
    """Print one line per instance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    large = parser.parse_args().large
    for dims, shape in [LARGE] if large else CASES:
        graph, positions = stencil(dims, box=large)
        machine = build(regular(*shape))
        begin = time.perf_counter()
        found = place(graph, machine)
        seconds = time.perf_counter() - begin
        grid = Grid(dims, (False,) * len(dims))
        bound = lower_bound(graph, machine, [] if large else [(grid, positions)])
        known = blocks(graph, machine, grid, positions)
        print(
            "x".join(map(str, dims)),
            f"{found.cost:,.0f} in {seconds:.1f} s; blocks {'-' if known is None else f'{cost(graph, machine, known):,.0f}'}; "
            f"bound {bound:,.0f}; {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB; "
            f"between nodes {by_level(graph, machine, found.slots)[-1]:,.0f}, kahip {by_kahip(graph, shape[0])}",
        )


if __name__ == "__main__":
    main()
