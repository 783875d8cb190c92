# SPDX-License-Identifier: Apache-2.0
"""What `commlens self-test` says where it cannot begin."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from commlens.cli import commlens
from commlens.selftest import run


def said(*words: str) -> str:
    done = CliRunner().invoke(commlens, ["self-test", *words])
    assert done.exit_code == 2
    return done.output


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "our_runner", lambda: tmp_path / "commlens-run")
    assert "no/launcher: no such command" in said("--", "no/launcher", "-n", "2")
    assert "exists already; name a new folder" in said("--folder", str(tmp_path))
    (tmp_path / "file").touch()
    assert "cannot be made: Not a directory" in said("--folder", str(tmp_path / "file" / "folder"))
    monkeypatch.setenv("MPICC", "/no/mpicc")
    assert "/no/mpicc: no such compiler. Set MPICC" in said("--", "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no mpirun, mpiexec or srun in PATH: put the launcher after --" in said()


def test_the_mpicc_of_another_library_than_the_launchers_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Intel's MPI from PyPI has a launcher and no mpicc, and the system may have that of another library."""
    environment, system = tmp_path / "environment", tmp_path / "system"
    for path in (environment / "mpirun", system / "mpirun", system / "mpicc"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(environment / "python"))
    monkeypatch.setattr(run, "find_spec", lambda _: object())
    monkeypatch.setenv("PATH", f"{environment}:{system}")
    monkeypatch.delenv("MPICC", raising=False)
    assert run.only_python_fits("mpirun")
    assert not run.only_python_fits(str(system / "mpirun"))
    monkeypatch.setenv("MPICC", "mpicc")
    assert not run.only_python_fits("mpirun")
    monkeypatch.delenv("MPICC")
    monkeypatch.setattr(run, "find_spec", lambda _: None)
    assert not run.only_python_fits("mpirun")
    monkeypatch.setattr(run, "find_spec", lambda _: object())
    (environment / "mpicc").symlink_to(system / "mpicc")
    assert not run.only_python_fits("mpirun")
