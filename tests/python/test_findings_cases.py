# SPDX-License-Identifier: Apache-2.0
"""Ten programs with a known cause: the first finding names it. The rules that need several sizes or communicators."""

from __future__ import annotations

from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from build_waits import Kind, RankWaits, add_samples
from test_findings import SECOND, chain, findings, program, rules_of, texts_of, waiting

US = 1000


def families(
    slow_s: float, members: int = 4, comms: int = 4, fastest_s: float | None = None
) -> ProfileBuilder:
    """Return a program whose last communicator of a family takes `slow_s` in 100 calls; the others take 0.5 s.

    fastest_s : time of its first member, if that is another one
    """
    build = program(members * comms)
    for i in range(comms):
        ranks = list(range(i * members, (i + 1) * members))
        comm = build.comm(f"s{ranks[0]}.1", ranks, family=2, parent=1, creator="MPI_Comm_split", callsite=1)
        for rank in ranks:
            seconds = 0.5 if i < comms - 1 else slow_s
            if i == comms - 1 and rank == ranks[0] and fastest_s is not None:
                seconds = fastest_s
            build.count(comm, "MPI_Bcast", rank, 100, round(seconds * SECOND), size=5000, callsite=1)
    return build


def sends(small_us: float, large_us: float, calls: int = 100_000) -> ProfileBuilder:
    """Return a program of 10 s on two ranks that sends messages of two sizes."""
    build = program(2)
    for rank in range(2):
        build.count(1, "MPI_Send", rank, calls, round(calls * small_us * US), size=3000)
        build.count(1, "MPI_Send", rank, calls, round(calls * large_us * US), size=6000)
    return build


def all_to_all(ranks: int, block: int, seconds: float) -> ProfileBuilder:
    """Return a program of 10 s whose ranks exchange blocks 1,000 times; rank 0 takes 1 s longer, because it waits."""
    build = program(ranks)
    for rank in range(ranks):
        spent = round((seconds + (rank == 0)) * SECOND)
        volume = 1000 * ranks * block
        build.count(1, "MPI_Alltoallv", rank, 1000, spent, None, volume, volume, callsite=1)
    return build


def one_node_of_two() -> ProfileBuilder:
    """Return a program in which all four ranks of the second node compute for 10 s, those of the first for 6 s."""
    build = waiting(4, 4, 4, 4, 0, 0, 0, 0)
    build.nodes = 2
    return build


def many_barriers(each_ms: float) -> ProfileBuilder:
    """Return a program of 10 s with 2,000 barriers that take so long on both ranks."""
    build = program(2)
    for rank in range(2):
        build.count(1, "MPI_Barrier", rank, 2000, round(2000 * each_ms * 10**6), callsite=1)
    return build


def tiny() -> ProfileBuilder:
    build = program(2)
    for rank in range(2):
        build.count(1, "MPI_Send", rank, 1_000_000, 3 * SECOND, size=8)
    return build


def communicators() -> ProfileBuilder:
    build = program(2)
    for rank in range(2):
        build.count(1, "MPI_Comm_dup", rank, 1000, 2 * SECOND, callsite=1)
    return build


