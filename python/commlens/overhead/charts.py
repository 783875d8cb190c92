# SPDX-License-Identifier: Apache-2.0
"""Charts by matplotlib: the composition of a run, and the net time relative to the baseline."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape
from commlens.overhead import text
from commlens.overhead.estimate import Cost
from commlens.overhead.legs import BASELINE
from commlens.overhead.measure import Run
from commlens.render.table import Cells

COLOURS = {"net": "#4c78a8", "hook": "#f2a33a", "wrap": "#b8b8c0"}
HEIGHT = 0.45  # inches a tool


def figure_class() -> Any:
    """Return matplotlib's Figure.

    Raises
    ------
    CommlensError
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise CommlensError(
            "charts need matplotlib, which is not installed: pip install matplotlib"
        ) from None
    return Figure


def figure(costs: Sequence[Cost], runs: Sequence[Run]) -> Any:
    """Return both charts as a figure of matplotlib.

    Raises
    ------
    CommlensError
        matplotlib is not installed.
    """
    costs = [cost for cost in costs if cost.runs]
    drawn = figure_class()(figsize=(10, 1.8 + HEIGHT * len(costs)), layout="constrained")
    left, right = drawn.subplots(1, 2, sharey=True)
    places = range(len(costs))
    begin = [0.0] * len(costs)
    for part, colour in COLOURS.items():
        seconds = [max(0.0, getattr(cost, f"{part}_ns")) / 1e9 for cost in costs]
        left.barh(places, seconds, left=begin, color=colour, label=part, height=0.6)
        begin = [a + b for a, b in zip(begin, seconds)]
    # Otherwise matplotlib interprets text between two dollar signs as a formula.
    left.set_yticks(places, [escape(cost.tool, Target.LINE) for cost in costs], parse_math=False)
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
                color="#202028",
                capsize=4,
                markersize=5,
            )
    right.axvline(1, color="#b8b8c0", linewidth=1, zorder=0)
    right.set_xlabel(f"net, relative to {BASELINE}; bars: 95 %")
    right.set_title("net time", fontsize=10)
    return drawn


def write(costs: Sequence[Cost], runs: Sequence[Run], kind: str, path: Path) -> None:
    """Write an image, `kind` png or svg, to `path`."""
    figure(costs, runs).savefig(path, format=kind, dpi=150)


def page(costs: Sequence[Cost], runs: Sequence[Run], number: int, processes: int) -> str:
    """Return a self-contained HTML page: both charts, the verdicts, and the table."""
    buffer = io.StringIO()
    figure(costs, runs).savefig(buffer, format="svg")
    picture = buffer.getvalue()
    picture = picture[picture.index("<svg") :]
    lines = text.table(costs)
    titles = "".join(f"<th>{escape(column.title, Target.HTML)}</th>" for column in lines.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell, Target.HTML)}</td>" for cell in row.texts) + "</tr>\n"
        for row in lines.rows
        if isinstance(row, Cells)
    )
    said = "".join(
        f"<li>{escape(text.verdict(cost), Target.HTML)}</li>\n"
        for cost in costs
        if cost.ratio is not None or cost.crashed
    )
    return f"""\
<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>What it costs</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #202028 }}
table {{ border-collapse: collapse }} th, td {{ padding: .2rem .7rem; text-align: right; white-space: nowrap }}
th:first-child, td:first-child {{ text-align: left }} tr + tr {{ border-top: 1px solid #ddd }}
svg {{ max-width: 100%; height: auto }} .table {{ overflow-x: auto }} p {{ color: #666 }}
</style>
<h1>What it costs</h1>
<p>{processes} processes, {number} rounds, medians; differences are within rounds.</p>
{picture}
<ul>
{said}</ul>
<div class="table"><table><tr>{titles}</tr>
{rows}</table></div>
<p>{escape(text.LEGEND, Target.HTML)}</p>
</html>
"""
