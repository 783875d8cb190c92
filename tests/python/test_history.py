# SPDX-License-Identifier: Apache-2.0
"""`commlens history`: which snapshots belong to a profile, and what it shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder, execute
from conftest import Run

from commlens.base.errors import CommlensError
from commlens.jobs import history
from commlens.jobs.arenas import Arena
from commlens.jobs.development import Subject, draw, read_development
from commlens.jobs.history import History, Snapshot, of_start
from commlens.render.table import Cells

BEGAN = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:00:01Z"


def arena(rank: int, folder: str = "commlens-arenas-a", **more: Any) -> Arena:
    """Return the last snapshot of a process of four."""
    facts: dict[str, Any] = {
        "file": Path(folder) / "n1.history",
        "device": 1,
        "inode": 1,
        "bytes": 4096,
        "pid": 100 + rank,
        "liveness": "gone",
        "is_of_this_boot": True,
        "error": "",
        "notice": "",
        "state": "finalized",
        "rank": rank,
        "size": 4,
        "launch": "aa",
        "node": "n1",
        "program": "app",
        "start_time": BEGAN,
        "output": "app.db",
        "app_ns": 1000,
    }
    return Arena(**{**facts, **more})


def test_the_snapshots_of_a_run_without_processes_are_those_that_began_with_it() -> None:
    mine = [arena(0), arena(1, start_time=LATER)]
    on_another_node = arena(2, launch="bb", node="n2", file=Path("commlens-arenas-a/n2.history"))
    again = arena(0, "commlens-arenas-b", start_time=LATER)
    larger = arena(0, "commlens-arenas-c", launch="cc", size=8)
    assert of_start([*mine, again, larger, on_another_node], 4, BEGAN) == [*mine, on_another_node]
    assert of_start([*mine, arena(0, "commlens-arenas-d", launch="dd")], 4, BEGAN) == []
    assert of_start(mine, 4, "") == of_start(mine[1:], 4, LATER) == []


@pytest.mark.parametrize(
    ("others", "complaint"),
    [
        ([], ""),
        (
            [arena(0, "commlens-arenas-d", launch="dd")],
            "has summary detail: name its folder commlens-arenas-*",
        ),
    ],
)
def test_the_snapshots_of_a_profile_of_summary_detail_are_found(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, others: list[Arena], complaint: str
) -> None:
    path = ProfileBuilder(ranks=4, meta={"start_time": BEGAN, "detail": "summary"}).write(tmp_path / "job.db")
    execute(path, "DELETE FROM rank")
    chosen: list[Path] = []

    def stop(files: Sequence[Path]) -> History:
        chosen.extend(files)
        raise CommlensError("found them")

    monkeypatch.setattr(history, "_histories", lambda _: [])
    monkeypatch.setattr(history, "read", lambda _: [arena(0), arena(1), *others])
    monkeypatch.setattr(history, "_history", stop)
    done = run("history", path)
    assert done.exit_code == 2
    assert (complaint or "found them") in " ".join(done.stderr.split())
    assert chosen == ([] if others else [Path("commlens-arenas-a/n1.history")])


@pytest.mark.parametrize(
    "options",
    [
        ["--comm", "W0.0"],
        ["--comm-size", "4"],
        ["--op", "Send"],
        ["--region", "solve"],
        ["--metric", "memory"],
        ["--format", "csv"],
    ],
    ids=lambda options: options[0],
)
def test_a_profile_of_a_snapshot_has_no_selection(run: Run, tmp_path: Path, options: list[str]) -> None:
    done = run("history", "job.db", "--at", "1", "-o", tmp_path / "new.db", *options)
    assert done.exit_code == 2
    assert "omit --comm, --comm-size, --op, --region, --metric and --format" in " ".join(done.stderr.split())


@pytest.mark.parametrize(("threads", "share"), [(1, "80.0 %"), (2, "-")])
def test_the_share_in_mpi_is_unknown_if_threads_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, share: str
) -> None:
    build = ProfileBuilder(ranks=4, app_ns=10**9)
    for rank in range(4):
        build.count(1, "MPI_Barrier", rank, 10, 8 * 10**8)
    path = build.write(tmp_path / "job.db")
    execute(path, f"UPDATE rank SET threads = {threads} WHERE rank = 3")

    def write(_: History, __: Sequence[Snapshot], output: Path) -> Path:
        output.write_bytes(path.read_bytes())
        return output

    monkeypatch.setattr(history, "write_profile", write)
    rows = read_development(History((path,), (Snapshot(10**9, 1.0, 4, 4096),)), Subject())
    assert (rows[0]["new_time_ns"], rows[0]["threads"]) == (32 * 10**8, threads)
    (line,) = [row.texts for row in draw(rows, Subject()).rows if isinstance(row, Cells)]
    assert line[2] == share
    assert bool(line[3]) == (share != "-")
