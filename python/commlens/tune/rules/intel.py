# SPDX-License-Identifier: Apache-2.0
"""Writes I_MPI_ADJUST_... of Intel MPI, which count for all calls of a collective.

What a value means is what 2021.18 did in tests (docs/decisions/0030-rules.md), and not what its reference suggests: an
algorithm with a range counts outside of the range, too, where no other one is named, so that no value leaves calls
to the library's own choice. Ranges that follow each other without a gap tell calls apart: of bytes or of processes, not of both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from commlens.algorithms._offered import LIBRARIES
from commlens.algorithms.offered import library_of
from commlens.base.errors import CommlensError
from commlens.selection.sizes import BinRange
from commlens.tune.model import Choice
from commlens.tune.rules.rule_set import Called, RuleSet

LARGEST = (1 << 31) - 1  # bytes or processes of a range
BY_BYTES = ("allreduce", "reduce", "reduce_scatter_block")
"""Collectives whose bytes were seen to be the message size of a profile."""
BY_PROCESSES = (*BY_BYTES, "reduce_scatter")
"""Collectives in which ranges of processes were seen to count. In others, nothing shows which algorithm ran."""

Calls = Mapping[tuple[int, int], int]
"""The number of the algorithm by size of the communicator and smallest bytes of the messages."""
Range = tuple[int, int, int, int, int]
"""Algorithm, smallest and largest bytes, smallest and largest number of processes."""

NOT_ALL = "the variable counts for all calls of the collective, and others of the profile have no such choice"
NOT_APART = "calls of the collective have different choices, and the variable cannot tell them apart"


def write_intel(choices: Sequence[Choice], called: Called) -> RuleSet:
    """Return the variables of the collectives all of whose calls in the profile have a choice."""
    rules = RuleSet()
    for collective in sorted({choice.case.collective for choice in choices}):
        of_this = [choice for choice in choices if choice.case.collective == collective]
        have = {(one.case.comm_size, one.case.bin, one.case.family) for one in of_this}
        need = {
            (size, bin, family)
            for (name, size), bins in called.items()
            if name == collective
            for bin, users in bins.items()
            for family in users
        }
        value = value_of(collective, of_this) if called and need <= have else None
        if value is None:
            reason = NOT_APART if called and need <= have else NOT_ALL
            rules.refused.extend((choice, reason) for choice in of_this)
        else:
            rules.variables[f"I_MPI_ADJUST_{collective.upper()}"] = value
            rules.kept.extend(of_this)
    return rules


def can_tell_apart(choices: Sequence[Choice], library: str) -> bool:
    """Return whether a variable of Intel MPI can give each of these calls of a collective its choice."""
    known = library_of(library)
    is_intel = known is not None and known[0] is LIBRARIES["intel"]
    return is_intel and value_of(choices[0].case.collective, choices) is not None


def value_of(collective: str, choices: Sequence[Choice]) -> str | None:
    """Return the value that gives each call its choice; None if there is none."""
    calls: dict[tuple[int, int], int] = {}
    for choice in choices:
        low = BinRange(choice.case.bin, choice.case.bin).bounds[0] if choice.case.bin >= 0 else 0
        if calls.setdefault((choice.case.comm_size, low), choice.candidate.number) != choice.candidate.number:
            return None
    numbers = set(calls.values())
    if len(numbers) == 1:
        return str(*numbers)
    if collective in BY_BYTES and (
        by_bytes := _one_each({(low, number) for (_, low), number in calls.items()})
    ):
        value = _joined(by_bytes, "{number}:{low}-{high}")
    elif collective in BY_PROCESSES and (
        by_processes := _one_each({(size, number) for (size, _), number in calls.items()})
    ):
        value = _joined(by_processes, f"{{number}}:0-{LARGEST}@{{low}}-{{high}}")
    else:
        return None
    check(value, calls)
    return value


def _one_each(pairs: set[tuple[int, int]]) -> dict[int, int] | None:
    """Return the algorithm of each value; None if one has several, or is too large for a range."""
    found = dict(sorted(pairs))
    return found if len(found) == len(pairs) and max(found) <= LARGEST else None


def _joined(algorithms: Mapping[int, int], form: str) -> str:
    """Return ranges without gaps: each begins at its value, the first at 0."""
    begins = sorted(algorithms)
    begins = [
        begin for i, begin in enumerate(begins) if i == 0 or algorithms[begin] != algorithms[begins[i - 1]]
    ]
    lows = [0, *begins[1:]]
    highs = [low - 1 for low in lows[1:]] + [LARGEST]
    return ";".join(
        form.format(number=algorithms[begin], low=low, high=high)
        for begin, low, high in zip(begins, lows, highs)
    )


def parse(value: str) -> list[Range]:
    """Return the ranges of a value; without ranges, one for all calls.

    >>> parse("2:0-63;7:64-2147483647") == [(2, 0, 63, 0, LARGEST), (7, 64, LARGEST, 0, LARGEST)]
    True
    >>> parse("3") == [(3, 0, LARGEST, 0, LARGEST)]
    True
    """
    if re.fullmatch(r"\d+", value, re.ASCII):
        return [(int(value), 0, LARGEST, 0, LARGEST)]
    ranges = []
    for part in value.split(";"):
        match = re.fullmatch(r"(\d+):(\d+)-(\d+)(?:@(\d+)-(\d+))?", part, re.ASCII)
        if match is None:
            raise CommlensError(f"Intel MPI would ignore the value {value}")
        number, low, high = map(int, match.groups()[:3])
        ranges.append((number, low, high, int(match[4] or 0), int(match[5] or LARGEST)))
    _check_form(value, ranges)
    return ranges


def _check_form(value: str, ranges: Sequence[Range]) -> None:
    """Refuse what was not tested, or did not count as written: gaps, overlaps, and ranges of both bytes and processes."""
    places = ((1, 2, 3, 4), (3, 4, 1, 2))
    for low, high, other_low, other_high in places:
        is_whole = all((one[other_low], one[other_high]) == (0, LARGEST) for one in ranges)
        ends = [-1, *(one[high] for one in ranges)]
        is_gapless = all(one[low] == end + 1 for one, end in zip(ranges, ends)) and ends[-1] == LARGEST
        if is_whole and is_gapless:
            return
    raise CommlensError(f"it is not known what Intel MPI does with the value {value}")


def select(ranges: Sequence[Range], size: int, bytes: int) -> int:
    """Return the algorithm that the ranges name for a call; beyond the last one it is the last."""
    for number, _, high, _, most in ranges:
        if bytes <= high and size <= most:
            return number
    return ranges[-1][0]


def check(value: str, calls: Calls) -> None:
    """Compare what the value says with what was chosen.

    Raises
    ------
    CommlensError
        They differ.
    """
    ranges = parse(value)
    for (size, low), number in calls.items():
        for bytes in {low, 2 * low - 1 if low else 0}:  # the smallest and the largest of a bin
            if select(ranges, size, bytes) != number:
                raise CommlensError(f"{value} would count for other calls; this is a bug in commlens")
