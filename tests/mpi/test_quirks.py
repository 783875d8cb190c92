# SPDX-License-Identifier: Apache-2.0
"""Programs that live in places a profiler may step on run as if we were not there, and are measured."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from harness import SANITIZER, Mpi
from launches import called_unloaded
from profile_rows import Profile


def run(mpi: Mpi, case: str, n: int = 2) -> Profile:
    """Run one case of programs/quirks.c, compare with a run without us, and open the profile."""
    plain, under = mpi.pair(n, [mpi.compile("quirks.c", None, "-lm"), case])
    mpi.skip_if_broken(plain)
    assert plain.rc == 0, plain
    assert (under.rc, under.lines) == (plain.rc, plain.lines), under
    profile = under.open()
    profile.check()
    assert profile.meta()["ranks_collected"] == str(n)
    return profile


def is_told_by_the_launcher(mpi: Mpi) -> bool:
    """Return whether MPI_INFO_ENV describes what the launcher started: commlens-run, not the program."""
    return mpi.family == "openmpi" and mpi.major >= 5


def test_callbacks_of_finalize_that_communicate(mpi: Mpi) -> None:
    """They come before we wait for the other ranks; calls in them are inside MPI_Finalize."""
    profile = run(mpi, "goodbye")
    assert profile.calls("MPI_Recv") == {"W0.0": {1: 1}}
    assert profile.calls("MPI_Send") == {}


def test_no_communicator_is_left(mpi: Mpi) -> None:
    """We collect without one, and our failure to make one does not reach the application's error handler."""
    if mpi.family == "openmpi":
        pytest.skip("Open MPI takes its 2^16 communicators half a minute")
    profile = run(mpi, "used_up")
    assert profile.total("MPI_Comm_dup")[0] > 2 * 1000


def test_no_floating_point_exception_is_raised(mpi: Mpi) -> None:
    assert run(mpi, "exceptions").total("MPI_Allreduce")[0] == 200


@pytest.mark.skipif(SANITIZER is not None, reason="the sanitizers read all of the program's data")
def test_data_that_nobody_may_read(mpi: Mpi) -> None:
    assert run(mpi, "locked").total("MPI_Barrier")[0] == 2


@pytest.mark.skipif(SANITIZER is not None, reason="the sanitizers want to know of other stacks")
def test_a_fiber_that_is_left_for_good(mpi: Mpi) -> None:
    assert run(mpi, "fibers", 1).total("MPI_Allreduce")[0] == 1


def test_what_the_program_is_told_about_itself(mpi: Mpi) -> None:
    if is_told_by_the_launcher(mpi):
        pytest.skip("Open MPI 5 takes it from its launcher (docs/guide/libraries.md)")
    run(mpi, "told", 1)


def test_a_file_in_the_place_of_stderr(mpi: Mpi, tmp_path: Path) -> None:
    """Open MPI, too, writes about its own fault into that file, so the harness does not see it and repeat the launch."""
    data = tmp_path / "data"
    for _ in range(3):
        result = mpi.run(1, [mpi.compile("quirks.c", None, "-lm"), "closes", data])
        if not called_unloaded(result.rc, data.read_text()):
            break
    assert result.rc == 0, (result, data.read_text())
    result.open().check()
    assert data.read_text() == "data\n", "none of our lines"


def test_functions_of_the_program_that_are_called_like_those_of_libc(mpi: Mpi) -> None:
    program = mpi.compile("own_names.c", flags=["-fno-builtin", "-w"])
    plain, under = mpi.pair(2, [program])
    mpi.skip_if_broken(plain)
    assert plain.rc == 0, plain
    assert (under.rc, under.lines) == (plain.rc, plain.lines), under
    assert under.open().total("MPI_Barrier")[0] == 2


def test_a_library_without_mpi_whose_functions_are_called_like_those_of_fortran(
    mpi: Mpi, tmp_path: Path
) -> None:
    """They are passed on with all their arguments, those in vector registers, too."""
    (tmp_path / "lib.c").write_text(
        "double mpi_reduce(double a, double b) { return a + b; }\ndouble mpi_bcast(double a) { return 2 * a; }\n"
    )
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\ndouble mpi_reduce(double, double), mpi_bcast(double);\n"
        'int main(void) { printf("%g %g\\n", mpi_reduce(1.5, 2.5), mpi_bcast(21)); return 0; }\n'
    )
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "lib.c", "-o", "libserial.so"], cwd=tmp_path, check=True, timeout=60
    )
    subprocess.run(
        ["gcc", "main.c", "-o", "main", "-L.", "-lserial", f"-Wl,-rpath,{tmp_path}"],
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    result = mpi.run(1, [tmp_path / "main"])
    assert (result.rc, result.stdout) == (0, "4 42\n"), result


def test_a_program_in_the_current_directory(mpi: Mpi, tmp_path: Path) -> None:
    """Open MPI's launcher finds it there without a path; so do we."""
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI's launcher finds programs there")
    (tmp_path / "quirks").symlink_to(mpi.compile("quirks.c", None, "-lm"))
    result = mpi.run(1, ["quirks", "told"], cwd=tmp_path)
    told = ["argv: told", "command: quirks"]
    if is_told_by_the_launcher(mpi):
        told = ["argv: quirks told", f"command: {mpi.runner}"]
    assert (result.rc, result.lines[:2]) == (0, told), result


def test_libraries_are_loaded_while_mpi_is_called(mpi: Mpi) -> None:
    """The first call of a procedure does not wait for a dlopen under way, and keeps what dlerror has to tell."""
    plugin = mpi.compile("loads.c", flags=["-DPLUGIN", "-pthread"], shared=True)
    plain, under = mpi.pair(2, [mpi.compile("loads.c", None, "-ldl"), plugin])
    mpi.skip_if_broken(plain)
    assert plain.rc == 0, plain
    assert "no/such/plugin" in plain.stdout
    assert (under.rc, under.lines) == (plain.rc, plain.lines), under
    profile = under.open()
    assert profile.total("MPI_Isend") == (2, 16, 0)
    assert profile.total("MPI_Irecv") == (2, 0, 16)
