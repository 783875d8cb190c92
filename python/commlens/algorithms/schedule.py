# SPDX-License-Identifier: Apache-2.0
"""Describes a collective call, and the messages that an algorithm sends for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
"""Ranks, bytes, counts: whole numbers, exact."""
NOT_ONE_RANGE = -1
"""Offset of a message whose content is not one range of the data."""


@dataclass(frozen=True)
class Call:
    """The properties of a collective call on which its messages depend.

    Attributes
    ----------
    size : ranks in the communicator
    block : bytes; of the whole buffer (bcast, reduce, allreduce, scan, exscan), of each rank's part (gather,
        scatter, allgather, reduce_scatter), of each pair of ranks (alltoall).  Where parts differ,
        one number for each rank, or for alltoall size × size of them, row by row.
    root : rank; only of rooted collectives
    element : bytes of one element of the datatype: data is never cut inside one
    segment : bytes; size of the pieces in which long buffers are sent, 0 for no pieces
    fanout : chains of a "chain"
    radix : base of "knomial" trees and of Bruck's exchange
    commutative : whether the operation of a reduction is
    nodes : for hierarchical algorithms, the node of each rank
    """

    size: int
    block: int | Sequence[int] | Integers = 0
    root: int = 0
    element: int = 1
    segment: int = 0
    fanout: int = 4
    radix: int = 2
    commutative: bool = True
    nodes: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"a communicator of {self.size} ranks")
        if not 0 <= self.root < self.size:
            raise ValueError(f"root {self.root} of {self.size} ranks")
        if self.element < 1 or self.segment < 0 or self.fanout < 1 or self.radix < 2:
            raise ValueError(f"invalid parameters: {self}")

    def but(self, **changes: Any) -> Call:
        """Return the same call with other parameters."""
        return replace(self, **changes)

    @property
    def ranks(self) -> Integers:
        """All ranks, in order."""
        return np.arange(self.size, dtype=np.int64)

    @property
    def bytes(self) -> int:
        """Bytes of the buffer, for collectives in which it is equal on all ranks."""
        return int(self.block)  # type: ignore[arg-type]  # a sequence is an error of the caller

    @property
    def count(self) -> int:
        """Elements of that buffer; a part of one, which no MPI call has, counts as one."""
        return -(-self.bytes // self.element)

    @property
    def parts(self) -> Integers:
        """Bytes of every rank's part."""
        return np.broadcast_to(np.asarray(self.block, dtype=np.int64), (self.size,))

    @property
    def matrix(self) -> Integers:
        """Bytes from every rank to every rank."""
        block = np.asarray(self.block, dtype=np.int64)
        return np.broadcast_to(
            block if block.ndim == 0 else block.reshape(self.size, self.size), (self.size,) * 2
        )

    @property
    def segment_count(self) -> int:
        """Elements of one segment; the segment size is rounded to whole elements, half an element down."""
        if not self.element <= self.segment < self.bytes:
            return self.count
        whole, rest = divmod(self.segment, self.element)
        return whole + (rest > self.element // 2)


class Step(NamedTuple):
    """Messages, one per element of the arrays.

    A message of round k does not depend on messages of round k or later.  `offset` is the position of its bytes in the
    data: in the buffer, or in all parts one after another.  Past the end it wraps to 0.
    """

    round: Integers
    source: Integers
    destination: Integers
    bytes: Integers
    offset: Integers


Steps = Iterator[Step]


def step(
    round: npt.ArrayLike,
    source: npt.ArrayLike,
    destination: npt.ArrayLike,
    nbytes: npt.ArrayLike = 0,
    offset: npt.ArrayLike = NOT_ONE_RANGE,
    where: npt.ArrayLike = True,
) -> Step:
    """Return messages from lists of equal length and numbers that apply to all.

    `where` is false for messages that are not sent.
    """
    *columns, sent = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(x, dtype=np.int64)) for x in (round, source, destination, nbytes, offset)),
        np.asarray(where, dtype=bool),
    )
    if sent.all():
        return Step(*columns)
    return Step(*(column[sent] for column in columns))


def after(steps: Iterable[Step], previous: Iterable[Step] = ()) -> Steps:
    """Yield `previous`, then `steps` in later rounds."""
    rounds = 0
    for one in previous:
        rounds = max(rounds, int(one.round.max(initial=-1)) + 1)
        yield one
    for one in steps:
        yield one._replace(round=one.round + rounds)


def renamed(steps: Iterable[Step], ranks: Integers, same_data: bool) -> Steps:
    """Yield the messages of a part of a communicator with the ranks of the whole communicator.

    With `same_data`, offsets refer to the data of the whole communicator.
    """
    for one in steps:
        offset = one.offset if same_data else np.full_like(one.offset, NOT_ONE_RANGE)
        yield one._replace(source=ranks[one.source], destination=ranks[one.destination], offset=offset)


@dataclass(frozen=True)
class Schedule:
    """All messages of one call, in the order of their rounds; ranks are those of the communicator."""

    size: int
    round: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    destination: npt.NDArray[np.int32]
    bytes: Integers
    offset: Integers

    @classmethod
    def of(cls, size: int, steps: Iterable[Step]) -> Schedule:
        """Collect the messages."""
        all_steps = list(steps)
        kinds = (np.int32, np.int32, np.int32, np.int64, np.int64)
        columns = [
            np.concatenate([np.zeros(0, kind), *(one[i].astype(kind) for one in all_steps)])
            for i, kind in enumerate(kinds)
        ]
        order = np.argsort(columns[0], kind="stable")
        return cls(size, *(column[order] for column in columns))

    def __len__(self) -> int:
        return len(self.round)

    @property
    def rounds(self) -> int:
        """Number of rounds if the messages of one round are sent concurrently."""
        return int(self.round.max(initial=-1)) + 1


def starts(parts: Integers) -> Integers:
    """Return the offset of each part, and the end of the last."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(parts, dtype=np.int64)])


def cyclic_bytes(parts: Integers, first: Integers, number: npt.ArrayLike) -> Integers:
    """Return the bytes of `number` parts from `first` on, cyclically."""
    at = starts(parts)
    size = len(parts)
    end = np.asarray(first, np.int64) + np.asarray(number, np.int64)
    total: Integers = at[end % size] + (end // size) * at[size] - at[np.asarray(first, np.int64)]
    return total


def even_parts(count: int, number: int) -> Integers:
    """Return `count` divided into parts; if it does not divide evenly, the first parts are longer by one."""
    whole, more = divmod(count, number)
    return np.where(np.arange(number) < more, whole + 1, whole).astype(np.int64)


def power_of_two(size: int) -> int:
    """Return the largest power of two that is no more than `size`."""
    return 1 << (size.bit_length() - 1)


def is_power_of_two(size: int) -> bool:
    """Whether `size` is a power of two."""
    return size & (size - 1) == 0


def powers(size: int, base: int = 2) -> list[int]:
    """Return 1, base, base² and so on, below `size`."""
    found, power = [], 1
    while power < size:
        found.append(power)
        power *= base
    return found
