# SPDX-License-Identifier: Apache-2.0
"""Cases that share a rule: which are measured, and when one algorithm is chosen for all, from planted times."""

from __future__ import annotations

import random
from pathlib import Path

from test_tune import MS, OPEN_MPI, call, program

from commlens.profile import open_profile
from commlens.tune.cases import read_cases
from commlens.tune.decide import compared, decide
from commlens.tune.measurements import Measurements, Time
from commlens.tune.model import DEFAULT, Candidate, Case, Choice
from commlens.tune.plan import read_plan
from commlens.tune.shared import agreed, calls_of

MPICH = "MPICH Version:\t5.0.2"
SMALL, LARGE = (Case(1, "W0.0", "gather", 4, bin, 1 << (bin - 1)) for bin in (4, 11))


def cases_of(tmp_path: Path, library: str, operation: str) -> tuple[list[tuple[int, int, int]], list[float]]:
    """Return family, size and bin of the cases of a run with a slow and a fast message size, and their calls."""
    build = program(library)
    half = build.comm("s0.1", [0, 1], parent=1, creator="MPI_Comm_split", family=2)
    call(build, 1, operation, 1024, 100, MS)
    call(build, 1, operation, 8, 40, 1000)
    call(build, half, operation, 8, 30, 1000)
    with open_profile(str(build.write(tmp_path / f"{operation}{len(library)}.db"))) as connection:
        plan = read_plan(connection, (), ())
        found = read_cases(connection, plan)
    assert len(found.cases) == len(found.layouts) == len(found.blocks)
    return [(case.family, case.comm_size, case.bin) for case in found.cases], calls_of(plan, found.cases)


def test_sizes_that_share_a_rule_are_measured_too(tmp_path: Path) -> None:
    """A rule for a gather counts for all sizes of messages, a variable for all communicators, a rule of Open MPI as written."""
    assert cases_of(tmp_path, MPICH, "MPI_Gather") == ([(1, 4, 11), (1, 4, 4)], [400, 160])
    every, calls = cases_of(tmp_path, MPICH, "MPI_Scan")
    assert (sorted(every), sorted(calls)) == ([(1, 4, 4), (1, 4, 11), (2, 2, 4)], [60, 160, 400])
    assert cases_of(tmp_path, MPICH, "MPI_Bcast")[0] == [(1, 4, 11)]
    assert cases_of(tmp_path, OPEN_MPI, "MPI_Gather")[0] == [(1, 4, 11)]


def planted(*factors: tuple[float, float], noise: float = 0.02, rounds: int = 20) -> Measurements:
    """Return times of both cases, with the factors of two candidates to the default: a large call takes 100 us, a small 10."""
    draw = random.Random(7)
    found = []
    for round in range(1, rounds + 1):
        for i, base in enumerate((100_000, 10_000)):
            for k in range(3):
                factor = 1.0 if k == 0 else factors[k - 1][i]
                ns = round_ns(base * factor * draw.gauss(1, noise))
                found.append(Time(round, i, k, 0, 0, ns))
    tried = [DEFAULT, Candidate(1, "a"), Candidate(2, "b")]
    return Measurements([LARGE, SMALL], [tried, tried], found)


def round_ns(ns: float) -> int:
    return max(1, int(ns))


def chosen(measured: Measurements, calls: list[float], library: str = MPICH) -> list[Choice]:
    changes = compared(measured)
    return agreed(measured, changes, decide(measured, changes), calls, library)


def names(choices: list[Choice]) -> list[tuple[int, str]]:
    return [(choice.case.bin, choice.candidate.name) for choice in choices]


def test_an_equal_size_follows_a_faster_one() -> None:
    found = chosen(planted((0.7, 1.0), (1.1, 0.8)), [100, 100])
    assert names(found) == [(11, "a"), (4, "a")]
    assert found[1].high > found[1].low
    assert abs(found[0].change + 0.3) < 0.05 and abs(found[1].change) < 0.05


def test_a_slower_size_keeps_all_from_a_rule() -> None:
    """Each case keeps its own choice, so that the rules can say why they are left out."""
    assert names(chosen(planted((0.7, 1.3), (1.2, 1.2)), [100, 100])) == [(11, "a")]
    assert names(chosen(planted((0.7, 1.3), (1.2, 0.8)), [100, 100])) == [(11, "a"), (4, "b")]


def test_all_calls_together_must_be_faster() -> None:
    """A choice for few calls is not carried to many for which nothing is known to be gained."""
    unclear = planted((0.7, 1.0), (1.5, 1.5), noise=0.03)
    assert names(chosen(unclear, [1, 10**7])) == [(11, "a")]
    assert names(chosen(unclear, [10**7, 1])) == [(11, "a"), (4, "a")]
    assert names(chosen(unclear, [0, 0])) == [(11, "a")]


def test_little_gain_of_all_calls_is_no_choice() -> None:
    """The large calls get 30 % faster, but are one in 500 of the time: 0.2 % is certain, and not worth a rule."""
    little = planted((0.7, 0.998), (1.5, 1.5), noise=0.0)
    assert names(chosen(little, [1, 5000])) == [(11, "a")]
    assert names(chosen(little, [100, 100])) == [(11, "a"), (4, "a")]


def test_what_is_agreed_or_separate_stays() -> None:
    assert names(chosen(planted((0.7, 0.7), (0.9, 0.9)), [1, 1])) == [(11, "a"), (4, "a")]
    assert names(chosen(planted((0.7, 1.0), (1.1, 0.8)), [1, 1], OPEN_MPI)) == [(11, "a"), (4, "b")]
    assert chosen(planted((1.0, 1.0), (1.1, 1.1)), [1, 1]) == []
    assert names(chosen(planted((0.7, 1.0), (1.1, 1.1), rounds=5), [1, 1])) == []
