# SPDX-License-Identifier: Apache-2.0
"""Collectives with a root: broadcast, reduction to one, gather, scatter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from commlens.algorithms import halving, trees
from commlens.algorithms.schedule import (
    Call,
    Integers,
    Step,
    Steps,
    cyclic_bytes,
    is_power_of_two,
    power_of_two,
    powers,
    starts,
    step,
)

Tree = Callable[[Call], Integers]
"""Returns the parent of each rank, for the root of the call."""

TREES: dict[str, Tree] = {
    "linear": lambda call: trees.at_root(trees.linear(call.size), call.root),
    "chain": lambda call: trees.at_root(trees.chain(call.size, call.fanout), call.root),
    "pipeline": lambda call: trees.at_root(trees.pipeline(call.size), call.root),
    "binary": lambda call: trees.at_root(trees.binary(call.size), call.root),
    "binomial": lambda call: trees.at_root(trees.binomial(call.size), call.root),
    "in_order_binomial": lambda call: trees.at_root(trees.in_order_binomial(call.size), call.root),
    "knomial": lambda call: trees.at_root(trees.knomial(call.size, call.radix), call.root),
    "in_order_binary": lambda call: trees.in_order_binary(call.size),
}


def segments(call: Call) -> list[tuple[int, int]]:
    """Return offset and bytes of each piece of the buffer; an empty buffer is one empty piece."""
    return _pieces(0, call.bytes, call.segment_count * call.element)


def _pieces(start: int, nbytes: int, most: int) -> list[tuple[int, int]]:
    if nbytes == 0:
        return [(start, 0)]
    return [(start + at, min(most, nbytes - at)) for at in range(0, nbytes, most)]


def _edges(parent: Integers) -> tuple[Integers, Integers]:
    """Return children and their parents."""
    child = np.flatnonzero(parent >= 0)
    return child, parent[child]


def tree_bcast(tree: Tree) -> Callable[[Call], Steps]:
    """Return the broadcast that sends each piece down a tree."""

    def steps(call: Call) -> Steps:
        parent = tree(call)
        child, above = _edges(parent)
        depth = trees.depth(parent)[child]
        for number, (offset, nbytes) in enumerate(segments(call)):
            yield step(depth - 1 + number, above, child, nbytes, offset)

    return steps


def tree_reduce(tree: Tree) -> Callable[[Call], Steps]:
    """Return the reduction that sends each piece up a tree, then to the call's root if the tree has another root."""

    def steps(call: Call) -> Steps:
        parent = tree(call)
        child, above = _edges(parent)
        depth = trees.depth(parent)
        height = depth.max(initial=0)
        pieces = segments(call)
        for number, (offset, nbytes) in enumerate(pieces):
            yield step(height - depth[child] + number, child, above, nbytes, offset)
        top = int(np.flatnonzero(parent < 0)[0])
        if top != call.root:
            yield step(height + len(pieces) - 1, top, call.root, call.bytes, 0)

    return steps


