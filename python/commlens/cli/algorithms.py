# SPDX-License-Identifier: Apache-2.0
"""`commlens algorithms`."""

from __future__ import annotations

import click

from commlens.cli.options import comm_option, format_option, op_option, profile_argument, sql_option
from commlens.cli.outputs import print_statements
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import csv_text, json_text


@click.command()
@profile_argument
@comm_option
@op_option("these procedures")
@click.option(
    "--tree",
    "drawn",
    type=click.IntRange(min=1),
    metavar="LINE",
    help="Draw the tree of this line of the table; json contains the parent of each rank.",
)
@format_option
@sql_option
def algorithms(
    profile: str,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    drawn: int | None,
    style: str,
    show_sql: bool,
) -> None:
    """Name the algorithms that the MPI library used for the collectives in PROFILE.

    Compares the messages measured inside the calls of each communicator, collective and message size with the
    messages that known algorithms send. The table shows the algorithm with its parameters, the root ranks, the depth
    and degree of the tree or the number of rounds, and the fit: 100 % if every pair of ranks exchanged exactly these
    messages and bytes. Below 95 % the algorithm is unknown. If several algorithms send the same messages, and post
    them in the same way, the result is ambiguous.

    Communicators of one family with the same result share one line. The run needs COMMLENS_MATRIX=all and an MPI
    library that exposes these messages (Open MPI).
    """
    from commlens.algorithms import text
    from commlens.algorithms.recognise import recognise

    with open_profile(profile) as connection:
        found = recognise(connection, comms, operations)
    if drawn is not None and drawn > len(found.lines):
        raise click.BadParameter(f"the table ends at line {len(found.lines)}", param_hint="--tree")
    screen = Screen()
    if show_sql:
        print_statements(screen, found.statements)
    elif style == "json":
        screen.json(json_text(text.as_dict(found, drawn)))
    elif style == "csv":
        screen.plain(csv_text(*text.csv_rows(found)))
    else:
        text.show(found, screen, drawn)
