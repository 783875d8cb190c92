# SPDX-License-Identifier: Apache-2.0
"""Charts by matplotlib: the composition of a run, and the net time relative to the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commlens.base.escape import Target, escape
from commlens.overhead import text
from commlens.overhead.estimate import Cost
from commlens.overhead.legs import BASELINE
from commlens.overhead.measure import Run
from commlens.render import plot
from commlens.render.table import Cells

COLOURS = {"net": "#4c78a8", "hook": "#f2a33a", "wrap": "#b8b8c0"}
HEIGHT = 0.45  # inches a tool


def figure(costs: Sequence[Cost], runs: Sequence[Run]) -> Any:
    """Return both charts as a figure of matplotlib.

    Raises
    ------
    CommlensError
        matplotlib is not installed.
    """
    costs = [cost for cost in costs if cost.runs]
    drawn = plot.figure_class()(figsize=(10, 1.8 + HEIGHT * len(costs)), layout="constrained")
    left, right = drawn.subplots(1, 2, sharey=True)
    places = range(len(costs))
    begin = [0.0] * len(costs)
    for part, colour in COLOURS.items():
        seconds = [max(0.0, getattr(cost, f"{part}_ns")) / 1e9 for cost in costs]
        left.barh(places, seconds, left=begin, color=colour, label=part, height=0.6)
        begin = [a + b for a, b in zip(begin, seconds)]
    left.set_yticks(places, [escape(cost.tool, Target.LINE) for cost in costs])
    left.invert_yaxis()
    left.set_xlabel("s, medians")
    left.set_title("composition of a run", fontsize=10)
    left.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.3 / HEIGHT / len(costs)),
        ncols=3,
        frameon=False,
        fontsize=8,
    )
    base = {run.round: run.net_ns for run in runs if run.tool == BASELINE and run.round > 0}
    for row, cost in enumerate(costs):
        ratios = [
            run.net_ns / base[run.round]
            for run in runs
            if run.tool == cost.tool and base.get(run.round) and cost.tool != BASELINE and not run.failure
        ]
        shift = [
            row + 0.25 * ((i * 7 % 11) / 10 - 0.5) for i in range(len(ratios))
        ]  # not on top of each other
        right.plot(ratios, shift, ".", color=COLOURS["net"], alpha=0.35, markersize=4)
        if cost.ratio is not None:
            estimate = cost.ratio
            right.errorbar(
                1 + estimate.value,
                row,
                xerr=[[estimate.value - estimate.low], [estimate.high - estimate.value]],
                fmt="o",
                color=plot.INK,
                capsize=4,
                markersize=5,
            )
    right.axvline(1, color=plot.RULE, linewidth=1, zorder=0)
    right.set_xlabel(f"net, relative to {BASELINE}; bars: 95 %")
    right.set_title("net time", fontsize=10)
    return drawn


def write(costs: Sequence[Cost], runs: Sequence[Run], kind: str, path: Path) -> None:
    """Write an image, `kind` png or svg, to `path`."""
    with plot.settings():
        plot.save(figure(costs, runs), kind, path)


def page(costs: Sequence[Cost], runs: Sequence[Run], number: int, processes: int) -> str:
    """Return a self-contained HTML page: both charts, the verdicts, and the table."""
    lines = text.table(costs)
    rows = [row.texts for row in lines.rows if isinstance(row, Cells)]
    said = "".join(
        f"<li>{escape(text.verdict(cost), Target.HTML)}</li>\n"
        for cost in costs
        if cost.ratio is not None or cost.crashed
    )
    with plot.settings():
        picture = plot.svg_element(figure(costs, runs))
    return plot.page(
        "What it costs",
        f"{processes} processes, {number} rounds, medians; differences are within rounds.",
        [
            picture,
            f"<ul>\n{said}</ul>",
            plot.table_element([column.title for column in lines.columns], rows),
            f"<p>{escape(text.LEGEND, Target.HTML)}</p>",
        ],
    )