CASES = {
    "one slow communicator of many": (
        families(4),
        "s12.1 takes 40.0 ms per call of MPI_Bcast with 4-8 KiB, the other 3 communicators of s*.1 take 5.00 ms",
    ),
    "an imbalanced rank": (
        waiting(4, 4, 0, 4),
        "rank 2 spends 10.0 s outside MPI, the others only 6.00 s on average; the others wait for rank 2 in MPI_Allreduce at solver+0x1234",
    ),
    "tiny messages": (
        tiny(),
        "2,000,000 calls of MPI_Send with 8-15 B, 3.00 µs each, take 30.0 % of the time",
    ),
    "a serialised chain": (
        chain(5, 2, 2),
        "ranks 0 to 4 work one after another: time in MPI_Recv changes by 2.00 s from rank to rank at solver+0x1234; on "
        "average 1.0 of 5 ranks work at a time",
    ),
    "a late root": (
        waiting(0, 4, 4, 4, op="MPI_Bcast"),
        "rank 0 spends 10.0 s outside MPI, the others only 6.00 s on average; the others wait for rank 0 in MPI_Bcast at solver+0x1234",
    ),
    "too many communicators": (
        communicators(),
        "all ranks call MPI_Comm_dup 1,000 times each at solver+0x1234, which takes 20.0 % of the time",
    ),
    "eager to rendezvous": (
        sends(1, 30),
        "MPI_Send takes 1.00 µs with 2-4 KiB, and 30.0 µs with messages twice as large: they may wait for their receive",
    ),
    "one slow node": (
        one_node_of_two(),
        "the 4 ranks of node1 spend 10.0 s outside MPI, the others only 6.00 s on average; the others wait for them in MPI_Allreduce at "
        "solver+0x1234",
    ),
    "all-to-all on too many ranks": (
        all_to_all(64, 16, 3),
        "MPI_Alltoallv among 64 ranks at solver+0x1234, with 16 B for each of them, takes 30.0 % of the time",
    ),
    "waiting in a barrier": (
        waiting(3, 2, 3, 2, op="MPI_Barrier"),
        "ranks spend 2.50 s on average in 100 barriers at solver+0x1234; no rank is always the last, so they wait in turns",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_first_finding_names_the_cause(case: str, tmp_path: Path) -> None:
    build, text = CASES[case]
    assert texts_of(build, tmp_path)[:1] == [text]


def test_the_evidence_of_a_slow_communicator_is_what_arithmetic_gives(tmp_path: Path) -> None:
    (finding,) = findings(families(4, fastest_s=3.2), tmp_path)
    # 3.8 s on average of four members, 0.5 s in the others: 3.3 s of 10 on 4 of 16 ranks.
    assert finding.share == pytest.approx(3.3 / 10 * 4 / 16)
    assert finding.evidence() == [
        ("time per call", "38.0 ms"),
        ("time per call of its fastest member", "32.0 ms"),
        ("time per call of its siblings", "5.00 ms"),
        ("members of the communicator", "4"),
        ("part of the run that it costs at most", "8.2 %"),
    ]


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (families(1.51), ["slow_communicator"]),  # 1.01 s of 10 s more than the others
        (families(1.49), []),
        (families(4, fastest_s=0.9), []),  # its fastest member is nearly as fast as the others: it comes last
        (families(4, comms=3), ["slow_communicator"]),
        (families(1.9, comms=2), []),
        (sends(1, 12.1), ["rendezvous_step"]),  # 100,000 calls of 12.1 instead of 2 us: 1.01 s of 10 s
        (sends(1, 11.9), []),
        (sends(1, 3.9, 1_000_000), []),
        (sends(1, 60, 999), []),
        (all_to_all(32, 1024, 1.5), ["small_all_to_all"]),
        (all_to_all(31, 1024, 1.5), []),
        (all_to_all(32, 1025, 1.5), []),
        (all_to_all(32, 16, 0.9), []),
        (waiting(1.1, 1.0, 1.2, 0.9, op="MPI_Barrier"), ["barriers"]),
        (waiting(1.0, 0.9, 1.1, 0.9, op="MPI_Barrier"), []),
        (waiting(1.9, 0.8, 1.9, 1.9, op="MPI_Barrier"), []),  # one rank comes last
        (many_barriers(1.0), ["barriers"]),
        (many_barriers(0.99), []),  # may be slow themselves
    ],
)
def test_a_rule_applies_from_its_threshold_on(
    build: ProfileBuilder, found: list[str], tmp_path: Path
) -> None:
    assert rules_of(build, tmp_path) == found


@pytest.mark.parametrize("calls", [0, 1])
def test_a_job_that_hangs_in_its_first_exchange_does_not_exchange_small_blocks(
    calls: int, tmp_path: Path
) -> None:
    """A call that never returned has time, but neither a count nor bytes."""
    build = program(32)
    for rank in range(32):
        build.count(1, "MPI_Alltoallv", rank, calls, 9 * SECOND, None, 0, 0, callsite=1)
        build.stands(rank, "MPI_Alltoallv", 1, 9 * SECOND)
    assert "small_all_to_all" not in rules_of(build, tmp_path)


def test_a_job_that_was_killed_outside_its_small_exchanges_is_advised(tmp_path: Path) -> None:
    build = all_to_all(32, 16, 1.5)
    build.stands(3, "MPI_Allreduce", 1, SECOND)
    assert "small_all_to_all" in rules_of(build, tmp_path)


def test_ranks_of_one_node_are_named_one_by_one_where_others_of_it_are_not_late(tmp_path: Path) -> None:
    build = waiting(4, 4, 4, 4, 4, 0, 0, 0)
    build.nodes = 2
    (text,) = texts_of(build, tmp_path)
    assert text.startswith("ranks 5, 6, 7 spend 10.0 s outside MPI")


