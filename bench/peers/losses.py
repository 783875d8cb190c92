# SPDX-License-Identifier: Apache-2.0
"""Where another tool costs less than commlens, and what that tool does less."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from bench.overhead_page import table
from bench.peers import correct, cost
from bench.peers.results import Record, Store
from bench.peers.tools import COMMLENS

from commlens.overhead.estimate import FEWEST, Estimate, estimate
from commlens.overhead.legs import BASELINE

NET, HOOK, WRAP = "net, added share", "hook, milliseconds added", "wrap, milliseconds added"
FINALIZE, MEMORY, OUTPUT = (
    "milliseconds added to MPI_Finalize",
    "memory added to a process",
    "bytes of output",
)
INSTRUCTIONS, NS = "instructions", "ns"
COLUMNS = (INSTRUCTIONS, NS, FINALIZE, MEMORY, OUTPUT, NET, HOOK, WRAP)

EXACT = (INSTRUCTIONS, OUTPUT)
"""Costs without noise."""

NO_AGREEMENT = "It has no communicators, on which the ranks would have to agree."
NO_COMMS = "It has no communicators."
OWN_FILES = "Each rank writes a file of its own; nothing is put together."
FEWER_TABLES = "It has neither call sites nor pairs of ranks nor slices of time."
NO_WAITING = (
    "It does not find out which rank waited for which. With commlens, rank 0 does so from the samples of all messages "
    "(row split of table overhead)."
)
REASONS: Mapping[tuple[str, str], str] = {
    (NS, "mpiP -k 0"): NO_COMMS,
    (NS, "IPM"): NO_COMMS,
    (FINALIZE, "mpiP -k 0"): NO_AGREEMENT,
    (FINALIZE, "Caliper mpi-report"): NO_AGREEMENT,
    (FINALIZE, "Caliper messages"): OWN_FILES,
    (FINALIZE, "IPM"): NO_AGREEMENT,
    (MEMORY, "IPM"): NO_COMMS,
    (MEMORY, "Caliper mpi-report"): NO_COMMS,
    (MEMORY, "mpiP -k 0"): NO_COMMS,
    (MEMORY, "mpisee"): FEWER_TABLES,
    (MEMORY, "Caliper messages"): "It has neither call sites nor pairs of ranks, and puts nothing together.",
    (OUTPUT, "mpisee"): FEWER_TABLES,
    (OUTPUT, "mpiP"): "A text, without communicators and pairs of ranks.",
    (OUTPUT, "mpiP -k 0"): "A text of sums by procedure.",
    (OUTPUT, "Caliper mpi-report"): "A text of sums by procedure, over all ranks.",
    (OUTPUT, "Caliper messages"): FEWER_TABLES,
    (OUTPUT, "IPM"): NO_COMMS,
    (HOOK, "mpiP -k 0"): NO_AGREEMENT,
    (HOOK, "Caliper mpi-report"): NO_AGREEMENT,
    (HOOK, "Caliper messages"): OWN_FILES,
    (HOOK, "IPM"): NO_AGREEMENT,
    (HOOK, "mpiP"): NO_AGREEMENT,
    (HOOK, "mpisee"): NO_WAITING,
}
"""By column and tool: what the tool does less, which its documentation or its output shows."""
UNKNOWN = "**not known**"
WITHOUT_COMMS = ("mpiP", "mpiP -k 0", "Caliper mpi-report", "IPM")
"""Tools that do nothing where a communicator is made."""
MAKE_COMMS = ("amr", "comm_churn")
"""Programs whose time is that of making communicators."""
SHOWN = 4
"""Of the rows of a group; the number of the others is said."""


@dataclass(frozen=True)
class Loss:
    """A row of the page in which another tool costs less.

    Attributes
    ----------
    column, tool, reason : str
    other, own : float
        What that tool and commlens cost.
    text : callable
        Shows such a number.
    where : str
        Program or call, ranks or communicators, MPI library.
    """

    column: str
    tool: str
    reason: str
    other: float
    own: float
    text: Callable[[float], str]
    where: str


@cache
def estimated(values: tuple[float, ...]) -> Estimate:
    """Return the estimate of differences, one for each round."""
    return estimate(values, np.random.default_rng(1))


def is_more(differences: Sequence[float], *, is_exact: bool = False) -> bool:
    """Return whether a cost is more than another, given the differences of the rounds.

    is_exact : the cost has no noise, so that few rounds tell

    >>> is_more([1.0]), is_more([1.0], is_exact=True), is_more([0.0], is_exact=True)
    (False, True, False)
    """
    if is_exact:
        return bool(differences) and min(differences) > 0
    if len(differences) < FEWEST:
        return False
    if len(set(differences)) == 1:
        return differences[0] > 0
    found = estimated(tuple(differences))
    return found.value > 0 and found.is_resolved


def beside(records: Iterable[Record], what: str, *, relative: bool = False) -> dict[str, list[float]]:
    """Return for each other tool what commlens costs more in each round that both end: a share of the run alone, or a number."""
    found: dict[str, list[float]] = {}
    for record in records:
        of = {run["tool"]: run[what] for run in record["runs"] if not run["failure"]}
        if COMMLENS not in of or (relative and not of.get(BASELINE)):
            continue
        for tool, value in of.items():
            if tool not in (COMMLENS, BASELINE):
                unit = of[BASELINE] if relative else 1
                found.setdefault(tool, []).append((of[COMMLENS] - value) / unit)
    return found


def uncounted(mpi: str, tool: str, program: str) -> list[str]:
    """Return the procedures of a program that a tool does not count, as part "correct" found.

    All configurations of mpiP wrap the same procedures; those of Caliper differ.
    """
    checked = "mpiP -p -y -e" if tool.startswith("mpiP") else tool
    record = Store(correct.PART).get(mpi, checked, program)
    return [] if record is None else sorted(record.get("missing", ()))


def reason_of(column: str, mpi: str, tool: str, what: str) -> str:
    """Return what a tool does less in a program or call."""
    if column == NET and what in MAKE_COMMS and tool in WITHOUT_COMMS:
        return NO_COMMS
    missing = uncounted(mpi, tool, what) if column == NET else []
    if missing:
        return f"It does not count {', '.join(f'`{op}`' for op in missing)}."
    return REASONS.get((column, tool), UNKNOWN)


def shortened(rows: Sequence[str]) -> str:
    """Return the first of some rows, and how many there are besides.

    >>> shortened(["a", "b"]), shortened(["a", "b", "c", "d", "e", "f"])
    ('a; b', 'a; b; c; d; and 2 more')
    """
    more = [f"and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
    return "; ".join([*rows[:SHOWN], *more])


def adds_nothing(mpi: str, tool: str, call: str) -> bool:
    """Return whether a tool adds no instruction to a call, so does not count it."""
    of = {
        name: {row: count for row, n, count in record["counts"] if n == 1}
        for name in (BASELINE, tool)
        if (record := Store(cost.INSTRUCTIONS).get(mpi, name)) is not None
    }
    alone, own = of.get(BASELINE, {}).get(call), of.get(tool, {}).get(call)
    return alone is not None and own is not None and own <= alone


class Losses:
    """Collects the rows in which another tool costs less.

    Attributes
    ----------
    found : list of Loss
    compared : int
        Pairs of commlens and another tool in a row.
    """

    def __init__(self) -> None:
        self.found: list[Loss] = []
        self.compared = 0

    def note(
        self,
        column: str,
        mpi: str,
        what: str,
        where: str,
        values: Mapping[str, float],
        differences: Mapping[str, Sequence[float]],
        text: Callable[[float], str],
    ) -> None:
        """Compare the costs of commlens and each other tool in a row.

        what : the program or call of the row, by which the other parts know it
        differences : of commlens and another tool, in each round
        """
        for tool, of in differences.items():
            if tool == COMMLENS or tool not in values or not of:
                continue
            if column in (INSTRUCTIONS, NS) and adds_nothing(mpi, tool, what):
                continue
            self.compared += 1
            if is_more(of, is_exact=column in EXACT):
                reason = reason_of(column, mpi, tool, what)
                self.found.append(Loss(column, tool, reason, values[tool], values[COMMLENS], text, where))

    def lines(self) -> list[str]:
        """Return the text of the page."""
        if not self.found:
            return [f"In none of {self.compared:,} comparisons.", ""]
        groups: dict[tuple[int, str, str], list[Loss]] = {}
        for loss in self.found:
            groups.setdefault((COLUMNS.index(loss.column), loss.tool, loss.reason), []).append(loss)
        rows = [
            (
                COLUMNS[column],
                tool,
                span(of, "other"),
                span(of, "own"),
                shortened([loss.where for loss in of]),
                reason,
            )
            for (column, tool, reason), of in sorted(groups.items(), key=lambda item: item[0])
        ]
        titles = ("cost", "tool", "costs", "commlens", "in", "what it does less")
        return [
            f"In {len(self.found):,} of {self.compared:,} comparisons of commlens with another tool:",
            "",
            *table(titles, rows, 6),
        ]


def span(losses: Sequence[Loss], what: str) -> str:
    """Return the least and the most of a number of some rows."""
    values = [getattr(loss, what) for loss in losses]
    texts = [losses[0].text(value) for value in (min(values), max(values))]
    return " to ".join(dict.fromkeys(texts))
