# SPDX-License-Identifier: Apache-2.0
"""What `commlens matrix` says: against plain loops, against packages that read its files, and letter by letter."""

from __future__ import annotations

import os
import random
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from build_profile import PeerRow, ProfileBuilder
from conftest import MS, Run
from matrices import Pair, Sums, box, grid, pixels, read, talking
from test_numbers import statements

from commlens import matrix
from commlens.cli.matrix import KINDS as TYPED
from commlens.matrix.image import MOST_CELLS
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


# Both ends.


def test_both_ends_are_compared_pair_by_pair_on_each_communicator(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=6, meta={"mpi_family": "mpich"})
    other = build.comm("d0.1", list(range(6)))
    build.send(0, 1, 5, 100)
    build.send(0, 1, 5, 100, other)
    path = build.write(tmp_path / "equal.db")
    assert read(run, path)["ends"] == {"equal": 2, "left_out": 0, "differences": []}
    assert (
        "both ends   sent and received are equal in all 2 pairs of ranks, counted per communicator\n"
        in run("matrix", path).stdout
    )
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

XML = """<?xml version="1.0"?><topology version="2.0"><object type="Machine" cpuset="0x0000000f">
<object type="Package" os_index="0" cpuset="0x3"><object type="L3Cache" cpuset="0x1"><object type="Core" cpuset="0x1">
<object type="PU" os_index="0" cpuset="0x1"/></object></object><object type="L3Cache" cpuset="0x2">
<object type="PU" os_index="1" cpuset="0x2"/></object></object><object type="Package" os_index="1" cpuset="0xc">
<object type="PU" os_index="2" cpuset="0x4"/><object type="PU" os_index="3" cpuset="0x8"/></object></object></topology>"""


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
    drawn = run("matrix", path, "--topology", tmp_path / "node.xml").stdout
    assert (
        "\nlocality    in a core complex 0.1 %, elsewhere in a socket 0.9 %, elsewhere in a node 98.8 %, between nodes 0.3 %\n"
    ) in drawn
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
        (XML.replace("PU", "Core"), "it has no CPUs"),
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


# Size.


@pytest.mark.long
def test_a_job_of_4096_ranks_with_26_neighbours_each_is_small_and_folded(tmp_path: Path, run: Run) -> None:
    dims = (16, 16, 16)
    build = ProfileBuilder(ranks=4096, nodes=64)
    build.peers = [
        PeerRow(1, kind, None, None, 0, 0, rank, peer, None, 1, 11, 100, 102400)
        for kind, way in (("sent", 1), ("received", -1))
        for rank, peer in sorted(pair[::way] for pair in grid(dims, "111", box(3)))
    ]
    path = build.write(tmp_path / "large.db")
    assert path.stat().st_size < 10_000_000
    shown = run("matrix", path).stdout
    assert shown.startswith(
        "two-sided messages, as sent: 106,496 pairs of 4,096 ranks, 10,649,600 messages, 10.2 GiB\n"
    )
    assert "pattern     nearest neighbour, 3 dimensions, 16x16x16 periodic 111, with diagonals\n" in shown
    assert "sent and received are equal in all 106,496 pairs" in shown
    assert "a cell is 128 x 128 ranks" in shown, "4,096 of them make 32 cells, all of one size"
    assert max(map(len, shown.split("\n\n")[1].splitlines())) <= 100
    assert run("matrix", path, "--to", tmp_path / "m.png").exit_code == 0
    assert pixels((tmp_path / "m.png").read_bytes()).shape[0] < 2 * MOST_CELLS
