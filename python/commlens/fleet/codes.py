# SPDX-License-Identifier: Apache-2.0
"""Recognises the code that a job ran: by the build id or the file name of its executable."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.fleet._dataset import CODES, INTERPRETERS, Code
from commlens.fleet.toml import read_toml

MOST_NAME = 200  # letters of a code's name


def words(command_line: str) -> list[str]:
    """Return the arguments of a command line; one that no shell accepts is split at blanks.

    >>> words("lmp -in 'a b'"), words("lmp 'a b")
    (['lmp', '-in', 'a b'], ['lmp', "'a", 'b'])
    """
    try:
        return shlex.split(command_line)
    except ValueError:
        return command_line.split()


def script_of(program: str, arguments: Sequence[str]) -> str:
    """Return the file name of the executable; for an interpreter, of the script that it runs.

    >>> script_of("lmp", ["lmp", "-in", "x"]), script_of("python3.11", ["python3", "-u", "/home/a/cfd.py", "9"])
    ('lmp', 'cfd.py')
    >>> script_of("python3", ["python3", "-m", "solver.run"])
    'solver.run'
    """
    if not any(fnmatchcase(program, pattern) for pattern in INTERPRETERS):
        return program
    for before, argument in zip(arguments, arguments[1:]):
        if before == "-c":
            return program
        if before == "-m":
            return argument
        if not argument.startswith("-"):
            return Path(argument).name
    return program


def code_of(program: str, build_id: str, arguments: Sequence[str], codes: Sequence[Code] = CODES) -> str:
    """Return the name of the code: of the first entry that fits, or else the name of the executable or script.

    >>> code_of("lmp_mpi", "", []), code_of("python3", "", ["python3", "own.py"]), code_of("", "", [])
    ('LAMMPS', 'own.py', 'unknown')
    """
    name = script_of(program, arguments)
    for code in codes:
        if build_id and build_id in code.build_ids:
            return code.name
        if any(fnmatchcase(name, pattern) for pattern in code.programs):
            return code.name
    return name[:MOST_NAME] or "unknown"


def read_codes(path: Path) -> tuple[Code, ...]:
    """Return the codes of a file of a centre, followed by those that commlens knows.

    Raises
    ------
    CommlensError
        It cannot be read, or is not as spec/codes.toml describes.
    """
    entries = read_toml(path).get("code")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CommlensError(f"{path}: has no table [[code]]")
    return (*(_code(path, entry) for entry in entries), *CODES)


def _code(path: Path, entry: Mapping[str, Any]) -> Code:
    name = entry.get("name")
    if not isinstance(name, str) or not name or len(name) > MOST_NAME:
        raise CommlensError(f"{path}: a [[code]] has no name of at most {MOST_NAME} letters")
    unknown = ", ".join(sorted(set(entry) - {"name", "programs", "build_ids"}))
    if unknown:
        raise CommlensError(f"{path}: code {name}: unknown {unknown}; there are name, programs and build_ids")
    patterns = [entry.get(key, []) for key in ("programs", "build_ids")]
    if not all(isinstance(part, list) and all(isinstance(text, str) for text in part) for part in patterns):
        raise CommlensError(f"{path}: code {name}: programs and build_ids are lists of texts")
    return Code(name, *map(tuple, patterns))
