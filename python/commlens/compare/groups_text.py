# SPDX-License-Identifier: Apache-2.0
"""The comparison of several configurations as text: a sentence, a table of the configurations, and one of the rows."""

from __future__ import annotations

from commlens.base.counts import count_text
from commlens.compare.gate import percent
from commlens.compare.groups import Grouped, GroupRow, also_different
from commlens.compare.match import Node
from commlens.compare.model import rule_of
from commlens.compare.outliers import outliers
from commlens.compare.statistics import runs_needed
from commlens.compare.text import (
    bin_text,
    name_of_row,
    outlier_line,
    run_differences,
    say_algorithms,
    say_split,
)
from commlens.render.table import Column, Table
from commlens.render.units import path_text, time_text


def named(result: Grouped, index: int) -> str:
    """Return a configuration with its letter."""
    group = result.groups[index]
    return f"{group.letter} ({result.by} {group.value})"


def letters(result: Grouped, indices: list[int]) -> str:
    """Return the letters of configurations."""
    return ", ".join(result.groups[i].letter for i in indices)


def others_text(result: Grouped, row: GroupRow) -> str:
    """Return the changes against the fastest configuration that are shown, and the configurations without one."""
    shown = ", ".join(f"{result.groups[i].letter} {change_text(row, i)}" for i in row.slower)
    open_ = [i for i, each in enumerate(row.against) if each is not None and i not in row.slower]
    rest = f"no difference is shown from {letters(result, open_)}" if open_ else ""
    return "; ".join(part for part in (f"slower: {shown}" if shown else "", rest) if part)


def change_text(row: GroupRow, index: int) -> str:
    """Return the time of a configuration against that of the fastest."""
    against = row.against[index]
    return percent(against.ratio) if against else ""


def headlines(result: Grouped) -> list[str]:
    """Return a sentence about the elapsed time, and one about the row with the largest difference that is shown."""
    elapsed = result.elapsed
    best = elapsed.groups[elapsed.fastest]
    spent = time_text(round(best.time_ns)) if best else "-"
    lines = [
        f"{named(result, elapsed.fastest)} has the shortest elapsed time, {spent}; {others_text(result, elapsed)}"
    ]
    significant = [row for row in result.rows if row.slower]
    if significant:
        row = max(significant, key=_shown_difference)
        lines.append(
            f"{name_of_row(row)} differs most: fastest with {named(result, row.fastest)}; {others_text(result, row)}"
        )
    elif not elapsed.slower:
        lines = ["no difference is shown: no configuration is significantly slower than the fastest of a row"]
    return lines


def _shown_difference(row: GroupRow) -> float:
    """Return the largest difference of a row that is shown, in ns."""
    best = row.groups[row.fastest]
    times = [each.time_ns for i in row.slower for each in [row.groups[i]] if each is not None]
    return max(times) - (best.time_ns if best else 0)


def statement(result: Grouped) -> str:
    """Return a sentence about the claims that the number of runs allows."""
    counts = sorted({len(group.runs) for group in result.groups})
    runs = count_text(counts[0], "run") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} runs"
    text = f"{len(result.groups)} configurations, {runs} each, {result.tested} pairs of times tested"
    if result.can_find_one:
        return text
    needed = runs_needed(max(1, result.tested))
    return (
        f"{text}; a difference of a single pair can be shown with {needed} runs of each configuration or more"
    )


def differing_runs(result: Grouped) -> dict[str, dict[str, list[str]]]:
    """Return the number of ranks of the runs, and what their profiles lack, where it differs: the values by group."""
    differences = run_differences([group.runs for group in result.groups])
    return {
        name: {group.letter: each for group, each in zip(result.groups, values)}
        for name, values in differences.items()
        if name != result.by
    }


def setup_lines(result: Grouped) -> list[str]:
    """Return lines about other differences between the groups: of settings, of numbers of ranks, and of how the runs ended."""
    names = also_different(result)
    lines = [f"beside {result.by}, these settings differ: {', '.join(names)}"] if names else []
    found = [
        f"{name} " + ", ".join(f"{letter} {' or '.join(each)}" for letter, each in values.items())
        for name, values in differing_runs(result).items()
    ]
    return [*lines, f"runs differ: {'; '.join(found)}"] if found else lines


