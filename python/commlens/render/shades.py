# SPDX-License-Identifier: Apache-2.0
"""Cells as colours, as shades, or as letters: what a screen can show of a heat map or a matrix."""

from __future__ import annotations

from collections.abc import Sequence

from rich.color import Color
from rich.style import Style
from rich.text import Text

from commlens.render.screen import Screen

SHADES = " ░▒▓█"
LETTERS = " .:-=+*#%@"
COLOURS = 24

# From little to much, legible on a light and on a dark ground.
ANCHORS = ((56, 88, 200), (112, 84, 200), (178, 72, 168), (222, 78, 96), (246, 150, 40))


def kind_of(screen: Screen) -> str:
    """Return the drawing mode of a screen: colours, shades, or ascii."""
    if screen.width is None or screen.ascii or screen.console.is_dumb_terminal:
        return "ascii"
    console = screen.console
    return "shades" if console.no_color or console.color_system is None else "colours"


def level_count(kind: str) -> int:
    """Return the number of levels that a mode tells apart; level 0 is an empty cell.

    >>> level_count("shades"), level_count("ascii")
    (4, 9)
    """
    return COLOURS if kind == "colours" else len(SHADES if kind == "shades" else LETTERS) - 1


def colours(count: int) -> list[tuple[int, int, int]]:
    """Return `count` colours, from small to large values; one colour is that of large values.

    >>> colours(1), colours(2), colours(3)
    ([(246, 150, 40)], [(56, 88, 200), (246, 150, 40)], [(56, 88, 200), (178, 72, 168), (246, 150, 40)])
    """
    last = len(ANCHORS) - 1
    found = []
    for i in range(count):
        at = last * i / (count - 1) if count > 1 else last
        low = min(int(at), last - 1)
        part = at - low
        red, green, blue = (round(a + (b - a) * part) for a, b in zip(ANCHORS[low], ANCHORS[low + 1]))
        found.append((red, green, blue))
    return found


def palette() -> list[Color]:
    """Return the colours of the levels from 1 on."""
    return [Color.from_rgb(*colour) for colour in colours(COLOURS)]


def scale(kind: str) -> Text:
    """Return all levels from 1 on, for a legend."""
    if kind != "colours":
        return Text((SHADES if kind == "shades" else LETTERS)[1:])
    return Text.assemble(*[("█", Style(color=colour)) for colour in palette()])


def shaded(levels: Sequence[Sequence[int]], kind: str, times: int = 1) -> list[Text]:
    """Return one line for each row of levels; each cell has `times` characters."""
    ramp = SHADES if kind == "shades" else LETTERS
    return [Text("".join(ramp[level] * times for level in row)) for row in levels]


def coloured(levels: Sequence[Sequence[int]]) -> list[Text]:
    """Return one line for two rows of levels: a character shows two cells, one above the other."""
    shown = palette()
    rows = [*levels, [0] * len(levels[0])] if len(levels) % 2 else levels
    lines = []
    for above, below in zip(rows[::2], rows[1::2]):
        line = Text()
        for upper, lower in zip(above, below):
            if upper and lower:
                line.append("▀", Style(color=shown[upper - 1], bgcolor=shown[lower - 1]))
            elif upper or lower:
                line.append("▀" if upper else "▄", Style(color=shown[max(upper, lower) - 1]))
            else:
                line.append(" ")
        lines.append(line)
    return lines
