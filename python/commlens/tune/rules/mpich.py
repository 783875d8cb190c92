# SPDX-License-Identifier: Apache-2.0
"""Writes the variables of MPICH that choose the algorithm of a collective for all communicators.

MPICH's JSON file replaces all choices of the library, those for other collectives, too, so that a short file is not
possible (docs/decisions/0030-rules.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from commlens.algorithms.offered import offered
from commlens.tune.model import Choice
from commlens.tune.rules.rule_set import Called, Comms, RuleSet, by_size, is_for_all_calls

IN_SHARED_MEMORY = ("allreduce", "barrier", "bcast", "reduce")
"""Collectives for which MPICH has algorithms in shared memory, which come before the choice of the others."""


def write_mpich(choices: Sequence[Choice], library: str, comms: Comms, called: Called) -> RuleSet:
    """Return the variables for the collectives all of whose calls have one choice."""
    groups, refused = by_size(choices, comms, called)
    rules = RuleSet(refused=refused)
    for collective in sorted({name for name, _ in groups}):
        of_size = {size: group for (name, size), group in groups.items() if name == collective}
        candidates = {one for group in of_size.values() for one in group.candidates.values()}
        sizes = {size for name, size in called if name == collective} or {
            size for _, size in comms if size > 1
        }
        offer = offered(library, collective)
        those = [choice for _, group in sorted(of_size.items()) for choice in group.choices]
        is_complete = sizes <= of_size.keys() and all(
            is_for_all_calls(collective, group, called, size) for size, group in of_size.items()
        )
        if len(candidates) != 1 or not is_complete:
            reason = "MPICH's variable counts for all communicators and message sizes, and not all have this choice"
            refused += [(choice, reason) for choice in those]
        elif offer is None or (name := next(iter(candidates)).name) not in offer.names:
            refused += [(choice, "this MPICH does not have the algorithm") for choice in those]
        else:
            rules.variables[offer.variable] = name
            if collective in IN_SHARED_MEMORY:
                rules.variables[offer.variable.replace("_INTRA_", "_POSIX_INTRA_")] = "mpir"
            rules.kept.extend(those)
    return rules
