# SPDX-License-Identifier: Apache-2.0
"""`commlens metrics`."""

from __future__ import annotations

import sqlite3

import click
from rich.text import Text

from commlens.cli.options import format_option, profile_argument, rank_option, sql_option
from commlens.cli.outputs import show_rows
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import fold
from commlens.reports import counters as events
from commlens.reports.counters import NO_COUNTERS, read_counters
from commlens.reports.metrics import NO_METRICS, NO_SERIES, draw, draw_series, read_metrics
from commlens.reports.regions_query import Ranges


@click.command()
@profile_argument
@click.option(
    "--metric",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only metrics of this name, or of names that this glob matches. Repeatable.",
)
@rank_option
@click.option(
    "--series",
    is_flag=True,
    help="Show the values one by one, over the time: a line for each rank, or each thread of a rank. Needs "
    "COMMLENS_METRIC_SERIES in the run.",
)
@click.option(
    "--counters",
    is_flag=True,
    help="Show hardware counters and software events instead, by code region and MPI procedure. Needs "
    "COMMLENS_COUNTERS "
    "in the run.",
)
@format_option
@sql_option
def metrics(
    profile: str,
    names: tuple[str, ...],
    ranks: tuple[tuple[int, int], ...] | None,
    series: bool,
    counters: bool,
    style: str,
    show_sql: bool,
) -> None:
    """Show the metrics that the application recorded in PROFILE.

    Shows for each metric the number of values, smallest, average and largest value and sum, over all ranks and regions.
    Values that are not finite are counted only. `commlens regions` shows the metrics of each region.

    With --series, a line has the average of the values in equal parts of the time, lowest (▁) to highest (█) of the
    metric; a point stands for a part without values. csv and json contain the values, with time and region.

    With --counters, a line is a code region without its nested ones, or below it an MPI procedure in it, and a column
    an event, summed over ranks and threads. --metric then selects events.
    """
    if counters:
        if series:
            raise click.UsageError("--counters have no --series: use one of them")
        with open_profile(profile) as connection:
            _print_counters(connection, names, ranks or (), style, show_sql=show_sql)
        return
    with open_profile(profile) as connection:
        found = read_metrics(connection, names, ranks or (), series=series)
    screen = Screen()
    rows, title = (found.rows, "metrics") if found.series is None else (found.series, "series")
    if show_rows(screen, style, found.statements, rows, found.columns[title], show_sql=show_sql):
        return
    if not found.rows:
        screen.lines(fold("", NO_METRICS, screen.width, "dim"))
    elif series and not rows:
        screen.lines(fold("", NO_SERIES, screen.width, "dim"))
    elif series:
        screen.lines(draw_series(found, screen.width))
    else:
        screen.lines(draw(found.rows).lines(screen.width))


def _print_counters(
    connection: sqlite3.Connection, names: tuple[str, ...], ranks: Ranges, style: str, *, show_sql: bool
) -> None:
    """Print what was counted of events."""
    found = read_counters(connection, names, ranks)
    screen = Screen()
    if show_rows(
        screen, style, [("counters", found.statement)], found.rows, found.columns, show_sql=show_sql
    ):
        return
    if not found.rows:
        screen.lines(fold("", NO_COUNTERS, screen.width, "dim"))
        return
    screen.lines(events.draw(found).lines(screen.width))
    for note in events.notes(found):
        screen.lines([Text(""), *fold(f"{'note':<14}", note, screen.width, "yellow")])
