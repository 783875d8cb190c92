# SPDX-License-Identifier: Apache-2.0
"""MPI-4 sessions: without MPI_Init, several at once, and beside the world model.  Open MPI 4 has none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import Mpi, commlens
from profile_rows import Profile

ALL = (0, 1)
NO_SESSIONS = 77
"""What programs/sessions.c returns where mpi.h has none."""


def run(mpi: Mpi, case: str) -> Profile:
    """Run one case of programs/sessions.c without and with us, and open the profile; skip the test without sessions."""
    plain, under = mpi.pair(2, [mpi.compile("sessions.c"), case])
    if plain.rc == NO_SESSIONS:
        assert mpi.name == "openmpi"
        assert (under.rc, under.stdout) == (plain.rc, plain.stdout) == (NO_SESSIONS, "")
        pytest.skip("this MPI library has no sessions")
    mpi.skip_if_broken(plain)
    assert (under.rc, under.lines) == (plain.rc, plain.lines)
    assert plain.rc == 0, plain
    assert len(under.said) == 1, under.said
    assert [path.name for path in under.profile.parent.glob("*.db")] == ["profile.db"]
    profile = under.open()
    profile.check()
    assert profile.meta()["ranks"] == profile.meta()["ranks_collected"] == "2"
    assert profile.rows("SELECT rank FROM rank ORDER BY rank") == [{"rank": 0}, {"rank": 1}]
    return profile


def test_a_program_of_sessions_only_has_one_profile(mpi: Mpi) -> None:
    """The rank of a process is its rank in the process set mpi://WORLD."""
    profile = run(mpi, "only")
    rows = profile.comms()
    assert set(rows) - {"W0.0"} == {"f0.1", "d0.2"}
    assert rows["f0.1"]["groups"] == rows["d0.2"]["groups"] == [[0, 1]]
    assert (rows["f0.1"]["creator_name"], rows["f0.1"]["parent_name"]) == ("MPI_Comm_create_from_group", None)
    assert rows["d0.2"]["parent_name"] == "f0.1"
    assert all(rows[name]["freed_ns"] >= rows[name]["created_ns"] > 0 for name in ("f0.1", "d0.2"))
    assert profile.calls("MPI_Allreduce") == {"f0.1": dict.fromkeys(ALL, 3), "d0.2": dict.fromkeys(ALL, 5)}
    assert profile.total("MPI_Allreduce") == (16, 64, 64)


def test_several_sessions_at_once(mpi: Mpi) -> None:
    profile = run(mpi, "several")
    assert profile.calls("MPI_Allreduce") == {
        "f0.1": dict.fromkeys(ALL, 4),
        "f0.2": dict.fromkeys(ALL, 2),
        "f0.3": dict.fromkeys(ALL, 7),  # the same tag as the first, another communicator
        "f0.4": {0: 9},
        "f1.4": {1: 9},
    }
    assert {name: row["groups"] for name, row in profile.comms().items() if name[0] == "f"} == {
        "f0.1": [[0, 1]],
        "f0.2": [[0, 1]],
        "f0.3": [[0, 1]],
        "f0.4": [[0]],
        "f1.4": [[1]],
    }


def test_groups_of_the_programs_making(mpi: Mpi) -> None:
    profile = run(mpi, "groups")
    rows = profile.comms()
    assert rows["f1.1"]["groups"] == [[1, 0]]
    assert (rows["F0.2"]["kind"], rows["F0.2"]["groups"]) == ("inter", [[0], [1]])
    assert profile.calls("MPI_Allreduce") == {"f1.1": dict.fromkeys(ALL, 4)}
    assert profile.calls("MPI_Barrier") == {"F0.2": dict.fromkeys(ALL, 1)}


def test_a_session_beside_the_world_model(mpi: Mpi) -> None:
    profile = run(mpi, "beside")
    assert profile.calls("MPI_Allreduce") == {"W0.0": dict.fromkeys(ALL, 6), "f0.1": dict.fromkeys(ALL, 3)}


def test_a_session_that_begins_before_the_world_model_and_ends_after_it(mpi: Mpi) -> None:
    profile = run(mpi, "outlives")
    assert profile.calls("MPI_Allreduce") == {
        "W0.0": dict.fromkeys(ALL, 6),
        "f0.1": dict.fromkeys(ALL, 3),
        "f0.2": dict.fromkeys(ALL, 6),  # after MPI_Finalize
    }


