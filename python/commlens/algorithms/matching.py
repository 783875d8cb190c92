# SPDX-License-Identifier: Apache-2.0
"""Finds the algorithm that produced the measured messages.

`match` simulates every algorithm of the collective, with the parameters and roots that the measured messages allow, and
compares the messages pair by pair.

The fit of a candidate is the share of messages, or of bytes if that is less, that measurement and schedule have in
common: their intersection divided by their union, both summed over all pairs of ranks.  1 means that every pair
exchanged exactly these messages and bytes; 0.95 means that a twentieth is missing or in excess.  A candidate with a fit
below LEAST is rejected; without candidates the algorithm is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from commlens.algorithms.pattern import Budget, Pairs, common
from commlens.algorithms.registry import BUFFER, ROOTED, UNEVEN, Algorithm, algorithms, compositions
from commlens.algorithms.schedule import Call, Integers

Floats = npt.NDArray[np.float64]

LEAST = 0.95
"""Minimum fit of a named candidate."""
_ALIKE = 1e-9
"""Fits that differ by less are equal: the difference is rounding."""
_ALL_ROOTS = 64
"""Largest number of ranks for which each rank is tried as root of some calls."""
_LIKELY_ROOTS = 16
"""Number of ranks tried if there are more."""
_ONE_ROOT = 4
"""Number of ranks tried as the only root."""
_NEARLY = 0.8
"""Minimum fit of messages for trying element sizes."""
_ELEMENTS = (8, 4, 16, 2)
"""Element sizes to try besides 1, in bytes."""
_FANOUTS, _RADICES = (2, 3, 4), range(3, 9)


@dataclass(frozen=True)
class Measured:
    """The messages sent inside the calls of one collective on one communicator.

    Attributes
    ----------
    collective : such as "bcast"
    calls : number of calls
    pairs : messages and bytes of all calls, by rank of the communicator
    block : bytes of each call as `Call.block` counts them, one number per part if parts differ; or a range [low, high),
        or None if unknown
    sizes : messages by size, of all pairs: bin 0 empty, bin k of 2^(k-1) bytes and more; narrows the size of segments
    roots : the ranks that were root, for rooted collectives; None if unknown
    posted : how all messages of a blocking collective were posted: isend, send or start; empty if unknown or different
    """

    collective: str
    calls: int
    pairs: Pairs
    block: int | Integers | tuple[int, int] | None = None
    sizes: Integers | None = None
    roots: Sequence[int] | None = None
    posted: str = ""
    budget: Budget = field(default_factory=lambda: Budget.of(0), compare=False)

    @property
    def is_exact(self) -> bool:
        """Whether the bytes of each call are known, and bytes can be compared as they are."""
        return isinstance(self.block, (int, np.ndarray))


@dataclass(frozen=True)
class Candidate:
    """An algorithm that may have produced the messages.

    Attributes
    ----------
    parameters : those that the algorithm has and the messages determine: "segments" and the "segment" sizes in bytes that
        give this number, "fanout", "radix", and the "element" size in bytes at which data was cut
    roots : number of calls per root; empty for collectives without root
    tree : the parent of each rank, -1 for the root; None if there was more than one root, or if it is no tree
    fit : 0 to 1, as described at the top of this module
    fit_messages, fit_bytes : fit by messages and by bytes; `fit` is the lower one.  fit_bytes is 1 if not compared
    """

    algorithm: Algorithm
    parameters: dict[str, Any]
    roots: dict[int, int]
    tree: Integers | None = field(repr=False)
    fit_messages: float
    fit_bytes: float

    @property
    def fit(self) -> float:
        """The lower one of the two fits."""
        return min(self.fit_messages, self.fit_bytes)

    @property
    def name(self) -> str:
        """The algorithm with its parameters, such as "chain (fanout 4)"."""
        said = [f"{key} {value}" for key, value in self.parameters.items() if key in ("fanout", "radix")]
        return f"{self.algorithm.name} ({', '.join(said)})" if said else self.algorithm.name


@dataclass(frozen=True)
class Match:
    """All candidates, the best first."""

    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> tuple[Candidate, ...]:
        """The candidates that fit best, if well enough; several if they send the same messages."""
        if not self.candidates or self.candidates[0].fit < LEAST:
            return ()
        return tuple(one for one in self.candidates if one.fit >= self.candidates[0].fit - _ALIKE)

    @property
    def verdict(self) -> str:
        """The name, "unknown", or "ambiguous: A or B"."""
        names = list(dict.fromkeys(one.name for one in self.best))
        if not names:
            return "unknown"
        return names[0] if len(names) == 1 else f"ambiguous: {' or '.join(names)}"


def match(measured: Measured, nodes: Sequence[int] | None = None) -> Match:
    """Compare the measured messages with every algorithm of the collective.

    `nodes` is the node of each rank; hierarchical algorithms are tried only with it.
    """
    pairs = measured.pairs
    if not len(pairs.pair) or measured.calls < 1:
        return Match(())
    # Each rank takes part, unless its share is empty: far fewer pairs than ranks cannot be an algorithm.
    if measured.collective not in UNEVEN and 2 * len(pairs.pair) < pairs.size - 1:
        return Match(())
    found = [
        candidate
        for one in algorithms(measured.collective)
        if nodes is not None or "nodes" not in one.uses
        for candidate in [_best(one, measured, nodes)]
        if candidate is not None
    ]
    # With many ranks, compositions take long to try, and do not equal another algorithm by chance.
    if measured.pairs.size <= _ALL_ROOTS or all(candidate.fit < 1 - _ALIKE for candidate in found):
        made_of_two = (_best(one, measured, nodes) for one in compositions(measured.collective))
        found += [candidate for candidate in made_of_two if candidate is not None]
    ordered = sorted(found, key=lambda one: (-one.fit, "+" in one.name, len(one.parameters)))
    return Match(tuple(_told_apart(ordered, measured.posted)))


def _told_apart(candidates: list[Candidate], posted: str) -> list[Candidate]:
    """Return the candidates without those that fit best and that the way of posting excludes."""
    if not candidates:
        return []
    best = [one for one in candidates if one.fit >= candidates[0].fit - _ALIKE]
    fitting = [one for one in best if one.algorithm.posted in ("", posted)]
    if posted and fitting:
        best = fitting
    names = {one.algorithm.name for one in best}
    best = [one for one in best if one.algorithm.same_as not in names]
    return best + [one for one in candidates if one.fit < candidates[0].fit - _ALIKE]


def _best(one: Algorithm, measured: Measured, nodes: Sequence[int] | None) -> Candidate | None:
    """Return the parameters and roots with which the algorithm fits best."""
    best: Candidate | None = None
    for call in _calls(one, measured, nodes):
        candidate = _Trial(one, measured, call).candidate()
        if candidate is not None and candidate.fit < 1 - _ALIKE and candidate.fit_messages > _NEARLY:
            # The data may be cut at elements of several bytes, which hardly changes the number of messages.
            for element in _elements(measured):
                other = _Trial(one, measured, call.but(element=element)).candidate()
                if other is not None and other.fit > candidate.fit + _ALIKE:
                    candidate = other
        if candidate is not None and (best is None or candidate.fit > best.fit + _ALIKE):
            best = candidate
        if best is not None and best.fit > 1 - _ALIKE:
            break
    return best


def _calls(one: Algorithm, measured: Measured, nodes: Sequence[int] | None) -> Iterator[Call]:
    """Yield calls with the possible parameters, except those for which the algorithm equals another one."""
    size = measured.pairs.size
    plain = Call(size, nodes=nodes)
    if "+" in one.name:
        yield plain
    elif "fanout" in one.uses:
        children = np.bincount(np.unique(measured.pairs.pair) // size, minlength=size).max()
        yield from (plain.but(fanout=n) for n in sorted({*_FANOUTS, int(children)}) if 1 < n < size - 1)
    elif "radix" in one.uses:
        from_two = one.collective not in ("bcast", "reduce")  # radix 2 is their binomial tree
        yield from (plain.but(radix=n) for n in ((2,) if from_two else ()))
        # With radix size-1 it is the linear algorithm.
        yield from (plain.but(radix=n) for n in _RADICES if n < size - 1)
    else:
        yield plain


def _elements(measured: Measured) -> Iterator[int]:
    """Yield the possible element sizes of a call's data."""
    if measured.collective in BUFFER:
        block = measured.block
        yield from (one for one in _ELEMENTS if not isinstance(block, int) or block % one == 0)


