# SPDX-License-Identifier: Apache-2.0
"""Pearson's and Spearman's coefficients with intervals and p values, computed with numpy alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commlens.compare.statistics import ALPHA

Values = NDArray[np.float64]

EXACT_UP_TO = 10  # runs; the work for the p value of Spearman's coefficient doubles with each run
FEWEST_FOR_INTERVAL = 4
"""Fisher's transformation has the variance 1 / (n - 3)."""
STEPS = 300  # of the continued fraction; it needs some 30 of them for 10,000 runs
TINY = 1e-300


class Coefficient(NamedTuple):
    """A coefficient of correlation.

    Attributes
    ----------
    low, high : float or None
        95 % interval; None with too few runs.
    p : float
        Probability of a coefficient at least this far from 0 if there were no relation.
    q : float or None
        p corrected for the number of tested rows; None before the correction.
    """

    value: float
    low: float | None
    high: float | None
    p: float
    q: float | None = None

    @property
    def is_significant(self) -> bool:
        """Whether the test and the interval agree that the coefficient is not 0."""
        is_outside = self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)
        return self.q is not None and self.q <= ALPHA and is_outside


def is_constant(values: Sequence[float]) -> bool:
    """Return whether all values are equal: they have no correlation."""
    return min(values) == max(values)


def product_moment(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the coefficient of Pearson.

    >>> product_moment([1, 2, 3], [2, 4, 6]), product_moment([1, 2, 3], [1, 0, 1])
    (1.0, 0.0)
    """
    centred = []
    for values in (first, second):
        array = np.array(values, dtype=np.float64)
        array = array - array.mean()
        centred.append(array / np.abs(array).max())  # squares of long times would lose digits
    one, two = centred
    r = float(one @ two) / math.sqrt(float(one @ one) * float(two @ two))
    return max(-1.0, min(1.0, r))


def doubled_ranks(values: Sequence[float]) -> tuple[int, ...]:
    """Return twice the rank of each value; equal values have the mean of their ranks.

    >>> doubled_ranks([10, 30, 20, 30])
    (2, 7, 4, 7)
    """
    array = np.array(values, dtype=np.float64)
    ordered = np.sort(array)
    doubled = np.searchsorted(ordered, array, "left") + np.searchsorted(ordered, array, "right") + 1
    return tuple(int(rank) for rank in doubled)


def pearson(first: Sequence[float], second: Sequence[float]) -> Coefficient:
    """Return Pearson's coefficient, with the interval by Fisher's transformation and the p value by Student's t."""
    r, n = product_moment(first, second), len(first)
    return Coefficient(r, *interval(r, r, 1 / max(1, n - 3), n), student_p(r, n))


def spearman(first: Sequence[float], second: Sequence[float]) -> Coefficient:
    """Return Spearman's coefficient, with the interval of Bonett and Wright.

    The p value is exact for up to EXACT_UP_TO runs, also with ties, and by Student's t for more. If all runs are in
    the same order, the transformation is infinite: the interval then uses half the distance to the next possible value.
    """
    one, two = doubled_ranks(first), doubled_ranks(second)
    r, n = product_moment(one, two), len(one)
    most = 1 - 6 / (n**3 - n)
    inner = max(-most, min(most, r))
    low, high = interval(r, inner, (1 + inner**2 / 2) / max(1, n - 3), n)
    p = permutation_p(one, two) if n <= EXACT_UP_TO else max(student_p(r, n), smallest_p(n))
    return Coefficient(r, low, high, p)


def interval(value: float, inner: float, variance: float, n: int) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a coefficient; `inner` is the value that is transformed, `variance` its variance."""
    if n < FEWEST_FOR_INTERVAL:
        return None, None
    if abs(inner) == 1:
        return inner, inner
    centre = math.atanh(inner)
    margin = NormalDist().inv_cdf(1 - ALPHA / 2) * math.sqrt(variance)
    low, high = math.tanh(centre - margin), math.tanh(centre + margin)
    return min(low, value), max(high, value)


@lru_cache(256)
def _products(first: tuple[int, ...], second: tuple[int, ...]) -> Values:
    """Return, for each value, the number of orders of `second` whose sum of products with `first` has it."""
    n = len(first)
    most = sum(a * b for a, b in zip(sorted(first), sorted(second)))
    counts = np.zeros((1 << n, most + 1))
    counts[0, 0] = 1
    for used in range(1 << n):
        one = first[bin(used).count("1") % n]
        for place in range(n):
            if not used >> place & 1:
                step = one * second[place]
                counts[used | 1 << place, step:] += counts[used, : most + 1 - step]
    result: Values = counts[-1].copy()
    return result


def permutation_p(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the share of all orders whose sum of products is at least as far from the mean, for doubled ranks.

    >>> round(permutation_p([2, 4, 6, 8], [2, 4, 6, 8]), 4)
    0.0833
    """
    n = len(first)
    counts = _products(tuple(sorted(first)), tuple(sorted(second)))
    centre = n * (n + 1) ** 2
    distance = np.abs(np.arange(len(counts)) - centre)
    seen = abs(sum(a * b for a, b in zip(first, second)) - centre)
    return min(1.0, float(counts[distance >= seen].sum() / counts.sum()))


def student_p(r: float, n: int) -> float:
    """Return the two-sided p value of a coefficient of `n` runs: the tail of Student's t with n - 2 degrees of freedom."""
    rest = (1 - r) * (1 + r)
    return 1.0 if n < 3 else 0.0 if rest <= 0 else min(1.0, incomplete_beta((n - 2) / 2, 0.5, rest))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) by its continued fraction (DLMF 8.17.22)."""
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1 - incomplete_beta(b, a, 1 - x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = fraction
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            fraction *= c * d
        if abs(fraction - before) <= 1e-15 * abs(fraction):
            break
    return math.exp(scale) * fraction / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


def smallest_p(n: int) -> float:
    """Return the smallest p value that Spearman's coefficient of `n` runs can have.

    >>> [round(smallest_p(n), 4) for n in (2, 4, 5)]
    [1.0, 0.0833, 0.0167]
    """
    return min(1.0, 2 / math.factorial(n))


def runs_needed(rows: int) -> int:
    """Return the number of runs with which one row of `rows` can be significant.

    >>> runs_needed(1), runs_needed(100)
    (5, 7)
    """
    n = 2
    while smallest_p(n) * rows > ALPHA:
        n += 1
    return n
