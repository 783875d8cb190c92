# SPDX-License-Identifier: Apache-2.0
"""Has MPI called before and after the end of the interpreter, from the same function of the library that is named."""

import ctypes
import sys

import mpi4py

mpi4py.rc.finalize = False
from mpi4py import MPI  # noqa: E402

library = ctypes.CDLL(sys.argv[1])


def outer():
    MPI.COMM_SELF.Barrier()
    library.call_at_exit()


outer()
