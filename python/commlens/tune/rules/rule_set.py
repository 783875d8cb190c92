# SPDX-License-Identifier: Apache-2.0
"""What a writer of rules returns, and the conditions that are the same for all MPI libraries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from commlens.tune.model import Candidate, Case, Choice

Comms = Sequence[tuple[int, int]]
"""Family and size of the intracommunicators of a profile."""
Group = tuple[str, int]
"""Collective and number of processes of the communicator."""

Called = Mapping[Group, Mapping[int, Collection[int]]]
"""The families that call a collective, by size bin of the messages; empty if the calls are unknown."""

VARIES = -1  # bin of the calls whose blocks differ in size
SIZELESS = ("barrier",)  # collectives without a message size, which all count in one bin


@dataclass(frozen=True)
class RuleSet:
    """Files and variables that make an MPI library take the chosen algorithms.

    Attributes
    ----------
    files : dict
        Text of each file by its name.
    variables : dict
        Environment variables of the job; {folder} in a value stands for the absolute folder of the files.
    kept : list of Choice
        The choices that the rules contain.
    refused : list of (Choice, str)
        The others, with the reason.
    """

    files: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    kept: list[Choice] = field(default_factory=list)
    refused: list[tuple[Choice, str]] = field(default_factory=list)


@dataclass
class Sorted:
    """The choices of one collective and communicator size: the candidate of each bin."""

    candidates: dict[int, Candidate] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)


def group_of(case: Case) -> Group:
    """Return what a rule for a case names."""
    return case.collective, case.comm_size


def by_size(
    choices: Sequence[Choice], comms: Comms, called: Called
) -> tuple[dict[Group, Sorted], list[tuple[Choice, str]]]:
    """Return the choices that all families of their size share, by collective and size, and the others with the reason.

    A rule for a size counts for every communicator of that size. Families that do not make such calls need not share it.
    """
    families: dict[int, set[int]] = {}
    for family, size in comms:
        families.setdefault(size, set()).add(family)
    found: dict[tuple[str, int, int], dict[int, set[Candidate]]] = {}
    for choice in choices:
        case = choice.case
        wanted = found.setdefault((case.collective, case.comm_size, case.bin), {})
        wanted.setdefault(case.family, set()).add(choice.candidate)
    groups: dict[Group, Sorted] = {}
    refused = []
    for choice in choices:
        case = choice.case
        wanted = found[case.collective, case.comm_size, case.bin]
        users = (
            called[group_of(case)].get(case.bin, ())
            if group_of(case) in called
            else families.get(case.comm_size, ())
        )
        others = set(users) - wanted.keys()
        if len({candidate for candidates in wanted.values() for candidate in candidates}) > 1:
            refused.append((choice, f"communicators of size {case.comm_size} have different choices"))
        elif others:
            reason = f"other communicators of size {case.comm_size} have no such choice, and a rule counts for all of a size"
            refused.append((choice, reason))
        else:
            group = groups.setdefault(group_of(case), Sorted())
            group.candidates[case.bin] = choice.candidate
            group.choices.append(choice)
    return groups, refused


def is_for_all_calls(collective: str, group: Sorted, called: Called, size: int) -> bool:
    """Return whether all calls of a collective on communicators of this size have one and the same choice.

    This is not known without the calls of the profile, unless the collective has one bin only.
    """
    if len(set(group.candidates.values())) != 1:
        return False
    if collective in SIZELESS or VARIES in group.candidates:
        return True
    bins = called.get((collective, size))
    return bins is not None and set(bins) <= group.candidates.keys()
