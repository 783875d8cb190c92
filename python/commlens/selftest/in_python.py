# SPDX-License-Identifier: Apache-2.0
"""Does what selftest.c does, by mpi4py, where there is no compiler.

mpirun -n 4 python -m commlens.selftest.in_python [killed]
"""

from __future__ import annotations

import os
import signal
import sys
import time
from array import array

from mpi4py import MPI

from commlens.annotate import region
from commlens.selftest import known

WORLD = MPI.COMM_WORLD
ME, ALL = WORLD.Get_rank(), WORLD.Get_size()


class Results:
    """What the calls returned: how many are wrong, and their sum."""

    def __init__(self) -> None:
        self.wrong, self.total = 0, 0

    def expect(self, found: int, right: int) -> None:
        """Count one result."""
        self.total += found
        self.wrong += found != right


def ring(results: Results) -> None:
    """Send around the ring of all processes."""
    to, source = (ME + 1) % ALL, (ME - 1) % ALL
    sent, received = bytearray([97 + ME % 26]) * known.MESSAGE, bytearray(known.MESSAGE)
    for i in range(known.MESSAGES):
        request = WORLD.Isend([sent, MPI.BYTE], to, i)
        WORLD.Recv([received, MPI.BYTE], source, i)
        request.Wait()
        results.expect(received[-1], 97 + source % 26)


def sums(results: Results) -> None:
    """Add numbers of all processes."""
    for i in range(known.SUMS):
        mine, total = array("i", [i]), array("i", [0])
        WORLD.Allreduce([mine, MPI.INT], [total, MPI.INT], MPI.SUM)
        results.expect(total[0], i * ALL)
    for _ in range(known.LATER_SUMS):
        one, total_of_ones = array("d", [1]), array("d", [0])
        WORLD.Iallreduce([one, MPI.DOUBLE], [total_of_ones, MPI.DOUBLE], MPI.SUM).Wait()
        results.expect(int(total_of_ones[0]), ALL)


def parts(results: Results) -> None:
    """Broadcast among the processes of even rank, and among the others."""
    part = WORLD.Split(ME % 2, ME)
    part.Set_name(known.PART)
    numbers = array("d", [0] * known.NUMBERS)
    for i in range(known.BROADCASTS):
        numbers[-1] = i if ME < 2 else -1
        part.Bcast([numbers, MPI.DOUBLE], 0)
        results.expect(int(numbers[-1]), i)
    part.Free()


def duplicates() -> None:
    """Make communicators that live for one barrier."""
    for _ in range(known.DUPLICATES):
        duplicate = WORLD.Dup()
        duplicate.Barrier()
        duplicate.Free()


def gathers(results: Results) -> None:
    """Collect three numbers of each process at the last one."""
    mine, got = array("i", [ME] * 3), array("i", [0] * 3 * ALL)
    for _ in range(known.GATHERS):
        WORLD.Gather([mine, 3, MPI.INT], [got, 3, MPI.INT] if ME == ALL - 1 else None, ALL - 1)
        if ME == ALL - 1:
            results.expect(got[3 * ALL - 1], ALL - 1)


def main() -> None:
    """Make the calls; process 0 prints one line at the end."""
    begin = time.monotonic()
    results = Results()
    with region(known.REGION):
        ring(results)
    if sys.argv[1:] == ["killed"]:
        WORLD.Barrier()
        if ME == ALL - 1:
            os.kill(os.getpid(), signal.SIGKILL)
    sums(results)
    parts(results)
    duplicates()
    gathers(results)
    seconds = time.monotonic() - begin
    mine, sums_of_all = array("q", [results.wrong, results.total]), array("q", [0, 0])
    WORLD.Reduce([mine, MPI.LONG_LONG], [sums_of_all, MPI.LONG_LONG], MPI.SUM, 0)
    if ME == 0:
        wrong, total = sums_of_all
        line = f"self-test: {ALL} processes, {wrong} wrong results, sum {total}, {seconds:.9f} seconds\n"
        sys.stdout.write(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
