# SPDX-License-Identifier: Apache-2.0
"""The communication matrix of a job as one row: pattern, locality, heaviest pair."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np

from commlens.fleet import of_profile
from commlens.matrix.pairs import Pairs
from commlens.matrix.patterns import Finder, Pattern

MOST_RANKS = 4096
MOST_PAIRS = 1 << 20
"""A larger matrix gets no pattern: to recognise it takes longer than the rest of the profile."""
UNKNOWN = Pattern("unknown", share=0.0)


def matrix_row(connection: sqlite3.Connection, ranks: int) -> dict[str, Any] | None:
    """Return the row of table matrix, or None without messages."""
    rows = [tuple(row) for row in connection.execute(of_profile.PAIRS_SQL)]
    if not rows:
        return None
    source, destination, messages, size = (np.array(column, dtype=np.int64) for column in zip(*rows))
    pairs = Pairs(source, destination, messages, size)
    ranks = max(ranks, int(max(source.max(), destination.max())) + 1)
    is_small = ranks <= MOST_RANKS and len(pairs) <= MOST_PAIRS
    pattern = Finder(pairs, ranks, "bytes").pattern() if is_small else UNKNOWN
    total = int(size.sum())
    heaviest = int(size.argmax())
    return {
        "pattern": pattern.name,
        "pattern_detail": pattern.detail,
        "pattern_share": float(pattern.share),
        "pairs": len(pairs),
        "messages": int(messages.sum()),
        "bytes": total,
        "locality": local_share(connection, pairs, total),
        "heaviest_source": int(source[heaviest]),
        "heaviest_destination": int(destination[heaviest]),
        "heaviest_share": int(size[heaviest]) / total if total else None,
    }


def local_share(connection: sqlite3.Connection, pairs: Pairs, total: int) -> float | None:
    """Return the share of the bytes between processes of one node; None without bytes, or if a node is unknown."""
    numbers: dict[str, int] = {}
    of_rank = {
        row[0]: numbers.setdefault(row[1], len(numbers))
        for row in connection.execute(of_profile.RANK_NODES_SQL)
    }
    if not total or not of_rank:
        return None
    ends = [np.array([of_rank.get(rank, -1) for rank in end.tolist()]) for end in pairs.ends]
    if min(ends[0].min(), ends[1].min()) < 0:
        return None
    return int(pairs.bytes[ends[0] == ends[1]].sum()) / total
