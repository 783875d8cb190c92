# SPDX-License-Identifier: Apache-2.0
"""`commlens merge`."""

from __future__ import annotations

from pathlib import Path

import click

from commlens.base.errors import CommlensError
from commlens.cli.options import OutputPath
from commlens.profile import merged_file
from commlens.profile.shards import is_directory
from commlens.render.screen import Screen


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    help="Path of the file.  [default: the directory's name with .db in place of .commlens]",
)
def merge(directory: Path, output: Path | None) -> None:
    """Merge a profile directory into one file.

    DIRECTORY is the profile that a job of many ranks writes instead of one file. Every command also reads the
    directory, but a single file faster. The directory is kept. Missing or damaged files are left out, with a message;
    the exit code is then 3.
    """
    if not is_directory(directory):
        raise CommlensError(f"{directory}: not a profile directory")
    output = output or directory.with_name(directory.name.removesuffix(".commlens") + ".db")
    merged_file(directory, output)
    Screen().line(output)
