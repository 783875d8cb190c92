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
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from commlens.base.errors import CommlensError
from commlens.compare.statistics import adjusted
from commlens.overhead import raw
from commlens.overhead.estimate import FEWEST, Cost, corrected, costs, whole_rounds
from commlens.overhead.legs import Tool
from commlens.overhead.measure import Run

TUNED = "tuned"
"""Name of the leg with the settings."""
PROOF = "proof.csv"
SUBJECT = "proof.json"
"""What was proven: the command line, the variables of each leg, and a digest of the files that they name."""

Rounds = Callable[[int, int], Iterable[Run]]
"""Yields the runs of a number of rounds after so many that are done: those of the warm-up first, as round 0, then from 1."""

MOST_P = 0.04
"""Of the smallest p value that the rounds allow, corrected for the number of legs: it must be below 0.05 with certainty."""


def fewest(tested: int) -> int:
    """Return the number of rounds with which one of so many legs can be told from the plain one.

    n rounds allow no p value below 2 / 2^n.

    >>> [fewest(tested) for tested in (1, 2, 3, 5)]
    [6, 7, 8, 8]
    """
    return max(FEWEST, math.ceil(1 + math.log2(max(1, tested) / MOST_P)))


def subject(tools: Sequence[Tool], launch: Sequence[str], files: Mapping[str, str]) -> str:
    """Return what a proof is about, as text; files: name and content of each rules file.

    The text changes when a program or another file that the command names does.
    """
    digest = hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()
    legs = {tool.name: dict(sorted(tool.variables.items())) for tool in tools}
    versions = {word: version for word in launch if (version := _version(word))}
    about = {"launch": list(launch), "versions": versions, "legs": legs, "files": digest}
    return json.dumps(about, indent=1) + "\n"


def _version(word: str) -> tuple[str, int, int] | None:
    """Return path, size and time of change of the file that a word of a command names; None if it names none."""
    found = Path(shutil.which(word) or word)
    try:
        facts = found.stat()
        if not stat.S_ISREG(facts.st_mode):
            return None
        return str(found.resolve()), facts.st_size, facts.st_mtime_ns
    except (OSError, ValueError):
        return None


def is_about(path: Path, leg: str) -> bool:
    """Return whether a file that contains what a proof is about says that it has this leg."""
    try:
        return leg in json.loads(path.read_text(encoding="utf-8"))["legs"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def prove(about: str, rounds: Rounds, folder: Path, number: int) -> list[Run]:
    """Return the runs of `number` rounds, of which those that are kept in the folder are not made again.

    Each run is kept as soon as it has ended.

    Parameters
    ----------
    about : what `subject` returned; runs about something else do not count

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
    for run in rounds(number - done, done):
        # A warm-up counts nowhere; that of a proof that goes on would be a second one.
        if run.round > 0 or done == 0:
            found.append(replace(run, round=run.round + done if run.round > 0 else 0))
            store(folder / PROOF, raw.text(found))
    return found


def kept_runs(about: str, folder: Path) -> list[Run]:
    """Return the runs of the whole rounds in a folder, numbered from 1; none if they are about something else."""
    path, told = folder / PROOF, folder / SUBJECT
    if not os.path.lexists(path):
        return []
    try:
        is_same = told.read_text(encoding="utf-8") == about
    except (OSError, UnicodeDecodeError):
        is_same = False
    whole = whole_rounds(raw.read(path)) if is_same else []
    return [replace(run, round=number) for number, runs in enumerate(whole, 1) for run in runs.values()]


def store(path: Path, text: str) -> None:
    """Replace a file at once: it is complete whenever the process ends."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CommlensError(f"{path}: cannot be written: {error.strerror}") from None


def costs_of(runs: Sequence[Run], names: Collection[str]) -> dict[str, Cost]:
    """Return the difference that each of these legs makes, with p values corrected for their number.

    It is empty if no round has a run of each leg.
    """
    found = corrected([cost for cost in costs(runs) if cost.tool in names], adjusted)
    return {cost.tool: cost for cost in found}


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
    of = "less" if ratio.value < 0 else "more"
    if ratio.is_resolved:
        word = "Faster" if ratio.value < 0 else "Leave it"
        low, high = sorted((abs(ratio.low), abs(ratio.high)))
        return (
            f"{word}: {100 * abs(ratio.value):.1f} % ({100 * low:.1f} to {100 * high:.1f} %) {of} time between MPI_Init "
            f"and MPI_Finalize, {cost.runs} runs each"
        )
    needed = "more than 100,000" if ratio.needed is None else f"about {max(ratio.needed, cost.runs + 1):,}"
    if ratio.low > 0 or ratio.high < 0:
        return (
            f"Leave it: {100 * abs(ratio.value):.1f} % {of} time between MPI_Init and MPI_Finalize in {cost.runs} runs each is "
            f"not certain (p = {ratio.p:.2g}, corrected for the number of settings)"
        )
    return (
        f"Leave it: no difference above {100 * ratio.resolution:.1f} % in {cost.runs} runs each; to show one of "
        f"{100 * abs(ratio.value):.1f} % takes {needed}"
    )