def late_root(
    last: int = 80, late_s: float = 2, outside_s: float = 0, inside_s: float = 2, op: str = "MPI_Bcast"
) -> ProfileBuilder:
    """Return a program of 10 s on four ranks that wait for rank 0 in 200 broadcasts, of which 100 were sampled.

    late_s : how long the ranks wait for it alone in the sampled calls
    outside_s, inside_s : how much longer rank 0 is outside MPI, and in other MPI calls, before these
    """
    build = waiting(4, 4, 4, 4, op=op)
    late, tenth = round(late_s * SECOND), SECOND // 10
    outside, inside = tenth + round(outside_s * SECOND), tenth + round(inside_s * SECOND)
    root = RankWaits(2 * SECOND, 0, last, late, 0, outside + inside, outside)
    other = RankWaits(2 * SECOND, late, between_ns=2 * tenth, outside_ns=tenth)
    add_samples(build, Kind(1, op, 0), {0: root, 1: other, 2: other, 3: other}, samples=100, collectives=200)
    return build


def test_a_root_that_comes_late_out_of_mpi_is_named(tmp_path: Path) -> None:
    (finding,) = findings(late_root(), tmp_path)
    assert finding.text == (
        "rank 0 arrives last in 80.0 % of the calls of MPI_Bcast on MPI_COMM_WORLD: the ranks that need it wait 4.00 s for "
        "it alone, because it comes late out of other MPI calls"
    )
    # 2 s in 100 of 200 calls, on three of four ranks, of 10 s.
    assert finding.share == pytest.approx(0.3)
    assert finding.rule.show == "waiting"


@pytest.mark.parametrize(
    ("outside_s", "inside_s", "cause"),
    [
        (1.01, 1, ", because it computes longer before it"),
        (0.89, 1.01, ", because it comes late out of other MPI calls"),
        (
            0.91,
            1.01,
            "",
        ),  # a second outside MPI, half of what the others wait: it may compute in another place than they do
        (0, 0.99, ""),
        (0, 0, ""),
    ],
)
def test_the_cause_of_a_late_root_is_what_its_times_show(
    outside_s: float, inside_s: float, cause: str, tmp_path: Path
) -> None:
    (finding,) = findings(late_root(outside_s=outside_s, inside_s=inside_s), tmp_path)
    assert finding.text.partition(" for it alone")[2] == cause


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (late_root(last=63), ["awaited_rank"]),  # 1/2 + 1/2 of a quarter of the calls
        (late_root(last=62), []),
        (late_root(late_s=0.51), ["awaited_rank"]),
        (late_root(late_s=0.49), []),
    ],
)
def test_a_root_is_awaited_from_a_threshold_on(
    build: ProfileBuilder, found: list[str], tmp_path: Path
) -> None:
    assert [name for name in rules_of(build, tmp_path) if name == "awaited_rank"] == found


def test_a_late_rank_is_named_once(tmp_path: Path) -> None:
    """uneven_communicator and late_ranks name it with what they need no samples for."""
    assert "awaited_rank" not in rules_of(late_root(op="MPI_Allreduce"), tmp_path)
    build = late_root()
    for rank in range(1, 4):
        build.count(1, "MPI_Send", rank, 1, 3 * SECOND, size=0)
    assert "awaited_rank" not in rules_of(build, tmp_path)


def turns(
    waiting_s: float = 3,
    late: int | None = None,
    ranks: int = 4,
    error_s: float | None = 0,
    op: str = "MPI_Allreduce",
) -> ProfileBuilder:
    """Return a program of 10 s whose ranks spend 4 s in 100 calls, waiting_s of it waiting; all calls are sampled.

    late : share of rank 0 in the delay, %; by default that of each other rank
    """
    build = waiting(*[4] * ranks, op=op)
    # Rank 0 is last in most calls. It is the delay that counts, not how often.
    shares = [late or 100 / ranks] + [(100 - late if late else 100 * (ranks - 1) / ranks) / (ranks - 1)] * (
        ranks - 1
    )
    waits = {
        rank: RankWaits(
            4 * SECOND, round(waiting_s * SECOND), 3 if rank else 97, late_ns=round(share / 100 * SECOND)
        )
        for rank, share in enumerate(shares)
    }
    error = None if error_s is None else round(error_s * SECOND)
    add_samples(build, Kind(1, op, 0), waits, samples=100, error_ns=error)
    return build


