# SPDX-License-Identifier: Apache-2.0
"""The rules of what was measured, in a folder; `proof` has the runs of the application that prove them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from commlens.algorithms.calls import collective_of
from commlens.base.errors import CommlensError
from commlens.tune.candidates import is_openmpi
from commlens.tune.families import RULES as BY_FAMILY
from commlens.tune.families import write_family_rules
from commlens.tune.han import families_across, han_collectives
from commlens.tune.model import Case, Choice
from commlens.tune.rules import RuleSet, write_rules
from commlens.tune.rules.mpich import FILES as BY_TABLE
from commlens.tune.rules.openmpi import FILE as BY_SIZE

PAGE = "rules.md"
BEHIND = "on several nodes coll/han comes before a rule by size"

CALLED_SQL = """\
SELECT DISTINCT comm.family, comm.name, op.name, comm.size, key.bin
  FROM key JOIN comm ON comm.id = key.comm JOIN op ON op.id = key.op
 WHERE comm.kind = 'intra' AND comm.size > 1"""

COMMS_SQL = "SELECT DISTINCT family, size FROM comm WHERE kind = 'intra' ORDER BY family, size"


Place = tuple[str, str, int]
"""Name of the family, collective as in a Case, and size bin."""


def called_cases(connection: sqlite3.Connection) -> list[Case]:
    """Return all collectives that a profile has, whether worth trying or not; without their mean message sizes."""
    found = []
    for family, name, operation, size, bin in connection.execute(CALLED_SQL):
        collective = collective_of(operation)
        # Other forms of a collective choose their algorithms by themselves.
        if collective is not None and operation == f"MPI_{collective.capitalize()}":
            found.append(Case(family, name, collective, size, bin, 0))
    return found


def make_rules(
    connection: sqlite3.Connection, choices: Sequence[Choice], library: str, module: str = ""
) -> RuleSet:
    """Return the rules for the choices: by size where a rule counts for nothing else, the others by family."""
    comms = [(int(family), int(size)) for family, size in connection.execute(COMMS_SQL)]
    before, across = han_collectives(connection, library), families_across(connection)
    behind = [one for one in choices if one.case.collective in before and one.case.family in across]
    by_size = [one for one in choices if one not in behind]
    rules = write_rules(by_size, library, comms, called_cases(connection), module)
    reasons = {**dict(rules.refused), **dict.fromkeys(behind, BEHIND)}
    if not reasons or not is_openmpi(library):
        return rules
    families = write_family_rules(connection, list(reasons), library)
    refused = [(choice, f"{reasons[choice]}; {reason}") for choice, reason in families.refused]
    return RuleSet(
        {**rules.files, **families.files},
        {**rules.variables, **families.variables},
        rules.kept + families.kept,
        refused,
    )


def place_of(case: Case) -> Place:
    """Return which calls a case is about, without the size of the communicator."""
    return case.communicator, case.collective, case.bin


def without(choices: Sequence[Choice], slower: Collection[Place]) -> list[Choice]:
    """Return the choices without those whose calls became slower."""
    return [choice for choice in choices if place_of(choice.case) not in slower]


def store_rules(rules: RuleSet, page: str, folder: Path) -> None:
    """Write the files of the rules and the page beside them; remove those of former rules.

    Raises
    ------
    CommlensError
        The folder cannot be written.
    """
    remove_rules(folder)
    for name, text in {**rules.files, PAGE: page}.items():
        try:
            (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommlensError(f"{folder / name}: cannot be written: {error.strerror}") from None


def has_rules(rules: RuleSet, folder: Path) -> bool:
    """Return whether the folder has the files of these rules, and no other ones."""
    for name in (BY_SIZE, BY_FAMILY, *BY_TABLE):
        try:
            found = (folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            found = None
        except (OSError, UnicodeDecodeError):
            return False
        if found != rules.files.get(name):
            return False
    return True


def remove_rules(folder: Path) -> None:
    """Remove the files of rules, so that nobody uses those that were not proven."""
    for name in (BY_SIZE, BY_FAMILY, *BY_TABLE):
        with suppress(OSError):
            (folder / name).unlink()
