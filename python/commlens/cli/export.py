# SPDX-License-Identifier: Apache-2.0
"""`commlens export`."""

from __future__ import annotations

from pathlib import Path

import click

from commlens.base.errors import CommlensError
from commlens.cli.options import RANKS, profile_argument
from commlens.export import FORMATS, LINES, TABLES, TREES, Choice, write
from commlens.profile import open_profile
from commlens.render.screen import Screen


@click.command()
@profile_argument
@click.option("--to", type=click.Choice(FORMATS), required=True, help="The format.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Where it goes: a file; a directory for csv and parquet, unless one table is chosen. What exists is never overwritten.",
)
@click.option(
    "--unfold",
    is_flag=True,
    help="Every communicator for itself instead of families; for hatchet, thicket, caliper, chrome and speedscope.",
)
@click.option("--no-mpi", is_flag=True, help="Regions only; for the same formats.")
@click.option(
    "--rank",
    "ranks",
    type=RANKS,
    metavar="RANKS",
    help="Only these world ranks: 0,12-15; for the same formats.",
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="Only this table or view, for csv and parquet; 'commlens schema' lists them. Repeatable.",
)
def export(
    profile: str,
    to: str,
    output: Path,
    unfold: bool,
    no_mpi: bool,
    ranks: tuple[tuple[int, int], ...] | None,
    tables: tuple[str, ...],
) -> None:
    """Write PROFILE in a format that other tools read.

    hatchet, thicket, caliper: the tree of code regions, below each its MPI calls by communicator, on every rank; Hatchet,
    Thicket and CallFlow read it.

    chrome, speedscope: time lines of every rank made of the slices of time, for Perfetto, chrome://tracing and speedscope.

    csv, parquet: tables and views as they are. tinyprof: a line for every region, with the values of all processes,
    executions and iterations in one field.

    docs/reference/exports.md says what each holds and how to open it. From Python commlens.export makes objects of Hatchet
    and Thicket, and commlens.frames those of pandas and Polars.
    """
    asked = {"--unfold": unfold, "--no-mpi": no_mpi, "--rank": ranks, "--table": tables}
    for option, is_asked in asked.items():
        formats = [*TABLES] if option == "--table" else [*TREES, *LINES]
        if is_asked and to not in formats:
            raise CommlensError(f"{option} is not for {to}, but for {', '.join(formats)}")
    choice = Choice(unfold=unfold, mpi=not no_mpi, ranks=ranks or (), tables=tables)
    with open_profile(profile) as connection:
        write(connection, to, output, choice, profile)
    Screen().line(output)
