# SPDX-License-Identifier: Apache-2.0
"""Calls that cannot wait: all are counted, and a part is timed; the oracle is the program, and a run that times all."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Mpi
from profile_rows import Profile
from test_regions import program
from test_survive import commlens

RANKS = 2
ALWAYS_TIMED = 1024
"""The first calls of a key and thread."""
EVERY = {"COMMLENS_CLOCK": "every"}
PROBES, TESTS, FEW, MESSAGES, PUTS, GETS = 4_000, 3_000, 100, 3_200, 4_000, 3_000

# Communicator, procedure: calls, bytes sent, bytes received; per rank.
EXPECTED = {
    ("W0.0", "MPI_Iprobe"): (PROBES, 0, 0),
    ("d0.1", "MPI_Iprobe"): (FEW, 0, 0),
    ("W0.0", "MPI_Test"): (TESTS, 0, 0),
    ("d0.1", "MPI_Irecv"): (MESSAGES, 0, 8 * MESSAGES),
    ("d0.1", "MPI_Isend"): (MESSAGES, 8 * MESSAGES, 0),
    ("W0.0", "MPI_Irecv"): (1, 0, 1),
    ("W0.0", "MPI_Put"): (PUTS, 4 * PUTS, 0),
    ("W0.0", "MPI_Get"): (GETS, 0, 4 * GETS),
}
SUMS = """
SELECT communicator, operation, rank, SUM(calls) AS calls, SUM(bytes_sent) AS sent, SUM(bytes_received) AS received,
       SUM(timed) AS timed, MAX(time_error_ns) AS error_ns, SUM(time_ns) AS time_ns
  FROM counter GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
PEERS = "SELECT comm, flow, bin, rank, peer, SUM(messages) AS messages, SUM(bytes) AS bytes FROM peer GROUP BY 1, 2, 3, 4, 5"


def run(mpi: Mpi, **env: str) -> Profile:
    """Run the program and return its profile."""
    result = mpi.run(RANKS, [mpi.compile("untimed.c")], env=env)
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    return profile


def check_counts(profile: Profile) -> None:
    """Assert that calls and bytes are those of the program."""
    found = {(r["communicator"], r["operation"], r["rank"]): r for r in profile.rows(SUMS)}
    for (comm, operation), expected in EXPECTED.items():
        for rank in range(RANKS):
            row = found[comm, operation, rank]
            assert (row["calls"], row["sent"], row["received"]) == expected, row


def check_timed(profile: Profile) -> None:
    """Assert that calls are untimed where they may be, and only there."""
    for row in profile.rows(SUMS):
        expected = EXPECTED.get((row["communicator"], row["operation"]))
        if expected is None or expected[0] <= ALWAYS_TIMED:
            assert (row["timed"], row["error_ns"]) == (row["calls"], 0), row
        else:
            assert ALWAYS_TIMED <= row["timed"] < row["calls"], row
            assert row["error_ns"] > 0, row


def test_calls_and_bytes_are_exact_and_only_calls_that_cannot_wait_go_untimed(mpi: Mpi) -> None:
    profile = run(mpi)
    check_counts(profile)
    check_timed(profile)
    header = next(
        line
        for line in commlens("report", profile.path, cwd=profile.path.parent).splitlines()
        if line.startswith("estimated")
    )
    untimed = sum(row["calls"] - row["timed"] for row in profile.rows(SUMS))
    assert f"{untimed:,} calls" in header, header
    assert "standard error of the time in MPI" in header, header

    every = run(mpi, **EVERY)
    check_counts(every)
    assert every.rows("SELECT * FROM untimed") == []
    assert every.rows("SELECT * FROM cell WHERE timed <> calls OR time_error_ns <> 0") == []
    assert every.counts() == profile.counts()
    assert every.rows(PEERS) == profile.rows(PEERS)
    assert "estimated" not in commlens("report", every.path, cwd=every.path.parent)


@pytest.mark.dealt
def test_messages_are_sampled_as_if_all_calls_were_timed(mpi: Mpi) -> None:
    sampled = "SELECT comm, op.name AS op, bin, collectives, samples FROM sampled JOIN op ON op.id = op ORDER BY 1, 2, 3"
    messages = [row for row in run(mpi).rows(sampled) if row["op"] in ("MPI_Waitall", "MPI_Wait")]
    assert messages
    assert messages == [
        row for row in run(mpi, **EVERY).rows(sampled) if row["op"] in ("MPI_Waitall", "MPI_Wait")
    ]


@pytest.mark.dealt
def test_the_counters_of_threads_add_up(mpi: Mpi) -> None:
    profile = run(mpi, COMMLENS_THREADS="each")
    check_counts(profile)
    cells = "SELECT key, rank, SUM(calls) AS c, SUM(time_ns) AS t, SUM(bytes_sent) AS s, SUM(bytes_received) AS r FROM {} GROUP BY 1, 2"
    assert profile.rows(cells.format("thread_cell")) == profile.rows(cells.format("cell"))


@pytest.mark.dealt
def test_shards_have_the_untimed_calls_of_their_ranks(mpi: Mpi) -> None:
    result = mpi.run(RANKS, [mpi.compile("untimed.c")], env={"COMMLENS_AGGREGATORS": "2"})
    assert result.rc == 0, result
    merged = result.profile.with_name("merged.db")
    commlens("merge", result.profile.with_suffix(".commlens"), "-o", merged, cwd=merged.parent)
    profile = Profile(merged)
    check_counts(profile)
    check_timed(profile)


