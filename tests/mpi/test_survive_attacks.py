# SPDX-License-Identifier: Apache-2.0
"""Jobs that are ended where it hurts: in MPI_Init and MPI_Finalize, by several threads at work, with many communicators.

The oracle is the program itself, as in test_survive.
"""

from __future__ import annotations

import random
import re
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import harness
import pytest
from build_once import PATIENCE
from harness import Mpi
from launches import started
from processes import is_alive, kill_at_once, send_signal, wait_until
from profile_rows import Profile
from test_survive import KILLS, RANKS, check_counts, commlens, job, recovered

THREADS = 3
KINDS = ("MPI_Comm_dup", "MPI_Sendrecv", "MPI_Allreduce", "MPI_Comm_free")
COUNTS = struct.Struct("=qq" + "qq" * len(KINDS) * THREADS)


class Attacked:
    """A job of programs/attack.c."""

    def __init__(self, where: Path, ranks: int, process: subprocess.Popen[bytes]) -> None:
        self.where, self.ranks, self.process = where, ranks, process
        self.arenas = where / "arenas"

    def numbers(self, rank: int) -> tuple[int, ...]:
        """Return what a rank has counted: process, whether it is ready, begun and done by thread and kind."""
        path = self.where / "counts" / str(rank)
        data = path.read_bytes() if path.exists() else b""
        return COUNTS.unpack(data.ljust(COUNTS.size, b"\0")[: COUNTS.size])

    def pids(self) -> list[int]:
        """Wait until all ranks are ready; return their processes."""
        wait_until(
            lambda: all(self.numbers(rank)[1] for rank in range(self.ranks)),
            (self.where / "stdout").read_text,
        )
        return [self.numbers(rank)[0] for rank in range(self.ranks)]

    def wait(self) -> None:
        """Wait for the end of all."""
        self.process.wait(60 * PATIENCE)
        wait_until(
            lambda: not any(is_alive(self.numbers(rank)[0]) for rank in range(self.ranks)),
            "ranks outlive their launcher",
            30,
        )

    def check(self, profile: Profile, *kinds: str) -> None:
        """Assert that each call that had returned is there, and none that was not begun."""
        for rank in range(self.ranks):
            numbers = self.numbers(rank)[2:]
            for kind in kinds or KINDS:
                at = 2 * KINDS.index(kind)
                begun, done = (sum(numbers[at + i :: 2 * len(KINDS)]) for i in (0, 1))
                if kind == "MPI_Comm_dup":  # the parents of all threads
                    begun, done = begun + THREADS, done + THREADS
                found = sum(profile.column(
                    "SELECT calls FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op "
                    "WHERE op.name = ? AND rank = ?", kind, rank
                ))  # fmt: skip
                assert done <= found <= begun, (rank, kind)


@contextmanager
def attacked(mpi: Mpi, ranks: int, how: str, env: dict[str, str] | None = None) -> Iterator[Attacked]:
    """Start programs/attack.c."""
    where = mpi.fresh("attack")
    for name in ("counts", "arenas", "out"):
        (where / name).mkdir()
    command, environment = mpi.prepare(
        ranks,
        [mpi.compile("attack.c"), where / "counts", how],
        {"COMMLENS_ARENA_DIR": str(where / "arenas"), **(env or {})},
        where / "out" / "profile.db",
    )
    with started(command, environment, where) as process:
        yield Attacked(where, ranks, process)


