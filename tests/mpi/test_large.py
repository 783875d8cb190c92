# SPDX-License-Identifier: Apache-2.0
"""More than 2^31 elements and bytes, in the plain and the large-count form, from C and from mpi4py."""

from __future__ import annotations

import sys

from harness import PROGRAMS, Mpi
from profile_rows import Count
from test_languages import mpi4py_env

GIB = 1 << 30
MESSAGE = 33 * 64 * 1024 * 1024  # just above 2^31
FIVE = 5_000_000_000


def test_messages_beyond_2_31(mpi: Mpi) -> None:
    plain, under = mpi.pair(1, [mpi.compile("large.c")], timeout=120)
    mpi.skip_if_broken(plain)
    assert (plain.rc, plain.lines[0]) == (0, f"{MESSAGE} 7 9" if mpi.name == "openmpi" else f"{MESSAGE}")
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout)
    profile = under.open()
    profile.check()
    forms = 2 if mpi.name == "mpich" else 1  # the large-count form is the same operation
    expected = {
        # bin k holds 2^(k-1) <= size < 2^k
        Count("S0.0", "MPI_Irecv", 32, 0, forms, 0, forms * MESSAGE),
        Count("S0.0", "MPI_Send", 32, 0, forms, forms * MESSAGE, 0),
        Count("S0.0", "MPI_Send", -2, 0, forms, 0, 0),  # 3 GiB and, in the large form, 40 GB to MPI_PROC_NULL
        Count("S0.0", "MPI_Recv", 32, 0, 1, 0, 0),
        Count("S0.0", "MPI_Bcast", 33, 0, forms, 5 * GIB + (forms - 1) * FIVE, 0),
        Count("S0.0", "MPI_Bcast", 61, 0, 1, 1 << 60, 0),
        Count("S0.0", "MPI_Allreduce", 33, 0, 1, 4 * (2**31 - 1), 4 * (2**31 - 1)),
        Count("S0.0", "MPI_Wait", 0, 0, forms, 0, 0),
    }
    if mpi.name == "mpich":
        expected |= {
            Count("S0.0", "MPI_Reduce", 35, 0, 1, 4 * FIVE, 4 * FIVE),
            Count("S0.0", "MPI_Allgatherv", -1, 0, 1, FIVE, FIVE),
        }
    assert set(profile.counts(classes=("p2p", "collective", "completion"))) == expected


def test_mpi4py_takes_large_counts_by_itself(mpi: Mpi) -> None:
    plain, under = mpi.pair(1, [sys.executable, PROGRAMS / "large.py"], env=mpi4py_env(mpi), timeout=120)
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout)
    if mpi.name == "openmpi":
        assert plain.rc != 0, "Open MPI 4 refuses what mpi4py makes of such a count"
        return
    assert (under.rc, under.stdout) == (0, "done\n"), under
    profile = under.open()
    profile.check()
    assert set(profile.counts(classes=("p2p", "collective"))) == {
        Count("S0.0", "MPI_Bcast", 33, 0, 1, FIVE, 0),
        Count("S0.0", "MPI_Allgather", 33, 0, 1, FIVE, FIVE),
    }
