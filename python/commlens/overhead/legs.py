# SPDX-License-Identifier: Apache-2.0
"""Command lines that start the application without a tool and with each tool."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from commlens.base.errors import CommlensError
from commlens.launch.runner import find_runner

BASELINE = "baseline"
COMMLENS = "commlens"
STOPWATCH = "libcommlens-stopwatch.so"
STOPWATCH_PLACES = (
    "../lib",
    "../lib/commlens",
    "../lib64/commlens",
    "../lib/*/commlens",
    "../libexec/commlens",
)  # from commlens-run's folder
FOLDER_VARIABLE = "STOPWATCH_OF_COMMLENS"
TOOL_VARIABLE = "TOOL_OF_COMMLENS"
OUTPUT = "{out}"
"""Placeholder in a tool's settings for a folder per run; its size is the tool's output."""
HERE = "{}"
"""Placeholder in a command line; the application follows it."""

NAME = re.compile(r"[\w.+-]{1,100}")  # of a tool
LAUNCHER = re.compile(r"(mpirun|mpiexec|orterun|prterun|prun|srun|aprun|jsrun|lrun|ibrun|flux)([-._].*)?")
STARTERS = ("chrt", "env", "ionice", "nice", "numactl", "setsid", "stdbuf", "taskset", "time", "timeout")
# Options of launchers whose value may be called like a program.
WITH_VALUE = re.compile(
    r"--?(n|np|c|N|H|ppn|host|hosts|hostfile|machinefile|map-by|bind-to|rank-by|ranks-by|x|wdir|wd|partition|job-name)"
)
WITH_TWO_VALUES = re.compile(r"--?(genv|env|mca|gmca|prtemca|pmixmca)")
PRELOAD = 'LD_PRELOAD="$1${LD_PRELOAD:+:$LD_PRELOAD}"; export LD_PRELOAD; shift; exec "$@"'


@dataclass(frozen=True)
class Tool:
    """A tool that runs with the application.

    Attributes
    ----------
    name : str
    library : str
        Path of the preloaded library; empty: none.
    wrapper : tuple of str
        Command before the application.
    variables : dict
        Its environment; OUTPUT is replaced by the folder of each run.
    """

    name: str
    library: str = ""
    wrapper: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    def is_commlens(self) -> bool:
        """Return whether this is commlens, which commlens-run or a library of commlens loads."""
        names = {Path(path).name for path in (self.library, *self.wrapper[-1:])}
        return bool(names & {"commlens-run", "libcommlens.so"})

    def command(self, launch: Sequence[str], stopwatch: Path, folder: Path) -> list[str]:
        """Return the command line of a run whose times and files are written below `folder`.

        launch : what `split` returned.
        """
        output = str(folder / "out")
        settings = {FOLDER_VARIABLE: str(folder), **self.variables}
        if self.library or self.name == BASELINE:
            settings[TOOL_VARIABLE] = self.library
        if not self.is_commlens():
            settings.setdefault("COMMLENS_ENABLE", "0")  # on a machine that measures every job
        preload = ["sh", "-c", PRELOAD, "sh", ":".join(filter(None, (str(stopwatch), self.library)))]
        if self.wrapper and Path(self.wrapper[-1]).name != "commlens-run":
            # The wrapper puts its preloads before existing ones, which would also be before the stopwatch.
            words = [*self.wrapper, *preload]
        else:
            words = [*preload, *self.wrapper]
        given = ["env", *(f"{name}={value}" for name, value in settings.items()), *words]
        inserted = [word.replace(OUTPUT, output) for word in given]
        return [part for word in launch for part in (inserted if word == HERE else [word])]


def commlens_tool(name: str = COMMLENS, variables: Mapping[str, str] | None = None) -> Tool:
    """Return commlens as a tool, with its settings.

    Raises
    ------
    CommlensError
        It is not installed.
    """
    settings = {"COMMLENS_OUTPUT": f"{OUTPUT}/profile.db", **(variables or {})}
    return Tool(name, wrapper=(str(our_runner()),), variables=settings)


def our_runner() -> Path:
    """Return commlens-run.

    Raises
    ------
    CommlensError
        It is not installed.
    """
    runner = find_runner(None, os.environ)
    if runner is None:
        raise CommlensError("commlens-run not found: run make install and add its bin folder to PATH")
    return runner


def find_stopwatch() -> Path:
    """Return the stopwatch library.

    Raises
    ------
    CommlensError
        It is not installed.
    """
    folder = our_runner().resolve().parent
    for place in STOPWATCH_PLACES:
        for path in folder.glob(f"{place}/{STOPWATCH}"):
            return path.resolve()
    raise CommlensError(f"{STOPWATCH} not found beside commlens-run: run make install")


def parse_tool(text: str) -> Tool:
    """Return the preloaded tool of NAME=LIBRARY[,VARIABLE=VALUE]...; the library name commlens means commlens.

    Raises
    ------
    ValueError
        The text has another form, or there is no such library.
    """
    first, *settings = re.split(r",(?=[A-Za-z_]\w*=)", text)
    name, is_named, library = first.partition("=")
    variables = dict(setting.split("=", 1) for setting in settings)
    _check_name(name)
    if (library if is_named else name) == COMMLENS:
        return commlens_tool(name, variables)
    if not library:
        raise ValueError(f"'{text}' is not NAME=LIBRARY[,VARIABLE=VALUE]...")
    if not os.access(library, os.R_OK):
        raise ValueError(f"{library}: no such library")
    path = str(Path(library).absolute())
    if re.search("[: ]", path):
        raise ValueError(f"{path} cannot be preloaded: its path contains a space or a colon")
    return Tool(name, library=path, variables=variables)


def parse_wrapper(text: str) -> Tool:
    """Return the tool of NAME=COMMAND, whose command precedes the application.

    Raises
    ------
    ValueError
        The text has another form, or there is no such command.
    """
    name, _, command = text.partition("=")
    _check_name(name)
    words = tuple(shlex.split(command))
    if not words:
        raise ValueError(f"'{text}' is not NAME=COMMAND")
    if shutil.which(words[0]) is None:
        raise ValueError(f"{words[0]}: no such command")
    return Tool(name, wrapper=words)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or name == BASELINE:
        raise ValueError(
            f"'{name}' is not a valid tool name: use at most 100 letters, digits and . + - _, and not {BASELINE}"
        )


def split(command: Sequence[str]) -> list[str]:
    """Return the command line with HERE before each application that it starts.

    After a launcher, the application is the first word that is a program and not the value of an option. Commands such as
    taskset may stand before the launcher.

    Raises
    ------
    CommlensError
        There is no application, or it is ambiguous.
    """
    words = list(command)
    if words and shutil.which(words[0]) is None and words[0] != HERE:
        raise CommlensError(f"{words[0]}: no such command")
    if HERE not in words:
        at = _launcher_at(words)
        words = [HERE, *words] if at is None else words[: at + 1] + _split_launch(words[at + 1 :])
    for i, word in enumerate(words):
        if word == HERE and i + 1 < len(words) and Path(words[i + 1]).name == "commlens-run":
            raise CommlensError("omit commlens-run: it is added where it is needed")
    return words


def _launcher_at(words: Sequence[str]) -> int | None:
    """Return where the launcher is: the first word, or a later one behind a command that only starts another."""
    is_launcher = [LAUNCHER.fullmatch(Path(word).name) is not None for word in words]
    if any(is_launcher[:1]):
        return 0
    if words and Path(words[0]).name in STARTERS and True in is_launcher:
        return is_launcher.index(True)
    return None


def _split_launch(words: list[str]) -> list[str]:
    """Return the words after a launcher's name with HERE before each application; colons separate applications."""
    if ":" in words:
        colon = words.index(":")
        return [*_split_launch(words[:colon]), ":", *_split_launch(words[colon + 1 :])]
    values: set[int] = set()
    for i, word in enumerate(words):
        if i not in values and WITH_TWO_VALUES.fullmatch(word):
            values.update((i + 1, i + 2))
        elif i not in values and WITH_VALUE.fullmatch(word):
            values.add(i + 1)
    programs = [
        i for i, word in enumerate(words) if i not in values and word[0:1] != "-" and shutil.which(word)
    ]
    if not programs:
        raise CommlensError(f"no application found in '{shlex.join(words)}': put {HERE} before it")
    at = programs[0]
    # The first one may be the value of an option that commlens does not know.
    if at > 0 and words[at - 1][0:1] == "-" and "/" not in words[at] and len(programs) > 1:
        raise CommlensError(
            f"cannot tell whether '{words[at]}' or '{words[programs[1]]}' is the application: put {HERE} before it"
        )
    return [*words[:at], HERE, *words[at:]]
