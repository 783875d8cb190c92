# SPDX-License-Identifier: Apache-2.0
"""Child processes, libraries that a rank loads and unloads, and names that they share with commlens."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from harness import PROGRAMS, Mpi
from launches import Result
from profile_rows import Profile

BOTH = (0, 1)


def files(where: Path) -> set[str]:
    """Return the names of what a run left behind."""
    return {path.name for path in where.iterdir() if path.name[0] != "."}


def same(plain: Result, under: Result) -> Profile:
    """Assert that both runs ended well and alike, and open the profile."""
    assert (under.rc, under.lines) == (plain.rc, plain.lines)
    assert under.rc == 0, under
    assert len(under.said) == 1, under.said
    profile = under.open()
    profile.check()
    return profile


def test_children_of_every_kind_write_nothing_and_change_nothing(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("processes.c"), "starts"])
    profile = same(plain, under)
    assert plain.lines == ["fds 0", "fork 26", "popen 22", "spawn 21", "vfork 21"]
    assert files(under.profile.parent) == {"profile.db"}
    assert profile.calls("MPI_Allreduce") == {"W0.0": dict.fromkeys(BOTH, 15)}
    assert profile.calls("MPI_Comm_size") == {}, "made by the child"  # the parent's would be counted


def test_calls_of_a_child_like_those_of_its_parent_are_not_counted(mpi: Mpi) -> None:
    """The call cache of the parent has them; the child's go to the MPI library."""
    plain, under = mpi.pair(2, [mpi.compile("processes.c"), "repeats"])
    profile = same(plain, under)
    assert plain.lines == ["repeats 24"]
    assert profile.calls("MPI_Send") == {f"S{rank}.0": {rank: 60} for rank in BOTH}


def test_an_mpi_program_started_by_a_rank_is_a_job_of_its_own(mpi: Mpi) -> None:
    """The child is told nothing of the launcher, so it is a job of one rank: it may have a profile of its own."""
    child = mpi.compile("sites.c")  # nine barriers
    keep = "PATH HOME LD_PRELOAD LD_LIBRARY_PATH COMMLENS_OUTPUT OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"
    environment = " ".join(f'{name}="${name}"' for name in keep.split())
    command = f"env -i {environment} {shlex.quote(str(child))}"
    plain, under = mpi.pair(2, [mpi.compile("processes.c"), "command", command])
    assert (under.rc, under.lines) == (plain.rc, plain.lines)
    assert plain.lines == ["command 0"]
    assert len(under.said) == 2, under.said
    found = [Profile(under.profile.parent / name) for name in ("profile.db", "profile.1.db")]
    assert files(under.profile.parent) == {"profile.db", "profile.1.db"}
    # the child ended first
    assert [profile.meta()["ranks"] for profile in found] == ["1", "2"]
    assert found[0].total("MPI_Barrier")[0] == 9
    assert found[1].calls("MPI_Allreduce") == {"W0.0": dict.fromkeys(BOTH, 10)}
    for profile in found:
        profile.check()


@pytest.mark.parametrize("case", ["after", "instead"])
def test_a_rank_becomes_another_program(mpi: Mpi, case: str) -> None:
    plain, under = mpi.pair(2, [mpi.compile("processes.c"), case])
    if case == "after":
        assert {plain.rc, under.rc} <= mpi.codes(6)
        assert under.lines == plain.lines == ["after"]
        assert under.open().total("MPI_Allreduce")[0] == 20
    else:
        assert under.rc in mpi.codes(plain.rc), under
        assert not under.profile.exists()


@pytest.mark.parametrize("scope", ["local", "global"])
def test_an_mpi_library_that_is_only_loaded_by_hand(mpi: Mpi, scope: str) -> None:
    """A documented limit: `dlsym` on the handle of the MPI library goes past us."""
    library = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[mpi.name]
    plain, under = mpi.pair(2, [sys.executable, PROGRAMS / "dlopened.py", library, scope])
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout) == (0, "sum 2\n")
    assert not under.profile.exists(), "counted by now? then say so in the documentation"


