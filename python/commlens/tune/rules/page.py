# SPDX-License-Identifier: Apache-2.0
"""The page beside the rules: per rule why, how to use them, and what was left out."""

from __future__ import annotations

from pathlib import Path

from commlens.base.escape import Target, escape
from commlens.render.units import time_text
from commlens.selection.sizes import BinRange
from commlens.tune.model import Case, Choice
from commlens.tune.rules.rule_set import RuleSet

HEAD = (
    "| communicator | processes | call | message size | algorithm | by default | chosen | change | interval | rounds |",
    "|---|---|---|---|---|---|---|---|---|---|",
)

USE = "Set these variables for the job:"
NOT_TO_USE = "**Not proven, so do not use them.** These variables were tried:"


def page(rules: RuleSet, library: str, folder: Path) -> str:
    """Return the page in Markdown; `folder` is the one of the rules."""
    lines = ["# Rules for collectives", "", f"Written by `commlens tune` for {_cell(library)}.", ""]
    if rules.kept:
        lines += ["## Why", "", *HEAD, *map(why_row, rules.kept), ""]
        lines += ["## How to use them", "", USE, ""]
        values = {name: value.replace("{folder}", str(folder)) for name, value in rules.variables.items()}
        lines += [f"    export {name}={_quoted(value)}" for name, value in sorted(values.items())]
        lines += ["", *scope_lines(rules), ""]
    else:
        lines += ["No rule: leave the library's own choice.", ""]
    if rules.refused:
        lines += ["## Left out", "", "| communicator | processes | call | message size | algorithm | why |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += [f"{case_cells(choice)} {_cell(reason)} |" for choice, reason in rules.refused]
        lines += [""]
    return "\n".join(lines)


def scope_lines(rules: RuleSet) -> list[str]:
    """Return for which calls the rules count."""
    lines = [
        "The rules count, too, for the calls that the library itself makes on a communicator: in its other collectives,",
        "and to make communicators.",
    ]
    if "families.rules" in rules.files:
        lines = ["COMMLENS_TUNE counts only with commlens: start all processes with commlens-run.", *lines]
    if "openmpi.rules" in rules.files:
        lines = ["A rule of openmpi.rules counts for communicators of its size only.", *lines]
    if "mpich.json" in rules.files:
        lines = [
            "A rule of mpich.json counts for communicators of its size only. The files contain the tables of the installed",
            "library: write them anew when it changes. All machines of the job must be able to read them.",
            *lines,
        ]
    if any(name.endswith("_ALGORITHM") for name in rules.variables):
        lines = ["A variable ..._ALGORITHM counts for all communicators and message sizes.", *lines]
    elif any(name.startswith("I_MPI_ADJUST_") for name in rules.variables):
        lines = [
            "A variable I_MPI_ADJUST_... counts for all calls of its collective. Algorithms with ranges of bytes or processes",
            "share them: together the ranges contain all sizes.",
            *lines,
        ]
    return lines


def why_row(choice: Choice) -> str:
    """Return the row of one choice."""
    cells = [
        time_text(round(choice.default_ns)),
        time_text(round(choice.candidate_ns)),
        f"{100 * choice.change:+.1f} %",
        f"{100 * choice.low:+.1f} to {100 * choice.high:+.1f} %",
        f"{choice.rounds:,}",
    ]
    return f"{case_cells(choice)} {' | '.join(cells)} |"


def case_cells(choice: Choice) -> str:
    """Return the cells that say which case and algorithm it is."""
    case, candidate = choice.case, choice.candidate
    segment = f", segments of {candidate.segment_bytes:,} bytes" if candidate.segment_bytes else ""
    cells = [
        _cell(case.communicator),
        f"{case.comm_size:,}",
        f"MPI_{_cell(case.collective.capitalize())}",
        size_text(case),
        f"{candidate.number} {_cell(candidate.name)}{segment}",
    ]
    return f"| {' | '.join(cells)} |"


def size_text(case: Case) -> str:
    """Return the message sizes of a case, in bytes."""
    if case.bin < 0:
        return "varies"
    low, high = BinRange(case.bin, case.bin).bounds
    return f"{low:,} to {high:,}" if high is not None else f"from {low:,}"


def _cell(text: str) -> str:
    """Return a name without what Markdown or HTML would act on."""
    shown = escape(text, Target.LINE)
    return "".join(f"&#{ord(one)};" if one in "&<>|`*[]\\" else one for one in shown)


def _quoted(value: str) -> str:
    """Return a value for a shell."""
    return "'" + escape(value, Target.LINE).replace("'", "'\\''") + "'"
