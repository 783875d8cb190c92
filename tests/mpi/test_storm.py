# SPDX-License-Identifier: Apache-2.0
"""Eight threads that call MPI at once: every counter against a replay of programs/storm.c."""

from __future__ import annotations

from collections import Counter

from harness import SANITIZER, Mpi

THREADS = 8
CALLS_A_ROUND = 10
PERIOD = 1000
CALLS = 200_000 if SANITIZER is None else 20_000

Key = tuple[int, str, str, int]
"""Rank, communicator, procedure, bin."""


def expected(rank: int, n_calls: int) -> Counter[tuple[Key, str]]:
    """Return calls, bytes sent and bytes received of one rank, by key; a thread's own communicators are one."""
    cells: Counter[tuple[Key, str]] = Counter()

    def count(
        comm: str,
        op: str,
        size: int = 0,
        sent: int = 0,
        received: int = 0,
        times: int = 1,
        bin: int | None = None,
    ) -> None:
        key = (rank, comm, "MPI_" + op, size.bit_length() if bin is None else bin)
        cells[key, "calls"] += times
        cells[key, "sent"] += times * sent
        cells[key, "received"] += times * received

    periods = n_calls // (CALLS_A_ROUND * PERIOD)  # rounds repeat themselves
    count("W0.0", "Comm_rank")
    for t in range(THREADS):
        across, own, child = f"across {t}", f"own {t} of {rank}", f"child of own {t} of {rank}"
        count("W0.0", "Comm_dup")
        count(f"S{rank}.0", "Comm_dup")
        count(across, "Comm_set_name")
        count(own, "Comm_set_name")
        for i in range(PERIOD):
            size = 100 * t + i
            count(across, "Irecv", 4096, 0, size, times=periods)
            count(across, "Isend", size, size, times=periods)
            # Wherever a request is completed: it is of the communicator it was made on.
            count(f"across {t ^ i % 2}", "Waitall", times=periods)
            count(across, "Iprobe", times=periods)
            count(child, "Sendrecv", size, size, size, times=periods)
            count(child, "Send", times=periods, bin=-2)  # to MPI_PROC_NULL
            count(child, "Recv", size, times=periods)
            count(across, "Comm_size", times=periods)
            vector = size // 8 * 8
            count(child, "Allreduce", vector, vector, vector, times=periods)
        count(child, "Comm_rank", times=periods * (PERIOD - 1))
        count(across, "Barrier", times=periods)
        count(own, "Comm_dup", times=periods + 1)
        count(child, "Comm_free", times=periods + 1)
    return cells


def test_the_calls_of_eight_threads_are_counted_exactly(mpi: Mpi) -> None:
    result = mpi.run(
        2, [mpi.compile("storm.c", None, flags=["-Wno-stringop-overflow"]), str(CALLS)], timeout=900
    )
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    assert profile.rows("SELECT threads FROM rank") == [{"threads": 1 + THREADS}] * 2

    measured: Counter[tuple[Key, str]] = Counter()
    for row in profile.rows(
        "SELECT x.rank, COALESCE(c.user_name, 'child of ' || p.user_name, c.name) AS comm, o.name AS op, k.bin, "
        "SUM(x.calls) AS calls, SUM(x.bytes_sent) AS sent, SUM(x.bytes_received) AS received FROM cell x "
        "JOIN key k ON k.id = x.key JOIN op o ON o.id = k.op JOIN comm c ON c.id = k.comm "
        "LEFT JOIN comm p ON p.id = c.parent GROUP BY 1, 2, 3, 4"
    ):
        for what in ("calls", "sent", "received"):
            measured[(row["rank"], row["comm"], row["op"], row["bin"]), what] += row[what]
    everything = expected(0, CALLS) + expected(1, CALLS)
    assert +measured == everything
