# SPDX-License-Identifier: Apache-2.0
"""The stencil of bench/turning.c in Python: the same arguments, the same messages, the same lines."""

import sys

import numpy as np
from mpi4py import MPI

import commlens

WIDTH = 4


class Stencil:
    """The waves of one rank."""

    def __init__(self, numbers: int) -> None:
        self.comm = MPI.COMM_WORLD.Dup()
        self.numbers = numbers
        self.rank = self.comm.Get_rank()
        self.waves = [self.values(self.rank), self.values(self.rank)]
        self.moved = [0, 0]

    def values(self, origin: int) -> np.ndarray:
        """Return the wave that began on a rank."""
        return origin * 1000.0 + np.arange(self.numbers) % 1000

    def neighbour(self, right: int, down: int) -> int:
        """Return a rank of the torus."""
        height = self.comm.Get_size() // WIDTH
        return (self.rank // WIDTH + down) % height * WIDTH + (self.rank % WIDTH + right) % WIDTH

    def step(self, right: int, down: int) -> None:
        """Move the waves by one rank, and exchange the halos."""
        around = [self.neighbour(*way) for way in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        flow = [self.neighbour(right, down), self.neighbour(-right, -down)]
        arriving = [np.empty(self.numbers) for _ in range(2)]
        halos = [np.empty(self.numbers // 16) for _ in range(4)]
        border = self.values(self.rank)[: self.numbers // 16]
        requests = [self.comm.Irecv(arriving[w], flow[1 - w], w) for w in range(2)]
        requests += [self.comm.Isend(self.waves[w], flow[w], w) for w in range(2)]
        requests += [self.comm.Irecv(halos[i], around[i], 2 + (i ^ 1)) for i in range(4)]
        requests += [self.comm.Isend(border, around[i], 2 + i) for i in range(4)]
        MPI.Request.Waitall(requests)
        self.moved = [self.moved[0] + right, self.moved[1] + down]
        self.waves = arriving
        for wave, back in zip(self.waves, (-1, 1), strict=True):
            self.check(wave, self.neighbour(back * self.moved[0], back * self.moved[1]))
        for halo, origin in zip(halos, around, strict=True):
            self.check(halo, origin)

    def check(self, found: np.ndarray, origin: int) -> None:
        """End the job if numbers come from another rank."""
        if not np.array_equal(found, self.values(origin)[: found.size]):
            print("turning: wrong numbers", file=sys.stderr)
            MPI.COMM_WORLD.Abort(1)

    def reorder(self) -> list[float]:
        """Return the outcome, and the seconds of the call and of moving the data."""
        begin = MPI.Wtime()
        made = commlens.reorder(self.comm)
        called = MPI.Wtime()
        is_other = MPI.Comm.Compare(self.comm, made) == MPI.SIMILAR
        self.comm.Free()
        self.comm, old = made, self.rank
        if is_other:
            commlens.pause()
            self.rank = made.Get_rank()
            source = made.allgather(old).index(self.rank)
            arriving = [np.empty(self.numbers) for _ in range(2)]
            for w in range(2):
                made.Sendrecv(self.waves[w], old, w, arriving[w], source, w)
            self.waves = arriving
            commlens.resume()
        return [float(is_other), called - begin, MPI.Wtime() - called]


def main() -> None:
    """Run the stencil, and print the times."""
    numbers, steps, every = map(int, sys.argv[1:])
    stencil = Stencil(numbers)
    seconds, calls = np.zeros(steps), []
    stencil.comm.Barrier()
    for step in range(steps):
        begin = MPI.Wtime()
        stencil.step(0 if step < steps // 2 else 1, 1)
        seconds[step] = MPI.Wtime() - begin
        if every and (step + 1) % every == 0 and step + 1 < steps:
            calls.append(stencil.reorder())
    world = MPI.COMM_WORLD
    mean, mean_calls = np.zeros(steps), np.zeros((len(calls), 3))
    world.Reduce(seconds, mean)
    world.Reduce(np.array(calls).reshape(-1, 3), mean_calls)
    if world.Get_rank() == 0:
        ranks = world.Get_size()
        for step in range(steps):
            print(f"step {step + 1} {mean[step] / ranks:.6f}")
        for call, (outcome, called, moving) in enumerate(mean_calls / ranks, 1):
            print(f"call {call * every} {outcome:.0f} {called:.6f} {moving:.6f}")
    stencil.comm.Free()


main()
