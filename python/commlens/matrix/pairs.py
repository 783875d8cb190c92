# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices: arrays with one element for each communicating pair."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from commlens.base.arrays import Flags, Ints, ints


@dataclass(frozen=True)
class Pairs:
    """Messages and bytes from each source to each destination.

    Each pair occurs once, ordered by source and destination.

    Attributes
    ----------
    source, destination : arrays of int64
        Numbers from 0 on: world ranks, or the groups of ranks.
    messages, bytes : arrays of int64
        Of each pair; at least one message.
    """

    source: Ints
    destination: Ints
    messages: Ints
    bytes: Ints

    @classmethod
    def summed(cls, source: Ints, destination: Ints, messages: Ints, bytes: Ints) -> Pairs:
        """Return the pairs of rows in any order, adding up repeated pairs."""
        if not len(source):
            return cls(ints(), ints(), ints(), ints())
        order = np.lexsort((destination, source))
        source, destination = source[order], destination[order]
        differs = (source[1:] != source[:-1]) | (destination[1:] != destination[:-1])
        first = np.flatnonzero(np.concatenate(([True], differs)))
        return cls(
            source[first],
            destination[first],
            np.add.reduceat(messages[order], first),
            np.add.reduceat(bytes[order], first),
        )

    @classmethod
    def joined(cls, parts: Iterable[Pairs]) -> Pairs:
        """Return the sum of several."""
        parts = [NOBODY, *parts]
        return cls.summed(
            np.concatenate([part.source for part in parts]),
            np.concatenate([part.destination for part in parts]),
            np.concatenate([part.messages for part in parts]),
            np.concatenate([part.bytes for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.source)

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """Sources and destinations."""
        return self.source, self.destination

    def values(self, what: str) -> Ints:
        """Return the messages or the bytes."""
        return self.messages if what == "messages" else self.bytes

    def total(self, what: str) -> int:
        """Return the sum of all pairs."""
        return int(self.values(what).sum())

    def chosen(self, which: Flags | Ints) -> Pairs:
        """Return the selected pairs in the given order."""
        return Pairs(self.source[which], self.destination[which], self.messages[which], self.bytes[which])

    def renumbered(self, numbers: Ints) -> Pairs:
        """Return the pairs with `numbers[i]` for i; those with a number below 0 are left out."""
        source, destination = numbers[self.source], numbers[self.destination]
        kept = (source >= 0) & (destination >= 0)
        return Pairs.summed(source[kept], destination[kept], self.messages[kept], self.bytes[kept])

    def codes(self, size: int) -> Ints:
        """Return one number for each pair, ascending; all sources and destinations are below `size`."""
        return self.source * size + self.destination


NOBODY = Pairs(ints(), ints(), ints(), ints())
