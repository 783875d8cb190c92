# SPDX-License-Identifier: Apache-2.0
"""Writes a chart to a file: SVG, PNG, or a page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Union

from commlens.charts import figures
from commlens.charts.bars import Bars
from commlens.charts.points import Points
from commlens.charts.spread import Spread
from commlens.render import plot

Chart = Union[Bars, Spread, Points]


def write(chart: Chart, path: Path) -> None:
    """Write a chart in the format of the ending of `path`.

    Raises
    ------
    CommlensError
        matplotlib is not installed.
    """
    with plot.settings():
        figure = figures.draw(chart)
        if path.suffix == ".html":
            elements = [plot.svg_element(figure), plot.table_element(*chart.table())]
            path.write_text(plot.page(chart.title, chart.about, elements), encoding="utf-8")
        else:
            plot.save(figure, path.suffix[1:], path)
