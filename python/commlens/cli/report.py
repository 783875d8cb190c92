# SPDX-License-Identifier: Apache-2.0
"""`commlens report`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import click
from rich.text import Text

from commlens.cli.options import (
    BUCKETS,
    SECONDS,
    SIZES,
    class_option,
    comm_option,
    format_option,
    op_option,
    profile_argument,
    rank_option,
    reverse_option,
    snapshot_options,
    sql_option,
)
from commlens.cli.outputs import print_statements
from commlens.findings.find import Finding, read_findings, statements
from commlens.findings.text import head_lines
from commlens.jobs.hang import Group, draw_end, read_end
from commlens.jobs.history import chosen, open_history, profile_of
from commlens.profile import open_profile
from commlens.profile.meta import is_summary
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text
from commlens.reports.query import ORDERS, Selection, Shape
from commlens.reports.regions import refuse_older
from commlens.reports.report import Report, add_init, as_dict, draw, plain_rows, read_report, selection_text
from commlens.reports.run import Run, read_run
from commlens.reports.waiting import add_waiting
from commlens.selection import names
from commlens.selection.sizes import BinRange, Buckets

DEFAULT_TOP = 10
ENDED_SQL = "SELECT 1 FROM rank WHERE state <> 'running' LIMIT 1"
WAITING_OF_ALL = "--waiting is of all ranks, regions and call sites together: use it without --by region, --callsites, --rank and --time"


class Answer(NamedTuple):
    """What a report shows.

    Its format; findings, or with --sql the queries behind them; facts of the run; where the ranks were, if they were
    killed or still ran when the counters were read; communicators.
    """

    style: str
    findings: list[Finding]
    rules: list[tuple[str, str]]
    facts: Run
    has_ended: bool
    end: tuple[list[Group], list[int]]
    report: Report


@click.command()
@profile_argument
@comm_option
@op_option("these operations")
@class_option
@rank_option
@click.option(
    "--size",
    type=SIZES,
    metavar="LOW:HIGH",
    help="Only messages of at least LOW and less than HIGH bytes. Both bounds are 0 or powers of two, such as 64K "
    "or 1M; "
    "either may be omitted. Excludes v and w collectives, whose sizes vary, and calls to MPI_PROC_NULL.",
)
@click.option(
    "--time",
    "time_ns",
    type=SECONDS,
    metavar="LOW:HIGH",
    help="Only rows whose max/rank time is in this range of seconds, bounds included; with --all-ranks, whose time "
    "of a "
    "single rank is. Totals exclude the other rows.",
)
@click.option(
    "--all-ranks",
    is_flag=True,
    help="Add a line for every rank; the first and the last in the order are always shown.",
)
@click.option(
    "--members",
    is_flag=True,
    help="List the ranks of each communicator; of a family or size, those of the first communicators.",
)
@click.option(
    "--callsites",
    is_flag=True,
    help="Split rows by call site in the application; in a table by call path, if the run recorded paths "
    "(COMMLENS_FRAMES).",
)
@click.option(
    "--flat",
    is_flag=True,
    help="With --callsites: one row for each call site, of all paths to it together.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --callsites: the outermost N functions of each path; calls of deeper functions are added to the last.",
)
@click.option(
    "--wrapper",
    "wrappers",
    multiple=True,
    metavar="PATTERN",
    help="With --callsites: functions that only pass calls on to MPI, such as 'hypre_MPI_*'. The function around "
    "them is the "
    "call site; paths show them in brackets. Repeatable.  [default: COMMLENS_WRAPPERS; '' for none]",
)
@click.option(
    "--buckets",
    type=BUCKETS,
    default="log2",
    show_default=True,
    metavar="BOUNDS",
    help="How message sizes are grouped into rows: log2, all, mpisee, or increasing powers of two such as "
    "128,1K,64K. A "
    "bucket includes its lower bound and excludes its upper bound.",
)
@click.option(
    "--sort",
    type=click.Choice(list(ORDERS)),
    default="time",
    show_default=True,
    help="Order of communicators, rows and ranks. time is the sum over all ranks.",
)
@reverse_option
@click.option(
    "--top",
    type=click.IntRange(min=0),
    metavar="N",
    help="At most N communicators, N rows per communicator and N ranks per row; with --by region or op, at most N "
    "of these "
    "and N communicators in each. 0 means all.  "
    f"[default: {DEFAULT_TOP} in a table, all in csv and json]",
)
@click.option(
    "--by",
    type=click.Choice(["family", "comm-size", "op", "region"]),
    default="family",
    show_default=True,
    help="What the first rows are. family: communicators, folded into families. comm-size: all communicators of "
    "one size "
    "together. op: MPI procedures, each with its communicators. region: code regions, each with its communicators; "
    "a call "
    "is listed only in its innermost region.",
)
@click.option(
    "--waiting",
    is_flag=True,
    help="Split the time of messages and collectives into waiting for other ranks and the operation; of all ranks, "
    "regions and call sites together.",
)
@click.option("--unfold", is_flag=True, help="Show each communicator instead of families.")
@snapshot_options
@format_option
@sql_option
def report(
    profile: str,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    classes: tuple[str, ...],
    ranks: tuple[tuple[int, int], ...] | None,
    size: BinRange | None,
    time_ns: tuple[int, int | None] | None,
    all_ranks: bool,
    members: bool,
    callsites: bool,
    buckets: Buckets,
    sort: str,
    reverse: bool,
    top: int | None,
    by: str,
    waiting: bool,
    unfold: bool,
    at: float | None,
    between: tuple[float, float] | None,
    style: str,
    show_sql: bool,
    **of_paths: Any,
) -> None:
    """Show where the time and the bytes of PROFILE went.

    Lists the communicators by time, and below each its operations by message size. Communicators that one line of the
    application created are folded into a family: s*.1 x64. With --by region, code regions come first, ordered by the
    MPI time in each region outside the regions nested in it; with --by op, MPI procedures.

    Columns: size: number of ranks of a communicator; in the rows below it the message size, of a collective the size of
    the block for one process. calls: number of calls on all ranks. calls/rank: calls divided by the number of ranks in
    the communicator. collectives: number of collective operations; one operation is a call on each rank of the
    communicator. max/rank: time of the rank with the most time. avg/rank: time of all ranks divided by the number of
    ranks in the communicator, including ranks that did not make the call. avg/call, longest: average and maximum time
    of a single call. share: share of the MPI time of all ranks, with --rank of the selected ranks, also in the lines
    that count the rows left out. sent, received: bytes of all ranks; a collective counts the blocks of all processes,
    so that the bytes of a call can exceed its size. non-contig.: share of the calls with a non-contiguous datatype,
    shown if there are any. With --callsites, if the run recorded call paths: a tree of functions from the outside in,
    each with the sums of the calls below it; functions that lead to one other only share its line. A path ends with
    function and line of the call. With --waiting: waiting: share of the time in which ranks waited for others,
    estimated from samples; operation/call: average time of a call without it.

    Begins with one to five findings if there are any; commlens explain shows their evidence. A profile that commlens
    recover made then shows where each rank was when the job ended: its MPI call or the last one, since when, and who
    was missing there. Times are up to the last sign of life of each rank.
    """
    top = top if top is not None else DEFAULT_TOP if style == "table" else 0
    shape = Shape(by, not unfold, callsites, members, all_ranks, buckets, sort, reverse, top or None)
    _refuse(shape, "sql" if show_sql else style, waiting=waiting, is_part=bool(callsites or ranks or time_ns))
    shape = _with_paths(shape, tree=style == "table", **of_paths)
    with _part_of(profile, at, between) as name, open_profile(name) as connection:
        if by == "region":
            refuse_older(connection)
        asked = Selection(comms, operations, classes, ranks or (), size, time_ns)
        selection = _checked(connection, asked)
        answer = _read(connection, selection, shape, "sql" if show_sql else style)
        if waiting:
            add_waiting(connection, answer.report)
    _print(Screen(), answer)


@contextmanager
def _part_of(profile: str, at: float | None, between: tuple[float, float] | None) -> Iterator[str]:
    """Return the path of the profile, or of that of a snapshot."""
    if at is None and between is None:
        yield profile
        return
    if at is not None and between is not None:
        raise click.UsageError("--at is one time, and --between are two: use one of them")
    history = open_history(profile)
    with profile_of(history, chosen(history, at, between)) as name:
        yield name


def _refuse(shape: Shape, style: str, *, waiting: bool, is_part: bool) -> None:
    """Refuse options that contradict each other or the format. is_part: rows are of some ranks or call sites."""
    if shape.members and style == "csv":
        raise click.UsageError(
            "--members adds lines to a table, and rows to json: csv has one kind of rows only"
        )
    if not shape.fold and shape.by == "comm-size":
        raise click.UsageError(
            "--unfold shows each communicator, --by comm-size only their sizes: use one of them"
        )
    if waiting and (shape.by == "region" or is_part):
        raise click.UsageError(WAITING_OF_ALL)


def _with_paths(
    shape: Shape, *, tree: bool, flat: bool, depth: int | None, wrappers: tuple[str, ...]
) -> Shape:
    """Add the options of call paths to a shape. Refuse them without --callsites, and --flat together with --depth."""
    for option, is_asked in (("--flat", flat), ("--depth", depth), ("--wrapper", wrappers)):
        if is_asked and not shape.callsites:
            raise click.UsageError(f"{option} is for call sites: use it with --callsites")
    if flat and depth:
        raise click.UsageError(
            "--flat shows the innermost functions, and --depth the outermost: use one of them"
        )
    return replace(shape, tree=tree, flat=flat, depth=depth, wrappers=wrappers)


def _checked(connection: sqlite3.Connection, asked: Selection) -> Selection:
    """Return a selection with the procedures that its names match; refuse names and ranks that the profile lacks."""
    names.check_communicators(connection, asked.comms)
    if not is_summary(connection):
        names.check_ranks(connection, asked.ranks)
    return replace(asked, operations=names.matching_operations(connection, asked.operations))


def _read(connection: sqlite3.Connection, selection: Selection, shape: Shape, style: str) -> Answer:
    """Read what the report shows in a format."""
    facts = read_run(connection)
    end = read_end(connection) if facts.ranks["unfinished"] else ([], [])
    findings = read_findings(connection) if style in ("table", "json") else []
    rules = statements(connection) if style == "sql" else []
    has_ended = connection.execute(ENDED_SQL).fetchone() is not None
    return Answer(style, findings, rules, facts, has_ended, end, read_report(connection, selection, shape))


def _print(screen: Screen, answer: Answer) -> None:
    """Print a report in its format."""
    if answer.style == "sql":
        _print_sql(screen, answer)
    elif answer.style == "json":
        _print_json(screen, answer)
    elif answer.style == "csv":
        _print_csv(screen, answer.report, "ranks" if answer.report.shape.all_ranks else "operations")
    else:
        _print_table(screen, answer)


def _print_sql(screen: Screen, answer: Answer) -> None:
    """Print the statements that read the rows."""
    print_statements(screen, (*answer.rules, *answer.facts.statements, *answer.report.statements))


def _print_json(screen: Screen, answer: Answer) -> None:
    """Print everything with all columns."""
    findings = [finding.as_dict() for finding in answer.findings]
    screen.json(json_text({"findings": findings, **as_dict(answer.report, answer.facts)}))


def _print_csv(screen: Screen, result: Report, title: str) -> None:
    """Print one kind of rows with all columns."""
    rows = [list(row.values()) for row in plain_rows(result, title)]
    screen.plain(csv_text(result.columns[title], rows))


def _print_table(screen: Screen, answer: Answer) -> None:
    """Print the findings, the facts of the run, and the communicators with their operations."""
    screen.lines(head_lines(answer.findings, screen.width))
    report = answer.report
    if any(answer.end):
        screen.lines(
            [Text("when the job ended" if answer.has_ended else "when the counters were read", style="bold")]
        )
        screen.lines([*draw_end(*answer.end, report.shape.top or 0).lines(screen.width), Text("")])
    _print_head(screen, answer.facts, report)
    if not report.lines:
        screen.lines([Text("no calls match")])
        return
    table = draw(report)
    if report.shape.by == "op" and answer.facts.init and not selection_text(report.selection):
        add_init(table, answer.facts.init)
    screen.lines(table.lines(screen.width))


def _print_head(screen: Screen, facts: Run, report: Report) -> None:
    """Print the facts of the run, the selection, the warnings and the hints."""
    selected = selection_text(report.selection)
    for name, text in [*facts.head(), *([("selection", selected)] if selected else [])]:
        screen.lines(fold(f"{name:<14}", text, screen.width))
    for warning in (*facts.warnings(), *report.sites.warnings):
        screen.lines(fold(f"{'warning':<14}", warning, screen.width, "yellow"))
    for hint in report.sites.hints:
        screen.lines(fold(f"{'hint':<14}", hint, screen.width))
    screen.lines([Text("")])
