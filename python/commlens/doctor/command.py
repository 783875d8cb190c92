# SPDX-License-Identifier: Apache-2.0
"""Parses a command line: launcher, commlens-run, wrappers, and the program that uses MPI."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LAUNCHERS = re.compile(
    r"(mpirun|mpiexec|orterun|prterun|prun|srun|aprun|jsrun|lrun|flux|ibrun|mpiexec\.hydra)(\.\w+)?"
)
# Number of values that follow an option of a launcher.  _is_value() decides about options that are not listed here.
VALUES = {
    **dict.fromkeys(
        ["-n", "-np", "-N", "-c", "-H", "-x", "-p", "-t", "-w", "-J", "-o", "-e", "-i", "-f", "-hosts", "-ppn", "-wdir",
         "-d", "-host", "--host", "-hostfile", "--hostfile", "-machinefile", "--machinefile", "--map-by", "-map-by",
         "--bind-to", "-bind-to", "--rank-by", "-npernode", "--npernode", "-cpus-per-proc", "--ntasks", "--nodes",
         "-path", "-envlist", "-genvlist", "--prefix", "-a", "-r", "-g", "-b", "--output-filename", "-S", "-j", "-A",
         "--account", "--partition", "--job-name", "-D", "--chdir", "--wdir", "-wd", "--wd", "--rankfile", "-rf"], 1
    ),
    **dict.fromkeys(["-mca", "--mca", "-gmca", "--gmca", "-env", "-genv", "--prtemca", "--pmixmca"], 2),
}  # fmt: skip
# Programs that only change how a program runs: name -> options that are followed by a value.
# fmt: off
WRAPPERS: dict[str, tuple[str, ...]] = {
    "time": ("-f", "-o"),
    "nice": ("-n",),
    "ionice": ("-c", "-n"),
    "nohup": (),
    "stdbuf": ("-i", "-o", "-e"),
    "timeout": ("-s", "-k"),
    "numactl": ("-m", "-N", "-C", "-i", "-p", "-P", "--membind", "--cpunodebind", "--physcpubind", "--interleave",
                "--preferred", "--preferred-many"),
    "taskset": (),
    "strace": ("-o", "-e", "-p"),
    "catchsegv": (),
    "chrt": (),
    "setarch": (),
}
# fmt: on
# Number of arguments of the wrapper itself before the program.
OWN_WORDS = {"timeout": 1, "taskset": 1, "chrt": 1, "setarch": 1}
STARTERS = {"commlens-run", "env", *WRAPPERS}
ARCHITECTURE = re.compile(r"x86_64|i[3-6]86|linux(32|64)|uname26|(aarch|arm|ppc|s390|riscv|mips|sparc)\w*")
CONTAINERS = (
    "apptainer",
    "singularity",
    "docker",
    "podman",
    "shifter",
    "charliecloud",
    "ch-run",
    "sarus",
    "enroot",
)


@dataclass
class Command:
    """A parsed command line."""

    env: dict[str, str]  # of the program
    launcher: str | None = None
    launcher_options: list[str] = field(default_factory=list)
    runner: str | None = None  # commlens-run as it was written
    runner_first: bool = False  # it stands before the launcher
    before_runner: list[str] = field(default_factory=list)  # wrappers between launcher and commlens-run
    wrappers: list[str] = field(default_factory=list)  # and between it and the program
    program: list[str] = field(default_factory=list)  # and its arguments
    others: list[list[str]] = field(
        default_factory=list
    )  # command lines of further programs of the same launch
    dropped: str = ""  # the command that removes LD_PRELOAD, or empty

    @property
    def path(self) -> Path | None:
        """The file of the program, as execvp finds it."""
        if not self.program:
            return None
        found = shutil.which(self.program[0], path=self.env.get("PATH"))
        if found is None and Path(self.program[0]).exists() and "/" in self.program[0]:
            found = self.program[0]
        return Path(found) if found else None


def read_command(arguments: Sequence[str], env: Mapping[str, str]) -> Command:
    """Parse a command line.

    >>> command = read_command(["mpirun", "-n", "4", "commlens-run", "nice", "./app", "-n"], {})
    >>> command.launcher, command.runner, command.wrappers, command.program
    ('mpirun', 'commlens-run', ['nice'], ['./app', '-n'])
    >>> read_command(["mpirun", "-n", "1", "./a", ":", "-n", "2", "./b"], {}).others
    [['mpirun', '-n', '2', './b']]
    """
    command, rest = Command(dict(env)), list(arguments)
    while rest:
        name = Path(rest[0]).name
        if LAUNCHERS.fullmatch(name) and command.launcher is None:
            command.launcher = rest.pop(0)
            command.runner_first = command.runner is not None
            if ":" in rest:
                rest, *further = _split(rest)
                command.others = [[command.launcher, *line] for line in further]
            while name == "flux" and rest[:1] and rest[0] in ("mini", "run"):
                rest.pop(0)
            command.launcher_options, rest = _options(rest, command.env.get("PATH"))
        elif name == "commlens-run":
            command.runner = rest.pop(0)
            command.before_runner, command.wrappers = command.wrappers, []
            if rest[:1] == ["--"]:
                rest.pop(0)
        elif name == "env":
            command.wrappers.append(name)
            rest = _environment(command, rest[1:])
        elif name in WRAPPERS:
            command.wrappers.append(name)
            rest = _after_wrapper(name, rest[1:])
        elif name in ("sudo", "su", "doas"):
            command.wrappers.append(name)
            command.dropped = command.dropped or name
            rest = [word for word in rest[1:] if not word.startswith("-")]
        else:
            break
    command.program = rest
    return command


def _split(words: list[str]) -> list[list[str]]:
    """Return the programs of a launch, which colons separate."""
    lines: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            lines.append([])
        else:
            lines[-1].append(word)
    return lines


def _options(rest: list[str], path: str | None) -> tuple[list[str], list[str]]:
    """Split what follows a launcher into its options and the command."""
    options: list[str] = []
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        options.append(word)
        if word == "--":
            break
        for _ in range(0 if "=" in word else VALUES.get(word, 0)):
            if rest:
                options.append(rest.pop(0))
        if word not in VALUES and _is_value(rest, path):
            options.append(rest.pop(0))
    return options, rest


def _is_value(rest: list[str], path: str | None) -> bool:
    """Return whether the word after an unknown option belongs to it: no program, and one comes later."""

    def is_program(word: str) -> bool:
        return "/" in word or word in STARTERS or shutil.which(word, path=path) is not None

    word, *later = rest or ("-",)
    return not word.startswith("-") and not is_program(word) and any(map(is_program, later))


def _environment(command: Command, rest: list[str]) -> list[str]:
    """Change the environment as env does; return the command."""
    while rest:
        word = rest[0]
        if word in ("-i", "-", "--ignore-environment"):
            command.env = {}
            if command.runner:
                command.dropped = f"env {word}"
        elif word in ("-u", "--unset") and len(rest) > 1:
            rest.pop(0)
            command.env.pop(rest[0], None)
            if rest[0] == "LD_PRELOAD" and command.runner:
                command.dropped = f"env {word} LD_PRELOAD"
        elif re.match(r"\w+=", word):
            name, _, value = word.partition("=")
            command.env[name] = value
            if name == "LD_PRELOAD" and command.runner:
                command.dropped = f"env {word}"
        elif not word.startswith("-"):
            break
        rest.pop(0)
    return rest


def _after_wrapper(name: str, rest: list[str]) -> list[str]:
    """Return the command after the options and arguments of a wrapper."""
    rest = _after_options(name, rest)
    own = OWN_WORDS.get(name, 0)
    if name == "setarch" and rest and not ARCHITECTURE.fullmatch(rest[0]):
        own = 0  # it may be left out
    return _after_options(name, rest[own:]) if own else rest


def _after_options(name: str, rest: list[str]) -> list[str]:
    """Return what follows the options of a wrapper."""
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word in WRAPPERS[name] and rest:
            rest.pop(0)
    return rest
