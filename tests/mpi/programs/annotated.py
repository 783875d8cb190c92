# SPDX-License-Identifier: Apache-2.0
"""What annotated.c does, in Python; commlens is imported before MPI is loaded."""

import commlens

cells = commlens.metric("cells", unit="1")

from mpi4py import MPI  # noqa: E402

rank = MPI.COMM_WORLD.rank


@commlens.region("exchange")
def exchange() -> None:
    """Meet all other ranks."""
    with commlens.region("comm"):
        MPI.COMM_WORLD.Barrier()


for _ in range(2):
    with commlens.region("main"):
        commlens.tag("kind", "COMP")
        for step in commlens.loop("steps", range(3), each=True):
            exchange()
            if rank % 2 == 1:
                with commlens.region("update"):
                    cells.record(10 * step + rank)
