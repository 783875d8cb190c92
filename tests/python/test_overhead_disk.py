# SPDX-License-Identifier: Apache-2.0
"""`commlens overhead` on a disk that becomes full while it measures."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Run as Command
from test_overhead import APPLICATION, LAUNCH, workplace

from commlens.overhead import raw

__all__ = ["workplace"]  # a fixture


def test_a_disk_that_is_full_after_some_rounds_keeps_their_runs(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In round 5, no folder can be created any more; the comparison of the rounds before it is shown and written."""
    real = Path.mkdir

    def mkdir(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if path.parent.name.startswith("5-"):
            monkeypatch.setattr(Path, "open", refused)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        real(path, mode, parents, exist_ok)

    def refused(path: Path, *arguments: Any, **more: Any) -> Any:
        if path.name == "room":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real_open(path, *arguments, **more)

    real_open = Path.open
    monkeypatch.setattr(Path, "mkdir", mkdir)
    done = run(
        "overhead",
        "--runs",
        6,
        "--tool",
        "t=libtool.so",
        "--to",
        "raw.csv",
        "--to",
        "cost.json",
        "--format",
        "json",
        *LAUNCH,
    )
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith(
        f"commlens: {Path.cwd()}: disk full (No space left on device)"
    )
    assert {tool["tool"]: tool["runs"] for tool in json.loads(done.stdout)["tools"]} == {
        "baseline": 4,
        "t": 4,
    }
    assert len(raw.read(Path("raw.csv"))) == 2 + 4 * 2
    assert Path("cost.json").read_text() == done.stdout
    assert not list(Path.cwd().glob(".commlens-*"))


def test_a_tool_that_finds_no_room_for_its_output_is_not_measured_on(run: Command) -> None:
    """It wrote a file in the rounds before; what its run costs without it is no answer."""
    Path("app").write_text(
        APPLICATION.replace(
            'if "WRITES" in os.environ', 'if "WRITES" in os.environ and "/4-" not in str(folder)'
        )
    )
    done = run("overhead", "--runs", 6, "--tool", "t=libtool.so,WRITES={out}", *LAUNCH)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == (
        f"commlens: t, round 4: the tool wrote no file, other than before. Is there room for its output in {Path.cwd()}?"
    )
