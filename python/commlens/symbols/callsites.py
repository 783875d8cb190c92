# SPDX-License-Identifier: Apache-2.0
"""Resolves call sites to function, file and line, if this machine has the files.

A profile stores a call site as module and offset.  `addr2line` from binutils resolves it, if the machine where the
profile is read has addr2line and the module with the same build id.  Otherwise module and offset are shown.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from commlens.symbols.elf import build_id, inside_functions

TIMEOUT_S = 20  # addr2line needs seconds to read the debug information of a large program
BATCH = 500


def without_arguments(function: str) -> str:
    """Return a demangled C++ name without its argument list, which can be longer than a line.

    >>> without_arguments("lib::map(int (*) [2], std::less<(a)1>) const"), without_arguments("main")
    ('lib::map', 'main')
    """
    end = function.rfind(")")
    depth = 0
    for i in range(end, -1, -1):
        depth += {")": 1, "(": -1}.get(function[i], 0)
        if depth == 0:
            # Not the parentheses of operator() and of (anonymous namespace).
            return function[:i] if i > 0 and function[end + 1 :] in ("", " const") else function
    return function


def ask_addr2line(module: str, offsets: list[int]) -> dict[int, str]:
    """Return `function file:line` for the return addresses that addr2line resolves."""
    tool = shutil.which("addr2line")
    if tool is None:
        return {}
    labels: dict[int, str] = {}
    for start in range(0, len(offsets), BATCH):
        batch = offsets[start : start + BATCH]
        # A return address belongs to the instruction after the call; the byte before is still the call.
        addresses = [hex(offset - 1) for offset in batch]
        try:
            answer = subprocess.run(
                [tool, "-f", "-C", "-e", module, *addresses],
                capture_output=True,
                check=True,
                timeout=TIMEOUT_S,
            ).stdout.decode(errors="replace")
        except (OSError, subprocess.SubprocessError):
            return labels
        lines = answer.splitlines()
        if len(lines) != 2 * len(batch):
            return labels
        named = inside_functions(Path(module), [offset - 1 for offset in batch])
        for offset, function, place in zip(batch, lines[::2], lines[1::2]):
            function = without_arguments(function)
            file, _, line = place.partition(" (discriminator")[0].rpartition(":")
            if line.isdigit() and line != "0" and file not in ("", "??"):
                labels[offset] = f"{function} {PurePosixPath(file).name}:{line}"
            elif function != "??" and offset - 1 in named:
                labels[offset] = f"{function} in {PurePosixPath(module).name}"
    return labels


def stored_label(module: str, offset: int) -> str:
    """Return a call site as module and offset."""
    return f"{PurePosixPath(module).name if module else 'unknown'}+0x{offset:x}"


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


def callsite_labels(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Return a label for each of the call sites."""
    wanted = set(ids)
    labels: dict[int, str] = {}
    modules: dict[tuple[str, str], dict[int, list[int]]] = {}
    for site, module, stored_id, offset in connection.execute(
        "SELECT id, module, build_id, offset FROM callsite ORDER BY id"
    ):
        if site in wanted:
            labels[site] = stored_label(module or "", offset or 0) if site else "unknown"
            modules.setdefault((module or "", stored_id or ""), {}).setdefault(offset or 0, []).append(site)
    is_own = getattr(connection, "is_own", True)
    for (module, stored_id), offsets in modules.items():
        if not (stored_id and module and may_be_read(module, is_own=is_own)):
            continue
        if build_id(Path(module)) == stored_id.lower():
            for offset, label in ask_addr2line(module, sorted(offsets)).items():
                for site in offsets[offset]:
                    labels[site] = label
    return labels
