# SPDX-License-Identifier: Apache-2.0
"""Empty environments into which the packages of dist/ are installed."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
LIBRARY = "commlens-*-py3-none-manylinux_2_28_x86_64.whl"
LIBRARY_FOR_AARCH64 = LIBRARY.replace("x86_64", "aarch64")
READER = "commlens-*-py3-none-any.whl"
SOURCE = "commlens-*.tar.gz"
# Variables that would change what Python, the launchers and commlens do.
OF_OTHERS = ("PYTHON", "COMMLENS", "OMPI_", "PMI", "LD_")
# What a machine without a tuned network, and root, needs of Open MPI.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,sm",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}


def package(pattern: str) -> Path:
    """Return the one package of this kind that `make wheels` has made."""
    (found,) = DIST.glob(pattern)
    return found


@dataclass
class Environment:
    """A virtual environment; its commands see no other one, and nothing of this checkout."""

    folder: Path

    def run(self, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder above the environment; it has to succeed."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_OTHERS)}
        path = f"{self.folder}/bin:/usr/bin:/bin"
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder.parent,
            env={**kept, "PATH": path, "VIRTUAL_ENV": str(self.folder), **OPEN_MPI, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, f"{done.args}\n{done.stdout}\n{done.stderr}"
        return done

    def install(self, *packages: str | Path) -> None:
        """Install packages, those without a path from PyPI."""
        self.run("pip", "install", "--quiet", "--disable-pip-version-check", *packages)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Return an empty virtual environment."""
    made = Environment(tmp_path / "environment")
    subprocess.run(["python3", "-m", "venv", made.folder], check=True)
    return made
