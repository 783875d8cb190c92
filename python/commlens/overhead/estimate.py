# SPDX-License-Identifier: Apache-2.0
"""Statistics of the times: differences within rounds, their confidence intervals, and significance.

Runs of one round are compared with each other, so that what changes slowly on the machine falls out. Of the differences
the Hodges-Lehmann estimate is taken (the median of the means of all pairs), which a few disturbed runs do not move; its
interval is a bootstrap over rounds, widened as few rounds need it, and the test is Wilcoxon's signed-rank test with the
signs drawn at random.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from commlens.overhead.legs import BASELINE
from commlens.overhead.measure import Run

Values = NDArray[np.float64]

RESAMPLES = 2000
SIGNS = 20000
CONFIDENCE = 0.95
POWER = 0.8
FEWEST = 6  # rounds; with 5, the smallest p value is 2/2^5, which is not significant
MOST_NEEDED = 100_000


@dataclass(frozen=True)
class Estimate:
    """A difference from the baseline.

    Attributes
    ----------
    value, low, high : float
        Estimate and 95 % interval; NaN if there are too few rounds for an interval.
    p : float
        Probability of a difference at least this large if there were none.
    needed : int or None
        Number of runs that resolve a difference of this size with probability POWER; None: more than MOST_NEEDED.
    """

    value: float
    low: float
    high: float
    p: float
    needed: int | None

    @property
    def is_resolved(self) -> bool:
        """Whether zero is outside the interval, and the test agrees."""
        return self.p < 1 - CONFIDENCE and (self.low > 0 or self.high < 0)

    @property
    def resolution(self) -> float:
        """Smallest difference that this number of rounds can detect: half of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Cost:
    """The cost of a tool, or of the baseline, which has no differences.

    Attributes
    ----------
    net_ns, hook_ns, wrap_ns, memory_bytes, output_bytes : float
        Medians of its runs; NaN if all of them failed.
    runs : int
        Number of rounds in which its run did not fail.
    crashed : str
        How its other runs failed, and how many: "signal 11 in 3 of 10 runs".
    ratio : Estimate or None
        Of net, relative to the baseline's: 0.01 is one per cent more.
    net, hook, wrap, memory : Estimate or None
        Difference from the baseline, in ns and bytes.
    """

    tool: str
    net_ns: float
    hook_ns: float
    wrap_ns: float
    memory_bytes: float
    output_bytes: float
    runs: int
    crashed: str = ""
    ratio: Estimate | None = None
    net: Estimate | None = None
    hook: Estimate | None = None
    wrap: Estimate | None = None
    memory: Estimate | None = None


def hodges_lehmann(values: Values) -> Values:
    """Return the median of the means of all pairs along the last axis, including each value paired with itself.

    values : shape (..., n)

    >>> float(hodges_lehmann(np.array([1.0, 2.0, 30.0])))
    8.75
    """
    first, second = np.triu_indices(values.shape[-1])
    result: Values = np.median((values[..., first] + values[..., second]) / 2, axis=-1)
    return result


def signed_rank_p(values: Values, generator: np.random.Generator) -> float:
    """Return the p value of the two-sided signed-rank test that `values`, shape (n,), lie around 0."""
    values = values[values != 0]
    if len(values) == 0:
        return 1.0
    magnitude = np.abs(values)
    below = np.searchsorted(np.sort(magnitude), magnitude, side="left")
    until = np.searchsorted(np.sort(magnitude), magnitude, side="right")
    ranks = (below + until + 1) / 2
    seen = abs(float(np.sum(np.sign(values) * ranks)))
    drawn = np.abs(generator.choice((-1.0, 1.0), size=(SIGNS, len(values))) @ ranks)
    return float((1 + np.sum(drawn >= seen - 1e-9)) / (1 + SIGNS))


