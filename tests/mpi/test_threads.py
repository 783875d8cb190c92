# SPDX-License-Identifier: Apache-2.0
"""MPI_THREAD_MULTIPLE: what one thread begins another one completes and a third one frees; exact counts."""

from __future__ import annotations

from collections import Counter

import pytest
from harness import Mpi

BOTH = (0, 1)
OVERLAPS = {
    "once": [
        ("MPI_Irecv", 3, 200, 4 * 200),
        ("MPI_Irecv", 4, 400, 8 * 400),
        ("MPI_Wait", 0, 400, 0),
        ("MPI_Waitall", 0, 1, 0),
    ],
    "always": [
        ("MPI_Irecv", 3, 75 * 300, 4 * 75 * 300),
        ("MPI_Irecv", 4, 100 * 54, 8 * 100 * 54),
        ("MPI_Wait", 0, 100, 0),
        ("MPI_Waitall", 0, 200 + 300, 0),
    ],
}
"""By case of fibers_wait.c: procedure, size bin, calls and bytes received."""


def test_requests_and_communicators_go_from_thread_to_thread(mpi: Mpi) -> None:
    result = mpi.run(2, [mpi.compile("threads.c")], timeout=120)
    assert (result.rc, result.stdout) == (0, "threads done\n"), result
    profile = result.open()
    profile.check()

    def both(comm: str, calls: int) -> dict[str, dict[int, int]]:
        return {comm: dict.fromkeys(BOTH, calls)}

    # 200 rounds of 3 integers
    assert profile.calls("MPI_Startall") == profile.calls("MPI_Waitall") == both("d0.1", 200)
    assert profile.total("MPI_Send_init") == (2, 2 * 200 * 12, 0)
    assert profile.total("MPI_Recv_init") == (2, 0, 2 * 200 * 12)
    # 20 communicators, used once, twice, three times, once, ...
    assert profile.calls("MPI_Comm_idup") == profile.calls("MPI_Wait") == both("d0.2", 20)
    made = {name: row for name, row in profile.comms().items() if name[0] == "i"}
    in_order = sorted(made, key=lambda name: made[name]["created_ns"])
    assert in_order == [f"i0.{5 + i}" for i in range(20)]
    assert all(row["parent_name"] == "d0.2" and row["freed_ns"] is not None for row in made.values())
    for i, name in enumerate(in_order):
        assert profile.calls("MPI_Barrier", name) == both(name, 1 + i % 3)
    # 4 threads at once
    assert profile.calls("MPI_Put") == both("d0.3", 4 * 500)
    assert profile.total("MPI_Put") == (4000, 16000, 0)
    assert profile.calls("MPI_Sendrecv") == both("d0.4", 4 * 500)
    assert profile.total("MPI_Sendrecv") == (4000, 16000, 16000)
    # 4 threads make 20 groups each of the same parent; the n-th thread uses each of its own n times
    made = {name: row for name, row in profile.comms().items() if name[0] == "g"}
    assert len(made) == 80
    assert all(row["groups"] == [[0, 1]] and row["parent_name"] == "d0.4" for row in made.values())
    barriers = Counter[int]()
    for counts in profile.calls("MPI_Barrier", "g%").values():
        assert counts[0] == counts[1], "both ranks take it for the same"
        barriers[counts[0]] += 1
    assert barriers == dict.fromkeys((1, 2, 3, 4), 20)
    assert profile.rows("SELECT threads FROM rank") == [{"threads": 1 + 3 + 4 + 4}] * 2


def test_what_a_blocked_call_needs_is_freed_by_another_thread(mpi: Mpi) -> None:
    program = mpi.compile("freed.c")
    plain, under = mpi.pair(2, [program, "comm"])
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout) == (0, "freed done\n"), under
    profile = under.open()
    profile.check()
    listened = {name for name, row in profile.comms().items() if row["user_name"] == "listened to"}
    assert listened == {f"d0.{1 + 2 * i}" for i in range(30)}
    assert profile.calls("MPI_Recv") == {name: dict.fromkeys(BOTH, 1) for name in listened}
    assert profile.calls("MPI_Barrier", "d%") == {
        f"d0.{2 + 2 * i}": dict.fromkeys(BOTH, 1) for i in range(30)
    }

    plain, under = mpi.pair(2, [program, "type"])
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout) == (0, "freed done\n"), under
    profile = under.open()
    profile.check()
    of_bins = profile.rows(
        "SELECT o.name, k.bin, SUM(x.calls) AS calls, SUM(x.noncontiguous) AS noncontiguous, "
        "SUM(x.bytes_sent) AS sent, SUM(x.bytes_received) AS received "
        "FROM cell x JOIN key k ON k.id = x.key JOIN op o ON o.id = k.op "
        "WHERE o.name IN ('MPI_Recv', 'MPI_Sendrecv') GROUP BY 1, 2 ORDER BY 1, 2"
    )
    # 40 bytes with gaps received, the same sent and received, and 4 times 3,600 bytes
    assert [tuple(row.values()) for row in of_bins] == [
        ("MPI_Recv", 6, 60, 60, 0, 60 * 40),
        ("MPI_Sendrecv", 6, 60, 60, 60 * 40, 60 * 40),
        ("MPI_Sendrecv", 12, 240, 0, 240 * 3600, 240 * 3600),
    ]


