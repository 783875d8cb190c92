# SPDX-License-Identifier: Apache-2.0
"""Open MPI sends what the schedules say; docs/evidence/algorithms.md has all of it, this is one of each kind."""

from __future__ import annotations

import pytest
from bench import algorithms
from bench.algorithm_cases import Case, launches
from bench.algorithm_results import Result, compare
from conftest import NAMES

from commlens.profile import open_profile

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


Results = dict[str, Result]


def label(case: Case) -> str:
    return f"{case.collective}-{case.number}"


@pytest.fixture(scope="module", params=[name for name in NAMES if name.startswith("openmpi")])
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Run all cases, those together that do not contradict each other, and compare."""
    # Tests that run in parallel measure in folders of their own.
    algorithms.BUILD = tmp_path_factory.mktemp("schedules")
    library = next(one for one in algorithms.libraries() if one.name == request.param)
    found = {}
    for launch in launches(CASES):
        place = algorithms.run(library, launch, again=True)
        component = algorithms.stock(place, launch.ranks)
        with open_profile(str(place / "profile.db")) as connection:
            profile, answers = algorithms.profiled(connection)
        for case in launch.cases:
            found[label(case)] = compare(library.release, case, component, profile, answers)
    return found


@pytest.mark.parametrize("case", CASES, ids=label)
def test_open_mpi_sends_what_the_schedule_says(results: Results, case: Case) -> None:
    """And so its monitoring component says, and so does a profile, and `commlens algorithms` names it."""
    result = results[label(case)]
    assert result.different == {"component": [], "profile": []}
    assert result.calls >= 6
    assert result.named["not"] == 0
    assert sum(result.named.values()) == result.calls
