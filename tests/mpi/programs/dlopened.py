# SPDX-License-Identifier: Apache-2.0
"""MPI without linking it, as Julia and others do: `dlopened.py LIBRARY local|global`, dlopen and dlsym by ctypes."""

import ctypes
import os
import sys

library = ctypes.CDLL(sys.argv[1], {"local": os.RTLD_LOCAL, "global": os.RTLD_GLOBAL}[sys.argv[2]])
if hasattr(library, "ompi_mpi_comm_world"):
    world = ctypes.byref(ctypes.c_char.in_dll(library, "ompi_mpi_comm_world"))
    integer = ctypes.byref(ctypes.c_char.in_dll(library, "ompi_mpi_int"))
    total = ctypes.byref(ctypes.c_char.in_dll(library, "ompi_mpi_op_sum"))
else:
    world, integer, total = 0x44000000, 0x4C000405, 0x58000003
one, all_ones, rank = ctypes.c_int(1), ctypes.c_int(), ctypes.c_int()
library.MPI_Init(None, None)
library.MPI_Comm_rank(world, ctypes.byref(rank))
for _ in range(7):
    library.MPI_Allreduce(ctypes.byref(one), ctypes.byref(all_ones), 1, integer, total, world)
if rank.value == 0:
    print("sum", all_ones.value)
library.MPI_Finalize()
