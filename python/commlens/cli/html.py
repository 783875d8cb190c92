# SPDX-License-Identifier: Apache-2.0
"""`commlens html`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from commlens.base.errors import CommlensError
from commlens.base.outputs import new
from commlens.cli.options import OutputPath, profile_argument
from commlens.profile import open_profile
from commlens.render.screen import Screen

# commlens.page needs numpy, which takes longer to load than other commands take.

MEGABYTE = 10**6


@click.command()
@profile_argument
@click.option(
    "--output",
    "-o",
    type=OutputPath(),
    metavar="FILE",
    help="Write the page to FILE.  [default: the name of PROFILE, with .html]",
)
@click.option(
    "--budget",
    type=click.IntRange(1, 1000),
    default=15,
    show_default=True,
    metavar="MB",
    help="Megabytes for the counters in the page. Where they need more, the page adds up call sites, then message sizes, "
    "then regions, then ranks, and says so.",
)
def html(profile: str, output: Path | None, budget: int) -> None:
    """Write a page that explains the run of PROFILE, for a browser.

    The page is one file: copy it to any machine and open it there. It needs no network and no server. It shows what ran,
    what commlens finds in it, communicators, operations by message size, ranks and nodes, who sends how much to whom,
    code regions, call sites, the time line, and what commlens itself cost. A click on a communicator, an operation, a
    message size, a rank, a region or a call site restricts all views to it. Every chart has its table, which can be
    copied as CSV, and the SQL that returns the same numbers from the profile.

    The script of the page uses functions of browsers from 2023 on: Chrome and Edge 103, Firefox 113, Safari 16.4.

    Exit code 2: the profile cannot be read, or FILE exists or cannot be written.
    """
    from commlens.page.build import page

    target = output or Path(Path(profile.rstrip("/")).with_suffix(".html").name)
    if os.path.lexists(target):
        raise CommlensError(f"{target}: exists")
    with open_profile(profile) as connection:
        text = page(connection, Path(profile), budget * MEGABYTE)
    with new(target) as path:
        path.write_text(text, encoding="utf-8")
    Screen().line(target)
