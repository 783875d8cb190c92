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
    assert "no mpirun, mpiexec or srun in PATH: put the launcher behind --" in said()
