# SPDX-License-Identifier: Apache-2.0
"""Columns cpu_ns and preempted of table rank: what the program reads with getrusage() itself."""

from __future__ import annotations

import pytest
from harness import TRIES, Mpi, commlens
from launches import Result
from profile_rows import Profile

MS = 10**6

# What lies between our two readings and those of the program: the last part of MPI_Init, which creates files, and the
# begin of MPI_Finalize or MPI_Pcontrol, on a CPU that other processes use, too. A part that counts although it should not
# has 100 ms, and a quarter or more of the preemptions. On a busy machine a single run may have more.
MOST_CPU_NS, MOST_PREEMPTED = 50 * MS, 12


@pytest.mark.dealt
@pytest.mark.parametrize(
    ("said", "counted"),
    [
        ("!", {1}),
        ("! !", {1, 2}),
        ("! 0 ! 1 !", {1, 5}),  # pause and resume
        ("! 2 !", {3}),  # clear
        ("! 0 ! 2 ! 1 !", {7}),
    ],
)
def test_they_are_those_of_the_program_from_init_to_finalize(mpi: Mpi, said: str, counted: set[int]) -> None:
    program = mpi.compile("burns.c")
    for _ in range(TRIES):
        result = mpi.run(2, [program, *said.split()], env={"COMMLENS_PCONTROL": "mpip"})
        assert result.rc == 0, result
        result.open().check()
        used = [tuple(map(int, line.split())) for line in result.lines]
        assert len(used) == 2 * said.count("!")
        too_much = counted_too_much(result, used, counted)
        if not too_much:
            return
    pytest.fail(f"{too_much}, {used}")


def counted_too_much(result: Result, used: list[tuple[int, ...]], counted: set[int]) -> list[dict[str, int]]:
    """Assert that no rank has less than the program read in the counted parts; return the rows that have too much."""
    found = []
    for row in result.open().rows("SELECT rank, app_ns, cpu_ns, preempted FROM rank"):
        parts = [part for part in used if part[0] == row["rank"] and part[1] in counted]
        cpu_ns, preempted = sum(part[2] for part in parts), sum(part[3] for part in parts)
        assert cpu_ns >= 100 * MS * len(counted)
        assert row["cpu_ns"] >= cpu_ns, (row, used)
        assert row["preempted"] >= preempted, (row, used)
        assert row["cpu_ns"] <= row["app_ns"] + MS, row  # one thread computes
        more = MOST_PREEMPTED + sum(part[3] for part in used if part[0] == row["rank"]) // 8
        if row["cpu_ns"] > cpu_ns + MOST_CPU_NS or row["preempted"] > preempted + more:
            found.append(row)
    return found


def test_they_are_unknown_if_the_process_did_not_finalize(mpi: Mpi) -> None:
    where = mpi.fresh("killed")
    program = mpi.compile("burns.c")
    env = {"COMMLENS_ARENA_DIR": str(where)}
    mpi.run(2, [program, "!", "kill"], env, profile=where / "x.db", cwd=where)
    path = where / "recovered.db"
    done = commlens("recover", "-o", path, where)
    assert done.returncode == 0, done
    rows = Profile(path).rows("SELECT rank, cpu_ns, preempted FROM rank")
    assert [tuple(row.values()) for row in rows] == [(rank, None, None) for rank in range(2)]
