# SPDX-License-Identifier: Apache-2.0
"""The rule on messages for which others wait: late senders and receivers, chains, and programs without a late rank."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from build_waits import Kind, Late, RankWaits, add_messages, add_samples
from test_findings import SECOND, findings, program, rules_of

from commlens.findings.find import read_findings
from commlens.profile import open_profile

RULE = "late_peer"


def exchange(
    waits: Sequence[float],
    late: Mapping[int, float],
    op: str = "MPI_Recv",
    *,
    calls: int = 20,
    samples: int = 40,
    regions: Mapping[int, str] | None = None,
    error_s: float | None = 0,
    all_calls: int = 1,
) -> ProfileBuilder:
    """Return a program of 10 s whose ranks are in MPI equally long, in messages and else in broadcasts.

    Parameters
    ----------
    waits : sequence of float
        How long each rank waits in the sampled calls, s.
    late : mapping
        For how long others wait for a rank in them, s.
    calls : int
        Number of sampled calls in which others wait for each of these ranks.
    all_calls : int
        How many calls there are for each sampled one, with as much time.
    """
    build = program(len(waits))
    ranks = {}
    for rank, seconds in enumerate(waits):
        time = round((seconds + 0.1) * SECOND)
        build.count(1, op, rank, samples * all_calls, time * all_calls, size=64)
        build.count(1, "MPI_Bcast", rank, 1, 5 * SECOND - time * all_calls, size=64)
        ranks[rank] = (samples, RankWaits(time, round(seconds * SECOND)))
    names = {rank: build.region(name) for rank, name in (regions or {}).items()}
    causes = {
        rank: [Late(calls, round(seconds * SECOND), names.get(rank, 0))] for rank, seconds in late.items()
    }
    error = None if error_s is None else round(error_s * SECOND)
    add_messages(build, Kind(1, op, 7), ranks, causes, samples * len(waits) * all_calls, error)
    return build


def late_sender(seconds: float = 2, others: float = 0, op: str = "MPI_Recv") -> ProfileBuilder:
    """Return four ranks: three wait so long for rank 2, and as a sum so long for each other."""
    rest = {0: others / 3, 1: others / 3, 3: others / 3}
    return exchange(
        [seconds + rest[0], seconds + rest[1], 0, seconds + rest[3]], {2: 3 * seconds, **rest}, op
    )


def test_a_late_sender_is_named_with_its_time_procedure_and_region(tmp_path: Path) -> None:
    build = exchange([2, 2, 0, 2], {2: 6}, regions={2: "pack"})
    (finding,) = findings(build, tmp_path)
    assert finding.text == (
        "rank 2 sends late in region pack: the other ranks together wait 6.00 s for it, longest in MPI_Recv; "
        "rank 2 itself waits 0 ns for them"
    )
    assert finding.share == pytest.approx(6 / 40)
    assert finding.rule.show == "waiting"
    assert finding.evidence() == [
        ("ranks that wait for messages, or for which others wait", "4"),
        ("sampled calls", "160"),
        ("sampled calls that waited for this rank", "20"),
        ("estimated waiting for messages, sum over the ranks", "6.00 s"),
        ("its standard error", "0 ns"),
        ("part of it that is for this rank", "100.0 %"),
        ("waiting of this rank for others", "0 ns"),
        ("part of the run that it costs at most", "15.0 %"),
    ]


@pytest.mark.parametrize(
    ("op", "how"),
    [
        ("MPI_Send", "posts its receives late"),
        ("MPI_Sendrecv", "comes late to its messages"),
        ("MPI_Waitall", "sends late"),
    ],
)
def test_the_sentence_says_which_side_is_late(op: str, how: str, tmp_path: Path) -> None:
    (finding,) = findings(late_sender(op=op), tmp_path)
    assert finding.text.startswith(
        f"rank 2 {how}: the other ranks together wait 6.00 s for it, longest in {op}"
    )


def test_the_time_of_all_calls_is_estimated_from_the_samples(tmp_path: Path) -> None:
    build = exchange([0.5, 0.5, 0, 0.5], {2: 1.5}, all_calls=4)
    (finding,) = findings(build, tmp_path)
    assert "wait 6.00 s for it" in finding.text


def test_a_chain_is_named_by_its_beginning_with_the_delay_that_it_passes_on(tmp_path: Path) -> None:
    """Each rank waits for the one before it; the delay is that of rank 0."""
    (finding,) = findings(exchange([0, 2, 2, 2], {0: 2, 1: 2, 2: 2}), tmp_path)
    assert finding.text == (
        "rank 0 sends late: the other ranks together wait 2.00 s for it, longest in MPI_Recv; rank 0 itself waits 0 ns "
        "for them; ranks that it delays cause another 4.00 s of waiting"
    )
    assert finding.share == pytest.approx(6 / 40)


def test_a_region_is_named_if_the_rank_is_mostly_late_there(tmp_path: Path) -> None:
    build = exchange([2, 2, 0, 2], {})
    build.more.clear()
    solve, pack = build.region("solve"), build.region("pack")
    waits = {rank: (40, RankWaits(2 * SECOND, 2 * SECOND * (rank != 2))) for rank in range(4)}
    parts = [Late(10, 3 * SECOND, solve), Late(10, 3 * SECOND, pack)]
    add_messages(build, Kind(1, "MPI_Recv", 7), waits, {2: parts})
    (finding,) = findings(build, tmp_path)
    assert finding.text.startswith("rank 2 sends late: ")


def test_the_communicator_with_the_longest_waiting_is_named(tmp_path: Path) -> None:
    build = late_sender(1)
    some = build.comm("s0.1", [0, 1, 2, 3], parent=1, creator="MPI_Comm_dup")
    for rank in range(4):
        build.count(some, "MPI_Waitall", rank, 40, 2 * SECOND)
    waits = {rank: (40, RankWaits(2 * SECOND, 2 * SECOND * (rank != 2))) for rank in range(4)}
    add_messages(build, Kind(some, "MPI_Waitall", 0), waits, {2: [Late(40, 6 * SECOND)]})
    (finding,) = findings(build, tmp_path)
    assert "wait 9.00 s for it, longest in MPI_Waitall on s0.1" in finding.text


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (late_sender(1.34), True),  # 4.02 s of 40 s
        (late_sender(1.32), False),
        (late_sender(2, others=3.5), True),  # 1/2 + 1/2 of a quarter of the waiting
        (late_sender(2, others=3.7), True),  # less, but all of what ranks cause beyond their own waiting
        (exchange([2, 2, 0, 0, 0], {2: 4, 3: 3}), False),
        (exchange([2, 2, 1.19, 2], {2: 6, 1: 1.19}), True),  # waits for a fifth of what it causes
        (exchange([2, 2, 1.21, 2], {2: 6, 1: 1.21}), False),
        (exchange([2, 2, 0, 2], {2: 6}, calls=10), True),
        (exchange([2, 2, 0, 2], {2: 6}, calls=9), False),
        (exchange([2, 2, 0, 2], {2: 6}, error_s=0.99), True),  # 6 s less twice the error are at least 4 s
        (exchange([2, 2, 0, 2], {2: 6}, error_s=1.01), False),
        (exchange([2, 2, 0, 2], {2: 6}, error_s=None), False),
    ],
)
def test_a_rank_is_late_for_messages_from_a_threshold_on(
    build: ProfileBuilder, found: bool, tmp_path: Path
) -> None:
    assert (RULE in rules_of(build, tmp_path)) == found


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_messages_without_a_late_rank_are_no_finding(ranks: int, tmp_path: Path) -> None:
    """A ping-pong, an exchange with both neighbours and a ring: each rank waits about as long as others wait for it."""
    for seed in range(5):
        dice = random.Random(seed)
        waits, late = [0.0] * ranks, dict.fromkeys(range(ranks), 0.0)
        for rank in range(ranks):
            for neighbour in ((rank - 1) % ranks, (rank + 1) % ranks):
                seconds = dice.uniform(0.7, 1.3)
                waits[rank] += seconds
                late[neighbour] += seconds
        for op in ("MPI_Recv", "MPI_Waitall", "MPI_Sendrecv"):
            assert rules_of(exchange(waits, late, op), tmp_path) == []


def test_a_pipeline_in_which_each_rank_works_equally_long_has_no_late_rank(tmp_path: Path) -> None:
    """Each rank waits one step longer than the one before it, so that each one causes a step."""
    build = exchange([0, 1, 2, 3], {0: 1, 1: 2, 2: 3})
    assert RULE not in rules_of(build, tmp_path)


def test_two_late_ranks_are_no_finding(tmp_path: Path) -> None:
    assert rules_of(exchange([0, 3, 0, 3], {0: 3, 2: 3}), tmp_path) == []


def test_a_rank_that_works_longest_is_named_once(tmp_path: Path) -> None:
    """late_ranks names it without samples; with several threads only the samples do."""
    build = late_sender()
    for cell in build.cells:
        cell.time_ns = 0 if cell.rank == 2 else cell.time_ns
    path = build.write(tmp_path / "late.db")
    with open_profile(str(path)) as connection:
        assert [one.rule.name for one in read_findings(connection)] == ["late_ranks"]
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE rank SET threads = 2 WHERE rank = 1")
    with open_profile(str(path)) as connection:
        assert [one.rule.name for one in read_findings(connection)] == [RULE]


@pytest.mark.parametrize(("among_others", "found"), [(0, []), (300, [RULE])])
def test_a_rank_that_serves_all_others_is_named_once(
    among_others: int, found: list[str], tmp_path: Path
) -> None:
    build = exchange([0, *[2] * 7], {0: 14})
    for rank in range(1, 8):
        build.send(rank, 0, 500, 8)
        build.send(0, rank, 500, 8)
        if among_others:
            build.send(rank, rank % 7 + 1, among_others, 8)
    rules = rules_of(build, tmp_path)
    assert rules == (found or ["one_rank_serves"])


@pytest.mark.parametrize(("late_s", "found"), [(1.1, False), (0.9, True)])
def test_a_rank_that_is_awaited_in_a_collective_is_named_once(
    late_s: float, found: bool, tmp_path: Path
) -> None:
    build = late_sender()
    late = round(late_s * SECOND)
    for rank in range(4):
        build.count(1, "MPI_Bcast", rank, 20, 2 * SECOND)
    waits = {rank: RankWaits(2 * SECOND, late) for rank in (0, 1, 3)}
    waits[2] = RankWaits(2 * SECOND, 0, last=20, late_ns=late)
    add_samples(build, Kind(1, "MPI_Bcast", 0), waits, 20)
    assert rules_of(build, tmp_path) == ([RULE] if found else ["awaited_rank"])
