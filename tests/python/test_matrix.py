# SPDX-License-Identifier: Apache-2.0
"""What `commlens matrix` says: against plain loops, against packages that read its files, and letter by letter."""

from __future__ import annotations

import base64
import csv
import io
import itertools
import json
import os
import random
import re
import sqlite3
import struct
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from build_profile import PeerRow, ProfileBuilder
from conftest import MS, Run, marked_builder
from rich.cells import cell_len
from summarise import summarised
from test_numbers import statements
from test_shards import split
from test_text import in_terminal

from commlens import matrix
from commlens.cli.matrix import KINDS as TYPED
from commlens.matrix.image import LETTERS, MOST_CELLS
from commlens.matrix.query import KINDS

SEEDS = range(4)
KIND_OF_FLOWS = {
    "p2p": {"sent"},
    "put": {"put"},
    "get": {"get"},
    "one-sided": {"put", "get"},
    "collective": {"collective"},
    "internal": {"internal"},
    "share": {"share"},
    "modelled": set(),
    "all": {"sent", "put", "get", "collective", "internal"},
}
OUTWARD = {"sent", "put", "collective", "internal", "share"}

Pair = tuple[int, int]
Sums = dict[Any, tuple[int, int]]  # by pairs of ranks, or of names


def made_up(seed: int) -> ProfileBuilder:
    """Return a profile with traffic of all kinds, on communicators that overlap."""
    chance = random.Random(seed)
    ranks = chance.randrange(2, 12)
    build = ProfileBuilder(ranks=ranks, nodes=chance.randrange(1, 4), meta={"slice_ns": str(MS)})
    half = build.comm("s0.1", list(range(0, ranks, 2)))
    solve = build.region("solve")
    inner = build.region("norm", solve)
    for _ in range(chance.randrange(1, 200)):
        comm = chance.choice([1, half])
        members = build.comms[comm].ranks
        source, destination = chance.choice(members), chance.choice(members)
        size, messages = chance.choice([0, 1, 100, 4096, 10**6]), chance.randrange(1, 5)
        where = {"region": chance.choice([0, solve, inner]), "slice": chance.randrange(3)}
        kind = chance.choice(["sent", "sent", "put", "get", "collective", "internal", "share"])
        if kind == "sent":
            build.send(source, destination, messages, size, comm, **where)
            continue
        op = chance.choice(["MPI_Allreduce", "MPI_Bcast"]) if kind in ("collective", "share") else None
        op = "MPI_Comm_split" if kind == "internal" else op
        build.tell_peer(kind, source, destination, messages, size, comm, op, **where)
    build.tell_peer("one_to_all", 0, None, 3, 8, op="MPI_Bcast")
    return build


def plain(build: ProfileBuilder, kind: str, keep: Callable[[PeerRow], bool] = lambda _: True) -> Sums:
    """Return (source, destination) -> (messages, bytes) by a plain loop."""
    sums: Sums = defaultdict(lambda: (0, 0))
    for row in build.peers:
        if row.kind in KIND_OF_FLOWS[kind] and row.peer is not None and keep(row):
            pair = (row.rank, row.peer) if row.kind in OUTWARD else (row.peer, row.rank)
            messages, size = sums[pair]
            sums[pair] = (messages + row.messages, size + row.bytes)
    return dict(sums)


