# SPDX-License-Identifier: Apache-2.0
"""Watches: a program asks in C, Fortran and Python who it talks to in one communicator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from harness import LINK, PROGRAMS, Mpi
from profile_rows import Profile
from test_annotated import FORTRAN, INCLUDE
from test_languages import mpi4py_env
from test_survive import commlens

RANKS = 4


def at(what: str, place: int, messages: int, size: int, rank: int) -> str:
    """Return a line of the program: all is for one process, or for all others (place below 0)."""
    said = [
        f"{messages}/{size}" if peer == place or (place < 0 and peer != rank) else "0/0"
        for peer in range(RANKS)
    ]
    return f"{what} {rank}: {' '.join(said)}"


def story(rank: int) -> list[str]:
    """Return what the program in C prints: talk(n) sends n messages of n integers to the next one."""
    after, before = (rank + 1) % RANKS, (rank - 1) % RANKS
    root = rank == 0
    return [
        at("early", after, 2, 16, rank),
        at("sent", after, 5, 16 + 36, rank),
        at("received", before, 5, 16 + 36, rank),
        at("collective", -1 if root else RANKS, 1, 4, rank),
        at("elsewhere", RANKS, 0, 0, rank),
        at("stopped", after, 5, 16 + 36, rank),
        at("reset", after, 1, 4, rank),
    ]


def test_a_watch_counts_what_is_said_in_its_communicator(mpi: Mpi) -> None:
    done = mpi.run(RANKS, [mpi.compile("watch.c", "c", *LINK, flags=INCLUDE)])
    assert done.rc == 0, done
    assert done.lines == sorted(line for rank in range(RANKS) for line in story(rank))


def test_a_watch_counts_nothing_while_counting_is_paused(mpi: Mpi) -> None:
    """Its communicator was made meanwhile, too; MPI_Pcontrol(0) and commlens_pause() are the same."""
    done = mpi.run(RANKS, [mpi.compile("watch.c", "c", *LINK, flags=INCLUDE), "pauses"])
    assert done.rc == 0, done
    assert done.lines == sorted(
        at(what, (rank + 1) % RANKS, messages, size, rank)
        for rank in range(RANKS)
        for what, messages, size in (
            ("paused", 0, 0),
            ("resumed", 3, 36),
            ("paused again", 3, 36),
            ("reset", 1, 4),
        )
    )


def test_without_the_profiler_a_watch_is_of_no_processes(mpi: Mpi) -> None:
    done = mpi.run(RANKS, [mpi.compile("watch.c", "c", *LINK, flags=INCLUDE), "phase"], mode="off")
    assert done.rc == 0, done
    expected = [line.partition(":")[0] + ":" for rank in range(RANKS) for line in story(rank)]
    assert done.lines == sorted([*expected, *["not written"] * RANKS])


def test_a_phase_is_copied_to_a_folder_of_its_own(mpi: Mpi, tmp_path: Path) -> None:
    """What was counted until then becomes a profile, though the job went on and wrote its own."""
    folder = tmp_path / "phase 1"
    done = mpi.run(RANKS, [mpi.compile("watch.c", "c", *LINK, flags=INCLUDE), folder], cwd=tmp_path)
    assert done.rc == 0, done
    assert len(list(folder.glob("*.arena"))) == RANKS
    output = tmp_path / "phase.db"
    assert "4 of 4 ranks" in commlens("recover", folder, cwd=tmp_path), "the job's own profile is another"
    commlens("recover", "-o", output, folder, cwd=tmp_path)
    assert Profile(output).total("MPI_Sendrecv")[0] == RANKS * 3
    assert done.open().total("MPI_Sendrecv")[0] == RANKS * 11


@pytest.mark.parametrize("threads", ["sum", "each"])
def test_what_an_idle_thread_had_before_a_reset_is_in_no_phase(
    mpi: Mpi, tmp_path: Path, threads: str
) -> None:
    """It clears its counters at its next call; until then nobody else reads them."""
    program = mpi.compile("idle_thread.c", "c", *LINK, "-pthread", flags=INCLUDE)
    folder = tmp_path / "phase 2"
    done = mpi.run(RANKS, [program, folder], {"COMMLENS_THREADS": threads}, cwd=tmp_path)
    assert done.rc == 0, done
    assert done.lines == ["3 messages"] * RANKS
    output = tmp_path / "phase.db"
    commlens("recover", "-o", output, folder, cwd=tmp_path)
    phase, job = Profile(output), done.open()
    assert phase.total("MPI_Sendrecv") == (RANKS * 3, RANKS * 3 * 4, RANKS * 3 * 4)
    assert job.total("MPI_Sendrecv") == (RANKS * 5, RANKS * 5 * 4, RANKS * 5 * 4)
    job.check()
    for profile in (phase, job):
        calls = profile.rows(
            "SELECT p.path, SUM(r.calls) AS calls FROM region_rank r JOIN region_path p ON p.region = r.region "
            "WHERE r.region > 0 AND r.calls > 0 GROUP BY 1"
        )
        assert calls == [{"path": "work", "calls": RANKS}], "the open one, from the reset on"
        assert profile.column("SELECT COUNT(*) FROM metric_value WHERE count > 0") == [0]


@pytest.mark.parametrize("language", ["Fortran", "Python"])
def test_other_languages_ask_the_same(mpi: Mpi, language: str) -> None:
    if language == "Python" and mpi.family == "abi":
        pytest.skip("mpi4py has no build for it here")
    if language == "Python":
        env = mpi4py_env(mpi)
        argv: list[str | Path] = [sys.executable, PROGRAMS / "watch.py"]
    else:
        if "fortran" not in mpi.compilers:
            pytest.skip("the wheels have no Fortran")
        env = {}
        argv = [mpi.compile("watch.F90", "fortran", *LINK, flags=FORTRAN)]
    done = mpi.run(RANKS, argv, env)
    assert done.rc == 0, done
    expected = [at("sent", (rank + 1) % RANKS, 2, 24, rank) for rank in range(RANKS)]
    expected += [at("reset", RANKS, 0, 0, rank) for rank in range(RANKS)]
    assert done.lines == sorted(expected)
