# SPDX-License-Identifier: Apache-2.0
"""Writes the variables of MPICH that choose the algorithm of a collective for all communicators.

MPICH's JSON file replaces all choices of the library, those for other collectives, too, so that a short file is not
possible (docs/decisions/0030-rules.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from commlens.algorithms.offered import offered
from commlens.tune.model import Choice
from commlens.tune.rules.rule_set import Comms, Group, RuleSet, by_size, is_for_all_calls


def write_mpich(
    choices: Sequence[Choice], library: str, comms: Comms, bins: Mapping[Group, Collection[int]]
) -> RuleSet:
    """Return the variables for the collectives all of whose calls have one choice."""
    groups, refused = by_size(choices, comms)
    sizes = {size for _, size in comms if size > 1}
    rules = RuleSet(refused=refused)
    for collective in sorted({name for name, _ in groups}):
        of_size = {size: group for (name, size), group in groups.items() if name == collective}
        candidates = {one for group in of_size.values() for one in group.candidates.values()}
        offer = offered(library, collective)
        those = [choice for _, group in sorted(of_size.items()) for choice in group.choices]
        is_complete = sizes <= of_size.keys() and all(
            is_for_all_calls(collective, group, bins, size) for size, group in of_size.items()
        )
        if len(candidates) != 1 or not is_complete:
            reason = "MPICH's variable counts for all communicators and message sizes, and not all have this choice"
            refused += [(choice, reason) for choice in those]
        elif offer is None or (name := next(iter(candidates)).name) not in offer.names:
            refused += [(choice, "this MPICH does not have the algorithm") for choice in those]
        else:
            rules.variables[offer.variable] = name
            rules.kept.extend(those)
    return rules
