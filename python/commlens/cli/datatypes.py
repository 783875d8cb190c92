# SPDX-License-Identifier: Apache-2.0
"""`commlens datatypes`."""

from __future__ import annotations

import click

from commlens.cli.options import format_option, profile_argument, rank_option, sql_option
from commlens.cli.outputs import show_rows
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import fold
from commlens.reports.datatypes import NO_DATATYPES, draw, read_datatypes


@click.command()
@profile_argument
@click.option(
    "--uses",
    is_flag=True,
    help="Show for each datatype in which communicators and procedures it was used. csv and json then have a row for "
    "each of these instead of one for each datatype.",
)
@rank_option
@format_option
@sql_option
def datatypes(
    profile: str, uses: bool, ranks: tuple[tuple[int, int], ...] | None, style: str, show_sql: bool
) -> None:
    """Show the MPI datatypes that the application in PROFILE made or used, with their share of calls and bytes.

    A line has the constructors of the datatype, its size and extent, the calls that used it, their time, and the
    bytes that it described. A call with two datatypes, such as MPI_Sendrecv, is in the line of each, with the bytes
    that it sent in one and those that it received in the other: shares of calls may add up to more than 100 %, those
    of bytes do not. The datatype of the data in the window of another process has calls, but no bytes. Needs
    COMMLENS_DATATYPES=1 in the run.
    """
    with open_profile(profile) as connection:
        found = read_datatypes(connection, ranks or (), uses=uses)
    screen = Screen()
    rows, title = (found.rows, "datatypes") if found.uses is None else (found.uses, "uses")
    if show_rows(screen, style, found.statements, rows, found.columns[title], show_sql=show_sql):
        return
    if not found.rows:
        screen.lines(fold("", NO_DATATYPES, screen.width, "dim"))
    else:
        screen.lines(draw(found.rows, found.uses).lines(screen.width))
