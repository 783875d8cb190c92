# SPDX-License-Identifier: Apache-2.0
"""Jobs that wait in MPI: how long a rank was in its call, and where it called."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness import ROOT, Mpi, commlens
from launches import started
from processes import is_alive, wait_until
from profile_rows import Profile

RANKS = 3
PROGRAM = ROOT / "tests" / "mpi" / "programs" / "blocked.c"


CALLS = {
    "recv": "/* waits */",
    "any": "MPI_ANY_SOURCE",
    "probe": "MPI_Probe",
    "sendrecv": "MPI_Sendrecv",
    "ssend": "MPI_Ssend",
}
"""What only the line of the program with the call of a case contains."""


@dataclass(frozen=True)
class Blocked:
    """A job whose ranks but 0 wait; by rank its process, and the time right before it waited, in ns."""

    where: Path
    pids: list[int]
    began_ns: list[int]

    def wait(self, ranks: Sequence[int]) -> None:
        """Wait until ranks are gone."""
        wait_until(lambda: not any(is_alive(self.pids[rank]) for rank in ranks), "ranks outlive the signal")

    def recovered(self) -> Path:
        """Return the profile of what the ranks left."""
        path = self.where / "recovered.db"
        done = commlens("recover", "-o", path, self.where / "arenas", self.where / "out")
        assert done.returncode == 0, done.stderr
        return path

    def places(self) -> str:
        """Return what commlens hang prints when all ranks but 0 are in their call."""
        text = ""

        def both_wait() -> bool:
            nonlocal text
            text = " ".join(commlens("hang", self.where / "arenas").stdout.split())
            return re.search(r"in MPI_\w+ (\S+ )?1-2 ", text) is not None

        wait_until(both_wait, lambda: f"ranks 1 and 2 did not wait: {text}")
        return text


@contextmanager
def blocked(mpi: Mpi, how: str) -> Iterator[Blocked]:
    """Start a job, and wait until its ranks are about to wait."""
    where = mpi.fresh("blocked")
    for name in ("ranks", "arenas", "out"):
        (where / name).mkdir()
    command, env = mpi.prepare(
        RANKS,
        [mpi.compile("blocked.c"), where / "ranks", how],
        {"COMMLENS_ARENA_DIR": str(where / "arenas")},
        where / "out" / "profile.db",
        "run",
    )
    notes = [where / "ranks" / str(rank) for rank in range(RANKS)]
    with started(command, env, where):
        wait_until(lambda: all(note.exists() for note in notes), "not all ranks came out of MPI_Init")
        words = [note.read_text().split() for note in notes]
        yield Blocked(where, [int(pid) for pid, _ in words], [int(ns) for _, ns in words])


def line_of(text: str) -> int:
    """Return the line of the program that contains a text."""
    lines = PROGRAM.read_text().splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if text in line]
    return found


def test_the_call_a_rank_is_in_when_a_signal_ends_it_is_time_in_mpi(mpi: Mpi) -> None:
    """From the call to the signal, by the clocks of the program and of this test.  The call has not returned."""
    with blocked(mpi, "recv") as job:
        job.places()
        wait_ns = 300_000_000
        time.sleep(wait_ns / 1e9)
        for ranks in ([1, 2], [0]):
            for rank in ranks:
                with suppress(ProcessLookupError):  # the launcher may end the others first
                    os.kill(job.pids[rank], signal.SIGTERM)
            job.wait(ranks)
        dead_ns = time.monotonic_ns()
        path = job.recovered()
    profile = Profile(path)
    times = profile.rows(
        "SELECT rank, SUM(calls) AS calls, SUM(time_ns) AS ns, MAX(time_max_ns) AS longest_ns FROM counter "
        "WHERE operation = 'MPI_Recv' GROUP BY rank ORDER BY rank"
    )
    states = {row["rank"]: row["state"] for row in profile.rows("SELECT rank, state FROM rank")}
    for row in times:
        assert row["rank"] in (1, 2)
        assert row["calls"] == 0
        assert row["longest_ns"] == row["ns"] <= dead_ns - job.began_ns[row["rank"]]
        if states[row["rank"]] == "SIGTERM":  # a launcher may kill the others first
            assert row["ns"] >= wait_ns
    assert any(states[rank] == "SIGTERM" for rank in (1, 2))
    assert {row["rank"] for row in times} >= {rank for rank in (1, 2) if states[rank] == "SIGTERM"}
    text = commlens("report", path).stdout
    assert text.startswith("when the job ended\n")
    flat = " ".join(text.split())
    assert re.search(r"in MPI_Recv \S+ 1-2 3 ", flat)
    assert f"at main blocked.c:{line_of('/* waits */')}" in flat
    assert "from MPI_Init to the last sign of life" in flat
    assert flat.index("in MPI_Recv") < flat.index("command ")


def test_a_rank_that_was_killed_early_gets_no_time_of_the_others(mpi: Mpi) -> None:
    """SIGKILL leaves no time of death; what other ranks do afterwards proves nothing about this one."""
    with blocked(mpi, "recv") as job:
        job.places()
        os.kill(job.pids[2], signal.SIGKILL)
        job.wait([2])
        dead_ns = time.monotonic_ns()
        job.wait(range(RANKS))  # the launcher ends the others
        path = job.recovered()
    found = Profile(path).rows(
        "SELECT SUM(time_ns) AS ns FROM counter WHERE operation = 'MPI_Recv' AND rank = 2"
    )
    assert (found[0]["ns"] or 0) <= dead_ns - job.began_ns[2]
    text = " ".join(commlens("report", path).stdout.split())
    assert re.search(r"in MPI_Recv \S+ 1-2 3 ", text)


def test_hang_says_where_the_ranks_called(mpi: Mpi) -> None:
    with blocked(mpi, "recv") as job:
        text = job.places()
    assert f"at main blocked.c:{line_of('/* waits */')}" in text


@pytest.mark.parametrize(
    ("how", "partners"),
    [
        ("recv", "from 2 (world rank 0), tag 71: 1; from 2 (world rank 0), tag 72: 2"),
        ("any", "from any rank, any tag"),
        ("probe", "from 2 (world rank 0), tag 71: 1; from 2 (world rank 0), tag 72: 2"),
        (
            "sendrecv",
            "to 2 (world rank 0), tag 1, from 2 (world rank 0), tag 71: 1; "
            "to 2 (world rank 0), tag 1, from 2 (world rank 0), tag 72: 2",
        ),
        ("ssend", "to 2 (world rank 0), tag 71: 1; to 2 (world rank 0), tag 72: 2"),
    ],
)
def test_hang_says_whom_a_call_waits_for(mpi: Mpi, how: str, partners: str) -> None:
    """World rank 0 is the last rank of the reversed communicator."""
    with blocked(mpi, how) as job:
        text = job.places()
    assert f"blocked.c:{line_of(CALLS[how])} {partners} not in this call: 0" in text
