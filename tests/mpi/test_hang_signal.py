# SPDX-License-Identifier: Apache-2.0
"""COMMLENS_HANG_SIGNAL: ranks that receive it print their position, and the job continues.

Without it commlens handles no signal.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from build_once import PATIENCE
from harness import Mpi
from launches import LAUNCH_MARK, kill_all
from processes import wait_until
from profile_rows import Profile
from test_survive import commlens

USR2 = {"COMMLENS_HANG_SIGNAL": "USR2"}
SECONDS = r"\d+\.\d s"


@dataclass(frozen=True)
class Waiting:
    """A job whose rank 1 waits until it may go on."""

    where: Path
    process: subprocess.Popen[bytes]

    def ask(self, ranks: int, *patterns: str) -> list[str]:
        """Send the signal to all ranks, until the lines of one time are those that are looked for, in any order.

        How long it takes until each rank is where it will wait, nobody knows.
        """
        pids = [self.pid(rank) for rank in range(ranks)]
        said: list[str] = []

        def are_said() -> bool:
            nonlocal said
            seen = len(self.said())
            for pid in pids:
                os.kill(pid, signal.SIGUSR2)
            end = time.monotonic() + 10 * PATIENCE
            while len(said := sorted(self.said()[seen:])) < len(patterns) and time.monotonic() < end:
                time.sleep(0.02)
            return len(said) == len(patterns) and all(
                re.fullmatch(pattern, line) for pattern, line in zip(patterns, said, strict=True)
            )

        wait_until(are_said, lambda: f"not said: {patterns}, but {said}", 120)
        return said

    def said(self) -> list[str]:
        """Return the lines of commlens so far; only whole ones."""
        text = (self.where / "stderr").read_text()
        return [line for line in text[: text.rfind("\n") + 1].splitlines() if line.startswith("commlens: ")]

    def pid(self, rank: int) -> int:
        """Wait until the rank has printed its process id."""
        path = self.where / str(rank)
        wait_until(path.exists, f"rank {rank} did not come out of MPI_Init")
        return int(path.read_text())

    def go(self) -> list[str]:
        """Let it continue; return the program's output."""
        fifo = os.open(self.where / "go", os.O_RDWR)
        try:
            os.write(fifo, b"!")
            assert self.process.wait(60 * PATIENCE) == 0, (self.where / "stderr").read_text()
        finally:
            os.close(fifo)
        return sorted((self.where / "stdout").read_text().splitlines())