def test_ranks_that_wait_in_turns_are_told_from_a_slow_collective(tmp_path: Path) -> None:
    (finding,) = findings(turns(), tmp_path)
    assert finding.text == (
        "75.0 % of the time of MPI_Allreduce is waiting, 3.00 s per rank: they wait for each other in turns, no rank "
        "causes more than 25.0 % of the delay"
    )
    assert finding.share == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (turns(1.01), True),
        (turns(0.99), False),
        (turns(late=62), True),
        (turns(late=63), False),
        (turns(late=74, ranks=2), True),
        (turns(late=75, ranks=2), False),
        (turns(2, error_s=1.9), True),  # 8 s of waiting less twice the error are at least 4 s
        (turns(2, error_s=2.1), False),
        (turns(error_s=None), False),
        (turns(op="MPI_Barrier"), False),
    ],
)
def test_ranks_wait_in_turns_from_a_threshold_on(build: ProfileBuilder, found: bool, tmp_path: Path) -> None:
    assert ("late_in_turns" in rules_of(build, tmp_path)) == found


def sizes(op: str, tiny: dict[int, RankWaits], large: dict[int, RankWaits]) -> ProfileBuilder:
    """Return a program of 100 s on four ranks: a million calls of 8 bytes, of which 64 were sampled, and 64 of 1 MiB."""
    build = waiting(0, 0, 0, 0, op=op)
    build.app_ns = 100 * SECOND
    for rank in range(4):
        build.count(1, op, rank, 1_000_000, max(SECOND, tiny[rank].time_ns * 1_000_000 // 64), size=8)
        build.count(1, op, rank, 64, large[rank].time_ns, size=1 << 20)
    build.count(1, "MPI_Recv", 0, 64, 20 * SECOND, size=8)
    add_samples(build, Kind(1, op, 4), tiny, samples=64, collectives=1_000_000)
    add_samples(build, Kind(1, op, 21), large, samples=64)
    return build


def test_samples_stand_for_the_calls_of_their_size_only(tmp_path: Path) -> None:
    """Of the tiny calls one in 16,000 was sampled, of the large ones all: their delays are not scaled alike."""

    def late(each_ns: int) -> dict[int, RankWaits]:
        others = RankWaits(64 * 2 * each_ns, 64 * each_ns, 0)
        return {0: RankWaits(64 * each_ns, 0, 64, 64 * each_ns), 1: others, 2: others, 3: others}

    (finding,) = findings(sizes("MPI_Bcast", late(500), late(200_000_000)), tmp_path)
    assert finding.rule.name == "awaited_rank"
    assert finding.values["each_ns"] == pytest.approx(1_000_000 * 500 + 64 * 200_000_000)
    assert finding.share == pytest.approx(13.3 / 100 * 3 / 4)


def test_turns_in_few_large_calls_do_not_hide_a_late_rank_in_many_tiny_ones(tmp_path: Path) -> None:
    tiny = {0: RankWaits(64 * 6_000, 0, 64, 64 * 20_000)}
    tiny |= dict.fromkeys((1, 2, 3), RankWaits(64 * 26_000, 64 * 20_000, 0))
    large = dict.fromkeys(range(4), RankWaits(64 * 110_000_000, 64 * 75_000_000, 16, 16 * 50_000_000))
    # Rank 0 causes 20 + 0.8 s of 23.2 s.
    assert "late_in_turns" not in rules_of(sizes("MPI_Allreduce", tiny, large), tmp_path)
    in_turns = dict.fromkeys(range(4), RankWaits(64 * 26_000, 64 * 15_000, 16, 16 * 20_000))
    assert "late_in_turns" in rules_of(sizes("MPI_Allreduce", in_turns, large), tmp_path)


def test_few_samples_of_most_calls_prove_nothing(tmp_path: Path) -> None:
    """Two samples stand for a million calls; the 64 of other calls do not make them more."""
    build = late_root()
    assert "awaited_rank" in rules_of(build, tmp_path)
    others = RankWaits(2 * SECOND // 1000, SECOND // 1000, 0)
    add_samples(
        build,
        Kind(1, "MPI_Bcast", 9),
        {0: RankWaits(SECOND // 1000, 0, 2, 2 * SECOND // 1000), 1: others, 2: others, 3: others},
        2,
        100_000,
    )
    assert "awaited_rank" not in rules_of(build, tmp_path)
