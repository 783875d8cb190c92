# SPDX-License-Identifier: Apache-2.0
"""Cases that one rule of MPICH or Intel MPI counts for, so that they need one choice: the one with the least time for all their calls.

A variable of MPICH counts for all communicators and message sizes, one of Intel MPI, too, if not all calls have a choice.
A rule in a table for all families of a communicator size, and for
some collectives for all message sizes. So the replay measures, too, those that are not worth trying themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from statistics import median

import numpy as np

from commlens.algorithms.calls import collective_of
from commlens.compare.statistics import ALPHA, adjusted
from commlens.overhead.estimate import FEWEST, Estimate, relative
from commlens.tune.decide import LEAST_CHANGE, MOST_ROUNDS, Changes, round_medians
from commlens.tune.measurements import Measurements
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.plan import Plan
from commlens.tune.rules.intel import can_tell_apart
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

    It is not slower in any of the cases with certainty, and saves at least LEAST_CHANGE of the time of all their calls
    together, with certainty.
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
    disagreeing = []
    for group in groups.values():
        own = [chosen.get(measured.cases[i]) for i in group]
        if any(own) and not is_agreed(own, library):
            disagreeing.append(group)
    medians = round_medians(measured)
    for group, best in zip(disagreeing, _best_of(measured, changes, disagreeing, calls, medians)):
        if best is not None:
            for i in group:
                chosen[measured.cases[i]] = _choice(measured, changes, medians, i, best)
    return [chosen[case] for case in measured.cases if case in chosen]


def is_agreed(own: Sequence[Choice | None], library: str) -> bool:
    """Return whether all cases that a rule counts for have the same choice, or such that the rule can tell them apart."""
    choices = [one for one in own if one is not None]
    if len(choices) < len(own):
        return False
    return len({one.candidate for one in choices}) == 1 or can_tell_apart(choices, library)


def _best_of(
    measured: Measurements,
    changes: Changes,
    groups: Sequence[Sequence[int]],
    calls: Sequence[float],
    medians: Medians,
) -> list[Candidate | None]:
    """Return for each group the candidate with the least time for all its calls; None if none is a choice.

    The conditions are those of `decide` for a single case; the tests of all groups are corrected together.
    """
    generator = np.random.default_rng(1)
    totals: dict[tuple[int, Candidate], Estimate] = {}
    for number, group in enumerate(groups):
        of_each = [measured.candidates[i][1:] for i in group]
        for candidate in of_each[0]:
            if all(candidate in candidates for candidates in of_each):
                total = _of_all_calls(measured, changes, group, calls, medians, candidate, generator)
                if total is not None:
                    totals[number, candidate] = total
    corrected = dict(zip(totals, adjusted([total.p for total in totals.values()])))
    best: list[tuple[float, Candidate] | None] = [None] * len(groups)
    for (number, candidate), total in totals.items():
        is_certain = corrected[number, candidate] < ALPHA and total.high < 0
        if is_certain and total.value <= -LEAST_CHANGE:
            found = best[number]
            best[number] = min(found, (total.value, candidate)) if found else (total.value, candidate)
    return [one[1] if one else None for one in best]


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
    last = sorted(rounds)[-MOST_ROUNDS:]
    taken = [sum(calls[i] * medians[i, k][round] for i, k in numbers) for round in last]
    default = [sum(calls[i] * medians[i, 0][round] for i in group) for round in last]
    return relative(taken, default, generator)


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
