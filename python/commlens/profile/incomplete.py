# SPDX-License-Identifier: Apache-2.0
"""The warning about missing parts of a profile."""

from __future__ import annotations

import warnings

from commlens.base.escape import Target, escape


class IncompleteProfile(UserWarning):
    """A part of a profile cannot be read; the rest can."""


def complain(what: str) -> None:
    """Warn about missing data.  Python prints warnings without escapes, so names from the file are escaped here."""
    warnings.warn(IncompleteProfile(escape(what, Target.LINE)), stacklevel=3)
