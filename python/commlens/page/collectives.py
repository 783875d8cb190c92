# SPDX-License-Identifier: Apache-2.0
"""Collects the algorithms of collectives for the page, and the messages that it draws."""

from __future__ import annotations

import sqlite3
from typing import Any

from commlens.algorithms import text
from commlens.algorithms.recognise import Line, recognise
from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape

LARGEST_DRAWN = 64
"""Ranks of a communicator whose messages the page draws."""
MOST_DRAWN = 512
"""Pairs of ranks in one drawing: more arrows than that show nothing."""
MOST_PAIRS = 50_000
"""Pairs of all drawings in a page."""
MOST_LINES = 1_000


def row(line: Line, number: int, ops: dict[str, int]) -> dict[str, Any]:
    """Return a line of `commlens algorithms` with its texts, and what a filter needs."""
    first = line.where[0]
    return {
        "line": number,
        "comms": [where.id for where in line.where],
        "family": first.family,
        "communicator": escape(text.name_of(line), Target.LINE),
        "first": escape(first.name, Target.LINE),
        "ranks": first.size,
        "procedure": escape(line.procedure, Target.LINE),
        "op": ops[line.procedure],
        "bins": list(line.bins),
        "size": text.block_text(line),
        "calls": line.calls,
        "algorithm": escape(text.algorithm_text(line), Target.LINE),
        "root": text.roots_text(line),
        "shape": ", ".join(f"{what} {number:,}" for what, number in line.shape.items()),
        "fit": line.fit,
        "fit_text": text.fit_text(line.fit),
        "is_named": line.best is not None,
    }


def drawing(line: Line) -> dict[str, Any] | None:
    """Return what the page draws: the recorded messages of the first communicator; None if there are too many."""
    messages = line.messages
    if not 0 < len(messages.pair) <= MOST_DRAWN or messages.size > LARGEST_DRAWN:
        return None
    return {
        "members": line.where[0].members.tolist(),
        "root": next(iter(line.roots)) if len(line.roots) == 1 else None,
        **{name: getattr(messages, name).tolist() for name in ("source", "destination", "messages", "bytes")},
    }


def collectives(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the algorithms that `commlens algorithms` names, its remarks, and what is drawn; nothing without a matrix."""
    try:
        found = recognise(connection)
    except CommlensError:
        return {"remarks": [], "lines": [], "drawn": ""}
    ops = {str(name): int(id) for id, name in connection.execute("SELECT id, name FROM op")}
    remarks = [escape(remark, Target.LINE) for remark in found.remarks]
    if len(found.lines) > MOST_LINES:
        remarks.append(
            f"the first {MOST_LINES:,} of {len(found.lines):,} lines; 'commlens algorithms' has all of them"
        )
    lines, pairs = [], 0
    for number, line in enumerate(found.lines[:MOST_LINES], 1):
        drawn = drawing(line)
        pairs += len(drawn["source"]) if drawn else 0
        lines.append({**row(line, number, ops), "drawing": drawn if pairs <= MOST_PAIRS else None})
    limits = (
        f"up to {LARGEST_DRAWN} ranks and {MOST_DRAWN} pairs of ranks, and {MOST_PAIRS:,} pairs in one page"
    )
    return {"remarks": remarks, "lines": lines, "drawn": limits}
