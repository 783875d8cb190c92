# SPDX-License-Identifier: Apache-2.0
"""The exit codes of the commands and their meanings, also for the manual pages and the reference."""

from __future__ import annotations

SUCCESS = 0
FAILED = 1
"""A check that the user asked for found something."""
REFUSED = 2
INCOMPLETE = 3
"""The output is of the readable parts of a damaged profile, or of some of the profiles."""
UNTESTED = 4
"""No condition is met, but the runs are too few to test one."""

COMMON = {
    SUCCESS: "Success, even if nothing matches.",
    REFUSED: "The command line is invalid; a file is missing, not a profile, truncated, damaged or of an unsupported schema "
    "version, or cannot be written; or a profile does not contain a name. One line on standard error names the reason.",
    INCOMPLETE: "A part of the data cannot be read: the output is of the other parts, and a line on standard error names the "
    "missing ones.",
}
"""Codes of all commands, except those of WITHOUT_PARTS."""

WITHOUT_PARTS = ("doctor", "fleet", "overhead", "schema", "self-test")
"""Commands without INCOMPLETE: they read no profile that the user names."""

_KEEP_GOING = "--keep-going left out profiles, or a part of a profile cannot be read."

OF_COMMAND = {
    "chart": {INCOMPLETE: _KEEP_GOING},
    "clean": {INCOMPLETE: "A file cannot be read or removed; a line on standard error names it."},
    "compare": {
        FAILED: "A condition of --fail-if is met.",
        INCOMPLETE: _KEEP_GOING,
        UNTESTED: "No condition of --fail-if is met, but the runs are too few to test one on times.",
    },
    "correlate": {INCOMPLETE: _KEEP_GOING},
    "doctor": {FAILED: "A run would not be profiled."},
    "fleet": {FAILED: "--alert found an alarm."},
    "ingest": {INCOMPLETE: "Some profiles cannot be read; the dataset has the others."},
    "matrix": {FAILED: "--check found that sent and received counts differ."},
    "recover": {INCOMPLETE: "Ranks, other parts of a profile, or jobs are missing."},
    "self-test": {FAILED: "A number is not as known, or another check found a problem."},
}
"""Meanings that only one command has; they replace those of COMMON."""


def meanings(command: str) -> dict[int, str]:
    """Return the exit codes of a command, and what each means.

    >>> list(meanings("report")), list(meanings("compare")), meanings("doctor")[1]
    ([0, 2, 3], [0, 1, 2, 3, 4], 'A run would not be profiled.')
    """
    found = {**COMMON, **OF_COMMAND.get(command, {})}
    if command in WITHOUT_PARTS:
        del found[INCOMPLETE]
    return dict(sorted(found.items()))


def all_meanings() -> dict[int, str]:
    """Return all exit codes; the meaning of one that not all commands have names the commands.

    >>> all_meanings()[UNTESTED]
    'compare: No condition of --fail-if is met, but the runs are too few to test one on times.'
    """
    found: dict[int, str] = dict(COMMON)
    for code in (FAILED, UNTESTED):
        of = [(command, texts[code]) for command, texts in OF_COMMAND.items() if code in texts]
        found[code] = " ".join(f"{command}: {text}" for command, text in of)
    return dict(sorted(found.items()))