def outlier_lines(result: Grouped) -> list[str]:
    """Return a line for each run that is far from the others of its configuration."""
    return [
        outlier_line(group.letter, run, facts, is_slow=is_slow)
        for group in result.groups
        for run, is_slow, facts in outliers(group.runs)
    ]


def draw_groups(result: Grouped) -> Table:
    """Return the table of configurations: elapsed time, and time in MPI."""
    table = Table(
        (
            Column("", right=False),
            Column(result.by, right=False),
            Column("runs"),
            Column("elapsed"),
            Column("shortest", wide=3),
            Column("longest", wide=3),
            Column("change"),
            Column("95 % interval", wide=1, seldom=True),
            Column("claim", right=False),
            Column("in MPI"),
            Column("change"),
            Column("claim", right=False),
        )
    )
    for i, group in enumerate(result.groups):
        elapsed, whole = result.elapsed.groups[i], result.whole.groups[i]
        against = result.elapsed.against[i]
        interval = " to ".join(map(percent, against.interval)) if against and against.interval else ""
        assert elapsed is not None and whole is not None, "every configuration has rows of the whole run"
        table.add(
            [
                group.letter,
                group.value,
                f"{len(group.runs):,}",
                time_text(round(elapsed.time_ns)),
                time_text(elapsed.min_ns),
                time_text(elapsed.max_ns),
                change_text(result.elapsed, i),
                interval,
                claim(result.elapsed, i),
                time_text(round(whole.time_ns)),
                change_text(result.whole, i),
                claim(result.whole, i),
            ],
            "bold" if i == result.elapsed.fastest else "",
        )
    return table


def claim(row: GroupRow, index: int) -> str:
    """Return what is shown of a configuration in a row."""
    if index == row.fastest:
        return "fastest" if row.slower else ""
    return "slower" if index in row.slower else ""


def draw(result: Grouped, top: int | None) -> Table:
    """Return the table of rows: families by the difference between configurations, each with its rows."""
    columns = [Column(group.letter) for group in result.groups]
    table = Table(
        (
            Column("communicator", right=False),
            Column("size", right=False),
            *columns,
            Column("fastest", right=False),
            Column("slower", right=False),
        )
    )
    families: dict[int, list[GroupRow]] = {}
    for row in result.rows:
        families.setdefault(row.node if row.node is not None else -1, []).append(row)
    shown = list(families)[:top]
    for i, node in enumerate(shown):
        if i:
            table.say("")
        rows = families[node]
        table.add([rows[0].family, *[""] * (len(table.columns) - 1)], "bold")
        origin = origin_text(result.nodes[node], rows[0].origin)
        if origin:
            table.say(origin, "  ")
        for row in rows[:top]:
            if row.region:
                table.say(path_text(row.region), "  ")
            times = [time_text(round(each.time_ns)) if each else "-" for each in row.groups]
            fastest = result.groups[row.fastest].letter if row.slower else ""
            table.add(
                [
                    f"  {row.operation}",
                    bin_text(row.bin),
                    *times,
                    fastest,
                    letters(result, row.slower),
                ]
            )
            say_algorithms(table, [(group.letter, name) for group, name in zip(result.groups, row.ran)])
            say_split(
                table,
                [
                    (group.letter, parts)
                    for group, parts, each in zip(result.groups, row.splits, row.groups)
                    if each is not None
                ],
            )
        if top is not None and len(rows) > top:
            table.say(f"and {count_text(len(rows) - top, 'more row')}", "  ")
    if len(families) > len(shown):
        table.say("")
        table.say(f"and {len(families) - len(shown):,} more families")
    return table


def origin_text(node: Node, origin: str) -> str:
    """Return the origin of a family, and the rule that matched it if it was not the first."""
    how = f"matched by {rule_of(node)}" if node.rule else ""
    return ", ".join(part for part in (origin, how) if part)
