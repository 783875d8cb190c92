# SPDX-License-Identifier: Apache-2.0
"""`commlens waits`: its estimates against populations that are known, its words against profiles with a known cause."""

from __future__ import annotations

import json
import random
from pathlib import Path
from statistics import median

import pytest
from build_profile import ProfileBuilder
from build_waits import Kind, RankWaits, add_clock, add_samples, add_unsplit
from conftest import Run

from commlens.page.waiting import read_waiting
from commlens.profile import open_profile
from commlens.waiting.estimate import Pattern, Sampled, Share, even, pattern_of, waiting_share
from commlens.waiting.text import pattern_sentences
from commlens.waiting.waits import Wait

MS = 10**6
ALLREDUCE = Kind(1, "MPI_Allreduce", 4)


def population(rng: random.Random, calls: int, *, is_heavy: bool) -> list[tuple[float, float]]:
    """Return time and waiting of each call: noise around a trend, and some calls that take far longer."""
    found = []
    for i in range(calls):
        operation = rng.uniform(5, 15)
        waiting = rng.expovariate(1 / (20 + 40 * i / calls))
        if is_heavy and rng.random() < 0.02:
            waiting += 500
        found.append((operation + waiting, waiting))
    return found


def estimated(calls: list[tuple[float, float]], every: int, rng: random.Random) -> tuple[Sampled, float]:
    """Return a sample of one call of each block, and the estimate of all waiting."""
    chosen = [calls[i + rng.randrange(every)] for i in range(0, len(calls), every)]
    time, waiting = sum(t for t, _ in chosen), sum(w for _, w in chosen)
    total = sum(t for t, _ in calls)
    n = len(chosen)
    squares = sum((total / time * (w - waiting / time * t)) ** 2 for t, w in chosen)
    error = ((1 - n / len(calls)) * n / (n - 1) * squares) ** 0.5
    scale = 1000
    return (
        Sampled(
            n,
            len(calls),
            round(scale * time),
            round(scale * waiting),
            round(scale * error),
            round(scale * total),
        ),
        total * waiting / time,
    )


@pytest.mark.parametrize("is_heavy", [False, True], ids=["even", "heavy tail"])
@pytest.mark.parametrize("every", [4, 32])
def test_the_interval_covers_the_truth_in_90_to_99_of_100_cases(every: int, is_heavy: bool) -> None:
    rng = random.Random(11 * every + is_heavy)
    cases, hits = 400, 0
    for _ in range(cases):
        calls = population(rng, 64 * every, is_heavy=is_heavy)
        sampled, waiting = estimated(calls, every, rng)
        share = waiting_share(1000 * waiting, sampled.all_ns, [sampled])
        truth = sum(w for _, w in calls) / sum(t for t, _ in calls)
        assert share.low is not None and share.high is not None
        assert share.low <= share.share <= share.high
        hits += share.low <= truth <= share.high
    assert 0.90 <= hits / cases <= 0.995


def test_time_that_no_sample_has_widens_the_interval() -> None:
    """The samples took 10 ms a call, all calls together five times what that gives: the rest is unknown."""
    sampled = Sampled(100, 1000, 1000 * MS, 500 * MS, 10 * MS, 50_000 * MS)
    share = waiting_share(25_000 * MS, 50_000 * MS, [sampled])
    assert share.low == pytest.approx(0.1)
    assert share.high == pytest.approx(0.9)


def test_all_calls_have_no_error_and_few_have_no_interval() -> None:
    share = waiting_share(5, 10, [Sampled(3, 3, 10, 5, None, 10)])
    assert (share.low, share.share, share.high) == (0.5, 0.5, 0.5)
    share = waiting_share(5, 10, [Sampled(3, 30, 1, 1, None, 10)])
    assert (share.low, share.high) == (None, None)


