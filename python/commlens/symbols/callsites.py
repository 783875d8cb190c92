# SPDX-License-Identifier: Apache-2.0
"""Resolves call sites to function, file and line, if this machine has the files.

A profile stores a call site as module and offset.  `addr2line` from binutils resolves it, if the machine where the
profile is read has addr2line and the module with the same build id.  Otherwise module and offset are shown.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from commlens.symbols.elf import build_id, inside_functions

TIMEOUT_S = 20  # addr2line needs seconds to read the debug information of a large program
BATCH = 500
ADDRESS = re.compile("0x[0-9a-f]+")


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


class Frame(NamedTuple):
    """A function on a call path, and the place in it; the function is empty if it is unknown.

    >>> Frame("solve", "halo.c:31").label, Frame("solve", "in app").name, Frame("", "app+0x12").name
    ('solve halo.c:31', 'solve', 'app+0x12')
    """

    function: str
    place: str

    @property
    def label(self) -> str:
        """Function and place."""
        return f"{self.function} {self.place}" if self.function else self.place

    @property
    def name(self) -> str:
        """The function, or the place if it is unknown."""
        return self.function if self.function not in ("", "??") else self.place


def ask_addr2line(module: str, offsets: list[int]) -> dict[int, list[Frame]]:
    """Return the frames of the return addresses that addr2line resolves.

    Several frames are functions that the compiler inlined into each other, the innermost first.
    """
    tool = shutil.which("addr2line")
    if tool is None:
        return {}
    found: dict[int, list[Frame]] = {}
    for start in range(0, len(offsets), BATCH):
        batch = offsets[start : start + BATCH]
        # A return address belongs to the instruction after the call; the byte before is still the call.
        addresses = [hex(offset - 1) for offset in batch]
        try:
            answer = subprocess.run(
                [tool, "-a", "-i", "-f", "-C", "-e", module, *addresses],
                capture_output=True,
                check=True,
                timeout=TIMEOUT_S,
            ).stdout.decode(errors="replace")
        except (OSError, subprocess.SubprocessError):
            return found
        answers = by_address(answer.splitlines())
        if len(answers) != len(batch):
            return found
        named = inside_functions(Path(module), [offset - 1 for offset in batch])
        for offset, lines in zip(batch, answers):
            frames = [read_frame(*pair) for pair in zip(lines[::2], lines[1::2])]
            if frames and ":" in frames[0].place:
                found[offset] = [frame for frame in frames if ":" in frame.place]
            elif frames and frames[0].function != "??" and offset - 1 in named:
                found[offset] = [Frame(frames[0].function, f"in {PurePosixPath(module).name}")]
    return found


def by_address(lines: list[str]) -> list[list[str]]:
    """Return the lines of addr2line for each address: a function and a place for each frame.

    >>> by_address(["0x10", "solve", "a.c:7", "main", "a.c:9", "0x20", "??", "??:0"])
    [['solve', 'a.c:7', 'main', 'a.c:9'], ['??', '??:0']]
    """
    answers: list[list[str]] = []
    for line in lines:
        if ADDRESS.fullmatch(line):
            answers.append([])
        elif answers:
            answers[-1].append(line)
    return answers


def read_frame(function: str, place: str) -> Frame:
    """Return a frame as addr2line names it; its place is empty if the line is unknown."""
    file, _, line = place.partition(" (discriminator")[0].rpartition(":")
    is_known = line.isdigit() and line != "0" and file not in ("", "??")
    return Frame(without_arguments(function), f"{PurePosixPath(file).name}:{line}" if is_known else "")


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


def callsite_frames(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, list[Frame]]:
    """Return the frames of each of the call sites: the innermost inlined function first, usually only one."""
    wanted = set(ids)
    frames: dict[int, list[Frame]] = {}
    modules: dict[tuple[str, str], dict[int, list[int]]] = {}
    for site, module, stored_id, offset in connection.execute(
        "SELECT id, module, build_id, offset FROM callsite ORDER BY id"
    ):
        if site in wanted:
            frames[site] = [Frame("", stored_label(module or "", offset or 0) if site else "unknown")]
            modules.setdefault((module or "", stored_id or ""), {}).setdefault(offset or 0, []).append(site)
    is_own = getattr(connection, "is_own", True)
    for (module, stored_id), offsets in modules.items():
        if not (stored_id and module and may_be_read(module, is_own=is_own)):
            continue
        if build_id(Path(module)) == stored_id.lower():
            for offset, resolved in ask_addr2line(module, sorted(offsets)).items():
                frames.update(dict.fromkeys(offsets[offset], resolved))
    return frames
