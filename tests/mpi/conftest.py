# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the MPI tests.

`mpi` is one MPI implementation; a test that asks for it runs once per implementation.  Both must be there:
a missing one is an error, not a skip.  COMMLENS_TEST_MPI=openmpi (or mpich) restricts the tests on purpose.
"""

from __future__ import annotations

import os

import pytest
from harness import Mpi

NAMES = tuple(os.environ.get("COMMLENS_TEST_MPI", "openmpi,mpich").split(","))


@pytest.fixture(scope="session", params=NAMES)
def mpi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    """Return one MPI implementation with our library built for it."""
    found = Mpi(request.param, tmp_path_factory.mktemp(request.param))
    for product in (found.library, found.runner):
        if not product.exists():
            pytest.fail(f"{product} is missing: run `make build` first")
    return found
