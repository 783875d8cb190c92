# SPDX-License-Identifier: Apache-2.0
"""Jobs that did not end by themselves: recovered past what cannot be read, listed, selected, and cleaned away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import Mpi, commlens
from profile_rows import Profile

RANKS = 2
JOB = re.compile(r"job ([0-9a-f]+): \S+, (\d) of (\d) ranks, began \S+")


def killed(mpi: Mpi, folder: Path, calls: int) -> None:
    """Let a job of two ranks call MPI_Allreduce, and end without MPI_Finalize."""
    folder.mkdir()
    program: list[str | Path] = [mpi.compile("storage.c"), "work", str(calls), "kill"]
    mpi.run(RANKS, program, {"COMMLENS_ARENA_DIR": str(folder)}, cwd=folder.parent)
    assert len(list(folder.glob("*.arena"))) == RANKS


@pytest.fixture
def where(mpi: Mpi) -> Path:
    """Return a folder with two killed jobs of 3 and 5 calls, and one file of each kind that cannot be read."""
    where = mpi.fresh("ended")
    for name, calls in (("a", 3), ("b", 5)):
        killed(mpi, where / name, calls)
    (where / "a" / "commlens-short.arena").write_bytes(b"CLARENA\n")
    return where


def calls_in(path: Path) -> dict[int, int]:
    """Return the calls of MPI_Allreduce by rank."""
    return Profile(path).calls("MPI_Allreduce")["W0.0"]


def test_recover_goes_on_past_what_it_cannot_read(where: Path) -> None:
    """Neither a folder that is not there nor a file that is no arena keeps a job from its profile."""
    (where / "present").mkdir()
    done = commlens("recover", where / "absent", where / "a", where / "b", cwd=where / "present")
    assert done.returncode == 3, done.stderr
    assert f"commlens: {where}/absent: no such file or directory" in done.stderr.splitlines()
    assert f"commlens: {where}/a/commlens-short.arena: too short for an arena" in done.stderr.splitlines()
    found = sorted(calls_in(path)[1] for path in (where / "present").iterdir())
    assert found == [3, 5]
    listed = [line for line in done.stdout.splitlines() if JOB.match(line)]
    assert len(listed) == 2
    assert len({JOB.match(line)[1] for line in listed}) == 2  # type: ignore[index]


def test_a_job_is_listed_and_selected_by_its_id(where: Path) -> None:
    done = commlens("recover", "--list", where / "b", where / "a")
    ids = {line.rpartition("/")[2]: JOB.match(line)[1] for line in done.stdout.splitlines()}  # type: ignore[index]
    assert sorted(ids) == ["a", "b"]
    assert not list(where.glob("*.db"))
    done = commlens("recover", "--job", ids["b"], "-o", where / "b.db", where / "a", where / "b")
    assert calls_in(where / "b.db") == {0: 5, 1: 5}
    done = commlens("recover", "-o", where / "x.db", where / "a", where / "b")
    assert done.returncode == 2
    assert all(f"{id}: " in done.stderr for id in ids.values()), "-o needs one job, and the ids are said"
    done = commlens("recover", "--job", "xyz", where / "a", where / "b")
    assert (done.returncode, done.stdout) == (2, "")
    assert all(id in done.stderr for id in ids.values())
    assert not (where / "x.db").exists()


def test_a_job_of_which_nothing_can_be_read_is_named(where: Path) -> None:
    """All files of one job are damaged behind their headers."""
    for path in (where / "a").glob("commlens-*-*.arena"):
        content = bytearray(path.read_bytes())
        content[4096 + 64 :] = bytes(len(content) - 4096 - 64)
        path.write_bytes(content)
    done = commlens("recover", "-o", where / "b.db", where / "a", where / "b")
    assert done.returncode == 3
    assert calls_in(where / "b.db") == {0: 5, 1: 5}
    assert len([line for line in done.stderr.splitlines() if f"{where}/a/commlens-" in line]) == 3


def test_clean_removes_nothing_without_yes_and_names_what_was_not_recovered(where: Path) -> None:
    commlens("recover", "-o", where / "a.db", where / "a")
    before = sorted(where.rglob("*.arena"))
    done = commlens("clean", where / "a", where / "b", cwd=where)
    assert done.returncode == 0
    assert sorted(where.rglob("*.arena")) == before
    outcomes = {line.rpartition(": ")[2] for line in done.stdout.splitlines() if JOB.match(line)}
    assert outcomes == {"recovered in a.db", "not recovered"}
    assert all(str(path) in done.stdout for path in before if "short" not in path.name)
    assert done.stdout.splitlines()[-1].startswith("4 files would be removed, ")
    assert "--yes removes them" in done.stdout
    done = commlens("clean", "--yes", where / "a", where / "b", cwd=where)
    assert done.returncode == 0
    outcomes = {line.rpartition(": ")[2] for line in done.stdout.splitlines() if JOB.match(line)}
    assert outcomes == {"recovered in a.db", "not recovered"}, "said also of what is gone now"
    assert [path.name for path in where.rglob("*.arena")] == ["commlens-short.arena"]
