# SPDX-License-Identifier: Apache-2.0
"""`commlens doctor`."""

from __future__ import annotations

import os

import click
from rich.text import Text

from commlens.cli.exit_codes import FAILED, SUCCESS
from commlens.cli.options import format_option
from commlens.doctor import examine
from commlens.doctor.text import finding_lines
from commlens.render.screen import Screen
from commlens.render.table import csv_text, json_text


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--runner",
    metavar="PATH",
    help="The commlens-run to check. By default the one on the command line, in $PATH, or beside this command.",
)
@format_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.pass_context
def doctor(context: click.Context, runner: str | None, style: str, command: tuple[str, ...]) -> None:
    """Check before a run whether commlens can measure COMMAND.

    COMMAND is the application with its arguments, or the whole command line with launcher and commlens-run; put --
    before it. Without COMMAND only the installation and the environment are checked. The application is not run:
    doctor reads executables and libraries, and asks a Python interpreter which packages it has.

    Checks: commlens-run and its libraries; whether the command line, LD_PRELOAD or the program itself loads commlens,
    before the MPI library; which MPI the program, or mpi4py, h5py and others in its Python, use, and
    whether commlens is built for it; static linking, set-user-ID and file capabilities; Fortran procedures that
    commlens cannot see; other tools, linked or preloaded; how launcher and wrappers change the environment; COMMLENS_
    variables and the configuration file; call sites; the location of the profile; the clock.

    Each finding is ok, a warning, or a problem, with advice. Exit code 0: the run would be profiled. Exit code 1: it
    would not.
    """
    if command and command[0].startswith("-"):
        raise click.NoSuchOption(command[0], ctx=context)
    found = examine(command, os.environ, runner)
    screen = Screen()
    if style == "json":
        screen.json(json_text([finding._asdict() for finding in found]))
    elif style == "csv":
        screen.plain(csv_text(("check", "state", "text", "advice"), found))
    else:
        lines = list(finding_lines(found, screen.width))
        problems = sum(finding.state == "problem" for finding in found)
        verdict = "would be profiled" if not problems else "would not be profiled"
        lines += [Text(""), Text(f"a run {verdict}", "bold")]
        screen.lines(lines)
    context.exit(FAILED if any(finding.state == "problem" for finding in found) else SUCCESS)
