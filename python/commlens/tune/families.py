# SPDX-License-Identifier: Apache-2.0
"""Writes the choices for families of communicators as rules of COMMLENS_TUNE (docs/decisions/0031-per-communicator.md)."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence

from commlens.tune._tuned import TUNED
from commlens.tune.han import PRIORITY, families_across, han_collectives
from commlens.tune.model import Choice
from commlens.tune.rules.rule_set import RuleSet

Place = tuple[int, str]
"""Family and collective."""

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
_CALLED = """
SELECT DISTINCT c.family, o.name FROM key k JOIN comm c ON c.id = k.comm JOIN op o ON o.id = k.op WHERE c.kind = 'intra'
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


def _by_han(connection: sqlite3.Connection, library: str) -> dict[int, set[str]]:
    """Return the collectives that coll/han does on the communicators of each family: those on several nodes."""
    before, across = han_collectives(connection, library), families_across(connection)
    found: dict[int, set[str]] = defaultdict(set)
    for family, operation in connection.execute(_CALLED):
        if family in across:
            found[family] |= {operation.removeprefix("MPI_").lower()} & before
    return found


def _reason_against(
    connection: sqlite3.Connection, place: Place, same: Sequence[Choice], library: str, reason: str
) -> str:
    """Return why the choices for a family and a collective cannot be a rule; empty if they can.

    reason : why no line names the family
    """
    family, collective = place
    called = {row[1:] for row in connection.execute(_BINS, (collective,)) if row[0] == family}
    candidates = {choice.candidate for choice in same}
    if not library.startswith(("Open MPI v4.", "Open MPI v5.")):
        return "only Open MPI 4 and 5 choose per communicator"
    if reason:
        return reason
    if len(candidates) != 1 or same[0].candidate.number == 0:
        return "the sizes need different algorithms, and one counts for all"
    if same[0].candidate.name == "two_proc" and any(choice.case.comm_size != 2 for choice in same):
        return "two_proc is for communicators of two processes"
    if called != {(choice.case.comm_size, choice.case.bin) for choice in same}:
        return "the algorithm is not known to be faster for all sizes with calls"
    return ""


def write_family_rules(connection: sqlite3.Connection, choices: Sequence[Choice], library: str) -> RuleSet:
    """Write rules that count for families of communicators.

    A forced algorithm counts for all sizes of communicators and messages of the family. So the choices for a family and
    a collective are kept only if all name one candidate, and there is one for every communicator size and size bin with
    calls. On several nodes, coll/han is switched off for the family, if all that it would do there has such a choice.
    """
    by_place: dict[Place, list[Choice]] = defaultdict(list)
    for choice in choices:
        by_place[choice.case.family, choice.case.collective].append(choice)
    families, by_han = _Families(connection), _by_han(connection, library)
    lines = {place: families.lines(place[0]) for place in by_place}
    reasons = {
        place: _reason_against(connection, place, same, library, lines[place][1])
        for place, same in by_place.items()
    }
    good = {place for place, reason in reasons.items() if not reason}
    kept, refused = [], []
    named: dict[str, None] = {}
    settings: list[str] = []
    for place, same in sorted(by_place.items()):
        family, collective = place
        is_by_han = collective in by_han.get(family, ())
        others = sorted(name for name in by_han.get(family, ()) if (family, name) not in good)
        if not reasons[place] and is_by_han and others:
            names = ", ".join(f"MPI_{name.capitalize()}" for name in others)
            reasons[place] = f"without coll/han, other calls would change: {names}"
        if reasons[place]:
            refused += [(choice, reasons[place]) for choice in same]
            continue
        named.update(dict.fromkeys(lines[place][0]))
        kept += same
        candidate, variable = same[0].candidate, f"coll_tuned_{collective}_algorithm"
        settings.append(f"set f{family} {variable} {candidate.number}")
        if candidate.segment_bytes:
            settings.append(f"set f{family} {variable}_segmentsize {candidate.segment_bytes}")
        if is_by_han:
            settings.append(f"set f{family} {PRIORITY} 0")
    if not kept:
        return RuleSet({}, {}, kept, refused)
    text = "\n".join(["commlens-tune 1", *named, *dict.fromkeys(settings)]) + "\n"
    variables = {"COMMLENS_TUNE": f"{{folder}}/{RULES}", "OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
    return RuleSet({RULES: text}, variables, kept, refused)
