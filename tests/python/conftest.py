# SPDX-License-Identifier: Apache-2.0
"""Fixtures: one small profile every number of which can be checked in the head, and the command."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from build_profile import ProfileBuilder

from commlens.cli import commlens

Run = Callable[..., "Result"]

MS = 10**6


def small_builder() -> ProfileBuilder:
    """Return the program of the tests: four ranks, two halves, one pair of them in a grid.

    30 Allreduce of 8 bytes on the world, 100 on each half, of 1 KiB; a halo exchange on rank 0 and 3 only,
    whose Waitall also completes requests of the first half.
    """
    build = ProfileBuilder(
        ranks=4,
        meta={
            "command_line": "./listing1 --steps 30",
            "program": "listing1",
            "start_time": "2026-11-21T10:00:00Z",
            "mpi_library": "Open MPI v4.1.4",
            "mpi_standard": "3.1",
            "thread_level": "single",
            "commlens_version": "0.1.0",
            "job_id": "4711",
        },
        nodes=2,
    )
    build.sites[1] = ("/opt/app/listing1", "", 0x1234)
    build.sites[2] = ("/opt/app/listing1", "", 0x1300)
    made = {"parent": 1, "creator": "MPI_Comm_split", "callsite": 1, "family": 2}
    low = build.comm("s0.1", [0, 1], created_ns=MS, freed_ns=900 * MS, **made)
    build.comm("s2.1", [2, 3], created_ns=MS, **made)
    grid = build.comm(
        "a0.2", [0, 1], parent=low, creator="MPI_Cart_create", callsite=2, topology="cart 2x1 periodic 00",
        user_name="halo grid", created_ns=3 * MS, freed_ns=800 * MS,
    )  # fmt: skip
    both = build.comm("{W0.0,s0.1}", [0, 1, 2, 3], kind="set", sets=(1, low))
    for rank in range(4):
        build.count(
            1, "MPI_Allreduce", rank, 30, (10 + rank) * MS, size=8, sent=240, received=240, callsite=1
        )
        half = low if rank < 2 else low + 1
        build.count(half, "MPI_Allreduce", rank, 60, (50 + 10 * rank) * MS, 1024, 61440, 61440, callsite=1)
        build.count(half, "MPI_Allreduce", rank, 40, 20 * MS, 1024, 40960, 40960, callsite=2)
        build.count(1, "MPI_Comm_split", rank, 1, MS)
        build.count(0, "MPI_Comm_get_parent", rank, 1, 1000)
    build.count(1, "MPI_Isend", 0, 10, 5 * MS, size=100_000, sent=1_000_000)
    build.count(1, "MPI_Irecv", 3, 10, 3 * MS, size=100_000, received=1_000_000)
    build.count(1, "MPI_Alltoallv", 0, 2, 2 * MS, size=None, sent=777, received=333)
    build.count(
        grid, "MPI_Neighbor_alltoall", 1, 5, 4 * MS, size=4096, sent=40960, received=40960, noncontiguous=2
    )
    build.count(both, "MPI_Waitall", 0, 10, 40 * MS)
    build.count(low, "MPI_Comm_free", 0, 1, MS // 2)
    return build


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the small profile."""
    return small_builder().write(tmp_path_factory.mktemp("small") / "small.db")


@dataclass
class Result:
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def run() -> Run:
    """Return a function that runs `commlens` and returns exit code, output and errors.

    By hand, because click's own runner keeps output and errors apart in some versions only.
    """

    def command(*arguments: object) -> Result:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
            commlens([str(argument) for argument in arguments], prog_name="commlens")
        texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
        return Result(int(end.value.code or 0), *texts)

    return command
