# SPDX-License-Identifier: Apache-2.0
"""The calls that bench/algorithms.py makes: algorithms with parameters, and the runs that measure several at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from commlens.algorithms import openmpi
from commlens.algorithms.registry import COLLECTIVES, ROOTED, algorithms
from commlens.algorithms.schedule import Call

MOST = 33


@dataclass(frozen=True)
class Case:
    """One algorithm with parameters.

    Attributes
    ----------
    collective, number : as coll_tuned calls it; number 0 for collectives that have no choice
    blocks : bytes of a call, as commlens.algorithms.schedule.Call has it; -N for parts of 0, N and 2 N bytes in turns
    parameters : of the algorithm, under the names of Call
    told : numbers of other collectives, of which the algorithm is made
    ranks : of the largest communicator
    """

    collective: str
    number: int
    blocks: tuple[int, ...]
    parameters: dict[str, int] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    ranks: int = MOST

    @property
    def choice(self) -> dict[str, dict[str, int]]:
        """What coll_tuned is told of each collective that takes part."""
        found = {it: {"": 0} for it in openmpi.PARTS.get((self.collective, self.number), ())}
        found |= {it: {"": number} for it, number in self.told.items()}
        found[self.collective] = {"": self.number, **self.parameters}
        return found

    @property
    def roots(self) -> int:
        """How many ranks are root in turns."""
        return 2 if self.collective in ROOTED else 1

    def calls(self) -> Iterator[Where]:
        """Yield the calls that are made."""
        for size in range(2, self.ranks + 1):
            for block in self.blocks:
                for root in (0, size // 2)[: self.roots]:
                    yield self.collective, size, block, root

    def call(self, size: int, block: int, root: int) -> Call:
        """Return a call of it."""
        radix = 4 if self.collective == "bcast" else 2  # the default
        call = Call(size, root=root, radix=radix).but(**self.parameters)
        if block >= 0:
            return call.but(block=block)
        rank = call.ranks
        pairwise = self.collective.startswith("alltoall")
        of = np.add.outer(rank, rank).reshape(-1) if pairwise else rank
        return call.but(block=of % 3 * -block)


Where = tuple[str, int, int, int]
"""Collective, communicator size, block and root."""


class Launch:
    """Cases that one run can do: what coll_tuned is told for them does not contradict."""

    def __init__(self, first: Case) -> None:
        self.cases = [first]
        self.choice = first.choice

    @property
    def ranks(self) -> int:
        """Ranks of the largest communicator."""
        return max(one.ranks for one in self.cases)

    def takes(self, case: Case) -> bool:
        """Add a case if it can be done with the others."""
        if (case.ranks == 2) != (self.ranks == 2):  # what is made for two ranks fails on more
            return False
        if any(self.choice.get(it, told) != told for it, told in case.choice.items()):
            return False
        self.choice = self.choice | case.choice
        self.cases.append(case)
        return True

    def options(self) -> list[str]:
        """Return what coll_tuned is told."""
        said = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        words = {"": "", "segment": "_segmentsize", "fanout": "_chain_fanout", "radix": "_knomial_radix"}
        for collective, told in self.choice.items():
            for name, value in told.items():
                if value:
                    said += ["--mca", f"coll_tuned_{collective}_algorithm{words[name]}", str(value)]
        return said

    def jobs(self) -> list[str]:
        """Return what collectives.c is to call."""
        return [":".join(map(str, (one.collective, one.roots, one.ranks, *one.blocks))) for one in self.cases]


def launches(cases: Iterable[Case]) -> list[Launch]:
    """Combine cases, beginning with those that set the most options."""
    found: list[Launch] = []
    for case in sorted(cases, key=lambda one: -len(one.choice)):
        if not any(one.takes(case) for one in found):
            found.append(Launch(case))
    return found


def cases(release: str) -> Iterator[Case]:
    """Yield all cases to measure on a release of Open MPI."""
    for collective, numbers in _numbers(release).items():
        for number in numbers:
            told = _told(collective, number)
            if (collective, number) in _TWO_RANKS:
                yield Case(collective, number, (0,) if collective == "barrier" else (0, 5, 1000), ranks=2)
            elif collective == "barrier":
                yield Case(collective, number, (0,))
            else:
                yield Case(collective, number, (5, 1000), told=told)
                yield Case(collective, number, (0,), told=told, ranks=9)
    for number in (2, 3, 4, 5, 6, 7):
        yield Case("bcast", number, (5000,), {"segment": 512})
    for number in (2, 3, 4, 5, 6):
        yield Case("reduce", number, (5000,), {"segment": 512})
    yield Case("bcast", 4, (1000,), {"segment": 600}, ranks=9)
    yield Case("bcast", 2, (1000,), {"fanout": 7})
    yield Case("reduce", 2, (1000,), {"fanout": 2})
    yield Case("bcast", 7, (1000,), {"radix": 3})
    yield Case("allreduce", 5, (5, 1000, 20000), {"segment": 100})
    yield Case("gather", 3, (5000,), {"segment": 512})
    for collective, numbers in _numbers(release).items():
        if collective.endswith(("v", "w")) or collective == "reduce_scatter":
            for number in numbers:
                if (collective, number) not in _TWO_RANKS:
                    yield Case(collective, number, (-7,), told=_told(collective, number), ranks=17)


_TWO_RANKS = {("barrier", 5), ("allgather", 6), ("allgatherv", 5), ("alltoall", 5)}


def _numbers(release: str) -> dict[str, list[int]]:
    """Return the numbers each collective's algorithms have; 0 for those coll_tuned has no choice for."""
    made_of_others = {
        "allreduce": 2,
        "allgather": 1,
        "allgatherv": 1,
        "reduce_scatter": 1,
        "reduce_scatter_block": 1,
    }
    found: dict[str, list[int]] = {}
    for collective in COLLECTIVES:
        numbers = {one.openmpi for one in algorithms(collective) if one.openmpi}
        if collective in made_of_others:
            numbers.add(made_of_others[collective])
        if release.startswith("4."):
            numbers -= {
                number for number in numbers if (collective, number) in (("allgather", 7), ("allgatherv", 6))
            }
        found[collective] = sorted(numbers) or [0]
    return found


def _told(collective: str, number: int) -> dict[str, int]:
    """Return trees that differ from each other for the collectives that an algorithm is made of."""
    parts = openmpi.PARTS.get((collective, number), ())
    choice = {"reduce": 5, "bcast": 6, "gather": 2, "scatter": 2}
    return {part: choice[part] for part in parts if part in choice}
