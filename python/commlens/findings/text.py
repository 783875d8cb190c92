# SPDX-License-Identifier: Apache-2.0
"""Draws findings: in the head of a report, and each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from commlens.base.counts import count_text
from commlens.findings._rules import RULES
from commlens.findings.find import Finding
from commlens.render.table import fold

MOST_IN_HEAD = 5
LABEL_WIDTH = 14
EVIDENCE_WIDTH = 50
PAGE = "docs/reference/findings.md"


def head_lines(findings: Sequence[Finding], width: int | None) -> Iterator[Text]:
    """Yield the lines for the head of a report: the first findings, and how many more there are."""
    for number, finding in enumerate(findings[:MOST_IN_HEAD], 1):
        label = f"finding {number}" if len(findings) > 1 else "finding"
        yield from fold(f"{label:<{LABEL_WIDTH}}", finding.text, width, "bold")
    if findings:
        left = len(findings) - MOST_IN_HEAD
        more = f"and {left} more; " if left > 0 else ""
        yield from fold(
            " " * LABEL_WIDTH, f"{more}'commlens explain' shows the evidence, and what to try", width
        )
        yield Text("")


def explained(
    findings: Sequence[Finding], refused: str, top: int | None, width: int | None
) -> Iterator[Text]:
    """Yield the first `top` findings with their evidence, or why there is none.

    `refused` is the reason why no rule can apply, or empty.
    """
    if refused:
        yield from fold("", refused, width)
        return
    if not findings:
        yield from fold("", f"no finding: none of {len(RULES)} rules applies to this run", width)
        yield from fold("", f"what each rule looks for, and what it misses: {PAGE}", width)
        return
    for number, finding in enumerate(findings[:top], 1):
        if number > 1:
            yield Text("")
        yield from fold(f"{number}. ", finding.text, width, "bold")
        for label, value in finding.evidence():
            yield from fold(f"   {label:<{EVIDENCE_WIDTH}}  ", value, width)
        yield from fold("   try   ", finding.rule.advice, width)
        yield from fold("   rule  ", f"{finding.rule.name}: {finding.rule.title}", width)
    if top is not None and len(findings) > top:
        yield Text("")
        yield Text(f"and {count_text(len(findings) - top, 'more finding')}", "dim")
