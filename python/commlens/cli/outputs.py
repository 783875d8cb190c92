# SPDX-License-Identifier: Apache-2.0
"""Checks files of --to before the work begins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from commlens.base.errors import CommlensError
from commlens.render.plot import figure_class

DRAWN = (".html", ".png", ".svg")
"""Endings of files that matplotlib draws."""


def check_outputs(outputs: Sequence[Path], endings: Sequence[str]) -> None:
    """Refuse files that cannot be written: of another ending, named twice, existing, or without matplotlib."""
    for output in outputs:
        if output.suffix not in endings:
            raise click.UsageError(f"{output}: --to writes {', '.join(endings)}")
        if outputs.count(output) > 1:
            raise click.UsageError(f"{output}: named twice by --to")
        if os.path.lexists(output):
            raise CommlensError(f"{output}: exists")
        if not os.access(output.parent, os.W_OK):
            raise CommlensError(f"{output.parent}: cannot be written")
        if output.suffix in DRAWN:
            figure_class()
