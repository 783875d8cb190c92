# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions that commlens adds to a call, and compares them with bench/instructions.csv.

Times on a shared machine say nothing of a few nanoseconds; instructions are the same wherever the same compiler made them.
"""

from __future__ import annotations

import pytest
from bench import instructions
from harness import BUILD, ROOT, SANITIZER, Mpi
from tests.needs import need_programs

TOLERANCE = {1: 0.05, 32: 0.3}
"""By communicators in turn: where their handles lie decides how many of 32 have a place of their own among kept calls
(core/hot/cached_call.h); what more of them cost is not held to the table."""
SLACK = 8  # instructions: where addresses happen to lie, a probe of a table more or less
LAYOUTS = 4
"""Addresses that are tried.  In about one of a hundred, three of 32 communicators share the two places of a row of the
cache; a call that has become dearer is dearer in all of them."""

Table = dict[instructions.Row, dict[str, str]]


def read_table(mpi: Mpi) -> Table:
    """Return the lines of bench/instructions.csv that are held against new counts."""
    return {
        row: line
        for row, line in instructions.read_table().items()
        if row[0] == mpi.name and row[2] in TOLERANCE
    }


def compare(counted: dict[instructions.Row, dict[str, float]], table: Table) -> dict[tuple[object, ...], str]:
    """Return a sentence for each count that is not that of the table, by row and leg."""
    assert set(counted) == set(table)
    return {
        (
            row,
            leg,
        ): f"{row[1]}, {row[2]} communicators, {leg}: {legs[leg]} added, {table[row][leg]} in the table"
        for row, legs in counted.items()
        for leg in ("matrix_off", "added", "frames_4")
        if abs(legs[leg] - float(table[row][leg])) > TOLERANCE[row[2]] * legs[leg] + SLACK
    }


@pytest.mark.skipif(SANITIZER is not None, reason="a sanitizer's instructions are not ours")
def test_no_call_has_become_dearer(mpi: Mpi) -> None:
    need_programs("valgrind", package="valgrind")
    table = read_table(mpi)
    if not table or any(line["compiler"] != instructions.compiler() for line in table.values()):
        pytest.skip("the table is of another compiler")
    program = mpi.compile(ROOT / "bench" / "instructions.c", flags=["-O2", "-Wno-stringop-overflow"])
    runner = BUILD / "bin" / "commlens-run"
    wrong: dict[tuple[object, ...], str] = {}
    for layout in range(LAYOUTS):
        found = compare(instructions.measure(mpi.name, program, runner, max(TOLERANCE), layout), table)
        wrong = {key: found[key] for key in found if layout == 0 or key in wrong}
        if not wrong:
            break
    assert not wrong, f"{list(wrong.values())}: on purpose? bench/instructions.py --save"