def read(run: Run, *arguments: object) -> dict[str, Any]:
    """Return what the command says as JSON."""
    result = run("matrix", *arguments, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def sums_of(rows: Iterable[dict[str, Any]]) -> Sums:
    """Return rows of pairs by their ends."""
    rows = list(rows)
    found = {(row["source"], row["destination"]): (row["messages"], row["bytes"]) for row in rows}
    assert len(found) == len(rows), "each pair once"
    return found


@pytest.fixture(scope="module", params=SEEDS)
def profile(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ProfileBuilder, Path]:
    build = made_up(request.param)
    return build, build.write(tmp_path_factory.mktemp("matrix") / "profile.db")


def test_made_up_profiles_have_what_is_to_be_read() -> None:
    rows = [row for seed in SEEDS for row in made_up(seed).peers]
    assert {row.kind for row in rows} == {flow for flows in KIND_OF_FLOWS.values() for flow in flows} | {
        "received",
        "share",
        "one_to_all",
    }
    assert {row.comm for row in rows} == {1, 2}
    assert any(row.rank == row.peer for row in rows)
    assert any(row.bytes == 0 for row in rows)


@pytest.mark.parametrize("kind", KIND_OF_FLOWS)
def test_every_pair_of_every_kind_is_what_plain_loops_add_up(
    profile: tuple[ProfileBuilder, Path], run: Run, kind: str
) -> None:
    build, path = profile
    found = read(run, path, "--kind", kind)
    expected = plain(build, kind)
    assert sums_of(found["pairs"]) == expected
    told: dict[str, tuple[int, int]] = {}
    for row in build.peers:
        messages, size = told.get(row.kind, (0, 0))
        told[row.kind] = (messages + row.messages, size + row.bytes)
    assert {row["kind"]: (row["messages"], row["bytes"]) for row in found["kinds"]} == told
    pairs = matrix.read(path, kind=kind)
    assert pairs.source.dtype == pairs.bytes.dtype == np.int64
    columns = (pairs.source, pairs.destination, pairs.messages, pairs.bytes)
    assert {(s, d): (m, b) for s, d, m, b in zip(*(c.tolist() for c in columns))} == expected
    for what in (0, 1):
        name = ("messages", "bytes")[what]
        heaviest = read(run, path, "--kind", kind, "--what", name, "--top", 3)["heaviest"]
        largest = sorted((sums[what] for sums in expected.values()), reverse=True)[:3]
        assert [row[name] for row in heaviest] == largest


def test_the_command_knows_the_kinds_that_the_module_knows() -> None:
    assert tuple(KINDS) == TYPED == tuple(KIND_OF_FLOWS)


def test_a_selection_counts_what_matches_and_no_more(profile: tuple[ProfileBuilder, Path], run: Run) -> None:
    build, path = profile
    selections: list[tuple[list[object], str, Callable[[PeerRow], bool]]] = [
        (["--comm", "s*"], "p2p", lambda row: row.comm == 2),
        (["--comm", "W0.0", "--comm", "2", "--kind", "all"], "all", lambda _: True),
        (["--op", "bcast"], "collective", lambda row: row.op == "MPI_Bcast"),
        (["--op", "comm_*", "--kind", "internal"], "internal", lambda row: row.op == "MPI_Comm_split"),
        (["--region", "solve"], "p2p", lambda row: row.region != 0),
        (["--region", "*/norm"], "p2p", lambda row: row.region == 2),
        (["--slice", "0,2"], "p2p", lambda row: row.slice != 1),
        (["--slice", "1-2", "--comm", "W0.0"], "p2p", lambda row: row.slice > 0 and row.comm == 1),
    ]
    for options, kind, keep in selections:
        found = read(run, path, *options)
        assert found["kind"] == kind
        assert sums_of(found["pairs"]) == plain(build, kind, keep), options


def test_symmetry_partners_and_locality_are_what_plain_loops_compute(
    profile: tuple[ProfileBuilder, Path], run: Run
) -> None:
    build, path = profile
    sums = plain(build, "p2p")
    found = read(run, path)
    others = {pair: size for pair, (_, size) in sums.items() if pair[0] != pair[1]}
    total = sum(others.values())
    mutual = sum(min(size, others.get((d, s), 0)) for (s, d), size in others.items())
    assert found["symmetry"] == (pytest.approx(mutual / total) if total else None)
    if len(sums):
        ways = {
            "to": [{d for s, d in others if s == rank} for rank in range(build.ranks)],
            "from": [{s for s, d in others if d == rank} for rank in range(build.ranks)],
        }
        ways["either"] = [a | b for a, b in zip(ways["to"], ways["from"])]
        assert found["partners"] == {
            way: {"min": min(map(len, sets)), "median": median(map(len, sets)), "max": max(map(len, sets))}
            for way, sets in ways.items()
        }
    node = [rank * build.nodes // build.ranks for rank in range(build.ranks)]
    near = {row["where"]: (row["messages"], row["bytes"]) for row in found["locality"]}
    for where, same in (("in a node", True), ("between nodes", False)):
        parts = [sums[s, d] for s, d in sums if (node[s] == node[d]) == same]
        assert near[where] == (sum(p[0] for p in parts), sum(p[1] for p in parts))
    by_node = read(run, path, "--by", "node")
    expected: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for (s, d), (messages, size) in sums.items():
        pair = (f"node{node[s]}", f"node{node[d]}")
        expected[pair] = (expected[pair][0] + messages, expected[pair][1] + size)
    assert sums_of(by_node["pairs"]) == dict(expected)


def test_every_statement_is_sql_that_returns_rows(profile: tuple[ProfileBuilder, Path], run: Run) -> None:
    build, path = profile
    printed = run("matrix", path, "--kind", "all", "--sql").stdout
    found = statements(printed)
    assert list(found) == ["pairs", "peers counted together", "kinds", "communicators", "ranks"]
    with closing(sqlite3.connect(path)) as connection:
        names = dict(connection.execute("SELECT id, name FROM flow"))
        sums: dict[Pair, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for _, flow, source, destination, messages, size in connection.execute(found["pairs"]):
            if names[flow] != "received":
                old = sums[source, destination]
                sums[source, destination] = (old[0] + messages, old[1] + size)
        assert dict(sums) == plain(build, "all")
        assert len(connection.execute(found["ranks"]).fetchall()) == build.ranks


# Patterns: who sends to whom on so many ranks, and what it is called.


def grid(dims: tuple[int, ...], periods: str, steps: Iterable[tuple[int, ...]]) -> set[Pair]:
    """Return the pairs of neighbours on a grid, by coordinates."""
    places = {at: number for number, at in enumerate(itertools.product(*map(range, dims)))}
    pairs = set()
    for at, step in itertools.product(places, steps):
        there = tuple(
            (a + s) % n if period == "1" else a + s for a, s, n, period in zip(at, step, dims, periods)
        )
        if there in places and there != at:
            pairs.add((places[at], places[there]))
    return pairs


def star(n: int, ways: tuple[int, ...] = (-1, 1)) -> list[tuple[int, ...]]:
    return [tuple(way * (i == axis) for i in range(n)) for axis in range(n) for way in ways]


def box(n: int) -> list[tuple[int, ...]]:
    return [step for step in itertools.product((-1, 0, 1), repeat=n) if any(step)]


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


def talking(ranks: int, pairs: Iterable[Pair], size: int = 1000) -> ProfileBuilder:
    """Return a profile in which these pairs talk."""
    build = ProfileBuilder(ranks=ranks)
    for source, destination in sorted(pairs):
        build.send(source, destination, 2, size)
    return build


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


# Both ends.


def test_both_ends_are_compared_pair_by_pair_on_each_communicator(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=6, meta={"mpi_family": "mpich"})
    other = build.comm("d0.1", list(range(6)))
    build.send(0, 1, 5, 100)
    build.send(0, 1, 5, 100, other)
    path = build.write(tmp_path / "equal.db")
    assert read(run, path)["ends"] == {"equal": 2, "left_out": 0, "differences": []}
    assert "both ends   sent and received are equal in all 2 pairs\n" in run("matrix", path).stdout
    assert run("matrix", path, "--check").exit_code == 0
    build.tell_peer("sent", 1, 2, 3, 10)  # never received
    build.tell_peer("received", 3, 2, 1, 8, other)  # not known to be sent
    build.tell_peer("sent", 0, 4, 2, 16)
    build.count(1, "MPI_Irecv", 4, 2, 10)
    build.tell_peer("sent", 0, 5, 1, 4)
    build.states[5] = "SIGKILL"
    path = build.write(tmp_path / "differ.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM rank WHERE rank = 2")
        connection.execute("UPDATE op SET name = 'MPI_Isendrecv' WHERE name = 'MPI_Irecv'")
    ends = read(run, path)["ends"]
    assert (ends["equal"], ends["left_out"]) == (2, 0)
    told = {(d["communicator"], d["source"], d["destination"]): d for d in ends["differences"]}
    assert {key: (d["messages_sent"], d["messages_received"], d["bytes_sent"], d["bytes_received"]) for key, d in told.items()} == {
        ("W0.0", 1, 2): (3, 0, 30, 0),
        ("d0.1", 2, 3): (0, 1, 0, 8),
        ("W0.0", 0, 4): (2, 0, 32, 0),
        ("W0.0", 0, 5): (1, 0, 4, 0),
    }  # fmt: skip
    assert {key: d["reason"] for key, d in told.items()} == {
        ("W0.0", 1, 2): "rank 2 is not in this profile",
        ("d0.1", 2, 3): "rank 2 is not in this profile",
        ("W0.0", 0, 4): "MPI_Isendrecv: this MPI library does not report what arrived",
        ("W0.0", 0, 5): "rank 5 did not reach MPI_Finalize: SIGKILL",
    }
    result = run("matrix", path, "--check")
    assert (result.exit_code, result.stderr) == (1, "")
    assert "sent and received are equal in 2 of 6 pairs" in result.stdout
    assert (
        "rank 2 is not in this profile: 1 to 2 on W0.0 sent 3 messages, 30 B, received 0, 0 B; 2 to 3"
        in result.stdout
    )
    assert run("matrix", path).exit_code == 0


@pytest.mark.parametrize("kind", ["sent", "received"])
def test_what_only_one_end_tells_has_a_likely_reason(tmp_path: Path, run: Run, kind: str) -> None:
    build = ProfileBuilder(ranks=2)
    build.tell_peer(kind, 0, 1, 1, 8)
    (difference,) = read(run, build.write(tmp_path / "p.db"))["ends"]["differences"]
    words = (
        "not received: the receive was cancelled" if kind == "sent" else "received, but not counted as sent"
    )
    assert difference["reason"].startswith(words)


def test_a_part_of_the_time_or_of_the_program_has_no_ends_to_compare(run: Run, tmp_path: Path) -> None:
    build = made_up(0)
    path = build.write(tmp_path / "p.db")
    assert read(run, path, "--region", "solve")["ends"] is None
    assert read(run, path, "--slice", "0")["ends"] is None
    assert read(run, path, "--kind", "put")["ends"] is None
    assert read(run, path)["ends"]["differences"] == []


# Peers without world rank.


def test_what_is_counted_in_blocks_is_spread_evenly_and_nothing_is_lost(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=10)
    backwards = build.comm("s9.1", list(range(9, -1, -1)))
    build.send(0, 1, 2, 50)
    build.send(3, 4, 2, 50)
    build.tell_peer("sent", 0, None, 7, 10, backwards, first=8, peers=64)  # the ranks 1 and 0 of the world
    build.tell_peer("received", 1, None, 6, 10, first=0, peers=4)
    path = build.write(tmp_path / "p.db")
    found = read(run, path)
    assert sums_of(found["pairs"]) == {(0, 0): (3, 35), (0, 1): (2 + 4, 100 + 35), (3, 4): (2, 100)}
    assert found["not_told_apart"] == {"messages": 0, "bytes": 0, "spread_messages": 7, "spread_bytes": 70}
    assert found["pattern"] is None, "nobody knows with whom"
    assert (found["ends"]["equal"], found["ends"]["left_out"]) == (1, 1)
    assert found["ends"]["differences"] == []
    assert [(row["source"], row["destination"]) for row in found["heaviest"]] == [(0, 1), (3, 4)]
    shown = " ".join(run("matrix", path).stdout.split())
    assert "7 messages are counted per block of ranks" in shown
    assert "in all 1 pair; 1 pair not compared: counted in blocks" in shown


def test_blocks_that_would_make_too_many_pairs_keep_their_totals(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = ProfileBuilder(ranks=64)
    for rank in range(64):
        build.tell_peer("sent", rank, None, 65, 10, first=0, peers=64)
    path = build.write(tmp_path / "p.db")
    whole = read(run, path)
    monkeypatch.setattr("commlens.matrix.query.MOST_SPREAD", 600)
    fewer = read(run, path)
    assert (len(whole["pairs"]), len(fewer["pairs"])) == (64 * 64, 64 * 10), "every seventh of a block"
    for what in ("messages", "bytes"):
        assert {sum(row[what] for row in found["pairs"]) for found in (whole, fewer)} == {
            sum(getattr(row, what) for row in build.peers)
        }


def test_a_peer_is_found_by_its_place_in_the_communicator(tmp_path: Path, run: Run) -> None:
    """The library could not ask any more: the communicator had been freed."""
    build = ProfileBuilder(ranks=4)
    freed = build.comm("s0.1", [3, 1, 0])
    inter = build.comm("I0.2", [0, 2, 1, 3], kind="inter", members="0, 2 | 1, 3", remote_size=2)
    several = build.comm("s0.3+", [0, 1])
    build.tell_peer("sent", 1, None, 1, 5, freed, first=0)
    build.tell_peer("sent", 2, None, 1, 7, inter, first=0)
    build.tell_peer("received", 3, None, 1, 9, inter, first=1)
    build.tell_peer("put", 3, None, 4, 11, freed, first=2)
    build.tell_peer("sent", 0, None, 1, 13, several, first=1)
    path = build.write(tmp_path / "p.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE comm SET communicators = 5 WHERE id = ?", (several,))
    found = read(run, path)
    assert sums_of(found["pairs"]) == {(1, 3): (1, 5), (2, 1): (1, 7)}
    assert found["not_told_apart"]["messages"] == 1, "it stands for several: nobody knows whose rank 1 it is"
    assert {(d["source"], d["destination"]) for d in found["ends"]["differences"]} == {(1, 3), (2, 1), (2, 3)}
    assert sums_of(read(run, path, "--kind", "put")["pairs"]) == {(3, 0): (4, 44)}


def test_messages_to_another_world_count_and_are_not_drawn(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2)
    spawned = build.comm("p0.1", [0, 1, 7, 7], kind="inter", members="0-1 | ", remote_size=2)
    build.tell_peer("sent", 0, None, 3, 100, spawned, first=1)
    path = build.write(tmp_path / "p.db")
    found = read(run, path)
    assert found["pairs"] == []
    assert found["not_told_apart"] == {"messages": 3, "bytes": 300, "spread_messages": 0, "spread_bytes": 0}
    shown = run("matrix", path).stdout
    assert "nothing to draw: no message has two known ends" in shown
    assert "3 messages with 300 B belong to no pair" in shown
    assert run("matrix", path, "--format", "csv").stdout.splitlines()[1:] == [",,3,300"]


def test_messages_in_communicators_of_the_library_count_and_are_not_drawn(tmp_path: Path, run: Run) -> None:
    """Nothing is known of the other end, not even its rank there; the shapes of collectives have none."""
    build = ProfileBuilder(ranks=2)
    world = build.comm("W0.0", [0, 1])
    build.tell_peer("internal", 0, 1, 2, 5, world, "MPI_Comm_dup")
    build.tell_peer("internal", 0, None, 4, 25, 0, "MPI_Comm_dup")
    build.tell_peer("all_to_all", 0, None, 9, 8, world, "MPI_Allreduce")
    path = build.write(tmp_path / "p.db")
    found = read(run, path, "--kind", "internal")
    assert sums_of(found["pairs"]) == {(0, 1): (2, 10)}
    assert found["not_told_apart"] == {"messages": 4, "bytes": 100, "spread_messages": 0, "spread_bytes": 0}
    assert {kind["kind"]: kind["messages"] for kind in found["kinds"]} == {"internal": 6, "all_to_all": 9}
    assert "4 messages with 100 B belong to no pair" in run("matrix", path, "--kind", "internal").stdout
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT kind, source, destination, messages FROM pair ORDER BY messages")
        assert rows.fetchall() == [("internal", 0, 1, 2), ("internal", 0, None, 4)]


# Places.

XML = """<?xml version="1.0"?><topology version="2.0"><object type="Machine">
<object type="Package" os_index="0"><object type="L3Cache"><object type="Core"><object type="PU" os_index="0"/>
</object></object><object type="L3Cache"><object type="PU" os_index="1"/></object></object>
<object type="Package" os_index="1"><object type="PU" os_index="2"/><object type="PU" os_index="3"/></object>
</object></topology>"""


def test_sockets_and_core_complexes_are_what_lstopo_tells(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=8, nodes=2)
    for rank in range(4):
        build.send(0, rank, 1, 10 ** (rank + 1))  # complex, socket, node, node
        build.send(0, rank + 4, 1, 7)
    path = build.write(tmp_path / "p.db")
    (tmp_path / "node.xml").write_text(XML)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE rank SET cpus = rank % 4")
        connection.execute("UPDATE rank SET cpus = '2-3' WHERE rank = 3")

    def near(*options: object) -> dict[str, int]:
        return {row["where"]: row["bytes"] for row in read(run, path, *options)["locality"]}

    beyond = 4 * 7
    inside = 11110
    assert near() == {"in a node": inside, "between nodes": beyond}
    known = {"in a core complex": 10, "in a socket": 100, "in a node": 11000, "between nodes": beyond}
    assert near("--topology", tmp_path / "node.xml") == known
    assert near("--topology", f"node0={tmp_path / 'node.xml'}") == known
    assert near("--topology", f"node1={tmp_path / 'node.xml'}") == near()
    shown = run("matrix", path).stdout
    assert "the sockets of node0 are unknown here" in shown
    refused = run("matrix", path, "--by", "socket")
    assert refused.exit_code == 2
    assert (
        "run 'lstopo node0.xml' on that node and pass the file with --topology node0.xml\n" in refused.stderr
    )
    sockets = read(run, path, "--by", "socket", "--topology", f"node0={tmp_path / 'node.xml'}")
    assert sockets["labels"] == ["node0 socket 0", "node0 socket 1", "node1 socket unknown"]
    assert sums_of(sockets["pairs"]) == {
        ("node0 socket 0", "node0 socket 0"): (2, 110),
        ("node0 socket 0", "node0 socket 1"): (2, 11000),
        ("node0 socket 0", "node1 socket unknown"): (4, beyond),
    }
    for name, words in (
        ("none.xml", "none.xml: cannot be read: No such file or directory"),
        ("p.db", "p.db: not a topology written by lstopo: "),
        ("node7=node.xml", "no node 'node7' in this profile"),
    ):
        file = name if "=" in name else str(tmp_path / name)
        result = run("matrix", path, "--topology", file)
        assert result.exit_code == 2
        assert words in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: not a regular file"),
        (XML.replace('os_index="0"', 'os_index="x"').replace("PU", "Core"), "it has no CPUs"),
        ("<a>" * 5000 + "</a>" * 5000, "not a topology written by lstopo: "),
        ('<?xml version="1.0" encoding="unheard-of"?><a/>', "not a topology written by lstopo: "),
    ],
)
def test_a_file_that_is_no_topology_is_refused_in_one_line(
    tmp_path: Path, run: Run, content: str | None, words: str
) -> None:
    path, file = talking(2, {(0, 1)}).write(tmp_path / "p.db"), tmp_path / "node.xml"
    if content is None:
        os.mkfifo(file)
    else:
        file.write_text(content)
    result = run("matrix", path, "--topology", file)
    assert result.exit_code == 2 and words in result.stderr and result.stderr.count("\n") == 1


def test_a_claim_of_many_cpus_takes_no_time(tmp_path: Path, run: Run) -> None:
    path = talking(2, {(0, 1)}).write(tmp_path / "p.db")
    (tmp_path / "node.xml").write_text(XML)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE rank SET cpus = '0-999999999,5-99999999999999999999'")
    assert run("matrix", path, "--topology", tmp_path / "node.xml").exit_code == 0


def test_a_process_that_may_run_anywhere_is_in_no_socket(tmp_path: Path, run: Run) -> None:
    path = talking(2, {(0, 1)}).write(tmp_path / "p.db")  # CPUs 0-3
    (tmp_path / "node.xml").write_text(XML)
    shown = run("matrix", path, "--topology", tmp_path / "node.xml").stdout
    assert "sockets and core complexes: no rank is bound to one socket (rank 0 may run on CPUs 0-3)" in shown


# Files.


@pytest.fixture
def known(tmp_path: Path) -> tuple[Path, Sums, int]:
    """Return a profile, its pairs, and how many ranks it has."""
    build = made_up(1)
    return build.write(tmp_path / "known.db"), plain(build, "p2p"), build.ranks


@pytest.mark.parametrize("what", ["messages", "bytes"])
def test_every_format_gives_back_what_was_written(
    known: tuple[Path, Sums, int], tmp_path: Path, run: Run, what: str
) -> None:
    import networkx
    import scipy.io
    import scipy.sparse

    path, expected, ranks = known
    index = ("messages", "bytes").index(what)
    one = {pair: sums[index] for pair, sums in expected.items()}

    def written(ending: str) -> Path:
        output = tmp_path / f"m{ending}"
        result = run("matrix", path, "--what", what, "--to", output)
        assert (result.exit_code, result.stdout, result.stderr) == (0, f"{output}\n", "")
        again = run("matrix", path, "--to", output)
        assert (again.exit_code, again.stderr) == (2, f"commlens: {output}: exists\n")
        return output

    def pairs_of(sparse: Any) -> dict[Pair, int]:
        assert sparse.shape == (ranks, ranks)
        found = scipy.sparse.coo_array(sparse)
        return {(int(r), int(c)): int(v) for r, c, v in zip(found.row, found.col, found.data)}

    rows = list(csv.DictReader(io.StringIO(written(".csv").read_text())))
    assert {
        (int(r["source"]), int(r["destination"])): (int(r["messages"]), int(r["bytes"])) for r in rows
    } == expected
    npz = written(".npz")
    assert pairs_of(scipy.sparse.load_npz(npz)) == one
    with np.load(npz) as arrays:
        columns = [arrays[name].tolist() for name in ("row", "col", "messages", "bytes")]
        assert {(r, c): (m, b) for r, c, m, b in zip(*columns)} == expected
    assert pairs_of(scipy.io.mmread(written(".mtx"))) == one
    graph = networkx.read_graphml(written(".graphml"))
    assert graph.is_directed()
    assert {n: d["node"] for n, d in graph.nodes(data=True)} == {
        str(rank): f"node{rank * made_up(1).nodes // ranks}" for rank in range(ranks)
    }
    assert {
        (int(s), int(d)): (edge["messages"], edge["bytes"]) for s, d, edge in graph.edges(data=True)
    } == expected


def pixels(png: bytes) -> Any:
    """Return the pixels of a PNG file, by the standard's rules; every row is unfiltered."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        (checked,) = struct.unpack(">I", png[at + 8 + length : at + 12 + length])
        assert checked == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + length
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_a_picture_has_a_square_of_its_colour_for_each_pair(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=8)
    expected = {(0, 3): 10, (7, 7): 10, (5, 1): 1000}
    for (source, destination), size in expected.items():
        build.send(source, destination, 1, size)
    path = build.write(tmp_path / "p.db")
    for ending in (".png", ".svg"):
        assert run("matrix", path, "--to", tmp_path / f"m{ending}").exit_code == 0
    root = ElementTree.fromstring((tmp_path / "m.svg").read_text())
    space = "{http://www.w3.org/2000/svg}"
    image = root.findall(f"{space}image")[0]
    content = base64.b64decode(image.get("href", "").partition("base64,")[2])
    shown = pixels(content)
    side = shown.shape[0] // 8
    middle = [
        [tuple(shown[r * side + side // 2, c * side + side // 2].tolist()) for c in range(8)]
        for r in range(8)
    ]
    white = (255, 255, 255)
    assert {(r, c) for r in range(8) for c in range(8) if middle[r][c] != white} == set(expected)
    assert middle[0][3] == middle[7][7] != middle[5][1]
    whole = pixels((tmp_path / "m.png").read_bytes())
    assert (whole.shape[1], whole.shape[0]) == (int(root.get("width", "")), int(root.get("height", "")))
    left, top = int(image.get("x", "")), int(image.get("y", ""))
    assert (whole[top : top + 8 * side, left : left + 8 * side] == shown).all()
    words = [text.text for text in root.findall(f"{space}text")]
    assert words[0] == "two-sided messages, as sent: bytes"
    assert {"0", "7", "10 B", "1000 B"} <= set(words)


def test_letters_of_pictures_are_all_different() -> None:
    assert len(set(LETTERS.values())) == len(LETTERS)
    assert all(len(bytes.fromhex(code)) == 7 and max(bytes.fromhex(code)) < 32 for code in LETTERS.values())


def test_a_file_that_tells_no_format_is_refused(
    known: tuple[Path, Sums, int], tmp_path: Path, run: Run
) -> None:
    result = run("matrix", known[0], "--to", tmp_path / "m.bmp")
    assert result.exit_code == 2
    assert result.stderr.endswith("must end with one of .png, .svg, .csv, .npz, .mtx, .graphml\n")
    result = run("matrix", known[0], "--to", tmp_path / "nowhere" / "m.csv")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


# Size.


def test_a_job_of_4096_ranks_with_26_neighbours_each_is_small_and_folded(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    dims = (16, 16, 16)
    build = ProfileBuilder(ranks=4096, nodes=64)
    build.peers = [
        PeerRow(1, kind, None, None, 0, 0, rank, peer, None, 1, 11, 100, 102400)
        for kind, way in (("sent", 1), ("received", -1))
        for rank, peer in sorted(pair[::way] for pair in grid(dims, "111", box(3)))
    ]
    path = build.write(tmp_path / "large.db")
    assert path.stat().st_size < 10_000_000
    started = time.process_time()
    shown = run("matrix", path).stdout
    with capsys.disabled():
        print(f"\n4,096 ranks x 26 neighbours: drawn in {time.process_time() - started:.2f} s of CPU time")
    assert shown.startswith(
        "two-sided messages, as sent: 106,496 pairs of 4,096 ranks, 10,649,600 messages, 10.2 GiB\n"
    )
    assert "pattern     nearest neighbour, 3 dimensions, 16x16x16 periodic 111, with diagonals\n" in shown
    assert "sent and received are equal in all 106,496 pairs" in shown
    assert "a cell is 128 x 128 ranks" in shown, "4,096 of them make 32 cells, all of one size"
    assert max(map(len, shown.split("\n\n")[1].splitlines())) <= 100
    assert run("matrix", path, "--to", tmp_path / "m.png").exit_code == 0
    assert pixels((tmp_path / "m.png").read_bytes()).shape[0] < 2 * MOST_CELLS


# Text.


def ring_of_four(tmp_path: Path) -> Path:
    """Return the profile of a ring in which every other link carries more, on two nodes."""
    build = ProfileBuilder(ranks=4, nodes=2)
    for rank in range(4):
        for other in ((rank + 1) % 4, (rank - 1) % 4):
            build.send(rank, other, 3, 1536 if {rank, other} in ({0, 1}, {2, 3}) else 1024)
    build.tell_peer("put", 0, 2, 1, 8)
    build.tell_peer("all_to_all", 0, None, 5, 64, op="MPI_Alltoallv")
    return build.write(tmp_path / "ring.db")


WHOLE = """\
two-sided messages, as sent: 8 pairs of 4 ranks, 24 messages, 30.0 KiB

   0   1   2   3
0 │    @@@@    ....│
  │    @@@@    ....│
1 │@@@@    ....    │
  │@@@@    ....    │
2 │    ....    @@@@│
  │    ....    @@@@│
3 │....    @@@@    │
  │....    @@@@    │
3.00 KiB .:-=+*#%@ 4.50 KiB
rows send, columns receive; a cell is one pair of ranks, the scale is logarithmic

pattern     ring, both ways
locality    in a node 60.0 %, between nodes 40.0 %
symmetry    100.0 % of the traffic is matched in the opposite direction
partners    per rank, minimum / median / maximum: sends to 2 / 2 / 2, receives from 2 / 2 / 2, either 2 / 2 / 2
note        sockets and core complexes: the sockets of node0 are unknown here; run 'lstopo node0.xml' on that node and pass the file with --topology node0.xml
both ends   sent and received are equal in all 8 pairs

kind of traffic  messages     bytes
sent                   24  30.0 KiB  drawn
received               24  30.0 KiB  the other end of sent
put                     1       8 B  --kind put
all-to-all              5     320 B  calls by their shape

from  to  messages     bytes   share  from node  to node
0     1          3  4.50 KiB  15.0 %  node0      node0
1     0          3  4.50 KiB  15.0 %  node0      node0
and 6 more pairs
"""


def test_the_whole_output(tmp_path: Path, run: Run) -> None:
    result = run("matrix", ring_of_four(tmp_path), "--top", 2)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == WHOLE


def without_styles(text: str) -> str:
    """Return what a terminal shows, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_picture_fits_its_terminal(tmp_path: Path, width: int) -> None:
    path = talking(300, grid((15, 20), "00", star(2))).write(tmp_path / "p.db")
    shown = in_terminal(width, "matrix", str(path))
    picture = [line for line in without_styles(shown).splitlines() if line.endswith("│")]
    assert picture
    assert max(map(cell_len, picture)) <= width
    assert any(half in "".join(picture) for half in "▀▄")


def test_no_colours_mean_shades_and_a_dumb_terminal_ascii(tmp_path: Path) -> None:
    path = ring_of_four(tmp_path)
    shades = in_terminal(80, "matrix", str(path), NO_COLOR="1")
    assert "│    ████    ░░░░│" in without_styles(shades)
    dumb = in_terminal(80, "matrix", str(path), TERM="dumb")
    assert "│    @@@@    ....│" in dumb


# Bad input.


def test_what_a_profile_cannot_say_is_refused_in_one_line(tmp_path: Path, run: Run) -> None:
    build = marked_builder()
    path = build.write(tmp_path / "p.db")
    old = tmp_path / "old.db"
    old.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.executescript("DROP VIEW pair; DROP TABLE peer; PRAGMA user_version = 5;")
        connection.execute("UPDATE meta SET value = '5' WHERE key = 'schema_version'")
    off = ProfileBuilder(ranks=2, meta={"options": "COMMLENS_ENABLE=1\nCOMMLENS_MATRIX=off"}).write(
        tmp_path / "off.db"
    )
    unkept = talking(2, {(0, 1)}).write(tmp_path / "unkept.db")
    for arguments, words in (
        ([old], "this profile has schema version 5: the communication matrix needs version 6 or later"),
        ([summarised(path)], "a matrix needs data of single ranks, but this profile has summary detail"),
        ([off], "this profile has no communication matrix: COMMLENS_MATRIX was off in the run"),
        ([path, "--comm", "s0.7"], "no communicator 's0.7' in this profile"),
        ([path, "--op", "Alreduce"], "no operation 'Alreduce'; did you mean MPI_Allreduce?"),
        (
            [path, "--op", "Bcast", "--kind", "p2p"],
            "--op applies only to messages inside calls",
        ),
        ([path, "--region", "exchanges"], "no code region 'exchanges' in this profile"),
        ([unkept, "--region", "solve"], "the run needs COMMLENS_MATRIX_BY=region"),
        ([unkept, "--slice", "1"], "the run needs COMMLENS_MATRIX_BY=slice"),
        ([path, "--check", "--kind", "collective"], "--check compares both ends of two-sided messages"),
        ([path, "--check", "--region", "solve"], "--check compares both ends of two-sided messages"),
        ([tmp_path / "none.db"], "none.db: no such file"),
    ):
        result = run("matrix", *arguments)
        assert (result.exit_code, result.stdout) == (2, ""), arguments
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
    assert run("matrix", path, "--kind", "p2q").exit_code == 2


def test_regions_that_were_kept_apart_may_have_no_messages(tmp_path: Path, run: Run) -> None:
    path = ProfileBuilder(ranks=2, meta={"options": "COMMLENS_MATRIX_BY=both"}).write(tmp_path / "p.db")
    result = run("matrix", path, "--slice", "1")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "no such messages match\n" in result.stdout


def test_nobody_talks(tmp_path: Path, run: Run) -> None:
    path = ProfileBuilder(ranks=3).write(tmp_path / "p.db")
    assert run("matrix", path).stdout == (
        "two-sided messages, as sent: 0 pairs of 3 ranks, 0 messages, 0 B\nno such messages in this profile\n"
    )
    shown = run("matrix", path, "--kind", "collective").stdout
    assert "COMMLENS_MATRIX=all counts them, if the MPI library exposes them (Open MPI)" in shown
    seen = ProfileBuilder(ranks=3, meta={"inside": "measured"}).write(tmp_path / "seen.db")
    shown = run("matrix", seen, "--kind", "collective").stdout
    assert shown.endswith("no such messages in this profile\n"), "nothing was missed"
    for ending in (".png", ".svg", ".csv", ".npz", ".mtx", ".graphml"):
        assert run("matrix", path, "--to", tmp_path / f"m{ending}").exit_code == 0, ending
    assert run("matrix", path, "--by", "node").exit_code == 0


def test_one_rank_and_messages_without_bytes(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=1)
    build.send(0, 0, 3, 0)
    shown = run("matrix", build.write(tmp_path / "p.db")).stdout
    assert "1 pair of 1 rank, 3 messages, 0 B\n" in shown
    assert "│@@@@@@@@@@@@@@@@│" in shown
    assert "pattern     one rank\n" in shown


def test_a_directory_of_several_files_says_the_same(tmp_path: Path, run: Run) -> None:
    build = talking(8, grid((2, 4), "00", star(2)))
    whole = build.write(tmp_path / "whole.db")
    parts = split(whole, tmp_path / "parts.commlens")
    assert run("matrix", parts).stdout == run("matrix", whole).stdout
    (parts / "shard.1.db").unlink()
    result = run("matrix", parts)
    assert result.exit_code == 3
    assert "rank 2 is not in this profile" in result.stdout
