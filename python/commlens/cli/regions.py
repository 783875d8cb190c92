# SPDX-License-Identifier: Apache-2.0
"""`commlens regions`."""

from __future__ import annotations

import click
from rich.text import Text

from commlens.cli.options import format_option, profile_argument, sql_option, top_option
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text
from commlens.reports.regions import LEGEND, NO_REGIONS, NOT_IN_SUMMARIES, draw, read_regions
from commlens.reports.run import read_run

DEFAULT_TOP = 10


@click.command()
@profile_argument
@click.option(
    "--executions",
    is_flag=True,
    help="Tell the executions of regions apart: runs of the outermost region around them.",
)
@click.option(
    "--iterations",
    is_flag=True,
    help="Tell the iterations of loops apart, and what was in regions within them.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    metavar="N",
    help="Draw N levels of regions; 1 is the outermost. csv and json always have all.  [default: all]",
)
@top_option(
    DEFAULT_TOP,
    "Draw at most N regions in a region, and N of its executions or iterations, those with the most time; "
    "0 means all. csv and json always have all.",
)
@click.option("--unfold", is_flag=True, help="Every communicator for itself instead of families.")
@format_option
@sql_option
def regions(
    profile: str,
    executions: bool,
    iterations: bool,
    depth: int | None,
    top: int,
    unfold: bool,
    style: str,
    show_sql: bool,
) -> None:
    """Draw the code regions of PROFILE as a tree, with what was in them.

    Columns: calls of all ranks; max/rank, the time of the rank that was there longest, and avg/rank, of the average
    rank of those that were there; own/rank, of that the time outside regions within it; MPI, the share of the
    region's time that was inside MPI calls, also in regions within it; a bar for its part of the whole program, dark
    where it is its own; max/avg of the ranks; PE, LB and CE, parallel efficiency, load balance and communication
    efficiency.

    Below a region: on how many ranks it was, its tags, the communicators with the most time in it, the iterations of a
    loop and how their times are distributed, and the application's own quantities.
    """
    by = (*(["execution"] if executions else []), *(["iteration"] if iterations else []))
    with open_profile(profile) as connection:
        found = read_regions(connection, by, fold=not unfold)
        warnings = read_run(connection).warnings()
    screen = Screen()
    if show_sql:
        for title, statement in found.statements:
            screen.plain(f"-- {title}\n{statement};\n\n")
    elif style == "json":
        screen.json(json_text({title: found.plain_rows(title) for title in found.columns}))
    elif style == "csv":
        title = "parts" if by else "regions"
        screen.plain(csv_text(found.columns[title], [list(row.values()) for row in found.plain_rows(title)]))
    else:
        for warning in warnings:
            screen.lines(fold("warning   ", warning, screen.width, "yellow"))
        screen.lines([Text("")] if warnings else [])
        screen.lines(draw(found, top or None, depth).lines(screen.width))
        has_regions = len(found.rows) > 1
        screen.lines([Text(""), *fold("", LEGEND if has_regions else NO_REGIONS, screen.width, "dim")])
        if found.is_summary:
            screen.lines(fold("", NOT_IN_SUMMARIES, screen.width, "dim"))
