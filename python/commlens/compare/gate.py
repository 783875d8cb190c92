# SPDX-License-Identifier: Apache-2.0
"""The conditions of --fail-if, and the rows that meet them."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from commlens.compare.model import MEASURES, Comparison, Row

TIMES = ("time", "slowest", "elapsed")
CONDITION = re.compile(r"\s*(\w+)\s*([<>])\s*(-?[0-9]{1,9}(?:\.[0-9]{1,6})?)\s*%\s*", re.ASCII)


class Condition(NamedTuple):
    """A condition on the relative change of a measure."""

    measure: str
    is_more: bool
    bound: float
    text: str

    def holds(self, ratio: float | None) -> bool:
        """Return whether a change meets the condition."""
        return ratio is not None and (ratio > self.bound if self.is_more else ratio < self.bound)


def parse_condition(text: str) -> Condition:
    """Return the condition of a text such as 'time > 5%'.

    Raises
    ------
    ValueError
        The text is not a condition.

    >>> parse_condition("calls > 0%")[:3]
    ('calls', True, 0.0)
    """
    match = CONDITION.fullmatch(text)
    if not match or match[1] not in (*MEASURES, "elapsed"):
        known = ", ".join((*MEASURES, "elapsed"))
        raise ValueError(
            f"'{text}' is not a condition MEASURE > NUMBER% or MEASURE < NUMBER%; measures: {known}"
        )
    return Condition(match[1], match[2] == ">", float(match[3]) / 100, text.strip())


def needs_test(comparison: Comparison, condition: Condition) -> bool:
    """Return whether a condition is on a time, and the runs are too few to find the change of a single row."""
    return condition.measure in TIMES and not comparison.can_find_one


def failing(comparison: Comparison, condition: Condition, *, untested: bool) -> list[Row]:
    """Return the rows that meet a condition.

    Of times only significant changes count; the time of the slowest rank counts where the time of its row is significant.
    With `untested` medians decide where the number of runs allows no test; without it, no row meets such a condition.
    """
    if condition.measure == "elapsed":
        rows, measure = [comparison.elapsed], "time"
    else:
        rows, measure = [*comparison.rows, comparison.whole], condition.measure
    if condition.measure in TIMES and not (untested and needs_test(comparison, condition)):
        rows = [row for row in rows if row.is_significant]
    return [row for row in rows if condition.holds(row.changes[measure].ratio)]


def percent(ratio: float | None) -> str:
    """Return a change in per cent.

    >>> percent(0.05), percent(0.0), percent(-0.5), percent(None)
    ('+5.0 %', '=', '-50.0 %', '-')
    """
    if ratio is None:
        return "-"
    if math.isinf(ratio):
        return "new"
    return "=" if ratio == 0 else f"{100 * ratio:+.1f} %"
