# SPDX-License-Identifier: Apache-2.0
"""The variables in spec/switches.toml are in the installed libraries, with the defaults that it tells."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import Mpi

from commlens.tune._switches import Switch
from commlens.tune.switches import switches_of

UCX = "UCX_RNDV_THRESH"


def told(mpi: Mpi, *command: str) -> str:
    """Return what a command prints in the environment of an MPI library."""
    environment = {**os.environ, **mpi.environment}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def switches(mpi: Mpi) -> list[Switch]:
    """Return the switches of the release of an MPI library."""
    heads = {"openmpi": f"Open MPI v{mpi.release}", "mpich": f"MPICH Version: {mpi.release}"}
    return switches_of(heads[mpi.family])


def test_open_mpi_has_the_variables_with_their_defaults(mpi: Mpi) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI has ompi_info")
    launcher = shutil.which(mpi.launcher)
    assert launcher is not None
    rows = [one for one in switches(mpi) if one.variable != UCX]
    assert len(rows) == 3
    for one in rows:
        framework, component = one.variable.split("_")[:2]
        info = str(Path(launcher).with_name("ompi_info"))
        listed = told(mpi, info, "--param", framework, component, "--level", "9")
        found = re.search(rf'"{one.variable}" \(current value: "(\d+)", data source: default', listed)
        assert found is not None, one.variable
        assert found[1] == one.default, one.variable


def test_mpich_has_the_variables_with_their_defaults(mpi: Mpi) -> None:
    if mpi.name not in ("mpich", "mpich5"):
        pytest.skip("only MPICH has these control variables")
    done = mpi.run(1, [mpi.compile("cvars.c")], mode="off")
    assert done.rc == 0, done
    values = dict(line.split() for line in done.lines)
    rows = [one for one in switches(mpi) if one.variable != UCX]
    assert len(rows) == 3
    assert {one.variable: values.get(one.variable) for one in rows} == {
        one.variable: one.default for one in rows
    }


def test_ucx_has_its_variable(mpi: Mpi) -> None:
    path = re.search(r"libucp\.so\S* => (/\S+)", told(mpi, "ldd", str(mpi.compile("cvars.c"))))
    if path is None:
        pytest.skip("this library does not name UCX as one that it needs")
    assert UCX in {one.variable for one in switches(mpi)}
    texts = Path(path[1]).read_bytes().split(b"\0")
    assert UCX.removeprefix("UCX_").encode() in texts
    assert b"auto" in texts
