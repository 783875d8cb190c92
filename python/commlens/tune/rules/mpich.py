# SPDX-License-Identifier: Apache-2.0
"""Writes choices for MPICH: changed copies of the selection tables of the library, or variables where it has none.

A rule in a table counts for one communicator size and size bin. A variable counts for all communicators and message sizes
(docs/decisions/0034-mpich-rules.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from commlens.algorithms.offered import library_of, offered
from commlens.base.errors import CommlensError
from commlens.selection.sizes import BinRange
from commlens.tune.candidates import composition_of
from commlens.tune.model import Choice
from commlens.tune.rules.mpich_model import Call, ask, calls
from commlens.tune.rules.mpich_tables import (
    LARGEST,
    TABLES,
    Library,
    Rule,
    Tree,
    algorithm_key,
    changed,
    composition_key,
    missing,
    read_library,
    text_of,
)
from commlens.tune.rules.rule_set import Called, Comms, Group, RuleSet, Sorted, by_size, is_for_all_calls

ALGORITHMS = "mpich.json"
COMPOSITIONS = "mpich-ch4.json"
FILES = {
    ALGORITHMS: "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE",
    COMPOSITIONS: "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE",
}
"""The files and the variables that name them."""

IN_SHARED_MEMORY = ("allreduce", "barrier", "bcast", "reduce")
"""Collectives for which MPICH has algorithms in shared memory, which come before the choice of the others."""

READ = (5, 0)  # the last version whose tables were read
Wanted = dict[str, dict[int, list[Rule]]]
"""The rules by collective and communicator size."""


def write_mpich(
    choices: Sequence[Choice], library: str, comms: Comms, called: Called, module: str
) -> RuleSet:
    """Return the rules for the choices: in tables of the library in the file `module`, or as variables."""
    groups, refused = by_size(choices, comms, called)
    known = library_of(library)
    tables = read_library(Path(module)) if module and known and known[1] <= READ else None
    if tables is None or known is None:
        return _variables(groups, refused, library, comms, called)
    in_tables = {group: those for group, those in groups.items() if group[0] in TABLES}
    others = {group: those for group, those in groups.items() if group[0] not in TABLES}
    rules = _tables(in_tables, refused, tables, known[1], called)
    rest = _variables(others, rules.refused, library, comms, called)
    return RuleSet(rules.files, {**rules.variables, **rest.variables}, rules.kept + rest.kept, rest.refused)


def _variables(
    groups: Mapping[Group, Sorted],
    refused: list[tuple[Choice, str]],
    library: str,
    comms: Comms,
    called: Called,
) -> RuleSet:
    """Return the variables for the collectives all of whose calls have one choice."""
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
            rules.variables.update((key, str(number)) for key, number in composition_of(library, collective))
            rules.kept.extend(those)
    return rules


def _tables(
    groups: Mapping[Group, Sorted],
    refused: list[tuple[Choice, str]],
    library: Library,
    version: tuple[int, int],
    called: Called,
) -> RuleSet:
    """Return the tables with a rule for each choice that one can name."""
    rules = RuleSet(refused=refused)
    wanted: Wanted = {}
    for (collective, size), group in sorted(groups.items()):
        for choice in group.choices:
            reason = missing(library, collective, size, choice.candidate.name)
            if not reason and version < TABLES[collective].since.get(choice.candidate.name, (0, 0)):
                reason = "the tables of this MPICH do not accept the parameters of this algorithm"
            is_one = TABLES[collective].bytes != "none" or is_for_all_calls(collective, group, called, size)
            if not reason and not is_one:
                reason = "the table compares no message size here, and not all sizes have this choice"
            rule = _rule(choice)
            if not reason and rule.high > LARGEST:
                reason = "the messages are too large for a condition of MPICH"
            if reason:
                refused.append((choice, reason))
                continue
            of_size = wanted.setdefault(collective, {}).setdefault(size, [])
            if rule not in of_size:
                of_size.append(rule)
            rules.kept.append(choice)
    if wanted:
        _store(rules, ALGORITHMS, library.algorithms, wanted)
        with_composition = {name: sizes for name, sizes in wanted.items() if composition_key(name)}
        if library.compositions is not None and with_composition:
            _store(rules, COMPOSITIONS, library.compositions, with_composition)
    return rules


def _rule(choice: Choice) -> Rule:
    """Return the rule for a choice, with the bytes that the table compares."""
    case = choice.case
    if (kind := TABLES[case.collective].bytes) == "none":
        return Rule(choice.candidate.name, 0, 0)
    low, high = BinRange(case.bin, case.bin).bounds
    factor = case.comm_size if kind == "total_msg_size" else 1
    return Rule(choice.candidate.name, low * factor, (LARGEST if high is None else high) * factor)


def _store(rules: RuleSet, name: str, table: Tree, wanted: Wanted) -> None:
    """Add a changed table to the rules."""
    found = table
    for collective, sizes in wanted.items():
        found = changed(found, collective, sizes, of_compositions=name == COMPOSITIONS)
    check(table, found, wanted, of_compositions=name == COMPOSITIONS)
    rules.files[name] = text_of(found)
    rules.variables[FILES[name]] = f"{{folder}}/{name}"


def check(table: Tree, found: Tree, wanted: Wanted, *, of_compositions: bool) -> None:
    """Compare a changed table with the library's own, by a model of MPICH: at and beside each size, for all kinds of calls.

    Raises
    ------
    CommlensError
        A rule does not count, or one counts for other calls.
    """
    for key, tree in table.items():
        collective = key.removeprefix("collective=")
        sizes = wanted.get(collective)
        if sizes is None:
            if found.get(key) != tree:
                raise CommlensError(f"a rule would change {collective}; this is a bug in commlens")
            continue
        values = {value for rules in sizes.values() for rule in rules for value in (rule.low, rule.high)}
        near = sorted({1, 2, 8, 1000, *(size + way for size in sizes for way in (-1, 0, 1))} - {0})
        for size in near:
            rules = sizes.get(size, [])
            factor = size if TABLES[collective].bytes == "total_msg_size" else 1
            limits = {0, 1 << 14, *(value // factor for value in values)}
            blocks = sorted({limit + way for limit in limits for way in (-1, 0, 1)} - {-1})
            for call in calls([size], blocks, str(tree) + str(found[key])):
                _compare(
                    collective,
                    call,
                    rules,
                    ask(table, collective, call),
                    ask(found, collective, call),
                    of_compositions,
                )


def _compare(
    collective: str,
    call: Call,
    rules: Sequence[Rule],
    own: tuple[str, tuple[str, ...]] | None,
    found: tuple[str, tuple[str, ...]] | None,
    of_compositions: bool,
) -> None:
    """Refuse a changed answer to a call without a rule, and another one than that of its rule."""
    facts = TABLES[collective]
    bytes = 0 if facts.bytes == "none" else call.block * (call.size if facts.bytes == "total_msg_size" else 1)
    rule = next((one for one in rules if one.low <= bytes <= one.high and not call.is_inter), None)
    needs = facts.needs.get(rule.name, ()) if rule else ()
    wanted = own
    has_all = all(_has(need, call.facts) for need in (*needs, *filter(None, [facts.bytes_need])))
    if rule and has_all:
        composition = composition_key(collective) if of_compositions else None
        parameters = () if composition else facts.parameters.get(rule.name, ())
        wanted = (composition or algorithm_key(collective, rule.name), parameters)
    if found != wanted:
        raise CommlensError(f"a rule for {collective} would count for other calls; this is a bug in commlens")


def _has(need: str, facts: frozenset[str]) -> bool:
    """Return whether a call has what an algorithm needs."""
    return {
        "comm_hierarchy=parent": "parent" in facts,
        "is_commutative=yes": "commutative" in facts,
        "is_op_built_in=yes": "built_in" in facts,
        "is_block_regular=yes": "regular" in facts,
        "is_sendbuf_inplace=no": "inplace" not in facts,
        "count>=pow2": "few" not in facts,
    }.get(need, True)
