# SPDX-License-Identifier: Apache-2.0
"""`commlens metrics`."""

from __future__ import annotations

import click

from commlens.cli.options import format_option, profile_argument, rank_option, sql_option
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text
from commlens.reports.metrics import NO_METRICS, NO_SERIES, draw, draw_series, read_metrics


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
@format_option
@sql_option
def metrics(
    profile: str,
    names: tuple[str, ...],
    ranks: tuple[tuple[int, int], ...] | None,
    series: bool,
    style: str,
    show_sql: bool,
) -> None:
    """Show the metrics that the application recorded in PROFILE.

    Shows for each metric the number of values, smallest, average and largest value and sum, over all ranks and regions.
    Values that are not finite are counted only. `commlens regions` shows the metrics of each region.

    With --series, a line has the average of the values in equal parts of the time, lowest (▁) to highest (█) of the
    metric; a point stands for a part without values. csv and json contain the values, with time and region.
    """
    with open_profile(profile) as connection:
        found = read_metrics(connection, names, ranks or (), series=series)
    screen = Screen()
    title = "series" if series else "metrics"
    rows = found.rows if found.series is None else found.series
    if show_sql:
        screen.plain("".join(f"-- {name}\n{sql};\n\n" for name, sql in found.statements))
    elif style == "json":
        screen.json(json_text(rows))
    elif style == "csv":
        screen.plain(csv_text(found.columns[title], [list(row.values()) for row in rows]))
    elif not found.rows:
        screen.lines(fold("", NO_METRICS, screen.width, "dim"))
    elif series and not rows:
        screen.lines(fold("", NO_SERIES, screen.width, "dim"))
    elif series:
        screen.lines(draw_series(found, screen.width))
    else:
        screen.lines(draw(found.rows).lines(screen.width))
