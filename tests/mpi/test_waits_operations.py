# SPDX-License-Identifier: Apache-2.0
"""Who keeps whom waiting in non-blocking and persistent collectives, prefix sums, among neighbours, and in fences: against a trace."""

from __future__ import annotations

import pytest
from harness import TRIES, Mpi
from traces import check, read, run

PROGRAM = "late_operations.c"
CASES = (
    *("allreduce", "rotating", "barrier", "overlap", "bcast", "reduce", "reversed", "waitall"),
    *("fence", "scan", "iscan", "neighbor", "ineighbor"),
)


@pytest.mark.dealt
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("case", [*CASES, "persistent"])
def test_waiting_and_the_late_rank_are_those_of_a_trace(mpi: Mpi, case: str, ranks: int) -> None:
    """Every operation is sampled, because there are few."""
    if case == "persistent" and mpi.is_open_mpi_4:
        pytest.skip("Open MPI 4 has no persistent collectives")
    truth, profile = run(mpi, PROGRAM, ranks, case)
    found = read(profile)
    assert set(found.rows) == set(truth)
    assert found.unsplit == []
    for operation, row in found.rows.items():
        assert row["share_low"] == row["share_high"] == row["waiting_share"]
        check(truth[operation], row)


def test_some_of_many_operations_stand_for_all(mpi: Mpi) -> None:
    steps = 20_000
    for _ in range(TRIES):
        truth, profile = run(mpi, PROGRAM, 2, "allreduce", steps, 1)
        expected, row = truth["MPI_Wait"], read(profile).rows["MPI_Wait"]
        assert 0 < row["samples"] < 2 * steps
        assert row["share_low"] < row["waiting_share"] < row["share_high"]
        margin = 0.02  # the two look at the clock some 100 ns apart
        if row["share_low"] - margin <= expected.waiting / expected.time <= row["share_high"] + margin:
            return
    pytest.fail(f"{row}, {expected}")


def test_several_aggregators_find_what_one_finds(mpi: Mpi) -> None:
    truth, profile = run(mpi, PROGRAM, 4, "waitall", env={"COMMLENS_AGGREGATORS": "3"})
    found = read(profile.with_suffix(".commlens"))
    assert set(found.rows) == set(truth)
    for operation, row in found.rows.items():
        check(truth[operation], row)


def test_without_the_matrix_operations_are_split(mpi: Mpi) -> None:
    truth, profile = run(mpi, PROGRAM, 2, "allreduce", env={"COMMLENS_MATRIX": "off"})
    check(truth["MPI_Wait"], read(profile).rows["MPI_Wait"])
