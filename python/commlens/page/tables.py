# SPDX-License-Identifier: Apache-2.0
"""Reads the counters for the page as columns, and folds them until they keep to a budget."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commlens.base.arrays import Ints
from commlens.page.pack import Packed, pack
from commlens.profile.meta import is_summary
from commlens.profile.shape import has_table


@dataclass(frozen=True)
class Layout:
    """A table of the page.

    Attributes
    ----------
    name : str
        Its name in the page.
    sql : str
        The query, whose columns are the dimensions, sums and maxima in that order.
    dimensions, sums, maxima : tuple of str
        What a row is about, the counters that are added when rows are folded, and those of which the largest remains.
    folds : tuple of (str, str)
        Dimensions to add up when the table is too large, in this order, each with its name for the reader.
    share : float
        Part of the budget for this table.
    """

    name: str
    sql: str
    dimensions: tuple[str, ...]
    sums: tuple[str, ...]
    maxima: tuple[str, ...]
    folds: tuple[tuple[str, str], ...]
    share: float


CELLS = Layout(
    "cells",
    """\
SELECT key.comm, key.op, key.bin, key.region, key.callsite, cell.rank, cell.calls, cell.time_ns, cell.bytes_sent,
       cell.bytes_received, cell.noncontiguous, cell.time_max_ns
  FROM cell JOIN key ON key.id = cell.key""",
    ("comm", "op", "bin", "region", "callsite", "rank"),
    ("calls", "time_ns", "bytes_sent", "bytes_received", "noncontiguous"),
    ("time_max_ns",),
    (("callsite", "call sites"), ("bin", "message sizes"), ("region", "regions"), ("rank", "ranks")),
    0.5,
)

TOTALS_SQL = """\
SELECT key.comm, key.op, key.bin, key.region, key.callsite, -1, part.calls, part.time_ns, part.bytes_sent,
       part.bytes_received, part.noncontiguous, part.time_max_ns
  FROM key_total AS part JOIN key ON key.id = part.key"""
"""The same for summary detail, which has no counters of single ranks."""

PAIRS = Layout(
    "pairs",
    """\
SELECT comm, flow, CASE outward WHEN 1 THEN rank ELSE COALESCE(peer, -1) END,
       CASE outward WHEN 1 THEN COALESCE(peer, -1) ELSE rank END, SUM(messages), SUM(bytes)
  FROM peer JOIN flow ON flow.id = peer.flow
 WHERE flow.name NOT IN ('one_to_all', 'all_to_one', 'all_to_all')
 GROUP BY 1, 2, 3, 4""",
    ("comm", "flow", "source", "destination"),
    ("messages", "bytes"),
    (),
    (("comm", "communicators"),),
    0.3,
)

SLICES = Layout(
    "slices",
    """\
SELECT comm.family, slice.op, slice.rank, slice.slot, SUM(slice.calls), SUM(slice.time_ns), SUM(slice.bytes_sent),
       SUM(slice.bytes_received)
  FROM slice JOIN comm ON comm.id = slice.comm GROUP BY 1, 2, 3, 4""",
    ("family", "op", "rank", "slot"),
    ("calls", "time_ns", "bytes_sent", "bytes_received"),
    (),
    (("op", "operations"), ("family", "communicators"), ("rank", "ranks")),
    0.15,
)

LAYOUTS = (CELLS, PAIRS, SLICES)
SOURCES = {"cells": "key", "pairs": "peer", "slices": "slice"}
"""The table of the profile that each needs; older profiles may lack it."""


@dataclass(frozen=True)
class Folded:
    """A table for the page, and the dimensions that were given up."""

    packed: Packed
    lost: list[str]


def read_columns(connection: sqlite3.Connection, sql: str, names: Sequence[str]) -> dict[str, Ints]:
    """Return the rows of a query as one array per column."""
    cursor = connection.cursor()
    cursor.row_factory = None
    cursor.execute(sql)
    parts: list[Ints] = []
    while rows := cursor.fetchmany(65_536):
        parts.append(np.array(rows, dtype=np.int64).T)
    table = np.concatenate(parts, axis=1) if parts else np.empty((len(names), 0), dtype=np.int64)
    return dict(zip(names, table))


def without(columns: dict[str, Ints], layout: Layout, lost: str) -> dict[str, Ints]:
    """Fold rows that differ in one dimension only.

    >>> layout = Layout("cells", "", ("op", "rank"), ("calls",), ("longest",), (), 1.0)
    >>> rows = {"op": [1, 1, 2], "rank": [0, 1, 0], "calls": [5, 6, 7], "longest": [3, 2, 1]}
    >>> folded = without({name: np.array(values) for name, values in rows.items()}, layout, "rank")
    >>> {name: values.tolist() for name, values in folded.items()}
    {'op': [1, 2], 'calls': [11, 7], 'longest': [3, 1]}
    """
    kept = [name for name in layout.dimensions if name != lost and name in columns]
    rows = len(columns[lost])
    if not rows:
        return {name: values for name, values in columns.items() if name != lost}
    order = np.lexsort([columns[name] for name in reversed(kept)]) if kept else np.arange(rows)
    sorted_rows = {name: values[order] for name, values in columns.items() if name != lost}
    begins = np.zeros(rows, dtype=bool)
    begins[0] = True
    for name in kept:
        begins[1:] |= sorted_rows[name][1:] != sorted_rows[name][:-1]
    starts = np.flatnonzero(begins)
    found = {name: sorted_rows[name][starts] for name in kept}
    found.update({name: np.add.reduceat(sorted_rows[name], starts) for name in layout.sums})
    found.update({name: np.maximum.reduceat(sorted_rows[name], starts) for name in layout.maxima})
    return found


def fold(columns: dict[str, Ints], layout: Layout, most: int) -> Folded:
    """Give up dimensions in the order of the layout until the table takes at most `most` bytes, or none is left."""
    lost: list[str] = []
    packed = pack(columns)
    for dimension, _ in layout.folds:
        if len(packed.block) <= most:
            break
        columns = without(columns, layout, dimension)
        lost.append(dimension)
        packed = pack(columns)
    return Folded(packed, lost)


def read_tables(connection: sqlite3.Connection, budget: int) -> dict[str, Folded]:
    """Return the tables of the page by name; those that the profile lacks have no rows.

    Parameters
    ----------
    budget : int
        Bytes that all tables together may take in the page.
    """
    found = {}
    for layout in LAYOUTS:
        names = (*layout.dimensions, *layout.sums, *layout.maxima)
        sql = TOTALS_SQL if layout is CELLS and is_summary(connection) else layout.sql
        columns = (
            read_columns(connection, sql, names)
            if has_table(connection, SOURCES[layout.name])
            else {name: np.empty(0, dtype=np.int64) for name in names}
        )
        found[layout.name] = fold(columns, layout, int(budget * layout.share))
    return found


def losses(tables: dict[str, Folded]) -> list[str]:
    """Return a sentence for each table that was folded."""
    words = {layout.name: dict(layout.folds) for layout in LAYOUTS}
    of = {"cells": "calls", "pairs": "the communication matrix", "slices": "the timeline"}
    return [
        f"{of[name]}: {' and '.join(words[name][dimension] for dimension in table.lost)} are added up"
        for name, table in tables.items()
        if table.lost
    ]
