# SPDX-License-Identifier: Apache-2.0
"""Listing 1 of the mpisee paper: the counts are known exactly, whatever the number of ranks."""

from __future__ import annotations

import re

import pytest
from harness import Mpi, commlens
from profile_rows import Count


@pytest.mark.parametrize("n", [2, 4, 16, 64])
def test_counts_and_volumes_are_exact(mpi: Mpi, n: int) -> None:
    result = mpi.run(n, [mpi.compile("listing1.c")], timeout=180)
    assert (result.rc, result.stdout) == (0, f"{30 * n + 100 * (n // 2)}\n")
    profile = result.open()
    profile.check()

    high = f"s{n // 2}.1"
    communicators = profile.comms()
    assert set(communicators) == {"W0.0", "s0.1", high}
    assert communicators["W0.0"]["groups"] == [list(range(n))]
    # color = (rank < P/2): both halves lead with their lowest world rank
    assert communicators["s0.1"]["groups"] == [list(range(n // 2))]
    assert communicators[high]["groups"] == [list(range(n // 2, n))]
    for name in ("s0.1", high):
        row = communicators[name]
        assert (row["parent_name"], row["creator_name"], row["size"]) == ("W0.0", "MPI_Comm_split", n // 2)
        assert row["freed_ns"] > row["created_ns"] > 0

    # 4 bytes fall into bin 3 (4..7), 16 bytes into bin 5 (16..31)
    expected = [Count("W0.0", "MPI_Allreduce", 3, rank, 30, 30 * 4, 30 * 4) for rank in range(n)]
    for name, members in (("s0.1", range(n // 2)), (high, range(n // 2, n))):
        expected += [Count(name, "MPI_Allreduce", 5, rank, 100, 1600, 1600) for rank in members]
    assert sorted(profile.counts(op="MPI_Allreduce")) == sorted(expected)

    meta = profile.meta()
    assert (meta["ranks"], meta["ranks_collected"], meta["mpi_family"]) == (str(n), str(n), mpi.family)
    assert len(profile.rows("SELECT * FROM rank")) == n


def test_the_report_shows_three_communicators(mpi: Mpi) -> None:
    result = mpi.run(4, [mpi.compile("listing1.c")])
    text = _commlens("report", "--unfold", "--op", "Allreduce", str(result.profile))
    shown = re.findall(r"^([Ws]\d\.\d(?: MPI_\w+)?) +(\d) ranks +(\d+) ", text, re.MULTILINE)
    assert sorted(shown) == [
        ("W0.0 MPI_COMM_WORLD", "4", "120"),
        ("s0.1", "2", "200"),
        ("s2.1", "2", "200"),
    ], text
    assert "s*.1 x2" in _commlens("report", str(result.profile)), "one line made both halves: one family"


def _commlens(*arguments: str) -> str:
    done = commlens(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
