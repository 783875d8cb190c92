# SPDX-License-Identifier: Apache-2.0
"""`commlens threads`."""

from __future__ import annotations

import click

from commlens.cli.options import (
    class_option,
    comm_option,
    format_option,
    op_option,
    profile_argument,
    rank_option,
    sql_option,
    top_option,
)
from commlens.cli.outputs import show_data
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import fold
from commlens.reports.query import Selection
from commlens.reports.threads import NO_CALLS, NO_THREADS, draw, read_threads
from commlens.selection.names import matching_operations

DEFAULT_TOP = 10
CALLS_SHOWN = 5  # below each thread


@click.command()
@profile_argument
@comm_option
@op_option("these operations")
@class_option
@rank_option
@click.option(
    "--each", is_flag=True, help="A row for each thread of each rank, instead of one for each name."
)
@click.option(
    "--by",
    type=click.Choice(["calls", "regions"]),
    default="calls",
    show_default=True,
    help="What the lines of a thread are: calls by communicator and procedure, or regions.",
)
@top_option(
    DEFAULT_TOP,
    f"Show the first N rows, with {CALLS_SHOWN} lines each; 0 means all, with all lines. csv and json always contain "
    "all.",
)
@format_option
@sql_option
def threads(
    profile: str,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    classes: tuple[str, ...],
    ranks: tuple[tuple[int, int], ...] | None,
    each: bool,
    by: str,
    top: int,
    style: str,
    show_sql: bool,
) -> None:
    """Show which threads of PROFILE made which calls. Needs COMMLENS_THREADS=each in the run.

    A row is all threads of one name (pthread_setname_np) on the selected ranks. The main threads, which have the name
    of the program, are a row of their own. The lines below a row are the calls of these threads by communicator and
    procedure. With --by regions they are the regions of the threads, with the time in them and in MPI. --comm, --op
    and --class select calls, not regions.

    max/thread: the time of the thread with the most. share: of the time of all threads in the selected calls. The first
    256 threads of a process are counted apart; others is the sum of all further ones.

    csv has the lines, json also the rows.
    """
    screen = Screen()
    with open_profile(profile) as connection:
        wanted = matching_operations(connection, operations)
        selection = Selection(comms=comms, operations=wanted, classes=classes, ranks=ranks or ())
        found = read_threads(connection, selection, each=each, by=by)
    is_shown = show_data(
        screen,
        style,
        found.statements,
        lambda: found.parts,
        lambda: {"threads": found.rows, by: found.parts},
        show_sql=show_sql,
        columns=found.columns[by],
    )
    if is_shown:
        return
    if not found.rows:
        text = NO_CALLS if found.is_counted else NO_THREADS
        screen.lines(fold("", text, screen.width, "dim"))
    else:
        screen.lines(draw(found, top or None, CALLS_SHOWN if top else None).lines(screen.width))