def told(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command, which may find nothing, or not every rank; it must say so in a line."""
    done = harness.commlens(*arguments, cwd=cwd)
    assert done.returncode in (0, 2, 3), done
    assert done.returncode == 0 or "commlens: " in done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize("how", ["churn", "forks"])
def test_threads_make_communicators_while_killed(mpi: Mpi, how: str) -> None:
    """Also while somebody reads the arenas, and while another thread forks."""
    chance = random.Random(f"{mpi.name} {how}")
    for _ in range(max(KILLS // 3, 1)):
        with attacked(mpi, 2, how) as running:
            pids = running.pids()
            if chance.random() < 0.5:
                calls = commlens("hang", running.arenas, cwd=running.where)
                assert re.search(r"^ *(in|outside MPI, last in) MPI_\w+ ", calls, re.MULTILINE), calls
            time.sleep(chance.uniform(0, 0.3))
            kill_at_once(pids)
            running.wait()
            commlens("recover", "-o", "recovered.db", running.arenas, cwd=running.where)
            profile = Profile(running.where / "recovered.db")
            running.check(profile)
            threads = profile.column("SELECT COUNT(*) FROM position GROUP BY rank")
            assert len(threads) == 2
            assert max(threads) <= THREADS


def test_asked_again_and_again_while_threads_work(mpi: Mpi) -> None:
    """Handlers run in every state of the threads, of arenas and of communicators; each line is whole."""
    with attacked(mpi, 2, "churn", {"COMMLENS_HANG_SIGNAL": "USR2"}) as running:
        pids = running.pids()
        before = [sum(running.numbers(rank)[2:]) for rank in range(2)]
        for _ in range(500):
            send_signal(pids, signal.SIGUSR2)
            time.sleep(0.002)

        # Signals that arrive while one is pending are one.
        def have_answered() -> bool:
            send_signal(pids, signal.SIGUSR2)
            return (running.where / "stdout").read_text().count("commlens: ") > 100

        wait_until(have_answered, "it does not answer", pause_s=0.002)
        wait_until(
            lambda: all(sum(running.numbers(rank)[2:]) > before[rank] + 100 for rank in range(2)),
            "it does not go on",
            30,
        )
        assert running.process.poll() is None
        kill_at_once(pids)
        running.wait()
        commlens("recover", "-o", "recovered.db", running.arenas, cwd=running.where)
        running.check(Profile(running.where / "recovered.db"))
    said = [x for x in (running.where / "stdout").read_text().splitlines() if x.startswith("commlens: ")]
    assert len(said) > 100
    line = re.compile(
        r"commlens: rank [01](, thread \d)?: (in|outside MPI, last in) MPI_\w+( on (S[01]|W0|d[01])\.\d+\+?)?"
        r"(( to| from) (its rank [01]|any rank|MPI_PROC_NULL) with (any tag|tag \d+))*( for|, which began) \d+\.\d s( ago)?"
    )
    assert [x for x in said if not line.fullmatch(x)] == []


def test_more_communicators_than_are_kept_apart_and_two_signals(mpi: Mpi) -> None:
    """The second signal comes while the first is being taken: the copy is made all the same."""
    for gap in (0.0, 0.002):
        with attacked(mpi, 1, "many") as running:
            (pid,) = running.pids()
            send_signal([pid], signal.SIGTERM)
            time.sleep(gap)
            send_signal([pid], signal.SIGHUP)
            running.wait()
            assert sorted(path.suffix for path in running.where.glob("out/commlens-arenas-*/*")) == [".arena"]
            assert list(running.arenas.iterdir()) == []
            commlens("recover", "-o", "recovered.db", "out", cwd=running.where)
            profile = Profile(running.where / "recovered.db")
            assert profile.column("SELECT SUM(calls) FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op "
                                  "WHERE op.name = 'MPI_Send'") == [4300 * 13]  # fmt: skip
            running.check(profile, "MPI_Comm_dup", "MPI_Comm_free")
            kept_apart = profile.column("SELECT COUNT(*) FROM comm WHERE kind = 'intra' AND size = 1")[0]
            assert 1024 <= kept_apart < 1100


def test_killed_within_mpi_init(mpi: Mpi) -> None:
    """What is there can be recovered, or it is said that there is nothing; and it can be removed.

    The arenas are in memory, as usual. A rank may be killed between the creation of its file and the header that names
    its process. Only in memory does the file name identify the process of such a file.
    """
    chance = random.Random(f"{mpi.name} init")
    for _ in range(max(KILLS // 3, 1)):
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="commlens-test-") as folder:
            _kill_within_mpi_init(mpi, Path(folder), chance)


def process_of(arena: Path) -> int:
    """Return the process in the name of an arena."""
    return int(arena.name.split("-")[2])


def _kill_within_mpi_init(mpi: Mpi, arenas: Path, chance: random.Random) -> None:
    """Kill the ranks that have an arena in this folder; recover and remove what they leave."""
    with job(mpi, "run", env={"COMMLENS_ARENA_DIR": str(arenas)}) as running:
        wait_until(lambda: list(arenas.iterdir()), "no rank has an arena", pause_s=0.001)
        time.sleep(chance.uniform(0, 0.2))
        files = list(arenas.iterdir())
        send_signal([process_of(path) for path in files], signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # a launcher may not hear of it
            running.process.wait(3)
    # Listed anew each time: a rank may have begun its file while the others were being killed.
    wait_until(
        lambda: not any(is_alive(process_of(path)) for path in arenas.iterdir()), "ranks outlive SIGKILL", 30
    )
    left = len(list(arenas.iterdir()))
    assert left >= len(files)
    told("hang", arenas, cwd=running.where)
    told("recover", "-o", "recovered.db", arenas, cwd=running.where)
    last = told("clean", "--yes", arenas, cwd=running.where).stdout.splitlines()[-1]
    assert last.startswith(f"{left} files")
    assert list(arenas.iterdir()) == []


def test_killed_within_mpi_finalize(mpi: Mpi) -> None:
    """Either there is a profile, or the arenas of all ranks."""
    chance = random.Random(f"{mpi.name} finalize")
    for _ in range(max(KILLS // 2, 1)):
        with job(mpi, "finalize") as running:
            pids = [one.pid for one in running.wait_until_ready()]
            time.sleep(chance.uniform(0, 0.3))
            kill_at_once(pids)
            running.wait()
            written = running.where / "out" / "profile.db"
            profile = Profile(written) if written.exists() else recovered(running)
            check_counts(profile, running.counted(), list(range(RANKS)))
            if written.exists():
                assert profile.meta()["ranks_collected"] == str(RANKS)
