# SPDX-License-Identifier: Apache-2.0
"""Answers of a dataset as a table: numbers with units, by the names of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

from commlens.base.counts import count_text
from commlens.fleet.engine import Answer, Engine
from commlens.fleet.log import Log
from commlens.fleet.questions import Question
from commlens.render.table import Column, Table
from commlens.render.units import share_text, time_text

MOST_CELL = 60
SHARES = (
    "load_balance",
    "worst",
    "communication_efficiency",
    "by_chance",
    "share",
    "change",
    "noise",
    "mpi_change",
)


def ask(engine: Engine, question: Question) -> Answer:
    """Return the answer to a question: titles and rows."""
    engine.run(question.sql)
    return engine.run(f"SELECT * FROM {question.view}")


def cell_text(title: str, value: Any) -> str:
    """Return a value with its unit.

    >>> cell_text("hours", 12345.678), cell_text("mpi_share", 0.25), cell_text("call_ns", 1500), cell_text("change", 0.08)
    ('12,346', '25.0 %', '1.50 µs', '+8.0 %')
    """
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, (int, float)):
        return number_text(title, value)
    text = str(value)
    return text if len(text) <= MOST_CELL else f"{text[: MOST_CELL - 1]}…"


def number_text(title: str, value: float) -> str:
    """Return a number with its unit; an empty text for infinity and NaN, as a division by zero yields them.

    >>> number_text("jobs", 4200), number_text("slowness", 1.0834), number_text("own_hours", 0.02), number_text("x", float("nan"))
    ('4,200', '1.083', '0.02', '')
    """
    if not isfinite(value):
        return ""
    if title.endswith("_ns"):
        return time_text(round(value))
    if title.endswith("change"):
        return f"{100 * value:+.1f} %"
    if title.endswith("_share") or title in SHARES:
        return share_text(value)
    if title in ("example", "job"):
        return str(value)
    if title.endswith("hours"):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
    if isinstance(value, int) or value == round(value):
        return f"{round(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"


def heading(title: str) -> str:
    """Return the heading of a column in a table, whose cells have units of their own.

    >>> heading("call_ns"), heading("mpi_share")
    ('call', 'mpi share')
    """
    return title.removesuffix("_ns").replace("_", " ")


def drawn(titles: Sequence[str], rows: Sequence[Sequence[Any]], top: int) -> Table:
    """Return the table of an answer, with a line that counts the rows left out."""
    shown = rows[:top] if top else rows
    is_text = [any(isinstance(row[i], (str, datetime)) for row in rows) for i in range(len(titles))]
    # If space is short, the last columns go first; the first ones name the row.
    table = Table(
        [Column(heading(t), right=not is_text[i], wide=max(0, i - 2)) for i, t in enumerate(titles)]
    )
    for row in shown:
        table.add([cell_text(title, value) for title, value in zip(titles, row)])
    if len(shown) < len(rows):
        table.say(f"and {len(rows) - len(shown):,} more rows: --top 0")
    return table


def summary(root: Path, engine: Engine) -> Iterator[str]:
    """Yield lines about a dataset: what it contains."""
    sql = (
        "SELECT COUNT(*), COUNT(DISTINCT cluster), COUNT(DISTINCT code), MIN(start), MAX(start), SUM(app_ns / 3.6e12)"
        " FROM job"
    )
    ((jobs, clusters, codes, first, last, hours),) = engine.run(sql)[1]
    state = Log(root).read()
    size = sum(file.bytes for file in state.files.values())
    rows = sum(file.rows for file in state.files.values())
    of = f"{count_text(jobs, 'job')} of {count_text(codes, 'code')} on {count_text(clusters, 'machine')}"
    yield f"{of}, {hours or 0:,.0f} hours of processes"
    if first is not None:
        yield f"from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
    yield f"{count_text(rows, 'row')} in {count_text(len(state.files), 'file')}, {size / 1e6:,.1f} MB"
