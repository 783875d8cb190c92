# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions that commlens adds to a call, and compares them with bench/instructions.csv.

Times on a shared machine say nothing of a few nanoseconds; instructions are the same wherever the same compiler made them.
"""

from __future__ import annotations

import shutil
import sys

import pytest
from harness import BUILD, ROOT, SANITIZER, Mpi

sys.path.insert(0, str(ROOT / "bench"))
import instructions

TOLERANCE = {1: 0.05, 32: 0.3}
"""By communicators in turn: where their handles lie decides how many of 32 have a place of their own among kept calls
(core/hot/cached_call.h); what more of them cost is not held to the table."""
SLACK = 8  # instructions: where addresses happen to lie, a probe of a table more or less


@pytest.mark.skipif(SANITIZER is not None, reason="a sanitizer's instructions are not ours")
def test_no_call_has_become_dearer(mpi: Mpi) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    table = {
        row: line
        for row, line in instructions.read_table().items()
        if row[0] == mpi.name and row[2] in TOLERANCE
    }
    if not table or any(line["compiler"] != instructions.compiler() for line in table.values()):
        pytest.skip("the table is of another compiler")
    program = mpi.compile(ROOT / "bench" / "instructions.c", flags=["-O2", "-Wno-stringop-overflow"])
    found = instructions.measure(mpi.name, program, BUILD / "bin" / "commlens-run", most=max(TOLERANCE))
    assert set(found) == set(table)
    wrong = [
        f"{call}, {communicators} communicators: {counted[leg]} added, {table[mpi.name, call, communicators][leg]} in the table"
        for (_, call, communicators), counted in found.items()
        for leg in ("matrix_off", "added")
        if abs(counted[leg] - float(table[mpi.name, call, communicators][leg]))
        > TOLERANCE[communicators] * counted[leg] + SLACK
    ]
    assert not wrong, f"{wrong}: on purpose? bench/instructions.py --save"
