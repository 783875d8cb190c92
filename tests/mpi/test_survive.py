# SPDX-License-Identifier: Apache-2.0
"""What a job counted is there when it did not reach MPI_Finalize, however it ended.

The oracle is the program itself: it counts the calls it has begun and those that have returned.
"""

from __future__ import annotations

import os
import random
import re
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import harness
import pytest
from build_once import PATIENCE
from harness import Mpi
from launches import started
from processes import is_alive, kill_at_once, wait_until
from profile_rows import Profile

RANKS = 4
KINDS = ("MPI_Allreduce", "MPI_Sendrecv", "MPI_Ibarrier", "MPI_Wait")
COUNTS = struct.Struct("=qq" + "qq" * len(KINDS))
KILLS = int(os.environ.get("COMMLENS_TEST_KILLS", "6"))
"""Random moments at which a job is killed, for each MPI, and for all ranks and one."""


@dataclass(frozen=True)
class Counted:
    """What a rank counted for itself: by kind the calls begun and returned; `stage` as in programs/survive.c."""

    pid: int
    stage: int
    begun: dict[str, int]
    done: dict[str, int]


@dataclass(frozen=True)
class Running:
    """A job that runs."""

    mpi: Mpi
    where: Path
    process: subprocess.Popen[bytes]
    ranks: int = RANKS

    @property
    def arenas(self) -> Path:
        """Where its arenas are."""
        return self.where / "arenas"

    def counted(self) -> list[Counted]:
        """Return what the ranks have counted by now; those that have not come far are not ready."""
        found = []
        for rank in range(self.ranks):
            path = self.where / "counts" / str(rank)
            data = path.read_bytes() if path.exists() else b""
            numbers = COUNTS.unpack(data.ljust(COUNTS.size, b"\0")[: COUNTS.size])
            pairs = list(zip(numbers[2::2], numbers[3::2], strict=True))
            found.append(
                Counted(
                    numbers[0],
                    numbers[1],
                    dict(zip(KINDS, (b for b, _ in pairs), strict=True)),
                    dict(zip(KINDS, (d for _, d in pairs), strict=True)),
                )
            )
        return found

    def wait_until_ready(self) -> list[Counted]:
        """Wait until all ranks count; return what they have."""

        def found() -> list[Counted]:
            counted = self.counted()
            return counted if all(one.stage for one in counted) else []

        return wait_until(found, lambda: f"not all ranks came out of MPI_Init: {self.counted()}")

    def wait(self) -> int:
        """Wait for the end of the launcher and of all ranks; return the exit code."""
        code = self.process.wait(60 * PATIENCE)
        wait_until(
            lambda: not any(is_alive(one.pid) for one in self.counted()), "ranks outlive their launcher", 30
        )
        return code


@contextmanager
def job(
    mpi: Mpi, how: str, mode: str = "run", env: dict[str, str] | None = None, ranks: int = RANKS
) -> Iterator[Running]:
    """Start programs/survive.c."""
    where = mpi.fresh("survive")
    for name in ("counts", "arenas", "out"):
        (where / name).mkdir()
    command, environment = mpi.prepare(
        ranks,
        [mpi.compile("survive.c"), where / "counts", how],
        {"COMMLENS_ARENA_DIR": str(where / "arenas"), **(env or {})},
        where / "out" / "profile.db",
        mode,
    )
    with started(command, environment, where) as process:
        yield Running(mpi, where, process, ranks)


def commlens(*arguments: str | Path, cwd: Path, env: dict[str, str] | None = None, code: int = 0) -> str:
    """Run the command, which ends with this exit code; return what it prints."""
    done = harness.commlens(*arguments, cwd=cwd, env=env)
    assert done.returncode == code, done.stderr
    return done.stdout


def recovered(running: Running, *places: Path) -> Profile:
    """Return the profile that commlens recover makes."""
    path = running.where / "recovered.db"
    commlens("recover", "-o", path, *(places or (running.arenas, running.where / "out")), cwd=running.where)
    return Profile(path)


def check_counts(profile: Profile, counted: list[Counted], ranks: list[int]) -> None:
    """Assert that no call that had returned is missing, and that none is there that was not begun."""
    assert profile.column("SELECT rank FROM rank ORDER BY rank") == ranks
    for rank in ranks:
        for kind in KINDS:
            found = sum(profile.column(
                "SELECT calls FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op "
                f"WHERE op.name = '{kind}' AND rank = {rank}"
            ))  # fmt: skip
            assert counted[rank].done[kind] <= found <= counted[rank].begun[kind], (rank, kind)


def check_names(profile: Profile) -> None:
    """Assert that the communicators are those of the program, and have one name on all ranks."""
    names = profile.column("SELECT user_name FROM comm WHERE user_name IS NOT NULL ORDER BY user_name")
    assert [name for name in names if not name.startswith("MPI_")] == ["even", "odd", "ring"]
    assert profile.column("SELECT members FROM comm WHERE user_name = 'odd'") == ["1,3"] or profile.column(
        "SELECT members FROM comm WHERE user_name = 'odd'"
    ) == ["1-3:2"]


