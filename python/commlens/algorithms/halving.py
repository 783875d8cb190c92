# SPDX-License-Identifier: Apache-2.0
"""Exchanges between partners whose numbers differ in one bit: the basis of most algorithms with log2(size) rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from commlens.algorithms.schedule import (
    Call,
    Integers,
    Step,
    power_of_two,
    powers,
    starts,
    step,
)

Edges = tuple[int, Callable[[Integers], Integers]]
"""Number of units of the data, and the offset of each in bytes."""


def elements(call: Call) -> Edges:
    """Return the elements of the buffer as units."""
    return call.count, lambda unit: np.minimum(unit * call.element, call.bytes)


def blocks(call: Call, number: int) -> Edges:
    """Return blocks of the buffer as units; the last block includes the remainder."""
    each = call.count // number
    at = np.arange(number + 1, dtype=np.int64) * each * call.element
    at[-1] = call.bytes
    return number, lambda unit: at[unit]


def folded_parts(call: Call) -> Edges:
    """Return the ranks' parts as units; a pair of ranks, one of which does not take part, has one unit."""
    at = starts(call.parts)
    power = power_of_two(call.size)
    more = call.size - power
    unit = np.arange(power + 1)
    at = at[np.where(unit < more, 2 * unit, unit + more)]
    return power, lambda unit: at[unit]


def survivors(size: int, odd: bool) -> Integers:
    """Return the ranks that continue as 0 to 2^k-1.

    The odd or even rank of each pair at the beginning, and all other ranks.
    """
    power = power_of_two(size)
    more = size - power
    number = np.arange(power, dtype=np.int64)
    return np.where(number < more, 2 * number + odd, number + more)


def fold_whole(size: int, nbytes: int, odd: bool) -> Iterator[Step]:
    """Yield the messages with which ranks that do not take part send all their data to their partners."""
    staying = 2 * np.arange(size - power_of_two(size))
    yield step(0, staying + (not odd), staying + odd, nbytes, 0)


def fold_halves(call: Call, odd: bool) -> Iterator[Step]:
    """Yield the messages with which each rank of a pair reduces half of the buffer, and one rank gets both halves."""
    even = 2 * np.arange(call.size - power_of_two(call.size))
    half = call.count // 2 * call.element
    yield step(0, even + 1, even, half, 0)
    yield step(0, even, even + 1, call.bytes - half, half)
    if odd:
        yield step(1, even, even + 1, half, 0)
    else:
        yield step(1, even + 1, even, call.bytes - half, half)


class Exchange(NamedTuple):
    """One round of 2^k ranks: the units that each rank sends to its partner, and those that it keeps."""

    source: Integers
    destination: Integers
    bytes: Integers
    offset: Integers
    kept_bytes: Integers
    kept_offset: Integers


def exchanges(ranks: int, distances: list[int], edges: Edges) -> Iterator[Exchange]:
    """Yield the rounds in which partners divide their common units: the lower rank keeps the first half.

    If the number of units is odd, the first half is the shorter one.
    """
    units, at = edges
    rank = np.arange(ranks, dtype=np.int64)
    low, high = np.zeros(ranks, np.int64), np.full(ranks, units, np.int64)
    for distance in distances:
        middle = low + (high - low) // 2
        lower = rank & distance == 0
        first, last = np.where(lower, middle, low), np.where(lower, high, middle)
        low, high = np.where(lower, low, middle), np.where(lower, middle, high)
        yield Exchange(rank, rank ^ distance, at(last) - at(first), at(first), at(high) - at(low), at(low))


def doubling(size: int) -> Iterator[tuple[int, Integers, Integers, int, Integers]]:
    """Yield the rounds in which groups of 1, 2, 4 and so on ranks exchange their data until each rank has all.

    In each round groups of consecutive ranks exchange their data. If the size is not a power of two, the upper group
    may lack partners; then ranks of the lower group that had a partner forward the data in further rounds.

    Yields
    ------
    round, sources, destinations, ranks in a group, a rank of the group whose knowledge is sent
    """
    rank = np.arange(size, dtype=np.int64)
    rounds = 0
    for distance in powers(size):
        other = rank ^ distance
        paired = np.flatnonzero(other < size)
        yield rounds, paired, other[paired], distance, paired
        rounds += 1
        group = rank // distance * distance
        partner = group ^ distance
        # The lower group of an incomplete pair of groups: its first `paired` ranks had a partner.
        paired = size - group - distance
        lower = (partner > group) & (partner + distance > size) & (paired > 0)
        for near in reversed(powers(distance)):
            next_to = rank ^ near
            tree = rank // (2 * near) * (2 * near)
            sends = lower & (next_to > rank) & (rank < tree + paired) & (next_to >= tree + paired)
            if sends.any():
                source = np.flatnonzero(sends)
                yield rounds, source, next_to[source], distance, partner[source]
            rounds += 1


def mirrored(bits: int) -> Integers:
    """Return the numbers below 2^bits with their bits in the opposite order."""
    number = np.arange(1 << bits, dtype=np.int64)
    turned = np.zeros_like(number)
    for bit in range(bits):
        turned |= (number >> bit & 1) << (bits - 1 - bit)
    return turned
