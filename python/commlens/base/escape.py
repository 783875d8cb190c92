# SPDX-License-Identifier: Apache-2.0
r"""Makes text safe for its destination: a terminal, CSV, JSON, or HTML.

Names come from applications, profiles, arenas, environments and file systems. Terminals obey control characters, and
some characters change how the text around them is displayed. `escape` replaces both by visible escapes:

- `\n`, `\r` and `\t`, and `\xHH` for any other byte: a control character of ASCII, or a byte of a file name that is not
  UTF-8;
- `\uHHHH` or `\UHHHHHHHH` for a character beyond ASCII: C1 controls, marks of direction, zero-width and other format
  characters, separators of lines and paragraphs, lone surrogates, private and unassigned characters.

All other text stays unchanged: accents, Greek, Chinese, also the backslash. bash reads each escape inside $'...'.
"""

from __future__ import annotations

import enum
import html
import re
import unicodedata
from collections.abc import Callable


class Target(enum.Enum):
    """The destination of a text, which decides what `escape` replaces."""

    LINE = "one line of a terminal: a value, or a whole line without its end; an end of line is escaped"
    LINES = "lines of a terminal: an end of line stays"
    CSV = "a field of CSV before it is quoted; an end of line is escaped, so that a record is one line"
    JSON = "a JSON document; a reader gets the same values"
    ASCII_JSON = "a JSON document for an output without Unicode; a reader gets the same values"
    HTML = "a value between tags or in quotes, in HTML, SVG or other XML"


# The searches skip printable ASCII, which is nearly all text, and in documents the end of a line.
_IN_VALUES = re.compile(r"[^ -~]+")
_IN_DOCUMENTS = re.compile(r"[^\n -~]+")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_BYTES_OF_NAMES = range(0xDC80, 0xDD00)  # PEP 383: how Python keeps bytes of file names that are not UTF-8


def escape(text: str, target: Target) -> str:
    r"""Return `text` with escapes in place of the characters that a terminal acts on or a reader cannot see.

    >>> print(escape("ä\x1b[m\n", Target.LINE), escape("<ä\x1b>", Target.HTML), escape('"ä\x1b"', Target.ASCII_JSON))
    ä\x1b[m\n &lt;ä\x1b&gt; "\u00e4\u001b"
    """
    if target is Target.JSON:
        return _IN_DOCUMENTS.sub(lambda run: _with_escapes(run[0], _json_escape), text)
    if target is Target.ASCII_JSON:
        return _IN_DOCUMENTS.sub(lambda run: "".join(map(_json_escape, run[0])), text)
    if not text.isprintable():
        pattern = _IN_DOCUMENTS if target is Target.LINES else _IN_VALUES
        text = pattern.sub(lambda run: _with_escapes(run[0], _visible_escape), text)
    return html.escape(text) if target is Target.HTML else text


def in_attribute(document: str) -> str:
    """Return a document of HTML, in which every value is escaped, for an attribute such as srcdoc.

    >>> in_attribute('<p title="a">')
    '&lt;p title=&quot;a&quot;&gt;'
    """
    return html.escape(document)


def _with_escapes(text: str, escaped: Callable[[str], str]) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Zs" else escaped(c) for c in text)


def _visible_escape(character: str) -> str:
    r"""Return the visible escape of a character.

    >>> print(*map(_visible_escape, "\t\x1b\x9b\u202e\udcff\ud800\U000e0001"))
    \t \x1b \u009b \u202e \xff \ud800 \U000e0001
    """
    code = ord(character)
    if code < 0x80:
        return _SHORT.get(character, f"\\x{code:02x}")
    if code in _BYTES_OF_NAMES:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    r"""Return the JSON escape of a character, a surrogate pair beyond 16 bits.

    >>> print(*map(_json_escape, "\x7f\u202e\udcff\U000e0001"))
    \u007f \u202e \udcff \udb40\udc01
    """
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
