# SPDX-License-Identifier: Apache-2.0
"""gen/coverage.py: no blank cell, and nothing is said to be tested that is not."""

from __future__ import annotations

import pytest

import coverage
from policy import Policy
from standard import Form

A, B = "Open MPI 4.1.4", "MPICH 4.0.2"


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ({}, "in no library here"),
        ({A: ["test_x", "test_y"], B: ["test_x"]}, f"`test_x`, `test_y`; with {A}, {B}"),
        ({A: ["test_x"]}, f"`test_x`; with {A}; not in {B}"),
        ({A: ["test_x"], B: []}, f"`test_x`; with {A}; not called with {B}"),
        ({B: []}, f"**untested**, is in {B}"),
        (
            {A: ["test_x"], B: ["test_x fails without commlens too"]},
            f"`test_x`; with {A}; with {B} it fails without commlens too (`test_x`)",
        ),
    ],
)
def test_where_is_what_the_evidence_says(tests: dict[str, list[str]], said: str) -> None:
    assert coverage.where(tests, [B, A]) == said


def test_every_procedure_has_how_and_where(forms: dict[str, list[Form]], policy: dict[str, Policy]) -> None:
    page = coverage.page(
        forms, policy, {"libraries": {A: []}, "MPI_Send": {A: ["test_x"]}, "MPI_Recv": {A: []}}, "apart"
    )
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `MPI_")]
    assert [row[0] for row in rows] == [f"| `{name}`" for name in sorted(forms)]
    assert all(len(row) == 3 and all(cell.strip(" |") for cell in row) for row in rows)
    summary = page.split("| skipped")[1].split("**How")[0]
    rest = len(forms) - 2
    assert "| tested | 1 |\n| of them with every library here that has it | 1 |\n| untested | 1 |" in summary
    assert f"| in no library here ({A}) | {rest} |" in summary
