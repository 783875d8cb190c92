# SPDX-License-Identifier: Apache-2.0
"""Secrets of the command line are neither in profiles nor in the arenas of killed jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Mpi, commlens
from profile_rows import Profile

SECRET = "hunter2"
ARGUMENTS = [
    "--token", SECRET, f"--api-key={SECRET}", f"DB_PASSWORD={SECRET}", "-H", f"Authorization: Bearer {SECRET}",
    f"postgres://me:{SECRET}@host/db", "--steps", "30",
]  # fmt: skip
MASKED = (
    "--token *** --api-key=*** DB_PASSWORD=*** -H 'Authorization: ***' postgres://me:***@host/db --steps 30"
)


def shown(profile: Profile) -> str:
    """Return the command line without the path of the program, which differs."""
    program, _, arguments = profile.meta()["command_line"].partition(" ")
    return f"{Path(program).name} {arguments}".strip()


@pytest.mark.parametrize("writers", [1, 2])
def test_secrets_are_masked_in_every_file(mpi: Mpi, writers: int) -> None:
    program = mpi.compile("listing1.c")
    where = mpi.fresh("secrets")
    result = mpi.run(
        2, [program, *ARGUMENTS], {"COMMLENS_AGGREGATORS": str(writers)}, profile=where / "x.db", cwd=where
    )
    assert result.rc == 0
    files = [path for path in where.rglob("*.db") if path.is_file()]
    assert len(files) == (1 if writers == 1 else 3)
    for file in files:
        assert SECRET.encode() not in file.read_bytes()
        assert shown(Profile(file)) == f"{program.name} {MASKED}"


def test_secrets_are_masked_in_what_a_killed_job_leaves(mpi: Mpi) -> None:
    where = mpi.fresh("killed")
    program = mpi.compile("storage.c")
    env = {"COMMLENS_ARENA_DIR": str(where)}
    mpi.run(2, [program, "work", "3", "kill", *ARGUMENTS], env, profile=where / "x.db", cwd=where)
    arenas = list(where.glob("commlens-*.arena"))
    assert len(arenas) == 2
    for arena in arenas:
        assert SECRET.encode() not in arena.read_bytes()
    done = commlens("recover", "-o", where / "recovered.db", where)
    assert done.returncode == 0, done
    assert shown(Profile(where / "recovered.db")) == f"{program.name} work 3 kill {MASKED}"


@pytest.mark.parametrize(("how", "expected"), [("program", ""), ("full", f" --token {SECRET}")])
def test_the_program_only_or_all(mpi: Mpi, how: str, expected: str) -> None:
    program = mpi.compile("listing1.c")
    result = mpi.run(1, [program, "--token", SECRET], {"COMMLENS_COMMAND_LINE": how})
    assert shown(result.open()) == f"{program.name}{expected}"
