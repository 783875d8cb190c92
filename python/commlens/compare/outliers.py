# SPDX-License-Identifier: Apache-2.0
"""Finds runs whose elapsed time is far from those of their side, the facts in which they differ, and their load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from commlens.base.counts import count_text
from commlens.compare.load import NodeLoad
from commlens.compare.read import RunData
from commlens.render.units import average_text

FEWEST = 5  # runs; quartiles of fewer runs are not reliable
FENCE = 1.5
SAME_FACTS = ("shard", "start_time", "elapsed_ns", "slice_ns", "job_id")
"""Facts that differ between equal runs."""
SHOWN = 60  # length limit of a value

RATIO = 2
FLOOR = 10
"""Preemptions of a rank per second that do not count as load.

Measured with Linux 6.18 (250 Hz) for a process that computes: 1.7 to 3.7 on an otherwise idle CPU (24 runs of 3 s),
11 to 16 if another process takes 2 % of the CPU, 71 to 76 if it takes 26 %, and 125 if it takes half.
"""
FEWEST_SWITCHES = 10  # preemptions of a rank; fewer may be chance in a run of less than a second
SHOWN_NODES = 3


def outliers(side: Sequence[RunData]) -> list[tuple[RunData, bool, list[str]]]:
    """Return the outliers of a side by Tukey's fences: the run, whether it is slow, and what is different.

    A run is an outlier if its elapsed time is more than FENCE interquartile ranges beyond a quartile.
    """
    if len(side) < FEWEST:
        return []
    low, high = fences([run.elapsed_ns for run in side])
    found = []
    for run in side:
        if low <= run.elapsed_ns <= high:
            continue
        is_slow = run.elapsed_ns > high
        others = [other for other in side if other is not run]
        load = load_facts(run.loads, [other.loads for other in others]) if is_slow else []
        found.append((run, is_slow, load + differences(run, others)))
    return found


def fences(values: Sequence[float]) -> tuple[float, float]:
    """Return the values beyond which a value is an outlier."""
    low, high = (float(x) for x in np.quantile(values, (0.25, 0.75)))
    margin = FENCE * (high - low)
    return low - margin, high + margin


def load_facts(loads: Sequence[NodeLoad], others: Sequence[Sequence[NodeLoad]]) -> list[str]:
    """Return the fact that ranks of a run were preempted far more often than those of the other runs, if they were.

    The rate of each other run is that of its rank with the most preemptions per second. A node of this run is named if
    its rank with the most is beyond the upper fence of these rates, above RATIO times their median, and above FLOOR.
    """
    rates = [max(load.rate for load in other) for other in others if other]
    if len(rates) < FEWEST - 1:
        return []
    usual = float(np.median(rates))
    limit = max(fences(rates)[1], RATIO * usual, FLOOR)
    loaded = [load for load in loads if load.rate > limit and load.preempted >= FEWEST_SWITCHES]
    if not loaded:
        return []
    return [
        f"ranks{place_text([load.node for load in loaded])} were preempted up to {rate_text(loaded[0].rate)} times a "
        f"second instead of {rate_text(usual)}, rank {loaded[0].rank} most often"
    ]


def place_text(nodes: Sequence[str]) -> str:
    """Return where ranks are: the first names of nodes and the number of others.

    >>> place_text(["a"]), place_text(["a", "b", "c", "d"]), place_text([""])
    (' on a', ' on a, b, c and 1 more node', '')
    """
    if not any(nodes):
        return ""
    more = f" and {count_text(len(nodes) - SHOWN_NODES, 'more node')}" if len(nodes) > SHOWN_NODES else ""
    return f" on {', '.join(map(shortened, nodes[:SHOWN_NODES]))}{more}"


def rate_text(rate: float) -> str:
    """Return a rate, with one digit after the point if it is below 10.

    >>> [rate_text(x) for x in (0, 0.01, 2.345, 11.7, 1234.5)]
    ['0', '<0.1', '2.3', '12', '1,234']
    """
    return average_text(rate if rate < 10 else round(rate))


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
