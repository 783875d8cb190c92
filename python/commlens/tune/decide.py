# SPDX-License-Identifier: Apache-2.0
"""Chooses algorithms from the times of a replay: only what is faster with certainty.

Within each round the median of a candidate is compared with that of the library's own choice, so that what changes slowly
on the machine falls out. The statistics are those of `commlens overhead`; all tests of a replay are corrected together,
because among many algorithms one looks fast by luck.
"""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import median

import numpy as np

from commlens.compare.statistics import ALPHA, adjusted
from commlens.overhead.estimate import FEWEST, Estimate, relative
from commlens.tune.measurements import Measurements
from commlens.tune.model import Choice

LEAST_CHANGE = 0.03
"""Share of the time of a call that a choice must save: less does not show in a run."""

MOST_ROUNDS = 60
"""Of a candidate, as many rounds are compared: the last ones. The time for their statistics grows with the square."""


def round_medians(measured: Measurements) -> dict[tuple[int, int], dict[int, float]]:
    """Return the median time by case and candidate, then by round.

    Of a round, the repetitions count to which every process came in time; if there is none, all count.
    """
    parts: dict[tuple[int, int, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for time in measured.times:
        if time.round == 0:  # the first calls
            continue
        parts[time.case, time.candidate, time.round][1 if time.is_late else 0].append(time.time_ns)
    found: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    for (case, candidate, round), (good, late) in parts.items():
        found[case, candidate][round] = float(median(good or late))
    return dict(found)


Changes = dict[tuple[int, int], tuple[Estimate, int]]
"""The relative change of each candidate by case and candidate, and the number of rounds."""


def compared(measured: Measurements, seed: int = 1) -> Changes:
    """Return the relative change of each candidate by case and candidate, and the number of rounds."""
    medians = round_medians(measured)
    generator = np.random.default_rng(seed)
    found = {}
    for (case, candidate), times in sorted(medians.items()):
        base = medians.get((case, 0), {})
        rounds = sorted(set(times) & set(base))[-MOST_ROUNDS:]
        if candidate > 0 and len(rounds) >= FEWEST:
            change = relative(
                [times[round] for round in rounds], [base[round] for round in rounds], generator
            )
            if change is not None:
                found[case, candidate] = (change, len(rounds))
    return found


def decide(measured: Measurements, found: Changes) -> list[Choice]:
    """Return for each case the fastest candidate that is faster than the library's own choice with certainty.

    A case without one has no choice: the library's own stays.

    found : what `compared` returned
    """
    medians = round_medians(measured)
    corrected = dict(zip(found, adjusted([one.p for one, _ in found.values()])))
    best: dict[int, Choice] = {}
    for (case, candidate), (change, rounds) in found.items():
        is_certain = corrected[case, candidate] < ALPHA and change.high < 0
        if not is_certain or change.value > -LEAST_CHANGE or math.isnan(change.high):
            continue
        if case in best and best[case].change <= change.value:
            continue
        default_ns, candidate_ns = (float(median(medians[case, one].values())) for one in (0, candidate))
        best[case] = Choice(
            measured.cases[case],
            measured.candidates[case][candidate],
            default_ns,
            candidate_ns,
            change.value,
            change.low,
            change.high,
            rounds,
        )
    return [best[case] for case in sorted(best)]
