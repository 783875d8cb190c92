# SPDX-License-Identifier: Apache-2.0
"""`commlens self-test`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.text import Text

from commlens.base.errors import CommlensError
from commlens.base.interrupt import interruptible
from commlens.base.messages import print_message
from commlens.cli.exit_codes import FAILED, SUCCESS
from commlens.cli.options import format_option
from commlens.doctor.finding import Finding
from commlens.doctor.text import finding_lines
from commlens.render.screen import Screen
from commlens.render.table import csv_text, json_text
from commlens.selftest.run import plan
from commlens.selftest.run import self_test as run_self_test

COLUMN = 18  # of the name of a check


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the program and its profiles in this folder, which must not exist. On several nodes it must be on a "
    "file "
    "system that all of them share. By default a temporary folder, which is removed if all is well.",
)
@format_option
@click.argument("launch", nargs=-1, type=click.UNPROCESSED, metavar="[-- LAUNCHER...]")
@click.pass_context
def self_test(context: click.Context, folder: Path | None, style: str, launch: tuple[str, ...]) -> None:
    """Check that commlens counts correctly on this machine, with its MPI library and launcher.

    Compiles a small program with mpicc ($MPICC, if it is set), or uses mpi4py where there is no compiler. Runs it
    without commlens, with it, and once more with a process that is killed. The counts of the program are known: every
    call, byte, communicator, region and pair of ranks in its profile is compared with them, and the profile of the
    killed run is recovered.

    LAUNCHER is the launcher with its options, such as: commlens self-test -- srun -n 64. By default mpirun, mpiexec or
    srun with up to 4 processes, one for each processor.

    Each finding is ok, a warning, or a problem, with advice. Exit code 0: commlens works here. Exit code 1: it does
    not.
    """
    if launch and launch[0].startswith("-"):
        raise click.NoSuchOption(launch[0], ctx=context)
    screen = Screen()
    found: list[Finding] = []
    with interruptible(), _kept(folder, found) as where:
        for finding in run_self_test(plan(launch, where)):
            found.append(finding)
            if style == "table":
                screen.lines(finding_lines([finding], screen.width, COLUMN))
    if style == "json":
        screen.json(json_text([finding._asdict() for finding in found]))
    elif style == "csv":
        screen.plain(csv_text(("check", "state", "text", "advice"), found))
    else:
        screen.lines([Text(""), Text(_verdict(found), "bold")])
    context.exit(FAILED if _problems(found) else SUCCESS)


@contextmanager
def _kept(folder: Path | None, found: Sequence[Finding]) -> Iterator[Path]:
    """Return a folder to work in: a new one of the user's, or a temporary one that stays if there are problems."""
    if folder is None:
        where = Path(tempfile.mkdtemp(prefix="commlens-self-test-"))
    else:
        where = folder.absolute()
        try:
            where.mkdir(parents=True)
        except FileExistsError:
            raise CommlensError(f"{folder}: exists already; name a new folder") from None
        except OSError as error:
            raise CommlensError(f"{folder}: cannot be made: {error.strerror}") from None
    is_done = False
    try:
        yield where
        is_done = True
    finally:
        if folder is None and (not is_done or not _problems(found)):
            shutil.rmtree(where, ignore_errors=True)
    if folder is None and _problems(found):
        print_message(f"{where} has the program and what it left")


def _problems(found: Sequence[Finding]) -> int:
    return sum(finding.state == "problem" for finding in found)


def _verdict(found: Sequence[Finding]) -> str:
    number = _problems(found)
    if number:
        return f"{number} of {len(found)} checks failed"
    return "commlens works here: all checks passed"
