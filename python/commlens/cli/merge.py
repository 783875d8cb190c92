# SPDX-License-Identifier: Apache-2.0
"""`commlens merge`."""

from __future__ import annotations

from pathlib import Path

import click

from commlens.base.errors import CommlensError
from commlens.profile import merged_file
from commlens.profile.shards import is_directory
from commlens.render.screen import Screen


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Where the file goes.  [default: the directory's name with .db in place of .commlens]",
)
def merge(directory: Path, output: Path | None) -> None:
    """Make one file of a profile that has several.

    DIRECTORY is what a job of many ranks leaves in place of a file; every command reads it as it is, and one file
    faster. The directory stays. What of it is missing or damaged is said, and left out.
    """
    if not is_directory(directory):
        raise CommlensError(f"{directory}: no directory with a profile")
    output = output or directory.with_name(directory.name.removesuffix(".commlens") + ".db")
    merged_file(directory, output)
    Screen().line(output)
