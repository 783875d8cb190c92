# SPDX-License-Identifier: Apache-2.0
"""`commlens sql`."""

from __future__ import annotations

import sys
from typing import Any

import click

from commlens.base.errors import CommlensError
from commlens.cli.options import format_option, profile_argument
from commlens.profile import open_profile
from commlens.profile.query import answer
from commlens.render.screen import Screen
from commlens.render.table import Column, Table, csv_text, json_text


def cell_text(value: Any) -> str:
    """Return one value for the table."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def is_number(value: Any) -> bool:
    """Return whether a value is right-aligned."""
    return value is None or isinstance(value, (int, float))


@click.command()
@profile_argument
@click.argument("query")
@format_option
def sql(profile: str, query: str, style: str) -> None:
    """Run QUERY, one SQL statement, on PROFILE; - reads the query from standard input.

    The profile is opened read-only. 'commlens schema' lists the tables and views; start with the view counter.
    """
    try:
        if query == "-":
            query = sys.stdin.read()
        query.encode()
    except UnicodeError:
        raise CommlensError("SQL: the query is not UTF-8") from None
    with open_profile(profile) as connection:
        connection.take_time()
        titles, rows = answer(connection, query)
    screen = Screen()
    if style == "json":
        screen.json(json_text([dict(zip(titles, row)) for row in rows]))
    elif style == "csv":
        screen.plain(csv_text(titles, rows))
    elif titles:
        table = Table([Column(t, right=all(is_number(row[i]) for row in rows)) for i, t in enumerate(titles)])
        for row in rows:
            table.add([cell_text(value) for value in row])
        screen.lines(table.lines(None))
