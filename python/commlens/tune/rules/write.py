# SPDX-License-Identifier: Apache-2.0
"""Writes choices for the MPI library of a run."""

from __future__ import annotations

from collections.abc import Sequence

from commlens.algorithms._offered import LIBRARIES
from commlens.algorithms.offered import library_of
from commlens.tune.model import Case, Choice
from commlens.tune.rules.intel import write_intel
from commlens.tune.rules.mpich import write_mpich
from commlens.tune.rules.openmpi import write_openmpi
from commlens.tune.rules.rule_set import Comms, Group, RuleSet, group_of


def write_rules(
    choices: Sequence[Choice], library: str, comms: Comms, cases: Sequence[Case] = (), module: str = ""
) -> RuleSet:
    """Return the rules that change exactly the chosen cases, and the choices that no rule can express.

    Parameters
    ----------
    library : str
        First line of MPI_Get_library_version.
    comms : sequence of (int, int)
        Family and size of all intracommunicators of the profile.
    cases : sequence of Case
        All collectives that the profile has, chosen or not. Without them, a rule that counts for all message sizes is
        written only where a collective has no message size.
    module : str
        File of the MPI library, whose tables rules for MPICH change; empty if unknown.
    """
    called: dict[Group, dict[int, set[int]]] = {}
    for case in cases:
        called.setdefault(group_of(case), {}).setdefault(case.bin, set()).add(case.family)
    found = library_of(library)
    if found is not None and found[0] is LIBRARIES["openmpi"]:
        return write_openmpi(choices, found[1], comms, called)
    if found is not None and found[0] is LIBRARIES["mpich"]:
        return write_mpich(choices, library, comms, called, module)
    if found is not None:
        return write_intel(choices, called)
    reason = "commlens writes no rules for this MPI library"
    return RuleSet(refused=[(choice, reason) for choice in choices])
