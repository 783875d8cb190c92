# SPDX-License-Identifier: Apache-2.0
"""An mpi4py program: a periodic grid, its rows, halo exchange of objects and buffers, reductions, one window."""

from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
grid = world.Create_cart(MPI.Compute_dims(world.size, 2), periods=[True, False])
row = grid.Sub([False, True])
halves = world.Split(world.rank % 2, world.rank)

field = array("d", [float(grid.rank)]) * 500
halo = array("d", [0.0]) * 500
for step in range(50):
    for direction in (0, 1):
        source, dest = grid.Shift(direction, 1)
        grid.Sendrecv(field, dest, step, halo, source, step)
    requests = [row.isend({"step": step, "from": row.rank}, peer, 9) for peer in range(row.size)]
    messages = [row.recv(source=peer, tag=9) for peer in range(row.size)]
    MPI.Request.waitall(requests)
    assert [message["from"] for message in messages] == list(range(row.size))
    field[step] = row.allreduce(field[0], MPI.SUM)
    halves.bcast(step, 0)

window = MPI.Win.Allocate(8, comm=world)
window.Fence()
window.Accumulate([array("d", [1.0]), MPI.DOUBLE], 0)
window.Fence()
total = array("d", [0.0])
window.Get([total, MPI.DOUBLE], 0)
window.Fence()
window.Free()
sums = world.gather(sum(field), 0)
if world.rank == 0:
    print("sums", sums)
halves.Free()
