# SPDX-License-Identifier: Apache-2.0
"""`commlens ingest`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.base.messages import print_message
from commlens.base.packages import load
from commlens.cli.exit_codes import INCOMPLETE, SUCCESS
from commlens.cli.options import OutputPath
from commlens.render.screen import Screen

if TYPE_CHECKING:
    from commlens.fleet.accounting import Accounting
    from commlens.fleet.dataset import Dataset
    from commlens.fleet.ingest import Counts, Ingest

# Those of commlens.fleet are imported where they are used: they need numpy.

MOST_REASONS = 20
FILE = click.Path(path_type=Path)


@click.command()
@click.argument("profiles", nargs=-1, type=FILE, metavar="PROFILE...")
@click.option(
    "--into", "dataset", type=OutputPath(), required=True, metavar="DATASET",
    help="Folder of the dataset; a new one is made.",
)  # fmt: skip
@click.option(
    "--watch", "folders", multiple=True, type=FILE, metavar="DIR",
    help="Read the profiles below this folder, and on until Ctrl-C or SIGTERM those that appear there. Repeatable.",
)  # fmt: skip
@click.option(
    "--every", type=click.FloatRange(min=0.1), default=30.0, show_default=True, metavar="SECONDS",
    help="With --watch: time between two looks at the folders.",
)  # fmt: skip
@click.option(
    "--cluster", default="", metavar="NAME",
    help="Name of the machine on which the jobs ran.  [default: the host name of this one, without a number at its "
    "end; for --accounting, first the column Cluster]",
)  # fmt: skip
@click.option(
    "--codes", type=FILE, metavar="FILE",
    help="Table of codes in the format of spec/codes.toml: its entries come before those that commlens knows.",
)  # fmt: skip
@click.option(
    "--pseudonymise", "key_file", type=FILE, metavar="KEYFILE",
    help="Store tokens instead of users, paths, command lines and values of settings that may contain one. Equal "
    "values have "
    "equal tokens, which only the holder of the key can compute. A missing KEYFILE is made; keep it.",
)  # fmt: skip
@click.option(
    "--accounting", type=FILE, metavar="FILE",
    help="Add the jobs that the batch system knows, as sacct --parsable2 writes them, so that commlens fleet "
    "DATASET missing "
    "finds those without a profile.",
)  # fmt: skip
@click.option(
    "--make-up", "made_up", type=click.IntRange(min=1), metavar="N",
    help="Add a year of about N jobs that nobody ran, on a machine named made-up, to try commlens fleet before "
    "there is data.",
)  # fmt: skip
@click.option(
    "--compact",
    is_flag=True,
    help="Put all small files together at the end, and not only when there are many.",
)
@click.pass_context
def ingest(
    context: click.Context,
    profiles: tuple[Path, ...],
    dataset: Path,
    folders: tuple[Path, ...],
    every: float,
    cluster: str,
    codes: Path | None,
    key_file: Path | None,
    accounting: Path | None,
    made_up: int | None,
    compact: bool,
) -> None:
    """Add PROFILEs to a dataset of many jobs, which commlens fleet asks.

    A PROFILE is a file, a folder of shards, or a folder below which all profiles (*.db, *.commlens) are read. The
    dataset has Parquet files by table, cluster and month; docs/reference/dataset.md describes the tables. A job whose
    profile was read before is left as it is. Several commands may add to one dataset at the same time, also on
    several machines, and each may be killed at any moment: the dataset then has all rows of a job or none.

    A profile that cannot be read becomes a row of table refused, and the others are read. Needs the package pyarrow.

    Exit code 2: the dataset cannot be written. 3: some profiles could not be read.
    """
    if not (profiles or folders or accounting or made_up or compact):
        raise click.UsageError("name profiles, --watch, --accounting, --make-up or --compact")
    load("pyarrow")
    from commlens.fleet._dataset import CODES
    from commlens.fleet.accounting import read_accounting
    from commlens.fleet.codes import read_codes
    from commlens.fleet.dataset import Dataset
    from commlens.fleet.ingest import Ingest, expanded, watch
    from commlens.fleet.pseudonyms import Pseudonyms, read_key

    for folder in folders:
        if not folder.is_dir():
            raise CommlensError(f"{folder}: no folder")
    known = read_codes(codes) if codes else CODES
    pseudonyms = Pseudonyms(read_key(key_file) if key_file else None)
    machine = cluster or os.uname().nodename.partition(".")[0].rstrip("0123456789-") or "unknown"
    jobs = read_accounting(accounting, pseudonyms, cluster=cluster, default=machine) if accounting else None
    target = Dataset(dataset)
    work = Ingest(target, machine, pseudonyms, known)
    screen = Screen()
    with ends_gently() as ended:
        for path in expanded(profiles):
            work.read(path)
            if ended:
                break
        work.flush()
        if jobs is not None:
            add_accounting(screen, work, target, jobs)
        if folders and not ended:
            watch(work, folders, every, lambda: bool(ended))
    if made_up:
        screen.line(f"{make_up(target, made_up):,} new jobs that nobody ran")
    if compact:
        target.compact(everything=True)
    report(screen, work.counts)
    context.exit(INCOMPLETE if work.counts.refused else SUCCESS)


def add_accounting(screen: Screen, work: Ingest, target: Dataset, jobs: Accounting) -> None:
    """Add the jobs of the batch system to a dataset; print their number, and what may hide their profiles."""
    from commlens.fleet.accounting import unmatched_text
    from commlens.fleet.files import cluster_folder

    skipped = f"; skipped {count_text(jobs.unfinished, 'job')} not ended yet" if jobs.unfinished else ""
    screen.line(f"{work.add_rows('batch_job', jobs.rows):,} new jobs of the batch system{skipped}")
    unmatched = unmatched_text(
        {*map(cluster_folder, jobs.clusters), *target.clusters("batch_job")}, target.clusters("job")
    )
    if unmatched:
        print_message(unmatched)


def make_up(target: Dataset, jobs: int) -> int:
    """Add a made-up year to a dataset; return the number of new jobs."""
    from commlens.fleet.made_up import Truth, batches

    count = 0
    for rows in batches(jobs, Truth()):
        count += target.add(rows)["job"]
        target.compact()
    return count


@contextmanager
def ends_gently() -> Iterator[list[int]]:
    """Return a list that gets the signal that asks the process to end: the batch is then still written."""
    ended: list[int] = []
    former = {
        number: signal.signal(number, lambda number, _: ended.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield ended
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def report(screen: Screen, counts: Counts) -> None:
    """Print what became of the profiles."""
    for reason in counts.reasons[:MOST_REASONS]:
        print_message(reason)
    if len(counts.reasons) > MOST_REASONS:
        print_message(f"and {len(counts.reasons) - MOST_REASONS:,} more: commlens fleet DATASET refused")
    screen.line(f"profiles: {counts.added:,} new, {counts.known:,} known before, {counts.refused:,} refused")
