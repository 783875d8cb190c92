# SPDX-License-Identifier: Apache-2.0
"""All runs as CSV, which `commlens overhead` can read again."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from collections.abc import Sequence
from pathlib import Path

from commlens.base.errors import CommlensError
from commlens.base.inputs import read_regular
from commlens.overhead import MOST_ROUNDS
from commlens.overhead.legs import BASELINE, NAME
from commlens.overhead.measure import COLUMNS, Run
from commlens.render.table import csv_text

MOST_BYTES = 16 << 20
MOST_TOOLS = 64
FAILURE = re.compile(r"((signal|exit code) [0-9]{1,3})?")
WITHOUT_FAILURE = COLUMNS[:-1]  # of files that older versions wrote
NUMBER = re.compile(r"-?[0-9]{1,18}")  # of 64 bits


def text(runs: Sequence[Run]) -> str:
    """Return the runs as CSV."""
    return csv_text(COLUMNS, [dataclasses.astuple(run) for run in runs])


def read(path: Path) -> list[Run]:
    """Return the runs of a file that `text` wrote.

    Raises
    ------
    CommlensError
        The file cannot be read, has another format, or has too many rounds or tools.
    """
    try:
        content = read_regular(path, MOST_BYTES).decode()
        lines = list(csv.reader(io.StringIO(content, newline=""), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CommlensError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not lines or tuple(lines[0]) not in (COLUMNS, WITHOUT_FAILURE):
        raise CommlensError(f"{path}: not written by 'commlens overhead --to FILE.csv'")
    runs = []
    for number, line in enumerate(lines[1:], 2):
        try:
            if len(line) != len(lines[0]):
                raise ValueError("not a run")
            runs.append(run_of(line))
        except ValueError:
            raise CommlensError(f"{path}, line {number}: not a run") from None
    if not any(run.tool == BASELINE for run in runs):
        raise CommlensError(f"{path}: contains no run without a tool ({BASELINE})")
    for what, found, most in (
        ("rounds", {run.round for run in runs if run.round > 0}, MOST_ROUNDS),
        ("tools", {run.tool for run in runs}, MOST_TOOLS),
    ):
        if len(found) > most:
            raise CommlensError(f"{path}: {len(found):,} {what}; at most {most:,} can be compared")
    return runs


def run_of(line: Sequence[str]) -> Run:
    """Return the run of one line.

    Raises
    ------
    ValueError
        A field is missing, or has a value that `text` does not write.
    """
    fields = dict(zip(COLUMNS, line))
    tool, failure = fields.pop("tool", ""), fields.pop("failure", "")
    if len(line) not in (len(COLUMNS), len(WITHOUT_FAILURE)) or not NAME.fullmatch(tool):
        raise ValueError("not a run")
    if not FAILURE.fullmatch(failure):
        raise ValueError("not a run")
    if not all(NUMBER.fullmatch(value) for name, value in fields.items()):
        raise ValueError("not a run")
    run = Run(tool=tool, failure=failure, **{name: int(value) for name, value in fields.items()})
    # Clocks of two machines differ: the rest of a command may come out below zero, nothing else.
    if (
        min(
            run.round,
            run.position,
            run.processes,
            run.net_ns,
            run.hook_ns,
            run.memory_bytes,
            run.output_bytes,
        )
        < 0
    ):
        raise ValueError("not a run")
    return run
