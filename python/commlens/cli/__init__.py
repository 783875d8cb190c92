# SPDX-License-Identifier: Apache-2.0
"""The `commlens` command, one file per subcommand: parse, call, print."""

from __future__ import annotations

import click

from commlens.cli.comms import comms
from commlens.cli.coverage import coverage
from commlens.cli.doctor import doctor
from commlens.cli.report import report
from commlens.cli.schema import schema
from commlens.cli.sql import sql


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="commlens")
def commlens() -> None:
    """Read profiles of MPI applications, communicator by communicator.

    A profile is the file that a run under commlens-run leaves behind. It is an SQLite database: every
    row these commands print can be had with any SQLite client, and --sql prints the query.
    """


for command in (report, comms, coverage, sql, schema, doctor):
    commlens.add_command(command)
