# SPDX-License-Identifier: Apache-2.0
"""Files that claim to be larger than what is stored in them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import marked_builder
from fuzz.damage import long_texts
from test_hostile_profiles import change
from test_shards import split

from commlens.profile.open import open_profile


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a profile with regions and messages, which the test may spoil."""
    return marked_builder().write(tmp_path / "p.db")


# Files that claim to be larger than what is stored in them.


def limited_report(path: Path) -> subprocess.CompletedProcess[str]:
    """Read a profile within the promised 10 s of processor time and 1 GiB; a kill by the limit is an exit code below 0."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    return subprocess.run(
        [sys.executable, "-m", "commlens", "report", path],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )


@pytest.mark.parametrize("table", ["meta", "rank"])
@pytest.mark.parametrize(("length", "levels"), [(40_000_000, 2), (1_040_000, 2), (250_000, 3), (200_000, 14)])
def test_texts_that_share_a_page_are_no_memory(profile: Path, table: str, length: int, levels: int) -> None:
    long_texts(profile, table, 1, length, levels)
    result = limited_report(profile)
    assert result.returncode == 3, result.stderr
    assert f"{profile}: table {table}" in result.stderr
    if length < 2 * 10**6:
        profile.write_bytes(profile.read_bytes())  # the same without holes
        assert limited_report(profile).returncode == 3


@pytest.mark.long
@pytest.mark.parametrize("size", [60 << 30, 1 << 42])
def test_a_hole_is_no_time(profile: Path, size: int) -> None:
    before = limited_report(profile).stdout
    os.truncate(profile, size)
    assert limited_report(profile).stdout == before


@pytest.mark.long
def test_pages_that_are_shared_are_no_time_in_a_file_of_holes(profile: Path) -> None:
    long_texts(profile, "meta", 1, 10_000, 14)
    os.truncate(profile, 100 << 30)
    result = limited_report(profile)
    assert result.returncode == 3
    assert f"{profile}: table meta is damaged" in result.stderr


@pytest.mark.long
def test_a_checksum_of_a_hole_is_not_waited_for(small: Path, tmp_path: Path) -> None:
    directory = split(small, tmp_path / "p.commlens")
    os.truncate(directory / "shard.0.db", 60 << 30)
    change(directory / "index.db", f"UPDATE shard SET bytes = {60 << 30} WHERE number = 0")
    result = limited_report(directory)
    assert result.returncode == 3
    assert "shard.0.db (ranks 0 to 1) is damaged: it takes too long to read" in result.stderr


def test_a_shard_is_asked_for_numbers_only(small: Path, tmp_path: Path) -> None:
    directory = split(small, tmp_path / "p.commlens")
    (directory / "index.db").unlink()
    long_texts(directory / "shard.0.db", "rank", 1, 40_000_000, 1)
    result = limited_report(directory)
    assert result.returncode == 3
    assert "only 2 of 4 ranks are in this profile" in " ".join(result.stdout.split())


def test_a_hole_in_a_file_nobody_reads_gives_no_time(small: Path, tmp_path: Path) -> None:
    directory = split(small, tmp_path / "p.commlens")
    (directory / "other.db").touch()
    os.truncate(directory / "other.db", 60 << 30)
    with open_profile(str(directory)) as connection:
        assert connection.size < 10**6
