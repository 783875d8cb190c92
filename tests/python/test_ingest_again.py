# SPDX-License-Identifier: Apache-2.0
"""What changed is read again: profiles that were damaged, still being copied, or folders; and datasets of older versions."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from conftest import Run
from fleet_cases import builder, content, doubled, rows_of

from commlens.fleet.dataset import Dataset
from commlens.fleet.engine import DuckEngine, Scope
from commlens.fleet.files import parquet
from commlens.fleet.log import HEAD, Log

pytestmark = pytest.mark.usefixtures("without_fsync")

TESTS = Path(__file__).resolve().parents[1]
SHARDS = TESTS / "profiles" / "version16-shards.commlens"
VERSION_1 = TESTS / "profiles" / "dataset-version1"


def write(path: Path, text: bytes, second: int) -> None:
    """Write a file that was changed at a second of 2001."""
    path.write_bytes(text)
    os.utime(path, (10**9 + second, 10**9 + second))


def refused(dataset: Path) -> list[str]:
    """Return the profiles that question refused has, and check that question missing has as many."""
    engine = DuckEngine(dataset, Scope())
    names = [Path(row[0]).name for row in engine.run("SELECT profile FROM unreadable")[1]]
    assert engine.run("SELECT COUNT(*) FROM refused")[1][0][0] >= len(names)
    return names


@pytest.mark.parametrize("is_of_equal_size", [False, True])
def test_a_refused_profile_is_tried_again_when_it_has_changed_and_not_before(
    is_of_equal_size: bool, tmp_path: Path, run: Run
) -> None:
    whole = builder(0).write(tmp_path / "whole").read_bytes()
    path = tmp_path / "job.db"
    damaged = whole[:100] + bytes(reversed(whole[100:])) if is_of_equal_size else whole[: len(whole) // 2]
    command = ("ingest", path, "--into", tmp_path / "set")
    outcomes = []
    for second, text in ((1, damaged), (1, damaged), (2, whole), (2, whole), (3, damaged)):
        write(path, text, second)
        outcomes.append((run(*command).stdout.split(": ")[1].strip(), refused(tmp_path / "set")))
    assert outcomes == [
        ("0 new, 0 known before, 1 refused", ["job.db"]),
        ("0 new, 1 known before, 0 refused", ["job.db"]),
        ("1 new, 0 known before, 0 refused", []),
        ("0 new, 1 known before, 0 refused", []),
        ("0 new, 0 known before, 1 refused", ["job.db"]),
    ]
    missing = json.loads(run("fleet", tmp_path / "set", "missing", "--format", "json").stdout)
    assert [(row["reason"].partition(":")[0], row["jobs"]) for row in missing] == [("refused", 1)]
    assert doubled(tmp_path / "set") == []


def test_a_folder_of_shards_is_known_by_its_files(tmp_path: Path, run: Run) -> None:
    """The time of the folder itself tells nothing about them."""
    folder = tmp_path / "job.commlens"
    folder.mkdir()
    whole = {path.name: path.read_bytes() for path in SHARDS.iterdir()}
    outcomes = []
    for second in (1, 1, 2, 2):
        for name, text in whole.items():
            write(folder / name, text if second == 2 else text[:100].ljust(len(text), b"x"), second)
        os.utime(folder, (10**9, 10**9))
        outcomes.append(run("ingest", folder, "--into", tmp_path / "set").stdout.split(": ")[1].strip())
    assert outcomes == [
        "0 new, 0 known before, 1 refused",
        "0 new, 1 known before, 0 refused",
        "1 new, 0 known before, 0 refused",
        "0 new, 1 known before, 0 refused",
    ]


def test_a_profile_of_which_a_part_is_missing_waits_until_it_is_no_longer_written(
    tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "job.commlens"
    shutil.copytree(SHARDS, folder)
    shard = folder / "shard.1.db"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    future = time.time() + 3600  # in place of an age that would depend on how fast this test is
    os.utime(shard, (future, future))
    command = ("ingest", folder, "--into", tmp_path / "set")
    done = run(*command)
    assert (done.exit_code, "incomplete, and changed just now" in done.stderr) == (3, True)
    assert rows_of(tmp_path / "set", "job") == rows_of(tmp_path / "set", "refused") == []
    for path in folder.iterdir():
        os.utime(path, (10**9, 10**9))
    shutil.copytree(folder, tmp_path / "old.commlens")
    shard.write_bytes(whole)
    assert run(*command).exit_code == 0
    (job,) = rows_of(tmp_path / "set", "job")
    assert job["complaints"] == 0
    assert run("ingest", tmp_path / "old.commlens", "--into", tmp_path / "other").exit_code == 0
    (job,) = rows_of(tmp_path / "other", "job")
    assert job["complaints"] > 0


def test_a_dataset_of_version_1_is_read_and_becomes_one_of_this_version_when_it_is_written(
    tmp_path: Path, run: Run
) -> None:
    """tests/profiles/dataset-version1 was written by the commlens of that version."""
    shutil.copytree(VERSION_1, tmp_path / "set")
    head = tmp_path / "set" / HEAD
    old = head.read_bytes()
    jobs = json.loads(run("fleet", tmp_path / "set", "cost", "--format", "json").stdout)
    assert [(row["code"], row["jobs"]) for row in jobs] == [("LAMMPS", 2)]
    assert refused(tmp_path / "set") == [refused(VERSION_1)[0]]
    assert head.read_bytes() == old, "reading changes nothing"
    before = content(tmp_path / "set")
    # Of these, jobs 0 and 3 are in it.
    for number in (0, 3, 6):
        builder(number).write(tmp_path / f"job{number}.db")
    done = run("ingest", tmp_path, "--into", tmp_path / "set", "--cluster", "demo")
    assert done.stdout == "profiles: 1 new, 2 known before, 0 refused\n"
    assert json.loads(head.read_text(encoding="utf-8"))["version"] == 2
    assert run("ingest", "--into", tmp_path / "set", "--compact").exit_code == 0
    after = content(tmp_path / "set")
    assert all(set(before[table]) <= set(after[table]) for table in before)
    changed = {row["job_id"]: row["changed"] is None for row in rows_of(tmp_path / "set", "job")}
    assert changed == {"1000": True, "1003": True, "1006": False}
    assert doubled(tmp_path / "set") == []


def test_each_version_of_the_dataset_has_an_example(tmp_path: Path) -> None:
    """A column with `since` is missing in the example of the version before."""
    state = Log(VERSION_1).read()
    for file in state.files.values():
        names = parquet().ParquetFile(VERSION_1 / file.path).schema_arrow.names
        assert "changed" not in names or file.table == "refused"
    assert Dataset(tmp_path / "new").log.version == 2
