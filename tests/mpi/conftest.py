# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the MPI tests.

`mpi` is one MPI library; a test that asks for it runs once per library: with Debian's Open MPI and MPICH, or with those
that COMMLENS_TEST_MPI names, such as COMMLENS_TEST_MPI=openmpi5,mpich5,mpich5-abi,intel,intel-abi for the ones that
tools/mpis.sh fetches.  One that is not there is an error, not a skip.
"""

from __future__ import annotations

import os

import pytest
from harness import Mpi

NAMES = tuple(os.environ.get("COMMLENS_TEST_MPI", "openmpi,mpich").split(","))


@pytest.fixture(scope="session", params=NAMES)
def mpi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    """Return one MPI implementation with our library built for it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    programs = shared / "programs" / request.param
    programs.mkdir(parents=True, exist_ok=True)
    found = Mpi(request.param, tmp_path_factory.mktemp(request.param), programs)
    for product in (found.library, found.runner):
        if not product.exists():
            pytest.fail(f"{product} is missing: run `make build` first")
    return found
