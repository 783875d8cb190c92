# SPDX-License-Identifier: Apache-2.0
"""`commlens timeline`."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import click
from rich.text import Text

from commlens.cli.options import (
    class_option,
    comm_option,
    format_option,
    op_option,
    profile_argument,
    rank_option,
    sql_option,
)
from commlens.cli.outputs import show_data
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.shades import kind_of
from commlens.render.table import fold
from commlens.reports.query import Selection
from commlens.reports.run import Run, read_run
from commlens.reports.timeline import (
    MOST_ROWS,
    Extent,
    Heat,
    Queries,
    Timeline,
    queries_of,
    read_extent,
    read_heat,
    read_timeline,
)
from commlens.reports.timeline_text import draw, heat_lines, heat_space, legend, title
from commlens.selection import names

AROUND = 11  # lines around table and heat map: titles, legends, and the prompt
MOST_BLOCKS = 32  # lines of the heat map where there is no terminal
FEWEST_LINES = 4  # of the heat map


@click.command()
@profile_argument
@comm_option
@op_option("these operations")
@class_option
@rank_option
@click.option(
    "--rows",
    type=click.IntRange(min=1, max=MOST_ROWS),
    metavar="N",
    help="Fold the slices into at most N rows of equal length.  "
    "[default: as many as the terminal shows; otherwise one per slice]",
)
@click.option("--unfold", is_flag=True, help="Show each communicator instead of families.")
@format_option
@sql_option
def timeline(
    profile: str,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    classes: tuple[str, ...],
    ranks: tuple[tuple[int, int], ...] | None,
    rows: int | None,
    unfold: bool,
    style: str,
    show_sql: bool,
) -> None:
    """Show the run of PROFILE over time: how much of it is MPI, in which communicators, on which ranks.

    A profile divides the run into at most 128 slices. A row is one slice, or several if the terminal has fewer lines.
    All shares are shares of the time of the selected ranks in the row; with --comm, only of the members of these
    communicators.

    Columns: start: time since MPI_Init. in MPI: share of the time inside MPI calls, with --comm, --op or --class
    inside the selected ones. A bar: this share, by communicator. busiest: the communicators with the most time.
    least, most: the ranks with the smallest and the largest share. In a wide terminal also procedures: those with the
    most time; sent: bytes of all ranks.

    The heat map shows the share of each rank, or block of ranks, over time. csv has one row per row of the table; json
    also has the communicators, the procedures and the ranks of each.
    """
    screen = Screen()
    with open_profile(profile) as connection:
        names.check_communicators(connection, comms)
        wanted = names.matching_operations(connection, operations)
        selection = Selection(comms=comms, operations=wanted, classes=classes, ranks=ranks or ())
        queries = queries_of(connection, selection, fold=not unfold)
        names.check_ranks(connection, ranks or ())
        extent = read_extent(connection, queries)
        room, is_drawn = _room(screen, extent), style == "table" and not show_sql
        most = rows or (room.rows if is_drawn else MOST_ROWS)
        pieces = extent.pieces.folded(min(most, extent.pieces.count))
        found = read_timeline(connection, queries, pieces, with_ranks=style == "json" or show_sql)
        heat = _heat(connection, queries, extent, found, screen, room.blocks) if is_drawn else None
        facts = read_run(connection)
    is_shown = show_data(
        screen,
        style,
        found.statements,
        lambda: found.rows,
        lambda: {name: found.plain_rows(name) for name in found.columns},
        show_sql=show_sql,
        columns=found.columns["slices"],
    )
    if not is_shown:
        _show(screen, extent, found, facts)
        if heat is not None:
            screen.lines([Text(""), *heat_lines(heat, kind_of(screen), screen.width, is_dense=room.is_dense)])


class Room(NamedTuple):
    """What the terminal has lines for.

    Attributes
    ----------
    blocks : int
        Blocks of ranks in the heat map.
    is_dense : bool
        Whether a line of the heat map shows two of them, which needs colours.
    rows : int
        Rows of the table.
    """

    blocks: int
    is_dense: bool
    rows: int


def _room(screen: Screen, extent: Extent) -> Room:
    """Return how the lines of the terminal are divided between table and heat map."""
    ranks = extent.ranks if _has_heat(extent) else 0
    if screen.width is None:
        return Room(min(ranks, MOST_BLOCKS), False, MOST_ROWS)
    lines = max(screen.console.height - AROUND, 3 * FEWEST_LINES)
    most = max(FEWEST_LINES, lines // 3)
    is_dense = ranks > most and kind_of(screen) == "colours"
    of_heat = min(-(-ranks // 2) if is_dense else ranks, most)
    return Room(of_heat * (2 if is_dense else 1), is_dense, lines - of_heat)


def _has_heat(extent: Extent) -> bool:
    """Return whether there is a heat map: a single rank, or a single slice, has none."""
    return extent.ranks > 1 and extent.pieces.slices > 1


def _heat(
    connection: sqlite3.Connection,
    queries: Queries,
    extent: Extent,
    found: Timeline,
    screen: Screen,
    blocks: int,
) -> Heat | None:
    """Read the heat map of at most `blocks` blocks of ranks; a selection without calls has none."""
    if not _has_heat(extent) or not _has_calls(found):
        return None
    (highest,) = connection.execute("SELECT MAX(rank) FROM rank").fetchone()
    pieces = extent.pieces.folded(heat_space(highest, screen.width))
    return read_heat(connection, queries, pieces, -(-extent.ranks // blocks))


def _has_calls(found: Timeline) -> bool:
    """Return whether any call is selected."""
    return any(row["time_ns"] or row["calls"] for row in found.rows)


def _show(screen: Screen, extent: Extent, found: Timeline, facts: Run) -> None:
    """Print the table and its legend."""
    if facts.estimated_text():
        screen.lines(fold(f"{'estimated':<14}", facts.estimated_text(), screen.width))
    for warning in facts.warnings():
        screen.lines(fold(f"{'warning':<14}", warning, screen.width, "yellow"))
    screen.lines([*fold("", title(extent, found), screen.width, "bold"), Text("")])
    if not _has_calls(found):
        screen.lines([Text("no calls match")])
        return
    screen.lines([*draw(found, screen.width), Text(""), *legend(extent, found, screen.width)])
