# SPDX-License-Identifier: Apache-2.0
"""Some of the kills that `make kills` has hundreds of: at random moments, late in MPI_Finalize above all."""

from __future__ import annotations

import pytest
from fuzz.kills import Case, run
from harness import Mpi

LATE = (7, 9, 11, 26, 30, 37)
"""Seeds of kills while two aggregators store, and just after."""


@pytest.mark.parametrize("seed", LATE)
def test_what_a_killed_job_counted_is_found(mpi: Mpi, seed: int) -> None:
    case = Case.of(seed, [mpi.name])
    outcome = run(case, mpi)
    assert outcome.kind != "finding", "\n".join([str(case), *outcome.detail])
