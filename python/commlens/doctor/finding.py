# SPDX-License-Identifier: Apache-2.0
"""Results of checks."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """One line of the output; a problem means that the run would not be profiled."""

    check: str
    state: str  # ok, warning or problem
    text: str
    advice: str = ""  # what to do


def ok(check: str, text: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(check, "ok", text)


def warning(check: str, text: str, advice: str = "") -> Finding:
    """Return a warning: the run is profiled, perhaps with less data than expected."""
    return Finding(check, "warning", text, advice)


def problem(check: str, text: str, advice: str = "") -> Finding:
    """Return a problem, which prevents the run from being profiled."""
    return Finding(check, "problem", text, advice)
