# SPDX-License-Identifier: Apache-2.0
"""Numbers of things, in words."""

from __future__ import annotations


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count_text(1, "rank"), count_text(4096, "rank")
    ('1 rank', '4,096 ranks')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
