# SPDX-License-Identifier: Apache-2.0
"""Errors that the user can fix."""

from __future__ import annotations

from collections.abc import Sequence

from commlens.base.escape import Target, escape


class CommlensError(Exception):
    """An error that the user can fix. The `commlens` command prints it and ends with exit code 2 (cli/refusals.py).

    Parameters
    ----------
    message : str
        What happened, to what, and what to do: one line.
    details : sequence of str
        Further lines, such as the output of a program that failed.
    """

    def __init__(self, message: str, details: Sequence[str] = ()):
        self.message = escape(message, Target.LINE)  # a traceback of Python prints it without escapes
        self.details = details
        super().__init__(self.message)


class NothingThereError(CommlensError):
    """The command found nothing; not an error if it searches for several users."""