def test_a_type_that_is_first_used_while_others_are_freed(mpi: Mpi) -> None:
    """Its own and thousands of other types are freed while a thread receives with it."""
    plain, under = mpi.pair(2, [mpi.compile("freed.c"), "first"])
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout) == (0, "freed done\n"), under
    profile = under.open()
    profile.check()
    (listened,) = (name for name, row in profile.comms().items() if row["user_name"] == "listened to")
    received = {
        (count.comm, count.rank): (count.calls, count.received)
        for count in profile.counts()
        if count.op == "MPI_Recv"
    }
    assert received == {
        (comm, rank): counted
        for rank in BOTH
        for comm, counted in (("W0.0", (3, 3 * 800)), (listened, (1, 1200)))
    }
    # 800 and 1,200 bytes
    bins = "SELECT DISTINCT k.bin FROM key k JOIN op o ON o.id = k.op WHERE o.name = 'MPI_Recv' ORDER BY 1"
    assert profile.rows(bins) == [{"bin": 10}, {"bin": 11}]


def test_other_stacks_than_the_usual_one(mpi: Mpi) -> None:
    """All of MPI in a second thread, fibers, threads with 64 KiB of stack, and a fiber that changes its thread."""
    plain, under = mpi.pair(2, [mpi.compile("stacks.c")])
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout) == (0, "stacks done\n"), under
    profile = under.open()
    profile.check()
    # fibers of the first, of the second, and their home
    assert profile.calls("MPI_Allreduce") == {
        **{f"d0.{n}": dict.fromkeys(BOTH, 50) for n in (1, 2, 3)},
        "W0.0": dict.fromkeys(BOTH, 10),
    }
    assert profile.calls("MPI_Sendrecv") == {f"S{rank}.0": {rank: 3 * 50} for rank in BOTH}
    assert profile.rows("SELECT threads FROM rank") == [{"threads": 4 + 10}] * 2


@pytest.mark.parametrize("case", OVERLAPS)
def test_fibers_complete_requests_while_another_one_waits(mpi: Mpi, case: str) -> None:
    program = mpi.compile("fibers_wait.c", flags=("-w", "-ldl"))
    tool = mpi.compile("yielding_tool.c", flags=("-ldl",), shared=True)
    result = mpi.run(1, [program, case], mode="preload", preload=[mpi.library, tool])
    assert (result.rc, result.stdout) == (0, "fibers done\n"), result
    profile = result.open()
    profile.check()
    counted = (
        "SELECT op.name AS op, bin, SUM(calls) AS calls, SUM(bytes_received) AS received FROM cell "
        "JOIN key ON key.id = cell.key JOIN op ON op.id = op "
        "WHERE op.name IN ('MPI_Irecv', 'MPI_Wait', 'MPI_Waitall') GROUP BY 1, 2 ORDER BY 1, 2"
    )
    assert [tuple(row.values()) for row in profile.rows(counted)] == OVERLAPS[case]


def test_a_progress_thread_is_not_the_applications(mpi: Mpi) -> None:
    """MPICH's own thread makes progress; its calls are not counted.  Open MPI 4 has none and ignores the variable."""
    result = mpi.run(2, [mpi.compile("requests.c"), "set"], env={"MPICH_ASYNC_PROGRESS": "1"}, timeout=120)
    assert (result.rc, result.stdout) == (0, "set done\n"), result
    profile = result.open()
    profile.check()
    assert profile.rows("SELECT threads FROM rank") == [{"threads": 1}] * 2
    assert profile.calls("MPI_Waitall", "{W0.0,d0.1,d0.2}") == {"{W0.0,d0.1,d0.2}": dict.fromkeys(BOTH, 3)}
    assert set(profile.comms()) == {"W0.0", "d0.1", "d0.2"}
