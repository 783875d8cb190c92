# SPDX-License-Identifier: Apache-2.0
"""Datatypes of the application (COMMLENS_DATATYPES): their constructors, and the calls and bytes of each."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from harness import PROGRAMS, Mpi
from profile_rows import Profile
from test_languages import mpi4py_env
from test_survive import commlens

ON = {"COMMLENS_DATATYPES": "1"}

USES = """
SELECT COALESCE(s.tree, '') AS sent, COALESCE(r.tree, '') AS received, COALESCE(t.tree, '') AS target,
       c.name AS comm, o.name AS op, u.rank, u.calls, u.bytes_sent, u.bytes_received
  FROM datatype_use u LEFT JOIN datatype s ON s.id = NULLIF(u.sent, 0) LEFT JOIN datatype r ON r.id = NULLIF(u.received, 0)
       LEFT JOIN datatype t ON t.id = NULLIF(u.target, 0) JOIN comm c ON c.id = u.comm JOIN op o ON o.id = u.op"""

VECTOR = "vector(100, 3, 8) of MPI_DOUBLE"
# Of programs/datatypes.c, by tree: size, lower bound, extent, number of messages from rank 0 to rank 1.
MADE = {
    VECTOR: (2400, 0, (99 * 8 + 3) * 8, 5),
    "contiguous(7) of MPI_INT": (28, 0, 28, 1),
    "hvector(3, 2, 100) of MPI_SHORT": (12, 0, 204, 1),
    "indexed(2 blocks: 1 @0, 2 @4) of MPI_INT": (12, 0, 24, 1),
    "hindexed(2 blocks: 1 @0 B, 2 @40 B) of MPI_INT": (12, 0, 48, 1),
    "indexed_block(2 blocks of 3: @0, @4) of MPI_FLOAT": (24, 0, 28, 1),
    "hindexed_block(2 blocks of 3: @0 B, @40 B) of MPI_FLOAT": (24, 0, 52, 1),
    "subarray(4x2 of 8x6 at 1,3, C) of MPI_BYTE": (8, 0, 48, 1),
    "darray(8x6 block,cyclic(2) over 2x1, rank 0, Fortran) of MPI_DOUBLE": (192, 0, 384, 1),
    "resized(-4, 16) of MPI_INT": (4, -4, 16, 1),
    "dup of MPI_DOUBLE": (8, 0, 8, 1),
    "struct{2 x MPI_INT @0, vector(2, 1, 2) of MPI_DOUBLE @8}": (24, 0, 32, 1),
    "contiguous(2) of MPI_CHAR": (2, 0, 2, 0),
    "contiguous(10) of MPI_FLOAT": (40, 0, 40, 0),
    "contiguous(11) of MPI_FLOAT": (44, 0, 44, 0),
    "contiguous(12) of MPI_FLOAT": (48, 0, 48, 0),
    "contiguous(5) of MPI_LONG": (40, 0, 40, 0),
    "vector(4, 1, 1) of MPI_UNSIGNED": (16, 0, 16, 0),
    "vector(4, 1, 2) of MPI_UNSIGNED": (16, 0, 28, 0),
}
ROW, COLUMN, LONGS = (
    "vector(4, 1, 1) of MPI_UNSIGNED",
    "vector(4, 1, 2) of MPI_UNSIGNED",
    "contiguous(5) of MPI_LONG",
)
# The other calls of one rank on the pair: sent, received, target, procedure -> calls, bytes sent, bytes received.
REQUESTS = {
    ("", LONGS, "", "MPI_Irecv"): (1, 0, 80),
    (LONGS, "", "", "MPI_Send"): (1, 80, 0),
    ("", LONGS, "", "MPI_Recv_init"): (1, 0, 120),
    (LONGS, "", "", "MPI_Send_init"): (1, 120, 0),
}
COLLECTIVES = {
    ("MPI_UNSIGNED_LONG", "MPI_UNSIGNED_LONG", "", "MPI_Allreduce"): (100, 2400, 2400),
    (COLUMN, ROW, "", "MPI_Alltoall"): (1, 32, 32),
    (ROW, ROW, "", "MPI_Alltoall"): (1, 32, 32),
    (ROW, "", COLUMN, "MPI_Put"): (1, 16, 0),
}
OF_RANK = (
    {
        (COLUMN, "", "", "MPI_Bcast"): (1, 16, 0),
        ("MPI_UNSIGNED", "MPI_UNSIGNED", "", "MPI_Gather"): (1, 16, 32),
        ("(several datatypes)", ROW, "", "MPI_Alltoallw"): (1, 32, 32),
    },
    {
        ("", COLUMN, "", "MPI_Bcast"): (1, 0, 16),
        (ROW, "", "", "MPI_Gather"): (1, 16, 0),
        ("(several datatypes)", "(several datatypes)", "", "MPI_Alltoallw"): (1, 32, 32),
    },
)


def uses(profile: Profile) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """Return calls and bytes by datatypes, communicator, procedure and rank."""
    return {tuple(row.values())[:6]: tuple(row.values())[6:] for row in profile.rows(USES)}


def expected() -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """Return what programs/datatypes.c does."""
    found: dict[tuple[Any, ...], tuple[int, int, int]] = {}
    for tree, (size, _, _, n) in MADE.items():
        if n:
            found[tree, "", "", "d0.1", "MPI_Send", 0] = (n, n * size, 0)
            found["", tree, "", "d0.1", "MPI_Recv", 1] = (n, 0, n * size)
    for rank in (0, 1):
        for n in (10, 11, 12):
            key = (f"contiguous({n}) of MPI_FLOAT", "MPI_FLOAT", "", f"S{rank}.0", "MPI_Sendrecv", rank)
            found[key] = (333, 333 * 4 * n, 333 * 4 * n)
        for (sent, received, target, op), counts in (REQUESTS | COLLECTIVES | OF_RANK[rank]).items():
            found[sent, received, target, "d0.1", op, rank] = counts
    return found


def agrees_with_cells(profile: Profile) -> None:
    """Check that the calls with datatypes are among all calls, and have all their bytes."""

    def sums(tables: str) -> dict[str, tuple[int, int]]:
        query = f"SELECT o.name, SUM(bytes_sent) AS sent, SUM(bytes_received) AS received FROM {tables} GROUP BY 1"
        return {row["name"]: (row["sent"], row["received"]) for row in profile.rows(query)}

    of_uses = sums("datatype_use u JOIN op o ON o.id = u.op")
    of_cells = sums("cell x JOIN key k ON k.id = x.key JOIN op o ON o.id = k.op")
    assert {name: of_uses.get(name, (0, 0)) for name in of_cells} == of_cells


def check(profile: Profile) -> None:
    """Check the datatypes of programs/datatypes.c."""
    assert uses(profile) == expected()
    agrees_with_cells(profile)
    made = {
        row["tree"]: (row["size"], row["lower_bound"], row["extent"])
        for row in profile.rows("SELECT * FROM datatype WHERE id <> 0")
    }
    assert {tree: made.get(tree) for tree in MADE} == {tree: facts[:3] for tree, facts in MADE.items()}
    plain = {"MPI_FLOAT", "MPI_UNSIGNED", "MPI_UNSIGNED_LONG", "(several datatypes)"}
    assert set(made) - set(MADE) == plain


def test_every_constructor_and_use(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("datatypes.c")], env=ON)
    mpi.skip_if_broken(plain)
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout) == (0, ""), under
    profile = under.open()
    profile.check()
    check(profile)
    table = commlens("datatypes", profile.path, "--uses", cwd=profile.path.parent)
    assert "vector(100, 3, 8) of MPI_DOUBLE" in table and "d0.1 MPI_Send" in table
    printed = commlens("datatypes", profile.path, "--format", "json", cwd=profile.path.parent)
    rows = {row["tree"]: row for row in json.loads(printed)}
    row = rows[VECTOR]
    assert (row["size"], row["extent"], row["calls"], row["bytes_sent"]) == (2400, 6360, 10, 12000)
    total = sum(sent + received for _, sent, received in expected().values())
    assert row["share_of_bytes"] == pytest.approx(24000 / total)
    assert rows["contiguous(2) of MPI_CHAR"]["calls"] == 0


def test_without_the_option_nothing_is_stored(mpi: Mpi) -> None:
    profile = mpi.run(2, [mpi.compile("datatypes.c")]).open()
    profile.check()
    assert profile.rows("SELECT COUNT(*) AS n FROM datatype")[0]["n"] == 0
    assert uses(profile) == {}


def test_a_summary_has_none(mpi: Mpi) -> None:
    profile = mpi.run(2, [mpi.compile("datatypes.c")], env={**ON, "COMMLENS_DETAIL": "summary"}).open()
    assert profile.rows("SELECT COUNT(*) AS n FROM datatype")[0]["n"] == 0


def test_several_writers_agree_on_the_datatypes(mpi: Mpi) -> None:
    result = mpi.run(2, [mpi.compile("datatypes.c")], env={**ON, "COMMLENS_AGGREGATORS": "2"})
    assert result.rc == 0, result
    shards, merged = result.profile.with_suffix(".commlens"), result.profile
    commlens("merge", shards, "-o", merged, cwd=merged.parent)
    check(Profile(merged))


def test_the_datatypes_of_a_killed_job_are_recovered(mpi: Mpi) -> None:
    where = mpi.fresh("killed")
    env = {**ON, "COMMLENS_ARENA_DIR": str(where)}
    result = mpi.run(
        2, [mpi.compile("datatypes.c"), "killed"], env, profile=where / "x.db", cwd=where, once=True
    )
    assert result.rc != 0
    recovered = where / "recovered.db"
    commlens("recover", where, "-o", recovered, cwd=where)
    check(Profile(recovered))


def of_one_rank(profile: Profile) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return calls and bytes sent by datatypes and procedure."""
    profile.check()
    agrees_with_cells(profile)
    return {(key[0], key[1], key[4]): counts[:2] for key, counts in uses(profile).items()}


