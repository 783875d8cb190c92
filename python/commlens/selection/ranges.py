# SPDX-License-Identifier: Apache-2.0
"""Members of a communicator as ranges of world ranks, without numpy."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?", re.ASCII)
Ranges = tuple[range, ...]


def groups(members: str | None, ranks: int) -> tuple[Ranges, ...]:
    """Return the world ranks of each group from the text in table comm; empty for a group with ranks beyond `ranks`.

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
    """Return the number of members."""
    return sum(map(len, ranges))


def holds(ranges: Ranges, rank: int) -> bool:
    """Return whether a world rank is a member."""
    return any(rank in some for some in ranges)


class Group:
    """The members of a group, by their ranks in it."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self._ends = list(accumulate(map(len, ranges)))

    @property
    def size(self) -> int:
        """Number of members; 0: unknown."""
        return self._ends[-1] if self._ends else 0

    def member(self, rank: int) -> int | None:
        """Return the world rank of a rank of the group; None if it has no such rank.

        >>> group = Group((range(8, 15, 2), range(5, 6)))
        >>> group.member(1), group.member(4), group.member(5), Group(()).member(0)
        (10, 5, None, None)
        """
        at = bisect_right(self._ends, rank)
        return self.ranges[at][rank - self._ends[at]] if at < len(self._ends) else None
