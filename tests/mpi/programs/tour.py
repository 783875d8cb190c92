# SPDX-License-Identifier: Apache-2.0
"""The tour of tour.c with mpi4py."""

from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
ints = array("i", range(rank, rank + 64))
more = array("i", ints)
reals = array("d", [rank] * 16)
sums = array("d", reals)
right, left = (rank + 1) % size, (rank - 1) % size


def part(buffer, count, start=0):
    """Return a view of `count` elements."""
    return memoryview(buffer)[start : start + count]


for _ in range(30):
    world.Allreduce(part(ints, 1), part(more, 1), MPI.SUM)
half = world.Split(1 if rank < size // 2 else 0, rank)
for _ in range(100):
    half.Allreduce(part(reals, 2), part(sums, 2), MPI.SUM)
half_rank = half.Get_rank()
partner = 1 - half_rank

if rank % 2 == 0:
    world.Send(part(ints, 5), right, 3)
    world.Recv(more, left, 4, MPI.Status())
    world.Ssend(part(ints, 2), right, 5)
else:
    world.Recv(more, left, 3)
    world.Send(part(ints, 7), right, 4)
    world.Recv(part(more, 2))
above = rank + 1 if rank + 1 < size else MPI.PROC_NULL
below = rank - 1 if rank > 0 else MPI.PROC_NULL
world.Sendrecv(part(reals, 3), above, 6, sums, below, 6)
world.Send(part(ints, 9), MPI.PROC_NULL, 7)
world.Recv(part(more, 9), MPI.PROC_NULL, 7)

receives, sends = [], []
for i in range(4):
    receives.append(half.Irecv(part(more, 8, 8 * i), partner, i))
    sends.append(half.Isend(part(ints, i + 1), partner, i))
MPI.Request.Waitall(receives + sends)
requests = [half.Irecv(part(more, 8), partner, 8), half.Isend(part(ints, 6), partner, 8)]
requests[0].Wait(MPI.Status())
requests[1].Wait()
requests = [
    half.Irecv(part(more, 8), partner, 9),
    world.Irecv(part(sums, 8), left, 9),
    half.Isend(part(ints, 3), partner, 9),
    world.Isend(part(reals, 4), right, 9),
]
MPI.Request.Waitall(requests, [MPI.Status() for _ in requests])
half.Iallreduce(part(ints, 5), part(more, 5), MPI.MAX).Wait()

world.Allreduce(MPI.IN_PLACE, part(more, 3), MPI.SUM)
if rank == 0:
    world.Gather(MPI.IN_PLACE, part(more, 8), 0)
else:
    world.Gather(part(ints, 2), None, 0)
world.Allgather(MPI.IN_PLACE, part(more, 8))
if rank == 1:
    world.Reduce(MPI.IN_PLACE, part(sums, 6), MPI.SUM, 1)
else:
    world.Reduce(part(reals, 6), None, MPI.SUM, 1)
if rank == 0:
    world.Scatter(part(ints, 16), MPI.IN_PLACE, 0)
else:
    world.Scatter(None, part(more, 4), 0)
world.Alltoall(MPI.IN_PLACE, part(more, 16))

counts, offsets = [1, 2, 3, 4], [0, 4, 8, 12]
world.Gatherv(part(ints, rank + 1), [more, counts, offsets, MPI.INT] if rank == 2 else None, 2)
world.Alltoallv([ints, counts, offsets, MPI.INT], [more, [rank + 1] * 4, offsets, MPI.INT])

copy = half.Dup()
copy.Set_name("copy of the half")
copy.Bcast(part(reals, 10), 1)
copy.Barrier()
copy.Free()
grid = world.Create_cart([2, 2], [True, False], False)
source, destination = grid.Shift(1, 1)
grid.Sendrecv(part(ints, 4), destination, 1, part(more, 4), source, 1)
grid.Neighbor_allgather(part(ints, 2), part(more, 8))
grid.Free()
MPI.COMM_SELF.Barrier()

window = MPI.Win.Create(more, 1, MPI.INFO_NULL, world)
window.Fence()
window.Put(part(ints, 2), right)
window.Fence()
window.Free()
file = MPI.File.Open(half, "tour.low" if rank < size // 2 else "tour.high", MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(16 * half_rank, part(ints, 4))
file.Sync()
file.Read_at(16 * half_rank, part(more, 3))
file.Close()
half.Free()
if rank == 0:
    print("done", more[0] + more[2])
