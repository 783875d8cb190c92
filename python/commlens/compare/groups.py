# SPDX-License-Identifier: Apache-2.0
"""The comparison of several configurations: runs grouped by a label or a recorded setting, one column per value."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple, TypeVar

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.base.outputs import finite
from commlens.compare.match import Node
from commlens.compare.model import (
    NO_BIN,
    SHARE_TESTED,
    Merged,
    algorithms_text,
    is_counted,
    median_split,
    merge,
    total,
)
from commlens.compare.read import Counts, RunData, Split
from commlens.compare.statistics import (
    ALPHA,
    FEWEST_FOR_INTERVAL,
    adjusted,
    rank_sum_p,
    relative_interval,
    smallest_p,
)

LETTERS = string.ascii_uppercase
NOT_SET = "not set"
NAMES_SHOWN = 8
MEASURES = ("calls", "bytes", "time_ns")

Item = TypeVar("Item")


class Group(NamedTuple):
    """The runs of one value; `letter` names it in the tables."""

    letter: str
    value: str
    runs: list[RunData]

    def label(self, by: str | None) -> str:
        """Return letter, value and number of runs."""
        return f"{self.letter}: {by} {self.value}, {count_text(len(self.runs), 'run')}"


class Measured(NamedTuple):
    """Medians of a row over the runs of a group, and the smallest and largest time."""

    calls: float
    bytes: float
    time_ns: float
    min_ns: int
    max_ns: int


@dataclass
class Against:
    """The time of a group against that of the fastest group.

    Attributes
    ----------
    ratio : float or None
        time / time of the fastest - 1; None if that is 0.
    interval : (float, float) or None
        95 % interval of the ratio.
    q : float or None
        Of the rank test, corrected for all pairs of groups of all tested rows; None if not tested.
    """

    ratio: float | None
    interval: tuple[float, float] | None
    q: float | None = None

    @property
    def is_significant(self) -> bool:
        """Whether the test and the interval agree that the group is slower."""
        return self.q is not None and self.q <= ALPHA and self.interval is not None and self.interval[0] > 0


@dataclass
class GroupRow:
    """One row; `groups` and `against` have an entry per group, None if the group makes no such call.

    Attributes
    ----------
    node : int or None
        The matched family; None for the whole run.
    ran : list of str
        Algorithms of the collective in each group; empty if not measured.
    splits : list of Split or None
        The time in each group in two parts, medians over its runs; None if no run has samples, or if other rows have the
        same calls in other regions. Empty for the whole run.
    fastest : int
        Index of the group with the smallest median; its entry in `against` is None.
    """

    node: int | None
    family: str
    origin: str
    region: str
    operation: str
    bin: int
    groups: list[Measured | None]
    fastest: int
    against: list[Against | None]
    ran: list[str] = field(default_factory=list)
    splits: list[Split | None] = field(default_factory=list)

    @property
    def slower(self) -> list[int]:
        """Indices of the groups that are shown to be slower than the fastest."""
        return [i for i, each in enumerate(self.against) if each is not None and each.is_significant]

    @property
    def spread_ns(self) -> float:
        """Difference of the largest and the smallest median."""
        times = [each.time_ns for each in self.groups if each is not None]
        return max(times) - min(times)


@dataclass
class Grouped:
    """All rows, the first two of the whole run; and the number of pairs of groups whose times were tested."""

    by: str
    groups: list[Group]
    nodes: list[Node]
    elapsed: GroupRow
    whole: GroupRow
    rows: list[GroupRow]
    tested: int

    @property
    def can_find_one(self) -> bool:
        """Whether one pair of groups of one row can be significant after the correction."""
        largest = sorted(len(group.runs) for group in self.groups)[-2:]
        return largest[0] >= FEWEST_FOR_INTERVAL and smallest_p(*largest) * max(1, self.tested) <= ALPHA


def group_runs(runs: Sequence[RunData], by: str) -> list[Group]:
    """Return the runs by the value of a label, setting or fact; numbers in their order, other values by name.

    Raises
    ------
    CommlensError
        No profile has it, all have the same value, or the values are too many for a table.
    """
    found: dict[str, list[RunData]] = {}
    for run in runs:
        found.setdefault(run.settings.get(by, run.facts.get(by, NOT_SET)), []).append(run)
    if list(found) == [NOT_SET]:
        raise CommlensError(f"--by {by}: no profile has this label or setting{_varying(runs)}")
    if len(found) == 1:
        raise CommlensError(f"--by {by}: all profiles have {next(iter(found))}: nothing to compare")
    if len(found) > len(LETTERS):
        raise CommlensError(
            f"--by {by}: {len(found)} values, more than the {len(LETTERS)} that a table can show"
        )
    return [Group(letter, value, found[value]) for letter, value in zip(LETTERS, sorted(found, key=_order))]


def _order(value: str) -> tuple[int, float, str]:
    """Return the key that sorts numbers by size, and before other values."""
    try:
        return 0, float(value), value
    except ValueError:
        return 1, 0.0, value


def _varying(runs: Sequence[RunData]) -> str:
    """Return the end of a message that names the settings which differ between the profiles."""
    names = sorted({name for run in runs for name in run.settings})
    several = [name for name in names if len({run.settings.get(name) for run in runs}) > 1]
    if not several:
        return "; no setting differs between them"
    more = f" and {len(several) - NAMES_SHOWN} more" if len(several) > NAMES_SHOWN else ""
    return f"; these differ between them: {', '.join(several[:NAMES_SHOWN])}{more}"


def compare_groups(
    by: str,
    groups: list[Group],
    region: str | None = None,
    comms: frozenset[int] | None = None,
    named: int = 0,
) -> Grouped:
    """Compare groups of runs: the rows of `compare`, with a median per group.

    Parameters
    ----------
    region, comms, named
        As in `compare`; the runs are in the order of the groups.
    """
    runs = [run for group in groups for run in group.runs]
    merged = merge(runs, region, comms, named)
    columns = [[counts[i] for counts in merged.table.values()] for i in range(len(runs))]
    sums = [total(column, run.whole) for column, run in zip(columns, runs)]
    spent = [Counts(0, 0, 0, run.elapsed_ns, run.elapsed_ns) for run in runs]
    elapsed = _row((None, "whole run", "", "", "elapsed time", NO_BIN), spent, groups, is_whole=True)
    whole = _row((None, "whole run", "", "", "all operations", NO_BIN), sums, groups, is_whole=True)
    tests = [(elapsed, spent), (whole, sums), *_rows(merged, groups)]
    tested = _test(tests, whole, groups)
    rows = [row for row, _ in tests[2:]]
    rows.sort(key=lambda row: (-row.spread_ns, row.family, row.region, row.operation, row.bin))
    return Grouped(by, groups, merged.nodes, elapsed, whole, rows, tested)


def _rows(merged: Merged, groups: list[Group]) -> list[tuple[GroupRow, list[Counts]]]:
    """Return the rows below those of the whole run, each with the counts of all runs."""
    runs = [run for group in groups for run in group.runs]
    ran, splits = _parts(merged.ran(runs), groups), _parts(merged.splits(runs), groups)
    rows = []
    for (node, path, operation, size), counts in merged.table.items():
        if not any(map(is_counted, counts)):
            continue
        first = merged.nodes[node].first
        names = (node, first.label, first.origin, path, operation, size)
        row = _row(names, counts, groups)
        row.ran = [algorithms_text(part, (node, operation, size)) for part in ran]
        row.splits = [median_split(part, (node, operation, size)) for part in splits]
        rows.append((row, counts))
    return rows


def _parts(of_runs: Sequence[Item], groups: Sequence[Group]) -> list[Sequence[Item]]:
    """Return what belongs to the runs of each group; that of all runs stands in the order of the groups."""
    parts, at = [], 0
    for group in groups:
        parts.append(of_runs[at : at + len(group.runs)])
        at += len(group.runs)
    return parts


def _row(
    names: tuple[int | None, str, str, str, str, int],
    counts: Sequence[Counts],
    groups: list[Group],
    *,
    is_whole: bool = False,
) -> GroupRow:
    """Return a row without tests."""
    measured: list[Measured | None] = []
    for part in _parts(counts, groups):
        times = [each.time_ns for each in part]
        calls, volume, time = (float(median(getattr(each, what) for each in part)) for what in MEASURES)
        # A call that did not return has time but no calls; a part of a history may have bytes only.
        is_there = is_whole or any(is_counted(each) for each in part)
        measured.append(Measured(calls, volume, time, min(times), max(times)) if is_there else None)
    found = [(each.time_ns, i) for i, each in enumerate(measured) if each is not None]
    return GroupRow(*names, measured, min(found)[1], [None] * len(groups))


def _test(tests: Sequence[tuple[GroupRow, Sequence[Counts]]], whole: GroupRow, groups: list[Group]) -> int:
    """Set what each group is against the fastest of its row; return the number of tested pairs of groups.

    All pairs of a row are tested, since the fastest group is known only after the runs.
    """
    least = [SHARE_TESTED * (each.time_ns if each else 0) for each in whole.groups]
    pairs: list[tuple[Against | None, float]] = []
    tested = 0
    for row, counts in tests:
        parts = [[float(each.time_ns) for each in part] for part in _parts(counts, groups)]
        is_tested = row.node is None or any(
            each is not None and each.time_ns >= bound for each, bound in zip(row.groups, least)
        )
        _set_against(row, parts, is_tested=is_tested)
        present = [i for i, each in enumerate(row.groups) if each is not None]
        for i, j in combinations(present, 2) if is_tested else ():
            tested += 1
            if min(len(parts[i]), len(parts[j])) > 1:
                other = j if i == row.fastest else i
                against = row.against[other] if row.fastest in (i, j) else None
                pairs.append((against, rank_sum_p(parts[i], parts[j])))
    for (pair, _), q in zip(pairs, adjusted([p for _, p in pairs])):
        if pair is not None:
            pair.q = q
    return tested


def _set_against(row: GroupRow, parts: Sequence[Sequence[float]], *, is_tested: bool) -> None:
    """Set ratio and interval of the groups of a row; rows that are not tested have no interval."""
    best = row.groups[row.fastest]
    for i, each in enumerate(row.groups):
        if each is not None and best is not None and i != row.fastest:
            has_ratio = is_tested and best.time_ns > 0
            interval = relative_interval(parts[row.fastest], parts[i]) if has_ratio else None
            row.against[i] = Against(each.time_ns / best.time_ns - 1 if best.time_ns else None, interval)


def also_different(result: Grouped) -> list[str]:
    """Return the other settings of which no two groups have a value in common."""
    names = sorted({name for group in result.groups for run in group.runs for name in run.settings})
    found = []
    for name in names:
        values = [{run.settings.get(name, NOT_SET) for run in group.runs} for group in result.groups]
        is_disjoint = not any(one & other for one, other in combinations(values, 2))
        found += [name] if is_disjoint and name != result.by else []
    return found


def row_dicts(result: Grouped) -> list[dict[str, Any]]:
    """Return the rows for csv and json: one per row and group, plain numbers in ns and bytes, changes as fractions."""
    found = []
    for row in (result.elapsed, result.whole, *result.rows):
        for i, (group, each) in enumerate(zip(result.groups, row.groups)):
            if each is None:
                continue
            against = row.against[i]
            low, high = (against.interval if against else None) or (None, None)
            waiting, operation = (row.splits[i] if row.splits else None) or (None, None)
            found.append(
                {
                    "family": row.family,
                    "origin": row.origin,
                    "region": row.region,
                    "operation": row.operation,
                    "size_bin": None if row.bin == NO_BIN else row.bin,
                    "value": group.value,
                    "runs": len(group.runs),
                    "algorithm": row.ran[i] if row.ran else "",
                    **each._asdict(),
                    "waiting_ns": waiting,
                    "operation_ns": operation,
                    "fastest": i == row.fastest,
                    "change": finite(against.ratio) if against else None,
                    "low": low,
                    "high": high,
                    "q": against.q if against else None,
                    "significant": against.is_significant if against else False,
                }
            )
    return found