@pytest.mark.parametrize(
    ("last", "behind", "kind"),
    [
        ({3: 98, 1: 2}, {0: 0.0, 1: 1.0, 2: 0.5, 3: 9.0}, "same"),
        ({0: 26, 1: 24, 2: 25, 3: 25}, {0: 5.0, 1: 4.0, 2: 5.0, 3: 4.5}, "rotates"),
        ({0: 10, 1: 20, 2: 25, 3: 45}, {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0}, "order"),
        ({0: 45, 1: 45, 2: 5, 3: 5}, {0: 5.0, 1: 4.0, 2: 5.0, 3: 4.5}, "node"),
        ({1: 3}, {0: 0.0, 1: 5.0}, "few"),
        ({}, {0: 0.0, 1: 5.0}, "few"),
    ],
)
def test_the_pattern_of_the_last_rank_is_named(
    last: dict[int, int], behind: dict[int, float], kind: str
) -> None:
    nodes = {0: "a", 1: "a", 2: "b", 3: "b"}
    chances = dict.fromkeys(range(4), even(sum(last.values()), 4))
    assert pattern_of(last, chances, nodes, behind, 4.0).kind == kind


@pytest.mark.parametrize(("often", "kind"), [(100, "each"), (90, "each"), (85, "varies"), (25, "rotates")])
def test_a_rank_is_judged_by_the_calls_of_its_own_communicator(often: int, kind: str) -> None:
    """Rows of a grid of 4 x 4: the first rank of each is last in all of its 100 calls, or each rank in a quarter."""
    last = {rank: often if rank % 4 == 0 else (100 - often) // 3 for rank in range(16)}
    last = {rank: times + (rank % 4 == 1) * ((100 - often) % 3) for rank, times in last.items()}
    pattern = pattern_of(last, dict.fromkeys(range(16), even(100, 4)), {}, dict.fromkeys(range(16), 0.0), 1.0)
    assert (pattern.kind, pattern.rank, pattern.share) == (kind, 0, often / 400)
    assert pattern.ranks == ((0, 4, 8, 12) if kind == "each" else ())


def test_a_communicator_without_such_a_rank_leaves_the_pattern_to_the_others() -> None:
    """In two of three pairs one rank is always last; in the third, each rank is last in half of the calls."""
    last, pair = {0: 40, 2: 40, 4: 20, 5: 20}, dict.fromkeys(range(6), even(40, 2))
    assert pattern_of(last, pair, {}, dict.fromkeys(range(6), 0.0), 1.0).kind == "varies"
    # Of two communicators of the same ranks, rank 2 is the last one in both.
    both = dict.fromkeys(range(4), even(80, 4))
    assert pattern_of({2: 80}, both, {}, dict.fromkeys(range(4), 0.0), 1.0) == Pattern("same", 2, 1.0)
    # Calls too few to tell the ranks from chance.
    few = dict.fromkeys(range(6), even(4, 2))
    assert pattern_of({0: 4, 2: 4, 4: 4}, few, {}, dict.fromkeys(range(6), 0.0), 1.0).kind == "rotates"


@pytest.mark.parametrize(
    ("pairs", "ranks"), [(2, "0, 2"), (3, "0, 2, 4"), (8, "0, 2, 4 and 5 more")], ids=lambda value: str(value)
)
def test_the_late_rank_of_each_communicator_is_named(
    run: Run, tmp_path: Path, pairs: int, ranks: str
) -> None:
    build = ProfileBuilder(ranks=2 * pairs, app_ns=10**9)
    family = 0
    for pair in range(pairs):
        members = [2 * pair, 2 * pair + 1]
        comm = build.comm(f"s{pair}.1", members, parent=1, creator="MPI_Comm_split", family=family)
        family = family or build.comms[comm].family
        for rank in members:
            build.count(comm, "MPI_Barrier", rank, 40, 40 * MS, 0)
        late = RankWaits(4 * MS, 0, 40, 36 * MS, 36 * MS)
        waits = {members[0]: late, members[1]: RankWaits(40 * MS, 36 * MS)}
        add_samples(build, Kind(comm, "MPI_Barrier", 0), waits, samples=40)
    path = build.write(tmp_path / "x.db")
    assert f"  the same rank in each communicator: {ranks}\n" in run("waits", path).stdout
    (row,) = json.loads(run("waits", path, "--format", "json").stdout)["waits"]
    assert (row["pattern"], row["last_rank"], row["last_share"]) == ("each", 0, 1 / pairs)


def test_no_rank_is_named_when_all_are_alike() -> None:
    """1,000 runs in which each of 16 ranks is equally likely to be last."""
    rng = random.Random(3)
    named = 0
    for _ in range(1000):
        last: dict[int, int] = {}
        for _ in range(200):
            rank = rng.randrange(16)
            last[rank] = last.get(rank, 0) + 1
        chances = dict.fromkeys(range(16), even(200, 16))
        behind = {r: rng.random() for r in range(16)}
        named += pattern_of(last, chances, {}, behind, 1.0).kind != "rotates"
    assert named <= 10


def pattern_of_entries(entries: list[list[float]]) -> Pattern:
    """Return the pattern of calls, each with the times at which its ranks enter."""
    last: dict[int, int] = {}
    for call in entries:
        rank = call.index(max(call))
        last[rank] = last.get(rank, 0) + 1
    ranks = range(len(entries[0]))
    behind = {rank: sum(call[rank] - min(call) for call in entries) / len(entries) for rank in ranks}
    spread = median(max(call) - min(call) for call in entries)
    return pattern_of(last, dict.fromkeys(ranks, even(len(entries), len(ranks))), {}, behind, spread)


@pytest.mark.parametrize("ranks", [4, 5, 8, 16])
@pytest.mark.parametrize("calls", [12, 100])
def test_noise_is_no_order_of_the_ranks(ranks: int, calls: int) -> None:
    rng = random.Random(100 * ranks + calls)
    runs = ([[rng.expovariate(1.0) for _ in range(ranks)] for _ in range(calls)] for _ in range(500))
    assert not [run for run in runs if pattern_of_entries(run).kind == "order"]


@pytest.mark.parametrize("ranks", [4, 5, 8, 16])
@pytest.mark.parametrize("step", [1.0, -1.0])
def test_ranks_that_enter_one_after_the_other_are_in_order(ranks: int, step: float) -> None:
    """The noise of a call is 2.5 times the step, so that the last rank is last in less than half of the calls."""
    rng = random.Random(ranks)
    run = [[step * rank + rng.gauss(0.0, 2.5) for rank in range(ranks)] for _ in range(4000)]
    pattern = pattern_of_entries(run)
    assert (pattern.kind, pattern.rank) == ("order", ranks - 1 if step > 0 else 0)


def test_ranks_that_are_late_in_turn_are_in_no_order() -> None:
    """A different rank is 100 ms late in each call; the means rise with the rank by 0.1 ms, nearly without noise."""
    run = [[0.1 * rank + 100.0 * (call % 4 == rank) for rank in range(4)] for call in range(400)]
    assert pattern_of_entries(run).kind == "rotates"


def late_rank_builder(*, outside: bool, inside: bool = False) -> ProfileBuilder:
    """Return a run in which rank 2 of 4 is last in all 100 allreduces, by 1 ms.

    Before, it spends 3 ms more outside MPI than the others, or 0.8 ms more in other MPI calls, or the same times.
    """
    own = 400 * MS if outside else 20 * MS if inside else 100 * MS
    build = ProfileBuilder(ranks=4, app_ns=10**9)
    waits = {}
    for rank in range(4):
        is_late = rank == 2
        time = 100 * (10_000 if is_late else MS + 10_000)
        build.count(1, "MPI_Allreduce", rank, 100, time, 8)
        waits[rank] = RankWaits(
            time, 0 if is_late else 100 * MS, 100 if is_late else 0, 100 * MS if is_late else 0,
            100 * MS if is_late else 0, 500 * MS, own if is_late else 100 * MS,
        )  # fmt: skip
    add_samples(build, ALLREDUCE, waits, samples=100)
    build.count(1, "MPI_Bcast", 0, 7, 1000, 0)
    add_unsplit(build, Kind(1, "MPI_Bcast", 0), "no data", 7)
    return build


@pytest.mark.parametrize(
    ("outside", "inside", "words"),
    [(True, False, "computes longer"), (False, True, "comes late from other MPI calls")],
)
def test_a_late_rank_is_named_with_its_cause(
    run: Run, tmp_path: Path, outside: bool, inside: bool, words: str
) -> None:
    path = tmp_path / "late.db"
    late_rank_builder(outside=outside, inside=inside).write(path)
    text = run("waits", str(path)).stdout
    assert "300 ms of waiting in 304 ms of collectives (98.7 %)" in text
    assert f"rank 2 in 100.0 %, {words}" in text
    assert "MPI_Bcast (7): a block is empty" in text
    row = json.loads(run("waits", str(path), "--format", "json").stdout)["waits"][0]
    assert (row["waiting_ns"], row["time_ns"], row["operation_ns"]) == (300 * MS, 304 * MS, 4 * MS)
    assert (row["pattern"], row["last_rank"], row["late_ns"]) == ("same", 2, MS)


@pytest.mark.parametrize(
    ("own", "others"),
    [
        # Rank 2 computes 40 ms before its call, the others as long after it; then all meet in another call.
        ((120, 40), (40, 40)),
        # All have the same times.
        ((50, 10), (50, 10)),
        # It hardly computes, but waits no longer in other calls than the others do, whose samples are many calls apart.
        ((90, 10), (90, 10)),
    ],
)
def test_a_rank_that_does_not_compute_longer_is_not_said_to_come_from_other_calls(
    run: Run, tmp_path: Path, own: tuple[int, int], others: tuple[int, int]
) -> None:
    """Each has the time between two calls, and the part of it outside MPI, ms; rank 2 is 40 ms late."""
    build = ProfileBuilder(ranks=4, app_ns=10**10)
    waits = {}
    for rank in range(4):
        between, outside = (100 * MS * ms for ms in (own if rank == 2 else others))
        late = 100 if rank == 2 else 0
        waits[rank] = RankWaits(
            5000 * MS, 4000 * MS * (rank != 2), late, 40 * MS * late, 40 * MS * late, between, outside
        )
        build.count(1, "MPI_Bcast", rank, 100, 5000 * MS, 8)
    add_samples(build, Kind(1, "MPI_Bcast", 4), waits, samples=100)
    path = build.write(tmp_path / "x.db")
    assert run("waits", path).stdout.endswith("  rank 2 in 100.0 %\n")
    with open_profile(str(path)) as connection:
        (line,) = read_waiting(connection, 10**6).facts["lines"]
    assert line["cause"] == ""
    assert line["words"] == (
        "Rank 2 on node0 is last in 100.0 % of the sampled calls, far more often than by chance. "
        f"Between two such calls it spends {own[1]}.0 ms outside MPI, the others {others[1]}.0 ms (median), which does not "
        "explain the delay: it computes at another time than they, or comes late from other MPI calls."
    )


def test_calls_that_were_not_split_are_those_of_the_selection(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "late.db"
    late_rank_builder(outside=True).write(path)
    (row,) = json.loads(run("waits", path, "--op", "Bcast", "--format", "json").stdout)["unsplit"]
    assert (row["communicator"], row["operation"], row["bin"]) == ("W0.0", "MPI_Bcast", 0)
    assert (row["reason"], row["calls"]) == ("no data", 7)
    assert "not split" not in run("waits", path, "--op", "Allreduce").stdout


def without_samples_builder(option: str = "1") -> ProfileBuilder:
    """Return a run in which four ranks write a file together, and none of their calls has a sample."""
    build = ProfileBuilder(ranks=4, app_ns=10**9, meta={"options": f"COMMLENS_WAITING={option}"})
    for rank in range(4):
        build.count(1, "MPI_File_write_all", rank, 10, 300 * MS, 64)
        build.count(1, "MPI_Isend", rank, 10, 300 * MS, 64)
        build.count(1, "MPI_Allreduce", rank, 1, MS, 8)
    return build


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("0", "no sampled calls: COMMLENS_WAITING was 0 in this run\n"),
        (
            "1",
            "no sampled calls: commlens samples messages, collectives and MPI_Win_fence between two or more ranks, but",
        ),
    ],
)
def test_a_profile_without_samples_says_why_and_what_may_wait(
    run: Run, tmp_path: Path, option: str, words: str
) -> None:
    path = without_samples_builder(option).write(tmp_path / "x.db")
    text = run("waits", path).stdout
    assert text.startswith(words)
    assert "how much of their time is waiting: MPI_File_write_all (1.20 s).\n" in text
    assert run("waits", path, "--op", "Allreduce").stdout.startswith(words)


