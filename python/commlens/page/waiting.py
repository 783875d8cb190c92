# SPDX-License-Identifier: Apache-2.0
"""Collects for the page what `commlens waits` prints: waiting and operation, and the ranks that are waited for."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape
from commlens.page.pack import Packed, pack
from commlens.profile import meta
from commlens.waiting.text import (
    LEAST_WAITING,
    SAMPLED_CALLS,
    interval_text,
    kind_of,
    last_text,
    note_sentences,
    pattern_sentences,
    why_unsplit,
)
from commlens.waiting.waits import SAMPLING, Wait, Waits, read_waits

SHARE = 0.05
"""Part of the budget for the ranks."""

MOST_LINES = 1_000
"""Lines of which the page has the estimates."""

RANK_COLUMNS = (
    "rank", "samples", "time_ns", "waiting_ns", "last", "late_ns", "behind_ns", "between_ns", "outside_ns",
    "late_region",
)  # fmt: skip

REMEDY = "Run the program with this version of commlens, COMMLENS_DETAIL=full and COMMLENS_WAITING=1, the defaults."


@dataclass(frozen=True)
class Waiting:
    """What the page has about waiting.

    Attributes
    ----------
    facts : dict
        Lines, calls that were not split, and statements, as JSON.
    ranks : Packed
        The ranks of the first lines; column line is the place of the line.
    losses : list of str
        What was left out to keep to the budget.
    """

    facts: dict[str, Any]
    ranks: Packed
    losses: list[str]


def safe(text: str) -> str:
    """Return a text that a reader may see."""
    return escape(text, Target.LINE)


def line_of(wait: Wait, node_of: Mapping[int, str]) -> dict[str, Any]:
    """Return the numbers of a line, and its words."""
    row = wait.row
    numbers = {name: row[name] for name in ("family", "op", "bin")} | wait.numbers()
    numbers |= {"communicator": safe(row["communicator"]), "operation": safe(row["operation"])}
    return {
        **numbers,
        "last_node": safe(wait.pattern.node),
        "interval": interval_text(wait),
        "last": safe(last_text(wait)),
        "words": safe(pattern_sentences(wait, node_of)),
        "kind": kind_of(wait),
        "is_message": wait.is_message,
        "is_waited": wait.share.share >= LEAST_WAITING,
        "is_by_stay": wait.by_stay,
    }


def unsplit_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return calls that were not split, with the reason in words."""
    texts = {name: safe(row[name]) for name in ("communicator", "operation", "reason")}
    return {**row, **texts, "why": safe(why_unsplit(row))}


def ranks_of(waits: Sequence[Wait]) -> Packed:
    """Return the ranks of all lines as columns."""
    rows = [
        (line, *(one[name] for name in RANK_COLUMNS)) for line, wait in enumerate(waits) for one in wait.ranks
    ]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 1 + len(RANK_COLUMNS))
    return pack(dict(zip(("line", *RANK_COLUMNS), table.T)))


def fitting(waits: Sequence[Wait], most: int) -> tuple[Packed, int]:
    """Return the ranks of as many of the first lines as take at most `most` bytes, and the number of these lines."""
    number, packed = len(waits), ranks_of(waits)
    while number and len(packed.block) > most:
        number = min(number - 1, int(number * most / len(packed.block)))
        packed = ranks_of(waits[:number])
    return packed, number


def why_nothing(connection: sqlite3.Connection) -> str:
    """Return why a profile has no samples."""
    if meta.option(connection, SAMPLING) == "0":
        return f"{SAMPLING} was 0 in this run. {REMEDY}"
    return f"No sampled calls: {SAMPLED_CALLS}."


def read_waiting(connection: sqlite3.Connection, budget: int) -> Waiting:
    """Return what the page shows about waiting; the line with the most waiting is first.

    Parameters
    ----------
    budget : int
        Bytes that all tables of the page may take together.
    """
    try:
        found, refused = read_waits(connection, (), ()), ""
    except CommlensError as error:
        found, refused = Waits([], [], []), f"{error}. {REMEDY}"
    if not (found.waits or found.unsplit or refused):
        refused = why_nothing(connection)
    node_of = dict(connection.execute("SELECT rank, node FROM rank").fetchall()) if found.waits else {}
    ranks, number = fitting(found.waits[:MOST_LINES], int(budget * SHARE))
    facts = {
        "refused": refused,
        "waiting_ns": found.waiting_ns,
        "time_ns": found.time_ns,
        "lines": [line_of(wait, node_of) for wait in found.waits[:MOST_LINES]],
        "unsplit": [unsplit_of(row) for row in found.unsplit],
        "notes": [safe(sentence) for sentence in note_sentences(found)],
        "sql": dict(found.statements),
    }
    lost = [
        f"waiting by rank: only the {number:,} of {len(found.waits):,} lines with the most waiting have it"
    ]
    more = [f"waiting: only the {MOST_LINES:,} of {len(found.waits):,} lines with the most waiting are there"]
    return Waiting(facts, ranks, more * (len(found.waits) > MOST_LINES) + lost * (number < len(found.waits)))
