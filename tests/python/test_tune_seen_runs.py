# SPDX-License-Identifier: Apache-2.0
"""The run that shows which algorithms ran: its profile is kept, but not that of an interrupted one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commlens.base.errors import CommlensError
from commlens.tune import seen


def test_an_interrupted_run_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run is stopped when it has written a profile, the second one ends, and the third is not needed."""
    outputs: list[Path] = []

    def run_once(tool: Any, *_: object) -> None:
        output = Path(tool.variables["COMMLENS_OUTPUT"].replace("%%", "%"))
        outputs.append(output)
        assert not output.exists()
        output.write_text(f"run {len(outputs)}", encoding="ascii")
        if len(outputs) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(seen, "run_once", run_once)
    monkeypatch.setattr(seen, "find_stopwatch", lambda: Path("stopwatch"))
    folder = tmp_path / "100 %d"
    with pytest.raises(KeyboardInterrupt):
        seen.run(["true"], folder, "with", {})
    path = seen.run(["true"], folder, "with", {})
    assert Path(path).read_text(encoding="ascii") == "run 2"
    assert seen.run(["true"], folder, "with", {}) == path
    assert len(outputs) == 2
    assert [one.name for one in (folder / seen.INSIDE).iterdir()] == ["with.db"]


def test_a_run_without_a_profile_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "run_once", lambda *_: None)
    monkeypatch.setattr(seen, "find_stopwatch", lambda: Path("stopwatch"))
    with pytest.raises(CommlensError, match="the run wrote no profile"):
        seen.run(["true"], tmp_path, "with", {})
