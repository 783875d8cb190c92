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
from commlens.symbols.naming import Names, find_names


@click.command()
@profile_argument
def symbols(profile: str) -> None:
    """Store the functions, files and lines of all call sites in PROFILE.

    Run it where the program and its libraries are. Reports on other machines then show these names, without the program and
    without addr2line. Functions that the compiler inlined are frames of their own.

    Prints how many call sites have names, and for each module whose call sites have none the reason: for example that it is
    missing, or that its build id differs from that of the run. Names that the profile has already are kept. Changes the file
    at once: if the command is killed, the profile is as before.
    """
    if not is_installed():
        raise CommlensError("addr2line is not installed: install binutils")
    with open_profile(profile) as connection:
        names = find_names(connection, profile)
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
