# SPDX-License-Identifier: Apache-2.0
"""MPI_Pcontrol in the dialects of the tools that programs were written for; docs/reference/pcontrol.md has the table."""

from __future__ import annotations

import evidence
import pytest
from harness import Mpi
from profile_rows import Profile

# Dialect, what the program says, and the barriers that count, by region.  "!" is a barrier.
SAID = [
    ("auto", "! 0 ! ! 1 !", {"": 2}),
    ("auto", "! 1 ! 0 ! 1:name !", {"": 3}),  # it goes on, whatever stands behind
    ("auto", "1:solve ! 1:comm ! ! -1:comm ! -1:solve !", {"solve": 2, "solve/comm": 2, "": 1}),
    ("auto", "1:solve ! -1 !", {"solve": 1, "": 1}),
    ("auto", "5 ! 6 ! -6 -5 !", {"MPI_Pcontrol(5)": 1, "MPI_Pcontrol(5)/MPI_Pcontrol(6)": 1, "": 1}),
    ("auto", "! 2 ! 3 ! 4 !", {"": 4}),  # nothing is lost
    ("auto", "101 ! 100 !", {"MPI_Pcontrol(101)": 1, "": 1}),
    ("off", "! 0 ! 1:a ! 5 ! 2 !", {"": 5}),
    ("mpip", "! 0 ! 1 ! 2 ! !", {"": 2}),
    ("mpip", "! 1:name ! 3 ! 4 !", {"": 4}),
    ("ipm", "! 1:a ! 0:event ! -1:a !", {"": 2, "a": 2}),
    ("ipm", "! 0 ! 1 !", {"": 2}),
    ("ipm", f"1:{'n' * 300} ! -1:{'n' * 300} !", {"n" * 255: 1, "": 1}),  # cut, as all names are
    ("aps", "! 7 ! -7 ! 0 ! 1 !", {"": 3, "MPI_Pcontrol(7)": 1}),
    ("mpitrace", "! ! 1 ! ! 0 ! 1 !", {"": 3}),  # only the blocks
    ("mpitrace", "! 101 ! 100 !", {"": 2, "MPI_Pcontrol(101)": 1}),
    ("mpisee", "! 0 ! 1 !", {"": 2}),
]

BARRIERS = """
SELECT path.path, x.rank, SUM(x.calls) AS calls FROM cell x JOIN key k ON k.id = x.key JOIN op o ON o.id = k.op
  JOIN region_path path ON path.region = k.region WHERE o.name = 'MPI_Barrier' GROUP BY 1, 2"""


def barriers(profile: Profile) -> dict[str, set[int]]:
    """Return how often each rank called MPI_Barrier, by region."""
    found: dict[str, set[int]] = {}
    for row in profile.rows(BARRIERS):
        found.setdefault(row["path"], set()).add(row["calls"])
    return found


@pytest.mark.dealt
@pytest.mark.parametrize(("dialect", "said", "expected"), SAID)
def test_what_a_program_says_is_understood(
    mpi: Mpi, dialect: str, said: str, expected: dict[str, int]
) -> None:
    program = mpi.compile("pcontrol.c")
    result = mpi.run(2, [program, *said.split()], env={"COMMLENS_PCONTROL": dialect})
    assert (result.rc, result.stdout) == (0, ""), result
    profile = result.open()
    profile.check()
    assert barriers(profile) == {path: {calls} for path, calls in expected.items()}
    evidence.note(evidence.short_name(profile.meta()["mpi_library"]), ["MPI_Pcontrol"])
    assert "MPI_Pcontrol" not in result.stderr


@pytest.mark.parametrize(
    ("dialect", "level"), [("mpip", "5"), ("aps", "3"), ("mpisee", "-1"), ("auto", "-3")]
)
def test_a_level_of_another_dialect_is_named_once(mpi: Mpi, dialect: str, level: str) -> None:
    program = mpi.compile("pcontrol.c")
    result = mpi.run(3, [program, "!", level, "!", level], env={"COMMLENS_PCONTROL": dialect})
    assert (result.rc, result.stdout) == (0, ""), result
    assert result.stderr.count(f"MPI_Pcontrol({level}) has no meaning in dialect {dialect}") == 1
    assert "2 more ranks" in result.stderr
    assert barriers(result.open()) == {"": {2}}


def test_events_of_ipm_are_a_metric(mpi: Mpi) -> None:
    program = mpi.compile("pcontrol.c")
    said = ["1:solve", "0:restart", "0:restart", "-1:solve", "0:restart"]
    result = mpi.run(2, [program, *said], env={"COMMLENS_PCONTROL": "ipm"})
    assert result.rc == 0, result
    rows = result.open().rows(
        "SELECT m.name, m.unit, p.path, v.rank, v.count FROM metric_value v JOIN metric m ON m.id = v.metric "
        "JOIN region_path p ON p.region = v.region ORDER BY p.path, v.rank"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("restart", "events", path, rank, count) for path, count in (("", 1), ("solve", 2)) for rank in (0, 1)
    ]


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        (("-cpp", "-fallow-argument-mismatch", "-w"), "inner part"),
        (("-cpp", "-DUSE_MPI_F08"), "MPI_Pcontrol(5)"),
    ],
)
def test_a_program_is_understood_from_fortran(mpi: Mpi, flags: tuple[str, ...], path: str) -> None:
    result = mpi.run(2, [mpi.compile("pcontrol.F90", "fortran", flags=flags)])
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    assert barriers(profile) == {path: {1}, "": {1}}
