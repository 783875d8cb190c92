# SPDX-License-Identifier: Apache-2.0
"""The numbers of a scatter plot: the time in one row of `commlens correlate`, and the run time."""

from __future__ import annotations

from dataclasses import dataclass

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.compare.correlate import Correlation
from commlens.compare.correlate_text import interval_text, name_text, number_text, p_text
from commlens.render.units import time_text


@dataclass
class Points:
    """A point per run: the time in the row and the run time in ns, and the name of the run."""

    title: str
    about: str
    x_axis: str
    y_axis: str
    x: list[float]
    y: list[float]
    names: list[str]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of the numbers."""
        rows = [
            [name, time_text(round(x)), time_text(round(y))] for name, x, y in zip(self.names, self.x, self.y)
        ]
        return ["profile", self.x_axis, self.y_axis], rows


def correlation(result: Correlation) -> Points:
    """Return the points of the strongest row that is a time.

    Raises
    ------
    CommlensError
        There is no row with a correlation.
    """
    rows = [row for row in result.rows if row.setting is None]
    if not rows:
        raise CommlensError("no time in this selection differs between the runs: nothing to draw")
    row = rows[0]
    main = row.main
    of_rows = f"strongest of {len(rows)} rows; " if len(rows) > 1 else ""
    parts = [
        f"Spearman {number_text(main.spearman.value)} ({interval_text(main.spearman) or 'no interval'})",
        f"Pearson {number_text(main.pearson.value)}",
        f"p {p_text(main.spearman.q)}",
    ]
    claim = f"{row.claim} with the run time" if row.claim else "no relation shown"
    about = f"{of_rows}{count_text(len(result.heads), 'run')}: {claim}; {', '.join(parts)}"
    name = name_text(row, result)
    whose = "slowest rank" if row.slowest else "all ranks together"
    title = f"Run time and {name}"
    paths = [head.path for head in result.heads]
    return Points(title, about, f"{name}, {whose}", "run time", main.values, result.elapsed, paths)
