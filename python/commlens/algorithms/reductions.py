# SPDX-License-Identifier: Apache-2.0
"""Reductions whose result all ranks need: allreduce, reduce-scatter, scans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from commlens.algorithms import halving
from commlens.algorithms.schedule import (
    Call,
    Integers,
    Steps,
    after,
    even_parts,
    power_of_two,
    powers,
    starts,
    step,
)

Algorithm = Callable[[Call], Steps]


def one_after_another(*algorithms: Algorithm) -> Algorithm:
    """Return a collective composed of others, such as a reduction and a broadcast of the result."""

    def steps(call: Call) -> Steps:
        so_far: Steps = iter(())
        for algorithm in algorithms:
            so_far = after(algorithm(call), so_far)
        yield from so_far

    return steps


def recursive_doubling_allreduce(call: Call) -> Steps:
    """Exchange all known data with partners at distance 1, 2, 4 and so on.

    If the size is not a power of two, the first ranks form pairs; the even rank does not take part and receives the
    result.
    """
    yield from _doubling_whole(call, halving.survivors(call.size, odd=True))


def _doubling_whole(call: Call, real: Integers) -> Steps:
    size = call.size
    more = size - len(real)
    rounds = 0
    if more:
        yield from halving.fold_whole(size, call.bytes, odd=True)
        rounds = 1
    rank = np.arange(len(real))
    for distance in powers(len(real)):
        yield step(rounds, real, real[rank ^ distance], call.bytes, 0)
        rounds += 1
    if more:
        even = 2 * np.arange(more)
        yield step(rounds, even + 1, even, call.bytes, 0)


def ring_allreduce(call: Call) -> Steps:
    """Reduce-scatter round a ring, then all-gather round it."""
    yield from _ring_allreduce(call, phases=1)


def segmented_ring_allreduce(call: Call) -> Steps:
    """Reduce round a ring, with the reduce-scatter in phases, so that blocks are at most about a segment."""
    yield from _ring_allreduce(call, phases=max(1, ring_phases(call)))


def ring_phases(call: Call) -> int:
    """Return the number of phases of a segmented ring.

    0 for a plain ring, used if there is less than one segment per rank.
    """
    one_phase = call.size * call.segment_count
    if one_phase == 0:
        return 0
    phases, rest = divmod(call.count, one_phase)
    return phases + (phases > 0 and rest >= call.size and rest > one_phase // 2)


def _ring_allreduce(call: Call, phases: int) -> Steps:
    size, rank = call.size, call.ranks
    to = (rank + 1) % size
    counts = even_parts(call.count, size)
    first = starts(counts)
    pieces = np.array([even_parts(int(count), phases) for count in counts]).reshape(size, phases)
    rounds = 0
    for phase in range(phases):
        offset = first[:-1] + pieces[:, :phase].sum(axis=1)
        for number in range(size - 1):
            block = (rank - number) % size
            yield step(rounds, rank, to, pieces[block, phase] * call.element, offset[block] * call.element)
            rounds += 1
    for number in range(size - 1):
        block = (rank + 1 - number) % size
        yield step(rounds, rank, to, counts[block] * call.element, first[block] * call.element)
        rounds += 1


def rabenseifner_allreduce(call: Call) -> Steps:
    """Reduce-scatter by recursive halving, all-gather by recursive doubling; Open MPI's handling of other sizes.

    If the size is not a power of two, pairs of the first ranks reduce half of the buffer each, and the even rank
    continues.
    """
    yield from _rabenseifner(call, halves=True)


def reduce_scatter_allgather(call: Call) -> Steps:
    """Reduce by Rabenseifner's algorithm in MPICH's variant.

    The even rank of a pair sends all, and parts are whole blocks.
    """
    yield from _rabenseifner(call, halves=False)


def _rabenseifner(call: Call, halves: bool) -> Steps:
    size = call.size
    power = power_of_two(size)
    more = size - power
    odd = not halves
    real = halving.survivors(size, odd)
    rounds = 0
    if more:
        for one in halving.fold_halves(call, odd) if halves else halving.fold_whole(size, call.bytes, odd):
            rounds = max(rounds, int(one.round.max(initial=0)) + 1)
            yield one
    edges = halving.elements(call) if halves else halving.blocks(call, power)
    exchanges = list(halving.exchanges(power, powers(power), edges))
    for one_round in exchanges:
        yield step(rounds, real, real[one_round.destination], one_round.bytes, one_round.offset)
        rounds += 1
    for one_round in reversed(exchanges):
        yield step(rounds, real, real[one_round.destination], one_round.kept_bytes, one_round.kept_offset)
        rounds += 1
    if more:
        pair = 2 * np.arange(more)
        yield step(rounds, pair + odd, pair + (not odd), call.bytes, 0)


def swing_peers(size: int, number: int) -> Integers:
    """Return each rank's partner in round `number`: distances 1, 1, 3, 5, 11 and so on, to one side and the other.

    Even ranks move by the sum of the first powers of -2, odd ranks by the same amount in the opposite direction.
    """
    rank = np.arange(size, dtype=np.int64)
    distance = (1 - (-2) ** (number + 1)) // 3
    partner: Integers = np.where(rank % 2 == 0, rank + distance, rank - distance) % size
    return partner


def swing_allreduce(call: Call) -> Steps:
    """Exchange halves, quarters and so on at short distances on a ring, then all-gather the same way back."""
    size = call.size
    rounds = len(powers(size))
    # The parts that a rank reduces after each round; before the round, these included the parts of its partner.
    kept = [even_parts(call.count, size) * call.element]
    for number in reversed(range(rounds)):
        kept.insert(0, kept[0] + kept[0][swing_peers(size, number)])
    for number in range(rounds):
        partner = swing_peers(size, number)
        yield step(number, call.ranks, partner, kept[number + 1][partner])
    for number in reversed(range(rounds)):
        yield step(2 * rounds - 1 - number, call.ranks, swing_peers(size, number), kept[number + 1])


def swing_latency_allreduce(call: Call) -> Steps:
    """Exchange all at short distances on a ring, as recursive doubling does at its own."""
    for number in range(len(powers(call.size))):
        yield step(number, call.ranks, swing_peers(call.size, number), call.bytes, 0)


def recursive_halving(call: Call) -> Steps:
    """Exchange halves at distance size/2, quarters at size/4 and so on, except empty parts.

    If the size is not a power of two, the even ranks of the first pairs do not take part, and receive their part.
    """
    size = call.size
    power = power_of_two(size)
    more = size - power
    if int(call.parts.sum()) == 0:
        return
    real = halving.survivors(size, odd=True)
    rounds = 0
    if more:
        yield from halving.fold_whole(size, int(call.parts.sum()), odd=True)
        rounds = 1
    for exchange in halving.exchanges(power, powers(power)[::-1], halving.folded_parts(call)):
        yield step(
            rounds,
            real,
            real[exchange.destination],
            exchange.bytes,
            exchange.offset,
            where=exchange.bytes > 0,
        )
        rounds += 1
    if more:
        even = 2 * np.arange(more)
        parts = call.parts[even]
        yield step(rounds, even + 1, even, parts, starts(call.parts)[even], where=parts > 0)


def butterfly(call: Call) -> Steps:
    """Exchange halves at distance 1, quarters at 2 and so on, which keeps the order of operands.

    Each part ends at the rank whose number is its number with the bits reversed, which forwards it.
    """
    size = call.size
    power = power_of_two(size)
    more = size - power
    real = halving.survivors(size, odd=True)
    rounds = 0
    if more:
        yield from halving.fold_whole(size, int(call.parts.sum()), odd=True)
        rounds = 1
    for exchange in halving.exchanges(power, powers(power), halving.folded_parts(call)):
        yield step(rounds, real, real[exchange.destination], exchange.bytes, exchange.offset)
        rounds += 1
    owner = halving.mirrored(len(powers(power)))
    offset = starts(call.parts)
    stayed_out = np.maximum(real[owner] - 1, 0)
    yield step(rounds, real, stayed_out, call.parts[stayed_out], offset[stayed_out], where=owner < more)
    to = real[owner]
    yield step(rounds, real, to, call.parts[to], offset[to], where=to != real)


def mirrored_halving(call: Call) -> Steps:
    """Reduce as the butterfly does, with the blocks in bit-reversed order, so that each ends at its rank."""
    size = call.size
    total = int(call.parts.sum())
    for number, exchange in enumerate(halving.exchanges(size, powers(size), halving.folded_parts(call))):
        yield step(number, exchange.source, exchange.destination, total >> (number + 1))


def doubling_reduce_scatter(call: Call) -> Steps:
    """Exchange with partners at distance 1, 2, 4 and so on all data except that of the own group."""
    size = call.size
    at = starts(call.parts)
    for rounds, source, destination, number, owner in halving.doubling(size):
        first = owner // number * number
        end = at[np.minimum(first + number, size)]
        yield step(rounds, source, destination, at[-1] - (end - at[first]), end)


def ring_reduce_scatter(call: Call) -> Steps:
    """Send blocks round a ring; each rank adds its own data, and each block ends at its rank."""
    size, rank = call.size, call.ranks
    offset = starts(call.parts)
    for number in range(1, size):
        block = (rank - number) % size
        yield step(number - 1, rank, (rank + 1) % size, call.parts[block], offset[block])


def pairwise_reduce_scatter(call: Call) -> Steps:
    """Send each rank its part of the own data; the messages do not depend on each other."""
    size, rank = call.size, call.ranks
    offset = starts(call.parts)
    for distance in range(1, size):
        to = (rank + distance) % size
        yield step(0, rank, to, call.parts[to], offset[to])


def linear_scan(call: Call) -> Steps:
    """Pass the sum from rank to rank."""
    yield step(call.ranks[:-1], call.ranks[:-1], call.ranks[1:], call.bytes, 0)


def recursive_doubling_scan(call: Call) -> Steps:
    """Exchange sums with partners at distance 1, 2, 4 and so on; a rank without a partner skips the round."""
    for number, distance in enumerate(powers(call.size)):
        other = call.ranks ^ distance
        yield step(number, call.ranks, other, call.bytes, 0, where=other < call.size)
