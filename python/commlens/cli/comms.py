# SPDX-License-Identifier: Apache-2.0
"""`commlens comms`."""

from __future__ import annotations

import click
from rich.text import Text

from commlens.cli.options import comm_option, format_option, profile_argument, sql_option, top_option
from commlens.cli.outputs import show_data
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.reports.communicators import draw, read_tree, tree_sql, use_letters_of_mpisee
from commlens.selection.names import check_communicators, selects_part_of_family

DEFAULT_TOP = 20


@click.command()
@profile_argument
@comm_option
@click.option("--unfold", is_flag=True, help="Show each communicator instead of families.")
@top_option(
    DEFAULT_TOP,
    "Draw at most N children per communicator, the oldest ones; 0 means all. csv and json always contain all.",
)
@click.option(
    "--letters",
    type=click.Choice(["commlens", "mpisee"]),
    default="commlens",
    show_default=True,
    help="Scheme for the first letters of the names of communicators. Those of mpisee differ for graphs and MPI_Comm_create_group; "
    "the statement of --sql and --comm have those of commlens.",
)
@format_option
@sql_option
def comms(
    profile: str, comms: tuple[str, ...], unfold: bool, top: int, letters: str, style: str, show_sql: bool
) -> None:
    """Draw the communicators of PROFILE as a tree.

    Shows for each communicator its size, its calls, the time of the rank with the most time in it and the average over
    its ranks, when it was created and freed (time since MPI_Init returned on its leader), the name that the application
    gave, the procedure and the call site that created it, and its topology. A selected communicator whose parent is not
    selected begins a tree. If --comm selects a part of a family, each communicator is shown.
    """
    with open_profile(profile) as connection:
        check_communicators(connection, comms)
        sql = tree_sql(comms, fold=not (unfold or selects_part_of_family(connection, comms)))
        tree = read_tree(connection, sql)
    if letters == "mpisee":
        use_letters_of_mpisee(tree)
    screen = Screen()
    statements = [("communicators", sql)]
    if not show_data(screen, style, statements, lambda: tree.rows, lambda: tree.rows, show_sql=show_sql):
        screen.lines(draw(tree, top or None).lines(screen.width) if tree.rows else [Text("no communicators")])