def tail(number: int) -> float:
    """Return the share of resamples to exclude at each end for an interval of CONFIDENCE.

    The resamples of few rounds spread less than their estimate does, by sqrt((n - 1) / n), and their spread is itself
    uncertain, as in Student's t: plain quantiles of 6 rounds hold the truth in 86 % instead of 95 %. As in Hesterberg, What
    Teachers Should Know about the Bootstrap, 2015: the normal distribution's tail where the t distribution has its own.

    >>> round(tail(6), 4), round(tail(20), 4)
    (0.0025, 0.0159)
    """
    normal, freedom = NormalDist(), number - 1
    z = normal.inv_cdf((1 + CONFIDENCE) / 2)
    t = (  # its quantile, Abramowitz and Stegun 26.7.5: right to 0.1 % from 5 degrees of freedom on
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
    return normal.cdf(-t * math.sqrt(number / freedom))


def estimate(values: Sequence[float], generator: np.random.Generator) -> Estimate:
    """Return the estimate from differences, one per round."""
    differences = np.array(values, dtype=np.float64)
    number = len(differences)
    value = float(hodges_lehmann(differences))
    if number < FEWEST:
        return Estimate(value, math.nan, math.nan, math.nan, None)
    pairs = number * (number + 1) // 2
    step = max(1, 4_000_000 // pairs)  # resamples at a time: some ten MB
    parts = [
        hodges_lehmann(differences[generator.integers(0, number, size=(min(step, RESAMPLES - done), number))])
        for done in range(0, RESAMPLES, step)
    ]
    outside = tail(number)
    low, high = (float(x) for x in np.quantile(np.concatenate(parts), (outside, 1 - outside)))
    needed = None
    if value != 0:
        # The interval narrows with the square root of the number of rounds.  With one as wide as the difference zero
        # is outside in half of the measurements only.
        z = NormalDist().inv_cdf
        wider = 1 + z(POWER) / z((1 + CONFIDENCE) / 2)
        exact = number * (wider * (high - low) / 2 / abs(value)) ** 2
        needed = max(FEWEST, math.ceil(exact)) if exact <= MOST_NEEDED else None
    return Estimate(value, low, high, signed_rank_p(differences, generator), needed)


def relative(
    changed: Sequence[float], base: Sequence[float], generator: np.random.Generator
) -> Estimate | None:
    """Return the estimate of the relative change of a time, from the pairs of the rounds; None without any.

    It is that of the logarithms: a round of half the time and one of twice the time outweigh each other. So one disturbed
    round does not hide that the time is a hundredth in all others.

    Parameters
    ----------
    changed, base : sequence of float
        One time per round each, of any unit. A round counts if both are above 0.
    """
    logarithms = [math.log(one / other) for one, other in zip(changed, base) if one > 0 and other > 0]
    if not logarithms:
        return None
    found = estimate(logarithms, generator)
    return replace(
        found, value=math.expm1(found.value), low=math.expm1(found.low), high=math.expm1(found.high)
    )


def whole_rounds(runs: Sequence[Run]) -> list[dict[str, Run]]:
    """Return the runs of each round by tool, for the rounds with all tools, except the warm-up."""
    by_round: dict[int, dict[str, Run]] = {}
    for run in runs:
        by_round.setdefault(run.round, {})[run.tool] = run
    tools = {run.tool for run in runs}
    return [
        by_round[number] for number in sorted(by_round) if number > 0 and len(by_round[number]) == len(tools)
    ]


def costs(runs: Sequence[Run], seed: int = 1) -> list[Cost]:
    """Return the costs of the baseline and of each tool, from the rounds with all of them.

    A tool whose run failed in a round has no differences of this round.
    """
    tools = list(dict.fromkeys(run.tool for run in sorted(runs, key=lambda run: run.tool != BASELINE)))
    whole = whole_rounds(runs)
    generator = np.random.default_rng(seed)

    def numbers(tool: str, of: Callable[[Run], float]) -> list[float]:
        return [of(round[tool]) for round in whole if not round[tool].failure]

    def added(tool: str, of: Callable[[Run], float]) -> Estimate | None:
        both = [(round[tool], round[BASELINE]) for round in whole if not round[tool].failure]
        return estimate([of(one) - of(base) for one, base in both], generator) if both else None

    found = []
    for tool in tools if whole else ():
        count = len(numbers(tool, lambda run: run.net_ns))
        medians = (
            median(numbers(tool, lambda run: run.net_ns)),
            median(numbers(tool, lambda run: run.hook_ns)),
            median(numbers(tool, lambda run: run.wrap_ns)),
            median(numbers(tool, lambda run: run.memory_bytes)),
            median(numbers(tool, lambda run: run.output_bytes)),
        )
        if tool == BASELINE:
            found.append(Cost(tool, *medians, runs=count))
            continue
        whole_of_tool = [round for round in whole if not round[tool].failure]
        found.append(
            Cost(
                tool,
                *medians,
                runs=count,
                crashed=crashed([round[tool] for round in whole]),
                ratio=relative(
                    [round[tool].net_ns for round in whole_of_tool],
                    [round[BASELINE].net_ns for round in whole_of_tool],
                    generator,
                ),
                net=added(tool, lambda run: run.net_ns),
                hook=added(tool, lambda run: run.hook_ns),
                wrap=added(tool, lambda run: run.wrap_ns),
                memory=added(tool, lambda run: run.memory_bytes),
            )
        )
    return found


def corrected(found: Sequence[Cost], adjust: Callable[[Sequence[float]], list[float]]) -> list[Cost]:
    """Return the costs with the p values of their ratios corrected for the number of tools.

    Without a correction, one of ten tools that cost nothing seems to cost something in 40 % of the measurements.

    Parameters
    ----------
    adjust : callable
        Corrects p values: commlens.compare.statistics.adjusted, which this room must not import.
    """
    ratios = {at: cost.ratio for at, cost in enumerate(found) if cost.ratio and not math.isnan(cost.ratio.p)}
    values = dict(zip(ratios, adjust([ratio.p for ratio in ratios.values()])))
    return [
        replace(cost, ratio=replace(ratios[at], p=values[at])) if at in values else cost
        for at, cost in enumerate(found)
    ]


def median(values: Sequence[float]) -> float:
    """Return the median; NaN of nothing."""
    return float(np.median(values)) if values else math.nan


def crashed(runs: Sequence[Run]) -> str:
    """Return how runs failed, and how many; empty if none did.

    >>> ended = [Run(i, 1, "t", 0, 0, 0, 0, 0, 0, failure) for i, failure in enumerate(["signal 11", "", "signal 11"], 1)]
    >>> crashed(ended), crashed(ended[1:2])
    ('signal 11 in 2 of 3 runs', '')
    """
    counts = Counter(run.failure for run in runs if run.failure)
    parts = [f"{failure} in {count}" for failure, count in counts.most_common()]
    return f"{', '.join(parts)} of {len(runs)} runs" if parts else ""
