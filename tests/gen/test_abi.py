# SPDX-License-Identifier: Apache-2.0
"""gen/abi.py: every interface gets every fact; tests/mpi/test_interfaces.py compares them with the libraries."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import abi
import output
from policy import Policy, SpecError


@pytest.fixture
def abi_spec() -> dict[str, Any]:
    """Return spec/abi.toml, for a test to spoil."""
    return output.read_toml("spec/abi.toml")


@pytest.mark.parametrize("table", ["integers", "addresses", "handles"])
def test_a_value_that_is_missing_or_too_many_is_refused(abi_spec: dict[str, Any], table: str) -> None:
    name, values = next(iter(abi_spec[table].items()))
    values.append(1)
    with pytest.raises(SpecError, match=f"{name} in .{table}. has {len(values)} values"):
        abi.check(abi_spec)


@pytest.mark.parametrize("family", ["openmpi", "mpich", "abi"])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_header_stands_by_itself(tmp_path: Path, family: str, language: str) -> None:
    source = tmp_path / "header"
    source.write_text("#include <mpi.h>\n")
    compiler = shutil.which("cc")
    assert compiler is not None
    include = [f"-I{output.ROOT}", f"-I{output.ROOT}/generated/mpi/{family}"]
    command = [compiler, "-Wall", "-Werror", *include, "-fsyntax-only", "-x", language, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_procedure_that_is_measured_is_declared(policy: dict[str, Policy]) -> None:
    assert {name for name, entry in policy.items() if entry.wrapped} <= set(abi.prototypes())
