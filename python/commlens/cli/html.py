# SPDX-License-Identifier: Apache-2.0
"""`commlens html`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from commlens.base.errors import CommlensError
from commlens.base.outputs import new
from commlens.cli.compare import SidesCommand, read_sides, split
from commlens.cli.options import OutputPath
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.reports.query import Selection

# commlens.page needs numpy, which takes longer to load than other commands take.

MEGABYTE = 10**6


@click.command(cls=SidesCommand)
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE | A... [--] B...")
@click.option(
    "--output",
    "-o",
    type=OutputPath(),
    metavar="FILE",
    help="Write the page to FILE.  [default: the name of PROFILE, or of the first of B, with .html]",
)
@click.option(
    "--budget",
    type=click.IntRange(1, 1000),
    default=15,
    show_default=True,
    metavar="MB",
    help="Megabytes for the counters in the page. Where they need more, the page adds up call sites, then message "
    "sizes, "
    "then regions, then ranks, and says so.",
)
@click.option(
    "--wrapper",
    "wrappers",
    multiple=True,
    metavar="PATTERN",
    help="Functions that only pass calls on to MPI, such as 'hypre_MPI_*': the function around them is the call "
    "site; call "
    "paths show them in brackets. Repeatable.  [default: COMMLENS_WRAPPERS; '' for none]",
)
def html(profiles: tuple[str, ...], output: Path | None, budget: int, wrappers: tuple[str, ...]) -> None:
    """Write a page that explains the run of PROFILE, for a browser.

    The page is one file: copy it to any machine and open it there. It needs no network and no server. It shows what
    ran, what commlens finds in it, communicators, operations by message size, waiting, ranks and nodes, who sends how
    much to whom, code regions, call sites and the paths to them, the timeline, and what commlens itself cost. A click
    on a communicator, an operation, a message size, a rank, a region, a call site or a function on a call path
    restricts all views to it. Every chart has its table, which can be copied as CSV, and the SQL that returns the same
    numbers from the profile.

    With two profiles, or several on each side of --, the page also compares them, as 'commlens compare' does; the other
    views show the first profile of B.

    The script of the page uses functions of browsers from 2023 on: Chrome and Edge 103, Firefox 113, Safari 16.4.

    Exit code 2: a profile cannot be read, and there is no page then; or FILE exists or cannot be written.
    """
    from commlens.page.build import page

    sides = ([], list(profiles)) if len(profiles) == 1 else split(profiles, None)
    profile = sides[1][0]
    target = output or Path(Path(profile.rstrip("/")).with_suffix(".html").name)
    if os.path.lexists(target):
        raise CommlensError(f"{target}: exists")
    comparison = compared(sides) if sides[0] else None
    with open_profile(profile) as connection:
        text = page(connection, Path(profile), budget * MEGABYTE, comparison=comparison, wrappers=wrappers)
    with new(target) as path:
        path.write_text(text, encoding="utf-8")
    Screen().line(target)


def compared(sides: tuple[list[str], list[str]]) -> dict[str, Any]:
    """Return the comparison of two sides for the page."""
    from commlens.compare.model import compare
    from commlens.page.comparison import of_page

    runs, _ = read_sides(sides, Selection(), keep_going=False)
    return of_page(compare(*runs))
