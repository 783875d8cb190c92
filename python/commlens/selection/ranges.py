# SPDX-License-Identifier: Apache-2.0
"""Members of a communicator as ranges of world ranks, without numpy."""

from __future__ import annotations

import re

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


def member(ranges: Ranges, rank: int) -> int | None:
    """Return the world rank of a rank of the group; None if it has no such rank.

    >>> member((range(8, 15, 2), range(5, 6)), 1), member((range(8, 15, 2), range(5, 6)), 4), member((), 0)
    (10, 5, None)
    """
    for some in ranges:
        if rank < len(some):
            return some[rank]
        rank -= len(some)
    return None


def remote_group(of: tuple[Ranges, ...], rank: int) -> Ranges:
    """Return the group whose ranks a member names in its messages: of an intercommunicator the other one."""
    if len(of) == 2:
        return of[1 if holds(of[0], rank) else 0]
    return of[0] if of else ()
