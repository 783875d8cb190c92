# SPDX-License-Identifier: Apache-2.0
"""Message sizes: converts ranges and buckets of the user to size bins of the profile.

A profile stores sizes in bins of powers of two.  So every bound must be 0 or a power of two.  Other bounds could not be
answered exactly: they are refused, and the error names the nearest valid bounds.
"""

from __future__ import annotations

import re
from typing import NamedTuple

FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
PRESETS = {
    "mpisee": (128, 1024, 8192, 65536, 262144, 1048576, 33554432),
}
LARGEST_BIN = 63
NULL_BIN = -2
"""The bin of calls to MPI_PROC_NULL."""


def parse_size(text: str) -> int:
    """Return a number of bytes: digits and an optional K, M, G or T (powers of 1024).

    Raises
    ------
    ValueError
        `text` is not a size, or not a bound of bins.
    """
    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise ValueError(f"'{text}' is not a size in bytes")
    size = int(match[1]) * FACTORS[match[2].upper()]
    if size & (size - 1):
        below = 1 << (size.bit_length() - 1)
        raise ValueError(
            f"{size} is not a power of two; profiles store sizes by powers of two, use {below} or {2 * below}"
        )
    if size > 1 << LARGEST_BIN:
        raise ValueError(f"{text} is larger than any message")
    return size


def first_bin(bound: int) -> int:
    """Return the lowest bin with sizes of at least `bound`, which is 0 or a power of two."""
    return bound.bit_length()


class BinRange(NamedTuple):
    """The bins of all sizes from a lower bound to below an upper bound."""

    first: int
    last: int

    def sql(self) -> str:
        """Return the condition on key.bin."""
        return f"key.bin BETWEEN {self.first} AND {self.last}"

    @property
    def bounds(self) -> tuple[int, int | None]:
        """Smallest and largest size in bytes, both included; None without upper bound.

        >>> BinRange(0, 10).bounds, BinRange(11, LARGEST_BIN).bounds
        ((0, 1023), (1024, None))
        """
        low = 1 << (self.first - 1) if self.first else 0
        return low, None if self.last == LARGEST_BIN else (1 << self.last) - 1


def parse_range(text: str) -> BinRange:
    """Return the bins of LOW:HIGH; HIGH is exclusive.

    Raises
    ------
    ValueError
        `text` is not a range.
    """
    low_text, colon, high_text = text.partition(":")
    if not colon:
        raise ValueError(f"'{text}' is not a range LOW:HIGH")
    first = first_bin(parse_size(low_text)) if low_text.strip() else 0
    last = first_bin(parse_size(high_text)) - 1 if high_text.strip() else LARGEST_BIN
    if last < first:
        raise ValueError(f"'{text}' is an empty range: it includes the lower bound and excludes the upper")
    return BinRange(first, last)


class Buckets(NamedTuple):
    """The grouping of bins: each separately, all in one, or between bounds.

    The SQL below uses the columns `bin` (of a key), `bucket` and, once keys are grouped, `bin_low` and
    `bin_high`, the lowest and highest bin of a group that names a size.
    """

    kind: str
    bounds: tuple[int, ...] = ()

    def bucket_sql(self) -> str:
        """Return the expression for the bucket of key.bin."""
        if self.kind == "log2":
            return "key.bin"
        if self.kind == "all":
            return f"CASE WHEN key.bin = {NULL_BIN} THEN {NULL_BIN} ELSE 0 END"
        cases = " ".join(f"WHEN key.bin < {first_bin(b)} THEN {i}" for i, b in enumerate(self.bounds))
        return f"CASE WHEN key.bin < 0 THEN key.bin {cases} ELSE {len(self.bounds)} END"

    def low_sql(self) -> str:
        """Return the expression for the smallest size of a bucket."""
        if self.kind != "bounds":
            return "CASE WHEN bin_low > 0 THEN 1 << (bin_low - 1) WHEN bin_low = 0 THEN 0 END"
        cases = " ".join(f"WHEN {i} THEN {b}" for i, b in enumerate((0, *self.bounds)))
        return f"CASE bucket {cases} END"

    def high_sql(self) -> str:
        """Return the expression for the largest size of a bucket; NULL if it is unbounded."""
        if self.kind != "bounds":
            return "~(-1 << bin_high)"
        cases = " ".join(f"WHEN {i} THEN {b - 1}" for i, b in enumerate(self.bounds))
        return f"CASE bucket {cases} END"


def parse_buckets(text: str) -> Buckets:
    """Return the buckets for `log2`, `all`, the name of a preset, or a list of bounds.

    Raises
    ------
    ValueError
        A bound is not a power of two, or the bounds are not ascending.
    """
    if text in ("log2", "all"):
        return Buckets(text)
    bounds = PRESETS.get(text) or tuple(parse_size(part) for part in text.split(","))
    if bounds[0] == 0 or list(bounds) != sorted(set(bounds)):
        raise ValueError(f"the bounds in '{text}' must be greater than 0 and increase")
    return Buckets("bounds", bounds)
