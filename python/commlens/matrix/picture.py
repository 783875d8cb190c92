# SPDX-License-Identifier: Apache-2.0
"""Draws a matrix with characters."""

from __future__ import annotations

from rich.text import Text

from commlens.matrix.facts import Axis
from commlens.matrix.pairs import Pairs
from commlens.matrix.shades import Cells, folded, value_text
from commlens.render.shades import COLOURS, coloured, level_count, scale, shaded
from commlens.render.table import fold

WIDEST, TALLEST = 96, 36  # characters
TICK = 8  # characters from one number of a column to the next, where there are many


def draw(pairs: Pairs, axis: Axis, what: str, kind: str, width: int | None) -> list[Text]:
    """Return the picture with axes and legend, at most `width` wide."""
    size = len(axis.labels)
    names = axis.labels if axis.noun == "rank" else [str(i) for i in range(size)]
    margin = max(len(name) for name in names) + 1
    space = min(WIDEST, (width or WIDEST + margin + 2) - margin - 2)
    in_colour = kind == "colours"
    # A character is about twice as high as wide: in colours it shows two cells, else two of them show one.
    cells = folded(
        pairs, size, max(1, min(space, 2 * TALLEST) if in_colour else min(space // 2, TALLEST)), what
    )
    lines = coloured_cells(cells) if in_colour else shaded_cells(cells, kind)
    rows = len(lines)
    drawn = [Text(""), ticks(cells, names, margin, len(lines[0].plain))]
    every = max(1, -(-rows // 12))
    for i, line in enumerate(lines):
        cell = i * cells.count // rows
        is_first = i == 0 or cell != (i - 1) * cells.count // rows
        label = names[cell * cells.block] if is_first and (i % every == 0 or rows // cells.count > 1) else ""
        drawn.append(Text.assemble((f"{label:>{margin - 1}} │", "dim"), line, ("│", "dim")))
    drawn += legend(cells, axis, what, kind, width)
    if axis.noun != "rank":
        listed = ", ".join(f"{i} {label}" for i, label in enumerate(axis.labels[:12]))
        drawn += fold("", listed, width, "dim")
    return drawn


def ticks(cells: Cells, names: list[str], margin: int, width: int) -> Text:
    """Return the line of numbers above the columns."""
    line = [" "] * (width + TICK)
    free = 0
    for cell in range(cells.count):
        at = cell * width // cells.count
        name = names[cell * cells.block]
        if at >= free and at + len(name) <= width:
            line[at : at + len(name)] = name
            free = at + max(TICK if cells.count > TICK else 0, len(name) + 2)
    return Text(" " * (margin + 1) + "".join(line).rstrip(), "dim")


def shaded_cells(cells: Cells, kind: str) -> list[Text]:
    """Return lines in which two or more characters show one cell."""
    times = max(1, 8 // cells.count)
    lines = shaded(cells.levels(level_count(kind)).tolist(), kind, 2 * times)
    return [line for line in lines for _ in range(times)]


def coloured_cells(cells: Cells) -> list[Text]:
    """Return lines in which one character shows two cells, one above the other."""
    times = max(1, 32 // cells.count)
    return coloured(cells.levels(COLOURS).repeat(times, axis=0).repeat(times, axis=1).tolist())


def legend(cells: Cells, axis: Axis, what: str, kind: str, width: int | None) -> list[Text]:
    """Return the legend: the values shown, and the range of each shade; one shade for all has no scale."""
    low, high = cells.range
    ends = list(dict.fromkeys(value_text(what, value) for value in (low, high)))
    levels = cells.levels(level_count(kind))[cells.used]
    begin, _ = cells.scale
    if levels.min() == levels.max():
        line, scaled = Text(f"{' to '.join(ends)} in each that is drawn"), ""
    else:
        line = Text.assemble(
            (f"{value_text(what, min(begin, low))} ", "dim"),
            scale(kind),
            (f" {value_text(what, high)}", "dim"),
        )
        scaled = "; logarithmic scale" + (" from half the maximum" if begin < low else "")
    many = (
        f"{cells.block:,} x {cells.block:,} {axis.noun}s" if cells.block > 1 else f"one pair of {axis.noun}s"
    )
    return [line, *fold("", f"rows send, columns receive; a cell is {many}{scaled}", width, "dim")]
