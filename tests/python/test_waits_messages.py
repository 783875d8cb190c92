# SPDX-License-Identifier: Apache-2.0
"""`commlens waits` on messages: profiles with a known late rank, which may have no sample of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder
from build_waits import Kind, Late, RankWaits, add_messages, add_samples, add_unsplit
from conftest import Run

from commlens.page.waiting import read_waiting
from commlens.profile import open_profile
from commlens.waiting.estimate import Sampled, pattern_of_messages, waiting_share

MS = 10**6
RECV = Kind(1, "MPI_Recv", 7)


def late_sender_builder() -> ProfileBuilder:
    """Return a run in which rank 0 of 4 sends 40 messages to each other one, 3 ms late, most of them in region solve."""
    build = ProfileBuilder(ranks=4, app_ns=10**9)
    solve = build.region("solve")
    for rank in (1, 2, 3):
        build.count(1, "MPI_Recv", rank, 40, 124 * MS, 64)
    build.count(1, "MPI_Send", 0, 120, MS, 64)
    waits = {rank: (40, RankWaits(124 * MS, 120 * MS)) for rank in (1, 2, 3)}
    add_messages(build, RECV, waits, {0: [Late(20, 60 * MS), Late(100, 300 * MS, solve)]})
    add_messages(build, Kind(1, "MPI_Send", 7), {0: (120, RankWaits(MS, 0, behind_ns=360 * MS))}, {})
    return build


def late_receiver_builder() -> ProfileBuilder:
    """Return a run in which rank 0 waits in MPI_Send for the receive of rank 1; rank 2 has calls, but no sample."""
    build = ProfileBuilder(ranks=3, app_ns=10**9)
    for rank in (0, 2):
        build.count(1, "MPI_Send", rank, 10, 40 * MS, 4 << 20)
    add_messages(
        build, Kind(1, "MPI_Send", 23), {0: (10, RankWaits(40 * MS, 30 * MS))}, {1: [Late(10, 30 * MS)]}
    )
    return build


def found(run: Run, path: Path, operation: str) -> dict[str, Any]:
    (row,) = json.loads(run("waits", path, "--format", "json", "--op", operation).stdout)["waits"]
    return dict(row)


def sentences(path: Path) -> list[str]:
    with open_profile(str(path)) as connection:
        return [line["words"] for line in read_waiting(connection, 10**6).facts["lines"]]


def test_a_rank_that_only_sends_is_waited_for(run: Run, tmp_path: Path) -> None:
    path = late_sender_builder().write(tmp_path / "x.db")
    text = run("waits", path).stdout
    assert "360 ms of waiting in 373 ms of messages (96.5 %), sums over the ranks" in text
    assert "rank 0 causes 100.0 %, late in solve" in text
    row = found(run, path, "Recv")
    assert (row["class"], row["waiting_ns"], row["operation_ns"]) == ("p2p", 360 * MS, 12 * MS)
    assert (row["share_low"], row["share_high"]) == (row["waiting_share"], row["waiting_share"])
    assert (row["pattern"], row["last_rank"], row["last_share"], row["late_ns"]) == ("same", 0, 1.0, 3 * MS)
    names = ("rank", "samples", "last", "late_ns", "late_path")
    assert [tuple(one[name] for name in names) for one in row["ranks"]] == [
        (0, 0, 120, 360 * MS, "solve"),
        (1, 40, 0, 0, ""),
        (2, 40, 0, 0, ""),
        (3, 40, 0, 0, ""),
    ]
    assert sentences(path) == [
        "100.0 % of the waiting is for rank 0 on node0: 3.00 ms on average in 120 calls. It sends late in region solve.",
        "No rank was waited for.",
    ]


def test_the_ranks_of_messages_have_counts_of_calls_and_no_share_above_all(run: Run, tmp_path: Path) -> None:
    path = late_sender_builder().write(tmp_path / "x.db")
    lines = run("waits", path, "--ranks", "--op", "Recv").stdout.splitlines()
    of_ranks = [" ".join(line.split()) for line in lines if line.split()[:1] in (["0"], ["1"])]
    assert of_ranks == [
        "0 node0 - - 100.0 % 120 calls 3.00 ms - solve",
        "1 node0 3.10 ms 96.8 % 0 % 0 calls - 0 ns",
    ]


def test_a_late_receiver_is_named_and_a_rank_without_samples_widens_the_interval(
    run: Run, tmp_path: Path
) -> None:
    path = late_receiver_builder().write(tmp_path / "x.db")
    assert sentences(path) == [
        "100.0 % of the waiting is for rank 1 on node0: 3.00 ms on average in 10 calls. It posts its receives late."
    ]
    row = found(run, path, "Send")
    assert row["waiting_share"] == 0.75
    # Of rank 2, with half of the time, nothing is known.
    assert (row["share_low"], row["share_high"]) == (0.375, 0.875)


def test_ranks_that_sampled_different_shares_of_their_calls_leave_nothing_unknown() -> None:
    """Rank 0 has sampled all of its 100 calls of 1 ms, rank 1 a tenth of 1,000 calls of 10 ms."""
    own, other = 100 * MS, 10_000 * MS
    one = Sampled(
        200, 1100, own + other // 10, (own + other // 10) // 2, 0, own + other, own + other, (own + other) / 2
    )
    share = waiting_share((own + other) / 2, own + other, [one])
    assert (share.low, share.share, share.high) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("late", "waiting", "calls", "kind", "rank"),
    [
        ({0: 0, 1: 0}, {0: 0, 1: 0}, 0, "few", -1),
        ({0: 9, 1: 0}, {0: 0, 1: 9}, 7, "few", 0),
        ({0: 9, 1: 0}, {0: 0, 1: 9}, 8, "same", 0),
        # Each waits for the one before it; the delay is that of rank 1.
        ({0: 0, 1: 33, 2: 34, 3: 33}, {0: 33, 1: 0, 2: 33, 3: 34}, 90, "chain", 1),
        # A node whose ranks are late in the same way, for the others.
        ({0: 30, 1: 30, 2: 30, 3: 10}, {0: 0, 1: 0, 2: 10, 3: 90}, 90, "node", 0),
        ({0: 20, 1: 0, 2: 0, 3: 40, 4: 40}, {0: 0, 1: 50, 2: 50, 3: 0, 4: 0}, 90, "varies", 3),
    ],
)
def test_the_pattern_of_messages_weighs_the_ranks_by_time(
    late: dict[int, int], waiting: dict[int, int], calls: int, kind: str, rank: int
) -> None:
    nodes = {0: "a", 1: "a", 2: "a", 3: "b", 4: "c"}
    pattern = pattern_of_messages(late, waiting, calls, nodes)
    assert (pattern.kind, pattern.rank) == (kind, rank)


def test_a_chain_begins_at_the_rank_that_does_not_wait(run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=4, app_ns=10**9)
    for rank in range(4):
        build.count(1, "MPI_Sendrecv", rank, 40, 130 * MS, 64)
    waits = {rank: (40, RankWaits(130 * MS, 0 if rank == 1 else 120 * MS)) for rank in range(4)}
    late = {rank: [Late(40, 120 * MS)] for rank in (1, 2, 3)}
    add_messages(build, Kind(1, "MPI_Sendrecv", 7), waits, late)
    path = build.write(tmp_path / "x.db")
    assert "chain from rank 1 on" in run("waits", path).stdout
    assert sentences(path) == [
        "Ranks wait for each other in turn, and the delay begins at rank 1 on node0: 33.3 % of the waiting is for it, but "
        "it waits little itself. It is late."
    ]


def test_messages_and_collectives_are_named_in_the_head(run: Run, tmp_path: Path) -> None:
    build = late_sender_builder()
    for rank in range(4):
        build.count(1, "MPI_Barrier", rank, 10, 10 * MS)
    waits = {rank: RankWaits(10 * MS, 9 * MS * (rank != 3), 10 * (rank == 3)) for rank in range(4)}
    add_samples(build, Kind(1, "MPI_Barrier", 0), waits, 10)
    path = build.write(tmp_path / "x.db")
    assert "of waiting in 413 ms of messages and collectives" in run("waits", path).stdout
    assert "of waiting in 40.0 ms of collectives" in run("waits", path, "--op", "Barrier").stdout


@pytest.mark.parametrize(
    ("operation", "reason", "words"),
    [
        ("MPI_Recv", "members", "the other process has no sample of the message"),
        ("MPI_Barrier", "members", "some members have no sample of the call"),
        ("MPI_Recv", "order", "the samples do not tell in which order the messages were received"),
        ("MPI_Recv", "machines", "a message between machines, whose clocks are not known well enough"),
        ("MPI_Send", "posting", "a send of which it is unknown when its receive was posted"),
        ("MPI_Waitall", "threads", "several threads send or receive messages between the same two processes"),
    ],
)
def test_every_reason_is_told_in_the_words_of_its_calls(
    run: Run, tmp_path: Path, operation: str, reason: str, words: str
) -> None:
    build = ProfileBuilder(ranks=2)
    build.count(1, operation, 0, 5, MS)
    add_unsplit(build, Kind(1, operation, 0), reason, 5)
    text = " ".join(run("waits", build.write(tmp_path / "x.db")).stdout.split())
    assert f"{operation} (5): {words}" in text


def test_a_report_has_the_waiting_of_messages_as_a_column(run: Run, tmp_path: Path) -> None:
    path = late_sender_builder().write(tmp_path / "x.db")
    rows = json.loads(run("report", path, "--waiting", "--format", "json").stdout)["operations"]
    assert {row["operation"]: row["waiting_ns"] for row in rows} == {"MPI_Recv": 360 * MS, "MPI_Send": 0}


def test_a_late_rank_of_a_collective_has_the_region_of_its_calls(tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=4, app_ns=10**9)
    solve = build.region("solve")
    for rank in range(4):
        build.count(1, "MPI_Barrier", rank, 40, 40 * MS)
    waits = {
        rank: RankWaits(40 * MS, 39 * MS * (rank != 2), 40 * (rank == 2), MS * (rank == 2))
        for rank in range(4)
    }
    add_samples(build, Kind(1, "MPI_Barrier", 0, solve), waits, 40)
    assert sentences(build.write(tmp_path / "x.db")) == [
        "Rank 2 on node0 is last in 100.0 % of the sampled calls, far more often than by chance. It makes most of these "
        "calls in region solve."
    ]
