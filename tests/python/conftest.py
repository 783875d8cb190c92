# SPDX-License-Identifier: Apache-2.0
"""Fixtures: one small profile every number of which can be checked in the head, and the command."""

from __future__ import annotations

import io
import os
import sqlite3
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from build_profile import ProfileBuilder, RegionSlice
from build_waits import Kind, RankWaits, add_clock, add_samples, add_unsplit

from commlens.cli import commlens
from commlens.profile.database import OPERATIONS, Database

Run = Callable[..., "Result"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--first-cases", action="store_true", help="run each test with its first parameters only"
    )
    parser.addoption(
        "--every-case", action="store_true", help="run also the cases of a test that only take long"
    )
    parser.addoption(
        "--renew-images", action="store_true", help="store what test_page_images.py sees as the images to see"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --first-cases, deselect all cases of a test but the first."""
    if not config.getoption("--first-cases"):
        return
    first: dict[str, pytest.Item] = {}
    for item in items:
        first.setdefault(item.nodeid.partition("[")[0], item)
    config.hook.pytest_deselected(items=[item for item in items if item not in first.values()])
    items[:] = first.values()


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


class Marked:
    """The regions and metrics of the program that says what it does, and what a rank does in them.

    Parameters
    ----------
    build : gets the rows
    """

    def __init__(self, build: ProfileBuilder) -> None:
        self.build = build
        self.setup = build.region("set-up")
        self.solve = build.region("solve")
        self.steps = build.region("time steps", self.solve, "loop")
        self.exchange, self.update = build.region("exchange", self.steps), build.region("update", self.steps)
        self.norm, self.output = build.region("norm", self.steps), build.region("output", self.solve)
        build.tags += [
            (self.setup, "kind", "IO"),
            (self.update, "kind", "COMP"),
            (self.output, "format", "raw"),
            (self.output, "kind", "IO"),
        ]
        self.memory, self.residual = build.metric("memory", "MiB"), build.metric("residual")
        self.updated = build.metric("cells updated", "cells")

    def set_up(self, rank: int) -> None:
        """Split the world, and get the input from rank 0."""
        build, setup = self.build, self.setup
        build.spend(setup, rank, 1, 40 * MS, mpi_ns=(5 + rank) * MS)
        build.count(1, "MPI_Comm_split", rank, 1, MS, callsite=1, region=setup)
        sent, received = 8192 * (rank == 0), 8192 * (rank > 0)
        build.count(1, "MPI_Bcast", rank, 2, (4 + rank) * MS, 4096, sent, received, region=setup)
        build.tell(self.memory, setup, rank, [100.0 + rank, 120.0])
        build.tell(self.memory, 0, rank, [90.0])

    def in_norm(self, rank: int) -> int:
        """Return the time in MPI of a norm: the even ranks wait."""
        return (2 if rank % 2 == 1 else 10) * MS

    def in_exchange(self, rank: int) -> int:
        """Return the time in MPI of an exchange."""
        return (4 + rank) * MS

    def solve_twice(self, rank: int) -> None:
        """Spend the time of two solves of three steps each."""
        build, is_odd = self.build, rank % 2 == 1
        step, in_norm, in_exchange = (35 + 2 * rank) * MS // 2, self.in_norm(rank), self.in_exchange(rank)
        nested, mpi_ns = step - MS, in_norm + in_exchange
        for execution in range(2):
            for i in range(3):
                here = {"execution": execution, "iteration": i}
                build.spend(self.exchange, rank, 1, (6 + rank) * MS, mpi_ns=in_exchange, **here)
                if is_odd:
                    build.spend(self.update, rank, 1, 8 * MS, **here)
                    build.tell(self.updated, self.update, rank, [16384.0], **here)
                build.spend(self.norm, rank, 1, in_norm + MS // 2, mpi_ns=in_norm, **here)
                build.iterate(self.steps, rank, 1, step, nested, mpi_ns, **here)
                number = 3 * execution + i
                build.tell(self.residual, self.steps, rank, [0.5**number], **here)
                build.more.setdefault("metric_series", []).append(
                    (
                        self.residual,
                        rank,
                        0,
                        number,
                        (20 * number + rank) * MS,
                        self.steps,
                        execution,
                        i,
                        0.5**number,
                    )
                )
            build.spend(self.steps, rank, 1, 3 * step, 3 * nested, 3 * mpi_ns, execution)
            build.spend(self.output, rank, 1, 12 * MS, mpi_ns=10 * MS, execution=execution)
            inside = 3 * step + 12 * MS
            build.spend(self.solve, rank, 1, inside + 2 * MS, inside, 3 * mpi_ns + 10 * MS, execution)

    def communicate(self, rank: int, row: int) -> None:
        """Count the calls of the solves, and the first two slices of their regions."""
        build, exchange = self.build, self.exchange
        waiting = 6 * self.in_exchange(rank) - 6 * MS
        build.count(row, "MPI_Isend", rank, 6, 6 * MS, 2048, 12288, region=exchange)
        build.count(row, "MPI_Waitall", rank, 6, waiting, received=12288, region=exchange)
        neighbour = rank + 1 if rank % 2 == 0 else rank - 1
        build.tell_peer("sent", rank, neighbour, 6, 2048, row, region=exchange)
        build.tell_peer("received", rank, neighbour, 6, 2048, row, region=exchange)
        build.count(1, "MPI_Allreduce", rank, 6, 6 * self.in_norm(rank), 8, 48, 48, region=self.norm)
        build.count(1, "MPI_File_write_all", rank, 2, 20 * MS, 1 << 20, 2 << 20, region=self.output)
        build.count(0, "MPI_Comm_get_parent", rank, 1, 1000)
        if rank == 3:
            waits = {r: RankWaits(6 * self.in_norm(r), 5 * self.in_norm(r), 0 if r else 6) for r in range(4)}
            add_samples(build, Kind(1, "MPI_Allreduce", 4, self.norm), waits, samples=6)
            add_unsplit(build, Kind(1, "MPI_Bcast", 13, self.setup), "machines", 1)
            add_clock(build, 0, 0, calls=0)
            add_clock(build, 2, 900)
        build.region_slices += [
            RegionSlice(self.setup, rank, 0, 1, 40 * MS),
            RegionSlice(exchange, rank, 0, 3, 3 * (6 + rank) * MS),
            RegionSlice(exchange, rank, 1, 3, 3 * (6 + rank) * MS),
        ]


def marked_builder() -> ProfileBuilder:
    """Return a program that says what it does: set-up, then two solves of three time steps each.

    A time step takes (17.5 + rank) ms on each rank: an exchange between neighbours in a row, an update on odd ranks
    only, and a norm over all in which the even ranks wait for them.
    """
    build = ProfileBuilder(
        ranks=4,
        meta={
            "command_line": "./stencil 256 256",
            "program": "stencil",
            "start_time": "2026-11-22T10:00:00Z",
            "mpi_standard": "3.1",
            "thread_level": "single",
            "commlens_version": "0.1.0",
            "slice_ns": str(100 * MS),
            "slice_of": "communicator",
        },
        app_ns=200 * MS,
    )
    build.sites[1] = ("/opt/app/stencil", "", 0x1234)
    row = {"parent": 1, "creator": "MPI_Comm_split", "callsite": 1, "family": 2, "created_ns": MS}
    rows = [build.comm("s0.1", [0, 1], **row), build.comm("s2.1", [2, 3], **row)]
    program = Marked(build)
    for rank in range(4):
        program.set_up(rank)
        program.solve_twice(rank)
        program.communicate(rank, rows[rank // 2])
    return build


@pytest.fixture(scope="session")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the profile with regions."""
    return marked_builder().write(tmp_path_factory.mktemp("marked") / "marked.db")


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the small profile."""
    return small_builder().write(tmp_path_factory.mktemp("small") / "small.db")


@pytest.fixture
def without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk: only a crash of the machine would make a difference."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


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


class Steps:
    """Counts the steps of SQLite's virtual machine. The count is the same on a slow and on a busy machine."""

    EACH = 1000

    def __init__(self) -> None:
        self.taken = 0

    def add(self) -> bool:
        """Count another thousand steps; the query goes on."""
        self.taken += self.EACH
        return False

    def count(self, connection: sqlite3.Connection) -> None:
        """Count the steps of `connection`, instead of whatever it called after so many of them."""
        connection.set_progress_handler(self.add, self.EACH)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Return the number of steps that the connections of the reader take from now on."""
    counted = Steps()
    assert OPERATIONS == counted.EACH
    monkeypatch.setattr(Database, "_is_late", lambda _: counted.add())
    return counted
