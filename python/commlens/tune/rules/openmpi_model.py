# SPDX-License-Identifier: Apache-2.0
"""What coll/tuned of Open MPI 4.1 and 5.0 does with a file of rules: a model of its parser, independent of the writer.

The parser takes the next integer wherever it is, skips other characters, and ignores the rest of a line behind #.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from commlens.base.errors import CommlensError

COLLECTIVES = 22  # how many numbers of collectives the library has
Rule = tuple[int, int, int, int]
"""Bytes, algorithm, fan and segment size."""
Table = dict[int, list[tuple[int, list[Rule]]]]
"""By collective: the communicator sizes in the order of the file, each with its rules."""


def parse(text: str) -> Table:
    """Return the rules that the library reads from a file.

    Raises
    ------
    CommlensError
        The library would ignore the file.
    """
    numbers = _numbers(text)

    def take() -> int:
        value = next(numbers, -1)
        if value < 0:
            raise CommlensError("Open MPI would ignore the rules: a number is missing or negative")
        return value

    table: Table = {}
    for _ in range(take()):
        collective = take()
        if collective >= COLLECTIVES:
            raise CommlensError(f"Open MPI would ignore the rules: there is no collective {collective}")
        sizes = table[collective] = []
        for _ in range(take()):
            size, count = take(), take()
            rules = [(take(), take(), take(), take()) for _ in range(count)]
            if rules and rules[0][0]:
                raise CommlensError(
                    "Open MPI would ignore the rules: the first one of a size is not for 0 bytes"
                )
            sizes.append((size, rules))
    return table


def select(table: Table, collective: int, size: int, bytes: int) -> tuple[int, int, int]:
    """Return algorithm, fan and segment size for a call; algorithm 0 is the library's own choice."""
    sizes = table.get(collective)
    if not sizes:
        return 0, 0, 0
    rules = sizes[0][1]  # also for smaller communicators
    for least, those in sizes:
        if least > size:
            break
        rules = those
    if not rules:
        return 0, 0, 0
    best = rules[0]
    for rule in rules:
        if rule[0] > bytes:
            break
        best = rule
    return best[1:]


def _numbers(text: str) -> Iterator[int]:
    """Yield the integers of a file as the C library reads them: decimal, octal behind 0, hexadecimal behind 0x."""
    for line in text.splitlines():
        for match in re.finditer(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)", line.partition("#")[0], re.ASCII):
            digits = match[0].lstrip("+-").lower()
            base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
            value = int(digits, base)
            yield -value if match[0].startswith("-") else value
