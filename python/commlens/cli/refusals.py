# SPDX-License-Identifier: Apache-2.0
"""Reports refusals: one line on stderr, and the exit code."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from commlens.base.errors import CommlensError
from commlens.base.messages import print_message, shown
from commlens.base.spelling import did_you_mean
from commlens.cli.exit_codes import REFUSED


class Refusal(click.ClickException):
    """Lets click end the command with the line of a CommlensError."""

    exit_code = REFUSED

    def __init__(self, error: CommlensError):
        super().__init__(error.message)
        self.error = error

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002
        """Print the line and its details."""
        print_error(self.error)


def print_error(error: CommlensError) -> None:
    """Print the line of an error and its details to stderr."""
    print_message(error.message, error.details)


def no_such_option(error: click.NoSuchOption) -> str:
    """Return the line for an option that a command does not have, with the option most like it."""
    of = error.ctx.command_path if error.ctx is not None else "commlens"
    parameters = error.ctx.command.get_params(error.ctx) if error.ctx is not None else []
    known = [name for parameter in parameters for name in parameter.opts if name.startswith("--")]
    hint = did_you_mean(error.option_name, known, 1)
    hint = hint or f"; '{of} --help' lists all"
    return f"no such option '{error.option_name}'{hint}"


@contextmanager
def one_line_refusals() -> Iterator[None]:
    """Print errors of commlens, click and the system in one line, with escapes: they quote options and file names."""
    try:
        yield
    except CommlensError as error:
        raise Refusal(error) from error
    except click.NoSuchOption as error:
        raise Refusal(CommlensError(no_such_option(error))) from error
    except click.ClickException as error:
        error.message = shown(error.message)
        raise
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader of the output has ended; click handles it
            raise
        of = [os.fsdecode(error.filename)] if isinstance(error.filename, (str, bytes, os.PathLike)) else []
        raise Refusal(CommlensError(": ".join([*of, error.strerror or str(error)]))) from error
