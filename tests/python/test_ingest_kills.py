# SPDX-License-Identifier: Apache-2.0
"""A killed ingest: nothing is lost, nothing is there twice; killed_ingest.py kills and looks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fleet_cases import content, write_jobs

from commlens.fleet import dataset as dataset_module
from commlens.fleet.dataset import Dataset
from commlens.fleet.files import put_together
from commlens.fleet.log import DataFile

HERE = Path(__file__).resolve().parent


def killed(tmp_path: Path, *how: object) -> list[str]:
    """Kill writers; return a line for each."""
    write_jobs(tmp_path / "jobs", range(0, 9, 3))
    (tmp_path / "jobs" / "damaged.db").write_bytes(b"")
    command = [sys.executable, HERE / "killed_ingest.py", tmp_path / "jobs", tmp_path, *map(str, how)]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_writer_that_is_killed_at_a_change_of_a_file_leaves_a_whole_dataset(tmp_path: Path) -> None:
    assert len(killed(tmp_path, "points", 3, 23)) >= 4


def test_a_writer_whose_disk_is_full_from_a_change_on_loses_nothing_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    assert len(killed(tmp_path, "full", 9, 19)) >= 3


def test_two_writers_that_put_the_same_files_together_lose_and_double_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has the groups of two parts when the other has put both together: the second group is then no longer there."""
    monkeypatch.setattr(dataset_module, "TOGETHER", 2)
    one, other = Dataset(tmp_path / "set"), Dataset(tmp_path / "set")
    for number in range(2):
        rows = [(10 * number + i, c, "2026-01", None, "1", "", "", "", "", 1, 1) for i, c in enumerate("ab")]
        one.add({"batch_job": rows})
    before = content(tmp_path / "set")

    def late(root: Path, group: list[DataFile]) -> DataFile:
        monkeypatch.setattr(dataset_module, "put_together", put_together)
        assert other.compact() == 4
        return put_together(root, group)

    monkeypatch.setattr(dataset_module, "put_together", late)
    assert one.compact() == 0
    assert content(tmp_path / "set") == before
    assert {path.name for path in (tmp_path / "set").glob("batch_job/*/*/*")} == {
        Path(path).name for path in (*one.state.files, *one.state.removed)
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "fewest"),
    [(("points", 1, 1), 160), (("full", 1, 1), 60), (("random", 200, 48), 100)],
    ids=["every change", "full at every change", "200 moments"],
)
def test_writers_that_are_killed_leave_a_whole_dataset(
    how: tuple[str, int, int], fewest: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--every-case"):
        pytest.skip("takes minutes: --every-case")
    assert len(killed(tmp_path, *how)) >= fewest