@contextmanager
def waiting(mpi: Mpi, ranks: int, case: str) -> Iterator[Waiting]:
    """Start programs/hang_signal.c."""
    where = mpi.fresh("hang")
    os.mkfifo(where / "go")
    command, environment = mpi.prepare(
        ranks,
        [mpi.compile("hang_signal.c"), case, where],
        {**USR2, "COMMLENS_ARENA_DIR": str(where)},
        where / "profile.db",
    )
    mark = uuid.uuid4().hex
    with (where / "stdout").open("wb") as out, (where / "stderr").open("wb") as err:
        process = subprocess.Popen(
            command, env={**environment, LAUNCH_MARK: mark}, cwd=where, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield Waiting(where, process)
        finally:
            kill_all(process, mark)


def said_where(lines: Sequence[str]) -> list[str]:
    """Return the ranks' places among what commlens said, without times, sorted."""
    return sorted(re.sub(SECONDS, "T", line) for line in lines if re.search(r"rank \d+: (in|outside) ", line))


def test_all_ranks_say_where_they_are_and_go_on(mpi: Mpi) -> None:
    """One line a rank; the communicator has the name of the profile on all of them, which is the leader's."""
    with waiting(mpi, 4, "stuck") as job:
        job.ask(
            4,
            rf"commlens: rank 0: in MPI_Barrier on s0\.2 'three' for {SECONDS}",
            rf"commlens: rank 1: outside MPI, last in MPI_Comm_set_name on s0\.2 'three', which began {SECONDS} ago",
            rf"commlens: rank 2: in MPI_Barrier on s0\.2 'three' for {SECONDS}",
            rf"commlens: rank 3: in MPI_Wait on W0\.0 for {SECONDS}",
        )
        assert job.go() == [f"rank {rank}: 10" for rank in range(4)]
        profile = Profile(job.where / "profile.db")
        assert profile.calls("MPI_Barrier") == {"s0.2": {0: 1, 1: 1, 2: 1}}


def test_a_rank_in_mpi_init_says_so(mpi: Mpi) -> None:
    """Rank 1 comes to it later: it has no handler yet, and is sent no signal."""
    with waiting(mpi, 2, "late") as job:
        job.ask(1, rf"commlens: rank 0: in MPI_Init for {SECONDS}")
        # Rank 1 has not called MPI: it has no arena.
        assert commlens("hang", job.where, cwd=job.where) == f"still in MPI_Init: processes {job.pid(0)}\n"
        assert job.go() == ["rank 0 done", "rank 1 done"]


def test_every_thread_has_a_line(mpi: Mpi) -> None:
    with waiting(mpi, 2, "threads") as job:
        job.ask(
            2,
            rf"commlens: rank 0, thread 0: in MPI_Recv on d0\.1 from its rank 1 with tag 0 for {SECONDS}",
            rf"commlens: rank 0, thread 1: in MPI_Recv on d0\.2 from its rank 1 with tag 0 for {SECONDS}",
            rf"commlens: rank 1: outside MPI, last in MPI_Comm_dup on W0\.0, which began {SECONDS} ago",
        )
        assert job.go() == ["rank 0 done", "rank 1 done"]


@pytest.mark.parametrize(
    ("case", "value"),
    [
        *((case, None) for case in ("ends", "before", "after", "ignored", "once", "jumps")),
        ("ends", "0"),
        ("before", ""),
    ],
)
def test_without_the_option_the_signal_is_the_programs(mpi: Mpi, case: str, value: str | None) -> None:
    """It ends the program, or reaches its own handler; the same exit code and the same output."""
    program = mpi.compile("hang_signal.c")
    env = {} if value is None else {"COMMLENS_HANG_SIGNAL": value}
    plain, under = mpi.pair(2, [program, case, mpi.workdir], env=env)
    # Launchers say of a rank that was ended which process it was.
    printed, printed_under = ([x for x in run.lines if x.startswith("rank ")] for run in (plain, under))
    assert printed_under == printed
    assert said_where(under.said) == []
    if case != "ends":
        assert under.rc == plain.rc
    else:
        assert mpi.may_have_failed(plain.rc), plain
        # MPICH's launcher combines the statuses of the ranks; one that it ends itself may add a 1.
        ended = (signal.SIGUSR2, signal.SIGUSR2 | 1) if mpi.hydra else ()
        assert under.rc in mpi.codes(plain.rc, *ended)


@pytest.mark.parametrize(
    ("case", "handled", "lines"),
    [
        ("ends", 0, 1),
        ("before", 1, 2),
        ("ignored", 0, 2),
        ("once", 1, 2),
        ("jumps", 3, 6),
        ("child", 0, 0),
        ("forked", 0, 2),
    ],
)
def test_the_programs_own_handler_is_called_after_ours(mpi: Mpi, case: str, handled: int, lines: int) -> None:
    under = mpi.run(2, [mpi.compile("hang_signal.c"), case, mpi.workdir], env=USR2)
    assert under.rc == 0, under
    assert under.lines == [f"rank {rank}: handled {handled}" for rank in (0, 1)]
    place = "outside MPI, last in MPI_Barrier on W0.0, which began T ago"
    ranks = [rank for rank in (0, 1) for _ in range(lines // 2)] if lines > 1 else [0] * lines
    assert said_where(under.said) == [f"commlens: rank {rank}: {place}" for rank in ranks]
    under.open().check()


def test_a_handler_that_the_program_sets_later_takes_the_place_of_ours(mpi: Mpi) -> None:
    under = mpi.run(2, [mpi.compile("hang_signal.c"), "after", mpi.workdir], env=USR2)
    assert (under.rc, under.lines) == (0, ["rank 0: handled 1", "rank 1: handled 1"])
    assert said_where(under.said) == []


@pytest.mark.parametrize("value", ["USR3", "TERM", "9", "33"])
def test_what_is_no_signal_for_this_is_said_once(mpi: Mpi, value: str) -> None:
    under = mpi.run(
        2, [mpi.compile("hang_signal.c"), "before", mpi.workdir], env={"COMMLENS_HANG_SIGNAL": value}
    )
    assert (under.rc, under.lines) == (0, ["rank 0: handled 1", "rank 1: handled 1"])
    refused = [line for line in under.said if "COMMLENS_HANG_SIGNAL" in line]
    assert refused == [
        f"commlens: COMMLENS_HANG_SIGNAL: '{value}' is not a signal that a program can handle; "
        "it is ignored (use a signal such as USR2)"
    ]
    assert said_where(under.said) == []
