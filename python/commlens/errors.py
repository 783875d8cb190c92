# SPDX-License-Identifier: Apache-2.0
"""The one way to refuse."""

from __future__ import annotations

from typing import IO, Any

import click


class CommlensError(click.ClickException):
    """Something the user can mend: one line on stderr that says what, and exit code 2."""

    exit_code = 2
    incomplete = 3
    """The exit code of a command that has read what can be read of a damaged profile."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        click.echo(f"commlens: {self.format_message()}", file=file, err=file is None)
