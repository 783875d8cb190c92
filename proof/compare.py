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
RUN = "(run)"
"""The case that is the launch itself: how it ended, and what it printed outside of other cases."""
HANG = "hang"
NOT_REACHED = Seen("not reached")
"""The launch hung before the case ended.  That it hung is compared, as RUN; how far it came is chance."""


def is_exit_code(seen: Seen) -> bool:
    """Return whether a launch ended with a code other than 0."""
    return seen.outcome.startswith("exit ")


@dataclass
class Case:
    """All runs of one case; the n-th of each list were made together, as far as there is one of each."""

    without: list[Seen] = field(default_factory=list)
    under: list[Seen] = field(default_factory=list)

    @property
    def new(self) -> set[Seen]:
        """What came with commlens and never without it; nothing where no run without it came so far."""
        without = set(self.without) - {NOT_REACHED}
        new = set(self.under) - without - {NOT_REACHED} if without else set()
        # Some programs return the number of their errors: where that varies, it may be any but none.
        if len({seen.outcome for seen in without if is_exit_code(seen)}) > 1:
            new = {seen for seen in new if not is_exit_code(seen)}
        return new

    @property
    def verdict(self) -> str:
        """Return "same", "different", or "flaky": it varies, and without commlens just so."""
        if self.new:
            return "different"
        return "same" if len(set(self.without) - {NOT_REACHED}) <= 1 else "flaky"


Cases = dict[str, Case]


def add_pair(cases: Cases, without: Mapping[str, Seen], under: Mapping[str, Seen]) -> None:
    """Add one run of each kind; a case that one of them lacks is missing there, and in the earlier runs."""
    launch = cases.get(RUN, Case())
    earlier = Case([absent(seen) for seen in launch.without], [absent(seen) for seen in launch.under])
    for name in [*without, *under]:
        if name not in cases:
            cases[name] = Case([*earlier.without], [*earlier.under])
    for name, case in cases.items():
        # Not twice for a name that both have.
        case.without.append(seen_of(name, without))
        case.under.append(seen_of(name, under))


def add_without(cases: Cases, without: Mapping[str, Seen]) -> None:
    """Add one more run without commlens to cases there are."""
    for name, case in cases.items():
        case.without.append(seen_of(name, without))


def seen_of(name: str, run: Mapping[str, Seen]) -> Seen:
    """Return what a run has of a case."""
    return run.get(name, absent(run.get(RUN, MISSING)))


def absent(launch: Seen) -> Seen:
    """Return what is seen of a case that a launch does not have."""
    return NOT_REACHED if launch.outcome == HANG else MISSING


def different(cases: Cases) -> list[str]:
    """Return the names of the cases that differ."""
    return [name for name, case in cases.items() if case.verdict == "different"]


def as_record(cases: Cases) -> dict[str, object]:
    """Return the cases as they are written."""
    return {
        name: {"without": [list(s) for s in case.without], "with": [list(s) for s in case.under]}
        for name, case in cases.items()
    }


def from_record(cases: Mapping[str, Mapping[str, list[list[str]]]]) -> Cases:
    """Return the cases that were written."""
    return {
        name: Case([Seen(*s) for s in runs["without"]], [Seen(*s) for s in runs["with"]])
        for name, runs in cases.items()
    }
