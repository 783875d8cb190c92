# SPDX-License-Identifier: Apache-2.0
"""Files that several ranks write together, through HDF5 and MPI-IO; prints what is in them."""

import sys

import h5py
import numpy
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size

with h5py.File("together.h5", "w", driver="mpio", comm=WORLD) as file:
    rows = file.create_dataset("rows", (4 * SIZE, 50), dtype="f8")
    rows[4 * RANK : 4 * RANK + 4, :] = numpy.arange(200).reshape(4, 50) + 1000 * RANK
    columns = file.create_dataset("columns", (30, SIZE), dtype="i4", chunks=(10, 1))
    with columns.collective:
        columns[:, RANK] = numpy.full(30, RANK)
    for other in range(SIZE):
        file.create_group(f"of rank {other}").attrs["rank"] = other
    file.atomic = True
    file.flush()
WORLD.Barrier()
half = WORLD.Split(RANK % 2, RANK)
with h5py.File("together.h5", "r", driver="mpio", comm=half) as file:
    print(file["rows"][:].sum(), file["rows"][4 * RANK, 7], file["columns"][3].tolist(), sorted(file))
half.Free()
try:
    h5py.File("not there.h5", "r", driver="mpio", comm=WORLD)
except OSError as error:
    print(type(error).__name__)
sys.exit(RANK == SIZE - 1 and 3)
