# SPDX-License-Identifier: Apache-2.0
"""Draws charts with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commlens.base.escape import Target, escape
from commlens.charts.bars import Bars
from commlens.charts.names import shortened
from commlens.charts.palette import COLOURS, colour
from commlens.charts.points import Points
from commlens.charts.spread import Spread
from commlens.render.plot import INK, RULE, figure_class
from commlens.render.units import TIME_UNITS

WIDTH = 9.0  # inches
ROW = 0.36
BELOW = 0.5  # from a diagram to its legend
LONGEST_NAME, LONGEST_AXIS, LONGEST_TITLE, LONGEST_ABOUT = 36, 90, 68, 112  # characters
BOX = COLOURS[0] + "50"  # with an opacity, for a light and a dark ground
LEGEND_LETTERS = 105  # of all names in one line of the legend


def label(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a text from outside as the label of a picture."""
    return shortened(escape(text, Target.LINE), longest)


def time_unit(most: float) -> tuple[int, str]:
    """Return the unit for times up to `most` ns.

    >>> time_unit(0.5), time_unit(3e9)
    ((1, 'ns'), (1000000000, 's'))
    """
    return next(((scale, unit) for scale, unit in reversed(TIME_UNITS) if most >= scale), TIME_UNITS[0])


def new_figure(title: str, about: str, height: float) -> tuple[Any, Any]:
    """Return a figure with one diagram, and the diagram."""
    figure = figure_class()(figsize=(WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.09, h_pad=0.09)
    axes = figure.add_subplot()
    # Its second, empty line keeps the place of the smaller text below it.
    figure.suptitle(label(title, LONGEST_TITLE) + "\n", x=0.01, ha="left", fontsize=12, fontweight="bold")
    figure.text(0.01, 1 - 0.33 / height, label(about, LONGEST_ABOUT), ha="left", va="top", fontsize=8.5)
    return figure, axes


def name_rows(axes: Any, names: Sequence[str]) -> None:
    """Give the rows of a diagram their names, from the top."""
    axes.set_yticks(range(len(names)), [label(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=RULE, linewidth=0.5, alpha=0.6)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)


def columns_of_legend(names: Sequence[str]) -> int:
    """Return the number of columns with which a legend is as wide as the picture at most.

    >>> columns_of_legend(["MPI_Send"] * 6), columns_of_legend(["x" * 36] * 6), columns_of_legend([])
    (6, 2, 1)
    """
    columns = len(names)
    while columns > 1 and columns * (max(map(len, names)) + 6) > LEGEND_LETTERS:
        columns -= 1
    return max(1, columns)


def draw(chart: Bars | Spread | Points) -> Any:
    """Return a chart as a figure of matplotlib."""
    if isinstance(chart, Bars):
        return draw_bars(chart)
    return draw_spread(chart) if isinstance(chart, Spread) else draw_points(chart)


def draw_bars(chart: Bars) -> Any:
    """Return stacked bars as a figure."""
    names = [label(part) for part in chart.parts]
    columns = columns_of_legend(names)
    legend_rows = -(-len(names) // columns)
    figure, axes = new_figure(chart.title, chart.about, 1.7 + ROW * len(chart.bars) + 0.2 * legend_rows)
    most = max(bar.total for bar in chart.bars)
    scale, unit = time_unit(most)
    begins = [0.0] * len(chart.bars)
    for part, name in enumerate(names):
        lengths = [bar.times[part] / scale for bar in chart.bars]
        axes.barh(
            range(len(chart.bars)),
            lengths,
            left=begins,
            height=0.68,
            color=colour(chart.place(part)),
            linewidth=0,
            label=name,
        )
        begins = [begin + length for begin, length in zip(begins, lengths)]
    for row, bar in enumerate(chart.bars):
        if bar.total:
            axes.annotate(
                chart.note(bar),
                (bar.total / scale, row),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=INK,
            )
    name_rows(axes, [bar.name for bar in chart.bars])
    axes.set_xlim(0, most / scale * 1.22)
    axes.set_xlabel(f"time in MPI, {unit}")
    handles, labels = axes.get_legend_handles_labels()
    figure_legend(axes, handles, labels, columns)
    return figure


def figure_legend(axes: Any, handles: Sequence[Any], labels: Sequence[str], columns: int) -> None:
    """Put a legend below a diagram, its ticks and the name of its axis."""
    from matplotlib.transforms import ScaledTranslation

    below = ScaledTranslation(0, -BELOW, axes.figure.dpi_scale_trans)
    axes.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=axes.transAxes + below,
        ncols=columns,
        frameon=False,
        fontsize=8,
        borderaxespad=0,
        handlelength=1.2,
        columnspacing=1.4,
    )


def draw_spread(chart: Spread) -> Any:
    """Return distributions as a figure: a box with whiskers per group, and a point per run."""
    row_height = 1.4 * ROW
    figure, axes = new_figure(chart.title, chart.about, 1.4 + row_height * len(chart.groups))
    low, high = chart.bounds
    scale, unit = time_unit(high)
    for row, group in enumerate(chart.groups):
        for end, side in ((group.low, group.lower), (group.high, group.upper)):
            axes.plot([end / scale, side / scale], [row, row], color=INK, linewidth=1, zorder=1)
            axes.plot([end / scale] * 2, [row - 0.12, row + 0.12], color=INK, linewidth=1, zorder=1)
        width = (group.upper - group.lower) / scale
        axes.barh(
            row, width, left=group.lower / scale, height=0.5, color=BOX, edgecolor=INK, linewidth=1, zorder=2
        )
        axes.plot([group.median / scale] * 2, [row - 0.25, row + 0.25], color=INK, linewidth=2.2, zorder=4)
        places = [row + 0.36 * ((i * 7 % 11) / 10 - 0.5) for i in range(len(group.values))]
        axes.plot(
            [value / scale for value in group.values],
            places,
            "o",
            color=COLOURS[0],
            alpha=0.75,
            markersize=4.5,
            markeredgewidth=0,
            zorder=3,
        )
    names = [f"{label(group.name)}  ({len(group.values)})" for group in chart.groups]
    name_rows(axes, names)
    margin = 0.04 * (high - low) or 0.04 * high or 1.0
    axes.set_xlim((low - margin) / scale, (high + margin) / scale)
    axes.set_xlabel(f"{chart.axis}, {unit}")
    return figure


def draw_points(chart: Points) -> Any:
    """Return a scatter plot as a figure."""
    figure, axes = new_figure(chart.title, chart.about, 5.2)
    (x_scale, x_unit), (y_scale, y_unit) = time_unit(max(chart.x)), time_unit(max(chart.y))
    axes.plot(
        [value / x_scale for value in chart.x],
        [value / y_scale for value in chart.y],
        "o",
        color=COLOURS[0],
        alpha=0.8,
        markersize=6,
        markeredgewidth=0,
        clip_on=False,
    )
    axes.grid(color=RULE, linewidth=0.5, alpha=0.6)
    axes.set_axisbelow(True)
    axes.margins(0.06)
    axes.set_xlabel(f"{label(chart.x_axis, LONGEST_AXIS)}, {x_unit}")
    axes.set_ylabel(f"{chart.y_axis}, {y_unit}")
    return figure
