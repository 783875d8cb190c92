# SPDX-License-Identifier: Apache-2.0
"""Statistics of sampled calls: the share of waiting with its interval, and the pattern of who is waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import asin, pi, sqrt
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95
LONG_TAILS = 1.25
"""Factor of the standard error. Rare long waits are seldom in a sample, so that its spread is below that of all calls.

Without the factor, 89 of 100 intervals had the truth in bench/waiting.py."""
FEWEST_SAMPLES = 4  # from which on there is an interval
FEWEST_SORTED = 4  # ranks from which on they may be in order
FEWEST_CALLS = 8  # samples from which on a pattern is named
NEARLY_ALL = 0.9  # share of the calls of its communicators from which on a rank is the last one there
MOST_ON_NODE = 0.8  # share of a node from which on it is named
MOST_OF_CHAIN = 0.8  # share of the delay that one rank adds from which on a chain begins there
MOST_BY_CHANCE = 0.001  # probability, by chance, of a rank that is last so often
SORTED = 0.9  # coefficient of correlation from which on ranks arrive in the order of their numbers
SORTED_SPREAD = (
    0.5  # difference between their mean arrivals from which on they do, as a share of the spread of a call
)


@dataclass(frozen=True)
class Share:
    """The estimated share of waiting, from 0 to 1, with its 95 % interval; None: too few samples for one.

    is_exact tells whether all calls were sampled.
    """

    share: float
    low: float | None
    high: float | None
    is_exact: bool = False


def student(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the two-sided quantile of Student's t distribution, by the expansion of Cornish and Fisher.

    The error is below 1 % from 3 degrees of freedom on.

    >>> [round(student(n), 2) for n in (3, 5, 10, 30, 1000)]
    [3.16, 2.57, 2.23, 2.04, 1.96]
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    n = float(freedom)
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


@dataclass(frozen=True)
class Sampled:
    """The sampled calls of one communicator, as in table sampled.

    Attributes
    ----------
    samples, collectives : int
        Sampled calls, and all calls. Of a collective each counts once, otherwise once for each rank.
    time_ns, waiting_ns : int
        Time for which the samples stand, and the waiting in it: sums over the ranks.
    error_ns : int or None
        Standard error of the waiting in all calls; None if there are too few samples to know.
    all_ns : int
        Time in all calls, sum over the ranks.
    known_ns, known_waiting_ns : float or None
        Time of all calls of the ranks that have samples, and the estimated waiting in it. None for collectives, where
        the time of the samples tells it: they are the same calls on all ranks.
    """

    samples: int
    collectives: int
    time_ns: int
    waiting_ns: int
    error_ns: int | None
    all_ns: int
    known_ns: float | None = None
    known_waiting_ns: float | None = None

    @property
    def seen_ns(self) -> float:
        """The waiting of which the samples tell."""
        if self.known_waiting_ns is not None:
            return self.known_waiting_ns
        return min(self.waiting_ns * self.collectives / self.samples, self.all_ns)

    @property
    def unseen_ns(self) -> float:
        """The time of which the samples do not tell how much is waiting."""
        if self.known_ns is not None:
            return max(0.0, self.all_ns - self.known_ns)
        return max(0.0, self.all_ns - self.time_ns * self.collectives / self.samples)

    @property
    def is_exact(self) -> bool:
        """Whether all calls were sampled."""
        return self.samples == self.collectives and not self.error_ns and self.known_ns in (None, self.all_ns)

    def standard_error(self, share: float) -> float:
        """Return the standard error of the waiting, ns. share: of all communicators."""
        if self.error_ns is not None:
            return float(self.error_ns)
        return self.all_ns * abs(self.waiting_ns / max(1, self.time_ns) - share)


def waiting_share(waiting_ns: float, time_ns: int, strata: Sequence[Sampled]) -> Share:
    """Return the share of waiting with its interval.

    The error of a communicator with few samples is how far its share is from that of all. A few long calls that were not
    sampled show in the time of all calls, which is known: how much of it is waiting is not, so that the interval contains
    both none and all of it. The same holds for ranks without samples.

    Parameters
    ----------
    waiting_ns, time_ns : number
        Estimated waiting in all calls, and their time: sums over the ranks.
    strata : sequence of Sampled
        The samples of each communicator.
    """
    share = waiting_ns / time_ns
    if all(one.is_exact for one in strata):
        return Share(share, share, share, is_exact=True)
    if sum(one.samples for one in strata) < FEWEST_SAMPLES:
        return Share(share, None, None)
    variance = sum(one.standard_error(share) ** 2 for one in strata)
    freedom = sum(one.samples - 1 for one in strata)
    error = student(max(3, freedom)) * LONG_TAILS * sqrt(variance) / time_ns
    seen_ns = sum(one.seen_ns for one in strata)
    unseen_ns = sum(one.unseen_ns for one in strata)
    low = min(share - error, seen_ns / time_ns)
    high = max(share + error, (seen_ns + unseen_ns) / time_ns)
    return Share(share, max(0.0, low), min(1.0, high))


@dataclass(frozen=True)
class Pattern:
    """Who is waited for.

    Attributes
    ----------
    kind : str
        same: one rank, far more often than by chance. each: one rank in each communicator, in nearly all calls.
        node: one node. order: the ranks arrive in the order of
        their numbers, or in the opposite one. rotates: no rank more often than by chance. varies: several ranks.
        chain: ranks wait for each other in turn, but one waits far less than others wait for it. few: too few samples.
    rank : int
        The rank that was last most often; for messages, the one for which others waited longest, or the first of the
        chain. -1: none.
    share : float
        In which share of the calls it was last; for messages, the share of the waiting that was for it. From 0 to 1.
    node : str
        The node, for kind node.
    ranks : tuple of int
        The ranks, for kind each.
    """

    kind: str
    rank: int
    share: float
    node: str = ""
    ranks: tuple[int, ...] = ()


class Chance(NamedTuple):
    """Mean and variance of how often something occurs by chance in a number of calls, by the binomial distribution."""

    mean: float
    variance: float
    calls: int


def even(calls: int, choices: int) -> Chance:
    """Return how often one of `choices` equally likely outcomes occurs in `calls`.

    >>> even(100, 4)
    Chance(mean=25.0, variance=18.75, calls=100)
    """
    return Chance(calls / choices, calls / choices * (1 - 1 / choices), calls)


def is_by_chance(hits: int, chance: Chance, choices: int) -> bool:
    """Return whether one of several outcomes occurs `hits` times by chance.

    Uses the normal approximation of the binomial distribution, corrected for the number of choices.
    """
    if chance.variance <= 0:
        return True
    above = (hits - 0.5 - chance.mean) / sqrt(chance.variance)
    return choices * (1 - NormalDist().cdf(above)) > MOST_BY_CHANCE


def pattern_of(
    last: Mapping[int, int],
    chances: Mapping[int, Chance],
    node_of: Mapping[int, str],
    behind: Mapping[int, float],
    spread_ns: float,
) -> Pattern:
    """Return the pattern of the ranks that came last.

    Parameters
    ----------
    last : mapping
        In how many calls each rank was last.
    chances : mapping
        For each rank, in how many sampled calls of its communicators it would be last by chance.
    node_of : mapping
        Node of each rank.
    behind : mapping
        How long each rank enters after the first, on average, ns.
    spread_ns : float
        Median of the time between the first and the last entry of a call.
    """
    calls = sum(last.values())
    if calls == 0:
        return Pattern("few", -1, 0.0)
    rank, hits = min(last.items(), key=lambda item: (-item[1], item[0]))
    share = hits / calls
    if calls < FEWEST_CALLS:
        return Pattern("few", rank, share)
    each = last_of_each(last, chances)
    if len(each) > 1:
        return Pattern("each", rank, share, ranks=each)
    if not is_by_chance(hits, chances[rank], len(chances)) and share >= 0.5:
        return Pattern("same", rank, share)
    if is_sorted(behind, spread_ns):
        return Pattern("order", rank, share)
    nodes: Counter[str] = Counter()
    for one, times in last.items():
        nodes[node_of.get(one, "")] += times
    node, of_node = nodes.most_common(1)[0]
    choices = len({node_of.get(one, "") for one in behind})
    if (
        choices > 1
        and of_node >= MOST_ON_NODE * calls
        and not is_by_chance(of_node, even(calls, choices), choices)
    ):
        return Pattern("node", rank, share, node)
    rotates = all(is_by_chance(times, chances[one], len(chances)) for one, times in last.items())
    return Pattern("rotates" if rotates else "varies", rank, share)


def last_of_each(last: Mapping[int, int], chances: Mapping[int, Chance]) -> tuple[int, ...]:
    """Return the ranks that are last in nearly all calls of their communicators, if each communicator has such a rank.

    Two of them cannot be in the same communicator only.
    """
    found = [
        rank
        for rank, times in sorted(last.items())
        if times >= NEARLY_ALL * chances[rank].calls and not is_by_chance(times, chances[rank], len(chances))
    ]
    is_all = sum(chances[rank].calls for rank in found) >= sum(last.values())
    return tuple(found) if is_all else ()


def is_sorted(behind: Mapping[int, float], spread_ns: float) -> bool:
    """Return whether ranks arrive in the order of their numbers, or in the opposite one.

    The order must be more than chance, and explain a large part of the spread of a call: the means of ranks that are late
    in turn differ little, whatever their order.
    """
    if len(behind) < FEWEST_SORTED or max(behind.values()) - min(behind.values()) < SORTED_SPREAD * spread_ns:
        return False
    r = abs(correlation(behind))
    return r >= SORTED and chance_of_correlation(r, len(behind)) < MOST_BY_CHANCE


def chance_of_correlation(r: float, n: int) -> float:
    """Return the probability that n independent pairs have at least this coefficient of correlation, of either sign.

    r * sqrt((n - 2) / (1 - r**2)) then has Student's t distribution with n - 2 degrees of freedom, whose integral is a
    finite series for whole degrees (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    >>> [round(chance_of_correlation(r, n), 6) for r, n in ((0.9, 4), (0.878, 5), (0.632, 10), (1.0, 9))]
    [0.1, 0.050207, 0.049951, 0.0]
    """
    sine, cosine = min(1.0, r), sqrt(max(0.0, 1 - r * r))
    freedom = n - 2
    first = 1 + freedom % 2
    term, total = cosine if freedom % 2 else 1.0, 0.0
    for k in range(first, freedom, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    return max(0.0, 1 - (2 / pi * (asin(sine) + sine * total) if freedom % 2 else sine * total))


def pattern_of_messages(
    late: Mapping[int, int], waiting: Mapping[int, int], calls: int, node_of: Mapping[int, str]
) -> Pattern:
    """Return the pattern of the ranks for which others waited in messages.

    A message has two sides, so that chance does not tell which one is late: the time for which others waited counts.

    Parameters
    ----------
    late, waiting : mapping
        How long others waited for each rank, and how long each rank waited itself, ns, for the same ranks.
    calls : int
        Number of sampled calls that waited.
    node_of : mapping
        Node of each rank.
    """
    whole = sum(late.values())
    if whole == 0:
        return Pattern("few", -1, 0.0)
    rank = min(late, key=lambda one: (-late[one], one))
    share = late[rank] / whole
    if calls < FEWEST_CALLS:
        return Pattern("few", rank, share)
    if share >= 0.5:
        return Pattern("same", rank, share)
    own = {one: max(0, late[one] - waiting[one]) for one in late}
    first = min(own, key=lambda one: (-own[one], one))
    if own[first] >= MOST_OF_CHAIN * late[first] and own[first] >= MOST_OF_CHAIN * sum(own.values()):
        return Pattern("chain", first, late[first] / whole)
    of_nodes: Counter[str] = Counter()
    for one, ns in late.items():
        of_nodes[node_of.get(one, "")] += ns
    node, of_node = of_nodes.most_common(1)[0]
    if len(of_nodes) > 1 and of_node >= MOST_ON_NODE * whole:
        return Pattern("node", rank, share, node)
    return Pattern("varies", rank, share)


def correlation(values: Mapping[int, float]) -> float:
    """Return the coefficient of correlation of values with their keys.

    >>> round(correlation({0: 1.0, 1: 2.0, 2: 3.0}), 3)
    1.0
    """
    n = len(values)
    x, y = [float(key) for key in values], list(values.values())
    mean_x, mean_y = sum(x) / n, sum(y) / n
    of_x, of_y = sum((a - mean_x) ** 2 for a in x), sum((b - mean_y) ** 2 for b in y)
    if of_x == 0 or of_y == 0:
        return 0.0
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sqrt(of_x * of_y)
