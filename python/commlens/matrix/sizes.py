# SPDX-License-Identifier: Apache-2.0
"""The sizes of the messages of each pair of ranks: `commlens matrix --sizes`."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.text import Text

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.matrix.query import ENDS, KINDS, MODELLED, TITLES, Selection
from commlens.render.table import Column, Table, fold
from commlens.render.units import bytes_text, share_text, size_text
from commlens.selection.sizes import BinRange

COLUMNS = ("source", "destination", "size_low", "size_high", "messages", "bytes")


class Size(NamedTuple):
    """Messages of one size from a rank to another; both bounds are included."""

    source: int
    destination: int
    size_low: int
    size_high: int | None
    messages: int
    bytes: int


@dataclass
class Sizes:
    """The sizes of all pairs.

    Attributes
    ----------
    kind : str
        Kind of traffic: one of commlens.matrix.KINDS.
    rows : list of Size
        By source, destination and size.
    messages, bytes : int
        Traffic in none of them, because the other process is counted in a block, or unknown.
    statements : list of (title, SQL)
    """

    kind: str
    rows: list[Size]
    messages: int
    bytes: int
    statements: list[tuple[str, str]]


def read_sizes(connection: sqlite3.Connection, selection: Selection) -> Sizes:
    """Read the sizes of the selected messages.

    Raises
    ------
    CommlensError
        The kind is a model, which has no message sizes.
    """
    if selection.kind == MODELLED:
        raise CommlensError("--sizes shows measured messages: a model has no message sizes of pairs")
    flows = KINDS[selection.kind]
    sizes = (
        f"SELECT\n{ENDS},\n       bin, SUM(messages) AS messages, SUM(bytes) AS bytes"
        + selection.of_flows(flows, "peer IS NOT NULL")
        + "\n GROUP BY source, destination, bin ORDER BY source, destination, bin"
    )
    others = "SELECT TOTAL(messages) AS messages, TOTAL(bytes) AS bytes" + selection.of_flows(
        flows, "peer IS NULL"
    )
    rows = [
        Size(
            row["source"],
            row["destination"],
            *BinRange(row["bin"], row["bin"]).bounds,
            row["messages"],
            row["bytes"],
        )
        for row in connection.execute(sizes)
    ]
    messages, bytes = connection.execute(others).fetchone()
    statements = [("sizes", sizes), ("peers counted together, or unknown", others)]
    return Sizes(selection.kind, rows, int(messages), int(bytes), statements)


def heaviest(rows: Sequence[Size], what: str, top: int) -> list[list[Size]]:
    """Return the rows of the `top` pairs with the most messages or bytes, each pair by size; 0 means all.

    >>> few, much = Size(0, 1, 8, 15, 5, 40), Size(1, 0, 64, 127, 1, 64)
    >>> [[row.source for row in pair] for pair in heaviest([few, much], "messages", 1)]
    [[0]]
    >>> [[row.source for row in pair] for pair in heaviest([few, much], "bytes", 0)]
    [[1], [0]]
    """
    pairs: dict[tuple[int, int], list[Size]] = defaultdict(list)
    for row in rows:
        pairs[row.source, row.destination].append(row)
    ordered = sorted(pairs.values(), key=lambda pair: (-sum(getattr(row, what) for row in pair), pair[0][:2]))
    return ordered[: top or None]


def lines(found: Sizes, what: str, top: int, width: int | None, heading: str) -> list[Text]:
    """Return the table of the heaviest pairs, a line for each size, with what it says before and below."""
    pairs = heaviest(found.rows, what, 0)
    shown = pairs[: top or None]
    total = sum(row.messages for row in found.rows)
    text = f"{TITLES[found.kind]}{heading}: {count_text(len(pairs), 'pair')}, {count_text(total, 'message')}"
    result = [*fold("", text, width, "bold")]
    if shown:
        table = Table(
            [
                Column("from"), Column("to"), Column("message size"), Column("messages"), Column("bytes"),
                Column("of pair"),
            ]
        )  # fmt: skip
        for pair in shown:
            whole = sum(getattr(row, what) for row in pair)
            for row in pair:
                ends = (str(row.source), str(row.destination)) if row is pair[0] else ("", "")
                share = share_text(getattr(row, what) / whole) if whole else ""
                size = size_text(row.size_low, row.size_high)
                table.add([*ends, size, f"{row.messages:,}", bytes_text(row.bytes), share])
        result += [Text(""), *table.lines(width)]
    rest = len(pairs) - len(shown)
    if rest:
        result += fold("", f"{count_text(rest, 'further pair')}: --top 0 shows all", width, "dim")
    if found.messages:
        text = f"not shown: {count_text(found.messages, 'message')} whose peer was counted in a block, or is unknown"
        result += fold("", text, width, "dim")
    return result
