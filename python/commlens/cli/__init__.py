# SPDX-License-Identifier: Apache-2.0
"""The `commlens` command, one file per subcommand: parse, call, print."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from commlens.base.errors import CommlensError
from commlens.base.messages import print_message
from commlens.base.spelling import did_you_mean
from commlens.cli.exit_codes import INCOMPLETE
from commlens.cli.refusals import one_line_refusals
from commlens.profile.incomplete import IncompleteProfile

COMMANDS = (
    *(
        "report",
        "explain",
        "html",
        "view",
        "ranks",
        "compare",
        "correlate",
        "chart",
        "regions",
        "metrics",
        "threads",
        "datatypes",
        "timeline",
        "history",
        "waits",
        "matrix",
        "algorithms",
        "tune",
        "place",
        "comms",
        "coverage",
    ),
    *(
        "sql",
        "schema",
        "symbols",
        "export",
        "overhead",
        "doctor",
        "self-test",
        "hang",
        "top",
        "recover",
        "merge",
        "clean",
        "ingest",
        "fleet",
    ),
)
"""Each is in the module of its name, which is imported when the command is used: all of them take 0.3 s."""

HELP = "help"


class Commands(click.Group):
    """All commands; messages about unreadable parts of a profile follow the output."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands, in the order of the alphabet."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, or None if there is none of this name."""
        if name not in COMMANDS:
            return None
        word = name.replace("-", "_")
        module = import_module(f"commlens.cli.{word}")
        command: click.Command = getattr(module, "compare_command" if name == "compare" else word)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; `help COMMAND` is `COMMAND --help`, as in git and other programs."""
        if args[:1] == [HELP]:
            args = [*(name for name in args[1:2] if name != HELP), "--help"]
        return super().parse_args(ctx, args)

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Parse the options before the name of the command."""
        with one_line_refusals():
            return super().make_context(*arguments, **more)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that the first argument names; an unknown name is an error with the most similar name."""
        if args and self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], [*self.list_commands(ctx), HELP], 1)
            if not hint and Path(args[0]).exists():
                hint = f"; did you mean commlens report {args[0]}?"
            hint = hint or "; 'commlens --help' lists all"
            raise CommlensError(f"no such command '{args[0]}'{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit code 3 when the profile was incomplete."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", IncompleteProfile)
            result = None
            try:
                with one_line_refusals():
                    result = super().invoke(ctx)
            except click.exceptions.Exit as end:
                if end.exit_code != 0:
                    raise
            finally:
                for warning in caught:
                    print_message(warning.message)
        if any(issubclass(warning.category, IncompleteProfile) for warning in caught):
            ctx.exit(INCOMPLETE)
        return result


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="commlens")
def commlens() -> None:
    """Read profiles of MPI applications, communicator by communicator.

    A profile is the file that a run under commlens-run writes. It is an SQLite database, which any SQLite client
    can query. The commands that have an option --sql print their queries with it.

    'commlens help COMMAND' explains a command.
    """


def commands() -> dict[str, click.Command]:
    """Return all commands, by name, in the order of COMMANDS."""
    context = click.Context(commlens)
    return {
        name: command for name in COMMANDS if (command := commlens.get_command(context, name)) is not None
    }
