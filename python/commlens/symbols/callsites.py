# SPDX-License-Identifier: Apache-2.0
"""Resolves call sites to function, file and line: from the profile, or if this machine has the files.

A profile stores a call site as module and offset. `commlens symbols` adds the names to it, in table `frame`. Call sites
without stored names are resolved by `addr2line` from binutils, if the machine where the profile is read has addr2line and
the module with the same build id, or its debug information (debug_files.py). Otherwise module and offset are shown.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from commlens.symbols.addr2line import Symbol
from commlens.symbols.debug_files import files_of, symbols_in

IN_PYTHON = "python:"
"""Begins the build id of a place in Python code: its file, function and line stand for module, build id and offset."""


class Frame(NamedTuple):
    """A function on a call path, and the place in it; the function is empty if it is unknown.

    >>> Frame("solve", "halo.c:31").label, Frame("solve", "in app").name, Frame("", "app+0x12").name
    ('solve halo.c:31', 'solve', 'app+0x12')
    >>> Frame("<module>", "run.py:3").label, Frame("<module>", "run.py:3").name
    ('<module> run.py:3', '<module> run.py')
    """

    function: str
    place: str

    @property
    def label(self) -> str:
        """Function and place."""
        return f"{self.function} {self.place}" if self.function else self.place

    @property
    def name(self) -> str:
        """The function, or the place if it is unknown; of module code in Python also the file."""
        if self.function == "<module>":
            return f"{self.function} {self.place.rpartition(':')[0]}"
        return self.function if self.function not in ("", "??") else self.place


def frame_of(symbol: Symbol, module: str) -> Frame:
    """Return the frame of a symbol: its place is file and line, or the module if they are unknown.

    >>> frame_of(Symbol("f", "/src/a.c", 7), "/bin/app").place, frame_of(Symbol("f", "", 0), "/bin/app").place
    ('a.c:7', 'in app')
    """
    file = PurePosixPath(symbol.file).name
    return Frame(
        symbol.function or "??",
        f"{file}:{symbol.line}" if symbol.line else f"in {PurePosixPath(module).name}",
    )


def stored_label(module: str, offset: int) -> str:
    """Return a call site of compiled code as module and offset."""
    return f"{PurePosixPath(module).name if module else 'unknown'}+0x{offset:x}"


def stored_symbols(connection: sqlite3.Connection) -> dict[int, list[Symbol]]:
    """Return the symbols that the profile has for its call sites, the innermost inlined function first."""
    found: dict[int, list[Symbol]] = {}
    names = "SELECT name FROM sqlite_master UNION ALL SELECT name FROM sqlite_temp_master"
    if not connection.execute(f"SELECT EXISTS (SELECT 1 FROM ({names}) WHERE name = 'frame')").fetchone()[0]:
        return found  # only open_profile() provides a table that is missing
    for site, *symbol in connection.execute(
        "SELECT callsite, function, file, line FROM frame ORDER BY callsite, inlined"
    ):
        found.setdefault(site, []).append(Symbol(*symbol))
    return found


def callsite_frames(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, list[Frame]]:
    """Return the frames of each of the call sites: the innermost inlined function first, usually only one."""
    wanted = set(ids)
    frames: dict[int, list[Frame]] = {}
    modules: dict[tuple[str, str], dict[int, list[int]]] = {}
    stored = stored_symbols(connection)
    for site, module, stored_id, offset in connection.execute(
        "SELECT id, module, build_id, offset FROM callsite ORDER BY id"
    ):
        if site not in wanted:
            continue
        if (stored_id or "").startswith(IN_PYTHON):
            place = f"{PurePosixPath(module or '').name}:{offset}"
            frames[site] = [Frame(stored_id[len(IN_PYTHON) :], place)]
        elif site and site in stored:
            frames[site] = [frame_of(symbol, module or "") for symbol in stored[site]]
        else:
            frames[site] = [Frame("", stored_label(module or "", offset or 0) if site else "unknown")]
            modules.setdefault((module or "", stored_id or ""), {}).setdefault(offset or 0, []).append(site)
    is_own = getattr(connection, "is_own", True)
    for (module, stored_id), offsets in modules.items():
        files = files_of(module, stored_id, is_own=is_own)
        for offset, symbols in symbols_in(files, list(offsets)).items():
            resolved = [frame_of(symbol, module) for symbol in symbols]
            frames.update(dict.fromkeys(offsets[offset], resolved))
    return frames
