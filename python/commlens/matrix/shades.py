# SPDX-License-Identifier: Apache-2.0
"""Folds a matrix into few cells, and computes the level of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commlens.base.arrays import Flags, Ints
from commlens.matrix.pairs import Pairs
from commlens.render.units import bytes_text

LEAST_SPAN = 2
"""Smallest ratio of the ends of the scale: values that are nearly equal must not look as different as 1 and 1,000."""


@dataclass(frozen=True)
class Cells:
    """A matrix of `size` rows, folded.

    Attributes
    ----------
    values : array of int64, cells x cells
        The sum of the pairs in each cell.
    used : array of bool
        Cells with a communicating pair, even if it has no bytes.
    block : int
        Rows, and columns, in a cell; the last may have fewer.
    """

    values: Ints
    used: Flags
    size: int
    block: int

    @property
    def count(self) -> int:
        """Number of cells per row."""
        return len(self.values)

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest value of a cell that is used."""
        found = self.values[self.used]
        return (int(found.min()), int(found.max())) if len(found) else (0, 0)

    @property
    def scale(self) -> tuple[float, float]:
        """The values at which the lowest level begins and the highest ends; their ratio is LEAST_SPAN at least."""
        low, high = (max(bound, 1) for bound in self.range)
        return min(low, high / LEAST_SPAN), high

    def levels(self, count: int) -> Ints:
        """Return the level of each cell, 1 to `count` on a logarithmic scale; 0 without traffic."""
        low, high = np.log(self.scale)
        at = (np.log(np.maximum(self.values, 1)) - low) / (high - low)
        levels = 1 + np.clip((at * count).astype(np.int64), 0, count - 1)
        return np.where(self.used, levels, 0)


def folded(pairs: Pairs, size: int, most: int, what: str) -> Cells:
    """Return the pairs of `size` rows in at most `most` x `most` cells."""
    least = max(1, -(-size // max(most, 1)))
    # Cells of equal size keep regular patterns visible, even if the cells become slightly larger.
    block = next((block for block in range(least, least + least // 3 + 1) if size % block == 0), least)
    count = max(1, -(-size // block))
    at = (pairs.source // block, pairs.destination // block)
    values = np.zeros((count, count), dtype=np.int64)
    np.add.at(values, at, pairs.values(what))
    used = np.zeros((count, count), dtype=bool)
    used[at] = True
    return Cells(values, used, size, block)


def value_text(what: str, value: float, *, short: bool = False) -> str:
    """Return a value with its unit."""
    if what == "bytes":
        return bytes_text(round(value))
    count = f"{round(value):,}"
    return count if short else f"{count} message{'' if count == '1' else 's'}"
