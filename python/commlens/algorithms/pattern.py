# SPDX-License-Identifier: Apache-2.0
"""The messages and bytes of each pair of ranks: the measurable part of an algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from commlens.algorithms.schedule import Integers, Step

_AT_ONCE = 1 << 20
"""Number of messages summed at once: a ring of thousands of ranks has millions of messages between few pairs."""


_MOST = 1 << 26
_MOST_PER_ROW = 1 << 12


@dataclass
class Budget:
    """Number of messages that schedules may still generate, because a row of a profile may cause any number."""

    left: int

    @classmethod
    def of(cls, rows: int) -> Budget:
        """Return the budget for a profile with so many rows."""
        return cls(_MOST + rows * _MOST_PER_ROW)

    def pairs(
        self, size: int, steps: Iterable[Step], most: tuple[int, int] = (1 << 62, 1 << 62)
    ) -> Pairs | None:
        """Add up the messages of a schedule; None if messages or pairs exceed the limits or the remaining budget."""
        found = Pairs.of_steps_within(size, self._counted(steps), most)
        return found if self.left > 0 else None

    def _counted(self, steps: Iterable[Step]) -> Iterator[Step]:
        for one in steps:
            self.left -= len(one.round)
            if self.left <= 0:
                return
            yield one


@dataclass(frozen=True)
class Pairs:
    """Messages and bytes of each communicating pair, ordered by source and destination."""

    size: int
    source: Integers
    destination: Integers
    messages: Integers
    bytes: Integers

    @classmethod
    def of(
        cls, size: int, source: Integers, destination: Integers, messages: Integers, nbytes: Integers
    ) -> Pairs:
        """Add up the rows of each pair; pairs without messages are left out.

        Raises
        ------
        ValueError
            An invalid rank, or a negative number.
        """
        columns = [np.asarray(column, np.int64) for column in (source, destination, messages, nbytes)]
        ranks = np.concatenate(columns[:2])
        if len({len(column) for column in columns}) > 1:
            raise ValueError("columns of different lengths")
        if len(ranks) and (ranks.min() < 0 or ranks.max() >= size):
            raise ValueError(f"a rank outside 0 to {size - 1}")
        if any((column < 0).any() for column in columns[2:]):
            raise ValueError("a negative number of messages or bytes")
        return cls._added(size, columns[0] * size + columns[1], columns[2], columns[3])

    @classmethod
    def of_steps(cls, size: int, steps: Iterable[Step]) -> Pairs:
        """Add up the messages of a schedule, without keeping them."""
        found = cls.of_steps_within(size, steps, (1 << 62, 1 << 62))
        assert found is not None
        return found

    @classmethod
    def of_steps_within(cls, size: int, steps: Iterable[Step], most: tuple[int, int]) -> Pairs | None:
        """Add up the messages of a schedule; None if messages or pairs exceed the limits."""
        empty = np.zeros(0, np.int64)
        found = cls(size, empty, empty, empty, empty)
        waiting: list[Step] = []
        here, total = 0, 0
        for one in steps:
            waiting.append(one)
            here += len(one.round)
            total += len(one.round)
            if total > most[0]:
                return None
            if here >= _AT_ONCE:
                found, waiting, here = found._with(waiting), [], 0
                if len(found.source) > most[1]:
                    return None
        return found._with(waiting)

    def _with(self, steps: list[Step]) -> Pairs:
        pair = np.concatenate([self.pair, *(one.source * self.size + one.destination for one in steps)])
        messages = np.concatenate([self.messages, *(np.ones(len(one.round), np.int64) for one in steps)])
        nbytes = np.concatenate([self.bytes, *(one.bytes for one in steps)])
        return self._added(self.size, pair, messages, nbytes)

    @classmethod
    def _added(cls, size: int, pair: Integers, messages: Integers, nbytes: Integers) -> Pairs:
        keep = messages > 0
        pair, messages, nbytes = pair[keep], messages[keep], nbytes[keep]
        order = np.argsort(pair, kind="stable")
        pair = pair[order]
        first = np.flatnonzero(np.diff(pair, prepend=-1))
        if not len(pair):
            return cls(size, pair, pair, pair, pair)
        return cls(
            size,
            pair[first] // size,
            pair[first] % size,
            np.add.reduceat(messages[order], first),
            np.add.reduceat(nbytes[order], first),
        )

    @property
    def pair(self) -> Integers:
        """One number for each pair."""
        return self.source * self.size + self.destination

    def times(self, calls: int) -> Pairs:
        """Return the messages of this number of calls."""
        return Pairs(self.size, self.source, self.destination, self.messages * calls, self.bytes * calls)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pairs) and all(
            np.array_equal(one, another)
            for one, another in (
                (self.pair, other.pair),
                (self.messages, other.messages),
                (self.bytes, other.bytes),
            )
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have none


def common(measured: Integers, expected: npt.NDArray[Any], at: Integers, there: Integers) -> float:
    """Return the overlap of measured and expected data over their union, pair by pair; 1 if both are empty.

    `at` and `there` are the pairs of the two, in order.
    """
    place = np.searchsorted(there, at)
    inside = np.minimum(place, max(len(there) - 1, 0))
    known = (there[inside] == at) if len(there) else np.zeros(len(at), bool)
    both = float(np.minimum(measured[known], expected[inside[known]]).sum()) if known.any() else 0.0
    either = float(measured.sum()) + float(expected.sum()) - both
    return both / either if either else 1.0
