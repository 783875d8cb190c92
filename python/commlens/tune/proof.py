# SPDX-License-Identifier: Apache-2.0
"""The runs of the application that prove rules and other settings, and the comparison of their profiles."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from commlens.algorithms.calls import collective_of
from commlens.base.errors import CommlensError
from commlens.base.progress import announced
from commlens.compare.model import Row, compare
from commlens.compare.read import read_run
from commlens.overhead import raw
from commlens.overhead.estimate import Cost, whole_rounds
from commlens.overhead.legs import Tool, commlens_tool, find_stopwatch
from commlens.overhead.measure import Run, rounds
from commlens.reports.query import Selection
from commlens.tune import prove
from commlens.tune.model import Choice
from commlens.tune.rules import RuleSet
from commlens.tune.steps import Place, place_of
from commlens.tune.switches import Trial

PROFILED = "default"
"""Name of the leg with commlens and without the rules; its profiles are compared with those of the tuned leg."""
TOGETHER = "together"
"""Name of the leg with everything that is kept."""
PROFILES = "profiles"
ENDINGS = (".db", ".commlens")
"""Of a profile: one file, or a folder of shards."""


@dataclass(frozen=True)
class Proof:
    """What the runs of the application showed.

    Attributes
    ----------
    runs : list of Run
    folder : Path
        Of these runs and their profiles.
    cost : Cost or None
        Of the leg with the rules, against runs without commlens and without rules; None without rules.
    compared : list of (Place, Row)
        The comparison of the calls that the rules are for: time without and with them.
    trials : list of (Trial, Cost or None)
        The other settings that were tried, each alone, against the same runs.
    """

    runs: list[Run]
    folder: Path
    cost: Cost | None
    compared: list[tuple[Place, Row]] = field(default_factory=list)
    trials: list[tuple[Trial, Cost | None]] = field(default_factory=list)

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


def rule_variables(rules: RuleSet, folder: Path) -> dict[str, str]:
    """Return the variables that make a job use the rules in a folder."""
    return {
        name: value.replace("{folder}", str(folder.absolute())) for name, value in rules.variables.items()
    }


def leg_name(trial: Trial) -> str:
    """Return the name of the leg of a trial."""
    return f"{trial.variable}-{trial.value}"


def legs(rules: RuleSet, trials: Sequence[Trial], folder: Path, profiles: Path) -> list[Tool]:
    """Return the runs of a round beside the plain one.

    With rules, one with commlens, and one with commlens and the rules. Each trial has one, without commlens.
    """
    found = []
    if rules.kept:
        for name, label, variables in (
            (PROFILED, "tuned=no", {}),
            (prove.TUNED, "tuned=yes", rule_variables(rules, folder)),
        ):
            path = str(profiles / f"{name}.db").replace("%", "%%")
            settings = {"COMMLENS_OUTPUT": path, "COMMLENS_LABEL": label, **variables}
            found.append(commlens_tool(name, settings))
    return found + [Tool(leg_name(trial), variables=trial.environment) for trial in trials]


def prove_settings(
    rules: RuleSet,
    trials: Sequence[Trial],
    launch: Sequence[str],
    folder: Path,
    number: int,
    *,
    announce: bool = True,
) -> Proof:
    """Run the application without and with the rules and each trial, and compare the runs.

    Each round has its runs in random order: without anything, with commlens, with commlens and the rules, and with the
    variables of each trial. Those without anything decide about the whole run, so that the gain of the rules is one with
    the cost of commlens. The profiles decide about the calls that the rules are for.

    Raises
    ------
    CommlensError
        The application fails without any settings, or a run cannot be measured.
    """
    folder = folder.absolute()
    about = prove.subject(legs(rules, trials, folder, folder), launch, rules.files)
    profiles = proof_folder(folder, about)
    tools = legs(rules, trials, folder, profiles)
    runs = made_runs(tools, launch, about, profiles, number, announce=announce)
    prove.store(folder / prove.PROOF, raw.text([run for run in runs if run.round > 0]))
    names = [*([prove.TUNED] if rules.kept else []), *map(leg_name, trials)]
    costs = prove.costs_of(runs, names)
    return Proof(
        runs,
        profiles,
        costs.get(prove.TUNED),
        compared_rows(profiles, runs, rules.kept) if rules.kept else [],
        [(trial, costs.get(leg_name(trial))) for trial in trials],
    )


def prove_together(
    variables: Mapping[str, str],
    best: Mapping[str, str],
    rules: RuleSet,
    launch: Sequence[str],
    folder: Path,
    number: int,
    *,
    announce: bool = True,
) -> dict[str, Cost]:
    """Run the application plain, with the best setting alone, and with all; return the costs of the last two.

    Settings that each make a run faster need not do so together.

    Parameters
    ----------
    rules : those whose files the variables may name

    Returns
    -------
    dict
        By name of the leg: "best" and TOGETHER.
    """
    folder = folder.absolute()
    tools = [leg("best", best), leg(TOGETHER, variables)]
    about = prove.subject(tools, launch, rules.files)
    runs = made_runs(tools, launch, about, proof_folder(folder, about), number, announce=announce)
    return prove.costs_of(runs, [tool.name for tool in tools])


def leg(name: str, variables: Mapping[str, str]) -> Tool:
    """Return a leg with these variables: with commlens if they need it, its profile not kept."""
    return commlens_tool(name, variables) if "COMMLENS_TUNE" in variables else Tool(name, variables=variables)


def proof_folder(folder: Path, about: str) -> Path:
    """Return the folder of the runs of a proof about something."""
    return folder / PROFILES / hashlib.sha256(about.encode()).hexdigest()[:8]


def has_begun(folder: Path) -> bool:
    """Whether the folder has runs of a proof of rules."""
    return any(
        prove.is_about(proof.with_name(prove.SUBJECT), prove.TUNED)
        for proof in (folder / PROFILES).glob(f"*/{prove.PROOF}")
    )


def made_runs(
    tools: Sequence[Tool],
    launch: Sequence[str],
    about: str,
    profiles: Path,
    number: int,
    *,
    announce: bool,
) -> list[Run]:
    """Return the runs of a number of rounds, of which those that the folder has are not made again."""
    stopwatch = find_stopwatch()
    if not prove.kept_runs(about, profiles):
        shutil.rmtree(profiles, ignore_errors=True)
    try:
        profiles.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommlensError(f"{profiles}: cannot be created: {error.strerror}") from None

    def measured(more: int, done: int) -> Iterable[Run]:
        runs = filed(rounds(tools, launch, stopwatch, more, seed=1 + done, may_fail=True), profiles, done)
        number_of_legs = len(tools) + 1
        return announced(runs, (more + 1) * number_of_legs, number_of_legs, "runs") if announce else runs

    return prove.prove(about, measured, profiles, number)


def filed(runs: Iterable[Run], profiles: Path, done: int) -> Iterator[Run]:
    """Yield the runs; give the profile of each the number of its round, and remove those that do not count.

    done : number of rounds before these
    """
    for run in runs:
        for ending in ENDINGS:
            path = profiles / f"{run.tool}{ending}"
            if run.round > 0:
                remove(
                    numbered := profiles / f"{run.tool}.{done + run.round}{ending}"
                )  # of an interrupted round
                if not run.failure and os.path.lexists(path):
                    path.rename(numbered)
            remove(path)
        yield run


def remove(path: Path) -> None:
    """Remove a profile, which is a file or a folder of shards; there may be none."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def compared_rows(profiles: Path, runs: Sequence[Run], choices: Sequence[Choice]) -> list[tuple[Place, Row]]:
    """Return the comparison of the calls that have a rule, from the profiles of both legs in the rounds that count."""
    counting = [number for number, _ in enumerate(whole_rounds(runs), 1)]
    sides = [
        [
            path
            for number in counting
            for ending in ENDINGS
            if (path := profiles / f"{name}.{number}{ending}").exists()
        ]
        for name in (PROFILED, prove.TUNED)
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