@pytest.mark.dealt
def test_a_summary_has_the_number_of_untimed_calls(mpi: Mpi) -> None:
    profile = run_summary(mpi)
    assert profile.rows("SELECT * FROM untimed") == []
    row = profile.rows(
        "SELECT SUM(sum) AS calls FROM scope JOIN spread ON spread.scope = scope.id "
        "WHERE scope.key IS NOT NULL AND counter = 'untimed'"
    )[0]
    assert 0 < row["calls"] < RANKS * (PROBES + TESTS + 2 * MESSAGES + PUTS + GETS)
    assert f"estimated     the time of {row['calls']:,} calls" in commlens(
        "report", profile.path, cwd=profile.path.parent
    )


def run_summary(mpi: Mpi) -> Profile:
    """Run the program with summary detail."""
    result = mpi.run(RANKS, [mpi.compile("untimed.c")], env={"COMMLENS_DETAIL": "summary"})
    assert result.rc == 0, result
    return result.open()


def test_the_untimed_calls_of_a_killed_job_are_recovered(mpi: Mpi) -> None:
    where = mpi.fresh("killed")
    env = {"COMMLENS_ARENA_DIR": str(where)}
    result = mpi.run(
        RANKS, [mpi.compile("untimed.c"), "killed"], env, profile=where / "x.db", cwd=where, once=True
    )
    assert result.rc != 0
    recovered = where / "recovered.db"
    commlens("recover", where, "-o", recovered, cwd=where)
    profile = Profile(recovered)
    rows = {(r["communicator"], r["operation"], r["rank"]): r for r in profile.rows(SUMS)}
    # The launcher may have ended a rank behind the last barrier, before it killed itself.
    for (comm, operation), (calls, sent, received) in EXPECTED.items():
        for rank in range(RANKS):
            row: dict[str, Any] = rows[comm, operation, rank]
            assert (row["calls"], row["sent"], row["received"]) == (calls, sent, received), row
            assert (row["timed"] < calls) == (calls > ALWAYS_TIMED), row


TURNS = {  # of untimed_turns.c: region, procedure, calls, bytes sent, bytes received
    ("even", "MPI_Iprobe"): (4_500, 0, 0),
    ("odd", "MPI_Iprobe"): (4_500, 0, 0),
    ("", "MPI_Iprobe"): (3 * 2_500, 0, 0),  # of three threads; none of those in a callback
    ("", "MPI_Testall"): (2_500, 0, 0),
    ("", "MPI_Test"): (2_500, 0, 0),
    ("", "MPI_Send_init"): (1, 16 * 2_500, 0),
    ("", "MPI_Recv_init"): (1, 0, 16 * 2_500),
    ("", "MPI_Testsome"): (3_000 - 3_000 // 7, 0, 0),
    ("callback", "MPI_Testsome"): (3_000 // 7, 0, 0),
    ("", "MPI_Isend"): (3_000, 3_000, 0),  # without those that never returned
    ("", "MPI_Irecv"): (3_001, 0, 3_001),
}
TURNS_SQL = """
SELECT COALESCE(path, '') AS region, op.name AS op, SUM(calls) AS calls, SUM(bytes_sent) AS sent,
       SUM(bytes_received) AS received, SUM(calls - timed) AS untimed
  FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op
       LEFT JOIN region_path ON region_path.region = key.region AND key.region > 0
 GROUP BY 1, 2"""


def test_regions_callbacks_jumps_signals_and_threads_between_untimed_calls_change_no_count(mpi: Mpi) -> None:
    turns: list[Any] = [program(mpi, "untimed_turns.c", "-pthread")]
    never_sampled = {
        ("", "MPI_Send_init"),
        ("", "MPI_Recv_init"),
        ("", "MPI_Test"),  # an inactive request belongs to no communicator
        ("callback", "MPI_Testsome"),
    }
    counts = []
    for argv, env in (
        (turns, {}),
        (turns, EVERY),
        ([*turns, "threads"], {"COMMLENS_THREADS": "each"}),
    ):
        result = mpi.run(1, argv, env=env)
        assert result.rc == 0, result
        profile = result.open()
        profile.check()
        found = {(row["region"], row["op"]): row for row in profile.rows(TURNS_SQL)}
        of_threads = {("", "MPI_Iprobe")}
        jumping = {("", "MPI_Isend"), ("", "MPI_Irecv")}
        for at, expected in TURNS.items():
            if at in (of_threads if argv == turns else jumping):
                continue
            row = found[at]
            assert (row["calls"], row["sent"], row["received"]) == expected, (at, row)
            assert (env != EVERY and at not in never_sampled) <= (row["untimed"] > 0), (at, row)
        if argv == turns:
            counts.append(profile.counts())
        else:
            cells = "SELECT key, rank, SUM(calls) AS c, SUM(time_ns) AS t FROM {} GROUP BY 1, 2"
            assert profile.rows(cells.format("thread_cell")) == profile.rows(cells.format("cell"))
    assert counts[0] == counts[1]
