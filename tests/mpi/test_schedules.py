# SPDX-License-Identifier: Apache-2.0
"""Open MPI sends what the schedules say; docs/algorithms.md has all of it, this is one of each kind."""

from __future__ import annotations

import pytest
from bench import algorithms
from bench.algorithms import Case, Library
from conftest import NAMES

CASES = [
    Case("barrier", 3, (0,), ranks=7),
    Case("bcast", 4, (1000,), {"segment": 100}, ranks=7),
    Case("bcast", 8, (3, 1000), ranks=7),
    Case("reduce", 7, (1000,), ranks=7),
    Case("allreduce", 2, (1000,), told={"reduce": 6, "bcast": 2}, ranks=7),
    Case("allgatherv", 2, (-7,), ranks=7),
    Case("alltoall", 3, (1000,), ranks=7),
    Case("alltoallv", 2, (-7,), ranks=7),
    Case("reduce_scatter", 4, (1000,), ranks=7),
]


@pytest.fixture(scope="module", params=[name for name in NAMES if name.startswith("openmpi")])
def library(request: pytest.FixtureRequest) -> Library:
    return next(one for one in algorithms.libraries() if one.name == request.param)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.collective}-{case.number}")
def test_open_mpi_sends_what_the_schedule_says(library: Library, case: Case) -> None:
    result = algorithms.compare(library, case, algorithms.stock(library, case))
    assert result.different == []
    assert result.calls >= 6
    assert result.not_recognised == []
    assert result.recognised > 0
