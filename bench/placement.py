# SPDX-License-Identifier: Apache-2.0
"""Measures the mapper of commlens place against KaHIP's process mapping and Scotch: cost and time.

    PYTHONPATH=python .venv/bin/python bench/placement.py [--sizes 64,256] [--families CG,FFT] [--strong] [--large]

KaHIP is the package kahip of PyPI, in the environment of this Python; Scotch the package scotch of Debian, or the program
that --scotch names. What is not installed is left out. Ratios below 1: commlens is better. `late` are ranks that the other
mapper put into full groups; they go to the next group with room. --large: 10^5 ranks with 26 neighbours.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import time
from collections.abc import Callable

import numpy as np
import placement_others
from placement_graphs import FAMILIES, every, grid_edges, shuffled

from commlens.base.arrays import Ints
from commlens.base.errors import CommlensError
from commlens.place.machine import Machine, build, regular
from commlens.place.mapper import place
from commlens.place.objective import Graph, cost

MACHINES = {64: (4, 2, 8), 256: (8, 2, 16), 1024: (32, 2, 16), 4096: (64, 2, 32)}
LARGE = ((46, 46, 48), (3174, 2, 16))

Mapper = Callable[[Graph, list[int], list[int]], Ints]


def other(mapper: Mapper, graph: Graph, machine: Machine, mine: float) -> str:
    """Return our cost relative to that of another mapper, its time, and the ranks that it put into full groups."""
    rooms, distances = placement_others.regular_tree(machine)
    begin = time.perf_counter()
    try:
        part = mapper(graph, rooms, distances)
    except CommlensError as error:
        return str(error)
    seconds = time.perf_counter() - begin
    late = int(np.maximum(0, np.bincount(part) - rooms[0]).sum())
    its = cost(graph, machine, placement_others.seated(part, rooms[0]))
    return f"{mine / its:.3f} ({seconds:.2f} s, late {late})"


def show(name: str, graph: Graph, machine: Machine, others: dict[str, Mapper]) -> None:
    """Print the line of an instance."""
    begin = time.perf_counter()
    mine = place(graph, machine).cost
    seconds = time.perf_counter() - begin
    ratios = "; ".join(f"{title} {other(mapper, graph, machine, mine)}" for title, mapper in others.items())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name} {graph.size}: {mine:,.0f} in {seconds:.2f} s, {memory:.1f} GiB; {ratios}", flush=True)


def main() -> None:
    """Print one line per instance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, MACHINES)))
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--scotch", default=shutil.which("scotch_gmap") or "scotch_gmap")
    parser.add_argument("--strong", action="store_true", help="KaHIP's best and slowest configuration, too")
    parser.add_argument("--large", action="store_true")
    chosen = parser.parse_args()
    if chosen.large:
        dims, shape = LARGE
        show(
            "26 neighbours",
            shuffled(int(np.prod(dims)), grid_edges(dims, box=True)),
            build(regular(*shape)),
            {},
        )
        return
    others: dict[str, Mapper] = {
        "kahip eco": lambda graph, rooms, far: placement_others.by_kahip(graph, rooms, far, 1),
        "scotch": lambda graph, rooms, far: placement_others.by_scotch(graph, rooms, far, chosen.scotch),
        "scotch, cores": lambda graph, rooms, far: (
            placement_others.by_scotch(graph, [1, *rooms], [1, *far], chosen.scotch) // rooms[0]
        ),
    }
    if chosen.strong:
        others["kahip strong"] = lambda graph, rooms, far: placement_others.by_kahip(
            graph, rooms, far, 1, placement_others.STRONG
        )
    sizes = tuple(int(size) for size in chosen.sizes.split(","))
    for name, size, graph in every(sizes, tuple(chosen.families.split(","))):
        show(name, graph, build(regular(*MACHINES[size])), others)


if __name__ == "__main__":
    main()
