# SPDX-License-Identifier: Apache-2.0
"""Daemon threads call MPI until the interpreter ends, which frees their frames, and MPI is finalized at exit."""

import threading
import time

import mpi4py

mpi4py.rc.thread_level = "multiple"
from mpi4py import MPI  # noqa: E402


def forever(depth=0):
    if depth < 20:
        forever(depth + 1)
    while True:
        MPI.COMM_SELF.Iprobe()
        MPI.COMM_SELF.Iprobe()


for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
