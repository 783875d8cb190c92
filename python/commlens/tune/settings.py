# SPDX-License-Identifier: Apache-2.0
"""What is kept after the proof: a file of variables for later jobs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from commlens.overhead.estimate import Cost
from commlens.tune import prove
from commlens.tune.switches import Trial

SETTINGS = "settings"
"""Name of the file: a line NAME=value for each variable, as a shell reads it."""

Tried = tuple[Trial, "Cost | None"]
"""A setting that was tried alone, and what it changed; None if it was not run in any round."""


def faster_trials(tried: Sequence[Tried]) -> list[Tried]:
    """Return the trials with which the run is faster with certainty, the fastest first; of a variable the best value."""
    found: dict[str, Tried] = {}
    for trial, cost in sorted(tried, key=lambda one: change_of(one[1])):
        if prove.is_faster(cost):
            found.setdefault(trial.variable, (trial, cost))
    return list(found.values())


def change_of(cost: Cost | None) -> float:
    """Return the relative change of the run time; 0 if unknown."""
    return cost.ratio.value if cost is not None and cost.ratio is not None else 0.0


def settings_text(variables: Mapping[str, str]) -> str:
    r"""Return the lines of the file.

    >>> settings_text({"B": "2", "A": "a file"})
    "A='a file'\nB=2\n"
    """
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in sorted(variables.items()))


def store_settings(variables: Mapping[str, str], folder: Path) -> Path | None:
    """Write the file, or remove it if nothing is kept; return its path.

    Raises
    ------
    CommlensError
        The folder cannot be written.
    """
    path = folder / SETTINGS
    if not variables:
        with suppress(OSError):
            path.unlink()
        return None
    prove.store(path, settings_text(variables))
    return path
