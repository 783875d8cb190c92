# SPDX-License-Identifier: Apache-2.0
"""The options with which root reads the data of other users: --user and --all-users."""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from commlens.base.errors import CommlensError, NothingThereError
from commlens.base.messages import print_message
from commlens.base.users import become, name_of
from commlens.cli.exit_codes import REFUSED
from commlens.cli.refusals import Refusal
from commlens.jobs.arenas import owners, places
from commlens.render.screen import Screen, flush_output

ALL_USERS = "--all-users"
PATIENCE_S = 120
"""Time limit in seconds of the command for one user."""
NOTHING_THERE = 100
"""Exit code of a child whose command found nothing."""

user_option = click.option(
    "--user",
    metavar="NAME",
    help="For root: read the files of this user, with the rights of this user. By default root reads only its own "
    "files.",
)
all_users_option = click.option(
    ALL_USERS,
    is_flag=True,
    help="For root: do this for each user who left files, with the rights of that user.",
)


def with_rights_of_user(*, all_users: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add --user and, with `all_users`, --all-users to a command.

    The command itself takes `where`, the places to read, and neither option. It runs with the rights of the user
    whose files it opens.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapped(*, user: str | None, **options: Any) -> Any:
            context = click.get_current_context()
            everybody = options.pop("all_users", False)
            if user is not None and everybody:
                raise click.UsageError(f"--user and {ALL_USERS} cannot be combined")
            if everybody:
                return context.exit(_for_each(context.find_root().command, options["where"]))
            if user is not None:
                become(user)
            return command(**options)

        return user_option(all_users_option(wrapped) if all_users else wrapped)

    return decorated


def _for_each(commands: click.BaseCommand, where: tuple[Path, ...]) -> int:
    """Run the command line again for each user; return the highest exit code.

    "Nothing found" is an error only if it applies to all users.
    """
    if os.geteuid() != 0:
        raise CommlensError(f"{ALL_USERS}: only root can read the files of other users")
    name, *rest = (argument for argument in sys.argv[1:] if argument != ALL_USERS)
    found = sorted(owners(where or places(os.environ)))
    if not found:
        Screen().line("no user left files")
    codes = set()
    for number, uid in enumerate(found):
        Screen().lines([*([Text("")] if number else []), Text(f"user {name_of(uid)}", style="bold")])
        codes.add(_in_child(commands, uid, [name, "--user", str(uid), *rest]))
    if codes == {NOTHING_THERE}:
        return REFUSED
    return max(codes - {NOTHING_THERE}, default=0)


def _in_child(commands: click.BaseCommand, uid: int, arguments: list[str]) -> int:
    """Run a command line in a child process, which may give up its rights; return its exit code."""
    flush_output()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = _run(commands, arguments)
        finally:
            with suppress(OSError):
                flush_output()
            os._exit(code)
    code = _waited_for(child)
    if code < 0:
        print_message(
            f"user {name_of(uid)}: ended by signal {-code}, or not done after {PATIENCE_S} s; skipped"
        )
        return REFUSED
    return code


def _run(commands: click.BaseCommand, arguments: list[str]) -> int:
    """Run a command line; return its exit code."""
    try:
        code = commands.main(arguments, prog_name="commlens", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        is_nothing = isinstance(error, Refusal) and isinstance(error.error, NothingThereError)
        return NOTHING_THERE if is_nothing else error.exit_code
    except click.Abort:
        return 1
    return code if isinstance(code, int) else 0


def _waited_for(child: int) -> int:
    """Return the exit code of a child; kill it if its user, another one by now, stops it."""
    end = time.monotonic() + PATIENCE_S
    pause = 0.001
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
