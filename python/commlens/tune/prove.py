# SPDX-License-Identifier: Apache-2.0
"""Proves settings: runs the application without and with them in random order, and says in a sentence what they change.

The runs are kept in proof.csv, which `commlens overhead --from` reads, too. An interrupted proof goes on from there. A
file beside it describes what was proven, so that runs with other settings are never added to it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from commlens.base.errors import CommlensError
from commlens.overhead import raw
from commlens.overhead.estimate import FEWEST, Cost, costs, whole_rounds
from commlens.overhead.legs import Tool
from commlens.overhead.measure import Run

TUNED = "tuned"
"""Name of the leg with the settings."""
PROOF = "proof.csv"
SUBJECT = "proof.json"
"""What was proven: the command line, the variables of each leg, and a digest of the files that they name."""

Rounds = Callable[[int, int], Iterable[Run]]
"""Yields the runs of a number of rounds with a seed, those of the warm-up first."""


def subject(tools: Sequence[Tool], launch: Sequence[str], files: Mapping[str, str]) -> str:
    """Return what a proof is about, as text; files: name and content of each rules file."""
    digest = hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()
    legs = {tool.name: dict(sorted(tool.variables.items())) for tool in tools}
    return json.dumps({"launch": list(launch), "legs": legs, "files": digest}, indent=1) + "\n"


def prove(about: str, rounds: Rounds, folder: Path, number: int, seed: int = 1) -> list[Run]:
    """Return the runs of `number` rounds, of which those that are kept in the folder are not made again.

    Each run is kept as soon as it has ended.

    Parameters
    ----------
    about : what `subject` returned; runs about something else are renamed, not removed

    Raises
    ------
    CommlensError
        There are too few rounds for any claim, a file cannot be read or written, or a run cannot be measured.
    """
    if number < FEWEST:
        raise CommlensError(f"{number} runs are too few to prove anything: use at least {FEWEST}")
    found = kept_runs(about, folder)
    done = max((run.round for run in found), default=0)
    if done >= number:
        return found
    store(folder / SUBJECT, about)
    for run in rounds(number - done, seed + done):
        # A warm-up counts nowhere; that of a proof that goes on would be a second one.
        if run.round > 0 or done == 0:
            found.append(replace(run, round=run.round + done if run.round > 0 else 0))
            store(folder / PROOF, raw.text(found))
    return found


def kept_runs(about: str, folder: Path) -> list[Run]:
    """Return the runs of the whole rounds in a folder, numbered from 1; moves runs about something else aside."""
    path, told = folder / PROOF, folder / SUBJECT
    if not os.path.lexists(path):
        return []
    try:
        is_same = told.read_text(encoding="utf-8") == about
    except (OSError, UnicodeDecodeError):
        is_same = False
    if not is_same:
        _move_aside(path)
        return []
    whole = whole_rounds(raw.read(path))
    return [replace(run, round=number) for number, runs in enumerate(whole, 1) for run in runs.values()]


def _move_aside(path: Path) -> None:
    """Rename proof.csv to the first of proof-1.csv, proof-2.csv, ... that is free."""
    number = 1
    while os.path.lexists(other := path.with_name(f"{path.stem}-{number}{path.suffix}")):
        number += 1
    try:
        path.rename(other)
    except OSError as error:
        raise CommlensError(f"{path}: cannot be renamed: {error.strerror}") from None


def store(path: Path, text: str) -> None:
    """Replace a file at once: it is complete whenever the process ends."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CommlensError(f"{path}: cannot be written: {error.strerror}") from None


def cost_of(runs: Sequence[Run], name: str = TUNED) -> Cost | None:
    """Return the difference that a leg makes; None if no round has a run of each leg."""
    return next((cost for cost in costs(runs) if cost.tool == name), None)


def is_faster(cost: Cost | None) -> bool:
    """Whether the whole run is shorter with certainty, and no run with the settings failed."""
    ratio = cost.ratio if cost is not None and not cost.crashed else None
    return ratio is not None and ratio.is_resolved and ratio.value < 0


def sentence(cost: Cost | None) -> str:
    """Return what was shown, in one sentence with a number."""
    if cost is None:
        return "Leave it: no round has a run with and without the settings"
    if cost.crashed:
        return f"Leave it: the application failed with the settings: {cost.crashed}"
    ratio = cost.ratio
    if ratio is None or math.isnan(ratio.p):
        return f"Leave it: {cost.runs} runs are too few to show anything; at least {FEWEST} are needed"
    if ratio.is_resolved:
        word, of = ("Faster", "less") if ratio.value < 0 else ("Leave it", "more")
        low, high = sorted((abs(ratio.low), abs(ratio.high)))
        return (
            f"{word}: {100 * abs(ratio.value):.1f} % ({100 * low:.1f} to {100 * high:.1f} %) {of} time between MPI_Init "
            f"and MPI_Finalize, {cost.runs} runs each"
        )
    needed = "more than 100,000" if ratio.needed is None else f"about {max(ratio.needed, cost.runs + 1):,}"
    return (
        f"Leave it: no difference above {100 * ratio.resolution:.1f} % in {cost.runs} runs each; to show one of "
        f"{100 * abs(ratio.value):.1f} % takes {needed}"
    )
