# SPDX-License-Identifier: Apache-2.0
"""COMMLENS_THREADS=each: which thread made which calls; the oracle is the program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from harness import LINK, ROOT, Mpi
from profile_rows import Profile
from test_survive import commlens

RANKS = 2
EACH = {"COMMLENS_THREADS": "each"}
APART = 256
CALLS = """
SELECT rank, thread, communicator, operation, SUM(calls) AS calls, SUM(bytes_sent) AS sent, SUM(bytes_received) AS received
  FROM thread_counter WHERE class IN ('p2p', 'collective', 'completion') GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"""


def program(mpi: Mpi) -> Path:
    """Return programs/named_threads.c."""
    return mpi.compile("named_threads.c", None, *LINK, "-lpthread", flags=(f"-I{ROOT / 'include'}",))


def names(profile: Profile) -> list[tuple[Any, ...]]:
    """Return the threads; their ids must be different, and that of the main thread the process id."""
    rows = profile.rows("SELECT thread.*, rank.pid FROM thread JOIN rank USING (rank) ORDER BY rank, thread")
    for row in rows:
        assert (row["tid"] == row["pid"]) == (row["kind"] == "main"), row
        assert (row["tid"] is None) == (row["kind"] == "others"), row
    return [tuple(row[name] for name in ("rank", "thread", "kind", "threads", "name")) for row in rows]


def check_sums(profile: Profile) -> None:
    """Assert that the sums over the threads are those of the cells and regions, to the nanosecond."""
    least = (
        "MIN(CASE WHEN calls > 0 THEN time_min_ns END)"  # a thread may only have completed requests of others
    )
    of_cells = f"SUM(calls), SUM(time_ns), {least}, MAX(time_max_ns), SUM(bytes_sent), SUM(bytes_received)"
    cells = f"SELECT key, rank, {of_cells} FROM {{}} GROUP BY key, rank ORDER BY 1, 2"
    assert profile.rows(cells.format("thread_cell")) == profile.rows(cells.format("cell"))
    of_regions = "SUM(calls), SUM(open), SUM(time_ns), SUM(nested_ns), SUM(mpi_ns)"
    regions = f"SELECT region, rank, {of_regions} FROM {{}} GROUP BY region, rank ORDER BY 1, 2"
    assert profile.rows(regions.format("thread_region")) == profile.rows(regions.format("region_time"))
    threads = profile.rows("SELECT rank, SUM(threads) AS threads FROM thread GROUP BY rank")
    assert threads == profile.rows("SELECT rank, threads FROM rank ORDER BY rank")


def expected_calls() -> list[tuple[Any, ...]]:
    """Return the calls of every thread of the program, with their bytes."""
    found = []
    for rank in range(RANKS):
        # The main thread completes the receive that thread 1 has left to it.
        found += [(rank, 0, "W0.0", "MPI_Barrier", 1, 0, 0), (rank, 0, "d0.2", "MPI_Wait", 1, 0, 0)]
        found.append((rank, 0, "d0.2", "MPI_Irecv", 0, 0, 4))
        for n in range(4):
            comm, calls = f"d0.{n + 1}", 10 * (n + 1)
            bytes_of_all = calls * 8 * (n + 1)
            found.append((rank, n + 1, comm, "MPI_Allreduce", calls, bytes_of_all, bytes_of_all))
            found += [(rank, n + 1, comm, "MPI_Isend", 1, 4, 0), (rank, n + 1, comm, "MPI_Wait", 1, 0, 0)]
            found.append(
                (rank, n + 1, comm, "MPI_Irecv", 1, 0, 0)
                if n == 1
                else (rank, n + 1, comm, "MPI_Recv", 1, 0, 4)
            )
    return sorted(found)


def check_named(profile: Profile, main: str, *, last: Sequence[str]) -> None:
    """Check the profile of a run with the argument `named` or `killed`; `last` has the name of a thread on each rank."""
    assert names(profile) == [
        row
        for rank in range(RANKS)
        for row in (
            (rank, 0, "main", 1, main),
            *((rank, n + 1, "thread", 1, f"worker {n}" if n != 3 else last[rank]) for n in range(4)),
        )
    ]
    found = [tuple(row.values()) for row in profile.rows(CALLS)]
    assert found == expected_calls()
    regions = profile.rows(
        "SELECT rank, thread, path, calls, open FROM thread_region JOIN region_path USING (region) "
        "ORDER BY rank, thread"
    )
    assert [tuple(row.values()) for row in regions] == [
        (rank, n + 1, "odd" if n % 2 else "even", 10 * (n + 1), 0) for rank in range(RANKS) for n in range(4)
    ]
    check_sums(profile)


def test_calls_and_names_of_each_thread(mpi: Mpi) -> None:
    executable = program(mpi)
    result = mpi.run(RANKS, [executable, "named"], env=EACH)
    assert (result.rc, result.stdout) == (0, ""), result
    profile = result.open()
    profile.check()
    check_named(profile, executable.name[:15], last=["last�\n"] * RANKS)
    # Without the option, the same cells and no threads.
    plain = mpi.run(RANKS, [executable, "named"]).open()
    assert [
        plain.rows(f"SELECT COUNT(*) AS n FROM {t}")[0]["n"]
        for t in ("thread", "thread_cell", "thread_region")
    ] == [0] * 3
    assert plain.counts() == profile.counts()


@pytest.mark.dealt
def test_shards_have_the_same_threads(mpi: Mpi) -> None:
    executable = program(mpi)
    env = {**EACH, "COMMLENS_AGGREGATORS": "2"}
    result = mpi.run(RANKS, [executable, "named"], env=env)
    assert result.rc == 0, result
    merged = result.profile.with_name("merged.db")
    commlens("merge", result.profile.with_suffix(".commlens"), "-o", merged, cwd=merged.parent)
    check_named(Profile(merged), executable.name[:15], last=["last�\n"] * RANKS)


@pytest.mark.dealt
def test_further_threads_are_counted_together(mpi: Mpi) -> None:
    executable = program(mpi)
    result = mpi.run(RANKS, [executable, "many"], env=EACH)
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    check_sums(profile)
    name = executable.name[:15]
    others = 1 + 700 - APART
    assert names(profile) == [
        row
        for rank in range(RANKS)
        for row in (
            (rank, -1, "others", others, None),
            (rank, 0, "main", 1, name),
            *((rank, n, "thread", 1, name) for n in range(1, APART)),
        )
    ]
    sends = "SELECT rank, thread, SUM(calls) AS calls FROM thread_counter WHERE operation = 'MPI_Send' GROUP BY 1, 2"
    assert [tuple(row.values()) for row in profile.rows(sends)] == [
        row for rank in range(RANKS) for row in ((rank, -1, others), *((rank, n, 1) for n in range(1, APART)))
    ]


def test_the_threads_of_a_killed_job_are_recovered(mpi: Mpi) -> None:
    executable = program(mpi)
    where = mpi.fresh("killed")
    env = {**EACH, "COMMLENS_ARENA_DIR": str(where)}
    result = mpi.run(RANKS, [executable, "killed", where], env, profile=where / "x.db", cwd=where, once=True)
    assert result.rc != 0
    recovered = where / "recovered.db"
    commlens("recover", where, "-o", recovered, cwd=where)
    profile = Profile(recovered)
    # The last thread has made no call since its last name, which is known only if the launcher ended the rank.
    last = [str(name) for name in profile.column("SELECT name FROM thread WHERE thread = 4 ORDER BY rank")]
    assert set(last) <= {"worker 3", "last\ufffd\n"}
    check_named(profile, executable.name[:15], last=last)


def test_a_summary_has_no_threads(mpi: Mpi) -> None:
    result = mpi.run(RANKS, [program(mpi), "named"], env={**EACH, "COMMLENS_DETAIL": "summary"})
    assert result.rc == 0, result
    profile = result.open()
    assert profile.rows("SELECT * FROM thread UNION ALL SELECT * FROM thread") == []
    assert profile.rows("SELECT * FROM thread_cell") == profile.rows("SELECT * FROM thread_region") == []
