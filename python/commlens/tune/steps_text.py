# SPDX-License-Identifier: Apache-2.0
"""Words and tables for the steps after the plan: what was measured, the rules, and what runs with them show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from commlens.base.counts import count_text
from commlens.compare.model import Row
from commlens.compare.text import bin_text
from commlens.overhead.estimate import Cost, Estimate
from commlens.render.table import Column, Table
from commlens.render.units import bytes_text, share_text, size_text, time_text
from commlens.selection.sizes import BinRange
from commlens.tune import prove
from commlens.tune.decide import Changes, round_medians
from commlens.tune.measurements import Measurements
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.plan import Plan
from commlens.tune.proof import Proof, rule_variables
from commlens.tune.rules import RuleSet
from commlens.tune.rules.page import scope_lines
from commlens.tune.settings import Tried, settings_text

MEASURED = (
    Column("communicator", right=False),
    Column("call", right=False),
    Column("size", right=False),
    Column("ranks"),
    Column("default"),
    Column("fastest", right=False),
    Column("takes"),
    Column("change"),
    Column("95 % interval", wide=1),
    Column("rounds", wide=2),
    Column("choice", right=False),
)


def candidate_text(candidate: Candidate) -> str:
    """Return the name of an algorithm, with its segment size if it has one."""
    if not candidate.segment_bytes:
        return candidate.name
    return f"{candidate.name}, segments of {bytes_text(candidate.segment_bytes)}"


def size_of(case: Case) -> str:
    """Return the message size of a case."""
    return "varies" if case.bin < 0 else size_text(*BinRange(case.bin, case.bin).bounds)


def percent(value: float) -> str:
    """Return a relative change.

    >>> percent(-0.123), percent(0.02)
    ('-12.3 %', '+2.0 %')
    """
    return f"{100 * value:+.1f} %"


def draw_measured(measured: Measurements, changes: Changes, choices: Sequence[Choice]) -> Table:
    """Return the table of the cases with the fastest algorithm of each, whether it is chosen or not."""
    table = Table(MEASURED)
    medians = round_medians(measured)
    chosen = {choice.case: choice for choice in choices}
    for i, case in enumerate(measured.cases):
        times = {
            number: median(medians[i, number].values())
            for number in range(len(measured.candidates[i]))
            if medians.get((i, number))
        }
        choice = chosen.get(case)
        best = _fastest(times, measured.candidates[i], choice)
        change, rounds = changes.get((i, best), (None, 0)) if best is not None else (None, 0)
        table.add(
            [
                case.communicator,
                f"MPI_{case.collective.capitalize()}",
                size_of(case),
                f"{case.comm_size:,}",
                time_text(round(times[0])) if 0 in times else "?",
                candidate_text(measured.candidates[i][best]) if best is not None else "?",
                time_text(round(times[best])) if best is not None else "?",
                *change_cells(change),
                f"{rounds:,}",
                "yes" if choice else "no",
            ]
        )
    return table


def _fastest(times: dict[int, float], candidates: Sequence[Candidate], choice: Choice | None) -> int | None:
    """Return the chosen candidate, or without a choice the one with the smallest median; None if none was measured."""
    if choice is not None:
        return candidates.index(choice.candidate)
    tried = [number for number in times if number > 0]
    return min(tried, key=times.__getitem__) if tried else None


def change_cells(change: Estimate | None) -> list[str]:
    """Return a change and its interval."""
    if change is None:
        return ["?", "?"]
    return [percent(change.value), f"{percent(change.low)} to {percent(change.high)}"]


def measured_text(measured: Measurements, changes: Changes, choices: Sequence[Choice], plan: Plan) -> str:
    """Return in one sentence what the replay found."""
    number = count_text(len(measured.times), "time")
    cases = count_text(len(measured.cases), "case")
    few = len(measured.cases) - len({case for case, _ in changes})
    rest = f"; {few:,} of {cases} were measured too seldom for a claim: use a longer --budget" if few else ""
    if choices:
        faster = sum(choice.high < 0 for choice in choices)  # others may share the rule of one
        saved = predicted_ns(plan, choices, measured.cases)
        of_run = f" ({share_text(saved / plan.run_ns)} of the run time)" if plan.run_ns else ""
        return (
            f"another algorithm is faster with certainty in {faster:,} of {cases} ({number} measured); expected to save "
            f"{time_text(round(saved))}{of_run}, sum over the ranks{rest}"
        )
    if not measured.cases:
        return "leave it: no case can be measured"
    if few == len(measured.cases):
        return f"undecided: {number} of {cases} are too few for any claim; use a longer --budget"
    return f"leave it: no algorithm is faster than the library's own choice with certainty ({number} measured){rest}"


def predicted_ns(plan: Plan, choices: Sequence[Choice], cases: Sequence[Case]) -> float:
    """Return the time that the choices save, sum over the ranks.

    It is a share of the operation time in the profile, the one that the replay measured. A place of the plan whose
    communicators have several sizes has a case for each; its time is divided equally.

    cases : all that were measured
    """
    times = {
        (place.row["family"], place.row["operation"].lower(), place.row["bin"]): place.operation_ns
        if place.operation_ns is not None
        else place.operation_max_ns
        for place in plan.places
    }
    saved = 0.0
    for choice in choices:
        place = _place(choice.case)
        sizes = sum(_place(case) == place for case in cases)
        saved -= times.get(place, 0) / sizes * choice.change
    return saved


def _place(case: Case) -> tuple[int, str, int]:
    return case.family, f"mpi_{case.collective}", case.bin


def rules_lines(rules: RuleSet, folder: Path) -> list[str]:
    """Return where the rules are, how to use them, and which choices none of them contains."""
    lines = []
    if rules.kept:
        names = ", ".join(str(folder / name) for name in rules.files)
        lines.append(f"rules for {count_text(len(rules.kept), 'case')}{': ' + names if names else ''}")
        lines += [f"  {line}" for line in variables_lines(rules, folder)]
        lines += scope_lines(rules)
    lines += [
        f"left out: MPI_{choice.case.collective.capitalize()} {size_of(choice.case)} on {choice.case.communicator}: {reason}"
        for choice, reason in rules.refused
    ]
    return lines


def variables_lines(rules: RuleSet, folder: Path) -> list[str]:
    """Return the variables that make a job use the rules."""
    return settings_text(rule_variables(rules, folder)).splitlines()


def proof_lines(proof: Proof) -> list[str]:
    """Return what the runs showed of the rules: of the whole run, then of each call with a rule."""
    return [verdict_text(proof), *(f"  {row_text(row)}" for row in proof.rows)]


def trial_lines(tried: Sequence[Tried]) -> list[str]:
    """Return what the runs showed of each other setting, in a sentence with a number."""
    return [
        f"{' '.join(settings_text(trial.environment).split())}: {prove.sentence(cost)}"
        for trial, cost in tried
    ]


def verdict_text(proof: Proof) -> str:
    """Return the result in one sentence with a number."""
    whole = prove.sentence(proof.cost)
    if proof.slower:
        calls = ", ".join(sorted({f"MPI_{place[1].capitalize()} on {place[0]}" for place in proof.slower}))
        return f"Leave it as it is: {calls} became slower; of the whole run: {whole.partition(': ')[2]}"
    if prove.is_faster(proof.cost) or not proof.is_kept:
        return whole
    best = min(proof.faster, key=lambda row: row.added_ns)
    rest = whole.partition(": ")[2]
    return f"Faster in {row_text(best)}; of the whole run: {rest}"


def row_text(row: Row) -> str:
    """Return how the time of a call changed, with its interval."""
    time = row.changes["time"]
    name = f"{row.operation} {bin_text(row.bin)} on {row.family}"
    if time.before is None or time.after is None or time.ratio is None:
        return f"{name}: not called without and with the rules"
    text = f"{name}: {time_text(round(time.before))} to {time_text(round(time.after))}, {percent(time.ratio)}"
    if row.interval is not None:
        text += f" ({percent(row.interval[0])} to {percent(row.interval[1])})"
    ran = f"; {row.ran[0]} to {row.ran[1]}" if row.ran[0] and row.ran[1] and row.ran[0] != row.ran[1] else ""
    return f"{text}{'' if row.is_significant else ', not certain'}{ran}"


def kept_lines(kept: Mapping[str, str], number: int, together: Cost | None, *, is_all: bool) -> list[str]:
    """Return what is kept of several settings that are each faster alone.

    number : of these settings, the rules being one
    together : what all of them changed
    """
    if number < 2:
        return []
    shown = prove.sentence(together)
    if is_all:
        return [f"all {number} settings together: {shown}"]
    return [
        f"all {number} settings together are not faster than the best alone with certainty ({shown})",
        f"only the best is kept: {' '.join(settings_text(kept).split())}",
    ]
