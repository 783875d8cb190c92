# SPDX-License-Identifier: Apache-2.0
"""Ranges of ranks in statements."""

from __future__ import annotations

from collections.abc import Sequence

Ranges = Sequence[tuple[int, int]]


def within(ranks: Ranges, column: str) -> str:
    """Return the SQL condition that a rank is in these ranges; no range means all ranks.

    >>> within([(0, 0), (12, 15)], "rank")
    '(rank BETWEEN 0 AND 0 OR rank BETWEEN 12 AND 15)'
    """
    return f"({' OR '.join(f'{column} BETWEEN {low} AND {high}' for low, high in ranks)})" if ranks else "1"
