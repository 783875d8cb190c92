# SPDX-License-Identifier: Apache-2.0
"""`commlens view`."""

from __future__ import annotations

import contextlib
import getpass
import socket
from pathlib import Path

import click

from commlens.cli.html import MEGABYTE
from commlens.cli.options import profile_argument
from commlens.profile import open_profile
from commlens.render.screen import Screen

# commlens.page needs numpy, which takes longer to load than other commands take.

BUDGET = 200 * MEGABYTE
"""Bytes of counters in a page that travels over the loopback interface or an ssh tunnel, compressed."""


@click.command()
@profile_argument
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Listen on PORT.  [default: a free one]",
)
def view(profile: str, port: int) -> None:
    """Show the page of PROFILE in a browser, from a server on this machine, until Ctrl-C.

    The page is that of 'commlens html', with more room for counters: 200 MB. View SQL asks the server, so that it also
    works for profiles that are too large for a page. Queries cannot change the profile.

    The server listens on 127.0.0.1 only. Its address contains a random token: other users of this machine cannot read
    the page. To look at it from another machine, run the printed ssh command there.

    Exit code 2: the profile cannot be read, or PORT is in use.
    """
    from commlens.page.build import page
    from commlens.page.serve import Server, tunnel

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "USER"  # a container without an entry for this user
    screen = Screen()
    with open_profile(profile) as connection:
        text = page(connection, Path(profile), BUDGET, is_served=True)
        with Server(connection, text, port) as server:
            screen.line(server.address)
            screen.line(f"from another machine: {tunnel(server.port, user, socket.gethostname())}")
            screen.line("Ctrl-C ends it")
            with contextlib.suppress(KeyboardInterrupt):
                server.serve()
