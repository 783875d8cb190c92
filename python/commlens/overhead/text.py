# SPDX-License-Identifier: Apache-2.0
"""The output of `commlens overhead`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from commlens.base.escape import Target, escape
from commlens.overhead.estimate import FEWEST, Cost, Estimate
from commlens.render.screen import Screen
from commlens.render.table import Column, Table, fold
from commlens.render.units import bytes_text, time_text

PARTS = (("net", "green"), ("hook", "yellow"), ("wrap", "blue"))
COLUMNS = (
    Column("tool", right=False),
    Column("net"),
    Column("hook"),
    Column("wrap"),
    Column("net, added"),
    Column("interval"),
    Column("p", wide=3),
    Column("hook, added", wide=1),
    Column("wrap, added", wide=2),
    Column("memory"),
    Column("added", wide=4),
    Column("files", wide=5),
    Column("crashed", right=False, seldom=True),
)
LEGEND = (
    "net: between MPI_Init and MPI_Finalize; hook: inside these two; wrap: the rest of the command; memory: maximum resident "
    "size of a process; files: output of the tool; crashed: runs that failed, which have no times"
)
SHADES = "█▌░"
NARROW = 20


def signed(value: float, text: str) -> str:
    """Return the text of a number with its sign."""
    return ("-" if value < 0 else "+") + text


def added_time(estimate: Estimate | None) -> str:
    """Return the text of an added time."""
    return "" if estimate is None else signed(estimate.value, time_text(round(abs(estimate.value))))


def percent(value: float) -> str:
    """Return a ratio in per cent.

    >>> percent(0.01234), percent(-0.5), percent(1.5)
    ('+1.23 %', '-50.0 %', '+150 %')
    """
    magnitude = 100 * abs(value)
    digits = 2 if magnitude < 9.995 else 1 if magnitude < 99.95 else 0
    return signed(value, f"{magnitude:.{digits}f} %")


def interval(estimate: Estimate | None) -> str:
    """Return the text of an interval of ratios."""
    if estimate is None or math.isnan(estimate.low):
        return ""
    return f"{percent(estimate.low)} to {percent(estimate.high)}"


def verdict(cost: Cost) -> str:
    """Return the cost of a tool between MPI_Init and MPI_Finalize, as a sentence, and how often it crashed."""
    if not cost.crashed:
        return _cost(cost)
    return (
        f"{_cost(cost)}; it crashed: {cost.crashed}" if cost.runs else f"{cost.tool} crashed: {cost.crashed}"
    )


def _cost(cost: Cost) -> str:
    ratio, number = cost.ratio, cost.runs
    if ratio is None or math.isnan(ratio.p):
        return f"{cost.tool}: {number} runs are too few to estimate the cost; at least {FEWEST} are needed"
    if ratio.is_resolved:
        less = "costs" if ratio.value > 0 else "makes the application faster by"
        return (
            f"{cost.tool} {less} {percent(abs(ratio.value))[1:]} net ({interval(ratio)}, p = {ratio.p:.2g})"
        )
    if ratio.low > 0 or ratio.high < 0:
        return (
            f"{cost.tool}: a net cost of {percent(ratio.value)} ({interval(ratio)}) in {number} runs is not certain, "
            f"p = {ratio.p:.2g}; more runs can show it"
        )
    needed = "more than 100,000" if ratio.needed is None else f"about {max(ratio.needed, number + 1):,}"
    return (
        f"{cost.tool}: net cost below the resolution of {number} runs, {100 * ratio.resolution:.2f} %; "
        f"resolving a difference of {percent(ratio.value)} takes {needed} runs"
    )


def table(costs: Sequence[Cost]) -> Table:
    """Return a line for each tool."""
    drawn = Table(COLUMNS)
    for cost in costs:
        memory = cost.memory
        drawn.add(
            [
                cost.tool,
                *(
                    time_text(round(part)) if cost.runs else ""
                    for part in (cost.net_ns, cost.hook_ns, cost.wrap_ns)
                ),
                "" if cost.ratio is None else percent(cost.ratio.value),
                interval(cost.ratio),
                "" if cost.ratio is None or math.isnan(cost.ratio.p) else f"{cost.ratio.p:.2g}",
                added_time(cost.hook),
                added_time(cost.wrap),
                bytes_text(round(cost.memory_bytes)) if cost.runs else "",
                "" if memory is None else signed(memory.value, bytes_text(round(abs(memory.value)))),
                "" if cost.ratio is None else bytes_text(round(cost.output_bytes)),
                cost.crashed,
            ]
        )
    return drawn


def composition(costs: Sequence[Cost], width: int) -> list[Text]:
    """Return a bar for each tool that has times: net, hook and wrap side by side, in one scale."""
    costs = [cost for cost in costs if cost.runs]
    names = [escape(cost.tool, Target.LINE) for cost in costs]
    widest = max(map(cell_len, names))
    longest = (
        max(sum(max(0.0, part) for part in (cost.net_ns, cost.hook_ns, cost.wrap_ns)) for cost in costs) or 1
    )
    room = max(NARROW, width - widest - 12)
    lines = []
    for cost, name in zip(costs, names):
        line = Text(name + " " * (widest - cell_len(name) + 1))
        ends = [0]
        for part in (cost.net_ns, cost.hook_ns, cost.wrap_ns):
            ends.append(ends[-1] + max(0, round(part)))
        places = [round(room * end / longest) for end in ends]
        for (_, colour), shade, first, last in zip(PARTS, SHADES, places, places[1:]):
            line.append(shade * (last - first), style=colour)
        line.append(f" {time_text(ends[-1])}")
        lines.append(line)
    legend = Text(" " * (widest + 1))
    for (name, colour), shade in zip(PARTS, SHADES):
        legend.append(shade * 2, style=colour)
        legend.append(f" {name}   ", style="dim")
    return [*lines, legend]


def show(costs: Sequence[Cost], number: int, processes: int, screen: Screen) -> None:
    """Print the results."""
    screen.lines(
        fold(
            "",
            f"{processes} processes, {number} rounds, medians; differences are within rounds",
            screen.width,
            "bold",
        )
    )
    screen.lines([Text(""), *table(costs).lines(screen.width), Text("")])
    screen.lines([*composition(costs, screen.width or 100), Text("")])
    for cost in costs:
        if cost.ratio is not None or cost.crashed:
            screen.lines(fold("", verdict(cost), screen.width))
    screen.lines(fold("", LEGEND, screen.width, "dim"))


def as_dict(costs: Sequence[Cost], number: int, processes: int) -> dict[str, Any]:
    """Return the results for JSON."""
    tools = []
    for cost in costs:
        row = dataclasses.asdict(cost)
        for name, value in row.items():
            if isinstance(value, dict):
                value["is_resolved"] = getattr(cost, name).is_resolved
        tools.append(row)
    return {"processes": processes, "rounds": number, "tools": tools}


def csv_rows(costs: Sequence[Cost]) -> tuple[list[str], list[list[Any]]]:
    """Return titles and rows: a row for each tool."""
    plain = ["tool", "net_ns", "hook_ns", "wrap_ns", "memory_bytes", "output_bytes", "runs", "crashed"]
    estimates = ["ratio", "net", "hook", "wrap", "memory"]
    numbers = ["value", "low", "high", "p", "needed"]
    titles = plain + [f"{what}_{number}" for what in estimates for number in numbers]
    rows = []
    for cost in costs:
        row = [getattr(cost, name) for name in plain]
        for what in estimates:
            found = getattr(cost, what)
            row += [None if found is None else getattr(found, number) for number in numbers]
        rows.append(row)
    return titles, rows
