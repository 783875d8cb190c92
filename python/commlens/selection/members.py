# SPDX-License-Identifier: Apache-2.0
"""Communicators and their members, as ranges of world ranks that are expanded only on demand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from commlens.base.arrays import Ints, ints
from commlens.selection.conditions import predefined_name

RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?", re.ASCII)
SPELLED_OUT = 16
"""Number of communicators whose members are cached: a text of a few bytes may stand for a million members."""

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


@lru_cache(SPELLED_OUT)
def spelled_out(ranges: Ranges) -> Ints:
    """Return all members, in their order."""
    parts = [np.arange(some.start, some.stop, some.step, dtype=np.int64) for some in ranges]
    return np.concatenate(parts) if parts else ints()


def marked(ranges: Sequence[Ranges], ranks: int) -> Ints:
    """Return the world ranks that are in one of several groups, ascending."""
    is_in = np.zeros(ranks, dtype=bool)
    for group in ranges:
        for some in group:
            is_in[some.start : some.stop : some.step] = True
    return np.flatnonzero(is_in).astype(np.int64)


@dataclass(frozen=True)
class Comm:
    """A communicator: its name, topology, and the world ranks of its ranks; two groups for an intercommunicator.

    Attributes
    ----------
    predefined : str or None
        Its name in MPI, if it is a predefined one.
    """

    id: int
    name: str
    topology: str | None
    groups: tuple[Ranges, ...]
    predefined: str | None = None

    @property
    def label(self) -> str:
        """Its name, and that in MPI of a predefined one."""
        return f"{self.name} {self.predefined}" if self.predefined else self.name

    @property
    def members(self) -> Ints:
        """World ranks in the order of its ranks; empty for an intercommunicator, or if unknown."""
        return spelled_out(self.groups[0]) if len(self.groups) == 1 else ints()

    @property
    def size(self) -> int:
        """Number of members; 0 for an intercommunicator, or if unknown."""
        return size_of(self.groups[0]) if len(self.groups) == 1 else 0

    def facing(self, rank: int) -> Ints:
        """Return the world ranks that a member can send messages to, in the order of their ranks."""
        if len(self.groups) == 2:
            return spelled_out(self.groups[1 if holds(self.groups[0], rank) else 0])
        return self.members


def comm_of(row: Any, ranks: int) -> Comm:
    """Return a communicator of some of `ranks` processes.

    If its row stands for several, or a member is unknown, all ranks are unknown.
    """
    found = groups(row["members"], ranks)
    sizes = [size_of(group) for group in found]
    wanted = [row["size"], *([] if row["remote_size"] is None else [row["remote_size"]])]
    # The members of an intercommunicator in another world are unknown.
    is_whole = row["communicators"] == 1 and len(sizes) == len(wanted)
    is_whole = is_whole and all(known in (size, 0) for size, known in zip(wanted, sizes))
    predefined = predefined_name(
        {"communicator": row["name"], "kind": row["kind"], "creator": row["creator"]}
    )
    return Comm(row["id"], row["name"], row["topology"], found if is_whole else (), predefined)
