# SPDX-License-Identifier: Apache-2.0
"""Words and tables of an advice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from commlens.base.counts import count_text
from commlens.place import objective
from commlens.place.machine import NETWORK, NODE, Machine
from commlens.place.plan import AS_GOOD, CommChange, Plan
from commlens.render.screen import Screen
from commlens.render.table import Column, Table, fold
from commlens.render.units import bytes_text, share_text

LEVELS = (
    Column("shared level", right=False),
    Column("distance"),
    Column("before"),
    Column("share"),
    Column("after"),
    Column("share "),
)
COMMS = (
    Column("communicator", right=False),
    Column("size"),
    Column("traffic", wide=1),
    Column("cost before"),
    Column("cost after"),
    Column("change"),
)


def number_text(value: float) -> str:
    """Return a cost.

    >>> number_text(0), number_text(1234.4), number_text(1.5e9)
    ('0', '1,234', '1.50e+09')
    """
    return f"{value:,.0f}" if value < 1e6 else f"{value:.2e}"


def head_text(plan: Plan) -> str:
    """Return the answer in one sentence."""
    before, after, bound = plan.cost_before, plan.cost_after, plan.bound
    if plan.is_well:
        if plan.optimal and before <= bound * (1 + 1e-9):
            return "your ranks are placed well already: no placement on this machine is better"
        if before <= bound * 1.03:
            return f"your ranks are placed well already (within {over_text(before, bound)} of the bound)"
        return (
            f"no better placement was found: the best one saves {share_text(max(0.0, 1 - after / before))}; the bound is "
            f"{share_text(1 - bound / before)} below the cost of the run"
        )
    return (
        f"another placement saves {share_text(1 - after / before)} of bytes x distance and moves "
        f"{count_text(plan.moved, 'rank')} of {plan.graph.size:,}"
    )


def over_text(cost: float, bound: float) -> str:
    """Return how far a cost is above the bound."""
    return "0 %" if cost <= bound else f"{100 * (cost / bound - 1):.1f} %" if bound else "any distance"


def cost_text(plan: Plan) -> str:
    """Return the costs before and after, and the bound."""
    before, after = plan.cost_before, plan.cost_after
    best = "the optimum" if plan.optimal else "lower bound"
    return (
        f"bytes x distance: {number_text(before)} before ({plan.before_is}), {number_text(after)} after, {best} "
        f"{number_text(plan.bound)}"
        + ("" if plan.optimal else f": after is within {over_text(after, plan.bound)} of it")
    )


def level_text(machine: Machine, number: int) -> str:
    """Return what two ranks share that share the level of this number, and no level inside it."""
    names = [level.name for level in machine.levels]
    if names.index(NODE) >= number:
        return f"in the same {names[number]}"
    between = names[names.index(NODE) + 1 : -1]
    groups = "groups of nodes" if machine.between is not None else "switches"
    if names[number] == NETWORK:
        return f"between {groups}" if between else "between nodes"
    group = f"group ({names[number]})" if machine.between is not None else names[number]
    return f"between nodes, in the same {group}"


def level_table(plan: Plan) -> Table:
    """Return the traffic at each level, before and after."""
    table = Table(LEVELS)
    before = objective.by_level(plan.graph, plan.machine, plan.before).tolist()
    after = objective.by_level(plan.graph, plan.machine, plan.after).tolist()
    # The two differ if a message counts as more bytes at one level than at another.
    sum_before, sum_after = sum(before) or 1.0, sum(after) or 1.0
    for number, (level, was, will) in enumerate(zip(plan.machine.levels, before, after)):
        if level.distance or was or will:
            nearest, farthest = plan.machine.distance_range(number)
            table.add(
                [
                    level_text(plan.machine, number),
                    f"{nearest:g}" if nearest == farthest else f"{nearest:g}-{farthest:g}",
                    bytes_text(int(was)),
                    share_text(was / sum_before),
                    bytes_text(int(will)),
                    share_text(will / sum_after),
                ]
            )
    return table


def comm_table(plan: Plan, top: int) -> Table:
    """Return the communicators that gain most, and all the top ones that pay."""
    table = Table(COMMS)
    shown = plan.comms
    if top and len(shown) > top:
        pay = [change for change in shown if change.gain < 0][-top:]
        gain = [change for change in shown if change not in pay][: max(0, top - len(pay))]
        shown = [*gain, *pay]
    for change in shown:
        table.add(comm_cells(change))
    rest = len(plan.comms) - len(shown)
    if rest:
        table.say(f"and {count_text(rest, 'more communicator')}")
    return table


def comm_cells(change: CommChange) -> list[str]:
    """Return the cells of a communicator."""
    gain = change.gain / change.before if change.before else 0.0
    word = "pays" if change.gain < 0 else "gains" if change.gain > 0 else ""
    return [
        change.name,
        f"{change.size:,}" if change.size else "",
        bytes_text(change.bytes),
        number_text(change.before),
        number_text(change.after),
        f"{word} {share_text(abs(gain))}".strip() if word else "the same",
    ]


def note_sentences(plan: Plan) -> Iterator[str]:
    """Yield what else the user should know."""
    for grid in plan.grids:
        if len(set(grid.dims)) == 1:
            continue  # there is no other order
        dims = "x".join(map(str, grid.dims))
        if plan.is_well or grid.is_unchanged or grid.cost >= plan.cost_before * (1 - AS_GOOD):
            if not plan.is_well:
                is_best = grid.is_unchanged or grid.cost >= plan.cost_before
                than = "is better" if is_best else f"saves more than {share_text(AS_GOOD)}"
                yield f"{grid.name}: no other order of its dimensions {dims} {than}{' than the present one' if is_best else ''}."
            continue
        order = "x".join(str(grid.dims[axis]) for axis in grid.order)
        saved = share_text(1 - grid.cost / plan.cost_before)
        ends = (
            "that does as well as the recommended placement, by a change of one line"
            if grid.cost <= plan.cost_after * (1 + AS_GOOD)
            else f"the recommended placement saves {share_text(1 - plan.cost_after / plan.cost_before)}"
        )
        yield f"{grid.name}: MPI_Cart_create with the dimensions in the order {order} instead of {dims} saves {saved}; {ends}."
    if plan.grids and not plan.is_well:
        yield "reorder=1 of MPI_Cart_create changes nothing in Open MPI and MPICH: both keep the order of the ranks."
    yield from (f"{remark}." for remark in plan.remarks)


def show(plan: Plan, screen: Screen, top: int) -> None:
    """Print the advice."""
    screen.lines(fold("", head_text(plan), screen.width, "bold"))
    screen.lines(fold("", cost_text(plan), screen.width))
    screen.lines([Text(""), *level_table(plan).lines(screen.width)])
    if not plan.is_well:
        screen.lines([Text(""), *comm_table(plan, top).lines(screen.width)])
    for sentence in note_sentences(plan):
        screen.lines([Text(""), *fold("", sentence, screen.width, "dim")])


def show_file(screen: Screen, output: Path, command: str) -> None:
    """Print how to use a file that was written."""
    screen.lines([Text(""), *fold("", f"{output} written. To use it:", screen.width), Text(f"    {command}")])
