# SPDX-License-Identifier: Apache-2.0
"""Finds runs whose elapsed time is far from those of their side, and the facts in which they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from commlens.compare.read import RunData

FEWEST = 5  # runs; quartiles of fewer runs are not reliable
FENCE = 1.5
SAME_FACTS = ("shard", "start_time", "elapsed_ns", "slice_ns", "job_id")
"""Facts that differ between equal runs."""
SHOWN = 60  # length limit of a value


def outliers(side: Sequence[RunData]) -> list[tuple[RunData, bool, list[str]]]:
    """Return the outliers of a side by Tukey's fences: the run, whether it is slow, and the facts that most others share.

    A run is an outlier if its elapsed time is more than FENCE interquartile ranges beyond a quartile.
    """
    times = [run.elapsed_ns for run in side]
    if len(side) < FEWEST:
        return []
    low, high = (float(x) for x in np.quantile(times, (0.25, 0.75)))
    margin = FENCE * (high - low)
    return [
        (run, run.elapsed_ns > high, differences(run, [other for other in side if other is not run]))
        for run in side
        if not low - margin <= run.elapsed_ns <= high + margin
    ]


def differences(run: RunData, others: Sequence[RunData]) -> list[str]:
    """Return the facts of a run that differ from the value of more than half of the others."""
    found = []
    for name in dict.fromkeys(name for each in (run, *others) for name in each.facts):
        mine = run.facts.get(name, "")
        ((usual, count),) = Counter(other.facts.get(name, "") for other in others).most_common(1)
        if name not in SAME_FACTS and mine != usual and 2 * count > len(others):
            found.append(f"{name} {shortened(mine)} instead of {shortened(usual)}")
    return found


def shortened(value: str) -> str:
    """Return a value on one line, cut if it is long.

    >>> shortened(""), shortened("a  b")
    ('nothing', 'a b')
    """
    text = " ".join(value.split()) or "nothing"
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