def _parts_unknown(measured: Measured) -> bool:
    return measured.collective in UNEVEN and not measured.is_exact


def _shares(table: Floats, seen: Floats, calls: int) -> Integers | None:
    """Return how many of the calls make up what was seen, by column of the table; None if no numbers do.

    The numbers add up to the calls even if the columns differ from what was seen, as with data that is cut at elements of
    another size.
    """
    weight = 10.0 / calls  # of the sum, against shares of the data
    sums = np.vstack([table, np.full(table.shape[1], weight)])
    share, *_ = np.linalg.lstsq(sums, np.append(seen, weight * calls), rcond=None)
    share = np.maximum(share, 0.0)
    number: Integers = np.floor(share + 1e-6).astype(np.int64)
    missing = calls - int(number.sum())
    if not 0 <= missing <= len(number):
        return None
    number[np.argsort(number - share, kind="stable")[:missing]] += 1
    return number


class _Trial:
    """One algorithm with one set of parameters."""

    def __init__(self, one: Algorithm, measured: Measured, call: Call) -> None:
        self.one, self.measured, self.call = one, measured, call
        self.size = call.size
        # A schedule with more messages has less than half in common with the measurement.  A schedule with many pairs that
        # did not communicate is abandoned, too.
        messages = 2 * int(measured.pairs.messages.sum()) // measured.calls + 2 * self.size
        self.most = (messages, 4 * len(measured.pairs.source) + 4 * self.size)
        self.messages_factor = 1.0
        self.bytes_factor = 1.0

    def candidate(self) -> Candidate | None:
        """Return the candidate with its fit, or None if the algorithm is not defined for such calls."""
        block = self._block()
        if block is None:
            return None
        self.call = self.call.but(block=block)
        segments = self._segments(block)
        if not self.one.needs(self.call):
            return None
        roots = self._roots()
        if roots is None:
            return None
        expected = self._expected(roots)
        measured = self.measured.pairs
        total = float(expected.bytes.sum())
        if not self.measured.is_exact and total:
            self.bytes_factor = float(measured.bytes.sum()) / total
        fits = [
            common(mine, theirs * factor, measured.pair, expected.pair)
            for mine, theirs, factor in (
                (measured.messages, expected.messages, self.messages_factor),
                (measured.bytes, expected.bytes, self.bytes_factor),
            )
        ]
        if _parts_unknown(self.measured):
            fits[1] = 1.0
        parameters = {
            **segments,
            **({"element": self.call.element} if self.call.element > 1 else {}),
            **(
                {"fanout": self.call.fanout} if "fanout" in self.one.uses and "+" not in self.one.name else {}
            ),
            **({"radix": self.call.radix} if "radix" in self.one.uses and "+" not in self.one.name else {}),
        }
        tree = None
        if self.one.tree is not None and len(roots) == 1:
            tree = self.one.tree(self.call.but(root=next(iter(roots))))
        has_root = self.measured.collective in ROOTED
        return Candidate(self.one, parameters, roots if has_root else {}, tree, fits[0], fits[1])

    def _pairs(self, call: Call) -> Pairs | None:
        if not self.one.needs(call):
            return None
        return self.measured.budget.pairs(self.size, self.one.steps(call), self.most)

    def _block(self) -> int | Integers | None:
        """Return the bytes of a call: as measured, or such that the total is equal to the measured one."""
        block = self.measured.block
        if isinstance(block, (int, np.ndarray)):
            return block
        least, most = block if block is not None else (0, 1 << 62)
        each = float(self.measured.pairs.bytes.sum()) / self.measured.calls
        guess = max(least, int(each) // max(1, self.size - 1), 1) if each else 0
        if block is not None:
            guess = min(guess, most - 1)
        for _ in range(3):
            pairs = self._pairs(self.call.but(block=guess))
            if pairs is None:
                return None
            total = float(pairs.bytes.sum())
            if total == 0:
                break
            better = min(max(round(guess * each / total), least), most - 1)
            if better == guess:
                break
            guess = better
        return guess

    def _segments(self, block: int | Integers) -> dict[str, Any]:
        """Set the segment size so that the number of messages is as measured; return its known values."""
        if "segment" not in self.one.uses or "+" in self.one.name:
            return {}
        if self.measured.collective not in BUFFER or isinstance(block, np.ndarray):
            return {}
        each = float(self.measured.pairs.messages.sum()) / self.measured.calls
        size = self.size
        halves = 1
        if self.one.name == "split_binary":
            halves = 2
            number = (each - (size - 2 if size % 2 == 0 else size - 1) - (size % 2 == 0)) / (size - 1)
        elif self.one.name == "segmented_ring":
            halves = size
            number = each / (size * (size - 1)) - 1
        elif self.one.name == "in_order_binary":
            # The root of the tree is the last rank; it sends the complete result.
            result = self.measured.pairs.messages[self.measured.pairs.source == size - 1].sum()
            number = (each - float(result) / self.measured.calls) / (size - 1)
        else:
            number = each / (size - 1)
        whole = round(number)
        most = -(-block // halves)
        if whole <= 1 or most < whole:
            return {}
        if abs(number - whole) < _ALIKE and isinstance(self.measured.block, int):
            least, below = -(-most // whole), -(-most // (whole - 1))
            if self.one.name == "segmented_ring":  # its phases are rounded to the nearest number
                least, below = (
                    -(-2 * block // (size * (2 * whole + 1))),
                    -(-2 * block // (size * (2 * whole - 1))),
                )
            if self.measured.sizes is not None and self._shows_its_root():
                largest = int(
                    np.flatnonzero(self.measured.sizes).max(initial=0)
                )  # full segments are in that bin
                least, below = max(least, 1 << largest >> 1), min(below, 1 << largest)
            if least < below:
                two = 1 << (below - 1).bit_length() - 1  # the highest power of two that may be in the range
                self.call = self.call.but(segment=two if least <= two < below else least)
                return {"segments": whole, "segment": (least, below - 1)}
        if self.one.tree is not None:  # all its messages have the same segments
            self.messages_factor = number
            return {"segments": number}
        return {}

    def _expected(self, roots: dict[int, int]) -> Pairs:
        """Return the messages of all calls, given the number of calls per root."""
        found = [
            pairs.times(calls)
            for root, calls in roots.items()
            for pairs in [self._pairs(self.call.but(root=root))]
            if pairs is not None
        ]
        return Pairs.of(
            self.size,
            np.concatenate([one.source for one in found]),
            np.concatenate([one.destination for one in found]),
            np.concatenate([one.messages for one in found]),
            np.concatenate([one.bytes for one in found]),
        )

    def _roots(self) -> dict[int, int] | None:
        """Return an estimate of the number of calls per root; None if there are too many messages."""
        calls = self.measured.calls
        if self.measured.collective not in ROOTED:
            return {0: calls} if self._pairs(self.call) is not None else None
        few = self._likely_roots()
        found = self._roots_among(few[:_ONE_ROOT])
        if found is None or found[1] < _ALIKE or (calls == 1 and self._shows_its_root()):
            return found and found[0]
        expected = float(self._expected({few[0]: calls}).messages.sum()) * self.messages_factor
        if abs(expected / float(self.measured.pairs.messages.sum()) - 1) > 0.5:
            return found[0]  # other roots differ by single messages, which cannot make the algorithm fit
        found = self._roots_among(
            few if self.measured.roots or self.size > _ALL_ROOTS else list(range(self.size))
        )
        return found and found[0]

    def _shows_its_root(self) -> bool:
        """Whether the only root receives nothing or, if data flows to the root, sends nothing."""
        return self.one.tree is not None and self.one.name != "in_order_binary"

    def _roots_among(self, likely: list[int]) -> tuple[dict[int, int], float] | None:
        """Return the number of calls for each of some roots, and the distance from the measurement."""
        calls = self.measured.calls
        profiles = {}
        for root in likely:
            pairs = self._pairs(self.call.but(root=root))
            if pairs is None:
                return None
            profiles[root] = self._profile(pairs, self.messages_factor)
        seen = self._profile(self.measured.pairs)
        distance = {root: float(np.abs(calls * profile - seen).sum()) for root, profile in profiles.items()}
        single = min(distance, key=lambda root: distance[root])
        best = ({single: calls}, distance[single])
        if calls == 1 or distance[single] < _ALIKE:
            return best
        table = np.stack([profiles[root] for root in likely], axis=1)
        number = _shares(table, seen, calls)
        if number is None:
            return best
        several = {root: int(n) for root, n in zip(likely, number) if n > 0}
        off = float(np.abs(table @ number - seen).sum())
        return (several, off) if off < distance[single] else best

    def _profile(self, pairs: Pairs, factor: float = 1.0) -> Floats:
        """Return the shares of the measured data that each rank sends and receives, and projections of the pairs.

        A projection is a sum over all pairs with arbitrary weights.  It distinguishes two roots with which each rank sends
        and receives the same amounts.
        """
        columns = []
        measured = self.measured.pairs
        for what, all_of, times in (
            (pairs.messages, measured.messages, factor),
            (pairs.bytes, measured.bytes, 1.0),
        ):
            scale = times / max(float(all_of.sum()), 1.0)
            for rank in (pairs.source, pairs.destination):
                columns.append(np.bincount(rank, weights=what, minlength=self.size) * scale)
            for odd in (2654435761, 2246822519):
                columns.append(np.array([float((what * (pairs.pair * odd % 65521)).sum()) / 65521 * scale]))
        return np.concatenate(columns)

    def _likely_roots(self) -> list[int]:
        """Return the roots if known, else candidate ranks.

        The candidates are ordered by the bytes received or, if data flows to the root, by the bytes sent.
        """
        known = self.measured.roots
        if known is not None and 0 < len(known) <= _ALL_ROOTS:
            return sorted(known)
        pairs = self.measured.pairs
        to_root = self.measured.collective in ("reduce", "gather", "gatherv")
        rank = pairs.source if to_root else pairs.destination
        nbytes, messages = (
            np.bincount(rank, weights=what, minlength=self.size) for what in (pairs.bytes, pairs.messages)
        )
        return [int(one) for one in np.lexsort((messages, nbytes))[:_LIKELY_ROOTS]]
