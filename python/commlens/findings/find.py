# SPDX-License-Identifier: Apache-2.0
"""Applies the rules of spec/findings.toml to a profile."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Any

from commlens.findings._rules import RULES, Rule
from commlens.profile.cells import PARTS
from commlens.profile.meta import is_summary
from commlens.render.units import share_text, time_text
from commlens.symbols.paths import PLACES_SQL, distinct_labels, has_paths

OPTIONAL = re.compile(r"\[([^\]]*)\]")
NAMES = ("op", "communicator", "site")
"""Columns of a rule's query that are names, beside the numbers of its evidence."""
FIELD = re.compile(r"{(\w+)(?::(\w+))?}")


def formatted(value: Any, form: str | None) -> str:
    """Return a value of a finding with its unit.

    >>> formatted(2_500_000, "time"), formatted(0.25, "share"), formatted(12345, "count"), formatted("s0.1", None)
    ('2.50 ms', '25.0 %', '12,345', 's0.1')
    """
    if form == "time":
        return time_text(round(value))
    if form == "share":
        return share_text(value)
    return f"{value:,}" if form == "count" else str(value)


def sentence(text: str, values: dict[str, Any]) -> str:
    """Return the text of a rule with values for its fields; a part in brackets needs all of its own.

    >>> sentence("{n:count} calls[ at {site}]", {"n": 1000, "site": None})
    '1,000 calls'
    """

    def part(match: re.Match[str]) -> str:
        fields = [name for name, _ in FIELD.findall(match[1])]
        return match[1] if all(values[name] is not None for name in fields) else ""

    return FIELD.sub(lambda field: formatted(values[field[1]], field[2]), OPTIONAL.sub(part, text))


def line_first(label: str) -> str:
    """Return the label of a call site with its line before its function.

    >>> line_first("solve halo.c:31"), line_first("app+0x12")
    ('halo.c:31 in solve', 'app+0x12')
    """
    function, _, line = label.rpartition(" ")
    return f"{line} in {function}" if function and re.search(r":\d+$", line) else label


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes
    ----------
    rule : Rule
        The rule that applies.
    share : float
        Part of the run that the cause costs at most, averaged over the ranks, 0 to 1.
    values : dict
        The columns of the rule's query, with call sites as labels.
    """

    rule: Rule
    share: float
    values: dict[str, Any]

    @property
    def text(self) -> str:
        """The finding in one sentence."""
        return sentence(self.rule.text, self.values)

    def _numbers(self) -> list[str]:
        return [column for column, _, _ in self.rule.evidence]

    def evidence(self) -> list[tuple[str, str]]:
        """Return what the finding stands on: label and value of each number that it has."""
        shown = [
            (label, formatted(self.values[column], form))
            for column, label, form in self.rule.evidence
            if self.values[column] is not None
        ]
        return [*shown, ("part of the run that it costs at most", share_text(self.share))]

    def as_dict(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        return {
            "rule": self.rule.name,
            "finding": self.text,
            "share": self.share,
            "try": self.rule.advice,
            "thresholds": self.rule.thresholds,
            "evidence": {
                name: self.values[name] for name in (*self._numbers(), *NAMES) if name in self.values
            },
        }


def statements(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return name and query of each rule, as it is applied to a profile."""
    is_split = has_paths(connection)
    return [
        (f"finding: {rule.name}", by_place(connection, rule.sql) if is_split else rule.sql) for rule in RULES
    ]


def refusal(connection: sqlite3.Connection) -> str:
    """Return why no rule can apply to a profile; empty if rules can."""
    if is_summary(connection):
        return "no rule applies to a profile of summary detail: it has no rows of single ranks"
    ranks, elapsed = connection.execute("SELECT COUNT(*), COALESCE(MAX(app_ns), 0) FROM rank").fetchone()
    if ranks < 2:
        return "no rule applies to a run of one rank"
    shortest = RULES[0].thresholds["shortest_run_ns"]
    if elapsed < shortest:
        return f"no rule applies to runs shorter than {time_text(round(shortest))}; this one took {time_text(elapsed)}"
    return ""


def by_place(connection: sqlite3.Connection, sql: str) -> str:
    """Return the query of a rule for call sites as places: the calls of all paths to one place are added up.

    The rules read table `key`. A table expression of this name replaces it, before SQLite 3.35 also in views.
    """
    sql_of_temporary = "SELECT EXISTS (SELECT 1 FROM sqlite_temp_master WHERE name = 'key')"
    schema = "temp" if connection.execute(sql_of_temporary).fetchone()[0] else "main"
    return f"""\
WITH site(id, place) AS (
  {PLACES_SQL}),
     key AS (
  SELECT known.id, comm, op, bin, region, COALESCE(site.place, known.callsite) AS callsite, {", ".join(PARTS.values())}
    FROM {schema}.key AS known LEFT JOIN site ON site.id = known.callsite),
{sql.removeprefix("WITH")}"""


def read_findings(connection: sqlite3.Connection) -> list[Finding]:
    """Return the findings, those that cost most first."""
    found: list[tuple[Rule, dict[str, Any]]] = []
    for rule, (_, sql) in zip(RULES, statements(connection)):
        found += [(rule, dict(row)) for row in connection.execute(sql)]
    sites = [values["site"] for _, values in found if values["site"] is not None]
    labels = distinct_labels(connection, sites) if sites else {}
    findings = []
    for rule, values in found:
        site = labels.get(values["site"])
        findings.append(Finding(rule, values["share"], {**values, "site": site and line_first(site)}))
    return sorted(findings, key=lambda finding: -finding.share)
