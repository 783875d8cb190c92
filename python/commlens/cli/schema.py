# SPDX-License-Identifier: Apache-2.0
"""`commlens schema`."""

from __future__ import annotations

import click
from rich.text import Text

from commlens.base.errors import CommlensError
from commlens.base.spelling import did_you_mean
from commlens.cli.options import format_option
from commlens.profile._schema import META_KEYS, RELATIONS, VERSION
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text

TITLES = ("table", "kind", "column", "type", "unit", "meaning")


@click.command()
@click.argument("table", required=False)
@format_option
def schema(table: str | None, style: str) -> None:
    """Describe the tables and views of a profile, or the columns of TABLE."""
    if table is not None and table not in RELATIONS:
        raise CommlensError(f"no table or view '{table}'{did_you_mean(table, list(RELATIONS))}")
    chosen = RELATIONS if table is None else {table: RELATIONS[table]}
    rows = [
        (name, relation.kind, column.name, column.type, column.unit, column.doc)
        for name, relation in chosen.items()
        for column in relation.columns
    ]
    screen = Screen()
    width = screen.width
    if style == "json":
        screen.json(json_text([dict(zip(TITLES, row)) for row in rows]))
    elif style == "csv":
        screen.plain(csv_text(TITLES, rows))
    elif table is None:
        lines = fold("", f"Schema version {VERSION}. 'commlens schema TABLE' explains its columns.", width)
        for kind in ("table", "view"):
            lines += [Text(""), Text(f"{kind}s", "bold")]
            for name, relation in RELATIONS.items():
                if relation.kind == kind:
                    lines += fold(f"  {name:<18}", relation.doc, width)
        screen.lines(lines)
    else:
        relation = RELATIONS[table]
        lines = [Text(f"{relation.kind} {table}", "bold"), *fold("", relation.doc, width), Text("")]
        widest = max(len(column.name) for column in relation.columns)
        for column in relation.columns:
            kind = f"{column.type.lower()}, {column.unit}" if column.unit else column.type.lower()
            lines += fold(f"  {column.name:<{widest}}  {kind:<20}", column.doc, width)
        if table == "meta":
            lines += [Text(""), Text("keys", "bold")]
            for name, doc in META_KEYS.items():
                lines += fold(f"  {name:<18}", doc, width)
        screen.lines(lines)
