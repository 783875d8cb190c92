# SPDX-License-Identifier: Apache-2.0
"""`commlens regions`."""

from __future__ import annotations

import click
from rich.text import Text

from commlens.cli.options import format_option, profile_argument, rank_option, sql_option, top_option
from commlens.cli.outputs import show_data
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import fold
from commlens.reports.regions import NO_REGIONS, NOT_IN_SUMMARIES, draw, legend, read_regions
from commlens.reports.run import read_run
from commlens.selection.words import ranks_text

DEFAULT_TOP = 10


@click.command()
@profile_argument
@click.option(
    "--executions",
    is_flag=True,
    help="Show each execution of an outermost region separately, with the regions nested in it.",
)
@click.option(
    "--iterations",
    is_flag=True,
    help="Show each iteration of a loop separately, with the regions nested in it.",
)
@rank_option
@click.option(
    "--all-ranks",
    is_flag=True,
    help="Add a line for every rank to each region, ordered by time. If --top limits them, the rank with the least "
    "time "
    "is still there.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    metavar="N",
    help="Draw N levels of regions; 1 is the outermost. csv and json always contain all levels.  [default: all]",
)
@top_option(
    DEFAULT_TOP,
    "Draw at most N nested regions per region, and at most N executions, iterations or ranks: those with the most "
    "time. "
    "0 means all. csv and json always contain all.",
)
@click.option("--unfold", is_flag=True, help="Show each communicator instead of families.")
@format_option
@sql_option
def regions(
    profile: str,
    executions: bool,
    iterations: bool,
    ranks: tuple[tuple[int, int], ...] | None,
    all_ranks: bool,
    depth: int | None,
    top: int,
    unfold: bool,
    style: str,
    show_sql: bool,
) -> None:
    """Draw the code regions of PROFILE as a tree.

    Columns: calls: number of calls on all ranks. max/rank, avg/rank: maximum and average time over the ranks that
    entered the region. slowest: the rank with max/rank. own/rank: average time outside nested regions. MPI: share of
    the region's time inside MPI calls, nested regions included. A bar: the region's share of the whole program; the
    dark part is its own time. max/avg: imbalance of the ranks; of a single rank, its time divided by the average. PE,
    LB, CE: parallel efficiency, load balance, communication efficiency; unknown (-) in a region of a rank that left no
    time of death. A terminal shows the columns that fit, and a
    wide one also min/rank and the share as a number.

    The lines below a region show the number of ranks if some did not enter it, its tags, the communicators with the
    most time, the iterations of a loop with the distribution of their times, and the application's metrics.
    """
    by = (*(["execution"] if executions else []), *(["iteration"] if iterations else []))
    with open_profile(profile) as connection:
        found = read_regions(connection, by, fold=not unfold, all_ranks=all_ranks, ranks=ranks or ())
        warnings = read_run(connection).warnings()
    screen = Screen()
    title = "ranks" if all_ranks else "parts" if by else "regions"
    is_shown = show_data(
        screen,
        style,
        found.statements,
        lambda: found.plain_rows(title),
        lambda: {name: found.plain_rows(name) for name in found.columns},
        show_sql=show_sql,
        columns=found.columns[title],
    )
    if not is_shown:
        selected = f"{ranks_text(ranks)}; all numbers are of the selected ranks" if ranks else ""
        if selected:
            screen.lines(fold(f"{'selection':<14}", selected, screen.width))
        for warning in warnings:
            screen.lines(fold(f"{'warning':<14}", warning, screen.width, "yellow"))
        screen.lines([Text("")] if warnings or selected else [])
        table = draw(found, top or None, depth, screen.width)
        screen.lines(table.lines(screen.width))
        words = legend(table.titles(screen.width)) if len(found.rows) > 1 else NO_REGIONS
        screen.lines([Text(""), *fold("", words, screen.width, "dim")])
        if found.is_summary:
            screen.lines(fold("", NOT_IN_SUMMARIES, screen.width, "dim"))
