# SPDX-License-Identifier: Apache-2.0
"""Files by matplotlib, an optional package: SVG and PNG, the same bytes for the same chart, and pages of HTML."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape

INK, RULE, PAPER = "#202028", "#c8c8d0", "#ffffff"
"""Text, lines and ground; a page of HTML replaces them by those of the reader's theme."""

SETTINGS = {
    "svg.hashsalt": "commlens",
    "svg.fonttype": "none",  # text stays text: the reader's fonts have more characters
    "text.parse_math": False,  # otherwise matplotlib interprets text between two dollar signs as a formula
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": RULE,
    "axes.titlecolor": INK,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
}
DPI = 150
METADATA: dict[str, dict[str, Any]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "png": {"Software": None},
}
"""Without date and version, the same chart has the same bytes."""

STYLE = """\
:root { color-scheme: light dark; --ink: #202028; --rule: #c8c8d0; --paper: #ffffff; --soft: #5c5c66 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6ea; --rule: #50505a; --paper: #17171b; --soft: #a4a4ae }
}
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
       color: var(--ink); background: var(--paper) }
h1 { overflow-wrap: anywhere; font-size: 1.5rem } p { color: var(--soft); overflow-wrap: anywhere }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .7rem; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } tr + tr { border-top: 1px solid var(--rule) }
svg { max-width: 100%; height: auto } .table { overflow-x: auto }
"""


def figure_class() -> Any:
    """Return matplotlib's Figure.

    Raises
    ------
    CommlensError
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise CommlensError(
            "charts need matplotlib, which is not installed: pip install matplotlib"
        ) from None
    return Figure


@contextmanager
def settings() -> Iterator[None]:
    """Use our settings of matplotlib, not those of the user; figures are made and saved within."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # PNG shows a box instead
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def save(figure: Any, kind: str, path: Path) -> None:
    """Write an image, `kind` png or svg, to `path`."""
    figure.savefig(path, format=kind, dpi=DPI, metadata=METADATA[kind], facecolor=PAPER)


def svg_element(figure: Any) -> str:
    """Return a figure as an element of HTML, in the colours of the page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=METADATA["svg"], facecolor="none")
    picture = buffer.getvalue()
    picture = picture[picture.index("<svg") :]
    for colour, variable in ((INK, "--ink"), (RULE, "--rule"), (PAPER, "--paper")):
        picture = picture.replace(colour, f"var({variable})")
    return picture


def table_element(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of texts."""
    head = "".join(f"<th>{escape(title, Target.HTML)}</th>" for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell, Target.HTML)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return f'<div class="table"><table><tr>{head}</tr>\n{body}</table></div>'


def page(title: str, about: str, elements: Sequence[str]) -> str:
    """Return a self-contained HTML page; the elements are HTML."""
    content = "\n".join(elements)
    return f"""\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title, Target.HTML)}</title>
<style>
{STYLE}</style></head><body>
<h1>{escape(title, Target.HTML)}</h1>
<p>{escape(about, Target.HTML)}</p>
{content}
</body></html>
"""
