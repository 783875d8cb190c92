# SPDX-License-Identifier: Apache-2.0
"""Cases of profiles whose answers are on paper, choices from planted times, and damaged files of measurements."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from build_waits import Kind, RankWaits, add_samples
from test_tune import MS, OPEN_MPI, call, program

from commlens.base.errors import CommlensError
from commlens.profile import open_profile
from commlens.tune.cases import MOST_COMPUTING, Cases, _largest, read_cases
from commlens.tune.decide import LEAST_CHANGE, compared, decide
from commlens.tune.measurements import (
    PLAN,
    TIMES,
    Measurements,
    Time,
    plan_text,
    read_measurements,
    read_plan_file,
)
from commlens.tune.model import DEFAULT, Candidate, Case, Choice
from commlens.tune.plan import read_plan
from commlens.tune.replay import _said, find_program, replay
from commlens.tune.steps_text import predicted_ns

CASE = Case(1, "W0.0", "allreduce", 4, 11, 1024)


def cases_of(build: ProfileBuilder, tmp_path: Path) -> Cases:
    with open_profile(str(build.write(tmp_path / "p.db"))) as connection:
        return read_cases(connection, read_plan(connection, (), ()))


def test_communicators_of_a_family_are_active_together(tmp_path: Path) -> None:
    build = program()
    low = build.comm("s0.1", [2, 0], parent=1, creator="MPI_Comm_split", family=2)
    high = build.comm("s1.1", [1, 3], parent=1, creator="MPI_Comm_split", family=2)
    for half in (low, high):
        call(build, half, "MPI_Allreduce", 1000, 100, MS)
    for cell in build.cells:
        cell.sent = cell.received = 100 * 1000
    found = cases_of(build, tmp_path)
    assert [(case.family, case.collective, case.comm_size, case.bin) for case in found.cases] == [
        (2, "allreduce", 2, 10)
    ]
    assert found.cases[0].message_bytes == 1000
    assert sorted(found.layouts[0]) == [(1, 3), (2, 0)]
    assert (found.processes, found.notes) == (4, [])


def test_the_replay_computes_between_calls_as_the_application(tmp_path: Path) -> None:
    """Between its 100 calls, a rank of the first communicator computes 4 ms in all; one of the other 4 s, which is cut."""
    build = program()
    for name, ranks, outside in (("s0.1", [0, 1], 4 * MS), ("s2.1", [2, 3], 4000 * MS)):
        comm = build.comm(name, ranks, parent=1, creator="MPI_Comm_split", family=2 + ranks[0])
        call(build, comm, "MPI_Barrier", 0, 100, MS)
        waits = RankWaits(10 * MS, 0, outside_ns=outside)
        add_samples(build, Kind(comm, "MPI_Barrier", 0), dict.fromkeys(ranks, waits), 10, 100)
    found = cases_of(build, tmp_path)
    assert sorted(found.computing_ns) == [40_000, MOST_COMPUTING]
    assert [line.split()[4] for line in plan_text(found, 1).splitlines() if line.startswith("case ")] == [
        str(ns) for ns in found.computing_ns
    ]


def test_before_a_prefix_sum_the_replay_computes_as_between_any_two_calls(tmp_path: Path) -> None:
    """A profile does not tell the time between prefix sums, which it splits like messages."""
    build = program()
    comm = build.comm("s0.1", [0, 1], parent=1, creator="MPI_Comm_split", family=2)
    call(build, comm, "MPI_Exscan", 8, 100, MS)
    waits = RankWaits(10 * MS, 0, outside_ns=0)
    add_samples(build, Kind(comm, "MPI_Exscan", 8), dict.fromkeys([0, 1], waits), 10, 100)
    (found,) = cases_of(build, tmp_path).computing_ns
    assert 0 < found <= MOST_COMPUTING


def test_communicators_one_after_the_other_are_not_active_together(tmp_path: Path) -> None:
    build = program()
    for number, ranks in enumerate(([0, 1], [2, 3], [0, 1])):
        comm = build.comm(f"s0.{number + 1}", ranks, parent=1, creator="MPI_Comm_split", family=2)
        build.comms[comm].created_ns = (number + 1) * 100
        build.comms[comm].freed_ns = (number + 2) * 100
        call(build, comm, "MPI_Bcast", 8, 100, MS)
    assert cases_of(build, tmp_path).layouts == [((0, 1),)]


def test_sizes_of_a_family_are_cases_of_their_own(tmp_path: Path) -> None:
    build = program(ranks=5)
    for ranks in ([0, 1], [2, 3, 4]):
        comm = build.comm(f"s{ranks[0]}.1", ranks, parent=1, creator="MPI_Comm_split", family=2)
        call(build, comm, "MPI_Barrier", 0, 100, MS)
    found = cases_of(build, tmp_path)
    assert [(case.comm_size, layout) for case, layout in zip(found.cases, found.layouts)] == [
        (2, ((0, 1),)),
        (3, ((2, 3, 4),)),
    ]


def test_the_plan_is_read_as_written(tmp_path: Path) -> None:
    hostile = Case(7, "s*.1\n candidate x %41", "bcast", 2, 15, 20000)
    cases = Cases([CASE, hostile], [((0, 1, 2, 3),), ((0, 1), (2, 3))], [None, None], 4, OPEN_MPI)
    (tmp_path / PLAN).write_text(plan_text(cases, 1), encoding="utf-8")
    found, candidates = read_plan_file(tmp_path / PLAN)
    assert found == [CASE, hostile]
    assert candidates[0][0] == DEFAULT
    assert Candidate(3, "pipeline", 8192) in candidates[1]
    assert Candidate(3, "pipeline", 65536) not in candidates[1]


def chosen(measured: Measurements) -> list[Choice]:
    return decide(measured, compared(measured))


def times(
    factors: dict[int, float], rounds: int, seed: int, noise: float = 0.05, cases: int = 1
) -> Measurements:
    """Return measurements in which the machine becomes slower, and candidate k takes this factor of the default's time."""
    draw = random.Random(seed)
    found = []
    for round in range(1, rounds + 1):
        for case in range(cases):
            for k in range(max(factors) + 1):
                for repetition in range(3):
                    ns = 100_000 * (1 + round / rounds) * factors.get(k, 1.0) * draw.gauss(1, noise)
                    found.append(Time(round, case, k, repetition, 0, round_ns(ns)))
    tried = [DEFAULT, *(Candidate(k, f"a{k}") for k in range(1, max(factors) + 1))]
    return Measurements([CASE] * cases, [tried] * cases, found)


