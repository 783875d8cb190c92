# SPDX-License-Identifier: Apache-2.0
"""What MPI allows and few programs do, and ways of starting that few use."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from harness import Mpi, commlens
from profile_rows import Profile

BOTH = {0: 1, 1: 1}


def run(mpi: Mpi, case: str, n: int = 2) -> Profile:
    """Run one case of programs/corners.c, compare with a run without us, and open the profile."""
    plain, under = mpi.pair(n, [mpi.compile("corners.c"), case])
    assert (under.rc, under.lines) == (plain.rc, plain.lines) == (0, plain.lines), under
    assert len(under.said) == 1, under.said
    profile = under.open()
    profile.check()
    return profile


def test_calls_inside_calls_belong_to_the_outer_one(mpi: Mpi) -> None:
    profile = run(mpi, "nested")
    assert profile.calls("MPI_Allreduce") == {"W0.0": {0: 10, 1: 10}}
    assert profile.calls("MPI_Type_size") == {}
    assert profile.calls("MPI_Iprobe") == {}
    # two dups by the program, one of them with another inside, then two more
    assert profile.total("MPI_Comm_dup")[0] == 2 * 4
    assert profile.total("MPI_Comm_free")[0] == 2 * 4
    rows = profile.comms()
    by_calls = {
        frozenset(counts.values()): name
        for name, counts in profile.calls("MPI_Barrier").items()
        if name != "W0.0"
    }
    assert set(by_calls) == {frozenset({n}) for n in (3, 1, 5, 7)}, (
        "no handle was taken for one that was freed"
    )
    # One is made inside another call: which is not counted, but what it made is known.
    inner = rows[by_calls[frozenset({3})]]
    assert (inner["parent_name"], inner["groups"], inner["freed_ns"] is None) == ("W0.0", [[0, 1]], False)
    assert {rows[by_calls[frozenset({n})]]["creator_name"] for n in (1, 3, 5, 7)} == {"MPI_Comm_dup"}


def test_communicators_made_in_a_callback_are_told_apart(mpi: Mpi) -> None:
    """Though the ranks first use them in different order."""
    profile = run(mpi, "twins")
    names = {row["user_name"]: name for name, row in profile.comms().items() if row["user_name"]}
    assert profile.calls("MPI_Barrier", "d%") == {
        names["first twin"]: {0: 3, 1: 3},
        names["second twin"]: {0: 10, 1: 10},
    }


def test_what_is_made_while_a_communicator_is_freed(mpi: Mpi) -> None:
    """Its heir has it as its parent on both ranks; a window is known; a request completed there is forgotten."""
    profile = run(mpi, "heirs")
    rows = profile.comms()
    (dead,) = (name for name, row in rows.items() if row["user_name"] == "the dead")
    (heir,) = (name for name, row in rows.items() if row["parent_name"] == dead)
    assert rows[heir]["groups"] == [[0, 1]]
    assert profile.calls("MPI_Barrier", heir) == {heir: {0: 3, 1: 3}}
    (parent,) = profile.calls("MPI_Win_fence")
    assert (parent[0], profile.calls("MPI_Win_fence")[parent]) == ("d", {0: 4, 1: 4})
    assert profile.calls("MPI_Win_free") == {parent: BOTH}
    assert profile.total("MPI_Irecv", "S%") == (2, 0, 0), "completed in the callback: not known how long"
    assert profile.calls("MPI_Wait") == {"-": BOTH}, "of a request made in the callback"


def test_an_error_handler_that_jumps(mpi: Mpi) -> None:
    """The calls after the jump are counted, from deeper functions, too."""
    profile = run(mpi, "longjump")
    assert profile.calls("MPI_Allreduce") == {"d0.1": {0: 5, 1: 5}}
    assert profile.calls("MPI_Comm_free") == {"d0.1": BOTH}
    assert profile.calls("MPI_Barrier", "d%") == {"d0.1": {0: 2 * 5, 1: 2 * 5}}


def test_error_handlers_that_call_mpi_and_return(mpi: Mpi) -> None:
    """The failed call is counted, with its time and without bytes; what its handler calls is not."""
    profile = run(mpi, "handlers")
    assert profile.calls("MPI_Send", "d0.1") == {"d0.1": {0: 3 + 1, 1: 3}}
    assert profile.total("MPI_Send", "d0.1")[1:] == (16, 0)
    assert profile.calls("MPI_Recv", "d0.1") == {"d0.1": {1: 1}}
    assert profile.total("MPI_Recv", "d0.1")[1:] == (0, 0), "truncated: not known what of it arrived"
    assert profile.calls("MPI_Bcast") == {"d0.1": BOTH}
    assert profile.total("MPI_Allreduce", "d0.1") == (4, 8, 8)
    assert profile.calls("MPI_Graph_create") == profile.calls("MPI_Cart_create") == {"d0.1": BOTH}
    # two creations failed; the third is a dup, and no member may take it for another one
    made = {name: row for name, row in profile.comms().items() if row["parent_name"] == "d0.1"}
    assert [row["groups"] for row in made.values()] == [[[0, 1]]]
    assert profile.calls("MPI_Barrier", next(iter(made))) == {next(iter(made)): BOTH}
    assert profile.total("MPI_Put") == (2, 0, 0)
    assert profile.total("MPI_File_read") == (2, 0, 0)
    for op in ("Iprobe", "Comm_size", "Error_string", "Error_class", "Win_get_group"):
        assert profile.calls(f"MPI_{op}") == {}, f"{op} was called inside another call"
    assert profile.calls("MPI_Comm_call_errhandler") == {"d0.1": BOTH}


def test_callbacks_at_the_start_of_finalize(mpi: Mpi) -> None:
    """MPI deletes the attributes of MPI_COMM_SELF first: calls made there are inside MPI_Finalize."""
    profile = run(mpi, "last")
    assert profile.calls("MPI_Allreduce") == {}
    assert profile.calls("MPI_Comm_set_attr") == {"S0.0": {0: 1}, "S1.0": {1: 1}}


def test_arrays_of_nothing(mpi: Mpi) -> None:
    profile = run(mpi, "lonely")
    for op in ("Waitall", "Waitany", "Waitsome", "Testall", "Testany", "Testsome"):
        assert profile.calls(f"MPI_{op}") == {"-": BOTH}, op
    # two integers from each of two ranks to the first, and back
    for op in ("Gatherv", "Igatherv"):
        assert profile.total(f"MPI_{op}") == (2, 16, 16)
    assert profile.total("MPI_Scatterv") == (2, 16, 16)
    # rank 0 has one to send to, rank 1 one to hear of
    for op in ("Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_allgatherv"):
        (comm,) = profile.calls(f"MPI_{op}")
        counts = {
            count.rank: (count.sent, count.received) for count in profile.counts(op=f"MPI_{op}", comm=comm)
        }
        assert counts == {0: (8, 0), 1: (0, 8)}, op
    made = {name: row for name, row in profile.comms().items() if row["topology"]}
    points = {"b0.3": {0: 2}, "b1.3": {1: 2}} if mpi.name == "openmpi" else {"b0.3": {0: 2}}
    assert profile.calls("MPI_Barrier", "b%") == points
    assert profile.calls("MPI_Barrier", "a%") == {"a0.4": {0: 3}}
    assert set(made) == {"y0.1", "a0.2", *points, "a0.4"}


def test_handles_that_come_again(mpi: Mpi) -> None:
    """Of datatypes with another size, of windows and files on another communicator."""
    profile = run(mpi, "reuse")
    odd, even = (4 * sum(range(first, 41, 2)) for first in (1, 2))
    for op in ("Sendrecv", "Put", "File_write_at"):
        sent = {name: profile.total(f"MPI_{op}", name)[:2] for name in ("d0.1", "d0.2")}
        assert sent == {"d0.1": (40, 2 * even), "d0.2": (40, 2 * odd)}, op


def test_what_is_left_behind(mpi: Mpi) -> None:
    profile = run(mpi, "leftovers")
    row = profile.comms()["d0.1"]
    assert (row["user_name"], row["freed_ns"]) == ("forgotten", None)
    assert profile.total("MPI_Isend") == (2, 8, 0)
    assert profile.total("MPI_Send_init") == (2, 0, 0)


@pytest.mark.parametrize("where", ["global object", "library"])
@pytest.mark.parametrize("mode", ["run", "link"])
def test_finalize_while_the_program_exits(mpi: Mpi, where: str, mode: str) -> None:
    link = mode == "link"
    if where == "library":
        library = mpi.compile("late.cpp", flags=("-DLIBRARY",), shared=True)
        program = mpi.compile("late.cpp", None, library, f"-Wl,-rpath,{library.parent}", link=link)
    else:
        program = mpi.compile("late.cpp", flags=("-DGLOBAL",), link=link)
    result = mpi.run(2, [program], mode=mode)
    assert (result.rc, result.stdout) == (0, "late 2\n"), result
    assert len(result.said) == 1, result.said
    profile = result.open()
    profile.check()
    assert profile.calls("MPI_Allreduce") == {"W0.0": {0: 7, 1: 7}}


def test_a_fatal_error_stays_fatal(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("corners.c"), "fatal"])
    assert under.rc in mpi.codes(plain.rc)
    assert under.stdout == plain.stdout
    assert not under.profile.exists()


def test_threads_that_come_and_go(mpi: Mpi) -> None:
    profile = run(mpi, "threads")
    assert profile.calls("MPI_Sendrecv") == {f"S{rank}.0": {rank: 25 * 8 * 20} for rank in (0, 1)}
    assert profile.total("MPI_Sendrecv") == (8000, 32000, 32000)
    assert profile.rows("SELECT threads FROM rank") == [{"threads": 201}] * 2


def test_names_that_are_no_text(mpi: Mpi) -> None:
    profile = run(mpi, "names")
    names = {name: row["user_name"] for name, row in profile.comms().items()}
    assert names["d0.1"].startswith("caf")
    assert names["d0.2"].startswith("n" * 60)
    assert names["d0.3"] in (None, "")
    for command in ("report", "comms"):
        done = commlens(command, profile.path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "caf" in done.stdout


def test_generalized_requests(mpi: Mpi) -> None:
    profile = run(mpi, "generalized")
    assert profile.calls("MPI_Wait") == {"-": BOTH}
    assert profile.calls("MPI_Waitall") == {"W0.0": BOTH}
    assert profile.total("MPI_Irecv") == (2, 0, 8)


def test_a_program_that_does_nothing(mpi: Mpi) -> None:
    profile = run(mpi, "silent")
    assert profile.rows("SELECT COUNT(*) AS n FROM cell") == [{"n": 0}]
    assert set(profile.comms()) == {"W0.0"}
    done = commlens("report", profile.path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("binding", ["MPIF_H", "USE_MPI_F08"])
def test_idup_from_fortran(mpi: Mpi, binding: str) -> None:
    """Its bindings give MPI a variable of their own for the new communicator, gone when the request completes."""
    flags = ("-cpp", f"-D{binding}", "-w", "-fallow-argument-mismatch")
    result = mpi.run(2, [mpi.compile("idup.F90", "fortran", flags=flags)])
    assert (result.rc, result.stdout) == (0, "idup done\n"), result
    profile = result.open()
    profile.check()
    made = {name: row for name, row in profile.comms().items() if name != "W0.0"}
    assert sorted(made) == sorted(f"i0.{n}" for n in range(1, 30))
    assert all(row["freed_ns"] is not None for row in made.values())
    assert profile.calls("MPI_Barrier") == dict.fromkeys(made, BOTH)


def test_two_programs_in_one_world(mpi: Mpi) -> None:
    other = mpi.compile("listing1.c", flags=("-DOTHER",))
    mpi.skip_if_broken(mpi.run(2, [other, ":", "-n", "2", other], mode="off"))
    result = mpi.run(2, [mpi.compile("listing1.c"), ":", "-n", "2", mpi.runner, other])
    assert (result.rc, result.stdout) == (0, "320\n"), result
    profile = result.open()
    profile.check()
    assert profile.calls("MPI_Allreduce")["W0.0"] == dict.fromkeys(range(4), 30)
    modules = profile.rows("SELECT DISTINCT module FROM callsite")
    assert len([row for row in modules if "listing1" in row["module"]]) == 2
    # where the ranks that made it called from different programs, the leader's call site is the one
    assert {row["size"] for name, row in profile.comms().items() if name[0] == "s"} == {2}


@pytest.mark.parametrize("ours", [(0, 1), (2, 3)])
def test_only_some_ranks_under_commlens(mpi: Mpi, ours: tuple[int, int]) -> None:
    """They wait for the others for COMMLENS_PATIENCE, then each writes its own data."""
    program = mpi.compile("listing1.c")
    mpi.skip_if_broken(mpi.run(2, [program, ":", "-n", "2", program], mode="off"))
    second: list[str | Path] = [":", "-n", "2", *([] if ours == (0, 1) else [mpi.runner]), program]
    result = mpi.run(
        2, [program, *second], mode="run" if ours == (0, 1) else "link", env={"COMMLENS_PATIENCE": "2"}
    )
    assert (result.rc, "320" in result.lines) == (0, True), result
    found = sorted(path.name for path in result.profile.parent.glob("*.db"))
    assert found == [f"profile.rank{rank}.db" for rank in ours]
    assert len([line for line in result.said if "COMMLENS_PATIENCE" in line]) == 2, result.said
    for rank, name in zip(ours, found):
        profile = Profile(result.profile.with_name(name))
        profile.check()
        assert profile.calls("MPI_Allreduce", "W0.0") == {"W0.0": {rank: 30}}
        assert (profile.meta()["ranks"], profile.meta()["ranks_collected"]) == ("4", "1")


def test_without_a_launcher(mpi: Mpi, tmp_path: Path) -> None:
    _, environment = mpi.prepare(1, [], None, tmp_path / "x.db")
    done = subprocess.run(
        [str(mpi.runner), str(mpi.compile("corners.c")), "names"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "names done\n")
    profile = Profile(tmp_path / "x.db")
    profile.check()
    assert profile.meta()["ranks"] == "1"
    assert profile.meta()["mpi_family"] == mpi.family


def test_a_path_with_blanks_and_accents(mpi: Mpi) -> None:
    where = mpi.fresh("blanks") / "a b \u00e9'\""
    where.mkdir()
    program = where / "my program"
    program.write_bytes(mpi.compile("listing1.c").read_bytes())
    program.chmod(0o755)
    result = mpi.run(2, [program, "an argument", "$HOME"], profile=where / "the profile.db", cwd=where)
    assert (result.rc, result.stdout) == (0, "160\n")
    profile = result.open()
    assert profile.meta()["program"] == "my program"
    assert profile.meta()["working_directory"] == str(where)
    assert "'an argument' '$HOME'" in profile.meta()["command_line"]
    assert {"module": str(program)} in profile.rows("SELECT DISTINCT module FROM callsite")
