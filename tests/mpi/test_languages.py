# SPDX-License-Identifier: Apache-2.0
"""One program in six languages and bindings: equal profiles, times and call sites aside.

What is compared are the classes p2p, collective, neighbor, rma, io, completion and comm, and the communicators.
Local calls (class other) differ: a binding may ask for ranks and sizes of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import PROGRAMS, Mpi
from launches import Result
from profile_rows import Count

# Some of what tour.c does, worked out by hand: with it equal profiles are also right ones.
EXPECTED = {
    Count("W0.0", "MPI_Allreduce", 3, 0, 30, 120, 120),
    Count("W0.0", "MPI_Allreduce", 4, 0, 1, 12, 12),  # MPI_IN_PLACE
    Count("s0.1", "MPI_Allreduce", 5, 1, 100, 1600, 1600),
    Count("s2.1", "MPI_Allreduce", 5, 3, 100, 1600, 1600),
    Count("W0.0", "MPI_Send", 5, 0, 1, 20, 0),
    Count("W0.0", "MPI_Send", -2, 0, 1, 0, 0),  # 36 bytes, to MPI_PROC_NULL
    Count("W0.0", "MPI_Ssend", 4, 2, 1, 8, 0),
    Count("W0.0", "MPI_Recv", 9, 0, 1, 0, 28),  # 7 of 64 integers came
    Count("W0.0", "MPI_Recv", 4, 1, 1, 0, 8),
    Count("W0.0", "MPI_Recv", 6, 1, 1, 0, 0),
    Count("W0.0", "MPI_Sendrecv", 5, 0, 1, 24, 0),
    Count("W0.0", "MPI_Sendrecv", 5, 3, 1, 0, 24),
    Count("s0.1", "MPI_Irecv", 6, 0, 6, 0, 40 + 24 + 12),
    Count("W0.0", "MPI_Irecv", 7, 0, 1, 0, 32),
    Count("s0.1", "MPI_Waitall", 0, 0, 1, 0, 0),
    Count("s0.1", "MPI_Wait", 0, 0, 3, 0, 0),
    Count("{W0.0,s0.1}", "MPI_Waitall", 0, 0, 1, 0, 0),
    Count("{W0.0,s2.1}", "MPI_Waitall", 0, 3, 1, 0, 0),
    Count("s2.1", "MPI_Iallreduce", 5, 2, 1, 20, 20),
    Count("W0.0", "MPI_Gather", 4, 0, 1, 8, 32),
    Count("W0.0", "MPI_Gather", 4, 3, 1, 8, 0),
    Count("W0.0", "MPI_Allgather", 4, 2, 1, 8, 32),
    Count("W0.0", "MPI_Reduce", 6, 1, 1, 48, 48),
    Count("W0.0", "MPI_Reduce", 6, 0, 1, 48, 0),
    Count("W0.0", "MPI_Scatter", 5, 0, 1, 64, 16),
    Count("W0.0", "MPI_Scatter", 5, 1, 1, 0, 16),
    Count("W0.0", "MPI_Alltoall", 5, 1, 1, 64, 64),
    Count("W0.0", "MPI_Gatherv", -1, 2, 1, 12, 40),
    Count("W0.0", "MPI_Alltoallv", -1, 2, 1, 40, 48),
    Count("d0.2", "MPI_Bcast", 7, 1, 1, 80, 0),
    Count("d0.2", "MPI_Bcast", 7, 0, 1, 0, 80),
    Count("d2.2", "MPI_Barrier", 0, 3, 1, 0, 0),
    Count("a0.3", "MPI_Sendrecv", 5, 0, 1, 16, 0),
    Count("a0.3", "MPI_Neighbor_allgather", 4, 0, 1, 8, 24),
    Count("S2.0", "MPI_Barrier", 0, 2, 1, 0, 0),
    Count("W0.0", "MPI_Put", 4, 1, 1, 8, 0),
    Count("W0.0", "MPI_Win_fence", 0, 1, 2, 0, 0),
    Count("s0.1", "MPI_File_write_at_all", 5, 0, 1, 16, 0),
    Count("s0.1", "MPI_File_read_at", 4, 1, 1, 0, 12),
}


def test_all_languages_give_the_same_profile(mpi: Mpi) -> None:
    reference = _finished(mpi.run(4, [mpi.compile("tour.c")]))
    counters, communicators = reference.open().shape()
    assert set(counters) >= EXPECTED, EXPECTED - set(counters)

    for language, start in _others(mpi).items():
        profile = _finished(start()).open()
        profile.check()
        their_counters, their_communicators = profile.shape()
        assert their_communicators == communicators, language
        assert _comparable(their_counters, language) ^ _comparable(counters, language) == set(), language


def test_mpi4py_beyond_arrays(mpi: Mpi) -> None:
    """Objects, callbacks in Python, requests and threads."""
    if mpi.family == "abi":
        pytest.skip("mpi4py's wheel has no build for the standard interface")
    result = mpi.run(2, [sys.executable, PROGRAMS / "features.py"], env=mpi4py_env(mpi))
    assert (result.rc, result.stdout) == (0, "features done\n"), result
    profile = result.open()
    profile.check()
    both = dict.fromkeys((0, 1), 5)
    assert profile.calls("MPI_Allreduce", "d0.1") == {"d0.1": both}
    assert profile.total("MPI_Allreduce", "d0.1") == (10, 160, 160)
    assert profile.calls("MPI_Barrier", "S%") == {}, "called by the operator, inside MPI_Allreduce"
    assert profile.calls("MPI_Mprobe") == {"d0.1": {1: 1}}
    # how long a pickle is Python knows; what one sends another one receives
    assert sum(profile.total(f"MPI_{op}")[2] for op in ("Recv", "Mrecv")) == profile.total("MPI_Send")[1] > 0
    assert profile.total("MPI_Send_init") == (2, 2 * 4 * 12, 0)
    assert profile.total("MPI_Recv_init") == (2, 0, 2 * 4 * 12)
    assert profile.calls("MPI_Startall") == profile.calls("MPI_Waitall") == {"d0.1": dict.fromkeys((0, 1), 4)}
    # d0.2 is what mpi4py reduces objects on
    assert profile.calls("MPI_Sendrecv") == {f"d0.{n}": dict.fromkeys((0, 1), 50) for n in (3, 4, 5)}
    assert profile.rows("SELECT threads FROM rank") == [{"threads": 4}] * 2


def _comparable(counters: list[Count], language: str) -> set[Count]:
    """Return the counters, for mpi4py without the bins of calls that may name MPI_PROC_NULL.

    mpi4py passes such calls on with no buffer and count 0, whatever the program gave it.
    """
    if "mpi4py" not in language:
        return set(counters)
    sums: dict[tuple[str, str, int, int], Count] = {}
    for count in counters:
        if count.op in ("MPI_Send", "MPI_Recv", "MPI_Sendrecv"):
            count = count._replace(bin=0)
        key = count[:4]
        old = sums.get(key, Count(*key, 0, 0, 0))
        sums[key] = Count(*key, *(a + b for a, b in zip(old[4:], count[4:])))
    return set(sums.values())


@pytest.mark.parametrize("binding", ["USE_MPI", "USE_MPI_F08", "USE_MPI_F08 LONG"])
def test_fortran_calls_behind_one_that_never_reaches_c(mpi: Mpi, binding: str) -> None:
    if "fortran" not in mpi.compilers:
        pytest.skip("this MPI library has no Fortran compiler")
    if "LONG" in binding and mpi.family == "openmpi":
        pytest.skip("Open MPI has no long forms")
    flags = ["-cpp", *(f"-D{word}" for word in binding.split()), "-w"]
    result = mpi.run(2, [mpi.compile("silent.F90", "fortran", flags=flags)])
    mpi.skip_if_broken(result)
    assert (result.rc, result.stdout.strip()) == (0, "silent done"), result
    profile = result.open()
    profile.check()
    both = {"W0.0": {0: 1, 1: 1}}
    assert profile.calls("MPI_Win_allocate") == profile.calls("MPI_Win_free") == both
    assert profile.calls("MPI_Put") == {"W0.0": {0: 5, 1: 5}}
    assert profile.total("MPI_Put") == (10, 40, 0)
    assert profile.calls("MPI_Win_fence") == {"W0.0": {0: 2, 1: 2}}
    assert profile.calls("MPI_Type_contiguous") == profile.calls("MPI_Type_free") == {"-": {0: 3, 1: 3}}


def _finished(result: Result) -> Result:
    assert (result.rc, result.stdout) == (0, "done 2\n"), result
    return result


def _others(mpi: Mpi) -> dict[str, Callable[[], Result]]:
    def fortran(binding: str) -> Callable[[], Result]:
        flags = ["-cpp", f"-D{binding}", "-fallow-argument-mismatch", "-w"]
        return lambda: mpi.run(4, [mpi.compile("tour.F90", "fortran", flags=flags)])

    others: dict[str, Callable[[], Result]] = {"C++": lambda: mpi.run(4, [mpi.compile("tour.cpp")])}
    if "fortran" in mpi.compilers:
        others["mpif.h"] = fortran("MPIF_H")
        others["use mpi"] = fortran("USE_MPI")
        others["use mpi_f08"] = fortran("USE_MPI_F08")
    if mpi.family != "abi":
        others["mpi4py wheel"] = lambda: mpi.run(
            4, [sys.executable, PROGRAMS / "tour.py"], env=mpi4py_env(mpi)
        )
    if mpi.name == "openmpi":
        others["mpi4py of Debian"] = lambda: mpi.run(4, ["/usr/bin/python3", PROGRAMS / "tour.py"])
    return others


def mpi4py_env(mpi: Mpi) -> dict[str, str]:
    """Make the mpi4py wheel load this MPI.

    Its MPICH build asks for libmpi.so.12, the name of the common ABI; Debian calls that library libmpich.so.12.
    """
    if mpi.family == "openmpi" or mpi.libs:
        return {"MPI4PY_MPIABI": mpi.family}
    names = mpi.workdir / "mpich-abi"
    if not names.exists():
        names.mkdir()
        (names / "libmpi.so.12").symlink_to(_mpich_library())
    return {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": str(names)}


def _mpich_library() -> Path:
    done = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        if line.split()[:1] == ["libmpich.so.12"]:
            return Path(line.split()[-1])
    pytest.fail("libmpich.so.12 is not installed")