def round_ns(ns: float) -> int:
    return max(1, int(ns))


def test_a_fast_candidate_is_found_with_its_gain() -> None:
    (choice,) = chosen(times({1: 1.2, 2: 0.8, 3: 0.95}, 20, 1))
    assert choice.candidate.name == "a2"
    assert choice.low < -0.2 < choice.high < 0
    assert choice.rounds == 20
    assert choice.candidate_ns < choice.default_ns


def test_a_gain_that_a_run_does_not_show_is_left() -> None:
    assert chosen(times({1: 1 - LEAST_CHANGE / 2}, 40, 1, noise=0.002)) == []


def test_too_few_rounds_decide_nothing() -> None:
    assert chosen(times({1: 0.5}, 5, 1)) == []


def test_first_calls_do_not_count() -> None:
    measured = times({1: 0.5}, 12, 1)
    first = [Time(0, 0, k, 0, 0, 10**9 + k) for k in (0, 1)]
    assert chosen(Measurements(measured.cases, measured.candidates, first + measured.times)) == chosen(
        measured
    )


def test_late_repetitions_count_only_if_all_are_late() -> None:
    measured = times({1: 0.5}, 12, 1)
    late = [time._replace(is_late=1, time_ns=10**9) if time.repetition else time for time in measured.times]
    (choice,) = chosen(Measurements(measured.cases, measured.candidates, late))
    assert choice.candidate_ns < 10**6
    all_late = [time._replace(is_late=1) for time in measured.times]
    assert chosen(Measurements(measured.cases, measured.candidates, all_late)) == chosen(measured)


def test_noise_gives_no_choice_in_at_least_95_percent() -> None:
    """Ten candidates of equal speed in each of 100 replays; some changes are larger than LEAST_CHANGE by luck."""
    wrong = sum(bool(chosen(times({10: 1.0}, 10, seed, noise=0.2))) for seed in range(100))
    assert wrong <= 5


@pytest.mark.parametrize(
    "line",
    ["1,0,0", "1,9,0,0,0,5,4,x,y", "1,0,999,0,0,5,4,x,y", "-1,0,0,0,0,5,4,x,y", "1,0,0,0,0,1e9,4,x,y", "\0,,,", '1,0,0,0,0,"', "1,0,0,0,0," + "9" * 50 + ",4,a,b", "1,0,1,0,0,77,allreduce,x"],
)  # fmt: skip
def test_damaged_lines_do_not_count(tmp_path: Path, line: str) -> None:
    (tmp_path / PLAN).write_text(
        plan_text(Cases([CASE], [((0, 1, 2, 3),)], [None], 4, OPEN_MPI), 1), encoding="utf-8"
    )
    (tmp_path / TIMES).write_text(f"1,0,1,0,0,77,66,allreduce,x\n{line}\n", encoding="utf-8")
    assert read_measurements(tmp_path).times == [Time(1, 0, 1, 0, 0, 77, 66)]