def test_a_session_that_is_never_finalised(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("sessions.c"), "unfinished"])
    mpi.skip_if_broken(plain)
    assert under.rc in mpi.codes(plain.rc)
    # A launcher that complains, as it may without us, does so on stdout, in a frame and in three lines below it.
    ranks_printed = [
        [line for line in r.lines if not re.match("$|=|YOUR APPLICATION|This typically|Please see", line)]
        for r in (plain, under)
    ]
    assert ranks_printed == [[], []]
    assert len(under.said) == len(set(under.said)) <= 2, under.said


def test_the_parts_of_a_job_with_a_killed_rank_are_recovered(mpi: Mpi) -> None:
    """Rank 0 has stored its part and ended; rank 1, whose arena is left, is killed before it stores one."""
    where = mpi.fresh("killed")
    arenas = where / "arenas"
    arenas.mkdir()
    env = {"COMMLENS_ARENA_DIR": str(arenas)}
    result = mpi.run(
        2, [mpi.compile("sessions.c"), "killed"], env, profile=where / "x.db", cwd=where, once=True
    )
    if result.rc == NO_SESSIONS:
        pytest.skip("this MPI library has no sessions")
    assert result.rc != 0
    assert not (where / "x.db").exists()
    (part,) = where.glob(".commlens-*/rank0.part")
    listed = commlens("recover", "--list", where, arenas)
    assert re.fullmatch(
        rf"job \w+: sessions\S*, 2 of 2 ranks, began \S+Z, ended, in {part.parent}, {arenas}\n", listed.stdout
    ), listed
    done = commlens("recover", "-o", where / "y.db", where, arenas)
    assert (done.returncode, done.stderr) == (0, ""), done
    profile = Profile(where / "y.db")
    assert commlens("report", where / "y.db").returncode == 0
    assert profile.meta()["ranks"] == profile.meta()["ranks_collected"] == "2"
    assert profile.calls("MPI_Allreduce") == {"f0.1": dict.fromkeys(ALL, 3)}
    states = profile.rows("SELECT rank, state FROM rank ORDER BY rank")
    assert states == [{"rank": 0, "state": "finalized"}, {"rank": 1, "state": "ended"}]
    # Made by recover, it does not count as stored by the job.
    again = commlens("recover", "-o", where / "y2.db", where, arenas)
    assert (again.returncode, again.stdout.split(":")[0]) == (0, str(where / "y2.db")), again
    assert commlens("recover", where, arenas, cwd=where).stdout.startswith("x.db: sessions")
    (where / "x.db").unlink()
    # The parts alone: what is known of rank 0, and that rank 1 is missing. It may run on another node.
    alone = commlens("recover", "-o", where / "z.db", part.parent)
    assert alone.returncode == 3
    assert alone.stderr.endswith("missing ranks, which left no files in the folders searched: 1\n"), alone
    assert Profile(where / "z.db").calls("MPI_Allreduce") == {"f0.1": {0: 3}}
    told = commlens("recover", "--list", part.parent).stdout
    assert ", 1 of 2 ranks, began " in told
    assert ", may still run, in " in told, "so recover makes its profile only if the place is named"
    # A rank that found no room has left an empty part, and its arena.
    (part.parent / "rank1.part").touch(mode=0o600)
    whole = commlens("recover", "-o", where / "w.db", where, arenas)
    assert (whole.returncode, whole.stderr) == (0, ""), whole
    assert commlens("clean", "--yes", where, arenas).returncode == 0
    assert part.exists(), "its job may run on other nodes"


def test_a_child_process_has_the_sessions(mpi: Mpi, tmp_path: Path) -> None:
    """The first call of MPI comes before the fork, and is one of those that need no initialisation."""
    (tmp_path / "child.c").write_text(
        "#include <mpi.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
        "int main(void) {\n"
        "  int version, subversion, status = 0;\n"
        "  MPI_Get_version(&version, &subversion);\n"
        "  if (fork() != 0) return wait(&status) < 0 || status != 0;\n"
        "#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5\n"
        "  MPI_Session session;\n  MPI_Group group;\n  MPI_Comm comm;\n"
        "  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);\n"
        '  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);\n'
        '  MPI_Comm_create_from_group(group, "child", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);\n'
        "  for (int i = 0; i < 3; ++i) MPI_Barrier(comm);\n"
        "  MPI_Comm_free(&comm);\n  MPI_Group_free(&group);\n  MPI_Session_finalize(&session);\n"
        "#endif\n"
        "  return 0;\n}\n"
    )
    plain, under = mpi.pair(2, [mpi.compile(tmp_path / "child.c")])
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout) == (0, "")
    if "MPI_Session_init" in mpi.procedures:
        assert list(under.open().calls("MPI_Barrier").values()) == [{0: 3, 1: 3}]
