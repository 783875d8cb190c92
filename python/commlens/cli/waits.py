# SPDX-License-Identifier: Apache-2.0
"""`commlens waits`."""

from __future__ import annotations

import sqlite3

import click
from rich.text import Text

from commlens.cli.options import (
    comm_family_option,
    format_option,
    op_option,
    profile_argument,
    sql_option,
    top_option,
)
from commlens.cli.outputs import show_data
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import fold
from commlens.selection import names
from commlens.waiting.text import (
    draw,
    draw_ranks,
    head_text,
    note_sentences,
    nothing_text,
    unsplit_lines,
)
from commlens.waiting.waits import Waits, read_waits

DEFAULT_TOP = 10


@click.command()
@profile_argument
@comm_family_option
@op_option("these operations")
@top_option(
    DEFAULT_TOP, "Show the N rows with the most waiting; 0 means all. csv and json always contain all."
)
@click.option("--ranks", "with_ranks", is_flag=True, help="Show the ranks of each row, too.")
@format_option
@sql_option
def waits(
    profile: str,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    top: int,
    with_ranks: bool,
    style: str,
    show_sql: bool,
) -> None:
    """Show who keeps whom waiting in the messages and collectives of PROFILE.

    The time of an MPI call consists of waiting for others and the operation itself. For a sample of the calls, each
    process stored when it entered and left (COMMLENS_WAITING); these samples separate the two.

    Messages: a call that receives, such as MPI_Recv or MPI_Waitall, waits until the sender enters its send: a late
    sender. A blocking send that needs its receiver waits until the receive is posted: a late receiver. Of several
    messages of one call, the latest counts. Collectives: in a barrier, an allreduce, an allgather, an alltoall or a
    reduce_scatter, every rank waits until the last one has entered. In a broadcast or scatter the others wait for the
    root, in a reduce or gather the root for the others, in a prefix sum each rank for those below it, in a
    neighbourhood collective for its neighbours. A call that completes a non-blocking or persistent collective waits
    for those that have not yet started it. In a run on several machines, sampled collectives also relate their
    clocks; the interval includes the error of this.

    Columns: time: of all ranks. waiting: share of this time in which ranks waited. interval: its 95 % interval; exact
    if every call was sampled, ? if too few were. operation/call: average time of a call without waiting. spread:
    median of the time between the first and the last entry; of a message, between its two sides. waited for: of
    messages, the rank that causes at least half of the waiting, with this share and the region in which it was late;
    or the rank at which a chain begins, if ranks wait for each other in turn, but others for this one far longer than
    it for others; or one node; or it varies. Of collectives, the rank that was last in at least half of the calls,
    and far more often than by chance. The reason follows where the samples show it: it computes longer than the others
    between the calls, or comes late from other MPI calls. It may also be the same rank in each communicator, one node,
    the order of the ranks, or rotate.

    With --ranks, for each rank: time, waiting: of a sampled call. Of messages: causes: share of the waiting of all
    that was for this rank. late in: number of sampled calls of others that waited for it. by: for how long, on average.
    after the other side: from the entry of the other side to its own, on average. region: in which it was late for more
    than half of the time. A rank that only sends has no waiting of its own in MPI_Recv. Of collectives: last:
    share of the calls in which it was last. late: for how long the others then waited for it alone. after the first:
    from the first entry of a rank to its own, on average. outside MPI: share of the time between two calls.

    With COMMLENS_WAITING=barrier, commlens puts a barrier before each blocking collective and samples all of them, to
    check the estimates of an ordinary run.

    csv and json: last_rank is the rank of column waited for; last_share is the share of the waiting for it in messages,
    and of the calls in which it was last in collectives.
    """
    with open_profile(profile) as connection:
        found = selected_waits(connection, comms, operations)
        nodes = dict(connection.execute("SELECT rank, node FROM rank").fetchall())
    screen = Screen()
    is_shown = show_data(
        screen,
        style,
        found.statements,
        lambda: [wait.numbers() for wait in found.waits],
        lambda: as_dict(found),
        show_sql=show_sql,
    )
    if not is_shown:
        show(screen, found, top or None, nodes if with_ranks else None)


def selected_waits(
    connection: sqlite3.Connection, comms: tuple[str, ...], operations: tuple[str, ...]
) -> Waits:
    """Read the waiting in the selected communicators and procedures."""
    names.check_communicators(connection, comms)
    chosen = names.matching_operations(connection, operations)
    return read_waits(connection, comms, chosen, reads_all_counters=True)


def as_dict(found: Waits) -> dict[str, object]:
    """Return everything, for json."""
    return {
        "waits": [{**wait.numbers(), "ranks": wait.ranks} for wait in found.waits],
        "unsplit": found.unsplit,
        "clocks": found.clocks,
        "unsampled": found.unsampled,
        "has_barriers": found.has_barriers,
    }


def show(screen: Screen, found: Waits, top: int | None, nodes: dict[int, str] | None) -> None:
    """Print the tables, and what could not be split."""
    if found.waits:
        head = f"{head_text(found)}, sums over the ranks"
        screen.lines([*fold("", head, screen.width, "bold"), Text("")])
        screen.lines(draw(found, top).lines(screen.width))
        for wait in found.waits[:top] if nodes is not None else []:
            title = f"{wait.row['communicator']}  {wait.row['operation']}"
            screen.lines([Text(""), *fold("", title, screen.width, "bold")])
            screen.lines(draw_ranks(wait, nodes or {}).lines(screen.width))
    else:
        screen.lines(fold("", nothing_text(found), screen.width))
    lines = unsplit_lines(found)
    if lines:
        screen.lines([Text(""), Text("not split:", style="dim")])
        for line in lines:
            screen.lines(fold("  ", line, screen.width, "dim"))
    for sentence in note_sentences(found):
        screen.lines([Text(""), *fold("", sentence, screen.width, "dim")])
