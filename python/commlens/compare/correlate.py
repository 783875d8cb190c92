# SPDX-License-Identifier: Apache-2.0
"""Which times correlate with the run time over many runs: coefficients of each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.compare.coefficients import (
    Coefficient,
    is_constant,
    pearson,
    runs_needed,
    smallest_p,
    spearman,
)
from commlens.compare.match import Forest, Node
from commlens.compare.model import SHARE_TESTED
from commlens.compare.parts import ids_of_parts, name_parts, selected_parts
from commlens.compare.read import RunHead, read_head
from commlens.compare.statistics import ALPHA, adjusted
from commlens.compare.times import Chosen, GroupKey, GroupTime, read_groups, select_operations
from commlens.profile import open_profile
from commlens.reports.query import Selection

FEWEST = 3
"""Two runs always have a coefficient of 1 or -1."""
WHOLE = GroupKey(None, None, None, None, None)
NOTHING = GroupTime(0, 0)


@dataclass
class Source:
    """One run: its head, its times by group, and the patterns of --op that it has no operation for."""

    head: RunHead
    groups: dict[GroupKey, GroupTime] = field(default_factory=dict)
    whole: GroupTime = NOTHING
    missing: dict[str, CommlensError] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """The rows that the user asks for; `by` has names in COLUMNS."""

    by: tuple[str, ...]
    selection: Selection
    region: str | None = None
    comms: tuple[str, ...] = ()


@dataclass
class Association:
    """The relation of the values of a row to the run time.

    Attributes
    ----------
    values : list of float
        One per run, in the order of the profiles.
    slope : float
        Change of the value for each ns that a run takes longer, by least squares.
    """

    values: list[float]
    pearson: Coefficient
    spearman: Coefficient
    slope: float


@dataclass
class Row:
    """A group of times, or a numeric setting.

    Attributes
    ----------
    node : int or None
        The family, as a number of Correlation.nodes.
    setting : str or None
        Name of the setting.
    slowest, total : Association or None
        Of the time of the slowest rank, and of the sum over the ranks; None if it is constant or unknown. A setting has
        only the second.
    """

    key: GroupKey
    node: int | None
    setting: str | None
    slowest: Association | None
    total: Association | None

    @property
    def main(self) -> Association:
        """The association that decides: that of the slowest rank, or else that of the sum."""
        found = self.slowest or self.total
        assert found is not None
        return found

    @property
    def claim(self) -> str:
        """The significant relation: rises or falls with the run time; else empty."""
        found = self.main.spearman
        return ("rises" if found.value > 0 else "falls") if found.is_significant else ""


@dataclass
class Correlation:
    """All rows, strongest first.

    Attributes
    ----------
    constant, small : int
        Rows left out: with the same time in all runs, and with too little time to be tested.
    """

    heads: list[RunHead]
    nodes: list[Node]
    by: tuple[str, ...]
    whole: Row | None
    rows: list[Row]
    constant: int
    small: int

    @property
    def elapsed(self) -> list[float]:
        """The run times in ns."""
        return [float(head.elapsed_ns) for head in self.heads]

    @property
    def can_claim(self) -> bool:
        """Whether so many runs can show that one row correlates with the run time."""
        return smallest_p(len(self.heads)) <= ALPHA

    def statement(self) -> str:
        """Return a sentence about the claims that the number of runs allows."""
        n, tested = len(self.heads), len(self.rows)
        needed = runs_needed(max(1, tested))
        if not self.can_claim:
            text = f"{n} runs cannot show a correlation with the run time; at least {runs_needed(1)} can"
            return text if needed == runs_needed(1) else f"{text}, and {needed} for one of {tested} rows"
        text = f"{n} runs, {count_text(tested, 'row')} tested"
        return text if n >= needed else f"{text}; {needed} runs could find a single row"


def read_source(
    path: str, wanted: Wanted, head: RunHead | None = None, chosen: Chosen | None = None
) -> Source:
    """Read one run; with `head`, only its times in the communicators of `chosen`.

    Raises
    ------
    CommlensError
        The file is not a profile, or is damaged.
    """
    with open_profile(path) as connection:
        source = Source(head or read_head(connection, path))
        selection, source.missing = select_operations(connection, wanted.selection)
        if selection is not None:
            source.groups = read_groups(connection, wanted.by, selection, wanted.region, chosen)
            whole = read_groups(connection, (), selection, wanted.region, chosen)
            source.whole = whole.get(WHOLE, NOTHING)
    return source


def read_head_of(path: str) -> RunHead:
    """Read one run without its times."""
    with open_profile(path) as connection:
        return read_head(connection, path)


def choose(heads: Sequence[RunHead], comms: Sequence[str]) -> list[Chosen]:
    """Return the communicators that --comm selects in each run; names are those of the first.

    Raises
    ------
    CommlensError
        A name selects no communicator, or a part of a family that is another in a later run.
    """
    forest = Forest()
    places = [forest.add(i, head) for i, head in enumerate(heads)]
    first = heads[0]
    with open_profile(first.path) as connection:
        parts = selected_parts(connection, comms)
    wanted = {places[0][family]: part for family, part in parts.items()}
    found = []
    for head, nodes in zip(heads, places):
        mine = {family: wanted[node] for family, node in nodes.items() if node in wanted}
        cut = {family: part for family, part in mine.items() if not part.is_whole}
        ids = []
        if cut:
            with open_profile(head.path) as connection:
                ids = ids_of_parts(connection, head, first.path, cut)
        found.append(Chosen([family for family in mine if family not in cut], ids))
    name_parts(first, parts)
    return found


def refuse_missing(sources: Sequence[Source], patterns: Sequence[str]) -> None:
    """Refuse a pattern of --op that matches no operation of any run."""
    for pattern in patterns:
        if all(pattern in source.missing for source in sources):
            raise sources[0].missing[pattern]


def associate(values: Sequence[float | None], elapsed: Sequence[float]) -> Association | None:
    """Return the relation of values to the run times, or None if values are constant or one is unknown."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or is_constant(known) or is_constant(elapsed):
        return None
    y = np.array(elapsed) - np.mean(elapsed)
    slope = float(np.array(known) @ y) / float(y @ y)
    return Association(known, pearson(known, elapsed), spearman(known, elapsed), slope)


