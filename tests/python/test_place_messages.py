# SPDX-License-Identifier: Apache-2.0
"""commlens place: messages that count differently at each level."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from build_profile import ProfileBuilder
from conftest import Run
from test_place import graph_of, random_case

from commlens.place.machine import Machine, build, regular, with_messages
from commlens.place.mapper import place
from commlens.place.objective import Graph, cost, lower_bound
from commlens.place.refine import Dense


def by_hand(
    weights: dict[tuple[int, int], float],
    messages: dict[tuple[int, int], float],
    machine: Machine,
    slots: list[int],
) -> float:
    """Add up distance times (bytes + bytes of each message at that level), pair by pair."""
    total = 0.0
    for (a, b), bytes in weights.items():
        level = next(level for level in machine.levels if level.groups[slots[a]] == level.groups[slots[b]])
        total += level.distance * (bytes + level.per_message * messages[a, b])
    return total


def with_both(
    weights: dict[tuple[int, int], float], messages: dict[tuple[int, int], float], size: int, outer: float
) -> Graph:
    in_network = {pair: bytes + outer * messages[pair] for pair, bytes in weights.items()}
    return replace(graph_of(size, in_network), messages=graph_of(size, messages).weight)


SMALL = [
    number for number in range(40) if len(random_case(number)[2]) <= 6
]  # whose placements can all be tried


@pytest.mark.parametrize("number", SMALL)
def test_few_ranks_are_placed_optimally(number: int) -> None:
    weights, ranks, machine = random_case(number)
    chance = random.Random(number)
    messages = {pair: float(chance.randint(1, 50)) for pair in weights}
    machine = with_messages(
        machine, 1.0, {level.name: chance.choice([0.0, 2.0, 9.0]) for level in machine.levels}
    )
    graph = with_both(weights, messages, ranks, float(machine.per_message[-1]))
    least = min(
        by_hand(weights, messages, machine, list(slots)) for slots in permutations(range(len(machine)), ranks)
    )
    found = place(graph, machine)
    assert found.cost == pytest.approx(least)
    assert by_hand(weights, messages, machine, found.slots.tolist()) == pytest.approx(least)
    assert lower_bound(graph, machine) <= least * (1 + 1e-9)


def test_swaps_keep_account_of_messages() -> None:
    chance = random.Random(3)
    weights = {
        (a, b): float(chance.randint(1, 9)) for a in range(16) for b in range(a) if chance.random() < 0.4
    }
    messages = {pair: float(chance.randint(1, 9)) for pair in weights}
    machine = with_messages(build(regular(2, 2, 4)), 3.0, {"network": 7.0, "node": 0.0})
    graph = with_both(weights, messages, 16, 7.0)
    found = Dense(graph, machine, np.arange(16), np.full(16, -1))
    for _ in range(20):
        one, other = chance.sample(range(16), 2)
        before, change = found.cost(), float(found.changes(one)[other])
        found.swap(one, other)
        assert found.cost() == pytest.approx(before + change)
        assert found.cost() == pytest.approx(cost(graph, machine, found.slots))
        assert found.cost() == pytest.approx(by_hand(weights, messages, machine, found.slots.tolist()))


def profile(path: Path) -> Path:
    """Write one of 4 ranks: 0 sends 1 one message of 1,000 bytes, and 2 a hundred of 1 byte."""
    build = ProfileBuilder(ranks=4)
    build.send(0, 1, 1, 1000)
    build.send(0, 2, 100, 1)
    return build.write(path)


@pytest.mark.parametrize(
    ("options", "beside", "least"),
    [
        # 0 and 1 on a node: 4 x 1,000 + 20 x 100.
        ((), 1, 6_000),
        # 0 and 2 on a node: 20 x (1,000 + 50) + 4 x 100, not 4 x 1,000 + 20 x (100 + 100 x 50) = 106,000.
        (("network=20:50",), 2, 21_400),
        # 0 and 1 again: 4 x (1,000 + 1,000) + 20 x 5,100, not 20 x 1,050 + 4 x (100 + 100 x 1,000) = 421,400.
        (("network=20:50", "node=4:1000"), 1, 110_000),
    ],
)
def test_the_known_answer_of_latencies_by_level(
    tmp_path: Path, run: Run, options: tuple[str, ...], beside: int, least: float
) -> None:
    given = [word for option in options for word in ("--distance", option)]
    result = run(
        "place", profile(tmp_path / "p.db"), "--nodes", "2", "--cores", "2", *given, "--format", "json"
    )
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    nodes = [row["node"] for row in found["placement"]]
    assert (nodes[0] == nodes[beside], found["cost_after"], found["optimal"]) == (True, least, True)
    assert sum(row["after"] * row["distance"] for row in found["levels"]) == least
    assert sum(row["after"] for row in found["communicators"]) == least


def test_equal_bytes_at_all_levels_are_those_of_per_message(tmp_path: Path, run: Run) -> None:
    machine = ("place", profile(tmp_path / "p.db"), "--nodes", "2", "--cores", "2", "--format", "json")
    levels = [word for level in ("node=4:9", "network=20:9") for word in ("--distance", level)]
    assert run(*machine, *levels).stdout == run(*machine, "--per-message", "9").stdout


@pytest.mark.parametrize(
    "text", ["node=4:", "node=4:x", "node=4:-1", "node=4:nan", "node=4:inf", "node=4:1:2", "node:5"]
)
def test_what_is_no_distance_is_refused(tmp_path: Path, run: Run, text: str) -> None:
    result = run("place", profile(tmp_path / "p.db"), "--distance", text)
    assert result.exit_code == 2
    assert "is not LEVEL=NUMBER or LEVEL=NUMBER:BYTES" in " ".join(result.stderr.split())
