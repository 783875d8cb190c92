# SPDX-License-Identifier: Apache-2.0
"""`commlens coverage`."""

from __future__ import annotations

import click
from rich.text import Text

from commlens.cli.options import format_option, profile_argument, sql_option
from commlens.cli.outputs import show_data
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import fold
from commlens.reports.coverage import STATES, draw, of_bindings, read_coverage, statement, summary


@click.command()
@profile_argument
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    help="Only procedures in this state. Repeatable.",
)
@format_option
@sql_option
def coverage(profile: str, states: tuple[str, ...], style: str, show_sql: bool) -> None:
    """Show which MPI procedures the application of PROFILE can call, and which of them commlens measures.

    Lists the MPI procedures that the executable and the shared objects loaded at MPI_Finalize import. A measured
    procedure without calls was not called; an unseen procedure may have been called.

    In each state the called procedures come first, then those that the executable imports, then the others. The C++
    bindings of Open MPI import about 150 procedures into every program that includes mpi.h. Those without calls share
    one line; with --state, and in csv and json, each has its own.

    States: measured; skipped: deliberately not measured; absent: no loaded MPI library defines it; unseen: its calls
    are missing in the profile. The reason is given with each state. A procedure that has calls but that no object
    imports was looked up by name at run time.
    """
    sql = statement(states)
    with open_profile(profile) as connection:
        rows = read_coverage(connection, sql)
    screen = Screen()
    statements = [("procedures", sql)]
    if not show_data(screen, style, statements, lambda: rows, lambda: rows, show_sql=show_sql):
        screen.lines([*fold("", summary(rows), screen.width), Text("")])
        screen.lines(draw(rows, [] if states else of_bindings(rows)).lines(screen.width) if rows else [])
