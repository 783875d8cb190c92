# SPDX-License-Identifier: Apache-2.0
"""Draws charts with characters: in colours on a terminal that has them, else with a different character for each part."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from commlens.base.counts import count_text
from commlens.base.escape import Target, escape
from commlens.charts.bars import Bars
from commlens.charts.names import shortened
from commlens.charts.palette import COLOURS, colour, glyph
from commlens.charts.points import Points
from commlens.charts.spread import Group, Spread
from commlens.render.screen import Screen
from commlens.render.table import fold
from commlens.render.units import time_text

WIDTH = 100  # columns in a pipe
NARROWEST = 10  # columns of a drawing
MOST_OF_NAME = 0.4  # of the width
WIDEST_PLOT, HEIGHT = 100, 20  # columns and lines of a scatter plot
LINE, BOX, MIDDLE, POINT = "─", "▒", "█", "o"


def has_blocks(screen: Screen) -> bool:
    """Return whether the screen has so many colours that blocks of them can be told apart."""
    if screen.width is None or screen.ascii or screen.console.no_color:
        return False
    return screen.console.color_system in ("256", "truecolor", "windows")


def heading(title: str, about: str, width: int | None) -> list[Text]:
    """Return the lines above a drawing."""
    return [*fold("", title, width, "bold"), *fold("", about, width, "dim"), Text("")]


def name_column(names: Sequence[str], width: int) -> list[str]:
    """Return names of equal width."""
    safe = [shortened(escape(name, Target.LINE), max(NARROWEST, int(width * MOST_OF_NAME))) for name in names]
    widest = max(map(cell_len, safe))
    return [name + " " * (widest - cell_len(name)) for name in safe]


def cells_of(times: Sequence[int], most: int, room: int) -> list[int]:
    """Return the cells of each part of a bar, so that all bars have one scale and no error adds up.

    >>> cells_of([1, 1, 1], 3, 10), cells_of([1, 0], 4, 10)
    ([3, 4, 3], [2, 0])
    """
    ends = [0]
    for time in times:
        ends.append(ends[-1] + time)
    places = [round(room * end / most) if most else 0 for end in ends]
    return [last - first for first, last in zip(places, places[1:])]


def draw(chart: Bars | Spread | Points, screen: Screen) -> list[Text]:
    """Return the lines of a chart."""
    if isinstance(chart, Bars):
        lines = draw_bars(chart, screen)
    elif isinstance(chart, Spread):
        lines = draw_spread(chart, screen.width or WIDTH)
    else:
        lines = draw_points(chart, screen.width or WIDTH)
    return [*heading(chart.title, chart.about, screen.width), *lines]


def draw_bars(chart: Bars, screen: Screen) -> list[Text]:
    """Return stacked bars with their legend."""
    width = screen.width or WIDTH
    blocks = has_blocks(screen)
    styles = [colour(chart.place(part)) for part in range(len(chart.parts))]
    marks = ["█" if blocks else glyph(chart.place(part)) for part in range(len(chart.parts))]
    names = name_column([bar.name for bar in chart.bars], width)
    notes = [chart.note(bar) if bar.total else "" for bar in chart.bars]
    room = max(NARROWEST, width - cell_len(names[0]) - max(map(cell_len, notes)) - 2)
    most = max(bar.total for bar in chart.bars)
    lines = []
    for name, bar, note in zip(names, chart.bars, notes):
        line = Text(name + " ")
        for cells, mark, style in zip(cells_of(bar.times, most, room), marks, styles):
            line.append(mark * cells, style=style)
        if bar.total and len(line) == len(name) + 1:
            line.append("▏" if blocks else "|", style="dim")  # less than half a cell
        line.append(f" {note}" if note else "")
        lines.append(line)
    return [*lines, Text(""), *legend(chart.parts, marks, styles, width)]


def legend(parts: Sequence[str], marks: Sequence[str], styles: Sequence[str], width: int) -> list[Text]:
    """Return the names of the parts, as many on a line as fit."""
    lines: list[Text] = []
    for part, mark, style in zip(parts, marks, styles):
        name = shortened(escape(part, Target.LINE), max(NARROWEST, int(width * MOST_OF_NAME)))
        entry = Text.assemble((mark * 2, style), f" {name}")
        if lines and lines[-1].cell_len + 3 + entry.cell_len <= width:
            lines[-1].append("   ").append_text(entry)
        else:
            lines.append(entry)
    return lines


def scaled(value: float, low: float, high: float, cells: int) -> int:
    """Return the cell of a value on a scale, from 0 to cells - 1.

    >>> scaled(5, 0, 10, 11), scaled(7, 7, 7, 11)
    (5, 5)
    """
    return (cells - 1) // 2 if high == low else round((cells - 1) * (value - low) / (high - low))


def box_line(group: Group, low: float, high: float, room: int) -> Text:
    """Return whiskers, box, median and the values outside as one line."""
    marks = [" "] * room

    def cell(value: float) -> int:
        return scaled(value, low, high, room)

    for first, last, mark in ((group.low, group.high, LINE), (group.lower, group.upper, BOX)):
        for place in range(cell(first), cell(last) + 1):
            marks[place] = mark
    for end in (group.low, group.high):
        if marks[cell(end)] == LINE:
            marks[cell(end)] = "│"
    for value in group.outside:
        marks[cell(value)] = POINT
    marks[cell(group.median)] = MIDDLE
    line = Text("".join(marks))
    for place, mark in enumerate(marks):
        if mark in (BOX, MIDDLE):
            line.stylize(COLOURS[0] if mark == BOX else "bold", place, place + 1)
    return line


def scale_line(low: float, high: float, room: int) -> str:
    """Return the ends of a scale."""
    first, last = time_text(round(low)), time_text(round(high))
    return first + " " * max(1, room - cell_len(first) - cell_len(last)) + last


def draw_spread(chart: Spread, width: int) -> list[Text]:
    """Return a line for each distribution, the scale, and the legend."""
    names = name_column([group.name for group in chart.groups], width)
    counts = [count_text(len(group.values), "run") for group in chart.groups]
    notes = [
        f"{time_text(round(group.median)):>7}  {count:>{max(map(len, counts))}}"
        for group, count in zip(chart.groups, counts)
    ]
    room = max(NARROWEST, width - cell_len(names[0]) - max(map(cell_len, notes)) - 3)
    low, high = chart.bounds
    lines = [
        Text.assemble(name, " ", box_line(group, low, high, room), "  ", note)
        for name, group, note in zip(names, chart.groups, notes)
    ]
    blanks = " " * (cell_len(names[0]) + 1)
    lines.append(Text(blanks + scale_line(low, high, room) + "   median", style="dim"))
    key = f"{BOX * 2} quartiles   {MIDDLE} median   {LINE * 2}│ whiskers   {POINT} runs beyond them"
    return [*lines, Text(""), *fold("", key, width, "dim")]


def draw_points(chart: Points, width: int) -> list[Text]:
    """Return a scatter plot; a digit is a number of runs at one place."""
    labels = [time_text(round(value)) for value in (max(chart.y), min(chart.y))]
    margin = max(map(cell_len, labels))
    room = max(NARROWEST, min(WIDEST_PLOT, width - margin - 2))
    counts: dict[tuple[int, int], int] = {}
    for x, y in zip(chart.x, chart.y):
        row = HEIGHT - 1 - scaled(y, min(chart.y), max(chart.y), HEIGHT)
        place = (row, scaled(x, min(chart.x), max(chart.x), room))
        counts[place] = counts.get(place, 0) + 1
    lines = [Text(f"{' ' * margin} {chart.y_axis}", style="dim")]
    for row in range(HEIGHT):
        name = labels[0] if row == 0 else labels[1] if row == HEIGHT - 1 else ""
        line = Text.assemble((f"{name:>{margin}} │", "dim"))
        for column in range(room):
            count = counts.get((row, column), 0)
            mark = " " if not count else POINT if count == 1 else str(count) if count < 10 else "+"
            line.append(mark, style=COLOURS[0] if count else "")
        lines.append(line)
    lines.append(Text(" " * margin + " └" + "─" * room, style="dim"))
    lines.append(Text(" " * (margin + 2) + scale_line(min(chart.x), max(chart.x), room), style="dim"))
    about = f"{chart.x_axis}; {POINT}: a run"
    more = "; a digit: so many runs, +: more" if max(counts.values()) > 1 else ""
    return [*lines, Text(""), *fold("", about + more, width, "dim")]
