# SPDX-License-Identifier: Apache-2.0
"""Functions that only pass calls on to MPI: those that the configuration names, and those that a report suggests."""

from __future__ import annotations

import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from commlens.profile import meta
from commlens.symbols.paths import PathTree, read_callers

OPTION = "COMMLENS_WRAPPERS"
MOST_PATTERNS = 64
LEAST_CALLERS = 2
NAMED_LIKE_MPI = re.compile(r"(\w+mpi_)(\w+)", re.ASCII | re.IGNORECASE)
"""A function with the name of a procedure behind a prefix that is not MPI_ itself."""


def configured(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the patterns in the environment of this command; if there is none, in that of the run."""
    value = os.environ.get(OPTION)
    if value is None:
        value = meta.option(connection, OPTION) or ""
    return tuple(pattern.strip() for pattern in value.split(",") if pattern.strip())[:MOST_PATTERNS]


def no_paths(option: str) -> str:
    """Return why an option for call paths cannot be used."""
    return f"{option} needs call paths, and this profile has none: run the program with COMMLENS_FRAMES=8"


def chosen(connection: sqlite3.Connection, given: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns that an option names, where an empty one names none; without the option, those configured."""
    return tuple(pattern for pattern in given if pattern) if given else configured(connection)


class Function(NamedTuple):
    """A function that calls MPI: the procedures, and the call sites at which it is called."""

    operations: set[str]
    callers: set[int]


def suggested(connection: sqlite3.Connection, tree: PathTree) -> list[str]:
    """Return patterns of functions that look like wrappers, such as hypre_MPI_*.

    All functions with such a prefix call the one procedure that their name ends with, and there are several callers. One
    function with this prefix that does something else means that the prefix does not stand for wrappers.
    """
    callers = read_callers(connection)
    functions: dict[str, Function] = defaultdict(lambda: Function(set(), set()))
    for site, operation in connection.execute(
        "SELECT DISTINCT key.callsite, op.name FROM key JOIN op ON op.id = key.op WHERE key.callsite <> 0"
    ):
        if site in tree.shown:
            function = functions[tree.frame(tree.shown[site]).function]
            function.operations.add(operation)
            function.callers.add(callers.get(site) or 0)
    prefixes: dict[str, list[tuple[bool, Function]]] = defaultdict(list)
    for name, function in functions.items():
        match = NAMED_LIKE_MPI.fullmatch(name)
        if match is not None and match[1].lower() != "pmpi_":
            procedures = {operation.lower() for operation in function.operations}
            prefixes[match[1]].append((procedures == {f"mpi_{match[2].lower()}"}, function))
    return [
        f"{prefix}*"
        for prefix, found in sorted(prefixes.items())
        if all(is_wrapper for is_wrapper, _ in found)
        and len(set().union(*(function.callers for _, function in found)) - {0}) >= LEAST_CALLERS
    ]


def hints(connection: sqlite3.Connection, tree: PathTree) -> list[str]:
    """Return a line about functions that look like wrappers."""
    patterns = suggested(connection, tree)
    if not patterns:
        return []
    options = " ".join(f"--wrapper '{pattern}'" for pattern in patterns)
    return [f"{' and '.join(patterns)} only pass calls on to MPI: {options} shows the callers"]
