# SPDX-License-Identifier: Apache-2.0
"""What mpi4py programs do beyond sending arrays, on 2 ranks: objects, Python callbacks, threads, requests."""

import threading
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
other = 1 - rank
comm = world.Dup()

# Python objects are pickled: their messages are found with a matched probe
if rank == 0:
    comm.send({"seven": [7] * 10}, dest=1, tag=1)
else:
    assert comm.recv(source=0, tag=1) == {"seven": [7] * 10}
assert comm.allreduce(rank + 1) == 3


# an operator in Python, which calls MPI
def add(one, two, _datatype):
    """Add integers."""
    MPI.COMM_SELF.Barrier()
    into = memoryview(two).cast("i")
    for i, value in enumerate(memoryview(one).cast("i")):
        into[i] += value


operator = MPI.Op.Create(add, commute=True)
result = array("i", [0] * 4)
for _ in range(5):
    comm.Allreduce([array("i", [1, 2, 3, 4]), MPI.INT], [result, MPI.INT], operator)
operator.Free()
assert list(result) == [2, 4, 6, 8]

# persistent and generalised requests
out, into = array("i", [rank] * 3), array("i", [-1] * 3)
requests = [comm.Send_init(out, other, 2), comm.Recv_init(into, other, 2)]
for _ in range(4):
    MPI.Prequest.Startall(requests)
    MPI.Request.Waitall(requests)
for request in requests:
    request.Free()
grequest = MPI.Grequest.Start(lambda _status: None, lambda: None, lambda _completed: None)
grequest.Complete()
grequest.Wait()


# threads of Python, each with a communicator
def talk(mine):
    """Exchange messages with the thread of the same number."""
    buffer = array("i", [0])
    for i in range(50):
        mine.Sendrecv(array("i", [i]), other, 0, buffer, other, 0)
        assert buffer[0] == i


parts = [comm.Dup() for _ in range(3)]
threads = [threading.Thread(target=talk, args=(part,)) for part in parts]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for part in parts:
    part.Free()
comm.Free()
if rank == 0:
    print("features done")
