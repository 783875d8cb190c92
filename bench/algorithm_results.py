# SPDX-License-Identifier: Apache-2.0
"""What bench/algorithms.py compares: the messages of a schedule with those that were sent, and what ran with its name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from bench.algorithm_cases import Case, Where

from commlens.algorithms import openmpi
from commlens.algorithms.matching import Candidate
from commlens.algorithms.pattern import Pairs
from commlens.algorithms.recognise import SENDS_NOTHING, Line
from commlens.algorithms.registry import ROOTED, Algorithm
from commlens.algorithms.schedule import Call

NONE = np.zeros((0, 5), np.int64)


@dataclass
class Sent:
    """What was sent in one call.

    Attributes
    ----------
    pairs : messages and bytes of each pair
    sizes : messages by source, destination and bin of their size
    """

    pairs: Pairs
    sizes: dict[tuple[int, int, int], int]

    @classmethod
    def of(cls, size: int, rows: np.ndarray) -> Sent:
        """Add up rows of source, destination, bin, messages and bytes."""
        sizes: Counter[tuple[int, int, int]] = Counter()
        for source, destination, bin, messages, _ in rows.tolist():
            sizes[source, destination, bin] += messages
        return cls(Pairs.of(size, *rows[:, (0, 1, 3, 4)].T), dict(sizes))

    @classmethod
    def by(cls, one: Algorithm | None, call: Call) -> Sent:
        """Return what an algorithm sends."""
        rows = [NONE]
        for step in one.steps(call) if one is not None else ():
            bins = np.frexp(step.bytes.astype(np.float64))[1].astype(np.int64)
            columns = step.source, step.destination, bins, np.ones(len(bins), np.int64), step.bytes
            rows.append(np.stack(columns, axis=1))
        return cls.of(call.size, np.concatenate(rows))


@dataclass(frozen=True)
class Answer:
    """What `commlens algorithms` says of calls, and which roots they had; those with the same answer are one line."""

    line: Line
    roots: Counter[int]


@dataclass(frozen=True)
class Difference:
    """A call whose messages are not those of the schedule."""

    where: Where
    messages: tuple[int, int]
    nbytes: tuple[int, int]


@dataclass
class Result:
    """The result of a case.

    Attributes
    ----------
    ran : what runs, and on which communicator sizes with how many bytes
    calls : how many were compared
    different : those that differ from the schedule: by the component, and in the profile
    named : calls that `commlens algorithms` names as what runs: alone; among others that send the same; as another one
        that sends the same; not
    others : communicator sizes of the last two, and what is said there
    """

    case: Case
    ran: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    calls: int = 0
    different: dict[str, list[Difference]] = field(default_factory=lambda: {"component": [], "profile": []})
    named: Counter[str] = field(default_factory=Counter)
    others: dict[str, set[int]] = field(default_factory=dict)

    @property
    def bad(self) -> int:
        """Calls that differ or are not named."""
        return sum(map(len, self.different.values())) + self.named["not"]


def compare(
    release: str,
    case: Case,
    component: dict[Where, Sent],
    profile: dict[Where, Sent],
    answers: dict[Where, Answer],
) -> Result:
    """Compare what was measured with the schedules, and what was named with what ran."""
    result = Result(case)
    major = int(release.partition(".")[0])
    for where in case.calls():
        _, size, block, root = where
        call = case.call(size, block, root)
        one = openmpi.runs(case.collective, case.number, call, case.told, major)
        expected = Sent.by(one, call)
        result.calls += 1
        result.ran.setdefault(one.name if one is not None else "", set()).add((size, block))
        for source, found in (("component", component), ("profile", profile)):
            got = found.get(where, Sent.of(size, NONE))
            if got != expected:
                messages, nbytes = (
                    (int(getattr(got.pairs, what).sum()), int(getattr(expected.pairs, what).sum()))
                    for what in ("messages", "bytes")
                )
                result.different[source].append(Difference(where, messages, nbytes))
        how, said = _naming(one if expected.sizes else None, call, answers.get(where))
        result.named[how] += 1
        if how in ("other", "not"):
            result.others.setdefault(said, set()).add(size)
    return result


def _naming(one: Algorithm | None, call: Call, answer: Answer | None) -> tuple[str, str]:
    """Return how a call was named, with the verdict."""
    if answer is None:
        return "not", "missing"
    line = answer.line
    if one is None:
        return ("alone" if line.verdict == SENDS_NOTHING else "not"), line.verdict
    if line.collective in ROOTED and line.best is not None and line.roots != answer.roots:
        return "not", f"{line.verdict}, with roots {sorted(line.roots)}"
    names = {candidate.algorithm.name for candidate in line.match.best}
    if any(_is(candidate, one, call) for candidate in line.match.best):
        return ("alone" if len(names) == 1 else "among"), line.verdict
    # Under another name only where that is as true.
    return ("other" if names and line.fit == 1 and one.name not in names else "not"), line.verdict


def _is(candidate: Candidate, one: Algorithm, call: Call) -> bool:
    """Whether it is this algorithm, with its parameters as far as they are told."""
    said = candidate.parameters
    least, most = said.get("segment", (call.segment, call.segment))
    return (
        candidate.algorithm.name == one.name
        and least <= call.segment <= most
        and all(said.get(name, getattr(call, name)) == getattr(call, name) for name in ("fanout", "radix"))
    )
