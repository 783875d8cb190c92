# SPDX-License-Identifier: Apache-2.0
"""More than 2^31 elements with mpi4py, on one rank: memory that is reserved and never touched."""

import mmap

from mpi4py import MPI

FIVE = 5_000_000_000
NO_RESERVE = 0x4000
memory = mmap.mmap(-1, FIVE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
MPI.COMM_SELF.Bcast([memory, FIVE, MPI.BYTE], 0)
MPI.COMM_SELF.Allgather(MPI.IN_PLACE, [memory, FIVE, MPI.BYTE])
print("done")
