# SPDX-License-Identifier: Apache-2.0
"""A program that marks regions with the Python package nvtx."""

import sys

import nvtx
from mpi4py import MPI


@nvtx.annotate("step")
def step() -> None:
    MPI.COMM_WORLD.Barrier()
    with nvtx.annotate("exchange", domain="halo"):
        MPI.COMM_WORLD.Barrier()


nvtx.push_range("main")
for _ in range(4):
    step()
nvtx.pop_range()
span = nvtx.start_range("ahead")
nvtx.end_range(span)
sys.stdout.write("done\n")  # at once, so that no other rank comes between
