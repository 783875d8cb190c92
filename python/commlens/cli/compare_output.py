# SPDX-License-Identifier: Apache-2.0
"""What `commlens compare` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from rich.text import Text

from commlens.base.escape import Target, escape
from commlens.compare import groups, groups_text, text
from commlens.compare.gate import Condition, failing
from commlens.compare.groups import Grouped
from commlens.compare.model import Comparison, as_dict, rule_of
from commlens.compare.text import failure_text
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text

Failures = Mapping[Condition, Sequence[str]]
"""The lines about the rows that meet a condition."""


def failed(result: Comparison, condition: Condition, *, untested: bool) -> list[str]:
    """Return a line for each row that meets a condition."""
    return [failure_text(row, condition) for row in failing(result, condition, untested=untested)]


def junit_text(result: Comparison, failures: Failures, skipped: Sequence[Condition]) -> str:
    """Return the conditions as test cases of JUnit's XML, as systems for continuous integration read it."""
    suite = ElementTree.Element(
        "testsuite",
        name="commlens compare",
        tests=str(len(failures)),
        failures=str(sum(1 for lines in failures.values() if lines)),
        errors="0",
        skipped=str(sum(1 for condition, lines in failures.items() if condition in skipped and not lines)),
    )
    for condition, lines in failures.items():
        case = ElementTree.SubElement(suite, "testcase", classname="commlens.compare", name=condition.text)
        texts = [escape(line, Target.LINE) for line in lines]
        if texts:
            ElementTree.SubElement(case, "failure", message=texts[0]).text = "\n".join(texts)
        elif condition in skipped:
            ElementTree.SubElement(case, "skipped", message=text.untested_text(result, [condition]))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, "unicode") + "\n"


def show(
    result: Comparison,
    labels: list[str],
    failures: Failures,
    skipped: Sequence[Condition],
    top: int,
    style: str,
) -> None:
    """Print the comparison of two sides in a format; `labels` has what --by made the sides, or nothing."""
    screen = Screen()
    lines = [line for each in failures.values() for line in each]
    if style == "junit":
        screen.plain(junit_text(result, failures, skipped))
    elif style == "json":
        screen.json(json_text(document(result, lines, [condition.text for condition in skipped])))
    elif style == "csv":
        all_rows = row_dicts(result)
        screen.plain(csv_text(list(all_rows[0]), [list(row.values()) for row in all_rows]))
    else:
        screen.lines(fold("", text.headline(result), screen.width, "bold"))
        screen.lines(fold("", "; ".join(labels), screen.width) if labels else [])
        screen.lines(fold("", result.statement(), screen.width))
        for line in text.setup_lines(result):
            screen.lines(fold("", line, screen.width))
        for line in text.outlier_lines(result):
            screen.lines(fold("", line, screen.width, "yellow"))
        screen.lines([Text("")])
        screen.lines(text.draw(result, top or None).lines(screen.width))
        for line in lines:
            screen.lines([Text("")])
            screen.line(line, "bold red")


def row_dicts(result: Comparison) -> list[dict[str, Any]]:
    """Return all rows for csv and json, those of the whole run first."""
    return [as_dict(row) for row in (result.elapsed, result.whole, *result.rows)]


def document(result: Comparison, failures: list[str], skipped: list[str]) -> dict[str, Any]:
    """Return the comparison for json."""
    unmatched = {id(node) for _, node, _ in result.only}
    return {
        "a": [run.path for run in result.sides[0]],
        "b": [run.path for run in result.sides[1]],
        "difference": text.headline(result),
        "statistics": result.statement(),
        "matched": [
            {"family": node.first.label, "origin": node.first.origin, "rule": rule_of(node)}
            for node in result.nodes
            if id(node) not in unmatched
        ],
        "unmatched": [
            {"side": side, "family": node.first.label, "origin": node.first.origin, "share": share}
            for side, node, share in result.only
        ],
        "settings": {
            name: {"a": before, "b": after}
            for name, (before, after) in text.setup_differences(result).items()
        },
        "runs": {
            name: dict(zip("ab", values)) for name, values in text.run_differences(result.sides).items()
        },
        "outliers": text.outlier_lines(result),
        "failures": failures,
        "untested": skipped,
        "rows": row_dicts(result),
    }


def show_groups(result: Grouped, top: int, style: str) -> None:
    """Print the comparison of several configurations in a format."""
    screen = Screen()
    rows = groups.row_dicts(result)
    if style == "json":
        screen.json(
            json_text(
                {
                    "by": result.by,
                    "configurations": {
                        group.value: [run.path for run in group.runs] for group in result.groups
                    },
                    "differences": groups_text.headlines(result),
                    "statistics": groups_text.statement(result),
                    "also_different": groups.also_different(result),
                    "runs": groups_text.differing_runs(result),
                    "outliers": groups_text.outlier_lines(result),
                    "rows": rows,
                }
            )
        )
    elif style == "csv":
        screen.plain(csv_text(list(rows[0]), [list(row.values()) for row in rows]))
    else:
        for line in groups_text.headlines(result):
            screen.lines(fold("", line, screen.width, "bold"))
        screen.lines(fold("", groups_text.statement(result), screen.width))
        for line in groups_text.setup_lines(result):
            screen.lines(fold("", line, screen.width))
        for line in groups_text.outlier_lines(result):
            screen.lines(fold("", line, screen.width, "yellow"))
        screen.lines([Text("")])
        screen.lines(groups_text.draw_groups(result).lines(screen.width))
        screen.lines([Text("")])
        screen.lines(groups_text.draw(result, top or None).lines(screen.width))
