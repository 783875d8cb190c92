# SPDX-License-Identifier: Apache-2.0
"""Writes I_MPI_ADJUST_ALLREDUCE of Intel MPI, with ranges of bytes and of processes.

Tests show that the library takes the form. That it counts for exactly these calls is what its reference says, and was not
seen. The reference does not define the bytes of the other collectives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from commlens.base.errors import CommlensError
from commlens.selection.sizes import BinRange
from commlens.tune.model import Choice
from commlens.tune.rules.rule_set import Called, Comms, RuleSet, by_size

VARIABLE = "I_MPI_ADJUST_ALLREDUCE"
LARGEST = (1 << 31) - 1  # bytes of a range
Range = tuple[int, int, int, int, int]
"""Algorithm, smallest and largest bytes, smallest and largest number of processes."""


def write_intel(choices: Sequence[Choice], comms: Comms, called: Called) -> RuleSet:
    """Return the variable for the allreduces among the choices."""
    groups, refused = by_size(choices, comms, called)
    rules = RuleSet(refused=refused)
    wanted: list[Range] = []
    for (collective, size), group in sorted(groups.items()):
        for choice in group.choices:
            low, high = BinRange(choice.case.bin, choice.case.bin).bounds
            if collective != "allreduce":
                refused.append((choice, "Intel MPI's reference does not say which bytes it compares here"))
            elif high is None or high > LARGEST:
                refused.append((choice, "the messages are too large for a range of Intel MPI"))
            else:
                wanted.append((choice.candidate.number, low, high, size, size))
                rules.kept.append(choice)
    if wanted:
        parts = [
            f"{number}:{low}-{high}@{least}-{most}" for number, low, high, least, most in sorted(set(wanted))
        ]
        rules.variables[VARIABLE] = ";".join(parts)
        check(rules.variables[VARIABLE], wanted)
    return rules


def parse(value: str) -> list[Range]:
    """Return the ranges of a value.

    >>> parse("2:64-127@4-4;7:0-0@8-8")
    [(2, 64, 127, 4, 4), (7, 0, 0, 8, 8)]
    """
    ranges = []
    for part in value.split(";"):
        match = re.fullmatch(r"(\d+):(\d+)-(\d+)@(\d+)-(\d+)", part, re.ASCII)
        if match is None:
            raise CommlensError(f"Intel MPI would ignore {VARIABLE}={value}")
        number, low, high, least, most = map(int, match.groups())
        ranges.append((number, low, high, least, most))
    return ranges


def select(ranges: Sequence[Range], size: int, bytes: int) -> set[int]:
    """Return the algorithms that the ranges name for a call; none means the library's own choice."""
    return {
        number for number, low, high, least, most in ranges if low <= bytes <= high and least <= size <= most
    }


def check(value: str, wanted: Sequence[Range]) -> None:
    """Compare what the value says with what was chosen, at and beside each limit.

    Raises
    ------
    CommlensError
        They differ.
    """
    ranges = parse(value)
    sizes = {size + way for *_, size, _ in wanted for way in (-1, 0, 1)}
    limits = {bytes + way for _, low, high, *_ in wanted for bytes in (low, high) for way in (-1, 0, 1)}
    for size in sizes:
        for bytes in limits:
            if select(ranges, size, bytes) != select(wanted, size, bytes):
                raise CommlensError(f"{VARIABLE} would count for other calls; this is a fault of commlens")