@pytest.mark.parametrize("scope", ["local", "global", "deep"])
def test_a_program_that_loads_one_with_mpi(mpi: Mpi, scope: str, tmp_path: Path) -> None:
    """As an interpreter loads its extensions; afterwards it is unloaded, and the MPI library with it."""
    extension = mpi.compile("listing1.c", flags=("-shared", "-fPIC", "-Dmain=program"))
    loader = tmp_path / "loader"
    subprocess.run(
        ["cc", "-O1", "-o", str(loader), str(PROGRAMS / "loader.c"), "-ldl"], check=True, timeout=60
    )
    under = mpi.run(2, [loader, extension, scope])
    assert (under.rc, under.stdout) == (0, "160\n"), under
    if scope == "deep":  # RTLD_DEEPBIND: its own libraries come before us
        assert not under.profile.exists(), "counted by now? then say so in the documentation"
    else:
        under.open().check()
        assert under.open().calls("MPI_Allreduce")["W0.0"] == dict.fromkeys(BOTH, 30)


def test_plugins_that_are_unloaded_before_the_end(mpi: Mpi) -> None:
    """Their calls are kept, and have a name; plugins that lie at one address, one after another, share the first's."""
    plugins = [mpi.compile("plugin.c", flags=("-shared", "-fPIC", f"-DTIMES={times}")) for times in (3, 5)]
    profile = same(*mpi.pair(2, [mpi.compile("plugins.c", None, "-ldl"), *plugins, *plugins]))
    assert profile.calls("MPI_Allreduce") == {"W0.0": dict.fromkeys(BOTH, 16)}
    by_module = profile.rows(
        "SELECT s.module, SUM(x.calls) AS calls FROM cell x JOIN key k ON k.id = x.key JOIN op o ON o.id = k.op "
        "JOIN callsite s ON s.id = k.callsite WHERE o.name = 'MPI_Allreduce' GROUP BY 1"
    )
    assert {row["module"] for row in by_module} <= {str(plugin) for plugin in plugins}, by_module
    assert sum(row["calls"] for row in by_module) == 2 * 2 * (3 + 5)


def test_a_program_with_an_sqlite_of_its_own(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("sqlite_user.c", None, "-l:libsqlite3.so.0")])
    profile = same(plain, under)
    assert [line.rpartition(",")[0] for line in plain.lines] == [
        f"rank {rank}: 21 rows, 20 early, 0 bytes left, 0" for rank in BOTH
    ]
    assert profile.calls("MPI_Allreduce") == {"W0.0": dict.fromkeys(BOTH, 20)}


def test_a_program_that_has_all_our_names(mpi: Mpi, tmp_path: Path) -> None:
    """Functions named like each of ours and SQLite's, visible to all: were one called, the program would end."""
    symbols = subprocess.run(["nm", str(mpi.library)], capture_output=True, text=True, check=True).stdout
    names = sorted(
        {
            line.split()[-1]
            for line in symbols.splitlines()
            if line.split()[-2] == "t" and any(part in line for part in ("sqlite3", "commlens"))
        }
    )
    names = [name for name in names if "." not in name]
    assert len([name for name in names if name.startswith("sqlite3_")]) > 100
    assert len([name for name in names if "commlens" in name]) > 100
    source = tmp_path / "names.c"
    source.write_text(
        "#include <stdlib.h>\n"
        + "".join(
            f'void f{i}(void) __asm__("{name}");\nvoid f{i}(void) {{ abort(); }}\n'
            for i, name in enumerate(names)
        )
    )
    program = mpi.compile("listing1.c", None, source, flags=("-rdynamic",))
    for mode in ("run", "preload"):
        result = mpi.run(2, [program], mode=mode)
        assert (result.rc, result.stdout) == (0, "160\n"), result
        assert result.open().calls("MPI_Allreduce")["W0.0"] == {0: 30, 1: 30}


def test_a_program_with_a_libstdcxx_of_its_own(mpi: Mpi) -> None:
    """Static, and all its names visible; exceptions fly through us all the same."""
    flags = ("-static-libstdc++", "-static-libgcc", "-rdynamic")
    profile = same(*mpi.pair(2, [mpi.compile("throws.cpp", flags=flags)]))
    assert profile.calls("MPI_Allreduce") == {"d0.1": {0: 5, 1: 5}}
    # and one that has the tour of C++ in it
    tour = mpi.run(4, [mpi.compile("tour.cpp", flags=flags)])
    assert (tour.rc, tour.stdout) == (0, "done 2\n"), tour
    assert tour.open().shape() == mpi.run(4, [mpi.compile("tour.cpp")]).open().shape()
