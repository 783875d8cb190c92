# SPDX-License-Identifier: Apache-2.0
"""The programs of bench/apps: the same results with commlens as without, as many calls as on paper, and no mistake passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bench.apps import PROGRAMS, SOURCES
from harness import ROOT, Mpi
from launches import Result

RANKS = 4

# What carries numbers that matter in the fourth call of rank 0, where there are two.
CARRIER = {
    "bcast_barrier": "MPI_Bcast",
    "pingpong": "MPI_Send",
    "message_rate": "MPI_Isend",
    "polling": "MPI_Send",
    "wildcard": "MPI_Isend",
    "onesided": "MPI_Accumulate",
    "many_comms": "MPI_Allreduce",
    "comm_churn": "MPI_Scan",
    "threads": "MPI_Sendrecv",
    "rows_columns": "MPI_Allreduce",
    "fortran_loop": "mpi_sendrecv_",
    "cg": "MPI_Isend",
    "halo": "MPI_Isend",
    "fft": "MPI_Alltoall",
    "wavefront": "MPI_Send",
    "amr": "MPI_Sendrecv",
    "sample_sort": "MPI_Alltoallv",
    "closure": "MPI_Bcast",
}


# Open MPI's launcher gives the others a second to end when one ended with an exit code, and another one.
AT_ONCE = {"OMPI_MCA_odls_base_sigkill_timeout": "0"}


def executable(mpi: Mpi, name: str) -> Path:
    """Return the program."""
    return mpi.compile(PROGRAMS[name].source, None, "-lm")


def own_lines(result: Result, name: str) -> list[str]:
    """Return the program's own output on stderr, without that of launchers about exit codes."""
    return [line for line in result.stderr.splitlines() if line.startswith(f"{name}:")]


def test_all_programs_are_listed() -> None:
    assert {path.stem for path in SOURCES.iterdir() if path.suffix != ".h"} == set(PROGRAMS) == set(CARRIER)


@pytest.mark.dealt
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_profile_has_the_calls_that_are_worked_out_on_paper(mpi: Mpi, name: str) -> None:
    program = PROGRAMS[name]
    plain, under = mpi.pair(RANKS, [executable(mpi, name), *program.small])
    assert plain.rc == 0, plain
    assert plain.stdout.startswith(f"{name} ok "), plain
    assert (under.rc, under.stdout, own_lines(under, name)) == (0, plain.stdout, []), under
    profile = under.open()
    profile.check()
    counted = profile.rows(
        "SELECT op.name, SUM(calls) AS calls FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op GROUP BY 1"
    )
    assert {row["name"]: row["calls"] for row in counted} == program.calls(RANKS, *program.small)


@pytest.mark.dealt
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_finds_that_one_number_was_wrong(mpi: Mpi, name: str) -> None:
    spoil = mpi.compile("spoil.c", shared=True)
    result = mpi.run(
        2,
        [executable(mpi, name), *PROGRAMS[name].small],
        {**AT_ONCE, "SPOIL": CARRIER[name]},
        mode="off",
        preload=[spoil],
    )
    assert result.rc in mpi.codes(1), result
    assert result.rc != 0, result
    assert result.stdout == "", result
    (line,) = own_lines(result, name)
    assert "checks failed" in line, result


REFUSED = {
    "no arguments": ("cg", (), 1, "usage: cg POINTS ITERATIONS"),
    "no number": ("cg", ("6", "ten"), 1, "usage: cg POINTS ITERATIONS"),
    "zero": ("threads", ("0", "10"), 1, "usage: threads THREADS CALLS"),
    "too many arguments": ("fortran_loop", ("10", "10"), 1, "usage: fortran_loop CALLS"),
    "an odd number of ranks": ("pingpong", ("1", "1"), 3, "needs an even number of ranks"),
    "no power of two": ("fft", ("8", "1"), 3, "needs a power of two of ranks"),
    "more ranks than planes": ("cg", ("2", "1"), 3, "needs at least as many POINTS as ranks"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_run_is_refused_in_one_line(mpi: Mpi, why: str) -> None:
    name, arguments, ranks, said = REFUSED[why]
    result = mpi.run(ranks, [executable(mpi, name), *arguments], AT_ONCE, mode="off")
    assert result.rc in mpi.codes(2) - {0}, result
    (line,) = own_lines(result, name)
    assert line.startswith(f"{name}: {said}"), result


def test_the_script_builds_and_runs_them() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "apps.py", "--small", "closure", "fortran_loop"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done
    assert [line.split()[-3:-1] for line in done.stdout.splitlines()] == [
        ["closure", "ok"],
        ["fortran_loop", "ok"],
    ]
