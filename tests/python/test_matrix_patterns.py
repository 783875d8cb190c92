# SPDX-License-Identifier: Apache-2.0
"""The patterns that `commlens matrix` names."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder
from conftest import Run
from matrices import Pair, box, grid, read, star, talking

# Patterns: who sends to whom on so many ranks, and what it is called.


PATTERNS: dict[str, tuple[int, set[Pair], str]] = {
    "ring": (7, {(i, (i + 1) % 7) for i in range(7)}, "ring, one way"),
    "ring backwards": (7, {(i, (i - 1) % 7) for i in range(7)}, "ring, backwards"),
    "ring both ways": (8, grid((8,), "1", star(1)), "ring, both ways"),
    "chain": (6, {(i, i + 1) for i in range(5)}, "chain, 1 dimension, 6 periodic 0, one way"),
    "line": (9, grid((9,), "0", star(1)), "nearest neighbour, 1 dimension, 9 periodic 0"),
    "2-d": (24, grid((6, 4), "00", star(2)), "nearest neighbour, 2 dimensions, 6x4 periodic 00"),
    "2-d the other way round": (24, grid((4, 6), "00", star(2)), "nearest neighbour, 2 dimensions, 4x6 periodic 00"),
    "2-d of two rows": (8, grid((2, 4), "00", star(2)), "nearest neighbour, 2 dimensions, 2x4 periodic 00"),
    "half a torus": (20, grid((4, 5), "01", star(2)), "nearest neighbour, 2 dimensions, 4x5 periodic 01"),
    "torus": (35, grid((5, 7), "11", star(2)), "nearest neighbour, 2 dimensions, 5x7 periodic 11"),
    "sweep": (12, grid((3, 4), "00", star(2, (1,))), "nearest neighbour, 2 dimensions, 3x4 periodic 00, one way"),
    "with corners": (30, grid((5, 6), "00", box(2)), "nearest neighbour, 2 dimensions, 5x6 periodic 00, with diagonals"),
    "3-d": (60, grid((3, 4, 5), "000", star(3)), "nearest neighbour, 3 dimensions, 3x4x5 periodic 000"),
    "3-d of 26": (64, grid((4, 4, 4), "111", box(3)), "nearest neighbour, 3 dimensions, 4x4x4 periodic 111, with diagonals"),
    "4-d": (81, grid((3, 3, 3, 3), "0000", star(4)), "nearest neighbour, 4 dimensions, 3x3x3x3 periodic 0000"),
    "hypercube": (32, grid((2,) * 5, "0" * 5, star(5)), "nearest neighbour, 5 dimensions, 2x2x2x2x2 periodic 00000"),
    "transpose": (16, {(4 * i + j, 4 * j + i) for i in range(4) for j in range(4)}, "transpose, 4x4"),
    "transpose, not square": (15, {(5 * i + j, 3 * j + i) for i in range(3) for j in range(5)}, "transpose, 3x5"),
    "all": (6, {(i, j) for i in range(6) for j in range(6) if i != j}, "all-to-all"),
    "from one": (5, {(2, i) for i in range(5) if i != 2}, "one-to-all, root 2"),
    "to one": (5, {(i, 4) for i in range(4)}, "all-to-one, root 4"),
    "there and back": (5, {p for i in range(1, 5) for p in ((0, i), (i, 0))}, "one-to-all and back, root 0"),
    "pairs": (8, {(i, i ^ 1) for i in range(8)}, "pairs, 4 of them"),
    "pairs far apart": (8, {(i, 7 - i) for i in range(8)}, "pairs, 4 of them"),
    "a pair of two": (2, {(0, 1), (1, 0)}, "pairs, 1 of them"),
    "to oneself": (4, {(i, i) for i in range(4)}, "own, each rank to itself"),
    "one rank": (1, {(0, 0)}, "one rank"),
    "one message": (9, {(3, 5)}, "none"),
    "every third": (9, {(i, (i + 3) % 9) for i in range(9)}, "none"),
    "one neighbour missing": (24, grid((6, 4), "00", star(2)) - {(9, 10)}, "none"),
}  # fmt: skip


def pattern_text(found: dict[str, Any]) -> str:
    """Return the pattern as it is printed."""
    pattern = found["pattern"]
    return f"{pattern['name']}, {pattern['detail']}" if pattern["detail"] else str(pattern["name"])


@pytest.mark.parametrize("name", PATTERNS)
def test_a_known_pattern_is_named(name: str, tmp_path: Path, run: Run) -> None:
    ranks, pairs, expected = PATTERNS[name]
    path = talking(ranks, pairs).write(tmp_path / "p.db")
    assert pattern_text(read(run, path)) == expected
    shown = run("matrix", path).stdout
    assert f"\npattern     {expected}\n" in shown


SHUFFLED = [
    name
    for name, (_, _, text) in PATTERNS.items()
    if text.startswith(("nearest", "transpose", "ring", "chain"))
]


@pytest.mark.parametrize("name", SHUFFLED)
def test_ranks_in_another_order_have_no_grid(name: str, tmp_path: Path, run: Run) -> None:
    ranks, pairs, _ = PATTERNS[name]
    order = list(range(ranks))
    random.Random(11).shuffle(order)
    path = talking(ranks, {(order[a], order[b]) for a, b in pairs}).write(tmp_path / "p.db")
    assert pattern_text(read(run, path)) in ("none", "pairs, 6 of them")


def test_a_topology_tells_the_grid_of_ranks_in_another_order(tmp_path: Path, run: Run) -> None:
    ranks, pairs, expected = PATTERNS["half a torus"]
    order = list(range(ranks))
    random.Random(11).shuffle(order)
    shuffled = {(order[a], order[b]) for a, b in pairs}
    on_world = talking(ranks, shuffled)
    on_world.comm("a0.1", order, topology="cart 4x5 periodic 01")
    found = read(run, on_world.write(tmp_path / "world.db"))
    assert pattern_text(found) == expected + ", as a0.1 has it"
    on_grid = ProfileBuilder(ranks=ranks)
    comm = on_grid.comm("a0.1", order, topology="cart 4x5 periodic 01")
    for source, destination in sorted(shuffled):
        on_grid.send(source, destination, 1, 8, comm)
    found = read(run, on_grid.write(tmp_path / "grid.db"))
    assert pattern_text(found) == expected + ", as its topology has it"
    untold = ProfileBuilder(ranks=ranks)
    comm = untold.comm("a0.1", order, members="0-3")  # only some of its members are in the profile
    for source, destination in sorted(shuffled):
        untold.send(source, destination, 1, 8, comm)
    assert pattern_text(read(run, untold.write(tmp_path / "untold.db"))) == "none"


def test_a_few_messages_beside_hide_no_pattern_and_many_do(tmp_path: Path, run: Run) -> None:
    ranks, pairs, expected = PATTERNS["2-d"]
    for beside, text in ((100, expected), (100_000, "none")):
        build = talking(ranks, pairs)
        build.send(0, 23, 1, beside)
        found = read(run, build.write(tmp_path / f"{beside}.db"))
        assert pattern_text(found) == text
        if beside == 100:
            total = 2000 * len(pairs)
            assert found["pattern"]["share"] == pytest.approx(total / (total + 100))
            assert f"{expected} (99." in run("matrix", tmp_path / "100.db").stdout


def test_communicators_have_patterns_of_their_own(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=8)
    for first in (0, 4):
        comm = build.comm(f"s{first}.1", [first + 3, first, first + 2, first + 1])
        members = build.comms[comm].ranks
        for i in range(4):
            build.send(members[i], members[(i + 1) % 4], 1, 100 + first, comm)
    found = read(run, build.write(tmp_path / "p.db"))
    assert pattern_text(found) == "none"
    assert [
        (row["name"], row["size"], row["bytes"], row["pattern"]["name"]) for row in found["communicators"]
    ] == [
        ("s4.1", 4, 416, "ring"),
        ("s0.1", 4, 400, "ring"),
    ]