def test_a_selection_without_samples_is_no_run_without_samples(run: Run, tmp_path: Path) -> None:
    build = late_rank_builder(outside=True)
    build.count(1, "MPI_Gather", 0, 1, 600 * MS, 8)
    path = build.write(tmp_path / "x.db")
    assert run("waits", path, "--op", "Gather").stdout == (
        "no sampled calls match the selection\n\n"
        "Without samples, so that it is unknown how much of their time is waiting: MPI_Gather (600 ms).\n"
    )
    text = run("waits", path, "--op", "Bcast").stdout
    assert text.startswith(
        "no sampled call could be split into waiting and operation\n\nnot split:\n  MPI_Bcast (7)"
    )


def test_the_time_without_samples_is_found_by_communicator_and_size(run: Run, tmp_path: Path) -> None:
    """Allreduces of 8 bytes on W0.0 have samples; those of 1 MiB, and those of another communicator, have none."""
    build = late_rank_builder(outside=True)
    other = build.comm("d0.1", [0, 1], parent=1, creator="MPI_Comm_dup")
    build.count(1, "MPI_Allreduce", 0, 1, 200 * MS, 1 << 20)
    build.count(other, "MPI_Allreduce", 0, 1, 50 * MS, 8)
    path = build.write(tmp_path / "x.db")
    for options, time_ns in (((), 250), (("--comm", "W0.0"), 200), (("--comm", "d0.1"), 50)):
        rows = json.loads(run("waits", path, "--format", "json", *options).stdout)["unsampled"]
        assert rows == [{"operation": "MPI_Allreduce", "time_ns": time_ns * MS}]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (Pattern("few", -1, 0.0), "No rank was waited for."),
        (
            Pattern("few", 1, 0.5),
            "Rank 1 on b is last in 50.0 % of the sampled calls. These are too few calls",
        ),
        (
            Pattern("same", 0, 0.9),
            "Rank 0 on a is last in 90.0 % of the sampled calls, far more often than by chance.",
        ),
        (
            Pattern("each", 0, 0.2, ranks=(0, 2, 4, 6)),
            "In each communicator the same rank is last in nearly all sampled calls, far more often than by chance: "
            "0, 2, 4 and 1 more.",
        ),
        (Pattern("node", 0, 0.4, "a"), "The last rank is mostly on node a; rank 0 on a is last in 40.0 %"),
        (
            Pattern("order", 3, 0.4),
            "The ranks arrive in the order of their numbers, or in the opposite order; rank 3 is",
        ),
        (Pattern("rotates", 1, 0.3), "No rank is last more often than by chance"),
        (
            Pattern("varies", 1, 0.3),
            "Several ranks are last more often than by chance; rank 1 on b is last in 30.0 %",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Pattern) else "",
)
def test_every_pattern_has_its_sentence(pattern: Pattern, words: str) -> None:
    ranks = [
        {"rank": rank, "samples": 9, "between_ns": 0, "outside_ns": 0, "late_path": ""} for rank in range(4)
    ]
    row = {"class": "collective", "operation": "MPI_Bcast"}
    wait = Wait(row, Share(0.5, 0.5, 0.5), 0, 0, pattern, "", ranks, by_stay=False)
    assert pattern_sentences(wait, {0: "a", 1: "b"}).startswith(words)


