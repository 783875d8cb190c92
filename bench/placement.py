# SPDX-License-Identifier: Apache-2.0
"""Measures the mapper of commlens place against KaHIP's process mapping and Scotch: cost and time.

    PYTHONPATH=python .venv/bin/python bench/placement.py [--sizes 64,256] [--families FFT] [--strong] [--large] > rows.csv
    PYTHONPATH=python .venv/bin/python bench/placement.py --table rows.csv

Prints a row for each traffic and mapper as soon as it is there, and with --table what they say: the cost of commlens relative
to the best of the others, and seconds. KaHIP is the package kahip of PyPI, in the environment of this Python; Scotch the
package scotch of Debian, or the program that --scotch names. What is not installed is left out. `late` are ranks that the
other mapper put into full groups; they go to the next group with room. --large: 10^5 ranks with 26 neighbours.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.placement_graphs import FAMILIES, MOST, grid_edges, instance, shuffled

from commlens.base.arrays import Ints
from commlens.base.errors import CommlensError
from commlens.place import others
from commlens.place.machine import Machine, build, regular
from commlens.place.mapper import place
from commlens.place.objective import Graph, cost, traffic

MACHINES = {64: (4, 2, 8), 256: (8, 2, 16), 1024: (32, 2, 16), 4096: (64, 2, 32)}
LARGE = ((46, 46, 48), (3174, 2, 16))
COLUMNS = ("traffic", "ranks", "mapper", "cost", "seconds", "late", "GiB")
OURS = "commlens"

Mapper = Callable[[Graph, list[int], list[int]], Ints]

GRAPHS: dict[tuple[str, int], Graph] = {}
"""Traffic by name and number of ranks; processes that are forked later have it, too."""


def mappers(scotch: str, strong: bool) -> dict[str, Mapper]:
    """Return the mappers of others; the first that fails says what is not installed."""
    found: dict[str, Mapper] = {"kahip eco": partial(others.by_kahip, seed=1)}
    if strong:
        found["kahip strong"] = partial(others.by_kahip, seed=1, mode=others.STRONG)
    found["scotch"] = partial(others.by_scotch, program=scotch)
    found["scotch cores"] = lambda graph, rooms, far: (
        others.by_scotch(graph, [1, *rooms], [1, *far], program=scotch) // rooms[0]
    )
    return found


def measure(graph: Graph, machine: Machine, mapper: Mapper | None) -> tuple[float, float, int]:
    """Return the cost, the seconds, and the ranks that the mapper put into full groups; without one by commlens."""
    begin = time.perf_counter()
    if mapper is None:
        its = place(graph, machine).cost
        return its, time.perf_counter() - begin, 0
    rooms, distances = others.regular_tree(machine)
    part = mapper(graph, rooms, distances)
    seconds = time.perf_counter() - begin
    late = int(np.maximum(0, np.bincount(part) - rooms[0]).sum())
    return cost(graph, machine, others.seated(part, rooms[0])), seconds, late


def row(task: tuple[str, int, str], scotch: str, strong: bool) -> list[str]:
    """Return a row of the output."""
    name, ranks, title = task
    machine = build(regular(*MACHINES[ranks]))
    mapper = None if title == OURS else mappers(scotch, strong)[title]
    try:
        its, seconds, late = measure(GRAPHS[name, ranks], machine, mapper)
    except CommlensError as error:
        return [name, str(ranks), title, str(error)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [name, str(ranks), title, f"{its:.0f}", f"{seconds:.3f}", str(late), f"{memory:.2f}"]


def of_profile(path: str) -> tuple[str, Graph]:
    """Return the name of a profile and its traffic, with the ranks renamed at random."""
    from commlens.matrix import selected
    from commlens.matrix.query import read_matrix
    from commlens.place.plan import profile_ranks
    from commlens.profile import open_profile

    with open_profile(path) as connection:
        ranks = profile_ranks(connection)
        pairs = read_matrix(connection, selected(connection, "all", (), (), (), ())).all
    graph = traffic(pairs.chosen((pairs.source < ranks) & (pairs.destination < ranks)), ranks)
    half = graph.row < graph.column
    return f"{Path(path).stem}, measured", shuffled(
        ranks, (graph.row[half], graph.column[half], graph.weight[half])
    )


def table(rows: Iterable[list[str]]) -> str:
    """Return what rows say, as a table in Markdown."""
    costs: dict[tuple[str, int], dict[str, tuple[float, float]]] = {}
    for name, ranks, mapper, its, *more in rows:
        if more and name != COLUMNS[0]:
            costs.setdefault((name, int(ranks)), {})[mapper] = (float(its), float(more[0]))
    titles = list(dict.fromkeys(mapper for some in costs.values() for mapper in some))
    lines = ["| traffic | ranks | cost / best of others | " + " | ".join(f"{t}, s" for t in titles) + " |"]
    lines.append("|" + "---|" * (3 + len(titles)))
    for (name, number), some in sorted(
        costs.items(), key=lambda item: ([*FAMILIES, item[0][0]].index(item[0][0]), item[0])
    ):
        theirs = [its for mapper, (its, _) in some.items() if mapper != OURS]
        ratio = f"{some[OURS][0] / min(theirs):.3f}" if OURS in some and theirs else ""
        seconds = [f"{some[title][1]:.3g}" if title in some else "" for title in titles]
        lines.append(f"| {name} | {number} | {ratio} | " + " | ".join(seconds) + " |")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, MACHINES)))
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument(
        "--profile", action="append", default=[], help="the traffic of a profile, too, of a size above"
    )
    parser.add_argument("--scotch", default=shutil.which("scotch_gmap") or "scotch_gmap")
    parser.add_argument("--strong", action="store_true", help="KaHIP's best and slowest configuration, too")
    parser.add_argument("--processes", type=int, default=1, help="that measure at the same time, a core each")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--table", nargs="+", metavar="FILE", help="measure nothing: show the rows of files")
    return parser.parse_args()


def main() -> None:
    """Print one row for each traffic and mapper."""
    chosen = arguments()
    if chosen.table:
        lines = [
            line for path in chosen.table for line in Path(path).read_text(encoding="utf-8").splitlines()
        ]
        print(table(csv.reader(lines)))
        return
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(COLUMNS)
    sys.stdout.flush()
    if chosen.large:
        dims, shape = LARGE
        name, ranks = "26 neighbours", int(np.prod(dims))
        MACHINES[ranks] = shape
        GRAPHS[name, ranks] = shuffled(ranks, grid_edges(dims, box=True))
        out.writerow(row((name, ranks, OURS), "", False))
        return
    sizes = sorted((int(size) for size in chosen.sizes.split(",")), reverse=True)
    known = [
        (name, n)
        for n in sizes
        for name in filter(None, chosen.families.split(","))
        if n <= MOST.get(name, n)
    ]
    fork = multiprocessing.get_context("fork")
    with fork.Pool(chosen.processes) as pool:
        GRAPHS.update(zip(known, pool.starmap(instance, known, chunksize=1)))
    for path in chosen.profile:
        name, graph = of_profile(path)
        if graph.total:
            GRAPHS[name, graph.size] = graph
    titles = [OURS, *mappers(chosen.scotch, chosen.strong)]
    # What takes longest begins first, so that the processes end at about the same time; what may be cut off comes last.
    tasks = [(*key, title) for title in titles for key in GRAPHS]
    tasks.sort(key=lambda task: (task[1] if task[2] == "kahip strong" else 0, -task[1]))
    with fork.Pool(chosen.processes, maxtasksperchild=1) as pool:
        for cells in pool.imap_unordered(partial(row, scotch=chosen.scotch, strong=chosen.strong), tasks):
            out.writerow(cells)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
