# SPDX-License-Identifier: Apache-2.0
"""What a check found."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """One line of the list: problem means that the run would not be profiled."""

    check: str
    state: str  # ok, warning or problem
    text: str
    advice: str = ""  # what to do


def ok(check: str, text: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding(check, "ok", text)


def warning(check: str, text: str, advice: str = "") -> Finding:
    """Return a finding to know of: the run is profiled, perhaps with less than expected."""
    return Finding(check, "warning", text, advice)


def problem(check: str, text: str, advice: str = "") -> Finding:
    """Return a finding that keeps the run from being profiled."""
    return Finding(check, "problem", text, advice)
