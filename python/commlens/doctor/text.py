# SPDX-License-Identifier: Apache-2.0
"""Findings as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from commlens.doctor.finding import Finding
from commlens.render.table import fold

COLOURS = {"ok": "green", "warning": "yellow", "problem": "bold red"}
WIDTH = 16  # of the name of a check


def finding_lines(findings: Iterable[Finding], width: int | None, column: int = WIDTH) -> Iterator[Text]:
    """Yield the lines of findings.

    Parameters
    ----------
    width : columns of the screen; None: lines are never folded
    column : width of the names of the checks
    """
    for finding in findings:
        first, *further = fold(f"{finding.state:<9}{finding.check:<{column}}", finding.text, width)
        first.stylize(COLOURS[finding.state], 0, len(finding.state))
        yield first
        yield from further
        if finding.advice:
            yield from fold(" " * (9 + column) + "→ ", finding.advice, width)
