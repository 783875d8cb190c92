# SPDX-License-Identifier: Apache-2.0
"""`commlens explain`."""

from __future__ import annotations

import click

from commlens.cli.options import format_option, profile_argument, sql_option, top_option
from commlens.cli.outputs import print_statements
from commlens.findings.find import read_findings, refusal, statements
from commlens.findings.text import explained
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import csv_text, json_text

COLUMNS = ("rule", "share", "finding", "try")


@click.command()
@profile_argument
@top_option(0, "Show the first N findings; 0 means all. csv and json always contain all.")
@format_option
@sql_option
def explain(profile: str, top: int, style: str, show_sql: bool) -> None:
    """Show what commlens finds in PROFILE by itself, with the evidence.

    Each finding is a sentence, the numbers that it stands on, and what to try. The findings that cost most come first.
    docs/reference/findings.md describes the rules, with their thresholds and reasons, and what each one misses. json
    has all values of a finding and the thresholds of its rule.

    No finding means that no rule applies, not that nothing can be improved.
    """
    screen = Screen()
    with open_profile(profile) as connection:
        if show_sql:
            print_statements(screen, statements(connection))
            return
        refused = refusal(connection)
        findings = read_findings(connection)
    if style == "json":
        screen.json(json_text([finding.as_dict() for finding in findings]))
    elif style == "csv":
        rows = [[finding.as_dict()[column] for column in COLUMNS] for finding in findings]
        screen.plain(csv_text(COLUMNS, rows))
    else:
        screen.lines(explained(findings, refused, top or None, screen.width))
