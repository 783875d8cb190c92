# SPDX-License-Identifier: Apache-2.0
"""One-sided communication and MPI-IO: every call, and the communicator the window or the file was made from."""

from __future__ import annotations

from collections import Counter

import pytest
from harness import Mpi
from profile_rows import Profile

BOTH = (0, 1)


def totals(profile: Profile, rank: int, *classes: str) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Return (calls, bytes sent, bytes received) by communicator and procedure, bins added up."""
    found: dict[tuple[str, str], Counter[int]] = {}
    for count in profile.counts(classes=classes):
        if count.rank == rank:
            sums = found.setdefault((count.comm, count.op.removeprefix("MPI_")), Counter())
            sums.update({0: count.calls, 1: count.sent, 2: count.received})
    return {key: (sums[0], sums[1], sums[2]) for key, sums in found.items()}


# What one call of active() and passive() in programs/windows.c does, in integers of 4 bytes.
ACTIVE = {
    "Win_fence": (2, 0, 0),
    "Put": (2, 12, 0),  # the second goes to MPI_PROC_NULL
    "Win_post": (1, 0, 0),
    "Win_start": (1, 0, 0),
    "Accumulate": (1, 8, 0),
    "Get": (1, 0, 24),
    "Win_complete": (1, 0, 0),
    "Win_wait": (1, 0, 0),
    "Win_free": (1, 0, 0),
}
PASSIVE = {
    "Win_lock": (1, 0, 0),
    "Put": (1, 8, 0),
    "Win_flush": (1, 0, 0),
    "Win_flush_local": (1, 0, 0),
    "Win_unlock": (1, 0, 0),
    "Win_lock_all": (1, 0, 0),
    "Fetch_and_op": (2, 4, 8),  # the second sends nothing: MPI_NO_OP
    "Compare_and_swap": (1, 8, 4),
    "Get_accumulate": (2, 16, 32),
    "Win_flush_all": (1, 0, 0),
    "Win_flush_local_all": (1, 0, 0),
    "Rput": (1, 4, 0),
    "Rget": (1, 0, 8),
    "Raccumulate": (1, 12, 0),
    "Rget_accumulate": (1, 16, 16),
    "Win_sync": (1, 0, 0),
    "Win_unlock_all": (1, 0, 0),
    "Win_free": (1, 0, 0),
}


def test_one_sided_calls_count_under_the_communicator_of_their_window(mpi: Mpi) -> None:
    plain, under = mpi.pair(2, [mpi.compile("windows.c")])
    mpi.skip_if_broken(plain)
    assert (under.rc, under.lines) == (plain.rc, plain.lines) == (0, ["rank 0: 6", "rank 1: 6"])
    profile = under.open()
    profile.check()
    both = {op: tuple(a + b for a, b in zip(ACTIVE.get(op, (0, 0, 0)), PASSIVE.get(op, (0, 0, 0))))
            for op in {*ACTIVE, *PASSIVE}}  # fmt: skip
    expected: dict[str, dict[str, tuple[int, ...]]] = {
        "d0.1": {**both, "Win_free": (1, 0, 0), "Win_create": (1, 0, 0)},
        "d0.2": {**ACTIVE, "Win_allocate": (1, 0, 0)},
        "d0.3": {**PASSIVE, "Win_allocate_shared": (1, 0, 0)},
        "d0.4": {
            "Win_create_dynamic": (1, 0, 0),
            "Win_attach": (1, 0, 0),
            "Win_fence": (2, 0, 0),
            "Put": (1, 28, 0),
            "Win_detach": (1, 0, 0),
            "Win_free": (1, 0, 0),
        },
    }
    flat = {(comm, op): counts for comm, ops in expected.items() for op, counts in ops.items()}
    for rank in BOTH:
        assert totals(profile, rank, "rma") == flat
        waits = totals(profile, rank, "completion")
        assert waits == {("d0.1", "Waitall"): (1, 0, 0), ("d0.3", "Waitall"): (1, 0, 0)}


@pytest.mark.parametrize("io", ["ompio", "romio"])
def test_file_calls_count_under_the_communicator_of_their_file(mpi: Mpi, io: str) -> None:
    """Whatever MPI calls the library itself makes on the way: ROMIO makes hundreds."""
    if mpi.name == "mpich" and io == "ompio":
        pytest.skip("MPICH has ROMIO only")
    where = [mpi.fresh("files") for _ in range(2)]
    program = mpi.compile("files.c")
    component = {"romio": "romio321" if mpi.release.startswith("4.") else "romio341"}.get(io, io)
    env = {
        "OMPI_MCA_io": component,
        "OMPI_MCA_fcoll": "individual",
    }  # the default of Open MPI 4.1, "vulcan", corrupts its heap
    plain = mpi.run(2, [program], env, mode="off", cwd=where[0])
    mpi.skip_if_broken(plain)
    under = mpi.run(2, [program], env, cwd=where[1])
    assert (under.rc, under.lines) == (plain.rc, plain.lines)
    assert plain.rc == 0
    profile = under.open()
    profile.check()
    for rank in BOTH:
        found = totals(profile, rank, "io")
        of_file = {op: counts for (comm, op), counts in found.items() if comm == "d0.1"}
        assert of_file == {
            "File_open": (1, 0, 0),
            "File_write_at": (1, 40, 0),
            "File_sync": (2, 0, 0),
            "File_read_at": (1, 0, 20),
            "File_iread_at": (2, 0, 76),
            "File_read": (1, 0, 16),
            "File_seek": (3, 0, 0),
            "File_read_all_begin": (1, 0, 40),
            "File_read_all_end": (1, 0, 0),
            "File_set_view": (2, 0, 0),
            "File_write_all": (1, 24, 0),
            "File_read_all": (1, 0, 24),
            "File_seek_shared": (2, 0, 0),
            "File_write_shared": (1, 12, 0),
            "File_read_ordered": (1, 0, 8),
            "File_write_ordered": (1, 16, 0),
            "File_close": (1, 0, 0),
        }
        of_world = {op: counts for (comm, op), counts in found.items() if comm == "W0.0"}
        assert of_world == {
            "File_open": (2, 0, 0),  # the first failed
            "File_write_at": (1, 0, 0),
            "File_read_at": (2, 0, 32),
            "File_close": (1, 0, 0),
        }
        assert found.get(("-", "File_delete")) == ((2, 0, 0) if rank == 0 else None)
        assert totals(profile, rank, "completion") == {("d0.1", "Waitall"): (1, 0, 0)}


@pytest.mark.parametrize("handler", [[], ["handler"]], ids=["plain", "error_handler"])
def test_calls_that_romio_makes_take_no_system_call(mpi: Mpi, handler: list[str]) -> None:
    """Also where an error handler might have left the call around them."""
    program = mpi.compile("nested_files.c")
    env = {"OMPI_MCA_io": "^ompio"}
    where = mpi.fresh("file")
    result = mpi.run(1, [program, where / "file", *handler], env, cwd=where)
    if "no filter" in result.lines:
        pytest.skip("system calls cannot be filtered here")
    assert result.rc == 0, result
    assert result.lines == ["after one more: 1", "process_vm_readv: 0"]
    profile = result.open()
    profile.check()
    assert totals(profile, 0, "io")["S0.0", "File_write_at"] == (1010, 1010 * 64, 0)
    assert totals(profile, 0, "p2p") == {}