@pytest.mark.parametrize(
    "text", ["", "other\n", "commlens-replay-2\ncase 1\n", "commlens-replay-2\ncandidate 1:0:a 0\n"]
)
def test_a_damaged_plan_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / PLAN).write_text(text, encoding="utf-8")
    with pytest.raises(CommlensError, match=r"damaged; remove it"):
        read_measurements(tmp_path)


def test_errors_name_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = Cases([CASE], [((0, 1, 2, 3),)], [None], 4, OPEN_MPI)
    with pytest.raises(CommlensError, match="does not know how to choose algorithms of MPI of tomorrow"):
        replay(Cases(library="MPI of tomorrow 1.0"), [], tmp_path)
    monkeypatch.setenv("MPICC", "/no/mpicc")
    with pytest.raises(CommlensError, match=r"/no/mpicc: no such compiler\. Set MPICC"):
        find_program(tmp_path)
    monkeypatch.setenv("MPICC", "false")
    with pytest.raises(CommlensError, match=r"'false -O2 .* ended with 1"):
        replay(cases, [], tmp_path)
    (tmp_path / PLAN).write_text("another", encoding="utf-8")
    with pytest.raises(CommlensError, match="has measurements of another plan"):
        replay(cases, [], tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(CommlensError, match="cannot be written"):
        replay(cases, [], tmp_path / "file" / "folder")


def test_other_files_in_the_way_are_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = Cases([CASE], [((0, 1, 2, 3),)], [None], 4, OPEN_MPI)
    monkeypatch.setenv("MPICC", "mpicc 'a")
    with pytest.raises(CommlensError, match=r"^MPICC: no closing quotation: mpicc 'a$"):
        find_program(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / PLAN).write_bytes(b"\xff\xfe")
    with pytest.raises(CommlensError, match="has measurements of another plan"):
        replay(cases, [], tmp_path / "a")
    monkeypatch.setenv("MPICC", "true")
    for name in ("replay.log", "replay.err"):
        (tmp_path / name / name).mkdir(parents=True)
        with pytest.raises(CommlensError, match=rf"{name}: cannot be written: Is a directory$"):
            replay(cases, ["true"], tmp_path / name, announce=False)


def test_the_prediction_is_a_share_of_the_operation_time(tmp_path: Path) -> None:
    """100 ms of four ranks without samples, so that all may be operation; the replay was on a slower machine."""
    build = program()
    call(build, 1, "MPI_Allreduce", 1000, 100, 100 * MS)
    with open_profile(str(build.write(tmp_path / "p.db"))) as connection:
        plan = read_plan(connection, (), ())
        (case,) = read_cases(connection, plan).cases
    choice = Choice(case, Candidate(3, "ring"), 9e9, 6e9, -0.25, -0.3, -0.2, 20)
    assert predicted_ns(plan, [choice], [case]) == plan.places[0].time_ns / 4
    assert predicted_ns(plan, [], [case]) == 0
    # The place has communicators of two sizes, and only one of them has a choice.
    assert predicted_ns(plan, [choice], [case, replace(case, comm_size=2)]) == plan.places[0].time_ns / 8


@pytest.mark.parametrize("before", ["", "0: ", "[3] ", "[1,0]<stdout>:", "[node:12,0]<stdout>: "])
def test_what_the_job_says_is_found_behind_the_rank_that_launchers_add(tmp_path: Path, before: str) -> None:
    log = tmp_path / "replay.log"
    log.write_text(
        f"{before}library MPICH Version: 4.0\nno module here\n{before}module /lib/libmpi.so\n{before}ready\n"
    )
    assert [_said(log, name) for name in ("library", "module", "ready", "refused")] == [
        ["MPICH Version: 4.0"], ["/lib/libmpi.so"], [""], []
    ]  # fmt: skip
    assert _said(tmp_path / "none", "ready") == []


def test_the_root_of_a_gather_has_the_bytes_of_all() -> None:
    blocks = (((3, 0), (4, 0), (5, 12)), ((13, 0), (2, 15)))
    assert [_largest(name, blocks) for name in ("gatherv", "scatterv", "alltoallv")] == [15, 15, 15]
