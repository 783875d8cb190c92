# SPDX-License-Identifier: Apache-2.0
"""Cases that one rule of MPICH counts for, so that they need one choice: the one with the least time for all their calls.

A variable counts for all communicators and message sizes, a rule in a table for all families of a communicator size, and for
some collectives for all message sizes. So the replay measures, too, those that are not worth trying themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from statistics import median

import numpy as np

from commlens.algorithms.calls import collective_of
from commlens.compare.statistics import ALPHA
from commlens.overhead.estimate import FEWEST, Estimate, estimate
from commlens.tune.decide import MOST_ROUNDS, Changes, round_medians
from commlens.tune.measurements import Measurements
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.plan import Plan
from commlens.tune.scope import shared_by

Medians = Mapping[tuple[int, int], Mapping[int, float]]
"""Median times by case and candidate, then by round."""


def calls_of(plan: Plan, cases: Sequence[Case]) -> list[float]:
    """Return the number of calls of each case, as far as the plan tells sizes of a family apart."""
    places = [(case.family, case.collective, case.bin) for case in cases]
    calls = {
        (place.row["family"], collective_of(place.row["operation"]), place.row["bin"]): place.row["calls"]
        for place in plan.places
    }
    return [float(calls.get(place, 0)) / places.count(place) for place in places]


def agreed(
    measured: Measurements, changes: Changes, choices: Sequence[Choice], calls: Sequence[float], library: str
) -> list[Choice]:
    """Return the choices, with one candidate for all cases that a rule counts for, where there is a good one.

    It is not slower in any of the cases with certainty, and takes less time with certainty for all their calls together.
    Where there is none, the choices stay as they are, so that the rules say why they are left out.

    Parameters
    ----------
    calls : number of calls of each case of `measured`, in the same order
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for i, case in enumerate(measured.cases):
        groups[shared_by(library, case.collective, case.comm_size, case.bin)].append(i)
    groups.pop(None, None)
    chosen = {choice.case: choice for choice in choices}
    medians = round_medians(measured)
    for group in groups.values():
        own = [chosen.get(measured.cases[i]) for i in group]
        is_agreed = None not in own and len({one.candidate for one in own if one}) == 1
        if is_agreed or not any(own):
            continue
        best = _best(measured, changes, group, calls, medians)
        if best is not None:
            for i in group:
                chosen[measured.cases[i]] = _choice(measured, changes, medians, i, best)
    return [chosen[case] for case in measured.cases if case in chosen]


def _best(
    measured: Measurements, changes: Changes, group: Sequence[int], calls: Sequence[float], medians: Medians
) -> Candidate | None:
    """Return the candidate with the least time for all calls of a group; None if none is faster with certainty."""
    of_each = [measured.candidates[i][1:] for i in group]
    common = [one for one in of_each[0] if all(one in candidates for candidates in of_each)]
    generator = np.random.default_rng(1)
    found: list[tuple[float, Candidate]] = []
    for candidate in common:
        total = _of_all_calls(measured, changes, group, calls, medians, candidate, generator)
        if total is not None and total.high < 0 and total.p * len(common) < ALPHA:
            found.append((total.value, candidate))
    return min(found)[1] if found else None


def _of_all_calls(
    measured: Measurements,
    changes: Changes,
    group: Sequence[int],
    calls: Sequence[float],
    medians: Medians,
    candidate: Candidate,
    generator: np.random.Generator,
) -> Estimate | None:
    """Return the relative change of the time of all calls of a group; None if unknown, or slower in a case."""
    numbers = [(i, measured.candidates[i].index(candidate)) for i in group]
    if any(pair not in changes or changes[pair][0].low > 0 for pair in numbers):
        return None
    rounds = set.intersection(*({*medians[i, k]} & {*medians[i, 0]} for i, k in numbers))
    if len(rounds) < FEWEST:
        return None
    ratios = [
        sum(calls[i] * medians[i, k][round] for i, k in numbers)
        / sum(calls[i] * medians[i, 0][round] for i in group)
        - 1
        for round in sorted(rounds)[-MOST_ROUNDS:]
        if any(calls[i] for i in group)
    ]
    return estimate(ratios, generator) if ratios else None


def _choice(
    measured: Measurements, changes: Changes, medians: Medians, i: int, candidate: Candidate
) -> Choice:
    """Return a candidate as the choice for a case, faster or not."""
    k = measured.candidates[i].index(candidate)
    change, rounds = changes[i, k]
    times = [float(median(medians[i, number].values())) for number in (0, k)]
    return Choice(
        measured.cases[i], candidate, times[0], times[1], change.value, change.low, change.high, rounds
    )
