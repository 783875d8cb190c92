# SPDX-License-Identifier: Apache-2.0
"""`commlens correlate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from commlens.cli.exit_codes import INCOMPLETE, SUCCESS
from commlens.cli.options import Parsed, class_option, comm_option, format_option, op_option, top_option
from commlens.cli.runs import keep_going_option, read_sources, region_option, size_option
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text
from commlens.reports.query import Selection
from commlens.selection.sizes import BinRange

if TYPE_CHECKING:
    from commlens.compare.correlate import Correlation

# Those of commlens.compare need numpy, which takes longer to load than other commands take.

PARTS = ("family", "comm-size", "op", "size", "region")


def parse_by(text: str) -> tuple[str, ...]:
    """Return the columns of --by, in the order of PARTS.

    >>> parse_by("op,family")
    ('family', 'op')
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PARTS:
            raise ValueError(f"'{name}' is none of {', '.join(PARTS)}")
    return tuple(name for name in PARTS if name in names)


by_option = click.option(
    "--by",
    type=Parsed("columns", parse_by),
    default="family,op",
    show_default=True,
    metavar="COLUMNS",
    help="What a row is: one or several of family, comm-size (number of ranks of a communicator), op, size "
    "(message size) "
    "and region (innermost code region), with commas.",
)


@click.command()
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
@by_option
@comm_option
@op_option("these operations")
@class_option
@size_option
@region_option
@keep_going_option
@top_option(20, "Limit a table to N rows; 0 means all.")
@format_option
@click.pass_context
def correlate(
    context: click.Context,
    profiles: tuple[str, ...],
    by: tuple[str, ...],
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    classes: tuple[str, ...],
    size: BinRange | None,
    region: str | None,
    keep_going: bool,
    top: int,
    style: str,
) -> None:
    """Find the communication whose time correlates with the run time, over many runs.

    A row is a family of communicators and an operation, or what --by says. Its time in each run is that of its
    slowest rank; a run without the row counts with 0. The run time is from MPI_Init to MPI_Finalize. Families are
    matched by lineage, as in compare; --comm names communicators of the first profile. A setting that is a number in
    all runs, such as a label n=512, is a row, too. Rows with little time are left out: below 0.1 % of the MPI time in
    every run.

    The strongest rows come first. A time rises or falls with the run time only if the test of Spearman's coefficient,
    corrected for all rows, and its interval agree; ? means that there are too few runs for any claim. Neither
    coefficient shows a cause.

    Columns: Spearman, Pearson: coefficients from -1 to +1, of ranks and of times. 95 % interval: of the coefficient
    before it. per second: time more in the row for each second that a run takes longer. time: median over the runs.
    of the sum: Spearman's coefficient for the time of all ranks together. p: of Spearman's coefficient, corrected.

    Exit code 2: a profile cannot be read, or there are fewer than 3 runs. 3: --keep-going left out profiles.
    """
    from commlens.compare.correlate import Wanted
    from commlens.compare.correlate import correlate as correlation

    selection = Selection(operations=operations, classes=classes, size=size)
    sources, is_partial = read_sources(profiles, Wanted(by, selection, region, comms), keep_going=keep_going)
    show(correlation(sources, by), top, style)
    context.exit(INCOMPLETE if is_partial else SUCCESS)


def show(result: Correlation, top: int, style: str) -> None:
    """Print the correlation in the format that the user chose."""
    from commlens.compare.correlate_text import csv_rows, document, draw, headline, left_out, unfinished_text

    screen = Screen()
    if style == "json":
        screen.json(json_text(document(result)))
    elif style == "csv":
        screen.plain(csv_text(*csv_rows(result)))
    else:
        screen.lines(fold("", headline(result), screen.width, "bold"))
        screen.lines(fold("", result.statement(), screen.width))
        if unfinished_text(result):
            screen.lines(fold("", unfinished_text(result), screen.width, "yellow"))
        screen.lines([Text(""), *draw(result, top or None).lines(screen.width)])
        if left_out(result):
            screen.lines([Text(""), *fold("", left_out(result), screen.width, "dim")])
