# SPDX-License-Identifier: Apache-2.0
"""Performance variables that a program reads through MPI_T while it runs, with every MPI library."""

from __future__ import annotations

import pytest
from harness import Mpi
from test_shapes import MONITORING

RANKS = 4


def ring(times: int) -> dict[int, list[int]]:
    """Return what each rank has sent to each when rank r has sent times + r messages to the next one."""
    return {
        rank: [times + rank if peer == (rank + 1) % RANKS else 0 for peer in range(RANKS)]
        for rank in range(RANKS)
    }


def printed(lines: list[str], when: str) -> dict[int, list[int]]:
    rows = [line.partition(" ")[2].partition(":") for line in lines if line.startswith(when)]
    return {int(rank): [int(n) for n in counts.split()] for rank, _, counts in rows}


def test_figure_1_of_the_papers_works_as_it_stands(mpi: Mpi) -> None:
    done = mpi.run(RANKS, [mpi.compile("figure1.c")])
    assert done.rc == 0, done
    assert printed(done.lines, "after") == ring(1)
    assert printed(done.lines, "again") == ring(3)


def test_sizes_of_messages_are_there_for_each_member(mpi: Mpi) -> None:
    done = mpi.run(RANKS, [mpi.compile("histograms.c")])
    assert done.rc == 0, done
    expected = []
    for rank in range(RANKS):
        after, before = (rank + 1) % RANKS, (rank - 1) % RANKS
        expected.append(f"sent {rank}: {after}.0={rank + 1} {after}.2=2 {after}.13=1")
        expected.append(f"received {rank}: {before}.0={before + 1} {before}.2=2 {before}.13=1")
    assert done.lines == sorted(expected)


def test_without_commlens_there_is_no_such_variable(mpi: Mpi) -> None:
    done = mpi.run(RANKS, [mpi.compile("figure1.c")], mode="off")
    assert done.rc != 0
    assert any(line.startswith("index: ") for line in done.lines), done


def test_with_matrices_off_there_is_none_either(mpi: Mpi) -> None:
    done = mpi.run(RANKS, [mpi.compile("figure1.c")], {"COMMLENS_MATRIX": "off"})
    assert done.rc != 0
    assert any(line.startswith("index: ") for line in done.lines), done


def test_open_mpis_own_variables_are_left_alone(mpi: Mpi) -> None:
    """If Open MPI's component is active, the program gets its values as without commlens.

    In Open MPI 4 they are invalid.
    """
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI has them")
    program = mpi.compile("figure1.c")
    theirs = mpi.run(RANKS, [program, "theirs"], MONITORING, mode="off")
    done = mpi.run(RANKS, [program, "theirs"], MONITORING)
    assert done.rc == 0, done
    assert printed(done.lines, "after") == ring(1)
    if theirs.rc == 0:
        assert done.lines == theirs.lines
    else:
        assert mpi.release.startswith("4."), theirs


@pytest.mark.parametrize("env", [{}, MONITORING], ids=["ours", "beside"])
def test_what_is_not_there_is_told_by_the_codes_of_the_standard(mpi: Mpi, env: dict[str, str]) -> None:
    before_the_end = ["early"] if mpi.name == "openmpi" else []
    done = mpi.run(2, [mpi.compile("mpit_errors.c"), *before_the_end], env)
    assert done.rc == 0, done
    assert done.lines == ["done"] * 2
