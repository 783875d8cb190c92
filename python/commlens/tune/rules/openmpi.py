# SPDX-License-Identifier: Apache-2.0
"""Writes rules for coll/tuned of Open MPI 4.1 and 5.0, in the text form that both read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from commlens.algorithms._offered import LIBRARIES
from commlens.base.errors import CommlensError
from commlens.selection.sizes import LARGEST_BIN, BinRange
from commlens.tune.model import DEFAULT, Candidate, Choice
from commlens.tune.rules.openmpi_model import parse, select
from commlens.tune.rules.rule_set import Called, Comms, Group, RuleSet, Sorted, by_size, is_for_all_calls

FILE = "openmpi.rules"
VARIABLES = {
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_dynamic_rules_filename": f"{{folder}}/{FILE}",
}
FACTS = LIBRARIES["openmpi"].rules
FAN = 4  # of chains and trees, as with the variables of an algorithm
LARGEST = (1 << 63) - 1  # bytes: a larger number is cut by the parser
Steps = list[tuple[int, Candidate]]
"""From how many bytes on, which candidate."""


def write_openmpi(
    choices: Sequence[Choice], version: tuple[int, int], comms: Comms, called: Called
) -> RuleSet:
    """Return the rules for the choices that such a file can express without changing any other case."""
    if version >= (6, 0):
        reason = "the numbers and message sizes of Open MPI 6 were not compared with the library"
        return RuleSet(refused=[(choice, reason) for choice in choices])
    groups, refused = by_size(choices, comms, called)
    steps: dict[Group, Steps] = {}
    kept = []
    for key, group in sorted(groups.items()):
        reason = why_not(*key, group, called)
        if reason:
            refused += [(choice, reason) for choice in group.choices]
        else:
            steps[key] = steps_of(*key, group)
            kept += group.choices
    if not kept:
        return RuleSet(refused=refused)
    text = rules_text(steps)
    check(text, steps, comms)
    return RuleSet({FILE: text}, dict(VARIABLES), kept, refused)


def why_not(collective: str, size: int, group: Sorted, called: Called) -> str:
    """Return why no rule can express a group; empty if one can."""
    if collective not in FACTS:
        return "Open MPI's rules have no number for this collective"
    if size != 2 and any(candidate.name == "two_proc" for candidate in group.candidates.values()):
        return "this algorithm fails on more than two processes"
    meaning = FACTS[collective][1]
    if meaning in ("none", "apart") and not is_for_all_calls(collective, group, called, size):
        why = (
            "Open MPI finds the rule by bytes that the ranks of a call may compute differently"
            if meaning == "apart"
            else "Open MPI finds the rule without the message size"
        )
        return f"{why}, so that a rule counts for all sizes, and not all have this choice"
    if meaning in ("block", "blocks") and min(group.candidates) < 0:
        return "Open MPI finds the rule by the message size, which is unknown"
    return ""


def steps_of(collective: str, size: int, group: Sorted) -> Steps:
    """Return the rules of a communicator size, which begin with 0 bytes.

    >>> from commlens.tune.rules.rule_set import Sorted
    >>> ring = Candidate(4, "ring")
    >>> [(low, one.number) for low, one in steps_of("allgather", 3, Sorted({5: ring}))]
    [(0, 0), (48, 4), (96, 0)]
    """
    meaning = FACTS[collective][1]
    if meaning in ("none", "apart"):
        return [(0, next(iter(group.candidates.values())))]
    factor = size if meaning == "blocks" else 1
    starts: dict[int, Candidate] = {0: DEFAULT}
    for bin, candidate in sorted(group.candidates.items()):
        low, high = BinRange(bin, bin).bounds
        starts[low * factor] = candidate
        if high is not None:
            starts[(high + 1) * factor] = DEFAULT
    return sorted((low, candidate) for low, candidate in starts.items() if low <= LARGEST)


def rules_text(steps: Mapping[Group, Steps]) -> str:
    """Return the file: each size with rules lies between sizes with the library's own choice."""
    collectives = sorted({collective for collective, _ in steps}, key=lambda name: FACTS[name][0])
    lines = ["# Written by commlens tune.", f"{len(collectives)}  # collectives"]
    for collective in collectives:
        of_size: dict[int, Steps] = {0: [(0, DEFAULT)]}
        sizes = sorted(size for name, size in steps if name == collective)
        for size in sizes:
            of_size[size] = steps[collective, size]
            of_size.setdefault(size + 1, [(0, DEFAULT)])
        lines += [f"{FACTS[collective][0]}  # {collective}", f"{len(of_size)}  # communicator sizes"]
        for size, rules in sorted(of_size.items()):
            lines += [f"{size} {len(rules)}  # processes, rules: bytes, algorithm, fan, segment"]
            lines += [rule_text(low, candidate) for low, candidate in rules]
    return "\n".join([*lines, ""])


def rule_text(low: int, candidate: Candidate) -> str:
    """Return one rule."""
    fan = FAN if candidate.number else 0
    return f"{low} {candidate.number} {fan} {candidate.segment_bytes}"


def check(text: str, steps: Mapping[Group, Steps], comms: Comms) -> None:
    """Ask the model of the parser what the file does, for the sizes of the profile and those beside the rules.

    Raises
    ------
    CommlensError
        The file would do something else than was chosen.
    """
    table = parse(text)
    sizes = {size for _, size in comms} | {size + way for _, size in steps for way in (-1, 0, 1)}
    for collective, (number, _) in FACTS.items():
        for size in sizes:
            rules = steps.get((collective, size), [(0, DEFAULT)])
            for bytes in probes(rules):
                wanted = [candidate for low, candidate in rules if low <= bytes][-1]
                got = select(table, number, size, bytes)
                if got[::2] != (wanted.number, wanted.segment_bytes):
                    raise CommlensError(
                        f"the rules for {collective} on {size} processes and {bytes} bytes would choose {got[0]}, "
                        f"not {wanted.number}; this is a bug in commlens"
                    )


def probes(rules: Steps) -> Iterable[int]:
    """Return the bytes at which something changes or could change."""
    bounds = {low for low, _ in rules} | {1 << bin for bin in range(LARGEST_BIN)}
    return sorted(
        {bytes for bound in bounds for bytes in (bound - 1, bound, bound + 1) if 0 <= bytes <= LARGEST}
    )
