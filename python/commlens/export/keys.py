# SPDX-License-Identifier: Apache-2.0
"""Keys in statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

KEYS_AT_ONCE = 10_000
"""Number of keys in one list: SQLite accepts at most a million bytes of SQL."""


def key_lists(keys: Sequence[int]) -> Iterator[str]:
    """Yield the keys as lists for SQL.

    >>> list(key_lists([1, 2, 7]))
    ['1, 2, 7']
    """
    for begin in range(0, len(keys), KEYS_AT_ONCE):
        yield ", ".join(map(str, keys[begin : begin + KEYS_AT_ONCE]))
