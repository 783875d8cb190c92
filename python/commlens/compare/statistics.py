# SPDX-License-Identifier: Apache-2.0
"""Statistics of two sets of runs: exact rank test, bootstrap interval of the change, correction for many rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from commlens.overhead.estimate import CONFIDENCE, RESAMPLES, tail

ALPHA = 1 - CONFIDENCE
SEED = 1
FEWEST_FOR_INTERVAL = 4
EXACT_UP_TO = 100  # runs on both sides together; the number of subsets is counted in double precision

Values = NDArray[np.float64]


@lru_cache(4096)
def _subsets(doubled: tuple[int, ...], chosen: int) -> Values:
    """Return, for each sum, the number of subsets of `chosen` of the doubled ranks that have it."""
    counts = np.zeros((chosen + 1, sum(doubled) + 1))
    counts[0, 0] = 1
    for rank in doubled:
        counts[1:, rank:] += counts[:-1, : counts.shape[1] - rank].copy()
    result: Values = counts[chosen]
    return result


def rank_sum_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the p value of the two-sided Mann-Whitney test, exact for up to EXACT_UP_TO runs, also with ties.

    >>> round(rank_sum_p([1, 2, 3], [4, 5, 6]), 3), round(rank_sum_p([1, 2, 3, 4], [5, 6, 7, 8]), 3)
    (0.1, 0.029)
    """
    n, total = len(first), len(first) + len(second)
    values = np.array([*first, *second], dtype=np.float64)
    ordered = np.sort(values)
    doubled = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1
    seen, centre = int(doubled[:n].sum()), n * (total + 1)
    if total <= EXACT_UP_TO:
        counts = _subsets(tuple(sorted(int(rank) for rank in doubled)), n)
        distance = np.abs(np.arange(len(counts)) - centre)
        return min(1.0, float(counts[distance >= abs(seen - centre)].sum() / counts.sum()))
    variance = n * (total - n) / (total * (total - 1)) * float(((doubled - (total + 1)) ** 2).sum())
    if variance == 0:
        return 1.0
    return math.erfc(max(0.0, abs(seen - centre) - 1) / math.sqrt(2 * variance))


def smallest_p(n: int, m: int) -> float:
    """Return the smallest p value that the rank test can reach with n against m runs.

    >>> [round(smallest_p(n, n), 4) for n in (1, 3, 4)]
    [1.0, 0.1, 0.0286]
    """
    return min(1.0, 2 / math.comb(n + m, n))


def runs_needed(rows: int) -> int:
    """Return the number of runs on each side with which one row of `rows` can reach significance.

    >>> runs_needed(1), runs_needed(100)
    (4, 8)
    """
    n = 2
    while smallest_p(n, n) * rows > ALPHA:
        n += 1
    return n


def adjusted(p: Sequence[float]) -> list[float]:
    """Return the p values corrected for their number by Benjamini and Hochberg, in the given order.

    >>> [round(q, 3) for q in adjusted([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    order = sorted(range(len(p)), key=lambda i: p[i])
    result, lowest = [1.0] * len(p), 1.0
    for place in range(len(p), 0, -1):
        i = order[place - 1]
        lowest = min(lowest, p[i] * len(p) / place)
        result[i] = lowest
    return result


@lru_cache(64)
def middle_places(*sizes: int) -> list[NDArray[np.int64]]:
    """Return, for samples of these sizes, where the middle values of each resample are in the sorted sample.

    A median needs one or two places, so that all rows share the resamples and none sorts its own.
    """
    generator = np.random.default_rng(SEED)
    resamples = [np.sort(generator.integers(0, n, (RESAMPLES, n)), axis=1) for n in sizes]
    return [drawn[:, sorted({(n - 1) // 2, n // 2})] for n, drawn in zip(sizes, resamples)]


def relative_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float] | None:
    """Return the bootstrap interval of median(second) / median(first) - 1.

    Percentile method with a fixed seed; the tail is widened for few runs, as `tail` describes. Both bounds are infinite
    if all values rise from 0. None with too few runs, or if only some of the first values are 0.

    >>> relative_interval([0, 0, 0, 0], [5, 6, 7, 8]), relative_interval([5, 6, 7, 8], [0, 0, 0, 0])
    ((inf, inf), (-1.0, -1.0))
    """
    fewest = min(len(first), len(second))
    if fewest < FEWEST_FOR_INTERVAL:
        return None
    if not any(first) and min(second) > 0:
        return math.inf, math.inf
    if min(first) <= 0:
        return None
    medians = [
        np.sort(np.array(side, dtype=np.float64))[places].mean(axis=1)
        for side, places in zip((first, second), middle_places(len(first), len(second)))
    ]
    outside = tail(fewest)
    low, high = np.quantile(medians[1] / medians[0] - 1, (outside, 1 - outside))
    return float(low), float(high)
