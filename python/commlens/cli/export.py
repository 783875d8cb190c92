# SPDX-License-Identifier: Apache-2.0
"""`commlens export`."""

from __future__ import annotations

from pathlib import Path

import click

from commlens.base.errors import CommlensError
from commlens.cli.options import RANKS, OutputPath, profile_argument
from commlens.export import FOLDED, FORMATS, LINES, SPEEDSCOPE, TABLES, TREES, Choice, write
from commlens.profile import open_profile
from commlens.render.screen import Screen


@click.command()
@profile_argument
@click.option("--to", type=click.Choice(FORMATS), required=True, help="Output format.")
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    required=True,
    help="Path to write: a file; for csv and parquet a directory, unless --table selects one table. An existing "
    "file is never overwritten.",
)
@click.option(
    "--unfold",
    is_flag=True,
    help="Show each communicator instead of families. For hatchet, thicket, caliper, chrome and speedscope.",
)
@click.option("--no-mpi", is_flag=True, help="Omit MPI calls: regions only. For the same formats.")
@click.option(
    "--callsites",
    is_flag=True,
    help="Show call paths: in hatchet, thicket and caliper the functions around MPI calls, from the outside in, "
    "instead of "
    "communicators; in speedscope the time by call path instead of the timeline.",
)
@click.option(
    "--rank",
    "ranks",
    type=RANKS,
    metavar="RANKS",
    help="Only these world ranks: 0,12-15. For the same formats and folded.",
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="Only this table or view, see 'commlens schema'. For csv and parquet. Repeatable.",
)
def export(
    profile: str,
    to: str,
    output: Path,
    unfold: bool,
    no_mpi: bool,
    callsites: bool,
    ranks: tuple[tuple[int, int], ...] | None,
    tables: tuple[str, ...],
) -> None:
    """Write PROFILE in the format of another tool.

    hatchet, thicket, caliper: the tree of code regions, with the MPI calls of each region by communicator, for every
    rank. Hatchet, Thicket and CallFlow read it.

    chrome, speedscope: a timeline of every rank, built from the time slices. For Perfetto, chrome://tracing and
    speedscope.

    folded: the call paths of MPI calls with their time, for flame graph tools such as flamegraph.pl, inferno and
    speedscope.

    csv, parquet: tables and views unchanged. tinyprof: one line per region, with the values of all processes,
    executions and iterations in one field.

    docs/reference/exports.md describes each format and how to open it. In Python, commlens.export creates Hatchet and
    Thicket objects, and commlens.open creates pandas and Polars data frames.
    """
    applies = {
        "--unfold": (unfold, [*TREES, *LINES]),
        "--no-mpi": (no_mpi, [*TREES, *LINES]),
        "--callsites": (callsites, [*TREES, SPEEDSCOPE]),
        "--rank": (ranks, [*TREES, *LINES, FOLDED]),
        "--table": (tables, [*TABLES]),
    }
    for option, (is_asked, formats) in applies.items():
        if is_asked and to not in formats:
            raise CommlensError(f"{option} does not apply to {to}, only to {', '.join(formats)}")
    if callsites and (unfold or no_mpi):
        raise click.UsageError(
            "--callsites shows the call paths of MPI calls: use it without --unfold and --no-mpi"
        )
    choice = Choice(unfold=unfold, mpi=not no_mpi, ranks=ranks or (), tables=tables, callsites=callsites)
    with open_profile(profile) as connection:
        write(connection, to, output, choice, profile)
    Screen().line(output)
