# SPDX-License-Identifier: Apache-2.0
"""The module files of an installation, loaded by the programs with which clusters load them.

Debian's packages of the two cannot be installed at the same time, so that one of them is missing on most machines;
`make setup` installs Environment Modules where both are.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from machine import without_make

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "Lmod": os.environ.get("LMOD_CMD", "/usr/share/lmod/lmod/libexec/lmod"),
    "Environment Modules": "modulecmd",
}
PROGRAM = """
#include <mpi.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install all that needs no Python environment."""
    folder = tmp_path_factory.mktemp("modules")
    subprocess.run(
        ["cmake", "--install", ROOT / "build/release", "--prefix", folder], check=True, capture_output=True
    )
    return folder


@pytest.fixture(params=COMMANDS)
def module(request: pytest.FixtureRequest, prefix: Path) -> dict[str, str]:
    """Return the environment of a shell in which `module` is a function, as in a login shell of a cluster."""
    command = shutil.which(COMMANDS[request.param])
    if command is None:
        if not any(map(shutil.which, COMMANDS.values())):
            pytest.fail("missing: modulecmd; install environment-modules, or run `make setup`", pytrace=False)
        pytest.skip(f"{request.param} is not installed, the other one is")
    kept = {
        name: value
        for name, value in without_make().items()
        if not name.startswith(("COMMLENS", "LD_", "LMOD", "MODULE", "PYTHONPATH", "_ModuleTable"))
    }
    modulepath = str(prefix / "share/commlens/modulefiles")
    return {
        **kept,
        "BASH_FUNC_module%%": f'() {{ eval "$({command} bash "$@")"; }}',
        "MODULEPATH": modulepath,
    }


def bash(environment: dict[str, str], script: str, folder: Path) -> list[str]:
    """Run a script, which has to succeed, and return its lines."""
    done = subprocess.run(
        ["bash", "-euc", f". tools/openmpi.sh; cd '{folder}'; {script}"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.replace("Loading commlens", "")) == (0, done.stderr), done
    return done.stdout.splitlines()


def test_load_and_unload(module: dict[str, str], prefix: Path, tmp_path: Path) -> None:
    shown = 'command -v commlens-run || echo none; echo "${PYTHONPATH:-none}"; echo "${LD_PRELOAD:-none}"'
    before, loaded, unloaded = (
        f"{step}; {shown}" for step in ("true", "module load commlens", "module unload commlens")
    )
    lines = bash(module, f"{before}; {loaded}; {unloaded}", tmp_path)
    assert lines[3:] == [
        str(prefix / "bin/commlens-run"),
        str(prefix / "share/commlens/python"),
        "none",
        *lines[:3],
    ]


@pytest.mark.parametrize("before", ["", "/opt/other/man:"])
def test_manual_pages_are_found_beside_those_of_the_system(
    module: dict[str, str], prefix: Path, tmp_path: Path, before: str
) -> None:
    environment = {name: value for name, value in module.items() if name != "MANPATH"}
    if before:
        environment["MANPATH"] = before
    (usual,) = bash(environment, "manpath -q", tmp_path)
    (loaded,) = bash(environment, "module load commlens; manpath -q", tmp_path)
    assert set(loaded.split(":")) == {*usual.split(":"), str(prefix / "share/man")}


@pytest.mark.parametrize("name", ["commlens", "commlens-always"])
def test_a_job_is_measured(module: dict[str, str], name: str, tmp_path: Path) -> None:
    (tmp_path / "job.c").write_text(PROGRAM)
    runner = "commlens-run " if name == "commlens" else ""
    bash(
        {**module, "COMMLENS_OUTPUT": "job.db", "COMMLENS_QUIET": "1"},
        f"mpicc.openmpi -o job job.c; module load {name}; mpirun.openmpi -n 2 {runner}./job",
        tmp_path,
    )
    with closing(sqlite3.connect(f"file:{tmp_path}/job.db?mode=ro", uri=True)) as profile:
        calls = profile.execute("SELECT SUM(calls) FROM counter WHERE operation = 'MPI_Barrier'").fetchone()
    assert calls == (10,)
