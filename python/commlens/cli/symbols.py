# SPDX-License-Identifier: Apache-2.0
"""`commlens symbols`."""

from __future__ import annotations

from pathlib import Path

import click

from commlens.base.errors import CommlensError
from commlens.cli.options import profile_argument
from commlens.profile import open_profile
from commlens.profile.added import replace_table
from commlens.render.screen import Screen
from commlens.symbols.addr2line import is_installed
from commlens.symbols.debuginfod import Downloads
from commlens.symbols.naming import Names, find_names


@click.command()
@profile_argument
@click.option(
    "--download-time",
    "download_s",
    type=click.IntRange(min=0),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Longest time for downloads by debuginfod-find, all together, if DEBUGINFOD_URLS is set. 0: download nothing.",
)
def symbols(profile: str, download_s: float) -> None:
    """Store the functions, files and lines of all call sites in PROFILE.

    Run it where the program and its libraries are. Reports on other machines then show these names, without the
    program and without addr2line. Functions that the compiler inlined are frames of their own.

    Debug information may be in the program and its libraries, or in files of its own: by build id below
    /usr/lib/debug, beside the library as its section .gnu_debuglink says, or on the servers of DEBUGINFOD_URLS. Such
    files suffice: the program may be missing. Only this command downloads; reports use what is on the machine.

    Prints how many call sites have names, and for each module whose call sites have none the reason: for example that
    it is missing, or that its build id differs from that of the run. Names that the profile has already are kept.
    Changes the file at once: if the command is killed, the profile is as before.
    """
    if not is_installed():
        raise CommlensError("addr2line is not installed: install binutils")
    with open_profile(profile) as connection:
        names = find_names(connection, profile, Downloads(download_s))
    if names.found:
        replace_table(Path(profile), "frame", names.rows())
    _print(Screen(), names)


def _print(screen: Screen, names: Names) -> None:
    """Print what was found, and what is missing."""
    with_names = len(names.symbols)
    screen.line(
        f"{with_names:,} of {names.sites:,} call sites have names, {names.found:,} of them new or better"
    )
    for missing in names.missing:
        screen.line(missing)
