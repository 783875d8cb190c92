# SPDX-License-Identifier: Apache-2.0
"""Asks addr2line (binutils) for the functions, files and lines of return addresses in an ELF file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from commlens.symbols.elf import inside_functions

TIMEOUT_S = 20  # addr2line needs seconds to read the debug information of a large program
BATCH = 500
MOST_INLINED = 256
LONGEST_NAME = 4096  # bytes
ADDRESS = re.compile("0x[0-9a-f]+")


class Symbol(NamedTuple):
    """A function, and the place of the call in it; file and line are empty and 0 if they are unknown."""

    function: str
    file: str
    line: int


def is_installed() -> bool:
    """Return whether there is an addr2line."""
    return shutil.which("addr2line") is not None


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


def ask_addr2line(
    file: str, offsets: list[int], timeout_s: float = TIMEOUT_S
) -> dict[int, tuple[Symbol, ...]]:
    """Return the symbols of the return addresses that addr2line resolves.

    Several symbols are functions that the compiler inlined into each other, the innermost first.

    Parameters
    ----------
    timeout_s : float
        Longest time for one call of addr2line; the remaining addresses are not resolved.
    """
    tool = shutil.which("addr2line")
    offsets = [
        offset for offset in offsets if offset > 0
    ]  # of a damaged profile: addr2line would take it for an option
    found: dict[int, tuple[Symbol, ...]] = {}
    for start in range(0, len(offsets) if tool is not None else 0, BATCH):
        batch = offsets[start : start + BATCH]
        # A return address belongs to the instruction after the call; the byte before is still the call.
        addresses = [hex(offset - 1) for offset in batch]
        try:
            answer = subprocess.run(
                [str(tool), "-a", "-i", "-f", "-C", "-e", file, *addresses],
                capture_output=True,
                check=True,
                timeout=timeout_s,
            ).stdout.decode(errors="replace")
        except (OSError, subprocess.SubprocessError):
            return found
        answers = by_address(answer.splitlines())
        if len(answers) != len(batch):
            return found
        named = inside_functions(Path(file), [offset - 1 for offset in batch])
        for offset, lines in zip(batch, answers):
            symbols = [read_symbol(*pair) for pair in zip(lines[::2], lines[1::2])][:MOST_INLINED]
            if symbols and symbols[0].line:
                found[offset] = tuple(symbol for symbol in symbols if symbol.line)
            elif symbols and symbols[0].function and offset - 1 in named:
                found[offset] = (symbols[0],)
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


def read_symbol(function: str, place: str) -> Symbol:
    """Return a symbol from the two lines of addr2line.

    >>> read_symbol("f(int)", "/src/a.cpp:7 (discriminator 3)"), read_symbol("f", "a.c:?"), read_symbol("??", "??:0")
    (Symbol(function='f', file='/src/a.cpp', line=7), Symbol(function='f', file='', line=0), Symbol(function='', file='', line=0))
    """
    file, _, line = place.partition(" (discriminator")[0].rpartition(":")
    is_known = line.isdigit() and 0 < int(line) < 1 << 32 and file not in ("", "??")
    name = "" if function == "??" else shortened(without_arguments(function))
    return Symbol(name, shortened(file), int(line)) if is_known else Symbol(name, "", 0)


def shortened(name: str) -> str:
    """Return a name of at most as many bytes as the profile stores; names of C++ templates can be longer."""
    content = name.encode(errors="replace")
    return (
        name if len(content) <= LONGEST_NAME else content[: LONGEST_NAME - 3].decode(errors="ignore") + "..."
    )