def row_of(
    key: GroupKey, node: int | None, times: Sequence[GroupTime], elapsed: Sequence[float]
) -> Row | None:
    """Return a row from its times in all runs; None if they are constant."""
    slowest = associate([None if t.slowest_ns is None else float(t.slowest_ns) for t in times], elapsed)
    total = associate([float(t.sum_ns) for t in times], elapsed)
    return Row(key, node, None, slowest, total) if slowest or total else None


def setting_rows(heads: Sequence[RunHead], elapsed: Sequence[float]) -> list[Row]:
    """Return a row for each setting that is a number in all runs, and not the same in all."""
    rows = []
    for name in sorted(set.intersection(*(set(head.settings) for head in heads))):
        found = associate([as_number(head.settings[name]) for head in heads], elapsed)
        rows += [Row(WHOLE, None, name, None, found)] if found else []
    return rows


def as_number(text: str) -> float | None:
    """Return the number that a setting is; None if it is another text.

    >>> as_number("512"), as_number("1e3"), as_number("ring"), as_number("nan")
    (512.0, 1000.0, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def correlate(sources: Sequence[Source], by: Sequence[str]) -> Correlation:
    """Return the correlation of each row with the run time.

    Families are matched by lineage. A run without a row counts with a time of 0.

    Raises
    ------
    CommlensError
        There are too few runs, or all took the same time.
    """
    heads = [source.head for source in sources]
    if len(heads) < FEWEST:
        raise CommlensError(
            f"a correlation needs at least {FEWEST} runs, and {runs_needed(1)} to show anything; there are {len(heads)}"
        )
    elapsed = [float(head.elapsed_ns) for head in heads]
    if is_constant(elapsed):
        raise CommlensError("all runs took the same time: there is nothing to correlate")
    forest = Forest()
    places = [forest.add(i, head) for i, head in enumerate(heads)]
    table: dict[tuple[int | None, GroupKey], list[GroupTime]] = {}
    for i, source in enumerate(sources):
        for key, each in source.groups.items():
            node = None if key.family is None else places[i][key.family]
            place = (node, key._replace(family=None))
            table.setdefault(place, [NOTHING] * len(heads))[i] = each
    whole = row_of(WHOLE, None, [source.whole for source in sources], elapsed)
    rows, constant, small = [], 0, 0
    for (node, key), times in table.items():
        if all(each.sum_ns < SHARE_TESTED * source.whole.sum_ns for each, source in zip(times, sources)):
            small += 1
            continue
        row = row_of(key, node, times, elapsed)
        constant += row is None
        rows += [row] if row else []
    rows += setting_rows(heads, elapsed)
    correct(rows)
    rows.sort(key=lambda row: (-abs(row.main.spearman.value), -abs(row.main.pearson.value), *order(row)))
    return Correlation(heads, forest.nodes, tuple(by), whole, rows, constant, small)


def order(row: Row) -> tuple[str, int, str, str, int, int]:
    """Return the order of rows with equal coefficients."""
    key = row.key
    node = -1 if row.node is None else row.node
    return (row.setting or "", node, key.operation or "", key.region or "", key.comm_size or 0, key.bin or 0)


def correct(rows: Sequence[Row]) -> None:
    """Set the corrected p values: each of the four coefficients over all rows that have it."""
    for time in ("slowest", "total"):
        found = [one for row in rows if (one := getattr(row, time)) is not None]
        for name in ("pearson", "spearman"):
            for one, q in zip(found, adjusted([getattr(one, name).p for one in found])):
                setattr(one, name, getattr(one, name)._replace(q=q))


def middle(row: Row) -> float:
    """Return the median over the runs of the values that decide."""
    return median(row.main.values)
