# SPDX-License-Identifier: Apache-2.0
"""Finds the functions of all call sites of a profile, and the reasons why some stay without."""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from commlens.base.progress import tracked
from commlens.symbols.addr2line import Symbol
from commlens.symbols.callsites import IN_PYTHON, stored_symbols
from commlens.symbols.debug_files import BUILD_ID, files_of, may_be_read, symbols_in
from commlens.symbols.debuginfod import Downloads
from commlens.symbols.elf import build_id, has_line_numbers

PATIENCE_S = 600
"""Time for one call of addr2line: here nobody waits for a report."""

Symbols = Sequence[Symbol]


class Missing(NamedTuple):
    """Call sites of one module that have no function, or no line, and the reason."""

    module: str
    sites: int
    what: str
    reason: str

    def __str__(self) -> str:
        """Return one line."""
        noun = "call site" if self.sites == 1 else "call sites"
        return f"{self.module or 'unknown module'}: {self.sites:,} {noun} without {self.what}: {self.reason}"


@dataclass
class Names:
    """The symbols of the call sites of a profile.

    Attributes
    ----------
    sites : int
        Number of call sites in compiled code.
    symbols : dict of int to sequence of Symbol
        Those that the profile has, and those that were found.
    found : int
        Number of call sites whose symbols are new or better.
    missing : list of Missing
    """

    sites: int
    symbols: dict[int, Symbols]
    found: int = 0
    missing: list[Missing] = field(default_factory=list)

    def rows(self) -> Iterator[tuple[int, int, str, str, int]]:
        """Yield the rows of table frame."""
        for site, symbols in sorted(self.symbols.items()):
            for inlined, symbol in enumerate(symbols):
                yield (site, inlined, *symbol)


def find_names(connection: sqlite3.Connection, source: str, downloads: Downloads) -> Names:
    """Resolve the call sites that have no stored line.

    Parameters
    ----------
    source : str
        Name of the profile, for the progress bar.
    """
    modules: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    names = Names(0, dict(stored_symbols(connection)))
    names.symbols.pop(0, None)
    for site, module, stored_id, offset in connection.execute(
        "SELECT id, module, build_id, offset FROM callsite WHERE id <> 0 ORDER BY id"
    ):
        if (stored_id or "").startswith(IN_PYTHON):
            continue  # has its names
        names.sites += 1
        if not has_line(names.symbols.get(site)):
            modules[module or "", (stored_id or "").lower()][offset or 0].append(site)
    is_own = getattr(connection, "is_own", True)
    for (module, stored_id), offsets in tracked(sorted(modules.items()), f"names of {source}"):
        found, reason = resolve(module, stored_id, list(offsets), downloads, is_own=is_own)
        for offset, symbols in found.items():
            for site in offsets[offset]:
                if has_line(symbols) or site not in names.symbols:
                    names.symbols[site] = symbols
                    names.found += 1
        names.missing += without_names(names.symbols, module, offsets, reason)
    return names


def has_line(symbols: Symbols | None) -> bool:
    """Return whether a call site has file and line."""
    return bool(symbols) and symbols[0].line > 0  # type: ignore[index]


def resolve(
    module: str, stored_id: str, offsets: list[int], downloads: Downloads, *, is_own: bool
) -> tuple[dict[int, tuple[Symbol, ...]], str]:
    """Return the symbols of the return addresses of a module, and the reason why some are missing."""
    files = files_of(module, stored_id, is_own=is_own)
    found = symbols_in(files, offsets, PATIENCE_S)
    if any(has_line_numbers(Path(file)) for file in files):
        return found, "addr2line does not know them"
    reason = "it has no debug information" if files else why_not(module, stored_id, is_own=is_own)
    if not BUILD_ID.fullmatch(stored_id):
        return found, reason
    file, failure = downloads.get(module, stored_id)
    if file is None:
        return found, f"{reason}; {failure}" if failure else reason
    return symbols_in([str(file), *files], offsets, PATIENCE_S), "addr2line does not know them"


def why_not(module: str, stored_id: str, *, is_own: bool) -> str:
    """Return why no file of this machine has the symbols of a module."""
    if not module:
        return "the run did not find out to which file they belong"
    if not stored_id:
        return "the run stored no build id of it, so that no file can be recognised"
    if not os.path.exists(module):  # noqa: PTH110 - Path raises ValueError for a name with a zero in it
        return f"not on this machine; its build id is {stored_id}"
    if not may_be_read(module, is_own=is_own):
        return "the profile is of another user, and may only name files of yours or of root"
    own_id = build_id(Path(module)) or "(none)"
    return f"the build differs: the file has build id {own_id}, that of the run had {stored_id}"


def without_names(
    symbols: dict[int, Symbols], module: str, offsets: dict[int, list[int]], reason: str
) -> Iterator[Missing]:
    """Yield the call sites of a module that have no function, and those that have no line."""
    sites = [site for alike in offsets.values() for site in alike]
    functions = sum(site not in symbols for site in sites)
    lines = sum(site in symbols and not has_line(symbols[site]) for site in sites)
    for what, number in (("function", functions), ("line", lines)):
        if number:
            yield Missing(module, number, what, reason)