def split_binary_bcast(call: Call) -> Steps:
    """Broadcast half of the data down each half of a binary tree; then ranks of both halves exchange them."""
    size = call.size
    turned = (call.ranks - call.root) % size
    parent = TREES["binary"](call)
    depth = trees.depth(parent)
    first = min((call.count + 1) // 2 * call.element, call.bytes)
    halves = ((0, first), (first, call.bytes - first))
    rounds = 0
    for side, (start, nbytes) in enumerate(halves):  # odd ranks are below the first child of the root
        child = np.flatnonzero((turned > 0) & (turned % 2 == 1 - side))
        for number, (offset, piece) in enumerate(
            _pieces(start, nbytes, call.but(block=nbytes).segment_count * call.element)
        ):
            yield step(depth[child] - 1 + number, parent[child], child, piece, offset)
            rounds = max(rounds, int(depth[child].max(initial=0)) + number)
    odd = np.arange(1, size - 1, 2)
    even = odd + 1
    (_, one), (middle, other) = halves
    yield step(rounds, (odd + call.root) % size, (even + call.root) % size, one, 0)
    yield step(rounds, (even + call.root) % size, (odd + call.root) % size, other, middle)
    if size % 2 == 0:  # the last rank, an odd one, has no partner
        yield step(0, call.root, (size - 1 + call.root) % size, other, middle)


def _ceil_part(call: Call) -> int:
    """Bytes of each rank's part of the buffer: equal parts, of which the last may be short or empty."""
    return -(-call.count // call.size) * call.element


def _scatter_buffer(call: Call) -> Steps:
    """Scatter the buffer so that each rank has the part of its number relative to the root.

    Empty parts are not sent.
    """
    part, size = _ceil_part(call), call.size
    rank = call.ranks[1:]
    low = rank & -rank
    start = np.minimum(rank * part, call.bytes)
    nbytes = np.minimum((rank + low) * part, call.bytes) - start
    far = powers(size)
    rounds = len(far) - 1 - _log2(low)
    source, destination = (rank - low + call.root) % size, (rank + call.root) % size
    yield step(rounds, source, destination, nbytes, start, where=nbytes > 0)


def scatter_allgather_bcast(call: Call) -> Steps:
    """Scatter the buffer down a binomial tree, then all-gather it by recursive doubling."""
    yield from _scatter_buffer(call)
    part, size = _ceil_part(call), call.size

    def window(rank: Integers, number: int) -> tuple[Integers, Integers]:
        first = rank // number * number
        start = np.minimum(first * part, call.bytes)
        return start, np.minimum((first + number) * part, call.bytes) - start

    first_round = len(powers(size))
    for rounds, source, destination, number, owner in halving.doubling(size):
        offset, nbytes = window(owner, number)
        yield step(
            first_round + rounds,
            (source + call.root) % size,
            (destination + call.root) % size,
            nbytes,
            offset,
        )


def scatter_ring_bcast(call: Call) -> Steps:
    """Scatter the buffer down a binomial tree, then all-gather it round a ring."""
    yield from _scatter_buffer(call)
    part, size = _ceil_part(call), call.size
    first_round = len(powers(size))
    rank = call.ranks
    for number in range(size - 1):
        offset = np.minimum((rank - number) % size * part, call.bytes)
        nbytes = np.minimum(offset + part, call.bytes) - offset
        yield step(
            first_round + number, (rank + call.root) % size, (rank + 1 + call.root) % size, nbytes, offset
        )


def rabenseifner_reduce(call: Call) -> Steps:
    """Reduce-scatter by recursive halving, gather down to the root; Open MPI's handling of other sizes.

    If the size is not a power of two, pairs of the first ranks reduce half of the buffer each, and the even rank
    continues.  If the root is an odd rank of a pair, rank 0 sends it its part, and the root gathers in place of rank 0.
    """
    yield from _rabenseifner_reduce(call, halves=True)


def reduce_scatter_gather(call: Call) -> Steps:
    """Reduce by Rabenseifner's algorithm in MPICH's variant: the odd rank of a pair sends all, parts are whole blocks."""
    yield from _rabenseifner_reduce(call, halves=False)


def _rabenseifner_reduce(call: Call, halves: bool) -> Steps:
    size = call.size
    power = power_of_two(size)
    more = size - power
    real = halving.survivors(size, odd=False)
    rounds = 0
    if more:
        for one in (
            halving.fold_halves(call, odd=False)
            if halves
            else halving.fold_whole(size, call.bytes, odd=False)
        ):
            rounds = max(rounds, int(one.round.max(initial=0)) + 1)
            yield one
    edges = halving.elements(call) if halves else halving.blocks(call, power)
    exchanges = list(halving.exchanges(power, powers(power), edges))
    for number, exchange in enumerate(exchanges):
        yield step(
            rounds + number,
            real[exchange.source],
            real[exchange.destination],
            exchange.bytes,
            exchange.offset,
        )
    rounds += len(exchanges)
    root = call.root
    top = (root // 2 if root % 2 == 0 else 0) if root < 2 * more else root - more
    if root < 2 * more and root % 2 == 1:
        last = exchanges[-1]
        yield step(rounds, 0, root, last.kept_bytes[0], last.kept_offset[0])
        rounds += 1
        real = real.copy()
        real[0] = root
    rank = np.arange(power)
    for number in reversed(range(len(exchanges))):
        exchange = exchanges[number]
        sends = (rank >> (number + 1) == top >> (number + 1)) & (rank >> number != top >> number)
        to = real[rank ^ (1 << number)]
        yield step(rounds, real, to, exchange.kept_bytes, exchange.kept_offset, where=sends)
        rounds += 1


def linear_gather(call: Call) -> Steps:
    """Receive each rank's part at the root."""
    yield _linear(call, to_root=True)


def linear_scatter(call: Call) -> Steps:
    """Send each rank its part from the root."""
    yield _linear(call, to_root=False)


def linear_gatherv(call: Call) -> Steps:
    """Receive each rank's part at the root, except empty parts."""
    one = _linear(call, to_root=True)
    yield step(*one, where=one.bytes > 0)


def linear_scatterv(call: Call) -> Steps:
    """Send each rank its part from the root, except empty parts."""
    one = _linear(call, to_root=False)
    yield step(*one, where=one.bytes > 0)


def _linear(call: Call, to_root: bool) -> Step:
    others = np.delete(call.ranks, call.root)
    source, destination = (others, call.root) if to_root else (call.root, others)
    return step(0, source, destination, call.parts[others], starts(call.parts)[others])


def synchronised_gather(call: Call) -> Steps:
    """Request each rank's part with an empty message; the rank sends one segment and the rest, even if it is empty."""
    others = np.delete(call.ranks, call.root)
    offset, parts = starts(call.parts)[others], call.parts[others]
    first = np.array([call.but(block=int(part)).segment_count * call.element for part in parts], np.int64)
    first = np.minimum(first, parts)
    yield step(0, call.root, others)
    yield step(1, others, call.root, first, offset)
    yield step(1, others, call.root, parts - first, offset + first)


def binomial_gather(call: Call) -> Steps:
    """Gather up a binomial tree whose subtrees are consecutive ranks: a rank sends all its data in one message."""
    low, destination, source, nbytes, offset = _subtrees(call)
    yield step(_log2(low), source, destination, nbytes, offset)


def binomial_scatter(call: Call) -> Steps:
    """Scatter down a binomial tree whose subtrees are consecutive ranks.

    A rank receives the data of its whole subtree.
    """
    low, source, destination, nbytes, offset = _subtrees(call)
    yield step(len(powers(call.size)) - 1 - _log2(low), source, destination, nbytes, offset)


def _subtrees(call: Call) -> tuple[Integers, ...]:
    """Return for all but the root: lowest bit of its relative number, parent, rank, and bytes and offset of its subtree."""
    size = call.size
    rank = call.ranks[1:]
    low = rank & -rank
    real = (rank + call.root) % size
    parent = (rank - low + call.root) % size
    nbytes = cyclic_bytes(call.parts, real, np.minimum(low, size - rank))
    return low, parent, real, nbytes, starts(call.parts)[real]


def _log2(power: Integers) -> Integers:
    """Return the logarithm of powers of two."""
    return np.frexp(power.astype(np.float64))[1].astype(np.int64) - 1


def rabenseifner_needs(call: Call) -> bool:
    """Whether each remaining rank gets at least one element, and the operation is commutative."""
    return call.size > 1 and call.count >= power_of_two(call.size) and call.commutative


def needs_power_of_two(call: Call) -> bool:
    """Whether the size is a power of two, as some algorithms require."""
    return is_power_of_two(call.size)
