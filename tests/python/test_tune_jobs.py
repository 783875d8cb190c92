# SPDX-License-Identifier: Apache-2.0
"""A job for each algorithm: its rounds, its variables, and what ends them. The jobs are played by the test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from commlens.base.errors import CommlensError
from commlens.tune.candidates import candidates_of
from commlens.tune.decide import compared, decide
from commlens.tune.jobs import Jobs, interval, still_open
from commlens.tune.measurements import Measurements, Time
from commlens.tune.model import Case

INTEL = "Intel(R) MPI Library 2021.18.1 for Linux* OS"
SCAN = Case(1, "W0.0", "scan", 4, 11, 1024)
GATHER = Case(1, "W0.0", "gather", 4, 11, 1024)
LONG = 3600.0


class Played:
    """Jobs whose times are known: a time for each collective and candidate."""

    def __init__(self, cases: Sequence[Case], time_of: Callable[[str, int], int]) -> None:
        self.measured = Measurements(list(cases), [candidates_of(INTEL, case) for case in cases], [])
        self.time_of = time_of
        self.jobs: list[tuple[dict[str, str], int, int, list[int]]] = []

    def start(self, variables: Mapping[str, str], words: Sequence[str]) -> None:
        number, k, cases = int(words[0]), int(words[1]), list(map(int, words[2].split(",")))
        self.jobs.append((dict(variables), number, k, cases))
        for case in cases:
            found = self.time_of(self.measured.cases[case].collective, k)
            if not found:
                raise CommlensError("it crashed")
            # 1 % of noise that is the same for no two rounds.
            self.measured.times.append(
                Time(number, case, k, 0, 0, found + (number * 7 + k) % 5 * found // 500)
            )

    def run(self, seconds: float = LONG) -> Jobs:
        jobs = Jobs(INTEL, self.start, lambda: self.measured)
        list(jobs.run(seconds))
        return jobs


def test_the_fastest_algorithm_is_found_and_slow_ones_are_left_early() -> None:
    """Of three, one takes half the time, one is as fast as the default, and one takes three times as long."""
    played = Played([SCAN], lambda _, k: (1000, 1000, 500, 3000)[k])
    jobs = played.run()
    (choice,) = decide(played.measured, compared(played.measured))
    assert (choice.case, choice.candidate.number) == (SCAN, 2)
    assert choice.change == pytest.approx(-0.5, abs=0.02)
    assert sum(k == 3 for _, _, k, _ in played.jobs) == 3
    assert jobs.notes(played.measured) == []
    assert still_open(played.measured, {}) == {}


def test_of_only_slow_algorithms_one_is_measured_until_a_claim_is_possible() -> None:
    """All three take three times as long: two are left after 3 rounds, the last one after 8."""
    played = Played([SCAN], lambda _, k: 1000 if k == 0 else 3000)
    jobs = Jobs(INTEL, played.start, lambda: played.measured)
    for number in jobs.run(LONG):
        if number == 5:
            (note,) = jobs.notes(played.measured)
            assert note.startswith("Undecided: the time was enough for 4 rounds, and a choice needs 6.")
            break
    list(jobs.run(LONG))
    assert [sum(k == one for _, _, k, _ in played.jobs) for one in (1, 2)] == [3, 3]
    assert len({number for _, number, k, _ in played.jobs if k == 3}) == 8
    assert jobs.notes(played.measured) == []
    assert decide(played.measured, compared(played.measured)) == []


def test_after_a_failure_the_last_slow_algorithm_is_measured_on() -> None:
    """Two are left as slow after 3 rounds; then the job of the third one fails."""
    played = Played([SCAN], lambda _, k: 1000 if k == 0 else 3000)
    for number in Jobs(INTEL, played.start, lambda: played.measured).run(LONG):
        if number == 4:
            break
    assert still_open(played.measured, {}) == {0: {3}}
    assert still_open(played.measured, {3: "failed"}) == {0: {2}}


def test_a_job_has_one_candidate_of_each_collective() -> None:
    """MPI_Scan has three algorithms and MPI_Gather five, so that a round has six jobs; each begins with its default."""
    played = Played([SCAN, GATHER], lambda _, k: 1000 + k)
    played.run()
    first = [(variables, k, sorted(cases)) for variables, number, k, cases in played.jobs if number == 1]
    assert first[0] == ({}, 0, [0, 1])
    assert sorted(k for _, k, _ in first) == [0, 1, 2, 3, 4, 5]
    by_number = {k: (variables, cases) for variables, k, cases in first}
    assert by_number[2] == ({"I_MPI_ADJUST_SCAN": "2", "I_MPI_ADJUST_GATHER": "2"}, [0, 1])
    assert by_number[5] == ({"I_MPI_ADJUST_GATHER": "5"}, [1])


def test_an_algorithm_whose_job_fails_is_left_and_named() -> None:
    played = Played([SCAN], lambda _, k: (1000, 0, 500, 1000)[k])
    jobs = played.run()
    assert sum(k == 1 for _, _, k, _ in played.jobs) == 1
    assert jobs.notes(played.measured) == [
        "Not tried further: the job with I_MPI_ADJUST_SCAN=1 failed (it crashed)."
    ]
    assert [one.candidate.number for one in decide(played.measured, compared(played.measured))] == [2]


def test_a_default_that_fails_ends_the_replay() -> None:
    played = Played([SCAN], lambda *_: 0)
    with pytest.raises(CommlensError, match="it crashed"):
        played.run()
    assert len(played.jobs) == 1


def test_too_little_time_is_said_and_the_next_replay_goes_on() -> None:
    """Without time, one job runs; the next call begins another round, and compares what rounds have in common."""
    played = Played([SCAN], lambda _, k: (1000, 1000, 500, 1000)[k])
    jobs = played.run(0.0)
    assert [(number, k) for _, number, k, _ in played.jobs] == [(1, 0)]
    (note,) = jobs.notes(played.measured)
    assert note.startswith("Undecided: the time was enough for 0 rounds, and a choice needs 6.")
    assert decide(played.measured, compared(played.measured)) == []
    played.run()
    assert {number for _, number, _, _ in played.jobs[1:]} == {
        *range(2, max(one[1] for one in played.jobs) + 1)
    }
    assert [one.candidate.number for one in decide(played.measured, compared(played.measured))] == [2]


def test_a_round_is_in_random_order() -> None:
    played = Played([GATHER], lambda _, k: 1000 + k)
    played.run()
    orders = [tuple(k for _, number, k, _ in played.jobs if number == one) for one in range(2, 9)]
    assert len(set(orders)) > 1 and len({order[0] for order in orders}) > 1


def test_the_interval_is_that_of_the_median() -> None:
    assert interval([float(i) for i in range(20)]) == (4.0, 15.0)
