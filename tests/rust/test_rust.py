# SPDX-License-Identifier: Apache-2.0
"""Programs in Rust with rsmpi: `make test-rust`, which sets what cargo needs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from harness import ROOT, Mpi, commlens

RANKS = 4
CALLS = {
    "MPI_Allreduce": (5, "W0.0"),
    "MPI_Isend": (3, "W0.0"),
    "MPI_Mprobe": (3, "W0.0"),
    "MPI_Mrecv": (3, "W0.0"),
    "MPI_Wait": (3, "W0.0"),
    "MPI_Comm_split": (1, "W0.0"),
    "MPI_Barrier": (7, "s0.1 s1.1"),
}
"""Calls of each rank, and the communicators, as src/main.rs has them; receive_vec() probes before it receives."""


@pytest.fixture(scope="session", params=["openmpi", "mpich"])
def tour(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Mpi, Path]:
    """Return an MPI library, and the program for it."""
    mpi = Mpi(request.param, tmp_path_factory.mktemp("rust"))
    target = ROOT / "build" / "rust" / mpi.name
    env = {**os.environ, "MPICC": mpi.compilers["c"], "CARGO_TARGET_DIR": str(target)}
    subprocess.run(["cargo", "build", "--locked"], cwd=Path(__file__).parent, env=env, check=True)
    return mpi, target / "debug" / "tour"


def test_calls_are_counted_by_communicator(tour: tuple[Mpi, Path]) -> None:
    mpi, program = tour
    plain, result = mpi.pair(RANKS, [program])
    assert (plain.rc, plain.stdout) == (0, "sum 6\n")
    assert (result.rc, result.stdout) == (0, "sum 6\n"), result
    profile = result.open()
    profile.check()
    rows = profile.rows(
        "SELECT operation, rank, communicator, SUM(calls) AS calls FROM counter GROUP BY 1, 2, 3"
    )
    for operation, (calls, communicators) in CALLS.items():
        found = [row for row in rows if row["operation"] == operation]
        assert [row["calls"] for row in found] == [calls] * RANKS, operation
        assert " ".join(sorted({row["communicator"] for row in found})) == communicators, operation


def test_call_sites_are_functions_and_lines_of_the_program(tour: tuple[Mpi, Path]) -> None:
    """Rsmpi passes calls on; its functions are left out by --wrapper."""
    mpi, program = tour
    result = mpi.run(RANKS, [program], env={"COMMLENS_FRAMES": "8"})
    done = commlens("report", str(result.profile), "--callsites", "--wrapper", "*mpi::*")
    text = done.stdout
    for place in ("tour::sums main.rs:12 ", "tour::ring::{{closure}} main.rs:", "tour::main main.rs:"):
        assert place in text, text
