# SPDX-License-Identifier: Apache-2.0
"""Profiles for other tools: files in their formats, and objects of Hatchet and Thicket.

docs/reference/exports.md describes the content of each, and how to open it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from commlens.base.errors import CommlensError
from commlens.base.outputs import new
from commlens.export import relations
from commlens.export.caliper import write_caliper
from commlens.export.callpaths import write_speedscope_paths
from commlens.export.calltree import CallTree
from commlens.export.folded import write_folded
from commlens.export.graphframe import hatchet, metadata, thicket, write_hatchet, write_thicket
from commlens.export.ranges import Ranges
from commlens.export.timeline import Timeline, write_chrome, write_speedscope
from commlens.export.tinyprof import write_tinyprof
from commlens.profile.meta import is_summary, no_single_ranks
from commlens.profile.shards import NO_ROOM
from commlens.selection.names import check_ranks

__all__ = ["FORMATS", "Choice", "hatchet", "thicket", "write"]


@dataclass(frozen=True)
class Choice:
    """Selects the parts of a profile to export.

    Attributes
    ----------
    unfold : bool
        Show each communicator instead of families.
    mpi : bool
        Include MPI calls.
    ranks : ranges of int
        Only these world ranks; empty means all.
    tables : tuple of str
        Only these tables and views; empty means all.
    callsites : bool
        Call paths: the functions instead of communicators in a tree, instead of time slices for speedscope.
    """

    unfold: bool = False
    mpi: bool = True
    ranks: Ranges = ()
    tables: Sequence[str] = ()
    callsites: bool = False


Tree = Callable[[CallTree, IO[str], str], None]
Line = Callable[[Timeline, IO[str], str, dict[str, str]], None]
Relation = Callable[[sqlite3.Connection, str, Path, str], None]

TREES: dict[str, Tree] = {"hatchet": write_hatchet, "thicket": write_thicket, "caliper": write_caliper}
SPEEDSCOPE = "speedscope"
LINES: dict[str, Line] = {"chrome": write_chrome, SPEEDSCOPE: write_speedscope}
TABLES: dict[str, Relation] = {"csv": relations.write_csv, "parquet": relations.write_parquet}
FOLDED = "folded"
TINYPROF = "tinyprof"
FORMATS = (*TREES, *LINES, FOLDED, *TABLES, TINYPROF)


def write(connection: sqlite3.Connection, to: str, output: Path, choice: Choice, source: str) -> None:
    """Write a profile in one of the formats; an existing file is never overwritten.

    Raises
    ------
    CommlensError
        `output` exists or cannot be written, or the profile lacks data that the format or the choice needs.
    """
    if to not in TABLES and is_summary(connection):
        raise no_single_ranks(f"the format {to}")
    if choice.ranks:
        check_ranks(connection, choice.ranks)
    try:
        with new(output) as temporary:
            if to in TABLES:
                write_tables(connection, to, temporary, choice, source)
                return
            with temporary.open("w", encoding="utf-8", newline="") as file:
                if to in TREES:
                    tree = CallTree(
                        connection, choice.unfold, choice.mpi, choice.ranks, callsites=choice.callsites
                    )
                    TREES[to](tree, file, source)
                elif to == SPEEDSCOPE and choice.callsites:
                    write_speedscope_paths(connection, file, source, metadata(connection), choice.ranks)
                elif to in LINES:
                    timeline = Timeline(connection, choice.unfold, choice.mpi, choice.ranks)
                    LINES[to](timeline, file, source, metadata(connection))
                elif to == FOLDED:
                    write_folded(connection, file, source, choice.ranks)
                else:
                    write_tinyprof(connection, file, source)
    except sqlite3.OperationalError as error:
        # SQLite writes only sorted rows that are too large for memory to this folder.
        if str(error) in NO_ROOM:
            raise CommlensError(f"{error}: no room in the folder for temporary files (TMPDIR)") from None
        raise


def write_tables(connection: sqlite3.Connection, to: str, output: Path, choice: Choice, source: str) -> None:
    """Write one table or view as a file, or several as one file each in a directory."""
    names = list(relations.known(connection, tuple(choice.tables)))
    if len(choice.tables) == 1:
        TABLES[to](connection, names[0], output, source)
        return
    output.mkdir()
    for name in names:
        TABLES[to](connection, name, output / f"{name}.{to}", source)
