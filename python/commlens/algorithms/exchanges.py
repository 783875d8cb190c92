# SPDX-License-Identifier: Apache-2.0
"""Collectives in which all ranks send and receive: barrier, all-gather, all-to-all."""

from __future__ import annotations

import numpy as np

from commlens.algorithms import halving
from commlens.algorithms.schedule import (
    Call,
    Steps,
    cyclic_bytes,
    power_of_two,
    powers,
    starts,
    step,
)

# Barriers.  Their messages are empty.


def linear_barrier(call: Call) -> Steps:
    """Send to rank 0, which then sends to all."""
    yield step(0, call.ranks[1:], 0)
    yield step(1, 0, call.ranks[1:])


def double_ring_barrier(call: Call) -> Steps:
    """Pass a message round the ring twice."""
    size, rank = call.size, call.ranks
    if size > 1:
        yield step(rank, rank, (rank + 1) % size)
        yield step(size + rank, rank, (rank + 1) % size)


def recursive_doubling_barrier(call: Call) -> Steps:
    """Exchange with partners at distance 1, 2, 4 and so on; ranks above the largest power of two do not take part."""
    size = call.size
    power = power_of_two(size)
    out = np.arange(power, size)
    rank = np.arange(power)
    yield step(0, out, out - power)
    for number, distance in enumerate(powers(power)):
        yield step(1 + number, rank, rank ^ distance)
    yield step(1 + len(powers(power)), out - power, out)


def dissemination_barrier(call: Call) -> Steps:
    """Send to the rank at distance 1, 2, 4 and so on."""
    for number, distance in enumerate(powers(call.size)):
        yield step(number, call.ranks, (call.ranks + distance) % call.size)


def two_ranks_barrier(call: Call) -> Steps:
    """Exchange messages between two ranks."""
    yield step(0, call.ranks, 1 - call.ranks)


def tree_barrier(call: Call) -> Steps:
    """Send to rank 0 up a binomial tree of consecutive ranks, then down the tree to all."""
    rank = call.ranks[1:]
    low = rank & -rank
    height = np.frexp(low.astype(np.float64))[1].astype(np.int64) - 1
    rounds = len(powers(call.size))
    yield step(height, rank, rank - low)
    yield step(2 * rounds - 1 - height, rank - low, rank)


# All-gather.  The data is all parts one after another.


def bruck_allgather(call: Call) -> Steps:
    """Send all known parts, the own part first, to the rank 1, 2, 4 and so on below.

    With a radix, to several ranks at once.
    """
    size, rank = call.size, call.ranks
    offset = starts(call.parts)[:-1]
    for number, power in enumerate(powers(size, call.radix)):
        for digit in range(1, call.radix):
            distance = digit * power
            if distance < size:
                nbytes = cyclic_bytes(call.parts, rank, min(power, size - distance))
                yield step(number, rank, (rank - distance) % size, nbytes, offset)


def recursive_doubling_allgather(call: Call) -> Steps:
    """Exchange all known data with partners at distance 1, 2, 4 and so on."""
    at = starts(call.parts)
    for rounds, source, destination, number, owner in halving.doubling(call.size):
        first = owner // number * number
        yield step(
            rounds, source, destination, at[np.minimum(first + number, call.size)] - at[first], at[first]
        )


def ring_allgather(call: Call) -> Steps:
    """Pass each part round the ring."""
    size, rank = call.size, call.ranks
    offset = starts(call.parts)
    for number in range(size - 1):
        block = (rank - number) % size
        yield step(number, rank, (rank + 1) % size, call.parts[block], offset[block])


def neighbour_exchange_allgather(call: Call) -> Steps:
    """Exchange with the left and the right neighbour alternately, two parts at a time after the first round."""
    size, rank = call.size, call.ranks
    offset = starts(call.parts)[:-1]
    odd = rank % 2
    towards = 1 - 2 * odd  # even ranks begin with the one above
    yield step(0, rank, (rank + towards) % size, call.parts, offset)
    latest = rank - odd  # the first of the two parts received last
    for number in range(1, size // 2):
        side = towards if number % 2 == 0 else -towards
        yield step(number, rank, (rank + side) % size, cyclic_bytes(call.parts, latest, 2), offset[latest])
        latest = latest[(rank + side) % size]


def sparbit_allgather(call: Call) -> Steps:
    """Send to the ranks at distance size/2, size/4 and so on, with one message for each part that is not empty.

    If the size is not a power of two, parts that a rank would receive twice are skipped, once for each bit set in the
    size.
    """
    size, rank = call.size, call.ranks
    offset = starts(call.parts)
    held = 1
    lowest = (size & -size).bit_length() - 1
    left_out_at = (~(size >> lowest) | 1) << lowest
    for number, distance in enumerate(reversed(powers(size))):
        left_out = distance & left_out_at == distance
        for turn in range(held - left_out):
            block = (rank - 2 * turn * distance) % size
            parts = call.parts[block]
            yield step(number, rank, (rank + distance) % size, parts, offset[block], where=parts > 0)
        held = 2 * held - left_out


def spread_allgather(call: Call) -> Steps:
    """Send the own part to all others at once."""
    size, rank = call.size, call.ranks
    for distance in range(1, size):
        yield step(0, rank, (rank + distance) % size, call.parts, starts(call.parts)[:-1])


# All-to-all.  The data is a matrix of parts, row by row.


def spread_alltoall(call: Call) -> Steps:
    """Send each rank its part at once."""
    yield from _direct(call, rounds=False)


def spread_alltoall_of_some(call: Call) -> Steps:
    """Send each rank its part at once, except empty parts."""
    for one in _direct(call, rounds=False):
        yield step(*one, where=one.bytes > 0)


def pairwise_alltoall(call: Call) -> Steps:
    """Send to the rank at distance 1, 2, 3 and so on, one after another."""
    yield from _direct(call, rounds=True)


def pairwise_alltoall_with_self(call: Call) -> Steps:
    """Send to the rank at distance 1, 2, 3 and so on, last to itself, except empty parts."""
    for one in _direct(call, rounds=True, last=call.size):
        yield step(*one, where=one.bytes > 0)


def _direct(call: Call, rounds: bool, last: int | None = None) -> Steps:
    size, rank = call.size, call.ranks
    matrix = call.matrix
    uniform = np.ndim(call.block) == 0
    at = None if uniform else starts(matrix.reshape(-1))
    for distance in range(1, last + 1 if last is not None else size):
        to = (rank + distance) % size
        place = rank * size + to
        offset = place * call.bytes if at is None else at[place]
        yield step(distance - 1 if rounds else 0, rank, to, matrix[rank, to], offset)


def bruck_alltoall(call: Call) -> Steps:
    """Send to the rank at distance 1, 2, 4 and so on all parts whose remaining distance has that bit set.

    With a radix: with that digit, for each digit but 0.
    """
    size, rank = call.size, call.ranks
    ahead = np.arange(size)
    number = 0
    for power in powers(size, call.radix):
        for digit in range(1, call.radix):
            blocks = int((ahead // power % call.radix == digit).sum())
            if blocks:
                yield step(number, rank, (rank + digit * power) % size, blocks * call.bytes)
                number += 1
