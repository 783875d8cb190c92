# SPDX-License-Identifier: Apache-2.0
"""What is committed is what the specifications say, and a difference is seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import output

GENERATORS = sorted(
    path.name for path in (output.ROOT / "gen").glob("*.py") if "__main__" in path.read_text(encoding="utf-8")
)


def test_the_generators_are_found() -> None:
    assert {"calls.py", "options.py", "schema.py"} <= set(GENERATORS)


@pytest.mark.parametrize("generator", GENERATORS)
def test_generated_files_are_up_to_date(generator: str) -> None:
    script = output.ROOT / "gen" / generator
    result = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_stale_or_missing_file_is_named_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "ROOT", tmp_path)
    (tmp_path / "same").write_text("text")
    (tmp_path / "stale").write_text("old text")
    monkeypatch.setattr(sys, "argv", ["gen", "--check"])
    assert output.main({"same": "text", "stale": "text", "new/file": "text"}) == 1
    said = capsys.readouterr().err
    assert "stale is not what its specification says: run 'make gen'" in said
    assert "new/file is not" in said
    assert "same" not in said
    assert (tmp_path / "stale").read_text() == "old text"
    assert not (tmp_path / "new").exists()


def test_files_are_written_once_and_then_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["gen"])
    assert output.main({"new/file": "text"}) == 0
    written = (tmp_path / "new" / "file").stat().st_mtime_ns
    assert output.main({"new/file": "text"}) == 0
    assert (tmp_path / "new" / "file").stat().st_mtime_ns == written
    monkeypatch.setattr(sys, "argv", ["gen", "--check"])
    assert output.main({"new/file": "text"}) == 0


def test_an_unknown_argument_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gen", "--chekc"])
    assert output.main({}) == 2
