# SPDX-License-Identifier: Apache-2.0
"""`commlens ranks`."""

from __future__ import annotations

import click
from rich.text import Text

from commlens.cli.options import (
    format_option,
    profile_argument,
    rank_option,
    reverse_option,
    sql_option,
    top_option,
)
from commlens.cli.outputs import show_data
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import fold
from commlens.reports.ranks import ORDERS, draw, read_ranks
from commlens.reports.run import read_run

DEFAULT_TOP = 10


@click.command()
@profile_argument
@rank_option
@click.option(
    "--sort",
    type=click.Choice(list(ORDERS)),
    default="outside",
    show_default=True,
    help="Order of the ranks: outside, time, mpi, share, calls, sent and received from the largest to the smallest "
    "value.",
)
@reverse_option
@top_option(
    DEFAULT_TOP,
    "Show the first N ranks; 0 means all. The last, the busiest and the idlest rank are always shown. csv and json "
    "always contain all.",
)
@format_option
@sql_option
def ranks(
    profile: str,
    ranks: tuple[tuple[int, int], ...] | None,
    sort: str,
    reverse: bool,
    top: int,
    style: str,
    show_sql: bool,
) -> None:
    """Compare the ranks of PROFILE: one row per rank.

    Shows for each rank the time from MPI_Init to MPI_Finalize, the time in MPI and its share, the time outside MPI,
    the calls, the bytes sent and received, and the node. The busiest of the selected ranks has the most time outside
    MPI, the idlest the least. The time outside MPI is unknown (-) for a rank with several threads that call MPI:
    their times overlap. It is also unknown for a rank that left no time of death; then no rank is marked. The last
    column also shows how a rank ended if it did not reach MPI_Finalize. If there is
    room and the profile has them, CPU time is the CPU time of the process, and preempted is how often the kernel gave
    its CPU to other work.
    """
    with open_profile(profile) as connection:
        found = read_ranks(connection, ranks or (), sort, reverse=reverse)
        facts = read_run(connection)
    screen = Screen()
    statements = [("ranks", found.sql)]
    if not show_data(screen, style, statements, lambda: found.rows, lambda: found.rows, show_sql=show_sql):
        if facts.estimated_text():
            screen.lines([*fold(f"{'estimated':<14}", facts.estimated_text(), screen.width), Text("")])
        screen.lines(draw(found, top or None).lines(screen.width) if found.rows else [Text("no ranks")])
