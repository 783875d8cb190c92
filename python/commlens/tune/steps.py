# SPDX-License-Identifier: Apache-2.0
"""The steps after the plan, on one folder: rules from what was measured, and runs of the application that prove them."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from commlens.algorithms.calls import collective_of
from commlens.base.errors import CommlensError
from commlens.base.progress import announced
from commlens.compare.model import Row, compare
from commlens.compare.read import read_run
from commlens.overhead import raw
from commlens.overhead.estimate import Cost
from commlens.overhead.legs import Tool, commlens_tool, find_stopwatch
from commlens.overhead.measure import Run, rounds
from commlens.reports.query import Selection
from commlens.tune import prove
from commlens.tune.candidates import is_openmpi
from commlens.tune.families import RULES as BY_FAMILY
from commlens.tune.families import write_family_rules
from commlens.tune.model import Case, Choice
from commlens.tune.rules import RuleSet, write_rules
from commlens.tune.rules.mpich import FILES as BY_TABLE
from commlens.tune.rules.openmpi import FILE as BY_SIZE

PROFILED = "default"
"""Name of the leg with commlens and without the rules; its profiles are compared with those of the tuned leg."""
PROFILES = "profiles"
PAGE = "rules.md"
WITHOUT_NUMBER = 1  # profiles of a leg that do not count: the first is of the warm-up

CALLED_SQL = """\
SELECT DISTINCT comm.family, comm.name, op.name, comm.size, key.bin
  FROM key JOIN comm ON comm.id = key.comm JOIN op ON op.id = key.op
 WHERE comm.kind = 'intra' AND comm.size > 1"""

COMMS_SQL = "SELECT DISTINCT family, size FROM comm WHERE kind = 'intra' ORDER BY family, size"


Place = tuple[str, str, int]
"""Name of the family, collective as in a Case, and size bin."""


@dataclass(frozen=True)
class Proof:
    """What the runs of the application showed.

    Attributes
    ----------
    runs : list of Run
    cost : Cost or None
        Of the leg with the rules, against runs without commlens and without rules.
    compared : list of (Place, Row)
        The comparison of the calls that the rules are for: time without and with them.
    """

    runs: list[Run]
    cost: Cost | None
    compared: list[tuple[Place, Row]]

    @property
    def rows(self) -> list[Row]:
        """The rows of the comparison."""
        return [row for _, row in self.compared]

    @property
    def faster(self) -> list[Row]:
        """The calls that take less time with certainty."""
        return [row for row in self.rows if row.is_significant and row.added_ns < 0]

    @property
    def slower(self) -> set[Place]:
        """The calls that take more time with certainty."""
        return {place for place, row in self.compared if row.is_significant and row.added_ns > 0}

    @property
    def is_kept(self) -> bool:
        """Whether the run, or one of the calls, is faster with certainty, and neither the run nor a call is slower."""
        if self.slower:
            return False
        if prove.is_faster(self.cost):
            return True
        if self.cost is None or self.cost.crashed or self.cost.ratio is None:
            return False
        is_slower = self.cost.ratio.is_resolved and self.cost.ratio.value > 0
        return bool(self.faster) and not is_slower


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
    rules = write_rules(choices, library, comms, called_cases(connection), module)
    if not rules.refused or not is_openmpi(library):
        return rules
    families = write_family_rules(connection, [choice for choice, _ in rules.refused], library)
    reasons = dict(rules.refused)
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


def remove_rules(folder: Path) -> None:
    """Remove the files of rules, so that nobody uses those that were not proven."""
    for name in (BY_SIZE, BY_FAMILY, *BY_TABLE):
        with suppress(OSError):
            (folder / name).unlink()


def legs(rules: RuleSet, folder: Path, profiles: Path) -> list[Tool]:
    """Return the runs of a round beside the plain one: with commlens, and with commlens and the rules."""
    rule = {name: value.replace("{folder}", str(folder)) for name, value in rules.variables.items()}
    found = []
    for name, label, variables in ((PROFILED, "tuned=no", {}), (prove.TUNED, "tuned=yes", rule)):
        path = str(profiles / f"{name}.db").replace("%", "%%")
        settings = {"COMMLENS_OUTPUT": path, "COMMLENS_LABEL": label, **variables}
        found.append(commlens_tool(name, settings))
    return found


def prove_rules(
    rules: RuleSet, launch: Sequence[str], folder: Path, number: int, *, announce: bool = True
) -> Proof:
    """Run the application without and with the rules, and compare the runs.

    Each round has three runs in random order: without anything, with commlens, and with commlens and the rules. The first
    and the last decide about the whole run, so that a gain is one with the cost of commlens. The profiles decide about
    the calls that the rules are for.

    Raises
    ------
    CommlensError
        The application fails without the rules, or a run cannot be measured.
    """
    folder = folder.absolute()
    about = prove.subject(legs(rules, folder, folder), launch, rules.files)
    profiles = folder / PROFILES / hashlib.sha256(about.encode()).hexdigest()[:8]
    tools = legs(rules, folder, profiles)
    stopwatch = find_stopwatch()
    if not prove.kept_runs(about, profiles):
        shutil.rmtree(profiles, ignore_errors=True)
    try:
        profiles.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommlensError(f"{profiles}: cannot be created: {error.strerror}") from None

    def measured(more: int, seed: int) -> Iterable[Run]:
        runs = rounds(tools, launch, stopwatch, more, seed)
        return announced(runs, (more + 1) * 3, 3, "runs") if announce else runs

    runs = prove.prove(about, measured, profiles, number)
    prove.store(folder / prove.PROOF, raw.text(runs))
    return Proof(runs, prove.cost_of(runs), compared_rows(profiles, rules.kept))


def compared_rows(profiles: Path, choices: Sequence[Choice]) -> list[tuple[Place, Row]]:
    """Return the comparison of the calls that have a rule, from the profiles of both legs."""
    sides = [
        sorted(profiles.glob(f"{name}*.db"), key=_number)[WITHOUT_NUMBER:] for name in (PROFILED, prove.TUNED)
    ]
    if not all(sides):
        return []
    operations = tuple(sorted({f"MPI_{choice.case.collective.capitalize()}" for choice in choices}))
    selection = Selection(operations=operations)
    before, after = ([read_run(str(path), selection) for path in side] for side in sides)
    wanted = {place_of(choice.case) for choice in choices}
    found = compare(before, after)
    named = [
        ((found.nodes[row.node].first.name, collective_of(row.operation) or "", row.bin), row)
        for row in found.rows
        if row.node is not None
    ]
    return [(place, row) for place, row in named if place in wanted]


def _number(path: Path) -> int:
    """Return the number of a profile: 0 for tuned.db, 2 for tuned.2.db.

    >>> _number(Path("tuned.db")), _number(Path("tuned.12.db"))
    (0, 12)
    """
    parts = path.name.split(".")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else 0