def test_fortran(mpi: Mpi) -> None:
    if "fortran" not in mpi.compilers:
        pytest.skip("no Fortran compiler")
    result = mpi.run(1, [mpi.compile("datatypes.F90", "fortran")], env=ON)
    assert result.rc == 0, result
    found = of_one_rank(result.open())
    vector = "vector(3, 2, 4) of MPI_DOUBLE_PRECISION"
    assert found[vector, "MPI_DOUBLE_PRECISION", "MPI_Sendrecv"] == (1, 48)
    assert found["f90_real(15, 307)", "", "MPI_Bcast"] == (1, 40)
    assert found["f90_integer(9)", "", "MPI_Bcast"] == (1, 12)
    assert found["MPI_COMPLEX", "", "MPI_Bcast"] == (1, 16)
    assert found["MPI_LOGICAL", "", "MPI_Bcast"] == (1, 8)


def test_mpi4py(mpi: Mpi) -> None:
    if mpi.family == "abi":
        pytest.skip("mpi4py's wheel has no build for the standard interface")
    result = mpi.run(1, [sys.executable, PROGRAMS / "datatypes.py"], env={**mpi4py_env(mpi), **ON})
    assert result.rc == 0, result
    found = of_one_rank(result.open())
    column = "vector(4, 1, 4) of MPI_DOUBLE"
    assert found[column, "", "MPI_Bcast"] == (1, 64)
    assert found[f"struct{{MPI_INT @0, {column} @8}}", "", "MPI_Bcast"] == (1, 36)
    assert found["MPI_DOUBLE", "", "MPI_Bcast"] == (1, 24)
    assert found[column, "MPI_DOUBLE", "MPI_Sendrecv"] == (1, 32)
