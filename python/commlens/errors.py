# SPDX-License-Identifier: Apache-2.0
"""The one way to refuse, and the one way to write to stderr."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import click

from commlens.escape import Target, escape


def print_message(message: object, details: Sequence[str] = (), file: IO[Any] | None = None) -> None:
    """Print one line to stderr, or to another file; below it the details, indented, each in a line."""
    lines = [f"commlens: {message}", *(f"  {detail}" for detail in details)]
    for line in lines:
        click.echo(_shown(line), file=file, err=file is None)


def _shown(line: str) -> str:
    """Return a line with escapes, also of what stderr cannot encode: click would print it as UTF-8 even so."""
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    return escape(line, Target.LINE).encode(encoding, "backslashreplace").decode(encoding)


class CommlensError(click.ClickException):
    """Something the user can mend: one line on stderr that says what, and exit code 2.

    Parameters
    ----------
    message : str
        What happened, to what, and what to do.
    details : sequence of str
        Further lines, such as the output of a program that failed.
    """

    exit_code = 2
    incomplete = 3
    """The exit code of a command that has read what can be read of a damaged profile."""

    def __init__(self, message: str, details: Sequence[str] = ()):
        super().__init__(escape(message, Target.LINE))  # a traceback of Python prints it as it is
        self.details = details

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line and its details."""
        print_message(self.format_message(), self.details, file)


class NothingThereError(CommlensError):
    """What the command looks for is not there; no fault where it looks for several users."""


@contextmanager
def one_line_refusals() -> Iterator[None]:
    """Let what click and the system refuse be said in one line, with escapes: they quote options and names of files."""
    try:
        yield
    except CommlensError:
        raise
    except click.ClickException as error:
        error.message = _shown(error.message)
        raise
    except OSError as error:
        if error.errno == errno.EPIPE:  # click's: whoever has read the output has seen enough
            raise
        of = [os.fsdecode(error.filename)] if isinstance(error.filename, (str, bytes, os.PathLike)) else []
        raise CommlensError(": ".join([*of, error.strerror or str(error)])) from error
