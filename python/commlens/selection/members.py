# SPDX-License-Identifier: Apache-2.0
"""Communicators and their members, as ranges of world ranks that are expanded only on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from commlens.base.arrays import Ints, ints
from commlens.selection.conditions import predefined_name
from commlens.selection.ranges import Ranges, groups, holds, size_of

SPELLED_OUT = 16
"""Number of communicators whose members are cached: a text of a few bytes may stand for a million members."""


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
