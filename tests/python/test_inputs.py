# SPDX-License-Identifier: Apache-2.0
"""Files that a user or a profile names are looked at before they are opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commlens.base import inputs
from commlens.base.errors import CommlensError
from commlens.launch.configuration import UnusableError, read_lines
from commlens.profile.regular import opened


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


@pytest.fixture
def opened_for_reading(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return what is opened from now on by more than its name: that alone rewinds a tape or starts a watchdog."""
    files: list[Path] = []
    real = os.open

    def spy(path: Path, flags: int, *args: int, **options: int) -> int:
        descriptor = real(path, flags, *args, **options)
        if not flags & os.O_PATH:
            files.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        return descriptor

    monkeypatch.setattr(os, "open", spy)
    return files


def test_what_is_no_regular_file_is_not_even_opened(fifo: Path, opened_for_reading: list[Path]) -> None:
    (fifo.parent / "link").symlink_to("fifo")
    for path in (fifo, fifo.parent / "link"):
        with pytest.raises(OSError, match="not a regular file"):
            inputs.open_regular(path)
        with pytest.raises(UnusableError, match="FIFO"):
            read_lines(path)
        with pytest.raises(CommlensError, match="neither a file nor a folder"), opened(path):
            pass
    assert opened_for_reading == []


def test_a_regular_file_is_opened_once(tmp_path: Path, opened_for_reading: list[Path]) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    with inputs.open_regular(tmp_path / "link") as file:
        assert file.read() == b"text"
    assert opened_for_reading == [tmp_path / "file"]
    with pytest.raises(OSError, match="larger than 3 bytes"):
        inputs.read_regular(tmp_path / "file", 3)
    with pytest.raises(FileNotFoundError):
        inputs.open_regular(tmp_path / "other")


def test_without_proc_the_file_is_opened_by_its_name(
    tmp_path: Path, fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "DESCRIPTORS", tmp_path / "proc")
    (tmp_path / "file").write_bytes(b"text")
    assert inputs.read_regular(tmp_path / "file", 4) == b"text"
    with pytest.raises(OSError, match="not a regular file"):
        inputs.open_regular(fifo)


def test_a_file_that_takes_the_place_of_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "DESCRIPTORS", tmp_path / "proc")
    (tmp_path / "file").write_bytes(b"checked")
    (tmp_path / "other").write_bytes(b"never seen")

    def swap(_: os.stat_result) -> None:
        (tmp_path / "other").rename(tmp_path / "file")

    with pytest.raises(OSError, match="was replaced while"):
        inputs.open_checked(tmp_path / "file", swap)


def test_links_in_the_folder_of_a_profile_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with opened(tmp_path / "file", folder) as file:
            assert file.read(4) == b"text"
        with pytest.raises(CommlensError, match="symbolic link"), opened(tmp_path / "link", folder):
            pass
    finally:
        os.close(folder)
