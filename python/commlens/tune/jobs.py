# SPDX-License-Identifier: Apache-2.0
"""Measures algorithms whose variables count only when a job starts, as with Intel MPI: a job for each of them.

A job measures candidate k of all collectives, which its environment chooses. A round has one job for each candidate, in
random order.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.overhead.estimate import FEWEST
from commlens.tune.candidates import environment_of
from commlens.tune.decide import LEAST_CHANGE, round_medians
from commlens.tune.measurements import Measurements

FIRST_ROUNDS = 3
"""After so many rounds, a candidate that certainly takes more than twice the default's time is no longer measured,
unless it is the last one of its case."""
ENOUGH = 8
"""Rounds for any other end."""

Start = Callable[[Mapping[str, str], Sequence[str]], None]
"""Runs a job with these variables and words: the round, the candidate and the cases; raises CommlensError if it fails."""


@dataclass
class Jobs:
    """What to measure, and what is known.

    Attributes
    ----------
    library : str
    start : Start
    read : callable
        Returns what the folder has.
    seed : int
    failed : dict
        Candidates whose job failed, and why.
    """

    library: str
    start: Start
    read: Callable[[], Measurements]
    seed: int = 1
    failed: dict[int, str] = field(default_factory=dict)

    def run(self, seconds: float) -> Iterator[int]:
        """Measure in rounds until all is known or the time is over; yield the number of the round after each job."""
        until = time.monotonic() + seconds
        measured = self.read()
        number = max((one.round for one in measured.times), default=0)
        while True:
            open_cases = still_open(measured, self.failed)
            if not open_cases:
                return
            number += 1
            draw = random.Random(self.seed + number)
            candidates = sorted({k for found in open_cases.values() for k in found})
            order = [0, *draw.sample(candidates, len(candidates))]
            if self.failed or number > 1:  # the first job of all is the default: if it fails, so will all
                draw.shuffle(order)
            for k in order:
                cases = [case for case, found in open_cases.items() if k == 0 or k in found]
                self.measure(measured, number, k, draw.sample(cases, len(cases)))
                yield number
                if time.monotonic() > until:
                    return
            measured = self.read()

    def measure(self, measured: Measurements, number: int, k: int, cases: Sequence[int]) -> None:
        """Run one job; one that fails drops its candidate."""
        variables: dict[str, str] = {}
        for case in cases:
            one = measured.candidates[case][k]
            variables.update(environment_of(self.library, measured.cases[case].collective, one.number))
        try:
            self.start(variables, [str(number), str(k), ",".join(map(str, cases))])
        except CommlensError as error:
            if k == 0:
                raise
            names = " ".join(f"{name}={value}" for name, value in sorted(variables.items()))
            self.failed[k] = f"Not tried further: the job with {names} failed ({error})."

    def notes(self, measured: Measurements) -> list[str]:
        """Return in sentences which candidates failed, and whether the time was too short."""
        found = list(self.failed.values())
        rounds = whole_rounds(measured)
        if rounds < FEWEST and still_open(measured, self.failed):
            found.append(
                f"Undecided: the time was enough for {count_text(rounds, 'round')}, and a choice needs {FEWEST}. A round starts "
                "a job for each algorithm, because Intel MPI chooses them only when a job starts; the same command goes on."
            )
        return found


def whole_rounds(measured: Measurements) -> int:
    """Return the most rounds in which a candidate can be compared with the library's own choice."""
    medians = round_medians(measured)
    return max(
        (len({*rounds} & {*medians.get((case, 0), {})}) for (case, k), rounds in medians.items() if k),
        default=0,
    )


def still_open(measured: Measurements, failed: Mapping[int, str]) -> dict[int, set[int]]:
    """Return the candidates of each case that are not yet known well enough; cases without one are left out.

    The conditions are those of conclude_case() in replay.c: slow candidates are left early, but one of them is measured
    until there are enough rounds for a claim.
    """
    medians = round_medians(measured)
    tests = sum(len(candidates) - 1 for candidates in measured.candidates)
    least_rounds = max(ENOUGH, math.ceil(math.log2(40 * (tests + 1))) + 2)
    found: dict[int, set[int]] = {}
    for case, candidates in enumerate(measured.candidates):
        base = medians.get((case, 0), {})
        intervals = {}
        for k in range(1, len(candidates)):
            times = medians.get((case, k), {})
            ratios = [times[round] / base[round] for round in {*times} & {*base}]
            intervals[k] = (len(ratios), *interval(ratios))
        best = min(
            [1 - LEAST_CHANGE, *(high for n, _, high in intervals.values() if n >= ENOUGH)],
        )
        tried = {k: one for k, one in intervals.items() if k not in failed}
        slow = [k for k, (n, low, _) in tried.items() if FIRST_ROUNDS <= n < ENOUGH and low > 2]
        if len(slow) == len(tried):
            slow = slow[:-1]
        left = {k for k, one in tried.items() if k not in slow and not is_known(*one, best, least_rounds)}
        if left:
            found[case] = left
    return found


def is_known(n: int, low: float, high: float, best: float, least_rounds: int) -> bool:
    """Return whether a candidate with this interval of its ratio to the default is certainly no choice, or known exactly."""
    if n < ENOUGH:
        return False
    if low > best:
        return True
    error = max(LEAST_CHANGE, abs(1 - (low + high) / 2) / 10)
    return n >= least_rounds and high - low <= 2 * error


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the 99 % interval of the median by order statistics; (0, infinity) without ratios.

    >>> interval([1.0, 3.0, 2.0]), interval([])
    ((1.0, 3.0), (0.0, inf))
    """
    n = len(ratios)
    if not n:
        return 0.0, math.inf
    below = max(0, math.floor(n / 2 - 1.29 * math.sqrt(n)))
    return sorted(ratios)[below], sorted(ratios)[n - 1 - below]
