# SPDX-License-Identifier: Apache-2.0
"""Compares the findings of `commlens doctor` on real programs with runs of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from harness import PROGRAMS, Mpi
from test_languages import mpi4py_env

TITLES = {"openmpi": "Open MPI", "mpich": "MPICH"}


def doctor(
    mpi: Mpi, *command: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Ask about a command line with launcher and commlens-run."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COMMLENS_", "LD_"))}
    arguments = ["doctor", "--", mpi.launcher, "-n", "2", mpi.runner, *command]
    return forked.run(arguments, {**environment, **(env or {})}, Path.cwd())


@pytest.mark.parametrize("source", ["tour.c", "tour.cpp", "tour.F90"])
def test_a_program_that_will_be_profiled(mpi: Mpi, source: str) -> None:
    flags = ["-cpp", "-DUSE_MPI_F08", "-fallow-argument-mismatch", "-w"] if source == "tour.F90" else []
    done = doctor(mpi, mpi.compile(source, "fortran" if flags else None, flags=flags))
    assert done.returncode == 0, done.stdout
    assert f"ok       MPI             {TITLES[mpi.name]}: /" in done.stdout
    assert f"ok       build           {mpi.library}" in done.stdout
    assert "problem" not in done.stdout


def test_mpi4py(mpi: Mpi) -> None:
    done = doctor(mpi, sys.executable, PROGRAMS / "tour.py", env=mpi4py_env(mpi))
    assert done.returncode == 0, done.stdout
    assert f"/mpi4py: {TITLES[mpi.name]} (" in done.stdout


def test_what_it_says_of_fortran_is_what_the_profile_says(mpi: Mpi) -> None:
    program = mpi.compile("attributes.F90", "fortran")
    assert "does not use the C procedures for mpi_comm_get_attr_:" in doctor(mpi, program).stdout
    unseen = mpi.run(2, [program]).open().rows("SELECT symbol FROM coverage WHERE state = 'unseen'")
    assert [row["symbol"] for row in unseen] == ["mpi_comm_get_attr_"]


def test_a_wrong_pairing_is_foretold(mpi: Mpi) -> None:
    other = {"openmpi": "mpich", "mpich": "openmpi"}[mpi.name]
    program, env = mpi.compile("tour.c"), {"COMMLENS_MPI": other}
    done = doctor(mpi, program, env=env)
    assert done.returncode == 1
    assert f"COMMLENS_MPI={other}, but the program uses {TITLES[mpi.name]}" in done.stdout
    assert not mpi.run(4, [program], env=env).profile.exists()


def test_a_preload_taken_away_is_foretold(mpi: Mpi) -> None:
    line: list[str | Path] = ["env", "-u", "LD_PRELOAD", mpi.compile("tour.c")]
    done = doctor(mpi, *line)
    assert done.returncode == 1
    assert "env -u LD_PRELOAD after commlens-run removes LD_PRELOAD" in done.stdout
    assert not mpi.run(4, line).profile.exists()


def test_the_launcher_of_another_mpi_is_said_in_one_line(mpi: Mpi, tmp_path: Path) -> None:
    """Every process is a job of one rank; the first one names the variable that says otherwise."""
    if mpi.name not in ("openmpi", "mpich"):
        pytest.skip("its launcher is one of the two that are tested")
    variable = {"openmpi": "PMI_SIZE", "mpich": "OMPI_COMM_WORLD_SIZE"}[mpi.name]  # of the other launcher
    other = Mpi({"openmpi": "mpich", "mpich": "openmpi"}[mpi.name], tmp_path)
    alone = mpi.compile("listing1.c")
    result = other.run(2, [alone])
    assert result.rc == 0, result
    said = [line for line in result.said if "profile of" not in line]
    assert said == [
        f"commlens: this process is rank 0 of 1, but {variable} says 2 processes: the launcher belongs to another MPI "
        "library"
    ]
    assert sum("profile of 1 rank in" in line for line in result.said) == 2


def test_the_right_launcher_is_not_complained_of(mpi: Mpi) -> None:
    """Not even for a job of one rank."""
    result = mpi.run(1, [mpi.compile("listing1.c")])
    assert (result.rc, len(result.said)) == (0, 1), result
    assert "profile of 1 rank in" in result.said[0]


def test_a_program_without_commlens_run_is_foretold(mpi: Mpi) -> None:
    """Alone, linked in the right order, in the wrong one, and dropped by the linker there."""
    folder = mpi.library.parent
    ours = ("-L", str(folder), "-lcommlens", f"-Wl,-rpath,{folder}")
    first = {"openmpi": "-lmpi", "mpich": "-lmpich"}.get(mpi.name) or mpi.libs[1]
    expected = {
        (
            "alone",
        ): "commlens-run is not on the command line, and the program is not linked with libcommlens.so",
        ("before", "-Wl,--no-as-needed", *ours): "",
        ("behind", "-Wl,--no-as-needed", first, *ours): "libcommlens.so is linked after libmpi",
        (
            "dropped",
            "-Wl,--as-needed",
            first,
            *ours,
        ): f"The program searches {folder} for libraries but does not need",
    }
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COMMLENS_", "LD_"))}
    for (name, *flags), text in expected.items():
        program = mpi.compile("listing1.c", "c", *flags)
        arguments = ["doctor", "--runner", mpi.runner, "--format", "csv", "--", program]
        done = forked.run(arguments, environment, Path.cwd())
        assert (done.returncode == 0) == (not text), (name, done.stdout)
        assert text in done.stdout, (name, done.stdout)
        result = mpi.run(2, [program], mode="link")
        assert result.profile.exists() == (not text), (name, result)
