# SPDX-License-Identifier: Apache-2.0
"""Reads a watch from Python: each rank sends two messages of three integers to the next one."""

from array import array

from mpi4py import MPI

import commlens

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
mine, theirs = array("i", [rank] * 3), array("i", [0] * 3)
watch = commlens.watch(comm)
with watch:
    for _ in range(2):
        comm.Sendrecv(mine, (rank + 1) % size, 0, theirs, (rank - 1) % size, 0)
copy = watch.snapshot()
watch.reset()
for what, asked in (("sent", copy), ("reset", watch)):
    said = " ".join(f"{n}/{m}" for n, m in zip(*asked.read()))
    print(f"{what} {rank}: {said}\n", end="", flush=True)
