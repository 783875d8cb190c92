# SPDX-License-Identifier: Apache-2.0
"""What other users leave in /dev/shm and in shared folders is input from strangers, also for root."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Mpi
from strangers import Strangers, strangers


@pytest.fixture
def place() -> Iterator[Strangers]:
    """Two users and root."""
    with strangers() as made:
        yield made


def test_the_users_are_real(place: Strangers) -> None:
    """Else nothing below says anything."""
    place.write("mallory", place.shared / "hers", "1")
    place.write("mallory", place.homes["mallory"] / "private", "1", 0o600)
    assert place.owner(place.shared / "hers") == "mallory"
    for line in ("rm -f $1/hers", "echo >>$1/hers", "ls $2"):
        done = place.run("alice", ["sh", "-c", line, "sh", place.shared, place.homes["mallory"]])
        assert done.returncode != 0, line
    assert place.run("root", ["cat", place.homes["mallory"] / "private"]).stdout == "1"
    assert place.do("alice", "id -un; id -Gn").split() == ["alice", "alice", "project"]


def test_users_run_jobs(place: Strangers, mpi: Mpi) -> None:
    profile = place.homes["alice"] / "profile.db"
    done = place.launch("alice", mpi, 2, [mpi.compile("storage.c"), "work", "5"], profile)
    assert (done.returncode, done.stdout) == (0, "done 10\n"), done
    assert place.owner(profile) == "alice"
    left = place.killed_job("mallory", mpi, place.shared / "x.db")
    assert [place.owner(file) for file in left] == ["mallory", "mallory"]
    assert "2 of 2 ranks" in place.commlens("mallory", "recover", "-o", "x.db").stdout
