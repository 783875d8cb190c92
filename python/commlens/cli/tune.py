# SPDX-License-Identifier: Apache-2.0
"""`commlens tune`."""

from __future__ import annotations

import click
from rich.text import Text

from commlens.cli.options import (
    comm_option,
    format_option,
    op_option,
    profile_argument,
    sql_option,
    top_option,
)
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text
from commlens.selection import names

DEFAULT_TOP = 10


@click.command()
@profile_argument
@comm_option
@op_option("these collectives")
@top_option(
    DEFAULT_TOP,
    "Show the N rows with the largest possible gain; 0 means all. csv and json always contain all places.",
)
@format_option
@sql_option
def tune(
    profile: str,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    top: int,
    style: str,
    show_sql: bool,
) -> None:
    """Show for which collectives in PROFILE another algorithm could pay.

    Another algorithm shortens the operation, not the waiting for late ranks. For each family of communicators, blocking
    collective and message size, the table shows how much time another algorithm could save at most. Rows that could save
    less than 1 % of the run time, or less than 1 ms per rank, are left out, as are those with fewer than 10 calls per
    rank, and collectives for which the MPI library has only one algorithm. If no row remains, a sentence says so, and why.

    Columns: calls/rank: calls of a member of a communicator, on average. time: of all ranks. waiting, interval: as in
    commlens waits; unknown if no call was sampled. operation: time without waiting; <= where the waiting is unknown. saves
    at most: time that another algorithm could save, sum over the ranks; of run: its share of the run time. algorithm:
    which one ran, as commlens algorithms names it; if the run did not measure it, the library that chose one.

    The gain is an upper bound, not a prediction. It is the operation time, at the lower end of the interval of the waiting,
    without what remains with any algorithm: in a barrier, an allreduce, an allgather or an alltoall, every call takes
    at least as long as the fastest MPI_Recv of the run with no more bytes. Without such a receive, and in other
    collectives, nothing is taken off.

    csv and json: fastest_ns is the fastest call of a rank; least_ns what each call takes at least; variable and
    offered say how to choose, and from what.
    """
    from commlens.tune.plan import read_plan
    from commlens.tune.text import draw, head_text, note_sentences

    with open_profile(profile) as connection:
        names.check_communicators(connection, comms)
        plan = read_plan(connection, comms, names.matching_operations(connection, operations))
    screen = Screen()
    if show_sql:
        for name, statement in plan.statements:
            screen.plain(f"-- {name}\n{statement};\n\n")
    elif style == "json":
        places = [place.numbers() for place in plan.places]
        screen.json(json_text({"library": plan.library, "run_ns": plan.run_ns, "places": places}))
    elif style == "csv":
        rows = [place.numbers() for place in plan.places]
        screen.plain(csv_text(list(rows[0]) if rows else [], [list(row.values()) for row in rows]))
    else:
        screen.lines(fold("", head_text(plan), screen.width, "bold" if plan.worth else ""))
        if plan.worth:
            screen.lines([Text(""), *draw(plan, top or None).lines(screen.width)])
            for sentence in note_sentences(plan, plan.worth[: top or None]):
                screen.lines([Text(""), *fold("", sentence, screen.width, "dim")])
