# SPDX-License-Identifier: Apache-2.0
"""Several ranks write a profile: it says the same as one file."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Mpi, commlens
from profile_rows import Profile

COUNTS_SQL = """
SELECT communicator, operation, bin, callsite.offset, rank, calls, bytes_sent, bytes_received, noncontiguous
  FROM counter JOIN callsite ON callsite.id = counter.callsite ORDER BY 1, 2, 3, 4, 5"""
COMMS_SQL = "SELECT name, size, members, parent, topology, family FROM comm ORDER BY id"


def merged(directory: Path) -> Profile:
    """Make one file of a directory."""
    target = directory.with_name("merged.db")
    done = commlens("merge", directory, "-o", target)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{target}\n", "")
    return Profile(target)


@pytest.mark.dealt
@pytest.mark.parametrize(("ranks", "writers"), [(5, 2), (5, 5), (16, 3)])
def test_many_writers_write_what_one_writes(mpi: Mpi, ranks: int, writers: int) -> None:
    program = mpi.compile("comms.c" if ranks < 16 else "listing1.c")
    one = mpi.run(ranks, [program], timeout=180)
    many = mpi.run(ranks, [program], env={"COMMLENS_AGGREGATORS": str(writers)}, timeout=180)
    assert (many.rc, many.lines) == (one.rc, one.lines)
    directory = many.profile.with_suffix(".commlens")
    assert directory.is_dir() and not many.profile.exists(), many
    block = -(-ranks // writers)
    shards = sorted(path.name for path in directory.iterdir())
    assert shards == ["index.db", *(f"shard.{n}.db" for n in range(-(-ranks // block)))]
    profile, expected = merged(directory), one.open()
    profile.check()
    assert profile.rows(COMMS_SQL) == expected.rows(COMMS_SQL)
    assert profile.rows(COUNTS_SQL) == expected.rows(COUNTS_SQL)
    assert profile.rows("SELECT symbol, state, ranks FROM coverage") == expected.rows(
        "SELECT symbol, state, ranks FROM coverage"
    )
    for name in ("ranks", "ranks_collected", "nodes", "program", "thread_level"):
        assert profile.meta()[name] == expected.meta()[name]
    assert not list(many.profile.parent.glob("*arena*"))


def test_a_directory_that_exists_is_never_written_into(mpi: Mpi) -> None:
    place = mpi.fresh("taken")
    (place / "profile.commlens").mkdir()
    result = mpi.run(2, [mpi.compile("listing1.c")], env={"COMMLENS_AGGREGATORS": "2"}, cwd=place)
    assert result.rc == 0
    assert list((place / "profile.commlens").iterdir()) == []
    assert (place / "profile.1.commlens" / "index.db").is_file(), result
