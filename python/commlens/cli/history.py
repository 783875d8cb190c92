# SPDX-License-Identifier: Apache-2.0
"""`commlens history`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.cli.options import OutputPath, comm_option, format_option, op_option, snapshot_options
from commlens.jobs.development import Subject, draw, read_development
from commlens.jobs.history import History, Snapshot, chosen, open_history, write_profile
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text
from commlens.render.units import bytes_text


@click.command()
@click.argument("profile", metavar="PROFILE")
@comm_option
@op_option("these operations")
@click.option(
    "--region",
    metavar="PATH",
    help="The time in a code region: its path, or a glob such as solve/* for the regions directly in one.",
)
@click.option(
    "--metric", metavar="NAME", help="The values of a metric of the application; its name, or name and unit."
)
@snapshot_options
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    help="With --at or --between: write this profile. An existing file is never overwritten.",
)
@format_option
def history(
    profile: str,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    region: str | None,
    metric: str | None,
    at: float | None,
    between: tuple[float, float] | None,
    output: Path | None,
    style: str,
) -> None:
    """Show how the counters of a run developed, by the snapshots that it took (COMMLENS_FLUSH_EVERY).

    PROFILE is the profile of the run, whose snapshots are in a folder commlens-arenas-* beside it; or, of a job that
    runs or was killed, that folder or a file in it.

    A row is the time from one snapshot to the next. until: time of the snapshot since MPI_Init. in MPI: share of the
    time of all ranks inside MPI calls; with --comm or --op inside the selected ones; with --region in the region. It
    is - if a rank has several threads, because their times may overlap. A bar: this share. calls, sent, received:
    of all ranks. With --metric, the average of the values, and their number.

    With --at or --between, and -o, writes a profile of the state at a time, or of what was counted between two.
    commlens report shows it at once with the same options. Each process is read at a moment of its own, and a call
    may have its count but not yet its time.
    """
    if sum((bool(comms or operations), region is not None, metric is not None)) > 1:
        raise click.UsageError("--comm and --op, --region, and --metric exclude each other")
    if (at is not None or between is not None) != (output is not None):
        raise click.UsageError("-o is for --at or --between, and these need it; commlens report shows them")
    if at is not None and between is not None:
        raise click.UsageError("--at is one time, and --between are two: use one of them")
    if output is not None and (
        comms or operations or region is not None or metric is not None or style != "table"
    ):
        raise click.UsageError(
            "-o writes a profile of all counters: omit --comm, --comm-size, --op, --region, --metric and --format"
        )
    found = open_history(profile)
    screen = Screen()
    if output is not None:
        wanted = chosen(found, at, between)
        screen.line(f"{write_profile(found, wanted, output)}: {snapshots_text(wanted)}")
        return
    subject = Subject(comms, operations, region, metric)
    rows = read_development(found, subject)
    if style == "json":
        screen.json(json_text(rows))
    elif style == "csv":
        screen.plain(csv_text(list(rows[0]), [list(row.values()) for row in rows]))
    else:
        screen.lines([*fold("", _title(found), screen.width, "bold"), Text("")])
        screen.lines(draw(rows, subject).lines(screen.width))


def _title(found: History) -> str:
    """Return the heading."""
    size = sum(_size_of(file) for file in found.files)
    files = "" if len(found.files) == 1 else f" in {len(found.files)} files"
    return f"{count_text(len(found.snapshots), 'snapshot')}, {bytes_text(size)}{files}"


def _size_of(file: Path) -> int:
    """Return the size of a file."""
    try:
        return file.stat().st_size
    except OSError as error:
        raise CommlensError(f"{file}: cannot be read: {error.strerror}") from None


def snapshots_text(wanted: tuple[Snapshot, ...]) -> str:
    """Return which snapshots were chosen.

    >>> snapshots_text((Snapshot(0, 1.5, 4, 9),)), snapshots_text((Snapshot(0, 1.5, 4, 9), Snapshot(0, 2.5, 4, 9)))
    ('snapshot 1.500 s after MPI_Init', 'between the snapshots 1.500 s and 2.500 s after MPI_Init')
    """
    if len(wanted) == 1:
        return f"snapshot {wanted[0].seconds:.3f} s after MPI_Init"
    return f"between the snapshots {wanted[0].seconds:.3f} s and {wanted[1].seconds:.3f} s after MPI_Init"