def test_the_ranks_of_a_row_are_shown(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "late.db"
    late_rank_builder(outside=True).write(path)
    lines = run("waits", str(path), "--ranks", "--comm", "W0.0").stdout.splitlines()
    of_ranks = [line.split() for line in lines if line.split()[:1] in (["0"], ["1"], ["2"], ["3"])]
    assert [line[0] for line in of_ranks] == ["0", "1", "2", "3"]
    assert "100.0 %" in " ".join(of_ranks[2])


def test_communicators_of_a_family_without_samples_have_the_share_of_the_others(
    run: Run, tmp_path: Path
) -> None:
    build = ProfileBuilder(ranks=4, app_ns=10**9)
    first = build.comm("d0.1", [0, 1, 2, 3], parent=1, creator="MPI_Comm_dup", family=2)
    second = build.comm("d0.2", [0, 1, 2, 3], parent=1, creator="MPI_Comm_dup", family=2)
    for rank in range(4):
        build.count(first, "MPI_Barrier", rank, 10, 10 * MS, 0)
        build.count(second, "MPI_Barrier", rank, 10, 30 * MS, 0)
    waits = {rank: RankWaits(10 * MS, 4 * MS) for rank in range(4)}
    add_samples(build, Kind(first, "MPI_Barrier", 0), waits, samples=10)
    build.write(tmp_path / "x.db")
    row = json.loads(run("waits", str(tmp_path / "x.db"), "--format", "json").stdout)["waits"][0]
    assert row["waiting_ns"] == 4 * 40 * MS * 4 // 10


REFERENCE = (0, 0, 0)


@pytest.mark.parametrize(
    ("clocks", "sentences"),
    [
        ([], []),
        (
            [REFERENCE, (2, 3000, 0)],
            [
                "The clock of 1 other machine is related to that of rank 0 on node0 with an error of at most 3.00 µs, by "
                "sampled calls."
            ],
        ),
        (
            [REFERENCE, (1, 3000, 0), (2, 7000, 0), (3, 2 * 10**9, 10**9)],
            [
                "The clocks of 2 other machines are related to that of rank 0 on node0 with an error of at most 7.00 µs, "
                "by sampled calls.",
                "The clock of rank 3 on node1 jumped or changed its rate: calls contradict a constant rate by 1.00 s.",
            ],
        ),
        (
            [REFERENCE, (1, None, None), (2, None, None)],
            [
                "The clock of rank 1 on node0 (and 1 more machine) is not related to that of rank 0 on node0: there is no "
                "sampled barrier, allreduce or alltoall that bounds it."
            ],
        ),
    ],
    ids=["one machine", "two machines", "one jumped", "unknown"],
)
def test_the_clocks_have_their_sentences(
    run: Run, tmp_path: Path, clocks: list[tuple[int, int | None, int | None]], sentences: list[str]
) -> None:
    build = late_rank_builder(outside=True)
    build.nodes = 2
    for rank, error, excess in clocks:
        add_clock(build, rank, error, excess)
    build.write(tmp_path / "x.db")
    printed = " ".join(run("waits", tmp_path / "x.db").stdout.split())
    assert printed.partition("need not wait for each other")[2].strip() == " ".join(sentences)
    found = json.loads(run("waits", tmp_path / "x.db", "--format", "json").stdout)["clocks"]
    assert [(row["rank"], row["error_ns"], row["excess_ns"]) for row in found] == clocks
    with open_profile(str(tmp_path / "x.db")) as connection:
        assert read_waiting(connection, 10**6).facts["notes"] == sentences


def test_the_error_of_the_clocks_is_in_the_interval() -> None:
    """All calls were sampled, so that there is no other error."""
    share = waiting_share(500 * MS, 1000 * MS, [Sampled(100, 100, 1000 * MS, 500 * MS, 100 * MS, 1000 * MS)])
    assert share.low is not None and share.high is not None
    assert share.low <= 0.4 and share.high >= 0.6


def test_profiles_that_cannot_have_samples_are_refused(run: Run) -> None:
    folder = Path(__file__).parents[1] / "profiles"
    done = run("waits", folder / "version10.db")
    assert done.exit_code == 2
    assert "schema version 10: waiting needs version 11 or later" in done.stderr


def test_the_guide_shows_what_is_printed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "late.db"
    late_rank_builder(outside=True).write(path)
    printed = run("waits", path, "--ranks").stdout
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "read.md").read_text(encoding="utf-8")
    assert "".join(f"    {line}\n" if line else "\n" for line in printed.splitlines()) in guide


def test_a_report_has_waiting_and_operation_as_columns(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "late.db"
    late_rank_builder(outside=True).write(path)
    lines = run("report", path, "--waiting").stdout.splitlines()
    (row,) = [line.split() for line in lines if line.split()[:1] == ["MPI_Allreduce"]]
    assert row[-4:] == ["98.7", "%", "10.0", "µs"]
    assert "waiting" not in run("report", path).stdout
    for arguments in ((), ("--by", "op"), ("--by", "comm-size"), ("--unfold",), ("--buckets", "all")):
        found = json.loads(run("report", path, "--waiting", "--format", "json", *arguments).stdout)
        by_name = {row["operation"]: row for row in found["operations"]}
        assert (by_name["MPI_Allreduce"]["waiting_ns"], by_name["MPI_Allreduce"]["operation_ns"]) == (
            300 * MS,
            4 * MS,
        )
        assert by_name["MPI_Bcast"]["waiting_ns"] is None
    done = run("report", path, "--waiting", "--rank", "1")
    assert done.exit_code == 2
    assert "use it without" in done.stderr
