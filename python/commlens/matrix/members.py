# SPDX-License-Identifier: Apache-2.0
"""The members of a communicator: ranges of world ranks, which are spelled out only where somebody needs each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from commlens.matrix.pairs import Ints, ints

RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?", re.ASCII)
SPELLED_OUT = 16
"""Communicators whose members are kept: a text of a few bytes may mean a million."""

Ranges = tuple[range, ...]


def groups(members: str | None, ranks: int) -> tuple[Ranges, ...]:
    """Return the world ranks that table comm has as text, of each group; of one with others than `ranks` none.

    >>> groups("0-3, 8-14:2 | 5", 16)
    ((range(0, 4), range(8, 15, 2)), (range(5, 6),))
    >>> groups("0-1099511627775", 16), groups("?, ?", 16)
    (((),), ((),))
    """
    return tuple(_group(text, ranks) for text in members.split("|")) if members else ()


def _group(text: str, ranks: int) -> Ranges:
    found = []
    for token in filter(None, (token.strip() for token in text.split(","))):
        match = RANGE.fullmatch(token)
        if match is None:
            return ()  # a process of another world
        low, high, stride = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if not (low <= high < ranks and stride):
            return ()
        found.append(range(low, high + 1, stride))
    return tuple(found)


def size_of(ranges: Ranges) -> int:
    """Return how many there are."""
    return sum(map(len, ranges))


def holds(ranges: Ranges, rank: int) -> bool:
    """Return whether a world rank is one of them."""
    return any(rank in some for some in ranges)


@lru_cache(SPELLED_OUT)
def spelled_out(ranges: Ranges) -> Ints:
    """Return all of them, in their order."""
    parts = [np.arange(some.start, some.stop, some.step, dtype=np.int64) for some in ranges]
    return np.concatenate(parts) if parts else ints()


def marked(ranges: Sequence[Ranges], ranks: int) -> Ints:
    """Return the world ranks that are in one of several groups, rising."""
    is_in = np.zeros(ranks, dtype=bool)
    for group in ranges:
        for some in group:
            is_in[some.start : some.stop : some.step] = True
    return np.flatnonzero(is_in).astype(np.int64)
