# SPDX-License-Identifier: Apache-2.0
"""Requests: whose time a completion call is, and whose bytes; and what the application sees stays as it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from harness import Mpi
from profile_rows import Profile

BOTH = (0, 1)


def run(mpi: Mpi, case: str) -> Profile:
    """Run one case of programs/requests.c and open its profile."""
    program: list[str | Path] = [mpi.compile("requests.c"), case]
    result = mpi.run(2, program, timeout=120)
    if result.rc != 0:
        mpi.skip_if_broken(mpi.run(2, program, timeout=120, mode="off"))
    assert (result.rc, result.lines[-1]) == (0, f"{case} done"), result
    profile = result.open()
    profile.check()
    return profile


def calls(profile: Profile, op: str, rank: int) -> dict[str, int]:
    """Return the calls of one operation on one rank, by communicator."""
    found = Counter[str]()
    for count in profile.counts(op=op):
        if count.rank == rank:
            found[count.comm] += count.calls
    return dict(found)


def received(profile: Profile, op: str, rank: int) -> dict[str, int]:
    """Return the bytes received of one operation on one rank, by communicator."""
    found = Counter[str]()
    for count in profile.counts(op=op):
        if count.rank == rank:
            found[count.comm] += count.received
    return dict(found)


def sent(profile: Profile, op: str, rank: int) -> dict[str, int]:
    """Return the bytes sent of one operation on one rank, by communicator."""
    found = Counter[str]()
    for count in profile.counts(op=op):
        if count.rank == rank:
            found[count.comm] += count.sent
    return dict(found)


def test_one_call_for_several_communicators_counts_under_their_set(mpi: Mpi) -> None:
    profile = run(mpi, "set")
    for rank in BOTH:
        assert calls(profile, "MPI_Waitall", rank) == {"{W0.0,d0.1,d0.2}": 3, "{d0.1,d0.2}": 2, "d0.1": 1}
        assert calls(profile, "MPI_Irecv", rank) == {"W0.0": 3, "d0.1": 3 + 2 + 2, "d0.2": 3 + 2}
        assert received(profile, "MPI_Irecv", rank) == {
            "W0.0": 3 * 12,
            "d0.1": 3 * 4 + 2 * 16 + 24 + 28,
            "d0.2": 3 * 8 + 2 * 20,
        }
        assert received(profile, "MPI_Waitall", rank) == dict.fromkeys(calls(profile, "MPI_Waitall", rank), 0)
    rows = profile.comms("set")
    assert set(rows) == {"{W0.0,d0.1,d0.2}", "{d0.1,d0.2}"}
    for name, row in rows.items():
        members = profile.rows(
            "SELECT c.name FROM comm_set s JOIN comm c ON c.id = s.member WHERE s.comm = ? ORDER BY c.id",
            row["id"],
        )
        assert "{" + ",".join(m["name"] for m in members) + "}" == name
        assert (row["size"], row["parent"], row["leader"]) == (None, None, None)
    # The time of such a call is there once: the cells of a rank add up to its time in MPI, and that to less than
    # the run took (Profile.check).


def test_calls_that_complete_some(mpi: Mpi) -> None:
    profile = run(mpi, "some")
    # Waitany: twice with requests of A in the array, then with none
    assert calls(profile, "MPI_Waitany", 0) == {"d0.1": 2, "-": 1}
    assert calls(profile, "MPI_Testany", 0) == {"d0.2": 1}
    assert calls(profile, "MPI_Testall", 0) == {"d0.2": 1}
    assert calls(profile, "MPI_Test", 0) == {"d0.2": 1}
    assert set(calls(profile, "MPI_Waitsome", 0)) == {"d0.2", "-"}
    assert calls(profile, "MPI_Waitsome", 0)["-"] == 1
    assert set(calls(profile, "MPI_Testsome", 0)) == {"d0.2"}
    assert received(profile, "MPI_Irecv", 0) == {"d0.1": 4 * (2 + 3), "d0.2": 4 * (4 + 5 + 6 + 7)}


def test_null_and_inactive_requests_have_no_communicator(mpi: Mpi) -> None:
    profile = run(mpi, "nothing")
    for rank in BOTH:
        assert calls(profile, "MPI_Wait", rank) == {"-": 2}
        assert calls(profile, "MPI_Waitall", rank) == {"-": 2}
        assert calls(profile, "MPI_Test", rank) == {"-": 2}
        assert calls(profile, "MPI_Testall", rank) == {"-": 1}
        assert calls(profile, "MPI_Waitany", rank) == {"-": 1}
        assert received(profile, "MPI_Recv_init", rank) == {"d0.1": 0}


def test_persistent_requests_move_their_bytes_each_time(mpi: Mpi) -> None:
    profile = run(mpi, "persistent")
    for rank in BOTH:
        assert calls(profile, "MPI_Send_init", rank) == {"d0.1": 1, "d0.2": 1}
        assert calls(profile, "MPI_Recv_init", rank) == {"d0.1": 1, "d0.2": 2}
        assert calls(profile, "MPI_Start", rank) == {"d0.1": 10}
        assert calls(profile, "MPI_Startall", rank) == {"{d0.1,d0.2}": 3, "d0.2": 1}
        assert calls(profile, "MPI_Waitall", rank) == {"d0.1": 5, "{d0.1,d0.2}": 3}
        assert calls(profile, "MPI_Wait", rank) == {"d0.2": 2}
        assert sent(profile, "MPI_Send_init", rank) == {"d0.1": 8 * 20, "d0.2": 4}
        assert sent(profile, "MPI_Ssend_init", rank) == {"d0.2": 3 * 24}
        assert received(profile, "MPI_Recv_init", rank) == {"d0.1": 8 * 20, "d0.2": 3 * 24 + 4}
        assert sent(profile, "MPI_Start%", rank) == dict.fromkeys(sent(profile, "MPI_Start%", rank), 0)


def test_freed_and_cancelled_requests(mpi: Mpi) -> None:
    profile = run(mpi, "abandoned")
    assert sent(profile, "MPI_Isend", 1) == {"d0.1": 16}
    assert received(profile, "MPI_Irecv", 0) == {"d0.1": 0, "d0.2": 12}
    assert calls(profile, "MPI_Wait", 0) == {"d0.2": 2}


def test_requests_that_share_a_handle(mpi: Mpi) -> None:
    profile = run(mpi, "shared")
    for rank in BOTH:
        waits = calls(profile, "MPI_Wait", rank)
        assert sum(waits.values()) == 4 + 1 + 2 + 1
        # one handle for two requests of two communicators: which one a call waits for nobody can tell
        unclear = waits.pop("{d0.1,d0.2}", 0)
        assert unclear <= 2
        assert 4 <= waits["d0.1"] <= 5
        assert 1 <= waits["d0.2"] <= 2
        assert waits["W0.0"] == 1
        assert set(waits) == {"W0.0", "d0.1", "d0.2"}
        assert calls(profile, "MPI_Waitall", rank) == {"d0.2": 1, "{d0.1,d0.2}": 1}
        assert sent(profile, "MPI_Isend", rank) == {"d0.1": 16, "d0.2": 0}
        assert received(profile, "MPI_Irecv", rank) == {"d0.2": 0}


def test_twenty_thousand_requests_at_once(mpi: Mpi) -> None:
    profile = run(mpi, "many")
    assert calls(profile, "MPI_Irecv", 0) == {"d0.1": 10000, "d0.2": 10000}
    assert received(profile, "MPI_Irecv", 0) == {"d0.1": 40000, "d0.2": 40000}
    assert calls(profile, "MPI_Wait", 0) == {"d0.1": 5000, "d0.2": 5000}
    assert calls(profile, "MPI_Waitall", 0) == {"{d0.1,d0.2}": 1}


def test_started_in_one_thread_completed_in_another(mpi: Mpi) -> None:
    profile = run(mpi, "threads")
    for rank in BOTH:
        assert calls(profile, "MPI_Wait", rank) == {"d0.1": 2000, "d0.2": 2000}
        assert received(profile, "MPI_Irecv", rank) == {
            "d0.1": 500 * 4 * (2 + 4 + 6 + 8),
            "d0.2": 500 * 4 * (1 + 3 + 5 + 7),
        }
    assert profile.rows("SELECT threads FROM rank") == [{"threads": 2}] * 2


def test_many_threads_meet_one_set(mpi: Mpi) -> None:
    profile = run(mpi, "sets")
    for rank in BOTH:
        assert calls(profile, "MPI_Waitall", rank) == {"{d0.1,d0.2}": 800}
        assert received(profile, "MPI_Irecv", rank) == {"d0.1": 3200, "d0.2": 3200}
    assert len(profile.comms("set")) == 1


def test_matched_probes(mpi: Mpi) -> None:
    profile = run(mpi, "matched")
    assert received(profile, "MPI_Mrecv", 0) == {"d0.1": 12}
    assert received(profile, "MPI_Imrecv", 0) in ({"d0.1": 16, "d0.2": 0}, {"d0.1": 16, "-": 0})
    assert received(profile, "MPI_Recv", 0) == {"d0.1": 20}
    assert calls(profile, "MPI_Probe", 0) == {"d0.1": 1}
    assert calls(profile, "MPI_Mprobe", 0) == {"d0.1": 1, "d0.2": 1}


def test_partitioned_messages_count_when_started_and_move_their_bytes_once(mpi: Mpi) -> None:
    profile = run(mpi, "partitioned")
    if mpi.family == "openmpi":
        return  # Open MPI 4 has none, and Open MPI 5 says it is MPI 3.1
    for rank in BOTH:
        # 8 partitions of 2 integers, 3 times; received in 4 partitions of 4
        assert sent(profile, "MPI_Psend_init", rank) == {"d0.1": 3 * 64}
        assert received(profile, "MPI_Precv_init", rank) == {"d0.1": 3 * 64}
        for op, times in {
            "Psend_init": 1,
            "Precv_init": 1,
            "Start": 6,
            "Pready": 3,
            "Pready_range": 3,
        }.items():
            assert calls(profile, f"MPI_{op}", rank) == {"d0.1": times}, op
        for op, times in {"Pready_list": 3, "Parrived": 3, "Waitall": 3, "Request_free": 2}.items():
            assert calls(profile, f"MPI_{op}", rank) == {"d0.1": times}, op


def test_persistent_collectives_move_their_bytes_each_time(mpi: Mpi) -> None:
    profile = run(mpi, "collectives")
    if mpi.family == "openmpi":
        return  # Open MPI 4 has none, and Open MPI 5 says it is MPI 3.1
    for rank in BOTH:
        assert calls(profile, "MPI_Startall", rank) == {"{W0.0,d0.1,d0.2}": 4}
        assert calls(profile, "MPI_Waitall", rank) == {"{W0.0,d0.1,d0.2}": 4}
        assert calls(profile, "MPI_Start", rank) == {"d0.1": 2}
        assert calls(profile, "MPI_Wait", rank) == {"d0.1": 2}
        assert calls(profile, "MPI_Barrier_init", rank) == {"W0.0": 1}
        assert sent(profile, "MPI_Allreduce_init", rank) == {"d0.1": 5 * 12}
        assert received(profile, "MPI_Allreduce_init", rank) == {"d0.1": 5 * 12}
        assert sent(profile, "MPI_Bcast_init", rank) == {"d0.2": 4 * 20 * rank}
        assert received(profile, "MPI_Bcast_init", rank) == {"d0.2": 4 * 20 * (1 - rank)}
        assert sent(profile, "MPI_Alltoallv_init", rank) == {"d0.1": 4 * (1 + 2)}
        assert received(profile, "MPI_Alltoallv_init", rank) == {"d0.1": 4 * 2 * (rank + 1)}


def test_one_buffer_that_is_sent_and_replaced(mpi: Mpi) -> None:
    profile = run(mpi, "replaced")
    for rank in BOTH:
        assert calls(profile, "MPI_Sendrecv_replace", rank) == {"d0.1": 2}
        assert sent(profile, "MPI_Sendrecv_replace", rank) == {"d0.1": 24 + (20 if rank == 0 else 0)}
        assert received(profile, "MPI_Sendrecv_replace", rank) == {"d0.1": 24 + (20 if rank == 1 else 0)}
        if mpi.name == "mpich":
            assert sent(profile, "MPI_Isendrecv", rank) == {"d0.1": 12}
            assert sent(profile, "MPI_Isendrecv_replace", rank) == {"d0.2": 16}
            assert calls(profile, "MPI_Waitall", rank) == {"{d0.1,d0.2}": 1}


def test_buffered_messages_and_looks_at_a_request(mpi: Mpi) -> None:
    profile = run(mpi, "buffered")
    for rank in BOTH:
        assert sent(profile, "MPI_Bsend", rank) == {"d0.1": 16}
        assert sent(profile, "MPI_Ibsend", rank) == {"d0.2": 20}
        assert received(profile, "MPI_Recv", rank) == {"d0.1": 16, "d0.2": 20}
        assert (
            calls(profile, "MPI_Buffer_attach", rank) == calls(profile, "MPI_Buffer_detach", rank) == {"-": 1}
        )
        assert calls(profile, "MPI_Request_get_status", rank) == {"d0.1": 3, "-": 1}
        assert received(profile, "MPI_Request_get_status", rank) == {"d0.1": 0, "-": 0}
        assert received(profile, "MPI_Irecv", rank) == {"d0.1": 28}


def test_one_call_completes_every_kind_of_request(mpi: Mpi) -> None:
    profile = run(mpi, "all_kinds")
    # the third dup is of the inactive request; the one after that, of MPI_COMM_SELF, has another name on each rank
    comms = {name: row["parent_name"] for name, row in profile.comms().items()}
    for rank in BOTH:
        (of_self,) = (name for name, parent in comms.items() if parent == f"S{rank}.0")
        (waited,) = calls(profile, "MPI_Waitall", rank).items()
        assert (set(waited[0].strip("{}").split(",")), waited[1]) == ({"W0.0", "d0.1", "d0.2", of_self}, 1)
        assert received(profile, "MPI_Irecv", rank) == {"d0.1": 8, "d0.2": 4}
        assert sent(profile, "MPI_Iallreduce", rank) == {"W0.0": 12}
        assert sent(profile, "MPI_Rput", rank) == {"d0.2": 16}
        assert sent(profile, "MPI_File_iwrite_at", rank) == {of_self: 20}
        assert received(profile, "MPI_Recv_init", rank) == {"d0.3": 0}
    assert profile.calls("MPI_Iprobe") == {}, "made by the library, in our callback"


def test_requests_outlive_their_communicator(mpi: Mpi) -> None:
    profile = run(mpi, "outlived")
    made = [name for name in profile.comms() if name not in ("W0.0", "d0.1", "d0.2")]
    assert made == [f"d0.{n}" for n in range(3, 9)]
    for rank in BOTH:
        assert calls(profile, "MPI_Waitall", rank) == dict.fromkeys(made, 1)
        bytes_of = {name: 4 if n % 2 == 0 else 8 for n, name in enumerate(made)}
        assert received(profile, "MPI_Irecv", rank) == sent(profile, "MPI_Issend", rank) == bytes_of


@pytest.mark.parametrize("mode", ["run", "preload"])
def test_the_application_sees_the_same_statuses_and_errors(mpi: Mpi, mode: str) -> None:
    program = mpi.compile("statuses.c")
    seen = []
    for how in ("off", mode):
        where = mpi.fresh("statuses")
        result = mpi.run(2, [program], mode=how, cwd=where)
        if how == "off":
            mpi.skip_if_broken(result)
        assert (result.rc, result.stdout) == (0, ""), result
        seen.append([(where / f"statuses.{rank}").read_text() for rank in BOTH])
    assert all(len(text.splitlines()) > 20 for text in seen[0])
    assert seen[0] == seen[1]
