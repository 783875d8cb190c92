# SPDX-License-Identifier: Apache-2.0
"""Finds the files with the symbols of a module: the module itself, and files with its debug information alone.

Distributions and sites keep debug information apart from the programs: by build id below /usr/lib/debug, or under the name
in section .gnu_debuglink of the module. A file counts only if it has the build id of the run, so that debug information is
also found for a module that is missing or was built anew. addr2line itself reads the shared parts that dwz makes
(.gnu_debugaltlink).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from commlens.symbols.addr2line import TIMEOUT_S, Symbol, ask_addr2line
from commlens.symbols.elf import build_id, debug_link

DEBUG_FOLDERS = [Path("/usr/lib/debug")]
BUILD_ID = re.compile("[0-9a-f]{4,128}")


def may_be_read(module: str, *, is_own: bool) -> bool:
    """Return whether addr2line may read a file that a profile names.

    addr2line is not hardened against forged files. A profile of another user may therefore only name files of the
    reader or of root.
    """
    try:
        facts = os.stat(module)  # noqa: PTH116 - a name with a zero in it is a ValueError
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(facts.st_mode) and (is_own or facts.st_uid in (0, os.geteuid()))


def files_of(module: str, stored_id: str, *, is_own: bool) -> list[str]:
    """Return the files of this machine that have the symbols of a module, the module first if it is the same build."""
    identity = stored_id.lower()
    if not BUILD_ID.fullmatch(identity):
        return []
    found: dict[str, None] = {}
    for file in _possible(module, identity, is_own=is_own):
        if file not in found and may_be_read(file, is_own=is_own) and build_id(Path(file)) == identity:
            found[file] = None
    return list(found)


def _possible(module: str, identity: str, *, is_own: bool) -> Iterator[str]:
    """Yield the names that such files may have."""
    if module:
        yield module
    for folder in DEBUG_FOLDERS:
        yield str(folder / ".build-id" / identity[:2] / f"{identity[2:]}.debug")
    if not module or "\0" in module:
        return
    path = PurePosixPath(os.path.realpath(module))
    # The section is the same in another build of the module, and the build id of the file decides.
    name = debug_link(Path(module)) if may_be_read(module, is_own=is_own) else ""
    link = PurePosixPath(name or f"{path.name}.debug").name
    for place in (
        path.parent,
        path.parent / ".debug",
        *(Path(f"{top}{path.parent}") for top in DEBUG_FOLDERS),
    ):
        yield str(place / link)


def symbols_in(
    files: Sequence[str], offsets: Sequence[int], timeout_s: float = TIMEOUT_S
) -> dict[int, tuple[Symbol, ...]]:
    """Return the symbols of return addresses; a later file is asked for those without a line in the former ones."""
    found: dict[int, tuple[Symbol, ...]] = {}
    for file in files:
        unknown = sorted(offset for offset in offsets if offset not in found or not found[offset][0].line)
        for offset, symbols in ask_addr2line(file, unknown, timeout_s).items():
            if symbols[0].line or offset not in found:
                found[offset] = symbols
    return found
