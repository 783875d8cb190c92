# SPDX-License-Identifier: Apache-2.0
"""The warning that something of a profile is missing."""

from __future__ import annotations

import warnings


class IncompleteProfile(UserWarning):
    """Something of a profile cannot be read; the rest can."""


def complain(what: str) -> None:
    """Warn that something is missing."""
    warnings.warn(IncompleteProfile(what), stacklevel=3)
