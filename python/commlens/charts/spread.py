# SPDX-License-Identifier: Apache-2.0
"""The numbers of distributions: run times or MPI times of many runs, by setting and by communicator size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.base.spelling import did_you_mean
from commlens.compare.correlate import NOTHING, Source, as_number
from commlens.compare.times import GroupTime
from commlens.render.units import time_text

COMM_SIZE = "comm-size"
NOT_SET = "not set"
FENCE = 1.5
"""Whiskers end at the last value within so many interquartile ranges of a quartile, as those of Tukey."""


class Group(NamedTuple):
    """The values of some runs in ns, sorted; quartiles, and the ends of the whiskers."""

    name: str
    values: list[float]
    low: float
    lower: float
    median: float
    upper: float
    high: float

    @property
    def outside(self) -> list[float]:
        """The values beyond the whiskers."""
        return [value for value in self.values if not self.low <= value <= self.high]


@dataclass
class Spread:
    """Distributions, one per group of runs; `axis` says what the values are, `column` what the groups are."""

    title: str
    about: str
    axis: str
    column: str
    groups: list[Group]

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return min(group.values[0] for group in self.groups), max(group.values[-1] for group in self.groups)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of the numbers."""
        titles = ["minimum", "lower quartile", "median", "upper quartile", "maximum"]
        rows = [
            [
                group.name,
                str(len(group.values)),
                *(
                    time_text(round(value))
                    for value in (group.values[0], group.lower, group.median, group.upper, group.values[-1])
                ),
            ]
            for group in self.groups
        ]
        return [self.column, "runs", *titles], rows


def group_of(name: str, values: Sequence[float]) -> Group:
    """Return the quartiles and whiskers of values.

    >>> group_of("a", [1, 2, 3, 4, 5, 100])[2:]
    (1, 2.25, 3.5, 4.75, 5)
    """
    ordered = sorted(values)
    lower, middle, upper = (
        float(x) for x in np.quantile(np.array(ordered, dtype=np.float64), (0.25, 0.5, 0.75))
    )
    margin = FENCE * (upper - lower)
    inside = [value for value in ordered if lower - margin <= value <= upper + margin]
    return Group(name, ordered, min(inside[0], lower), lower, middle, upper, max(inside[-1], upper))


def check_names(sources: Sequence[Source], names: Sequence[str]) -> None:
    """Refuse a name that is no fact or setting of any run."""
    known = {name for source in sources for name in source.head.facts}
    for name in names:
        if name != COMM_SIZE and name not in known:
            labels = sorted({name for source in sources for name in source.head.settings} | {COMM_SIZE})
            hint = did_you_mean(name, labels)
            raise CommlensError(f"no run has a label or setting '{name}'{hint}")


def order(values: Sequence[str]) -> list[tuple[int, float, str]]:
    """Return the order of groups: numbers by value, then texts, then runs without the setting."""
    found = []
    for value in values:
        number = as_number(value.partition(" ")[0])
        found.append((2 if value == NOT_SET else 1 if number is None else 0, number or 0.0, value))
    return found


def parts_of(source: Source, names: Sequence[str]) -> list[tuple[str, GroupTime]]:
    """Return the communicator sizes of a run with their MPI times; without them all together, with an empty size."""
    if COMM_SIZE not in names:
        return [("", source.whole)]
    return [
        ("no single communicator" if key.comm_size is None else count_text(key.comm_size, "rank"), time)
        for key, time in source.groups.items()
    ]


def distribution(sources: Sequence[Source], names: Sequence[str], of: str) -> Spread:
    """Return the distributions of the run times (`of` elapsed) or of the MPI times, by the named settings.

    Sources are grouped by comm-size if that is one of the names. A run without communicators of a size has no value there.
    """
    check_names(sources, names)
    parts = [parts_of(source, names) for source in sources]
    has_slowest = all(time.slowest_ns is not None for each in parts for _, time in each)
    found: dict[tuple[str, ...], list[float]] = {}
    for source, each in zip(sources, parts):
        for size, time in each:
            if of == "mpi" and time == NOTHING:
                continue
            key = tuple(
                size if name == COMM_SIZE else " ".join(source.head.facts.get(name, NOT_SET).split()) or "''"
                for name in names
            )
            spent = time.slowest_ns if has_slowest else time.sum_ns
            value = source.head.elapsed_ns if of == "elapsed" else spent or 0
            found.setdefault(key, []).append(float(value))
    if not found:
        raise CommlensError("no run has MPI time in this selection: nothing to draw")
    groups = [group_of(", ".join(key) or "all runs", found[key]) for key in sorted(found, key=order)]
    whose = "of the slowest rank" if has_slowest else "of all ranks together"
    axis = "run time" if of == "elapsed" else f"MPI time {whose}"
    column = ", ".join("communicators of" if name == COMM_SIZE else name for name in names)
    title = ("Run time" if of == "elapsed" else "MPI time") + (f" by {', '.join(names)}" if names else "")
    what = f"{axis} from MPI_Init to MPI_Finalize" if of == "elapsed" else axis
    about = f"{count_text(len(sources), 'run')}; {what}; box: quartiles; whiskers: within 1.5 box lengths"
    return Spread(title, about, axis, column or "runs", groups)
