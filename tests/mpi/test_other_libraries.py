# SPDX-License-Identifier: Apache-2.0
"""MPI libraries that are not here, by what is documented of them: names of files, version texts, variables of launchers.

A library with the interface of Open MPI or MPICH is played by a small library in front of the real one, with the other's
names. One with an interface of its own is a fake of a few procedures, for one process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import BUILD, PROGRAMS, Mpi

RUNNER = BUILD / "bin" / "commlens-run"
CRAY = "MPI VERSION    : CRAY MPICH version 8.1.21 (ANL base 3.4a2)\\nMPI BUILD INFO : Built Fri Oct 18 12:00:00 2019\\n"
LIKE_MPICH = {
    "libmpi_gnu_123.so.12": CRAY,
    "libmpi.so.12": "MVAPICH2 Version      :\\t2.3.6\\nMVAPICH2 Release date :\\tMon March 29 22:00:00 EST 2021\\n",
}
LIKE_OPEN_MPI = {
    "libmpi.so.0": "FUJITSU MPI Library 4.0.0 (4.0.1fj4.0.0)",
    "libmpi_ibm.so.3": "Open MPI v3.1.0, package: IBM Spectrum MPI, ident: 10.03.01.00rtm0",
}
OTHERS = {
    # file: version text, other variables, how commlens names it
    "libmpi.so": ("HPE MPT 2.23  08/26/20 02:54:49-root", {}, "HPE MPT 2.23  08/26/20 02:54:49-root"),
    "libmuk.so": ("Open MPI v4.1.4", {}, "Mukautuva, which translates calls to another MPI library"),
    "libmpitrampoline.so.6": (
        "MPIwrapper Version:\\t2.2.2",
        {},
        "MPItrampoline, which translates calls to another MPI library",
    ),
    "libwi4mpi_OMPI_INTEL.so": (
        "Open MPI v4.1.4",
        {},
        "Wi4MPI, which translates calls to another MPI library",
    ),
    "libmpi.so.7": (
        "Open MPI v4.1.4",
        {"WI4MPI_TO": "INTEL"},
        "Wi4MPI, which translates calls to another MPI library",
    ),
}


def library(folder: Path, soname: str, version: str, *behind: str, flags: tuple[str, ...] = ()) -> Path:
    """Build a library with this name and version text, perhaps in front of others."""
    target = folder / soname
    source = PROGRAMS / "other_library.c"
    command: list[str | Path] = [
        "gcc",
        "-shared",
        "-fPIC",
        "-Wl,--no-as-needed",
        f'-DVERSION="{version}"',
        *flags,
        source,
    ]
    subprocess.run([*command, "-o", target, f"-Wl,-soname,{soname}", *behind], check=True)
    return target


def linked_with(mpi: Mpi, folder: Path, chosen: Path) -> Path:
    """Build a program that needs the chosen library and no other one with MPI."""
    (folder / "names").mkdir()
    names = library(folder / "names", chosen.name, "", flags=("-DNAMES",))
    compiled: list[str | Path] = [
        mpi.compilers["c"],
        "-fPIC",
        "-c",
        PROGRAMS / "site_job.c",
        "-o",
        folder / "job.o",
    ]
    subprocess.run(compiled, check=True)
    subprocess.run(["gcc", folder / "job.o", "-o", folder / "job", names, f"-Wl,-rpath,{folder}"], check=True)
    return folder / "job"


@pytest.mark.parametrize("number", [0, 1])
def test_a_library_with_a_known_interface_is_measured(mpi: Mpi, tmp_path: Path, number: int) -> None:
    """commlens-run knows it by the name that the program needs; no launcher variable is of use for singletons."""
    real, known = {
        "openmpi": ("-lmpi", LIKE_OPEN_MPI),
        "mpich": ("-lmpich", LIKE_MPICH),
    }[mpi.name]
    soname, version = list(known.items())[number]
    folders = {"openmpi": "openmpi/lib", "mpich": ""}[mpi.name]
    behind = [f"-L/usr/lib/{os.uname().machine}-linux-gnu/{folders}", real]
    program = linked_with(mpi, tmp_path, library(tmp_path, soname, version, *behind))
    needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    assert soname in needed
    assert needed.count("libmpi") == 1
    result = mpi.run(2, [program, "0"])
    assert (result.rc, result.stdout) == (0, "sum 1\n"), result
    with_library = result.open()
    with_library.check()
    stored = with_library.rows("SELECT value FROM meta WHERE key = 'mpi_library'")[0]["value"]
    assert stored == " ".join(version.encode().decode("unicode_escape").split("\n")[0].split())


@pytest.mark.parametrize("soname", OTHERS)
def test_a_library_with_an_interface_of_its_own_is_named_and_left_alone(tmp_path: Path, soname: str) -> None:
    version, variables, name = OTHERS[soname]
    mpi = Mpi("mpich", tmp_path)  # its programs need no data of the library
    flags: tuple[str, ...] = ("-DFAKE",)
    # Behind it is a real library, as behind a translator: its symbols must not make commlens take it for that.
    real = ["-L/usr/lib/" + os.uname().machine + "-linux-gnu/openmpi/lib", "-lmpi"]
    chosen = library(tmp_path, soname, version, *(real if "which translates" in name else []), flags=flags)
    program = linked_with(mpi, tmp_path, chosen)
    for family, title in (("openmpi", "Open MPI"), ("mpich", "MPICH")):
        env = {
            "PATH": os.environ["PATH"],
            "COMMLENS_MPI": family,
            "COMMLENS_OUTPUT": str(tmp_path / "x.db"),
            **variables,
        }
        done = subprocess.run(
            [RUNNER, program], env=env, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("fake MPI_Init\nsum ")
        assert done.stderr == (
            f"commlens: the application uses {name}, but this libcommlens.so is "
            f"built for {title}: running unprofiled\n"
        )
    assert not (tmp_path / "x.db").exists()


@pytest.mark.parametrize(
    ("variable", "family"),
    [
        ("PALS_RANKID", "mpich"),
        ("MV2_COMM_WORLD_RANK", "mpich"),
        ("MVP_COMM_WORLD_RANK", "mpich"),
        ("PMI_RANK", "mpich"),
        ("PMIX_RANK", "openmpi"),
        ("OMPI_COMM_WORLD_RANK", "openmpi"),
    ],
)
def test_the_launcher_chooses_for_a_program_that_loads_mpi_later(variable: str, family: str) -> None:
    env = {"PATH": os.environ["PATH"], variable: "0"}
    done = subprocess.run(
        [RUNNER, shutil.which("env") or ""], env=env, capture_output=True, text=True, check=True
    )
    assert f"LD_PRELOAD={BUILD / 'lib' / family / 'libcommlens.so'}\n" in done.stdout
