# SPDX-License-Identifier: Apache-2.0
"""All runs as CSV: what `commlens overhead` wrote can be looked at again."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from commlens.errors import CommlensError
from commlens.overhead.legs import BASELINE
from commlens.overhead.measure import COLUMNS, Run
from commlens.table import csv_text


def text(runs: Sequence[Run]) -> str:
    """Return the runs as CSV."""
    return csv_text(COLUMNS, [dataclasses.astuple(run) for run in runs])


def read(path: Path) -> list[Run]:
    """Return the runs of a file that `text` made.

    Raises
    ------
    CommlensError
        It is no such file, or not a whole one.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CommlensError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not lines or tuple(lines[0]) != COLUMNS:
        raise CommlensError(f"{path}: not what 'commlens overhead --to FILE.csv' writes")
    runs = []
    for number, line in enumerate(lines, 2):
        try:
            runs.append(Run(**{name: line[name] if name == "tool" else int(line[name]) for name in COLUMNS}))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise CommlensError(f"{path}, line {number}: not a run") from None
    if not any(run.tool == BASELINE for run in runs):
        raise CommlensError(f"{path}: no run without a tool ({BASELINE})")
    return runs
