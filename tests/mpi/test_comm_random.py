# SPDX-License-Identifier: Apache-2.0
"""Random sequences of communicators made and freed, against a replay without MPI."""

from __future__ import annotations

import pytest
from fuzz.identity import nth_run
from harness import Mpi

AT_ONCE = 60  # sequences a run; `make fuzz` does more


@pytest.mark.dealt
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7])
def test_every_communicator_is_put_together_from_its_members(mpi: Mpi, n: int) -> None:
    run = nth_run(mpi.name, n, AT_ONCE)
    result = run.launch(mpi)
    assert (result.rc, result.said) == (0, []), result
    profile = result.open()
    profile.check()
    assert len(profile.comms()) > run.sequences * run.threads
    assert list(run.differences(profile)) == []
