# SPDX-License-Identifier: Apache-2.0
"""Trees over the ranks 0 to size-1: the parent of every rank, -1 of the root.

All trees but `in_order_binary` have root 0; `at_root` rotates the ranks so that another rank is the root.
"""

from __future__ import annotations

import numpy as np

from commlens.algorithms.schedule import Integers


def _ranks(size: int) -> Integers:
    return np.arange(size, dtype=np.int64)


def _rooted(parent: Integers) -> Integers:
    parent[0] = -1
    return parent


def linear(size: int) -> Integers:
    """All ranks are children of the root."""
    return _rooted(np.zeros(size, np.int64))


def chain(size: int, fanout: int) -> Integers:
    """`fanout` chains of consecutive ranks below the root.

    If the ranks do not divide evenly, the first chains are one rank longer.
    """
    rank = _ranks(size)
    parent = rank - 1
    length, longer = divmod(size - 1, fanout)
    index = _ranks(min(fanout, size - 1))
    parent[1 + index * length + np.minimum(index, longer)] = 0  # the heads
    return _rooted(parent)


def pipeline(size: int) -> Integers:
    """One chain."""
    return chain(size, 1)


def binary(size: int) -> Integers:
    """Two children each, counted level by level; the children of a rank are the width of its level apart.

    Hence odd ranks are below rank 1 and even ones below rank 2.
    """
    rank = _ranks(size)
    width = 1 << np.maximum(_highest_bit(rank + 1) - 1, 0)  # of the parent's level
    first = width - 1
    return _rooted(first + (rank - first) % width)


def binomial(size: int) -> Integers:
    """Return the tree in which a rank's parent is the rank without its highest bit: distances double each round."""
    rank = _ranks(size)
    return _rooted(rank - (1 << _highest_bit(np.maximum(rank, 1))))


def in_order_binomial(size: int) -> Integers:
    """Return the tree in which a rank's parent is the rank without its lowest bit: subtrees are consecutive ranks."""
    return knomial(size, 2)


def knomial(size: int, radix: int) -> Integers:
    """Return the tree in which a rank's parent is the rank without its lowest nonzero digit in base `radix`."""
    rank = _ranks(size)
    parent = np.full(size, -1, np.int64)
    power = 1
    while power < size:
        digit = rank // power % radix
        parent = np.where((parent < 0) & (digit > 0), rank - digit * power, parent)
        power *= radix
    return parent


def in_order_binary(size: int) -> Integers:
    """Two children each, and both subtrees are consecutive ranks just below their root, which is the last rank.

    The upper subtree ends right below the root, the lower has half of the ranks, rounded down.
    """
    parent = np.full(size, -1, np.int64)
    todo = [(0, size)]
    while todo:
        low, ranks = todo.pop()
        root, lower = low + ranks - 1, ranks // 2
        for first, number in ((low, lower), (low + lower, ranks - 1 - lower)):
            if ranks > 1 and number > 0:
                parent[first + number - 1] = root
                todo.append((first, number))
    return parent


def at_root(parent: Integers, root: int) -> Integers:
    """Return the tree with its root moved from 0 to `root` and all ranks rotated accordingly."""
    size = len(parent)
    turned = np.where(parent < 0, -1, (parent + root) % size)
    return np.roll(turned, root)


def depth(parent: Integers) -> Integers:
    """Return the messages between the root and each rank.

    Raises
    ------
    ValueError
        It is not a tree: some rank does not lead to the root.
    """
    found = (parent >= 0).astype(np.int64)
    above = parent.copy()  # the ancestor `found` steps up; both double in each iteration
    for _ in range(len(parent).bit_length() + 1):
        below = above >= 0
        if not below.any():
            return found
        found = np.where(below, found + found[above], found)
        above = np.where(below, above[above], -1)
    raise ValueError("the parents of the ranks form a cycle")


def _highest_bit(value: Integers) -> Integers:
    """Return the place of the highest bit that is set; values are below 2^53, where floats are exact."""
    return np.frexp(value.astype(np.float64))[1].astype(np.int64) - 1
