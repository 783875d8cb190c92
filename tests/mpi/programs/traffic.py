# SPDX-License-Identifier: Apache-2.0
"""traffic.py PATTERN: the same messages as traffic.c, ring or sparse, with mpi4py."""

import sys

from mpi4py import MPI

LARGEST = 4096


def messages_of(pattern: str, s: int, d: int, n: int) -> int:
    if pattern == "ring":
        return 3 if d == (s + 1) % n else 0
    mixed = (s * 31 + d * 17) * 2654435761 & 0xFFFFFFFF
    return 1 + s * d % 4 if mixed >> 28 < 3 else 0


def talk(pattern: str, comm: MPI.Comm) -> None:
    me, n = comm.rank, comm.size
    out, into = bytearray(LARGEST), [bytearray(LARGEST) for _ in range(64)]
    requests = []
    for s in range(n):
        for k in range(messages_of(pattern, s, me, n)):
            source = MPI.ANY_SOURCE if (s + k) % 2 == 0 else s
            requests.append(comm.Irecv([into[k], MPI.CHAR], source, 4 * s + k))
    for d in range(n):
        for k in range(messages_of(pattern, me, d, n)):
            bytes_out = (7 * me + 13 * d + 101 * k) % 3000
            requests.append(comm.Isend([out, bytes_out, MPI.CHAR], d, 4 * me + k))
    MPI.Request.Waitall(requests)


world = MPI.COMM_WORLD
columns = 1
while (columns + 1) ** 2 <= world.size:
    columns += 1
comms = [
    world,
    world.Split(world.rank // columns, world.rank),
    world.Split(world.rank % columns, world.rank),
    world.Split(0, -world.rank),
]
for comm in comms:
    talk(sys.argv[1], comm)
    if comm != world:
        comm.Free()