@pytest.mark.parametrize("which", ["all", "one"])
def test_killed_at_random_moments(mpi: Mpi, which: str) -> None:
    """SIGKILL: nothing of ours can run, and the arenas are there."""
    chance = random.Random(f"{mpi.name} {which}")
    for _ in range(KILLS):
        with job(mpi, "run") as running:
            pids = [one.pid for one in running.wait_until_ready()]
            time.sleep(chance.uniform(0, 0.05))
            for pid in pids if which == "all" else [chance.choice(pids)]:
                with suppress(ProcessLookupError):  # the launcher has seen the others die
                    os.kill(pid, signal.SIGKILL)
            running.wait()
            profile = recovered(running)
            check_counts(profile, running.counted(), list(range(RANKS)))
            check_names(profile)
            inside = profile.column("SELECT DISTINCT inside FROM position")
            assert set(inside) <= {0, 1}
            assert len(profile.column("SELECT rank FROM position")) == RANKS


@pytest.mark.parametrize("how", ["term", "segv", "fault", "abort", "exit", "_exit", "mpi_abort"])
def test_ends_without_finalize(mpi: Mpi, how: str) -> None:
    """The exit code is that of a run without us; what all ranks counted is there."""
    with job(mpi, how) as running:
        running.wait_until_ready()
        code = running.wait()
        codes: set[int] = set()
        while code not in codes:  # which of the ranks it ends a launcher reports is chance
            assert len(codes) < 3, f"exit code {code}, and without us {codes}"
            with job(mpi, how, "off") as without:
                without.wait_until_ready()
                codes.add(without.wait())
        counted = running.counted()
        assert counted[0].done["MPI_Wait"] == 20
        profile = recovered(running)
        check_counts(profile, counted, list(range(RANKS)))
        check_names(profile)
        state = profile.column(f"SELECT state FROM rank WHERE rank = {RANKS - 1}")
        expected = {"term": "SIGTERM", "segv": "SIGSEGV", "fault": "SIGSEGV", "abort": "SIGABRT", "exit": "exited",
                    "_exit": "ended", "mpi_abort": "aborted"}  # fmt: skip
        assert state == [expected[how]]
        if how != "_exit":
            copies = list((running.where / "out").glob("commlens-arenas-*/rank3.*.arena"))
            assert len(copies) == 1, "its own copy beside the output"


def test_a_good_end_leaves_nothing(mpi: Mpi) -> None:
    """Neither arenas, nor the copies that the program asked for."""
    with job(mpi, "finalize") as running:
        assert running.wait() == 0
        assert "not flushed" not in (running.where / "stdout").read_text()
        assert list(running.arenas.iterdir()) == []
        assert [path.name for path in (running.where / "out").iterdir()] == ["profile.db"]


def test_some_ranks_are_missing(mpi: Mpi) -> None:
    with job(mpi, "run") as running:
        kill_at_once([one.pid for one in running.wait_until_ready()])
        running.wait()
        counted = running.counted()
        gone = [path for path in running.arenas.iterdir() if f"-{counted[2].pid}-" in path.name]
        assert len(gone) == 1
        gone[0].unlink()
        text = commlens("recover", "-o", "some.db", running.arenas, cwd=running.where, code=3)
        assert "3 of 4 ranks" in text
        assert "missing: 2" in text
        profile = Profile(running.where / "some.db")
        check_counts(profile, counted, [0, 1, 3])
        assert profile.meta()["ranks"] == "4"
        assert profile.meta()["ranks_collected"] == "3"
        plan = commlens("clean", running.arenas, cwd=running.where).splitlines()
        assert plan[-1].startswith("3 files would be removed, ")
        assert (
            commlens("clean", "--yes", running.arenas, cwd=running.where)
            .splitlines()[-1]
            .startswith("3 files removed")
        )
        assert list(running.arenas.iterdir()) == []


def test_the_barrier_that_a_rank_does_not_come_to(mpi: Mpi) -> None:
    """Commlens hang names the communicator and the rank; the job does not notice."""
    with job(mpi, "skip") as running:
        running.wait_until_ready()
        text = ""

        def is_named() -> bool:
            nonlocal text
            text = commlens("hang", running.arenas, cwd=running.where)
            return "not in this call: 1" in text

        wait_until(is_named, lambda: f"rank 1 is not named: {text}", 30, pause_s=0.1)
        lines = [" ".join(line.split()) for line in text.splitlines()]
        at = next(i for i, line in enumerate(lines) if line.startswith("in MPI_Barrier s1.1 'odd' 3 2 "))
        assert re.fullmatch(r"at main survive\.c:\d+", lines[at + 1])
        assert lines[at + 2] == "not in this call: 1"
        assert any(line.startswith("outside MPI, last in MPI_Barrier W0.0 1 4 ") for line in lines), text
        assert running.process.poll() is None


def test_no_place_for_arenas(mpi: Mpi) -> None:
    """One line, and the next place; the profile is the same."""
    with job(mpi, "finalize", env={"COMMLENS_ARENA_DIR": "/no/such/folder"}) as running:
        assert running.wait() == 0
        said = (running.where / "stdout").read_text()
        assert (
            said.count("/no/such/folder: No such file or directory; counters are in /dev/shm/commlens-") == 1
        )
        assert Profile(running.where / "out" / "profile.db").meta()["ranks_collected"] == str(RANKS)
