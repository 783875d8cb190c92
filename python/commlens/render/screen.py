# SPDX-License-Identifier: Apache-2.0
"""Writes text to a terminal, with its width and colours, or to a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from rich.text import Span, Text

from commlens.base.escape import Target, escape

if TYPE_CHECKING:
    from rich.console import Console

# Replacements for a terminal or a locale without Unicode.
ASCII = str.maketrans({"µ": "u", "×": "x", "–": "-", "…": ".", "·": "-", "█": "#", "▌": "#",
                       "├": "|", "└": "`", "│": "|", "─": "-", "≥": ">", "→": ">", "░": "=", "▒": "+", "▓": "%",
                       "▁": "_", "▂": ".", "▃": ":", "▄": "i", "▅": "l", "▆": "I", "▇": "H"})  # fmt: skip


def flush_output() -> None:
    """Flush the output before a fork, whose child would print it again, and before a child ends."""
    sys.stdout.flush()


class Screen:
    """Standard output; everything printed is escaped by `escape`.

    Attributes
    ----------
    width : int or None
        Columns of the terminal; None: lines are never shortened or wrapped.
    is_plain : bool
        Lines are written without colours. The variables that force colours into a pipe are those of rich.
    """

    def __init__(self) -> None:
        self.width = self.console.width if sys.stdout.isatty() else None
        forced = any(map(os.environ.get, ("FORCE_COLOR", "TTY_COMPATIBLE")))
        self.is_plain = self.width is None and not forced
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        try:
            "µ█├×".encode(encoding)
            self.ascii = False
        except (UnicodeEncodeError, LookupError):
            self.ascii = True

    @cached_property
    def console(self) -> Console:
        """The terminal."""
        # Here: to load it takes longer than most commands do, and a pipe needs none.
        from rich.console import Console

        return Console(highlight=False, markup=False, emoji=False)

    def lines(self, lines: Iterable[Text]) -> None:
        """Print the lines."""
        for line in lines:
            if self.is_plain:
                sys.stdout.write(f"{self._safe(line).plain}\n")
            else:
                self.console.print(self._safe(line), soft_wrap=True)
        sys.stdout.flush()

    def line(self, text: object, style: str = "") -> None:
        """Print one line, such as the name of a file that was written."""
        self.lines([Text(escape(str(text), Target.LINE), style)])

    def json(self, text: str) -> None:
        """Print a JSON document whose values do not depend on the encoding of the output."""
        sys.stdout.write(escape(text, Target.ASCII_JSON if self.ascii else Target.JSON))

    def plain(self, text: str) -> None:
        """Print text unchanged, without a final newline."""
        text = escape(text, Target.LINES)
        sys.stdout.write(_ascii(text) if self.ascii else text)

    @contextmanager
    def renewed(self) -> Iterator[Callable[[Iterable[Text]], None]]:
        """Return a function that prints lines, and replaces the former ones on a terminal."""
        if self.width is None:
            yield self.lines
            return
        from rich.console import Group
        from rich.live import Live

        with Live(console=self.console, auto_refresh=False) as live:
            yield lambda lines: live.update(Group(*map(self._safe, lines)), refresh=True)

    def _safe(self, line: Text) -> Text:
        """Return a line with escapes and its colours."""
        safe = escape(line.plain, Target.LINE)
        spans = line.spans
        if safe != line.plain:
            begins = [0]
            for character in line.plain:
                begins.append(begins[-1] + len(escape(character, Target.LINE)))
            spans = [Span(begins[span.start], begins[span.end], span.style) for span in spans]
        elif not self.ascii:
            line.rstrip()
            return line
        result = Text(_ascii(safe) if self.ascii else safe, style=line.style)
        result.spans = spans
        result.rstrip()
        return result


def _ascii(text: str) -> str:
    return text.translate(ASCII).encode("ascii", "replace").decode()
