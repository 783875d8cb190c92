# SPDX-License-Identifier: Apache-2.0
"""Whether the rules changed the algorithm is seen in messages below MPI, where the library shows them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from harness import Mpi
from test_tune import prepared

from commlens.overhead.legs import split
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.seen import INSIDE, seen_lines

PAIRWISE = {
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_alltoall_algorithm": "2",
}
NAME = "MPI_Alltoall 32-63 B on "


@pytest.mark.parametrize("measured", ["", "all"])
def test_the_algorithm_before_and_after_is_named(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: str
) -> None:
    """The run before is made only if the profile does not have the messages inside collectives."""
    program = mpi.compile("tune_families.c")
    profile = mpi.run(5, [program], {"COMMLENS_MATRIX": measured} if measured else {}).profile
    with closing(sqlite3.connect(profile)) as connection:
        library, family, name = connection.execute(
            "SELECT meta.value, comm.family, family.name FROM meta, comm JOIN family ON family.family = comm.family "
            "WHERE key = 'mpi_library' AND comm.user_name = 'plain'"
        ).fetchone()
    case = Case(family, name, "alltoall", 5, 6, 32)
    chosen = [Choice(case, Candidate(2, "pairwise"), 2.0, 1.0, -0.5, -0.6, -0.4, 9)]
    prepared(mpi, monkeypatch, tmp_path)
    launch = split([mpi.launcher, "-n", "5", str(program)])
    lines = seen_lines(chosen, PAIRWISE, library, str(profile), launch, tmp_path)
    if mpi.family != "openmpi":
        assert lines == [
            "which algorithms ran cannot be seen: only Open MPI shows the messages inside collectives"
        ]
        return
    assert len(lines) == 1
    assert lines[0].startswith(f"{NAME}{name}, 5 ranks: linear"), lines
    assert lines[0].endswith(" before, pairwise after (seen below MPI)")
    made = {"with.db"} if measured else {"with.db", "without.db"}
    assert {path.name for path in (tmp_path / INSIDE).iterdir()} == made
    # Both are kept: a second question runs nothing.
    assert seen_lines(chosen, PAIRWISE, library, str(profile), ["no-such-launcher"], tmp_path) == lines


def test_an_application_that_fails_is_named(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = mpi.run(1, [mpi.compile("tune_families.c")]).profile
    case = Case(1, "W0.0", "alltoall", 2, 6, 32)
    chosen = [Choice(case, Candidate(2, "pairwise"), 2.0, 1.0, -0.5, -0.6, -0.4, 9)]
    prepared(mpi, monkeypatch, tmp_path)
    # Hydra may die of SIGPIPE if the program ends at once, while it still talks to its proxy.
    fails = tmp_path / "fails"
    fails.write_text("#!/bin/sh\nsleep 0.5\nexit 1\n")
    fails.chmod(0o755)
    launch = split([mpi.launcher, "-n", "1", str(fails)])
    (line,) = seen_lines(chosen, PAIRWISE, "Open MPI v4.1.4", str(profile), launch, tmp_path)
    assert line.startswith("which algorithms ran cannot be seen: ")
    assert "ended with 1" in line
