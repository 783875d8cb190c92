# SPDX-License-Identifier: Apache-2.0
"""`commlens chart`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commlens.base.errors import CommlensError
from commlens.base.outputs import new
from commlens.cli.correlate import parse_by
from commlens.cli.exit_codes import INCOMPLETE, SUCCESS
from commlens.cli.options import OutputPath, class_option, comm_option, op_option, top_option
from commlens.cli.outputs import DRAWN, check_outputs
from commlens.cli.runs import keep_going_option, read_sources, region_option, size_option
from commlens.render.screen import Screen
from commlens.render.units import size_text
from commlens.reports.query import Selection
from commlens.selection.sizes import BinRange
from commlens.selection.words import comms_text, operations_text

if TYPE_CHECKING:
    from commlens.charts.files import Chart
    from commlens.compare.correlate import Source, Wanted

# The other modules need numpy, which takes longer to load than other commands take.

OF_ONE = ("operations", "sizes")
KINDS = (*OF_ONE, "distribution", "correlation")


@click.command()
@click.argument("kind", type=click.Choice(KINDS), metavar="KIND")
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
@click.option(
    "--by",
    "names",
    multiple=True,
    metavar="NAME",
    help="sizes: colours by op (default) or family. distribution: a group for each value of a label or setting "
    "(alg), or "
    "for each comm-size; repeatable. correlation: the rows, as in correlate.",
)
@click.option(
    "--of",
    type=click.Choice(["elapsed", "mpi"]),
    help="distribution: the run time, or the MPI time of the slowest rank.  [default: elapsed, mpi with a selection or "
    "--by comm-size]",
)
@comm_option
@op_option("these operations")
@class_option
@size_option
@region_option
@keep_going_option
@top_option(8, "operations: N families, and one bar for all others; 0 means all.")
@click.option(
    "--to",
    "outputs",
    multiple=True,
    type=OutputPath(),
    metavar="FILE",
    help="Write the chart to FILE.svg, .png or .html instead, by matplotlib. Repeatable.",
)
@click.pass_context
def chart(
    context: click.Context,
    kind: str,
    profiles: tuple[str, ...],
    names: tuple[str, ...],
    of: str | None,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    classes: tuple[str, ...],
    size: BinRange | None,
    region: str | None,
    keep_going: bool,
    top: int,
    outputs: tuple[Path, ...],
) -> None:
    """Draw a chart of one profile or of many runs, in the terminal or to files.

    KIND is one of:

    operations: the MPI time of the communicators with the most, by operation; one profile.
    sizes: the MPI time by message size, and by operation or family; one profile.

    distribution: run times or MPI times of many runs, as boxes with quartiles, whiskers and points, by label, setting
    or communicator size. A run without communicators of a size has no point there.

    correlation: the time in a row of correlate and the run time, a point per run: the strongest row of the selection.

    Times of operations and sizes are summed over the ranks. A page of HTML has the chart and a table of its numbers,
    and needs no network.

    Exit code 2: a profile cannot be read, there is nothing to draw, or matplotlib is not installed. 3: --keep-going
    left out profiles.
    """
    from commlens.compare.correlate import Wanted

    check_outputs(outputs, DRAWN)
    if kind in OF_ONE and len(profiles) != 1:
        raise click.UsageError(f"{kind} draws one profile")
    selection = Selection(operations=operations, classes=classes, size=size)
    wanted = Wanted(columns(kind, names), selection, region, comms)
    of = time_of(kind, of, wanted)
    sources, is_partial = read_sources(profiles, wanted, keep_going=keep_going)
    found = make(kind, sources, wanted, names, of, top or None)
    only = selection_text(wanted)
    found.about += f"; only {only}" if only else ""
    show(found, outputs)
    context.exit(INCOMPLETE if is_partial else SUCCESS)


def columns(kind: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns by which times are read."""
    if kind == "operations":
        if names:
            raise click.UsageError("operations has no --by")
        return ("family", "op")
    if kind == "sizes":
        if len(names) > 1 or set(names) - {"op", "family"}:
            raise click.UsageError("sizes: --by is op or family")
        return (*(names or ("op",)), "size")
    if kind == "correlation":
        try:
            return parse_by(",".join(names or ("family", "op")))
        except ValueError as error:
            raise click.UsageError(f"correlation: --by: {error}") from None
    return ("comm-size",) if "comm-size" in names else ()


def time_of(kind: str, of: str | None, wanted: Wanted) -> str:
    """Return the time whose distribution is drawn: elapsed or mpi; a selection or communicator sizes ask for mpi."""
    has_part = wanted.by == ("comm-size",) or wanted.selection != Selection() or wanted.region or wanted.comms
    if of and kind != "distribution":
        raise click.UsageError("--of belongs to distribution")
    if of == "elapsed" and has_part:
        raise click.UsageError(
            "the run time has no parts: use --of mpi with a selection or with --by comm-size"
        )
    return of or ("mpi" if has_part else "elapsed")


def selection_text(wanted: Wanted) -> str:
    """Return the selection in words; empty if everything is selected."""
    selection = wanted.selection
    parts = comms_text(wanted.comms)
    parts += [operations_text(selection.operations)] if selection.operations else []
    parts += [f"class {' or '.join(selection.classes)}"] if selection.classes else []
    parts += [f"messages of {size_text(*selection.size.bounds)}"] if selection.size else []
    parts += [f"region {wanted.region}"] if wanted.region else []
    return ", ".join(parts)


def make(
    kind: str, sources: Sequence[Source], wanted: Wanted, names: tuple[str, ...], of: str, top: int | None
) -> Chart:
    """Return the numbers of the chart."""
    from commlens.charts import bars, points, spread
    from commlens.compare.correlate import correlate

    if not sources:
        raise CommlensError("no readable profile: nothing to draw")
    if kind == "operations":
        return bars.operations(sources[0], top)
    if kind == "sizes":
        return bars.sizes(sources[0], wanted.by[0])
    if kind == "distribution":
        return spread.distribution(sources, names, of)
    return points.correlation(correlate(sources, wanted.by))


def show(chart: Chart, outputs: tuple[Path, ...]) -> None:
    """Print the chart, or write the files and print their names."""
    from commlens.charts import files, terminal

    screen = Screen()
    if not outputs:
        screen.lines(terminal.draw(chart, screen))
    for output in outputs:
        with new(output) as path:
            files.write(chart, path)
        screen.line(output)
