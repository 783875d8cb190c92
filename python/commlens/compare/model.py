# SPDX-License-Identifier: Apache-2.0
"""The comparison of two sides: one row per family, region, operation and size bin, and one for the whole run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from statistics import median
from typing import Any, NamedTuple

from commlens.base.counts import count_text
from commlens.base.outputs import finite
from commlens.compare.match import RULES, Forest, Node
from commlens.compare.read import Counts, RowKey, RunData, Split, Splits
from commlens.compare.statistics import (
    ALPHA,
    FEWEST_FOR_INTERVAL,
    adjusted,
    rank_sum_p,
    relative_interval,
    runs_needed,
    smallest_p,
)

SHARE_TESTED = 0.001
"""Rows with a smaller share of the MPI time on both sides are not tested, so that the correction stays small."""
NO_BIN = -3
"""The bin of rows that are not of one message size."""
NOTHING = Counts(0, 0, 0, 0, 0)
MEASURES = ("calls", "bytes", "messages", "time", "slowest")


class Change(NamedTuple):
    """Medians of one measure on both sides.

    Attributes
    ----------
    ratio : float or None
        after / before - 1: 0.05 is five per cent more; infinity from nothing; None if unknown on a side.
    is_exact : bool
        Whether all runs of each side have the same value.
    is_disjoint : bool
        Whether no value of one side lies between values of the other, or is equal to one.
    """

    before: float | None
    after: float | None
    ratio: float | None
    is_exact: bool
    is_disjoint: bool


@dataclass
class Row:
    """One row of the comparison; `node` is None for the whole run.

    Attributes
    ----------
    side : str
        both, A or B: the sides whose runs have the family.
    ran : (str, str)
        Algorithms of the collective on both sides; empty if not measured.
    split : (Split or None, Split or None)
        The time on both sides in two parts, medians over the runs; None if no run has samples, or if other rows have the
        same calls in other regions.
    interval : (float, float) or None
        95 % interval of the relative change of the time; both bounds are infinite if only B has a time.
    p, q : float or None
        Of the rank test of the time, before and after the correction; None if not tested.
    """

    node: int | None
    family: str
    origin: str
    region: str
    operation: str
    bin: int
    side: str
    changes: dict[str, Change]
    ran: tuple[str, str] = ("", "")
    split: tuple[Split | None, Split | None] = (None, None)
    interval: tuple[float, float] | None = None
    p: float | None = None
    q: float | None = None

    @property
    def is_significant(self) -> bool:
        """Whether the test and the interval agree that the time changed."""
        is_outside = self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)
        return self.q is not None and self.q <= ALPHA and is_outside

    @property
    def added_ns(self) -> float:
        """Change of the median time, summed over ranks."""
        time = self.changes["time"]
        return (time.after or 0) - (time.before or 0)

    def parts(self) -> dict[str, float | None]:
        """Return the factors of the change of time minus 1: calls, bytes per call, and time per byte or per call."""
        calls, volume, time = (self.changes[what] for what in ("calls", "bytes", "time"))
        has_bytes = bool(volume.before and volume.after)
        each = factor(volume) / factor(calls) if has_bytes and factor(calls) else math.nan
        rest = factor(time) / (factor(volume) if has_bytes else factor(calls) or math.nan)
        named = {"calls": factor(calls), "bytes per call": each}
        named["time per byte" if has_bytes else "time per call"] = rest
        return {name: value - 1 if math.isfinite(value) else None for name, value in named.items()}


def factor(change: Change) -> float:
    """Return after / before, NaN if there is none."""
    return math.nan if change.ratio is None else change.ratio + 1


@dataclass
class Comparison:
    """All rows, and the compared runs."""

    sides: tuple[list[RunData], list[RunData]]
    nodes: list[Node]
    whole: Row
    rows: list[Row]
    elapsed: Row
    tested: int
    only: list[tuple[str, Node, float]] = field(default_factory=list)

    @property
    def can_claim(self) -> bool:
        """Whether the runs suffice for an interval, and the rank test can reach significance for a single row."""
        n, m = map(len, self.sides)
        return min(n, m) >= FEWEST_FOR_INTERVAL and smallest_p(n, m) <= ALPHA

    @property
    def can_find_one(self) -> bool:
        """Whether a change of a single row can be significant after the correction for all tested rows."""
        return self.can_claim and smallest_p(*map(len, self.sides)) * max(1, self.tested) <= ALPHA

    def statement(self) -> str:
        """Return a sentence about the claims on times that the number of runs allows."""
        n, m = map(len, self.sides)
        if self.can_claim:
            needed = runs_needed(self.tested)
            text = f"{n} against {m} runs, {self.tested} times tested"
            if not self.can_find_one:
                text += f"; {needed} on each side could show a change of a single row"
            return text
        needed = runs_needed(1)
        return (
            f"{count_text(n, 'run')} in A and {m} in B are too few to show that a time changed: at least {needed} on each side "
            f"are needed, and {runs_needed(self.tested)} on each side to show a change in one of {self.tested} rows"
        )


def is_counted(counts: Counts) -> bool:
    """Return whether a row of a run has calls, bytes, messages or time."""
    return any(counts[:4])


def change(before: Sequence[float | None], after: Sequence[float | None]) -> Change:
    """Return the change of a measure; the arguments have one value per run."""
    one = [value for value in before if value is not None]
    two = [value for value in after if value is not None]
    if len(one) < len(before) or len(two) < len(after) or not one or not two:
        return Change(None, None, None, is_exact=False, is_disjoint=False)
    low, high = median(one), median(two)
    ratio = 0.0 if low == high else high / low - 1 if low else math.inf
    is_exact = len(set(one)) == len(set(two)) == 1
    return Change(low, high, ratio, is_exact, max(one) < min(two) or max(two) < min(one))


def values_of(counts: Sequence[Counts], measure: str) -> list[float | None]:
    """Return one measure of the runs."""
    column = {"time": "time_ns", "slowest": "slowest_ns"}.get(measure, measure)
    return [getattr(each, column) for each in counts]


def row_of(
    node: int | None, names: tuple[str, str, str, str, int, str], sides: Sequence[Sequence[Counts]]
) -> Row:
    """Return a row from the counts of the runs of both sides."""
    changes = {what: change(values_of(sides[0], what), values_of(sides[1], what)) for what in MEASURES}
    return Row(node, *names, changes)


def test_times(row: Row, times: Sequence[Sequence[float]]) -> None:
    """Set the interval and the p value of a row."""
    row.interval = relative_interval(*times)
    if min(map(len, times)) > 1:
        row.p = rank_sum_p(*times)


class Merged(NamedTuple):
    """The rows of several runs.

    Attributes
    ----------
    places : list of dict
        Of each run: the node of each of its families.
    table : dict
        Node, region, operation and size bin -> the counts of each run, NOTHING for a run without the row.
    wanted : set of int or None
        The selected nodes, None if all are.
    """

    nodes: list[Node]
    places: list[dict[int, int]]
    table: dict[tuple[int, str, str, int], list[Counts]]
    wanted: set[int] | None

    def ran(self, runs: Sequence[RunData]) -> list[dict[tuple[int, str, int], frozenset[str]]]:
        """Return the algorithms of each run, by node, procedure and size bin."""
        return [
            {(places[family], op, size): names for (family, op, size), names in run.algorithms.items()}
            for run, places in zip(runs, self.places)
        ]

    def splits(self, runs: Sequence[RunData]) -> list[Splits]:
        """Return the time of messages and collectives in two parts in each run, by node, procedure and size bin.

        Samples are not divided by region: calls in several regions have no parts, also if only one of these is selected.
        """
        rows = Counter(
            (node, operation, size)
            for node, _, operation, size in {
                (places[key.family], *key[1:]) for run, places in zip(runs, self.places) for key in run.rows
            }
        )
        found = [
            {(places[family], op, size): parts for (family, op, size), parts in run.splits.items()}
            for run, places in zip(runs, self.places)
        ]
        return [{place: parts for place, parts in run.items() if rows[place] == 1} for run in found]


def merge(
    runs: Sequence[RunData], region: str | None, comms: frozenset[int] | None, named: int = 0
) -> Merged:
    """Match the families of all runs and return the selected rows; the parameters are those of `compare`."""
    forest = Forest()
    places = [forest.add(i, run) for i, run in enumerate(runs)]
    wanted = None if comms is None else {places[named][family] for family in comms}
    table: dict[tuple[int, str, str, int], list[Counts]] = {}
    for i, run in enumerate(runs):
        for key, each in run.rows.items():
            node = places[i][key.family]
            if (wanted is None or node in wanted) and in_region(key, region):
                table.setdefault((node, *key[1:]), [NOTHING] * len(runs))[i] = each
    return Merged(forest.nodes, places, table, wanted)


def compare(
    before: list[RunData],
    after: list[RunData],
    region: str | None = None,
    comms: frozenset[int] | None = None,
    named: int = 0,
) -> Comparison:
    """Compare the runs of two sides.

    Parameters
    ----------
    region : str or None
        Only regions whose path matches this glob.
    comms : frozenset of int or None
        Only these families of one run, and those that match them.
    named : int
        The index of this run; runs of `after` follow those of `before`.
    """
    runs, split = [*before, *after], len(before)
    merged = merge(runs, region, comms, named)
    nodes, table, wanted = merged.nodes, merged.table, merged.wanted
    ran, splits = merged.ran(runs), merged.splits(runs)
    rows = []
    tests: list[tuple[Row, Sequence[Counts]]] = []
    for (node, path, operation, size), counts in table.items():
        first = nodes[node].first
        names = (first.label, first.origin, path, operation, size, side_of(nodes[node], split))
        rows.append(row_of(node, names, (counts[:split], counts[split:])))
        place = (node, operation, size)
        rows[-1].ran = (algorithms_text(ran[:split], place), algorithms_text(ran[split:], place))
        rows[-1].split = (median_split(splits[:split], place), median_split(splits[split:], place))
        tests.append((rows[-1], counts))
    columns = [[counts[i] for counts in table.values()] for i in range(len(runs))]
    sums = [total(column, run.whole) for column, run in zip(columns, runs)]
    whole = row_of(
        None, ("whole run", "", "", "all operations", NO_BIN, "both"), (sums[:split], sums[split:])
    )
    spent = [Counts(0, 0, 0, run.elapsed_ns, run.elapsed_ns) for run in runs]
    elapsed = row_of(
        None, ("whole run", "", "", "elapsed time", NO_BIN, "both"), (spent[:split], spent[split:])
    )
    tested = test_rows([(elapsed, spent), (whole, sums), *tests], whole, split)
    rows.sort(key=lambda row: (-abs(row.added_ns), row.family, row.region, row.operation, row.bin))
    kept = [node for i, node in enumerate(nodes) if wanted is None or i in wanted]
    only = unmatched(kept, nodes, rows, whole, split)
    return Comparison((before, after), nodes, whole, rows, elapsed, tested, only)


def test_rows(tests: Sequence[tuple[Row, Sequence[Counts]]], whole: Row, split: int) -> int:
    """Set interval, p and q of the rows with enough time; return their number. Two rows of the whole run come first."""
    time = whole.changes["time"]
    least = [SHARE_TESTED * (time.before or 0), SHARE_TESTED * (time.after or 0)]
    chosen = []
    for row, counts in tests:
        time = row.changes["time"]
        if row.node is None or (time.before or 0) >= least[0] or (time.after or 0) >= least[1]:
            times = [float(each.time_ns) for each in counts]
            test_times(row, (times[:split], times[split:]))
            chosen.append(row)
    tested = [row for row in chosen if row.p is not None]
    for row, q in zip(tested, adjusted([row.p for row in tested if row.p is not None])):
        row.q = q
    return len(chosen)


def unmatched(
    kept: Sequence[Node], nodes: Sequence[Node], rows: Sequence[Row], whole: Row, split: int
) -> list[tuple[str, Node, float]]:
    """Return the families of one side only: the side, the family, and its share of the MPI time of that side."""
    times: dict[int, list[float]] = {id(node): [0.0, 0.0] for node in nodes}
    for row in rows:
        if row.node is not None:
            sums, time = times[id(nodes[row.node])], row.changes["time"]
            sums[0] += time.before or 0
            sums[1] += time.after or 0
    all_time = (whole.changes["time"].before, whole.changes["time"].after)
    found = []
    for node in kept:
        side = side_of(node, split)
        if side != "both":
            mine, whole_side = times[id(node)]["AB".index(side)], all_time["AB".index(side)]
            found.append((side, node, mine / whole_side if whole_side else 0.0))
    return found


def algorithms_text(
    runs: Sequence[dict[tuple[int, str, int], frozenset[str]]], place: tuple[int, str, int]
) -> str:
    """Return the algorithms of some runs, empty if none is known.

    >>> place = (0, "MPI_Bcast", 4)
    >>> algorithms_text([{place: frozenset(["ring"])}, {}, {place: frozenset(["ring", "linear"])}], place)
    'linear, ring'
    """
    return ", ".join(sorted({name for run in runs for name in run.get(place, ())}))


def median_split(runs: Sequence[Splits], place: tuple[int, str, int]) -> Split | None:
    """Return the medians of both parts over the runs that have them.

    >>> place = (0, "MPI_Bcast", 4)
    >>> median_split([{place: Split(1, 10)}, {}, {place: Split(3, 20)}], place)
    Split(waiting_ns=2.0, operation_ns=15.0)
    """
    found = [run[place] for run in runs if place in run]
    return Split(*(float(median(part)) for part in zip(*found))) if found else None


def in_region(key: RowKey, pattern: str | None) -> bool:
    """Return whether a row is in the regions of a glob."""
    return pattern is None or fnmatchcase(key.region, pattern)


def side_of(node: Node, split: int) -> str:
    """Return the sides that have a family: both, A or B; the runs before `split` are A."""
    sides = {"A" if run < split else "B" for run in node.runs}
    return "both" if len(sides) == 2 else sides.pop()


def total(counts: Sequence[Counts], whole: Counts) -> Counts:
    """Return the sums of the selected rows of a run; the slowest rank is known if all rows are selected."""
    sums = Counts(
        sum(each.calls for each in counts),
        sum(each.bytes for each in counts),
        sum(each.messages for each in counts),
        sum(each.time_ns for each in counts),
        None,
    )
    return sums._replace(slowest_ns=whole.slowest_ns if sums[:4] == whole[:4] else None)


def as_dict(row: Row) -> dict[str, Any]:
    """Return a row for csv and json: plain numbers in ns and bytes, changes as fractions."""
    found: dict[str, Any] = {name: getattr(row, name) for name in ("family", "origin", "region", "operation")}
    found.update(size_bin=None if row.bin == NO_BIN else row.bin, side=row.side)
    found.update(algorithm_a=row.ran[0], algorithm_b=row.ran[1])
    for side, split in zip("ab", row.split):
        waiting, operation = split or (None, None)
        found.update({f"waiting_ns_{side}": waiting, f"operation_ns_{side}": operation})
    for what, each in row.changes.items():
        name = {"time": "time_ns", "slowest": "slowest_ns"}.get(what, what)
        found.update(
            {f"{name}_a": each.before, f"{name}_b": each.after, f"{name}_change": finite(each.ratio)}
        )
    parts = list(row.parts().items())
    found.update(bytes_per_call_change=parts[1][1], time_each_change=parts[2][1], time_each=parts[2][0][5:])
    low, high = row.interval or (None, None)
    found.update(low=finite(low), high=finite(high), p=row.p, q=row.q, significant=row.is_significant)
    return found


def rule_of(node: Node) -> str:
    """Return the rule that matched a family."""
    return RULES[node.rule]
