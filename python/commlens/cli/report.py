# SPDX-License-Identifier: Apache-2.0
"""`commlens report`."""

from __future__ import annotations

import click
from rich.text import Text

from commlens.cli.options import (
    BUCKETS,
    RANKS,
    SECONDS,
    SIZES,
    comm_option,
    format_option,
    op_option,
    profile_argument,
    sql_option,
)
from commlens.profile import open_profile
from commlens.profile.meta import is_summary
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text
from commlens.reports.query import ORDERS, Selection, Shape
from commlens.reports.regions import refuse_older
from commlens.reports.report import as_dict, draw, plain_rows, read_report
from commlens.reports.run import read_run
from commlens.selection import names
from commlens.selection.sizes import BinRange, Buckets

CLASSES = ("p2p", "collective", "neighbor", "rma", "io", "completion", "comm", "other")
DEFAULT_TOP = 10


@click.command()
@profile_argument
@comm_option
@op_option("these operations")
@click.option(
    "--class",
    "classes",
    multiple=True,
    type=click.Choice(CLASSES),
    help="Only operations of this class. Repeatable.",
)
@click.option("--rank", "ranks", type=RANKS, metavar="RANKS", help="Only these world ranks: 0,12-15.")
@click.option(
    "--size",
    type=SIZES,
    metavar="LOW:HIGH",
    help="Only messages of at least LOW and less than HIGH bytes; both are 0 or powers of two, 64K and 1M are "
    "understood, either can be left out. Leaves out v and w collectives, whose sizes vary.",
)
@click.option(
    "--time",
    "time_ns",
    type=SECONDS,
    metavar="LOW:HIGH",
    help="Only rows whose time lies in this range of seconds, both ends included: the column max/rank, with "
    "--all-ranks the time of single ranks. Other rows count nowhere.",
)
@click.option("--all-ranks", is_flag=True, help="One more line for every rank.")
@click.option(
    "--callsites", is_flag=True, help="Rows by call site too: where in the application the time goes."
)
@click.option(
    "--buckets",
    type=BUCKETS,
    default="log2",
    show_default=True,
    metavar="BOUNDS",
    help="Message sizes in a row: log2, all, mpisee, or rising powers of two as in 128,1K,64K; a bucket begins with "
    "its lower bound and ends before the upper.",
)
@click.option(
    "--sort",
    type=click.Choice(list(ORDERS)),
    default="time",
    show_default=True,
    help="Order of communicators, rows and ranks; time is that of all ranks together.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    metavar="N",
    help="At most N communicators, N rows in each and N ranks in each row, by region at most N regions with as many "
    "communicators each; 0 means all.  "
    f"[default: {DEFAULT_TOP} in a table, all in csv and json]",
)
@click.option(
    "--by",
    type=click.Choice(["region"]),
    help="Rows by code region: for each region its communicators and their operations, of the calls that no region "
    "within it has.",
)
@click.option("--unfold", is_flag=True, help="Every communicator for itself instead of families.")
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
    callsites: bool,
    buckets: Buckets,
    sort: str,
    top: int | None,
    by: str | None,
    unfold: bool,
    style: str,
    show_sql: bool,
) -> None:
    """Show where the time and the bytes of PROFILE went.

    Communicators come first, by time; under each its operations by message size. Communicators that one
    line of the application made are folded into a family: s*.1 x64. With --by region there are code regions above
    them, by the time in MPI that is spent in each and not in a region within it.

    Columns: calls of all ranks; max/rank, the time of the rank that spent most, and avg/rank, the time of all
    ranks divided by the number of ranks in the communicator, whether they made the call or not; the longest
    single call; share, of the time all ranks spent in MPI; bytes sent and received by all ranks; where there
    are any, non-contig., the share of the calls that named a non-contiguous datatype.
    """
    if top is None:
        top = DEFAULT_TOP if style == "table" else 0
    shape = Shape(
        fold=not unfold,
        callsites=callsites,
        all_ranks=all_ranks,
        by_region=by == "region",
        buckets=buckets,
        sort=sort,
        top=top or None,
    )
    with open_profile(profile) as connection:
        if shape.by_region:
            refuse_older(connection)
        names.check_communicators(connection, comms)
        if not is_summary(connection):
            names.check_ranks(connection, ranks or ())
        selection = Selection(
            comms=comms,
            operations=names.matching_operations(connection, operations),
            classes=classes,
            ranks=ranks or (),
            size=size,
            time_ns=time_ns,
        )
        facts = read_run(connection)
        result = read_report(connection, selection, shape)
    screen = Screen()
    if show_sql:
        for title, statement in (*facts.statements, *result.statements):
            screen.plain(f"-- {title}\n{statement};\n\n")
    elif style == "json":
        screen.json(json_text(as_dict(result, facts)))
    elif style == "csv":
        title = "ranks" if all_ranks else "operations"
        screen.plain(
            csv_text(result.columns[title], [list(row.values()) for row in plain_rows(result, title)])
        )
    else:
        for name, text in facts.head():
            screen.lines(fold(f"{name:<10}", text, screen.width))
        for warning in facts.warnings():
            screen.lines(fold("warning   ", warning, screen.width, "yellow"))
        screen.lines([Text("")])
        screen.lines(draw(result).lines(screen.width) if result.lines else [Text("no calls match")])
