# SPDX-License-Identifier: Apache-2.0
"""What commlens finds by itself: each rule on a profile with its fault, just below its threshold, and on healthy ones."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import MS, Run

from commlens.findings.find import Finding, by_place, read_findings
from commlens.profile import open_profile
from commlens.profile.cells import PARTS

SECOND = 1000 * MS


def findings(build: ProfileBuilder, path: Path) -> list[Finding]:
    """Return the findings of the profile."""
    with open_profile(str(build.write(path / f"{random.getrandbits(64)}.db"))) as connection:
        return read_findings(connection)


def rules_of(build: ProfileBuilder, path: Path) -> list[str]:
    """Return the names of the rules that apply to the profile."""
    return [finding.rule.name for finding in findings(build, path)]


def texts_of(build: ProfileBuilder, path: Path) -> list[str]:
    """Return the sentences of the findings."""
    return [finding.text for finding in findings(build, path)]


def program(ranks: int = 4, seconds: int = 10) -> ProfileBuilder:
    """Return a program with one call site in a file that is not here."""
    build = ProfileBuilder(ranks=ranks, app_ns=seconds * SECOND)
    build.sites[1] = ("/opt/app/solver", "", 0x1234)
    return build


def waiting(*seconds: float, op: str = "MPI_Allreduce") -> ProfileBuilder:
    """Return a program of 10 s in which each rank spends so long in one call in MPI_COMM_WORLD."""
    build = program(len(seconds))
    for rank, time in enumerate(seconds):
        build.count(1, op, rank, 100, round(time * SECOND), size=0, callsite=1)
    return build


def test_a_rank_that_is_late_is_named_with_the_call_in_which_the_others_wait(tmp_path: Path) -> None:
    assert texts_of(waiting(4, 4, 0, 4), tmp_path) == [
        "rank 2 spends 10.0 s outside MPI, the others only 6.00 s on average; the others wait for rank 2 in MPI_Allreduce at solver+0x1234"
    ]


def test_two_late_ranks_are_both_named(tmp_path: Path) -> None:
    assert texts_of(waiting(0, 4, 4, 4, 1, 4), tmp_path) == [
        "ranks 0, 4 spend 9.50 s outside MPI, the others only 6.00 s on average; the others wait for them in MPI_Allreduce at solver+0x1234"
    ]


def test_with_two_ranks_the_other_one_waits(tmp_path: Path) -> None:
    assert texts_of(waiting(4, 0), tmp_path) == [
        "rank 1 spends 10.0 s outside MPI, rank 0 only 6.00 s; rank 0 waits for rank 1 in MPI_Allreduce at solver+0x1234"
    ]


def test_many_late_ranks_are_counted(tmp_path: Path) -> None:
    (text,) = texts_of(waiting(*[0] * 5, *[4] * 15), tmp_path)
    assert text.startswith(
        "5 ranks, such as rank 0, spend 10.0 s outside MPI, the others only 6.00 s on average; the others wait for them"
    )


def test_the_call_in_which_the_others_wait_longest_is_named(tmp_path: Path) -> None:
    build = waiting(1, 1, 0, 1)
    some = build.comm("s0.1", [0, 1, 2], parent=1, creator="MPI_Comm_split")
    for rank in (0, 1, 2):
        build.count(some, "MPI_Barrier", rank, 9, 0 if rank == 2 else 5 * SECOND)
    build.count(1, "MPI_Bcast", 3, 9, 5 * SECOND)
    assert texts_of(build, tmp_path) == [
        "rank 2 spends 10.0 s outside MPI, the others only 4.00 s on average; the others wait for rank 2 in MPI_Barrier of s0.1"
    ]


def test_ranks_that_never_meet_do_not_wait_for_each_other(tmp_path: Path) -> None:
    build = program()
    for first, seconds in ((0, 4), (2, 0)):
        half = build.comm(f"s{first}.1", [first, first + 1], parent=1, creator="MPI_Comm_split", family=2)
        for rank in (first, first + 1):
            build.count(half, "MPI_Isend", rank, 100, seconds * SECOND, size=4096)
            build.count(1, "MPI_Comm_rank", rank, 1, 100)
    assert texts_of(build, tmp_path) == [
        "ranks 2, 3 spend 10.0 s outside MPI, the others only 6.00 s on average"
    ]


def test_the_evidence_of_a_late_rank_is_what_arithmetic_gives(tmp_path: Path) -> None:
    (finding,) = findings(waiting(4, 4, 0, 4), tmp_path)
    # 10 s outside MPI on the late rank, 7 s on average: at most 3 s of 10 can be had.
    assert finding.share == pytest.approx(0.3)
    assert finding.evidence() == [
        ("late ranks", "1"),
        ("their time outside MPI, on average", "10.0 s"),
        ("time outside MPI of the others, on average", "6.00 s"),
        ("time that the others spend longer in this call", "4.00 s"),
        ("part of the run that it costs at most", "30.0 %"),
    ]


@pytest.mark.parametrize(("idle", "found"), [(1.33, []), (1.34, ["late_ranks"])])
def test_a_rank_is_late_from_a_tenth_of_the_run_on(idle: float, found: list[str], tmp_path: Path) -> None:
    # The others are idle for `idle` s: the average is 0.75 * idle below the maximum.
    assert rules_of(waiting(idle, idle, idle, 0, op="MPI_Bcast"), tmp_path) == found


@pytest.mark.parametrize("idle_ranks", [1, 2, 3, 4, 5])
def test_one_idle_rank_of_six_is_no_finding_and_half_late_is(idle_ranks: int, tmp_path: Path) -> None:
    build = waiting(*[8] * idle_ranks, *[0] * (6 - idle_ranks), op="MPI_Bcast")
    assert rules_of(build, tmp_path) == (["late_ranks"] if idle_ranks >= 3 else [])


def chain(ranks: int, work_s: float, step_s: float, seconds: int = 10) -> ProfileBuilder:
    """Return a chain of ranks: each receives `step_s` later than the one before, works, and waits for the end."""
    build = program(ranks, seconds)
    for rank in range(ranks):
        received = round(rank * step_s * SECOND)
        if rank:
            build.count(1, "MPI_Recv", rank, 10, received, size=8, received=80, callsite=1)
        build.count(1, "MPI_Bcast", rank, 10, build.app_ns - round(work_s * SECOND) - received)
    return build


def test_a_chain_of_ranks_is_named_with_its_step(tmp_path: Path) -> None:
    assert texts_of(chain(5, 2, 2), tmp_path) == [
        "ranks 0 to 4 work one after another: time in MPI_Recv changes by 2.00 s from rank to rank at solver+0x1234; on "
        "average 1.0 of 5 ranks work at a time"
    ]


def test_a_chain_from_the_last_rank_to_the_first_is_named_in_its_order(tmp_path: Path) -> None:
    build = program(4, 8)
    for rank in range(4):
        if rank < 3:
            build.count(1, "MPI_Recv", rank, 10, (3 - rank) * 2 * SECOND, callsite=1)
        build.count(1, "MPI_Bcast", rank, 10, rank * 2 * SECOND)
    assert texts_of(build, tmp_path)[0].startswith(
        "ranks 3 to 0 work one after another: time in MPI_Recv changes by 2.00 s"
    )


@pytest.mark.parametrize(
    ("step", "seconds", "found"),
    [
        (0.95, 6, []),
        (1.05, 6, ["serialised_ranks"]),
        (2.95, 12, ["serialised_ranks"]),
        (3.05, 12, []),
    ],
)
def test_a_step_that_is_not_the_work_of_a_rank_is_no_chain(
    step: float, seconds: int, found: list[str], tmp_path: Path
) -> None:
    assert rules_of(chain(4, 2, step, seconds), tmp_path) == found


@pytest.mark.parametrize(("seconds", "found"), [(13, ["serialised_ranks"]), (15, [])])
def test_a_chain_explains_half_of_the_time_in_mpi(seconds: int, found: list[str], tmp_path: Path) -> None:
    assert rules_of(chain(4, 2, 2, seconds), tmp_path) == found  # three steps of 2 s; 11 s or 13 s in MPI


def test_a_pipeline_that_is_full_is_no_chain(tmp_path: Path) -> None:
    assert rules_of(chain(8, 8, 0.2), tmp_path) == []


def uneven(last_s: float, others_s: float) -> ProfileBuilder:
    """Return a program in which rank 1 comes last in s1.1, and waits as long as the others somewhere else."""
    build = program()
    some = build.comm("s1.1", [1, 2, 3], parent=1, creator="MPI_Comm_split")
    for rank in (1, 2, 3):
        time = last_s if rank == 1 else others_s
        build.count(some, "MPI_Barrier", rank, 10, round(time * SECOND))
        build.count(1, "MPI_Bcast", rank, 10, round((others_s - time) * SECOND))
    build.count(1, "MPI_Bcast", 0, 10, round(others_s * SECOND))
    return build


def test_a_member_that_always_comes_last_in_one_communicator_is_named(tmp_path: Path) -> None:
    assert texts_of(uneven(0.5, 4), tmp_path) == [
        "rank 1 arrives last in MPI_Barrier on s1.1: the other members spend 4.00 s in it on average, rank 1 only 500 ms"
    ]


def test_a_member_that_came_last_a_few_times_is_no_finding(tmp_path: Path) -> None:
    build = uneven(0.5, 4)
    for cell in build.cells:
        cell.calls = 9
    assert texts_of(build, tmp_path) == []


@pytest.mark.parametrize(("others", "found"), [(1.49, []), (1.51, ["uneven_communicator"])])
def test_a_member_comes_last_from_a_tenth_of_the_run_on(
    others: float, found: list[str], tmp_path: Path
) -> None:
    # The average of the three is 2/3 of `others`.
    assert rules_of(uneven(0, others), tmp_path) == found


def met(*seconds: float) -> ProfileBuilder:
    """Return a program whose ranks spend so long in barriers, and the rest of 8 s in another call."""
    build = program(len(seconds))
    for rank, time in enumerate(seconds):
        build.count(1, "MPI_Barrier", rank, 10, round(time * SECOND))
        build.count(1, "MPI_Scan", rank, 10, round((8 - time) * SECOND))
    return build


@pytest.mark.parametrize(
    ("seconds", "found"),
    [
        ((5, 1, 1, 1), []),  # rank 0 waits for the others, which come together
        ((1, 5, 1, 5), []),  # two are late
        ((0, 7, 1.1, 7), []),  # if rank 0 came as early as rank 2, the others would wait nearly as long
        ((0, 5, 2.6, 5), ["uneven_communicator"]),
        ((0, 2.1), ["uneven_communicator"]),
    ],
)
def test_one_member_comes_last_if_it_is_apart_from_the_second_last(
    seconds: tuple[float, ...], found: list[str], tmp_path: Path
) -> None:
    assert [rule for rule in rules_of(met(*seconds), tmp_path) if rule == "uneven_communicator"] == found


def test_what_one_late_member_costs_is_its_distance_to_the_second_last(tmp_path: Path) -> None:
    (finding,) = [
        one for one in findings(met(0, 5, 2.6, 5), tmp_path) if one.rule.name == "uneven_communicator"
    ]
    assert finding.share == pytest.approx(2.6 * 3 / (4 * 10))
    assert finding.evidence()[:4] == [
        ("members of the communicator", "4"),
        ("time in the call of the member that arrives last", "0 ns"),
        ("the second least", "2.60 s"),
        ("time in the call of the others, on average", "4.20 s"),
    ]


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (
            (0, 4, 0, 0),
            "rank 1 arrives last in MPI_Barrier on MPI_COMM_WORLD at solver+0x1234: the other members spend 4.00 s",
        ),
        (
            (4, 0, 4, 4),
            "rank 1 arrives last in MPI_Barrier on MPI_COMM_WORLD: the other members spend 8.00 s",
        ),
    ],
)
def test_a_member_that_comes_last_at_one_call_site_is_named_with_it(
    second: tuple[float, ...], found: str, tmp_path: Path
) -> None:
    build = program()
    build.sites[2] = ("/opt/app/solver", "", 0x5678)
    for rank in range(4):
        build.count(1, "MPI_Barrier", rank, 10, 0 if rank == 1 else 4 * SECOND, callsite=1)
        build.count(1, "MPI_Barrier", rank, 10, round(second[rank] * SECOND), callsite=2)
    build.count(1, "MPI_Scan", 1, 1, round((second[0] + 4 - second[1]) * SECOND))  # nobody works longer
    (text,) = texts_of(build, tmp_path)
    assert text.startswith(found)


def tiny(calls: int, each_ns: int, size: int = 8, op: str = "MPI_Alltoall") -> ProfileBuilder:
    """Return a program in which each of two pairs makes so many calls of this size."""
    build = program()
    for first in (0, 2):
        pair = build.comm(f"s{first}.1", [first, first + 1], parent=1, creator="MPI_Comm_split", family=2)
        for rank in (first, first + 1):
            build.count(pair, op, rank, calls, calls * each_ns, size=size, sent=2 * size * calls, callsite=1)
    return build


def test_tiny_messages_in_great_number_are_named(tmp_path: Path) -> None:
    assert texts_of(tiny(100_000, 42_000), tmp_path) == [
        "400,000 calls of MPI_Alltoall with 8-15 B on s*.1 at solver+0x1234, 42.0 µs each, take 42.0 % of the time"
    ]


@pytest.mark.parametrize(
    ("calls", "each_ns", "size", "op"),
    [
        (9_999, 500_000, 8, "MPI_Alltoall"),  # too few
        (100_000, 9_900, 8, "MPI_Alltoall"),  # below a tenth of the run
        (100_000, 42_000, 128, "MPI_Alltoall"),  # not tiny
        (100_000, 42_000, 0, "MPI_Barrier"),  # no message
        (10_000, 1_000_100, 8, "MPI_Allreduce"),  # too long for a tiny message
        (20_000, 100_100, 8, "MPI_Recv"),  # waits for the sender
    ],
)
def test_messages_that_are_few_short_large_or_slow_are_no_finding(
    calls: int, each_ns: int, size: int, op: str, tmp_path: Path
) -> None:
    assert rules_of(tiny(calls, each_ns, size, op), tmp_path) == []


def test_waiting_in_tiny_collectives_does_not_make_them_dear(tmp_path: Path) -> None:
    build = program()
    for rank in range(4):
        build.count(
            1, "MPI_Allreduce", rank, 20_000, (4 * SECOND if rank != 2 else 20 * MS), size=8, callsite=1
        )
    assert rules_of(build, tmp_path) == ["late_ranks"]


@pytest.mark.parametrize(
    ("calls", "seconds", "found"),
    [(1000, 0.01, True), (999, 0.01, False), (100, 0.21, True), (100, 0.19, False), (99, 5, False)],
)
def test_communicators_made_in_a_loop(calls: int, seconds: float, found: bool, tmp_path: Path) -> None:
    build = program()
    for rank in range(4):
        build.count(1, "MPI_Comm_dup", rank, calls, round(seconds * SECOND), callsite=1)
    assert rules_of(build, tmp_path) == (["communicators_in_a_loop"] if found else [])


@pytest.mark.parametrize(
    ("calls", "who", "share"),
    [
        ((5000, 5000, 5000, 5000), "all ranks call MPI_Comm_dup 5,000 times each", "10.0 %"),
        ((5000, 5000, 5000, 4000), "all ranks call MPI_Comm_dup up to 5,000 times each", "10.0 %"),
        ((5000, 5000), "2 ranks call MPI_Comm_dup 5,000 times each", "5.0 %"),
        ((0, 0, 5000), "rank 2 calls MPI_Comm_dup 5,000 times", "2.5 %"),
    ],
)
def test_communicators_made_in_a_loop_are_named_with_their_cost(
    calls: tuple[int, ...], who: str, share: str, tmp_path: Path
) -> None:
    build = program()
    for rank, count in enumerate(calls):
        if count:
            build.count(1, "MPI_Comm_dup", rank, count, SECOND, callsite=1)
    (finding,) = findings(build, tmp_path)
    assert finding.text == f"{who} at solver+0x1234, which takes {share} of the time"
    assert finding.values["time_ns"] == SECOND


@pytest.mark.parametrize(
    ("calls", "seconds", "found"), [(10_000, 1, True), (9_999, 9, False), (900_000, 0.9, False)]
)
def test_a_rank_that_polls(calls: int, seconds: float, found: bool, tmp_path: Path) -> None:
    build = program()
    build.count(1, "MPI_Iprobe", 3, calls, round(seconds * SECOND), callsite=1)
    text = "rank 3 calls MPI_Iprobe 10,000 times at solver+0x1234, which takes 10.0 % of its time"
    assert texts_of(build, tmp_path) == ([text] if found else [])


def test_polling_whose_estimated_time_is_beyond_the_run_takes_all_of_it(tmp_path: Path) -> None:
    build = program()
    build.count(1, "MPI_Iprobe", 3, 10_000, 12 * SECOND, callsite=1)
    text = "rank 3 calls MPI_Iprobe 10,000 times at solver+0x1234, which takes 100.0 % of its time"
    assert text in texts_of(build, tmp_path)


@pytest.mark.parametrize("seed", range(30))
def test_a_healthy_program_has_no_finding(seed: int, tmp_path: Path) -> None:
    """Balanced within 10 %, messages of all sizes in moderate numbers, some communicators."""
    chance = random.Random(seed)
    ranks = chance.randint(1, 12)
    build = program(ranks)
    halves = [build.comm(f"s{r}.1", [r], parent=1, creator="MPI_Comm_split", family=2) for r in range(ranks)]
    for rank in range(ranks):
        scale = chance.uniform(0.95, 1.05)
        for op, size in (
            ("MPI_Allreduce", 8),
            ("MPI_Waitall", 0),
            ("MPI_Recv", 4096),
            ("MPI_Bcast", 100_000),
        ):
            build.count(
                1, op, rank, chance.randint(100, 9_999), round(0.5 * scale * SECOND), size=size, callsite=1
            )
        build.count(1, "MPI_Comm_dup", rank, chance.randint(1, 99), round(0.1 * scale * SECOND), callsite=1)
        build.count(1, "MPI_Iprobe", rank, chance.randint(1, 10**6), round(0.9 * scale * SECOND))
        build.count(halves[rank], "MPI_Barrier", rank, 10, round(scale * SECOND))
    assert texts_of(build, tmp_path) == []


@pytest.mark.parametrize("seed", range(20))
def test_late_ranks_are_those_of_a_model(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    ranks = chance.randint(2, 10)
    idle = [chance.choice([0, 0.1, 2, 3, 5]) + chance.random() for _ in range(ranks)]
    outside = [10 - time for time in idle]
    middle, average = (max(outside) + min(outside)) / 2, sum(outside) / ranks
    late = [rank for rank in range(ranks) if outside[rank] > middle]
    is_found = max(outside) - average >= 1 and 2 * len(late) <= ranks
    found = [f for f in findings(waiting(*idle, op="MPI_Bcast"), tmp_path) if f.rule.name == "late_ranks"]
    assert [f.values["late"] for f in found] == ([len(late)] if is_found else [])
    assert [f.share for f in found] == ([pytest.approx((max(outside) - average) / 10)] if is_found else [])


def changed(path: Path, *statements: str) -> Path:
    """Return a profile with a late rank after some statements."""
    profile = waiting(4, 4, 0, 4).write(path / "late.db")
    with closing(sqlite3.connect(profile)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return profile


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rank SET threads = 2 WHERE rank = 1",
        "UPDATE rank SET state = 'SIGKILL' WHERE rank = 1",
        "UPDATE rank SET app_ns = app_ns / 11, mpi_ns = mpi_ns / 11",
    ],
)
def test_threads_killed_ranks_and_short_runs_have_no_late_rank(
    statement: str, run: Run, tmp_path: Path
) -> None:
    assert len(json.loads(run("explain", "--format", "json", changed(tmp_path, "SELECT 1")).stdout)) == 1
    (tmp_path / "late.db").unlink()
    assert json.loads(run("explain", "--format", "json", changed(tmp_path, statement)).stdout) == []


def test_the_report_begins_with_the_findings(run: Run, tmp_path: Path) -> None:
    lines = run("report", waiting(4, 4, 0, 4).write(tmp_path / "late.db")).stdout.splitlines()
    assert lines[:4] == [
        "finding       rank 2 spends 10.0 s outside MPI, the others only 6.00 s on average; the others wait for rank 2 in MPI_Allreduce at solver+0x1234",
        "              'commlens explain' shows the evidence, and what to try",
        "",
        "where         4 ranks on 1 node: node0",
    ]


def test_a_report_without_findings_begins_with_the_run(run: Run, small: Path) -> None:
    assert run("report", small).stdout.startswith("command       ./listing1")


def test_explain_shows_evidence_advice_and_rule(run: Run, tmp_path: Path) -> None:
    assert run("explain", waiting(4, 4, 0, 4).write(tmp_path / "late.db")).stdout == (
        "1. rank 2 spends 10.0 s outside MPI, the others only 6.00 s on average; the others wait for rank 2 in MPI_Allreduce at solver+0x1234\n"
        "   late ranks                                          1\n"
        "   their time outside MPI, on average                  10.0 s\n"
        "   time outside MPI of the others, on average          6.00 s\n"
        "   time that the others spend longer in this call      4.00 s\n"
        "   part of the run that it costs at most               30.0 %\n"
        "   try   Give these ranks less work, or split their work; look at what they do between their MPI calls.\n"
        "   rule  late_ranks: Some ranks work longer than the others\n"
    )


def test_explain_shows_the_first_findings_and_counts_the_others(run: Run, tmp_path: Path) -> None:
    build = waiting(4, 4, 0, 4)
    build.count(1, "MPI_Iprobe", 3, 10_000, SECOND, callsite=1)
    path = build.write(tmp_path / "two.db")
    first, rest = run("explain", path).stdout.split("\n\n")
    assert rest.startswith("2. ")
    assert run("explain", path, "--top", 1).stdout == f"{first}\n\nand 1 more finding\n"
    assert len(json.loads(run("explain", path, "--top", 1, "--format", "json").stdout)) == 2


def test_explain_says_when_there_is_nothing_to_say(run: Run, small: Path) -> None:
    assert run("explain", small).stdout == (
        "no finding: none of 16 rules applies to this run\n"
        "what each rule looks for, and what it misses: docs/reference/findings.md\n"
    )


@pytest.mark.parametrize(
    ("ranks", "app_ns", "why"),
    [
        (1, 10 * SECOND, "no rule applies to a run of one rank\n"),
        (2, 401 * MS, "no rule applies to runs shorter than 1.00 s; this one took 401 ms\n"),
    ],
)
def test_explain_says_why_no_rule_can_apply(
    ranks: int, app_ns: int, why: str, run: Run, tmp_path: Path
) -> None:
    build = ProfileBuilder(ranks=ranks, app_ns=app_ns)
    assert run("explain", build.write(tmp_path / "x.db")).stdout == why


def test_explain_as_csv_has_a_row_per_finding(run: Run, tmp_path: Path) -> None:
    path = waiting(4, 4, 0, 4).write(tmp_path / "late.db")
    assert (
        run("explain", "--format", "csv", path)
        .stdout.splitlines()[1]
        .startswith('late_ranks,0.3,"rank 2 spends 10.0 s')
    )


def test_two_findings_are_numbered(run: Run, tmp_path: Path) -> None:
    build = waiting(4, 4, 0, 4)
    for rank in range(4):
        build.count(1, "MPI_Comm_dup", rank, 1000, 1000)
    lines = run("report", build.write(tmp_path / "two.db")).stdout.splitlines()
    assert [line[:13] for line in lines[:3]] == ["finding 1    ", "finding 2    ", " " * 13]


def test_explain_as_json_has_values_and_thresholds(run: Run, tmp_path: Path) -> None:
    path = waiting(4, 4, 0, 4).write(tmp_path / "late.db")
    (finding,) = json.loads(run("explain", "--format", "json", path).stdout)
    assert finding["rule"] == "late_ranks"
    assert finding["thresholds"] == {"shortest_run_ns": 10**9, "least_share": 0.1, "least_part": 0.5}
    assert finding["evidence"]["late_ns"] == 10 * SECOND
    assert json.loads(run("report", "--format", "json", path).stdout)["findings"] == [finding]


def test_the_queries_that_explain_prints_give_its_findings(run: Run, tmp_path: Path) -> None:
    path = waiting(4, 4, 0, 4).write(tmp_path / "late.db")
    queries = run("explain", "--sql", path).stdout.split(";\n")
    with closing(sqlite3.connect(path)) as connection:
        rows = [connection.execute(query).fetchall() for query in queries if query.strip()]
    assert [len(found) for found in rows] == [1, *[0] * 15]


APPLICATIONS = Path(__file__).resolve().parents[1] / "profiles" / "applications"


@pytest.mark.parametrize("name", ["abinit", "cp2k", "lammps", "meep", "quantum-espresso"])
def test_a_healthy_run_of_a_real_application_has_no_finding(run: Run, name: str) -> None:
    """Recorded by tests/profiles/applications.sh; each is long enough for the rules to apply."""
    path = APPLICATIONS / f"{name}.db"
    result = run("explain", path, "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, []), result.stderr
    assert run("explain", path).stdout.startswith("no finding: none of ")


def test_keys_by_place_have_what_views_read_from_the_table(tmp_path: Path) -> None:
    """SQLite before 3.35 lets the table expression of a query replace table key inside view cell, too."""
    path = ProfileBuilder(1).write(tmp_path / "x.db")
    with open_profile(str(path)) as connection:
        found = connection.execute(by_place(connection, "WITH other AS (SELECT 1) SELECT * FROM key"))
        assert set(PARTS.values()) <= {column[0] for column in found.description}
