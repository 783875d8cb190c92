# SPDX-License-Identifier: Apache-2.0
"""Writes the choices for families of communicators as rules of COMMLENS_TUNE (docs/decisions/0031-per-communicator.md)."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence

from commlens.tune._tuned import TUNED
from commlens.tune.model import Choice
from commlens.tune.rules.rule_set import RuleSet

RULES = "families.rules"
"""Name of the rules file."""

_FAMILIES = """
SELECT DISTINCT c.family, c.name LIKE 'W%', p.family, o.name, s.build_id, s.offset
FROM comm c LEFT JOIN comm p ON p.id = c.parent LEFT JOIN op o ON o.id = c.creator
LEFT JOIN callsite s ON s.id = c.callsite
WHERE c.kind = 'intra'
"""
_BINS = """
SELECT DISTINCT c.family, c.size, k.bin FROM key k JOIN comm c ON c.id = k.comm JOIN op o ON o.id = k.op
WHERE lower(o.name) = 'mpi_' || ?
"""


class _Families:
    """The families of a profile, and the lines that name them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute(_FAMILIES).fetchall()
        self._facts = {row[0]: row[1:] for row in rows}
        self._clashes: dict[object, set[int]] = defaultdict(set)
        for family, _, *place in rows:
            self._clashes[tuple(place)].add(family)

    def lines(self, family: int) -> tuple[list[str], str]:
        """Return the lines that name a family and its parents, or the reason why none can."""
        _, parent, procedure, build_id, offset = self._facts.get(family, (0, None, None, None, None))
        if procedure not in TUNED or parent is None or parent not in self._facts:
            return [], "communicators of this origin cannot be tuned one by one"
        if not build_id or any(letter.isspace() for letter in build_id):
            return [], "the module with the call site has no build id"
        if len(self._clashes[parent, procedure, build_id, offset]) > 1:
            return [], "another family is made at the same place, on another call path"
        lines: list[str] = []
        name = "world"
        if not self._facts[parent][0]:
            lines, reason = self.lines(parent)
            name = f"f{parent}"
            if reason:
                return [], reason
        return [*lines, f"family f{family} {name} {procedure} {build_id}+0x{offset:x}"], ""


def write_family_rules(connection: sqlite3.Connection, choices: Sequence[Choice], library: str) -> RuleSet:
    """Write rules that count for families of communicators.

    A forced algorithm counts for all sizes of communicators and messages of the family. So the choices for a family and
    a collective are kept only if all name one candidate, and there is one for every communicator size and size bin with
    calls.
    """
    by_place: dict[tuple[int, str], list[Choice]] = defaultdict(list)
    for choice in choices:
        by_place[choice.case.family, choice.case.collective].append(choice)
    families, kept, refused = _Families(connection), [], []
    named: dict[str, None] = {}
    settings: list[str] = []
    for (family, collective), same in sorted(by_place.items()):
        lines, reason = families.lines(family)
        called = {row[1:] for row in connection.execute(_BINS, (collective,)) if row[0] == family}
        candidates = {choice.candidate for choice in same}
        if not library.startswith(("Open MPI v4.", "Open MPI v5.")):
            reason = "only Open MPI 4 and 5 choose per communicator"
        elif len(candidates) != 1 or same[0].candidate.number == 0:
            reason = reason or "the sizes need different algorithms, and one counts for all"
        elif same[0].candidate.name == "two_proc" and any(choice.case.comm_size != 2 for choice in same):
            reason = reason or "two_proc is for communicators of two processes"
        elif called != {(choice.case.comm_size, choice.case.bin) for choice in same}:
            reason = reason or "the algorithm is not known to be faster for all sizes with calls"
        if reason:
            refused += [(choice, reason) for choice in same]
            continue
        named.update(dict.fromkeys(lines))
        kept += same
        candidate, variable = same[0].candidate, f"coll_tuned_{collective}_algorithm"
        settings.append(f"set f{family} {variable} {candidate.number}")
        if candidate.segment_bytes:
            settings.append(f"set f{family} {variable}_segmentsize {candidate.segment_bytes}")
    if not kept:
        return RuleSet({}, {}, kept, refused)
    text = "\n".join(["commlens-tune 1", *named, *settings]) + "\n"
    variables = {"COMMLENS_TUNE": f"{{folder}}/{RULES}", "OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
    return RuleSet({RULES: text}, variables, kept, refused)
