# SPDX-License-Identifier: Apache-2.0
"""The steps of `commlens tune` after the plan: takes them one after the other, and prints the result of each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.text import Text

from commlens.base.errors import CommlensError
from commlens.base.interrupt import interruptible
from commlens.cli.tune import BUDGET_OF_JOBS, DEFAULT_BUDGET
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import fold
from commlens.tune import prove, steps
from commlens.tune.candidates import way_of
from commlens.tune.cases import read_cases
from commlens.tune.decide import compared, decide
from commlens.tune.model import Choice
from commlens.tune.plan import Plan
from commlens.tune.proof import (
    PROFILES,
    TOGETHER,
    Proof,
    has_begun,
    prove_settings,
    prove_together,
    rule_variables,
)
from commlens.tune.replay import measured_before, replay
from commlens.tune.rules import RuleSet, page
from commlens.tune.rules.page import NOT_TO_USE, USE
from commlens.tune.seen import seen_lines
from commlens.tune.settings import Tried, change_of, faster_trials, store_settings
from commlens.tune.shared import agreed, calls_of
from commlens.tune.steps_text import (
    draw_measured,
    kept_lines,
    measured_text,
    proof_lines,
    rules_lines,
    trial_lines,
)
from commlens.tune.switches import Trial

CHOOSES = re.compile(
    r"COMMLENS_TUNE|(OMPI_MCA_)?coll_tuned_(dynamic_rules_filename|\w+_algorithm)|MPIR_CVAR_\w+_(ALGORITHM|COMPOSITION|JSON_FILE)|I_MPI_ADJUST_\w+"
)
"""Variables that choose algorithms."""


@dataclass
class Steps:
    """What the steps need, and what they print.

    Attributes
    ----------
    profile : str
    plan : Plan
    trials : list of Trial
        Other variables to try.
    launch : list of str
        What `overhead.legs.split` returned.
    folder : Path
        Of the results.
    until : str
        The last step.
    budget : int or None
        Seconds of the replay; None: as usual with the library.
    runs : int
        Rounds of the proof.
    screen : Screen
    """

    profile: str
    plan: Plan
    trials: list[Trial]
    launch: list[str]
    folder: Path
    until: str
    budget: int | None
    runs: int
    screen: Screen = field(default_factory=Screen)

    def take(self) -> None:
        """Measure, choose, write and prove, as far as asked for.

        Raises
        ------
        CommlensError
            A step cannot be taken, or the user has stopped it.
        """
        refuse_rules_in_use((name for trial in self.trials for name in trial.environment), self.launch)
        try:
            with interruptible():
                choices, module = self.choose() if self.plan.worth else ([], "")
                if self.until != "replay":
                    self.prove(choices, module)
        except KeyboardInterrupt:
            raise CommlensError(
                f"stopped; {self.folder} has what was measured, and the same command goes on"
            ) from None

    def say(self, lines: Sequence[str], style: str = "") -> None:
        """Print lines, the first one in a style."""
        for i, line in enumerate(lines):
            self.screen.lines(fold("", line, self.screen.width, style if i == 0 else ""))

    def choose(self) -> tuple[list[Choice], str]:
        """Measure the cases of the plan, unless their proof has begun.

        Returns
        -------
        choices : list of Choice
        module : str
            Path of the MPI library that the replay loaded; empty if it is not known.
        """
        # A profile is opened for each step: a query may not take as long as a step does.
        with open_profile(self.profile) as connection:
            cases = read_cases(connection, self.plan)
        # More measurements may change a choice, and then the runs of the proof would count no more.
        measured = measured_before(cases, self.folder) if has_begun(self.folder) else None
        if measured is None:
            usual = BUDGET_OF_JOBS if way_of(self.plan.library) == "job" else DEFAULT_BUDGET
            measured = replay(cases, self.launch, self.folder, budget_s=self.budget or usual)
        else:
            measured.notes.append(
                f"Not measured again, because the proof has begun; remove {self.folder / PROFILES} to measure more."
            )
        changes = compared(measured)
        calls = calls_of(self.plan, measured.cases)
        choices = agreed(measured, changes, decide(measured, changes), calls, self.plan.library)
        self.screen.lines([Text("")])
        self.say([measured_text(measured, changes, choices, self.plan)], "bold")
        self.screen.lines([Text(""), *draw_measured(measured, changes, choices).lines(self.screen.width)])
        for note in measured.notes:
            self.screen.lines(fold("", note, self.screen.width, "dim"))
        return choices, measured.module

    def prove(self, choices: list[Choice], module: str) -> None:
        """Write the rules, and prove them and the other settings, if asked for."""
        trials, tried = (self.trials if self.until == "proof" else []), list[Tried]()
        while True:
            with open_profile(self.profile) as connection:
                rules = steps.make_rules(connection, choices, self.plan.library, module)
            text = page(rules, self.plan.library, self.folder.absolute())
            self.make_folder()
            if not steps.has_rules(rules, self.folder):
                store_settings({}, self.folder)  # they name files that change now
            steps.store_rules(rules, text, self.folder)
            lines = rules_lines(rules, self.folder)
            self.screen.lines([Text("")] if lines else [])
            self.say(lines)
            if not (rules.kept or trials) or self.until != "proof":
                if tried:
                    self.store_page(rules, text, self.show_kept(rules, None, tried), is_kept=True)
                break
            store_settings({}, self.folder)  # of a former proof
            number = self.rounds(len(trials) + bool(rules.kept))
            proof = prove_settings(rules, trials, self.launch, self.folder, number)
            tried, trials = tried or proof.trials, []
            lines = self.show_proof(rules, proof) if rules.kept else []
            rest = steps.without(choices, proof.slower)
            is_last = not proof.slower or not rest
            if is_last:
                lines += self.show_kept(rules, proof, tried)
            self.store_page(rules, text, lines, is_kept=proof.is_kept or not rules.kept)
            if is_last:
                break
            self.say(["Rules that make a call slower are taken out, and the others proven again."])
            choices = rest

    def make_folder(self) -> None:
        """Create the folder of the results."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommlensError(f"{self.folder}: cannot be created: {error.strerror}") from None

    def rounds(self, tested: int) -> int:
        """Return the number of rounds of a proof of so many settings; say so if it is more than asked for."""
        least = prove.fewest(tested)
        if self.runs < least:
            self.say([f"{least} runs each: fewer cannot show that one of {tested} settings is faster"])
        return max(self.runs, least)

    def show_proof(self, rules: RuleSet, proof: Proof) -> list[str]:
        """Print and return what the runs showed of the rules, and which algorithms ran."""
        lines = proof_lines(proof)
        self.screen.lines([Text("")])
        self.say(lines, "bold")
        variables = rule_variables(rules, self.folder)
        seen = seen_lines(rules.kept, variables, self.plan.library, self.profile, self.launch, proof.folder)
        self.say(seen)
        if not proof.is_kept:
            seen.append("the rules are not kept: do not use the variables above")
            self.say(seen[-1:])
        return lines + seen

    def show_kept(self, rules: RuleSet, proof: Proof | None, tried: Sequence[Tried]) -> list[str]:
        """Print and return what the runs showed of the other settings, and store what is kept."""
        lines = trial_lines(tried)
        self.screen.lines([Text("")] if lines else [])
        self.say(lines)
        faster = faster_trials(tried)
        single = [(cost, trial.environment) for trial, cost in faster]
        if proof is not None and proof.is_kept:
            single.append((proof.cost, rule_variables(rules, self.folder)))
        single.sort(key=lambda one: change_of(one[0]))
        best = single[0][1] if single else {}
        kept, together = best, None
        if len(single) > 1:
            every = {name: value for _, variables in single for name, value in variables.items()}
            found = prove_together(every, best, rules, self.launch, self.folder, self.rounds(2))
            together = found.get(TOGETHER)
            is_better = change_of(together) <= change_of(found.get("best"))
            kept = every if prove.is_faster(together) and is_better else best
        ends = kept_lines(kept, len(single), together, is_all=kept != best)
        path = store_settings(kept, self.folder)
        ends += [f"{path} has the settings to use"] if path else []
        self.say(ends)
        return lines + ends

    def store_page(self, rules: RuleSet, text: str, lines: Sequence[str], *, is_kept: bool) -> None:
        """Store the page with what the runs showed; remove the rules if they are not kept."""
        if not is_kept:
            text = text.replace(USE, NOT_TO_USE)
        shown = [
            text,
            "## What runs of the application show",
            "",
            *(f"- {line.strip()}" for line in lines),
            "",
        ]
        steps.store_rules(rules, "\n".join(shown), self.folder)
        if not is_kept:
            steps.remove_rules(self.folder)


def refuse_rules_in_use(tried: Iterable[str] = (), launch: Sequence[str] = ()) -> None:
    """Refuse an environment that chooses algorithms: the runs without rules would have them, too.

    tried : names of other variables that runs are to try
    launch : words of the command, which may set variables

    Raises
    ------
    CommlensError
        Such a variable is set.
    """
    other = set(tried)
    used = sorted(name for name in os.environ if CHOOSES.fullmatch(name) or name in other)
    parts = {part for word in launch for part in re.split(r"[,=\s]", word)}
    given = sorted(part for part in parts if CHOOSES.fullmatch(part) or part in other)
    if given:
        raise CommlensError(f"leave out {', '.join(given)}: all runs would use it, also those without rules")
    if used:
        raise CommlensError(f"unset {', '.join(used)}: the runs without rules would use them, too")
