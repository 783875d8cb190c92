# SPDX-License-Identifier: Apache-2.0
"""Builds and draws a report from the rows that the statements of `query` return."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from commlens.profile import meta
from commlens.render.table import Column, Table
from commlens.render.units import average_text, bytes_text, path_text, share_text, size_text, time_text
from commlens.reports.present import LACKS_MEMBERS_SQL
from commlens.reports.query import GROUPS, Queries, Selection, Shape
from commlens.reports.run import Run
from commlens.reports.sites import Sites, read_sites
from commlens.selection.conditions import predefined_name
from commlens.selection.sizes import NULL_BIN
from commlens.selection.words import comms_text, operations_text, ranks_text
from commlens.symbols.paths import distinct_labels

Row = dict[str, Any]
RowKey = tuple[int, ...]

BAR_CELLS = 10

OUTSIDE = "outside all regions"

PLURAL = {
    "operation": "operations",
    "size": "sizes",
    "region": "regions",
    "family": "families",
    "communicator": "communicators",
    "row": "rows",
    "rank": "ranks",
}

KINDS = {
    "inter": "intercommunicator",
    "none": "calls that belong to no communicator",
    "set": "completion of requests of several communicators",
}

# Columns beside the rows of a statement, from which we compute how much --top left out.
CUT = ("place", "of_lines", "of_time_ns", "of_share")


@dataclass
class Report:
    """All rows of a report, and the statements that returned them."""

    shape: Shape
    selection: Selection
    groups: list[Row] = field(default_factory=list)
    lines: list[Row] = field(default_factory=list)
    operations: dict[RowKey, list[Row]] = field(default_factory=lambda: defaultdict(list))
    members: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    ranks: dict[RowKey, list[Row]] = field(default_factory=lambda: defaultdict(list))
    labels: dict[int, str] = field(default_factory=dict)
    sites: Sites = field(default_factory=Sites)
    statements: list[tuple[str, str]] = field(default_factory=list)
    columns: dict[str, list[str]] = field(default_factory=dict)

    def line_of(self, row: Row) -> RowKey:
        """Return what identifies the communicator line a row belongs to."""
        group = (row[self.shape.group],) if self.shape.group else ()
        return (*group, row[self.shape.line])

    def key_of(self, row: Row) -> RowKey:
        """Return what identifies a row of operations."""
        site = (row["callsite"],) if self.shape.callsites else ()
        op = () if self.shape.group == "op" else (row["op"],)
        return (*self.line_of(row), *op, row["bucket"], *site)

    def operation_rows(self) -> list[Row]:
        """Return the rows of operations in the order of the report."""
        return [row for line in self.lines for row in self.operations[self.line_of(line)]]

    def rank_rows(self) -> list[Row]:
        """Return the rows of single ranks in the order of the report."""
        return [rank for row in self.operation_rows() for rank in self.ranks[self.key_of(row)]]


def selection_text(selection: Selection) -> str:
    """Return the line of the header about a selection, and the base of the shares; empty if everything is selected.

    >>> selection_text(Selection(ranks=((0, 0), (2, 3)), classes=("p2p",)))
    'class p2p, ranks 0, 2-3; the header is of the whole run, shares are of the MPI time of the selected ranks'
    """
    chosen = comms_text(selection.comms)
    chosen += [operations_text(selection.operations)] if selection.operations else []
    chosen += [f"class {' or '.join(selection.classes)}"] if selection.classes else []
    chosen += [ranks_text(selection.ranks)] if selection.ranks else []
    chosen += [f"messages of {size_text(*selection.size.bounds)}"] if selection.size else []
    if selection.time_ns:
        low, high = selection.time_ns
        until = "or more" if high is None else f"to {time_text(high)}"
        chosen.append(f"rows of {time_text(low)} {until}")
    if not chosen:
        return ""
    base = "the selected ranks" if selection.ranks else "all ranks"
    return f"{', '.join(chosen)}; the header is of the whole run, shares are of the MPI time of {base}"


def refuse_single_ranks(selection: Selection, shape: Shape) -> None:
    """Refuse a request that needs the counters of single ranks."""
    asked = {"--rank": selection.ranks, "--time": selection.time_ns, "--all-ranks": shape.all_ranks}
    asked["--members"] = shape.members
    for option, is_asked in asked.items():
        if is_asked:
            raise meta.no_single_ranks(option)


def read_report(connection: sqlite3.Connection, selection: Selection, shape: Shape) -> Report:
    """Read the rows of a report."""
    is_summary = meta.is_summary(connection)
    if is_summary:
        refuse_single_ranks(selection, shape)
    sites = read_sites(connection, shape)
    report = Report(shape, selection, sites=sites)
    lacks_members = not is_summary and bool(connection.execute(LACKS_MEMBERS_SQL).fetchone()[0])
    queries = Queries(selection, shape, is_summary=is_summary, sites=sites.sql, lacks_members=lacks_members)
    cut = shape.top is not None

    def rows(title: str, sql: str) -> list[Row]:
        report.statements.append((title, sql))
        cursor = connection.execute(sql)
        report.columns[title] = [column[0] for column in cursor.description if column[0] not in CUT]
        return [dict(row) for row in cursor]

    groups = None
    if shape.group:
        report.groups = rows(GROUPS[shape.by][1], queries.groups())
        groups = [row[shape.group] for row in report.groups]
    report.lines = rows("communicators", queries.communicators(groups if cut else None))
    if groups is not None:
        order = {group: i for i, group in enumerate(groups)}
        report.lines.sort(key=lambda line: order[line[shape.group]])
    shown = [report.line_of(line) for line in report.lines] if cut else None
    for row in rows("operations", (queries.whole() if sites.is_tree else queries).operations(shown)):
        report.operations[report.line_of(row)].append(row)
    if shape.members:
        for row in rows("members", queries.members(shown)):
            report.members[row[shape.line]].append(row)
    if shape.all_ranks:
        keys = [report.key_of(row) for row in report.operation_rows()] if cut and not sites.is_tree else None
        for row in rows("ranks", queries.ranks(keys)):
            report.ranks[report.key_of(row)].append(row)
    made = {line["created_at"] for line in report.lines if line["created_at"] is not None}
    called = {row["callsite"] for row in report.operation_rows()} if shape.callsites else set()
    report.labels = distinct_labels(connection, made if sites.has_paths else made | called)
    report.sites.labels = sites.name(connection, called) if sites.has_paths else report.labels
    return report


COLUMNS = (
    Column("communicator", right=False),
    Column("size", right=False),
    Column("calls"),
    Column("calls/rank", wide=5),
    Column("collectives", wide=6, seldom=True),
    Column("max/rank"),
    Column("avg/rank"),
    Column("avg/call", wide=4),
    Column("longest", wide=2),
    Column("share"),
    Column("", right=False, wide=3, drawing=True),
    Column("sent"),
    Column("received"),
    Column("non-contig.", wide=1, seldom=True),
    Column("waiting", seldom=True),
    Column("operation/call", seldom=True),
)


GROUP_TITLES = {"region": "region", "op": "operation"}


def bar(share: float | None) -> str:
    """Return a bar whose length is the share, in steps of half a block."""
    halves = round(2 * BAR_CELLS * min(share or 0, 1))
    return "█" * (halves // 2) + "▌" * (halves % 2)


def numbers(row: Row, *, ranks: bool = True) -> list[str]:
    """Return the cells from `calls` on."""
    return [
        f"{row['calls']:,}",
        average_text(row["calls_per_rank"]) if ranks else "",
        average_text(row["collectives"]) if row.get("collectives") else "",
        time_text(row["rank_max_ns"] if ranks else row["time_ns"]),
        time_text(row["rank_avg_ns"]) if ranks else "",
        time_text(row["call_avg_ns"]),
        time_text(row["call_max_ns"]),
        share_text(row["share"]),
        bar(row["share"]),
        bytes_text(row["bytes_sent"]),
        bytes_text(row["bytes_received"]),
        share_text(row["noncontiguous"] / (row["calls"] or 1)) if row["noncontiguous"] else "",
        *waiting_cells(row),
    ]


def waiting_cells(row: Row) -> tuple[str, str]:
    """Return the cells for waiting and operation; empty for rows without them."""
    if row.get("waiting_ns") is None or not row["time_ns"]:
        return "", ""
    return share_text(row["waiting_ns"] / row["time_ns"]), time_text(
        round(row["operation_ns"] / row["calls"])
    )


def line_size(line: Row) -> str:
    """Return the size of a communicator, or of each in a family."""
    low, high = line["size_min"], line["size_max"]
    if low is None:
        return ""
    noun = "rank" if high == 1 else "ranks"
    return f"{low} {noun}" if low == high else f"{low}-{high} {noun}"


def line_origin(line: Row, labels: dict[int, str]) -> str:
    """Return the origin of a communicator, and its name in the application."""
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
    """Return the line about the rows that --top left out after `shown`, if any.

    Its share has the base of the shares in the rows: the MPI time of all selected ranks.
    """
    left = row.get("of_lines", 0) - len(shown)  # no such column: nothing was left out
    if left <= 0:
        return None
    # Times are exact: the difference of two sums of shares is seldom 0 where nothing is left.
    time_ns = row["of_time_ns"] - sum(other["time_ns"] for other in shown)
    share = (row["of_share"] or 0) * time_ns / row["of_time_ns"] if row["of_time_ns"] else 0
    return f"and {left:,} more {noun if left == 1 else PLURAL[noun]} with {share_text(share)} of the MPI time"


def name_of(line: Row) -> str:
    """Return the name of a communicator line; with the number of communicators in a family, and its name in MPI."""
    count, predefined = line["communicators"], predefined_name(line)
    name = f"{line['communicator']} x{count}" if count > 1 else str(line["communicator"])
    return f"{name} {predefined}" if predefined else name


def draw(report: Report) -> Table:
    """Return the communicators with their operations as one table; with regions or procedures, below these."""
    shape = report.shape
    noun = {"comm_size": "size", "family": "family"}.get(shape.line, "communicator")
    if not shape.group:
        table = Table(COLUMNS)
        draw_lines(table, report, report.lines)
        say_more(table, report.lines, noun, "")
        return table
    title = GROUP_TITLES[shape.by]
    table = Table((Column(title, right=False), *COLUMNS[1:]))
    lines = defaultdict(list)
    for line in report.lines:
        lines[line[shape.group]].append(line)
    for i, group in enumerate(report.groups):
        if i:
            table.say("")
        mine = lines[group[shape.group]]
        size = line_size({"size_min": group["ranks"], "size_max": group["ranks"]})
        name = group["operation"] if shape.by == "op" else path_text(group["path"]) or OUTSIDE
        table.add([name, size, *numbers(group)], "bold")
        draw_lines(table, report, mine, "  ")
        say_more(table, mine, noun, "  ")
    say_more(table, report.groups, title, "")
    return table


def add_init(table: Table, init: Row) -> None:
    """Add the row of MPI_Init, which is not between MPI_Init and MPI_Finalize and has no part in any share."""
    cells = {
        "size": line_size({"size_min": init["ranks"], "size_max": init["ranks"]}),
        "calls": f"{init['ranks']:,}",
        "calls/rank": average_text(1),
        "max/rank": time_text(init["rank_max_ns"]),
        "avg/rank": time_text(init["rank_avg_ns"]),
        "avg/call": time_text(init["rank_avg_ns"]),
        "longest": time_text(init["rank_max_ns"]),
    }
    table.say("")
    table.add(["MPI_Init", *(cells.get(column.title, "") for column in COLUMNS[1:])], "bold")
    table.say("before the time from MPI_Init to MPI_Finalize, and in no sum or share", "  ")


def draw_lines(table: Table, report: Report, lines: list[Row], indent: str = "") -> None:
    """Draw communicators with their operations; within a region they are indented, without blank lines."""
    style = "" if indent else "bold"
    for i, line in enumerate(lines):
        if i and not indent:
            table.say("")
        table.add([indent + name_of(line), line_size(line), *numbers(line)], style)
        origin = line_origin(line, report.labels)
        if origin:
            table.say(origin, indent + "  ")
        draw_members(table, report.members[line[report.shape.line]], report.shape.top, indent + "  ")
        rows = report.operations[report.line_of(line)]
        if report.sites.is_tree:
            draw_paths(table, report, rows, indent + "  ")
            continue
        for row in rows:
            draw_row(table, report, row, indent + "  ")
            if report.shape.callsites:
                table.say(report.sites.labels.get(row["callsite"], "unknown"), indent + "    ")
            draw_ranks(table, report.ranks[report.key_of(row)], indent + "    ")
        say_more(table, rows, "row", indent + "  ")


def draw_row(table: Table, report: Report, row: Row, indent: str) -> None:
    """Draw a row of operations."""
    size = size_text(row["size_low"], row["size_high"], is_null=row["bucket"] == NULL_BIN)
    name = "" if report.shape.by == "op" else f"{indent}{row['operation']}"
    table.add([name, size, *numbers(row)])


def draw_paths(table: Table, report: Report, rows: list[Row], indent: str) -> None:
    """Draw the rows of operations of a line below the call paths to them."""
    for depth, item in report.sites.walk(rows, report.shape):
        here = indent + "  " * depth
        if isinstance(item, str):
            table.say(item, here)
        elif "call_path" in item:
            table.add([here + item["call_path"], "", *numbers(item)])
        else:
            draw_row(table, report, item, here)
            draw_ranks(table, report.ranks[report.key_of(item)], here + "  ")


def members_text(members: str) -> str:
    """Return the ranks of a communicator as table comm has them.

    >>> members_text("5"), members_text("0-1,4")
    ('rank 5', 'ranks 0-1, 4')
    """
    return f"rank{'' if members.isdigit() else 's'} {', '.join(part.strip() for part in members.split(','))}"


def draw_members(table: Table, members: list[Row], top: int | None, indent: str) -> None:
    """Draw the ranks of the communicators of a line, with their names if there are several."""
    for row in members[:top]:
        name = f"{row['communicator']}: " if len(members) > 1 else ""
        table.say(f"{name}{members_text(row['members'])}", indent)
    left = len(members) - len(members[:top])
    if left:
        table.say(f"and {left:,} more {'communicator' if left == 1 else PLURAL['communicator']}", indent)


def draw_ranks(table: Table, ranks: list[Row], indent: str) -> None:
    """Draw the lines of single ranks: the first of them, how many --top left out, and the last."""
    for i, rank in enumerate(ranks):
        if i + 1 == len(ranks):
            say_more(table, ranks, "rank", indent)
        table.add([f"{indent}rank {rank['rank']}", "", *numbers(rank, ranks=False)])


def say_more(table: Table, shown: list[Row], noun: str, prefix: str) -> None:
    """Add the line about the rows that --top left out after `shown`, if any."""
    left = more(shown[0], shown, noun) if shown else None
    if left:
        if not prefix:
            table.say("")
        table.say(left, prefix)


def plain_rows(report: Report, title: str) -> list[Row]:
    """Return the rows of a statement in the order of the report, as its SQL gives them."""
    rows = {
        "communicators": report.lines,
        "operations": report.operation_rows(),
        "members": [row for rows in report.members.values() for row in rows],
        "ranks": report.rank_rows(),
    }.get(title, report.groups)
    return [{column: row[column] for column in report.columns[title]} for row in rows]


def as_dict(report: Report, facts: Run) -> dict[str, Any]:
    """Return the complete report for JSON."""
    return {"run": facts.as_dict(), **{title: plain_rows(report, title) for title in report.columns}}
