# SPDX-License-Identifier: Apache-2.0
"""Checks before a run whether commlens can measure it, without running the application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from commlens.doctor import environment, installation, program
from commlens.doctor.command import read_command
from commlens.doctor.finding import Finding
from commlens.doctor.loader import Loader


def examine(arguments: Sequence[str], env: Mapping[str, str], runner: str | None) -> list[Finding]:
    """Return the findings.

    Parameters
    ----------
    arguments : the command line of the run, with or without launcher; empty: only the installation is checked
    env : the environment the run would have
    runner : path of commlens-run; None: search for it
    """
    command = read_command(arguments, env)
    loader = Loader(command.env)
    found, install = installation.examine(runner or command.runner, env, loader)
    if arguments:
        found += program.examine(command, install, loader)
        found += environment.launch(command)
    for number, line in enumerate(command.others, 2):
        other = read_command(line, env)
        found += [
            finding._replace(check=f"{finding.check} {number}")
            for finding in [*program.examine(other, install, Loader(other.env)), *environment.launch(other)]
        ]
    found += environment.examine(command.env, Path.cwd())
    return found
