# SPDX-License-Identifier: Apache-2.0
"""Output that commands share: checks of the files of --to, and the forms of --format and --sql."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from commlens.base.errors import CommlensError
from commlens.render.plot import figure_class
from commlens.render.screen import Screen
from commlens.render.table import csv_text, json_text

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


def print_statements(screen: Screen, statements: Iterable[tuple[str, str]]) -> None:
    """Print SQL statements, each below its title."""
    for title, statement in statements:
        screen.plain(f"-- {title}\n{statement};\n\n")


def show_rows(
    screen: Screen,
    style: str,
    statements: Sequence[tuple[str, str]],
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    show_sql: bool,
) -> bool:
    """Do the same as show_data() for a command whose document is its rows."""
    return show_data(
        screen, style, statements, lambda: rows, lambda: rows, show_sql=show_sql, columns=columns
    )


def show_data(
    screen: Screen,
    style: str,
    statements: Sequence[tuple[str, str]],
    rows: Callable[[], Sequence[Mapping[str, Any]]],
    document: Callable[[], object],
    *,
    show_sql: bool,
    columns: Sequence[str] = (),
) -> bool:
    """Print the statements, the rows as csv or the document as json; return False for a table, which is the caller's.

    columns : of csv; none: the names in the first row, and no heading if there are no rows
    """
    if show_sql:
        print_statements(screen, statements)
    elif style == "json":
        screen.json(json_text(document()))
    elif style == "csv":
        lines = rows()
        titles = columns or (list(lines[0]) if lines else [])
        screen.plain(csv_text(titles, [list(row.values()) for row in lines]))
    else:
        return False
    return True
