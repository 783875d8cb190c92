# SPDX-License-Identifier: Apache-2.0
"""The output of `commlens algorithms`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.text import Text

from commlens.algorithms.recognise import Found, Line
from commlens.render.screen import Screen
from commlens.render.table import Column, Table, fold
from commlens.render.tree import Tree
from commlens.render.units import bytes_text, size_text

ROOTS_SHOWN = 3
LARGEST_DRAWN = 128  # ranks of a tree

COLUMNS = (
    Column("communicator", right=False),
    Column("line"),
    Column("ranks"),
    Column("procedure", right=False),
    Column("size", right=False),
    Column("calls"),
    Column("algorithm", right=False),
    Column("root", right=False, seldom=True),
    Column("shape", right=False, wide=1),
    Column("fit"),
)


def show(found: Found, screen: Screen, drawn: int | None) -> None:
    """Print the table, and below it the tree of one line."""
    if found.lines:
        table = Table(COLUMNS)
        for number, line in enumerate(found.lines, 1):
            table.add(
                [
                    name_of(line),
                    str(number),
                    f"{line.where[0].size:,}",
                    line.procedure,
                    block_text(line),
                    "?" if line.calls is None else f"{line.calls:,}",
                    algorithm_text(line),
                    roots_text(line),
                    ", ".join(f"{what} {number:,}" for what, number in line.shape.items()),
                    fit_text(line.fit),
                ]
            )
        screen.lines(table.lines(screen.width))
    elif not found.remarks:
        screen.lines([Text("no collectives")])
    for remark in found.remarks:
        screen.lines(fold("", remark, screen.width))
    if drawn is not None and found.lines:
        screen.lines([Text(""), *tree_lines(found.lines[drawn - 1], screen.width)])


def name_of(line: Line) -> str:
    """Return the name of the communicator; for several, that of the first and their number."""
    first = line.where[0].comm
    count = f" x{len(line.where)}" if len(line.where) > 1 else ""
    return first.name + count + (f" {first.predefined}" if first.predefined else "")


def block_text(line: Line) -> str:
    """Return the bytes of a call, or their range."""
    if line.collective == "barrier":
        return ""
    if line.block is not None:
        return bytes_text(line.block)
    return size_text(*line.sizes) if line.sizes else "varies"


def algorithm_text(line: Line) -> str:
    """Return the algorithm with all its parameters."""
    segments = line.best.parameters.get("segments") if line.best else None
    if segments is None:
        return line.verdict
    if isinstance(segments, int):
        least, most = line.best.parameters["segment"]  # type: ignore[union-attr]  # there is one
        of = f" of {least:,} B" if least == most else f" of {least:,} to {most:,} B"
        return f"{line.verdict}, {segments:,} segments{of}"
    return f"{line.verdict}, {segments:.1f} segments on average"


def roots_text(line: Line) -> str:
    """Return the roots, those of most calls first."""
    if len(line.roots) == 1:
        return str(next(iter(line.roots)))
    roots = sorted(line.roots.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{root} ({calls:,})" for root, calls in roots[:ROOTS_SHOWN]]
    more = [f"{len(roots) - ROOTS_SHOWN:,} more"] if len(roots) > ROOTS_SHOWN else []
    return ", ".join(shown + more)


def fit_text(fit: float | None) -> str:
    """Return a fit in per cent, rounded down: only an exact fit is 100 %.

    >>> fit_text(1.0), fit_text(0.99999), fit_text(None)
    ('100 %', '99.9 %', '-')
    """
    if fit is None:
        return "-"
    return "100 %" if fit > 1 - 1e-9 else f"{int(1000 * fit) / 10:.1f} %"


def tree_lines(line: Line, width: int | None) -> Iterator[Text]:
    """Return the drawing of a tree with ranks of the communicator, and their world ranks if different."""
    tree = line.tree
    if tree is None:
        yield Text("no tree: " + line.verdict)
        return
    first = line.where[0]
    yield from fold("", f"{line.procedure} on {first.name}: {algorithm_text(line)}", width, "bold")
    if len(tree) > LARGEST_DRAWN:
        yield from fold(
            "",
            f"a tree of {len(tree):,} ranks is too large to draw; json contains the parent of each rank",
            width,
        )
        return
    rows = [{"line": rank, "parent_line": parent} for rank, parent in enumerate(tree.tolist())]
    is_world = np.array_equal(first.members, np.arange(len(tree)))
    for prefix, _, row in Tree(rows).walk(None):
        assert not isinstance(row, int)
        rank = row["line"]
        yield Text(f"{prefix}{rank}" + ("" if is_world else f" (world {first.members[rank]})"))


def row_of(line: Line) -> dict[str, Any]:
    """Return a line with plain numbers."""
    best = line.best
    segment = best.parameters.get("segment") if best else None
    low, high = line.sizes if line.sizes else (None, None)
    return {
        "communicator": line.where[0].name,
        "communicators": len(line.where),
        "ranks": line.where[0].size,
        "procedure": line.procedure,
        "collective": line.collective,
        "size_low": low,
        "size_high": high,
        "block": line.block,
        "calls": line.calls,
        "verdict": line.verdict,
        "algorithm": best.algorithm.name if best and "ambiguous" not in line.verdict else None,
        "fanout": best.parameters.get("fanout") if best else None,
        "radix": best.parameters.get("radix") if best else None,
        "segments": best.parameters.get("segments") if best else None,
        "segment_low": segment[0] if segment else None,
        "segment_high": segment[1] if segment else None,
        **{what: line.shape.get(what) for what in ("depth", "degree", "rounds")},
        "fit": line.fit,
        "fit_messages": best.fit_messages if best else None,
        "fit_bytes": best.fit_bytes if best else None,
    }


def as_dict(found: Found, drawn: int | None) -> dict[str, Any]:
    """Return the result for JSON; with the tree only if there is one line."""
    lines = []
    for number, line in enumerate(found.lines, 1):
        tree = line.tree if number == drawn else None
        lines.append(
            {
                "line": number,
                **row_of(line),
                "comms": [where.id for where in line.where],
                "roots": [{"rank": root, "calls": n} for root, n in sorted(line.roots.items())],
                "candidates": [{"name": one.name, "fit": one.fit} for one in line.match.candidates[:5]],
                "tree": None if tree is None else tree.tolist(),
            }
        )
    return {"lines": lines, "remarks": found.remarks}


def csv_rows(found: Found) -> tuple[list[str], list[list[Any]]]:
    """Return heading and rows; roots as RANK:CALLS."""
    rows = [
        {**row_of(line), "roots": " ".join(f"{root}:{n}" for root, n in sorted(line.roots.items()))}
        for line in found.lines
    ]
    titles = list(rows[0]) if rows else ["communicator"]
    return titles, [list(row.values()) for row in rows]
