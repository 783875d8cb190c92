# SPDX-License-Identifier: Apache-2.0
"""A comparison as text: the largest difference in one sentence, then the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from commlens.compare.gate import Condition, percent
from commlens.compare.model import NO_BIN, Comparison, Row, rule_of
from commlens.compare.outliers import outliers
from commlens.compare.read import UNFINISHED, RunData, RunHead, Split
from commlens.compare.statistics import runs_needed
from commlens.profile import meta
from commlens.render.table import Column, Table
from commlens.render.units import path_text, share_text, size_text, time_text
from commlens.selection.sizes import NULL_BIN

NULL_BIN_SINCE = 8
"""The schema version from which on calls to MPI_PROC_NULL have a bin of their own."""

COLUMNS = (
    Column("communicator", right=False),
    Column("size", right=False),
    Column("calls"),
    Column("bytes/call", wide=2),
    Column("time each", wide=3),
    Column("time A"),
    Column("time B"),
    Column("change"),
    Column("95 % interval", wide=1, seldom=True),  # fewer than four runs on a side have none
    Column("slowest", wide=4),
    Column("claim", right=False),
)


def bin_text(bin: int) -> str:
    """Return a size bin as in a report; empty for rows without one."""
    if bin == NO_BIN:
        return ""
    if bin < 0:
        return size_text(None, None, is_null=bin == NULL_BIN)
    return size_text(1 << (bin - 1) if bin else 0, (1 << bin) - 1)


def verdict(row: Row, comparison: Comparison) -> str:
    """Return the verdict on the time of a row."""
    if row.side != "both":
        return f"only {row.side}"
    if row.is_significant:
        return "slower" if row.added_ns > 0 else "faster"
    return "" if comparison.can_claim else "?"


class Named(Protocol):
    """What names a row."""

    node: int | None
    family: str
    origin: str
    region: str
    operation: str
    bin: int


def name_of_row(row: Named) -> str:
    """Return a row as communicator, operation, size and region."""
    if row.node is None:
        return f"{row.family}, {row.operation}"
    parts = [f"{row.operation} {bin_text(row.bin)} on {row.family}"]
    parts += [f"({row.origin})"] if row.origin else []
    parts += [f"in {path_text(row.region)}"] if row.region else []
    return " ".join(parts)


def changes_text(row: Row) -> str:
    """Return the factors of a change of time."""
    if row.changes["time"].ratio == math.inf:
        return "no time in A" if row.changes["calls"].before else "new in B"
    return ", ".join(f"{name} {percent(value)}" for name, value in row.parts().items() if value is not None)


def headline(comparison: Comparison) -> str:
    """Return the largest difference as one sentence, or a sentence that there is none.

    It is the significant change that adds or saves the most time, otherwise the exact change of the most calls or bytes.
    """
    significant = [row for row in comparison.rows if row.is_significant]
    if significant:
        row = max(significant, key=lambda row: abs(row.added_ns))
        what = "takes" if row.added_ns > 0 else "saves"
        more = "more" if row.added_ns > 0 else ""
        amount = time_text(round(abs(row.added_ns)))
        return f"{name_of_row(row)} {what} {amount} {more}".rstrip() + f": {changes_text(row)}"
    counted = [
        row for row in comparison.rows if any(row.changes[what].is_disjoint for what in ("calls", "bytes"))
    ]
    if counted:
        row = max(
            counted,
            key=lambda row: max(
                abs((row.changes[what].after or 0) - (row.changes[what].before or 0))
                / (
                    (comparison.whole.changes[what].before or 0) + (comparison.whole.changes[what].after or 0)
                    or 1
                )
                for what in ("calls", "bytes")
            ),
        )
        calls, volume = row.changes["calls"], row.changes["bytes"]
        text = f"{name_of_row(row)}: calls {calls.before:,.0f} → {calls.after:,.0f} ({percent(calls.ratio)})"
        if volume.ratio:
            text += f", bytes {volume.before:,.0f} → {volume.after:,.0f} ({percent(volume.ratio)})"
        return text + "; no change of a time is shown"
    return (
        "no difference is shown: calls and bytes are equal or overlap, and no change of a time is significant"
    )


def setup_differences(comparison: Comparison) -> dict[str, tuple[list[str], list[str]]]:
    """Return the settings of which A and B have no value in common, with the values of both, by name."""
    sides = [[run.settings for run in side] for side in comparison.sides]
    found = {}
    for name in sorted({name for side in sides for settings in side for name in settings}):
        before, after = (list(dict.fromkeys(one.get(name, "not set") for one in side)) for side in sides)
        if not set(before) & set(after):
            found[name] = (before, after)
    return found


def completeness(run: RunHead) -> dict[str, str]:
    """Return the number of ranks of a run, and what its profile lacks, by name; without unknown numbers."""
    ranks, collected = (meta.number(run.facts, name) for name in ("ranks", "ranks_collected"))
    has_open_calls = run.facts.get("open_calls") == "counted"
    found = {
        "ranks": str(ranks) if ranks else "",
        "ranks without data": str(ranks - collected) if ranks and collected else "",
        UNFINISHED: run.facts.get(UNFINISHED, ""),
        "time of calls that did not return": "counted" if has_open_calls else "not counted",
    }
    return {name: value for name, value in found.items() if value}


def run_differences(sides: Sequence[Sequence[RunHead]]) -> dict[str, list[list[str]]]:
    """Return the entries of `completeness` whose values differ between sides or groups, with the values of each."""
    known = [[completeness(run) for run in side] for side in sides]
    found = {}
    for name in dict.fromkeys(name for side in known for run in side for name in run):
        values = [list(dict.fromkeys(run[name] for run in side if name in run)) for side in known]
        if all(values) and any(set(each) != set(values[0]) for each in values):
            found[name] = values
    return found


def setup_lines(comparison: Comparison) -> list[str]:
    """Return lines about differences between the sides: of settings, of the end of runs, and of counting."""
    found = [
        f"{name} {' or '.join(before)} → {' or '.join(after)}"
        for name, (before, after) in setup_differences(comparison).items()
    ]
    lines = [f"set up differently: {'; '.join(found)}"] if found else []
    found = [
        f"{name} {' → '.join(' or '.join(values) for values in sides)}"
        for name, sides in run_differences(comparison.sides).items()
    ]
    lines += [f"runs differ: {'; '.join(found)}"] if found else []
    known = [meta.number(run.facts, "schema_version") for side in comparison.sides for run in side]
    versions = {version < NULL_BIN_SINCE for version in known if version}
    if len(versions) == 2 and any(row.bin == NULL_BIN for row in comparison.rows):
        lines.append(
            f"profiles of schema versions below {NULL_BIN_SINCE} have calls to MPI_PROC_NULL in the bin of their count, "
            "others in a bin of its own: rows of these operations are not comparable"
        )
    return lines


def outlier_lines(comparison: Comparison) -> list[str]:
    """Return a line for each run that is far from the others of its side."""
    return [
        outlier_line(name, run, facts, is_slow=is_slow)
        for name, side in zip("AB", comparison.sides)
        for run, is_slow, facts in outliers(side)
    ]


def outlier_line(side: str, run: RunData, facts: Sequence[str], *, is_slow: bool) -> str:
    """Return the line about a run that is far from the others."""
    kind = "slow" if is_slow else "fast"
    text = "; ".join(facts) or "no recorded fact differs from the other runs"
    return f"{kind} run in {side}: {run.path}, {time_text(run.elapsed_ns)}: {text}"


def failure_text(row: Row, condition: Condition) -> str:
    """Return the line about a row that meets a condition, with communicator and call site."""
    measure = "time" if condition.measure == "elapsed" else condition.measure
    each = row.changes[measure]
    if measure in ("time", "slowest"):
        values = f"{time_text(round(each.before or 0))} → {time_text(round(each.after or 0))}"
    else:
        values = f"{each.before:,.0f} → {each.after:,.0f}"
    return (
        f"failed '{condition.text}': {name_of_row(row)}: {condition.measure} {values} ({percent(each.ratio)})"
    )


def untested_text(comparison: Comparison, conditions: Sequence[Condition]) -> str:
    """Return the line about conditions on times that the number of runs does not allow to test."""
    names = ", ".join(f"'{condition.text}'" for condition in conditions)
    n, m = map(len, comparison.sides)
    needed = runs_needed(max(1, comparison.tested))
    return (
        f"cannot test {names} with {n} against {m} runs: at least {needed} against {needed} are needed; "
        "--untested lets the medians decide"
    )


def cells(row: Row, comparison: Comparison) -> list[str]:
    """Return the cells of a row after its name and size."""
    calls, each = row.changes["calls"], list(row.parts().values())
    time = row.changes["time"]
    bounds = [percent(bound) for bound in row.interval or ()]
    interval = bounds[0] if bounds and time.ratio == math.inf else " to ".join(bounds)
    return [
        percent(calls.ratio),
        percent(each[1]) if row.changes["bytes"].after else "",
        percent(each[2]),
        time_text(round(time.before or 0)),
        time_text(round(time.after or 0)),
        percent(time.ratio),
        interval,
        percent(row.changes["slowest"].ratio),
        verdict(row, comparison),
    ]


def say_algorithms(table: Table, ran: Sequence[tuple[str, str]]) -> None:
    """Add a line about the algorithms of sides or groups, given with their letters, if one is known."""
    names = {name for _, name in ran}
    if len(names) == 1 and names != {""}:
        table.say(f"algorithm: {names.pop()}", "    ")
    elif len(names) > 1:
        text = ", ".join(f"{letter} {name or 'not measured'}" for letter, name in ran)
        table.say(f"algorithm: {text}", "    ")


def say_split(table: Table, splits: Sequence[tuple[str, Split | None]]) -> None:
    """Add a line about waiting and operation in sides or groups, given with their letters, if one is known."""
    if not any(parts for _, parts in splits):
        return
    waits, operations = (
        ", ".join(
            f"{letter} {time_text(round(parts[part])) if parts else 'not sampled'}"
            for letter, parts in splits
        )
        for part in (0, 1)
    )
    table.say(f"waiting: {waits}; operation: {operations}", "    ")


def draw(comparison: Comparison, top: int | None) -> Table:
    """Return the table: the whole run, then families by the change of time, each with its rows."""
    table = Table(COLUMNS)
    for row in (comparison.elapsed, comparison.whole):
        table.add([row.operation, "", *cells(row, comparison)], "bold")
    groups: dict[int, list[Row]] = {}
    for row in comparison.rows:
        groups.setdefault(row.node if row.node is not None else -1, []).append(row)
    shown = list(groups)[:top]
    for node in shown:
        table.say("")
        table.add([groups[node][0].family, *[""] * (len(COLUMNS) - 1)], "bold")
        rule = comparison.nodes[node].rule
        how = f", matched by {rule_of(comparison.nodes[node])}" if rule else ""
        if groups[node][0].origin or how:
            table.say((groups[node][0].origin + how).removeprefix(", "), "  ")
        for row in groups[node][:top]:
            if row.region:
                table.say(path_text(row.region), "  ")
            colour = {"slower": "red", "faster": "green"}.get(verdict(row, comparison), "")
            table.add([f"  {row.operation}", bin_text(row.bin), *cells(row, comparison)], colour)
            say_algorithms(table, list(zip("AB", row.ran)))
            say_split(table, list(zip("AB", row.split)))
        if top is not None and len(groups[node]) > top:
            table.say(f"and {len(groups[node]) - top:,} more rows", "  ")
    if len(groups) > len(shown):
        table.say("")
        table.say(f"and {len(groups) - len(shown):,} more families")
    for side, family, share in comparison.only:
        table.say("")
        origin = f" ({family.first.origin})" if family.first.origin else ""
        table.say(
            f"only in {side}: {family.first.label}{origin}, {share_text(share)} of its MPI time", "", "yellow"
        )
    return table
