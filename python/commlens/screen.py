# SPDX-License-Identifier: Apache-2.0
"""Where text goes: a terminal with a width and colours, or a pipe with neither."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

# What a terminal or a locale without Unicode gets instead.
ASCII = str.maketrans({"µ": "u", "×": "x", "–": "-", "…": ".", "·": "-", "█": "#", "▌": "#",
                       "├": "|", "└": "`", "│": "|", "─": "-", "≥": ">", "→": ">", "░": "=",
                       "▁": "_", "▂": ".", "▃": ":", "▄": "i", "▅": "l", "▆": "I", "▇": "H"})  # fmt: skip


def printable(text: str) -> str:
    """Return `text` with control characters made harmless: names come from the application."""
    return "".join(c if c.isprintable() else " " if c == "\n" else "?" for c in text)


class Screen:
    """Standard output.

    Attributes
    ----------
    width : int or None
        Columns of the terminal; None means that no line is ever shortened or folded.
    """

    def __init__(self) -> None:
        self.console = Console(highlight=False, markup=False, emoji=False)
        self.width = self.console.width if sys.stdout.isatty() else None
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        try:
            "µ█├×".encode(encoding)
            self.ascii = False
        except (UnicodeEncodeError, LookupError):
            self.ascii = True

    def lines(self, lines: Iterable[Text]) -> None:
        """Print the lines."""
        for line in lines:
            if self.ascii:
                spans, line = (
                    line.spans,
                    Text(line.plain.translate(ASCII).encode("ascii", "replace").decode()),
                )
                line.spans = spans
            line.rstrip()
            self.console.print(line, soft_wrap=True)

    def json(self, text: str) -> None:
        """Print JSON as it is; characters that the output cannot have are escaped, so that nothing of a name is lost."""
        self.plain(json.dumps(json.loads(text), indent=2) + "\n" if self.ascii else text)

    def plain(self, text: str) -> None:
        """Print text as it is, without a newline after it."""
        if self.ascii:
            text = text.translate(ASCII).encode("ascii", "replace").decode()
        sys.stdout.write(text)
