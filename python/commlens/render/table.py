# SPDX-License-Identifier: Apache-2.0
"""Draws a table that fits the terminal, or one that is as wide as it needs to be."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from commlens.base.escape import Target, escape
from commlens.base.outputs import CsvWriter, finite

NARROWEST = 12
# A number stays on one line with its unit.
WORD = re.compile(" *(?:[0-9.,]+ (?:[nµm]?s|%|[KMGTPE]?i?B)(?=[ ,;:.)]|$)[^ ]*|[^ ]+)")


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes
    ----------
    title : str
        Heading.
    right : bool
        Whether to align the column to the right, for numbers.
    wide : int
        0: the column is always shown. Otherwise, columns with larger values are dropped first if space is short.
    drawing : bool
        Shown only on a terminal.
    seldom : bool
        Shown only if some row has a text in it.
    """

    title: str
    right: bool = True
    wide: int = 0
    drawing: bool = False
    seldom: bool = False


class Cells(NamedTuple):
    """A row: one text for each column."""

    texts: Sequence[str]
    style: str


class Line(NamedTuple):
    """A text across all columns; each of its lines begins with a prefix."""

    prefix: str
    text: str
    style: str


class Layout(NamedTuple):
    """The columns that are shown, by their numbers, the widths of all columns, and the blanks between two."""

    shown: list[int]
    widths: list[int]
    gap: int


@dataclass
class Table:
    """Rows under columns, with lines of text between them."""

    columns: Sequence[Column]
    rows: list[Cells | Line] = field(default_factory=list)

    def add(self, texts: Sequence[str], style: str = "") -> None:
        """Add a row."""
        assert len(texts) == len(self.columns)
        self.rows.append(Cells([escape(text, Target.LINE) for text in texts], style))

    def say(self, text: str, prefix: str = "", style: str = "dim") -> None:
        """Add a text across all columns."""
        self.rows.append(Line(prefix, text, style))

    def lines(self, width: int | None) -> list[Text]:
        """Return the table as lines, at most `width` wide if possible."""
        layout = self._layout(width)
        drawn = self._draw(self._heading(), layout)[-1:]
        for row in self.rows:
            if isinstance(row, Line):
                drawn += fold(row.prefix, row.text, width, row.style, row.prefix + "  ")
            else:
                drawn += self._draw(row, layout)
        return drawn

    def titles(self, width: int | None) -> list[str]:
        """Return the headings of the columns that are shown at this width."""
        return [self.columns[i].title for i in self._layout(width).shown]

    def width(self, width: int | None) -> int:
        """Return how wide the columns are at this width of the terminal."""
        layout = self._layout(width)
        return sum(layout.widths[i] for i in layout.shown) + layout.gap * (len(layout.shown) - 1)

    def _heading(self) -> Cells:
        return Cells([escape(column.title, Target.LINE) for column in self.columns], "dim")

    def _layout(self, width: int | None) -> Layout:
        """Return the columns that are shown, and their widths."""
        rows = [self._heading().texts, *(row.texts for row in self.rows if isinstance(row, Cells))]
        widths = [max(cell_len(row[i]) for row in rows) for i in range(len(self.columns))]
        shown = [
            i
            for i, column in enumerate(self.columns)
            if (width is not None or not column.drawing)
            and (not column.seldom or any(row[i] for row in rows[1:]))
        ]
        gap = 2
        if width is not None:

            def excess() -> int:
                return sum(widths[i] for i in shown) + gap * (len(shown) - 1) - width

            for i in sorted(shown, key=lambda i: -self.columns[i].wide):
                if self.columns[i].wide and excess() > 0:
                    shown.remove(i)
            if excess() > 0:
                gap = 1
            # The first column has names; a name that is longer than the available width gets a separate line.
            widths[0] = max(min(widths[0], NARROWEST), widths[0] - max(0, excess()))
        return Layout(shown, widths, gap)

    def _draw(self, row: Cells, layout: Layout) -> list[Text]:
        shown, widths, gap = layout
        lines, parts = [], []
        for i in shown:
            text, width = row.texts[i], widths[i]
            if i == 0 and cell_len(text) > width:
                lines.append(text)
                text = ""
            blanks = " " * (width - cell_len(text))
            parts.append(blanks + text if self.columns[i].right else text + blanks)
        if not lines or any(row.texts[i] for i in shown[1:]):
            lines.append((" " * gap).join(parts).rstrip())
        return [Text(line, style=row.style) for line in lines]


def fold(
    prefix: str, text: str, width: int | None, style: str = "", further: str | None = None
) -> list[Text]:
    """Return a text after a prefix, wrapped; further lines begin with `further`, or are aligned with the first."""
    prefix, text = escape(prefix, Target.LINE), escape(text, Target.LINE)
    if width is None:
        return [Text(prefix + text, style=style)]
    further = " " * cell_len(prefix) if further is None else escape(further, Target.LINE)
    lines, line = [], prefix
    is_empty = True
    for word in WORD.findall(text):
        if not is_empty and cell_len(line + word) > width:
            lines.append(line)
            line, word = further, word.lstrip(" ")
        line += word
        is_empty = False
    return [Text(line, style=style) for line in [*lines, line]]


def csv_text(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV with a heading; NULL is an empty field."""
    buffer = io.StringIO()
    writer = CsvWriter(buffer)
    writer.writerow(titles)
    writer.writerows(rows)
    return buffer.getvalue()


def json_text(value: Any) -> str:
    """Return a value as JSON, a line for each row; NaN and infinity become null."""
    try:
        return _json(value, "\n") + "\n"
    except ValueError:
        return _json(_finite(value), "\n") + "\n"


def write_json(path: Path, value: Any) -> None:
    """Write to a new file what --format json prints."""
    path.write_text(escape(json_text(value), Target.JSON), encoding="utf-8")


def _json(value: Any, end_of_line: str) -> str:
    """Return a value as JSON; a list or dictionary of plain values is one line.

    Python's encoder is fast only without indents.
    """
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    if not any(isinstance(part, (dict, list, tuple)) for part in parts):
        return _encode(value)
    inner = f"{end_of_line}  "
    lines = [_json(part, inner) for part in parts]
    if isinstance(value, dict):
        lines = [f"{_encode(str(key))}: {line}" for key, line in zip(value, lines)]
    begin, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{begin}{inner}{f',{inner}'.join(lines)}{end_of_line}{end}"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(member) for member in value]
    return finite(value) if isinstance(value, float) else value


def _json_blob(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_json_blob).encode
