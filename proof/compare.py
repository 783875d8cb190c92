# SPDX-License-Identifier: Apache-2.0
"""What was seen of a case without and with commlens, and what follows from it.  Pure: runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Seen(NamedTuple):
    """One run of one case: how it ended, in a word, and the rest that must come out the same."""

    outcome: str
    text: str = ""


MISSING = Seen("missing")
"""The case was in another run of the same command, but not in this one."""


@dataclass
class Case:
    """All runs of one case; the n-th of each list were made together."""

    without: list[Seen] = field(default_factory=list)
    under: list[Seen] = field(default_factory=list)

    @property
    def new(self) -> set[Seen]:
        """What came with commlens and never without it."""
        return set(self.under) - set(self.without)

    @property
    def verdict(self) -> str:
        """Return "same", "different", or "flaky": it varies, and without commlens just so."""
        if self.new:
            return "different"
        return "same" if len(set(self.without)) == 1 else "flaky"


Cases = dict[str, Case]


def add_pair(cases: Cases, without: Mapping[str, Seen], under: Mapping[str, Seen]) -> None:
    """Add one run of each kind; a case that one of them lacks is missing there, and in the earlier runs."""
    earlier = max((len(case.without) for case in cases.values()), default=0)
    for name in [*without, *under]:
        if name not in cases:
            cases[name] = Case([MISSING] * earlier, [MISSING] * earlier)
    for name, case in cases.items():
        # Not twice for a name that both have.
        case.without.append(without.get(name, MISSING))
        case.under.append(under.get(name, MISSING))


def different(cases: Cases) -> list[str]:
    """Return the names of the cases that differ."""
    return [name for name, case in cases.items() if case.verdict == "different"]
