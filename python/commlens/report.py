# SPDX-License-Identifier: Apache-2.0
"""A report: the rows that the statements of `query` return, put together and drawn."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from commlens import run
from commlens.callsites import callsite_labels
from commlens.query import Queries, Selection, Shape
from commlens.table import Column, Table
from commlens.units import bytes_text, share_text, size_text, time_text

Row = dict[str, Any]
RowKey = tuple[int, ...]

BAR_CELLS = 10

PLURAL = {"family": "families", "communicator": "communicators", "row": "rows", "rank": "ranks"}

KINDS = {
    "inter": "intercommunicator",
    "none": "calls that belong to no communicator",
    "set": "completion of requests of several communicators at once",
}

# What a statement returns beside its rows so that we can say how much --top left out.
CUT = ("place", "of_lines", "of_time_ns")


@dataclass
class Report:
    """All rows of a report, and the statements that gave them."""

    shape: Shape
    lines: list[Row] = field(default_factory=list)
    operations: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    ranks: dict[RowKey, list[Row]] = field(default_factory=lambda: defaultdict(list))
    labels: dict[int, str] = field(default_factory=dict)
    statements: list[tuple[str, str]] = field(default_factory=list)
    columns: dict[str, list[str]] = field(default_factory=dict)

    def line_of(self, row: Row) -> int:
        """Return the number of the communicator line a row belongs to."""
        number: int = row["family" if self.shape.fold else "comm"]
        return number

    def key_of(self, row: Row) -> RowKey:
        """Return what identifies a row of operations."""
        site = (row["callsite"],) if self.shape.callsites else ()
        return (self.line_of(row), row["op"], row["bucket"], *site)

    def operation_rows(self) -> list[Row]:
        """Return the rows of operations in the order of the report."""
        return [row for line in self.lines for row in self.operations[self.line_of(line)]]

    def rank_rows(self) -> list[Row]:
        """Return the rows of single ranks in the order of the report."""
        return [rank for row in self.operation_rows() for rank in self.ranks[self.key_of(row)]]


def read_report(connection: sqlite3.Connection, selection: Selection, shape: Shape) -> Report:
    """Read the rows of a report."""
    report, queries, cut = Report(shape), Queries(selection, shape), shape.top is not None

    def rows(title: str, sql: str) -> list[Row]:
        report.statements.append((title, sql))
        cursor = connection.execute(sql)
        report.columns[title] = [column[0] for column in cursor.description if column[0] not in CUT]
        return [dict(row) for row in cursor]

    report.lines = rows("communicators", queries.communicators())
    shown = [report.line_of(line) for line in report.lines] if cut else None
    for row in rows("operations", queries.operations(shown)):
        report.operations[report.line_of(row)].append(row)
    if shape.all_ranks:
        keys = [report.key_of(row) for row in report.operation_rows()] if cut else None
        for row in rows("ranks", queries.ranks(keys)):
            report.ranks[report.key_of(row)].append(row)
    sites = [line["created_at"] for line in report.lines if line["created_at"] is not None]
    if shape.callsites:
        sites += [row["callsite"] for row in report.operation_rows()]
    report.labels = callsite_labels(connection, sites)
    return report


COLUMNS = (
    Column("communicator", right=False),
    Column("size", right=False),
    Column("calls"),
    Column("max/rank"),
    Column("avg/rank"),
    Column("longest", wide=2),
    Column("share"),
    Column("", right=False, wide=3, drawing=True),
    Column("sent"),
    Column("received"),
    Column("non-contig.", wide=1, seldom=True),
)


def bar(share: float | None) -> str:
    """Return a bar whose length is the share; a half block shows what is less than one."""
    halves = round(2 * BAR_CELLS * min(share or 0, 1))
    return "█" * (halves // 2) + "▌" * (halves % 2)


def numbers(row: Row, *, ranks: bool = True) -> list[str]:
    """Return the cells from `calls` on."""
    return [
        f"{row['calls']:,}",
        time_text(row["rank_max_ns"] if ranks else row["time_ns"]),
        time_text(row["rank_avg_ns"]) if ranks else "",
        time_text(row["call_max_ns"]),
        share_text(row["share"]),
        bar(row["share"]),
        bytes_text(row["bytes_sent"]),
        bytes_text(row["bytes_received"]),
        share_text(row["noncontiguous"] / row["calls"]) if row["noncontiguous"] else "",
    ]


def line_size(line: Row) -> str:
    """Return how many processes a communicator, or each of a family, has."""
    low, high = line["size_min"], line["size_max"]
    if low is None:
        return ""
    noun = "rank" if high == 1 else "ranks"
    return f"{low} {noun}" if low == high else f"{low}-{high} {noun}"


def line_origin(line: Row, labels: dict[int, str]) -> str:
    """Return where a communicator comes from, and what the application calls it."""
    parts = [KINDS[line["kind"]]] if line["kind"] in KINDS else []
    if line["user_name"]:
        parts.append(f'"{line["user_name"]}"')
    if line["creator"]:
        of = f" of {line['parent']}" if line["parent"] else ""
        at = f" at {labels[line['created_at']]}" if line["created_at"] in labels else ""
        parts.append(f"{line['creator']}{of}{at}")
    if line["topology"]:
        parts.append(line["topology"])
    return ", ".join(parts)


def more(row: Row, shown: list[Row], noun: str) -> str | None:
    """Return the line for what --top left out after `shown`, if it left out something."""
    left = row.get("of_lines", 0) - len(shown)  # no such column: nothing was left out
    if left <= 0:
        return None
    time_ns = row["of_time_ns"] - sum(other["time_ns"] for other in shown)
    share = time_ns / row["of_time_ns"] if row["of_time_ns"] else 0
    return f"and {left:,} more {noun if left == 1 else PLURAL[noun]} with {share_text(share)} of the time"


def name_of(line: Row) -> str:
    """Return the name of a communicator line; a family with how many there are."""
    count = line["communicators"]
    return f"{line['communicator']} x{count}" if count > 1 else str(line["communicator"])


def draw(report: Report) -> Table:
    """Return the communicators with their operations as one table."""
    table = Table(COLUMNS)
    for i, line in enumerate(report.lines):
        if i:
            table.say("")
        table.add([name_of(line), line_size(line), *numbers(line)], "bold")
        origin = line_origin(line, report.labels)
        if origin:
            table.say(origin, "  ")
        rows = report.operations[report.line_of(line)]
        for row in rows:
            table.add([f"  {row['operation']}", size_text(row["size_low"], row["size_high"]), *numbers(row)])
            if report.shape.callsites:
                table.say(report.labels.get(row["callsite"], "unknown"), "    ")
            ranks = report.ranks[report.key_of(row)]
            for rank in ranks:
                table.add([f"    rank {rank['rank']}", "", *numbers(rank, ranks=False)])
            left = more(ranks[0], ranks, "rank") if ranks else None
            if left:
                table.say(left, "    ")
        left = more(rows[0], rows, "row") if rows else None
        if left:
            table.say(left, "  ")
    left = (
        more(report.lines[0], report.lines, "family" if report.shape.fold else "communicator")
        if report.lines
        else None
    )
    if left:
        table.say("")
        table.say(left)
    return table


def plain_rows(report: Report, title: str) -> list[Row]:
    """Return the rows of a statement in the order of the report, as its SQL gives them."""
    rows = {
        "communicators": report.lines,
        "operations": report.operation_rows(),
        "ranks": report.rank_rows(),
    }[title]
    return [{column: row[column] for column in report.columns[title]} for row in rows]


def as_dict(report: Report, facts: run.Run) -> dict[str, Any]:
    """Return the whole report for JSON."""
    return {"run": facts.as_dict(), **{title: plain_rows(report, title) for title in report.columns}}
