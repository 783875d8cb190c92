# SPDX-License-Identifier: Apache-2.0
"""A better order of the ranks, asked for from Python: r and r + size/2 exchange; prints as reorder.c does."""

import socket
from array import array

from mpi4py import MPI

import commlens

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
mine, theirs = array("d", [rank] * 1000), array("d", [0] * 1000)
partner = (rank + size // 2) % size
for _ in range(100):
    world.Sendrecv(mine, partner, 0, theirs, partner, 0)
grid = world.Create_cart([size])
for old in (world, grid):
    made = commlens.reorder(old)
    assert type(made) is type(old)
    outcome = MPI.Comm.Compare(old, made) == MPI.SIMILAR
    host = socket.gethostname()
    hosts = made.allgather(host)
    new_rank = made.Get_rank()
    here = hosts[(new_rank + size // 2) % size] == host
    if old is world:
        text = f"0 {outcome:d} {host}: {rank} -> {new_rank}, partners on my host {here:d} of 1\n"
        print(text, end="", flush=True)
    elif made.Get_topo() != (*grid.Get_topo()[:2], made.Get_coords(new_rank)):
        print("wrong grid")
    made.Free()
