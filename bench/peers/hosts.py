# SPDX-License-Identifier: Apache-2.0
"""Jobs on four simulated hosts: network namespaces on this machine, which Open MPI reaches as others, over TCP.

MPICH is left out: MPICH 4.0.2 mostly hangs in its own MPI_Finalize there, without any tool (tools/hosts.sh).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.peers import places
from bench.shaped_hosts import COUNT, OPEN_MPI, Hosts, default, enter_namespaces, openmpi

UNLIMITED = 0.0
MPI = "openmpi"
_running: list[Hosts] = []


@contextmanager
def started(counts: Sequence[int]) -> Iterator[None]:
    """Start hosts if some jobs need them; the command then starts again, in namespaces of its own."""
    if max(counts) == 1:
        yield
        return
    os.environ["PYTHONPATH"] = os.pathsep.join([str(places.ROOT), os.environ.get("PYTHONPATH", "")])
    sys.argv[:1] = ["-m", "bench.peers"]  # as it was started, for the same modules
    enter_namespaces()
    with Hosts(places.HOME / "hosts", UNLIMITED, COUNT) as hosts:
        _running.append(hosts)
        try:
            yield
        finally:
            _running.clear()


def launcher(mpi: str, ranks: int, hosts: int) -> list[str]:
    """Return the start of a command line."""
    if hosts == 1:
        return [f"mpirun.{mpi}", "-n", str(ranks)]
    (running,) = _running
    return [
        *openmpi(running, ranks, default(running, -(-ranks // hosts))), "-x", "OMP_NUM_THREADS",
        *running.preload(),
    ]  # fmt: skip


def on_first(words: Sequence[str], folder: Path, hosts: int) -> list[str]:
    """Return the command line that runs a command in a folder, on the first host if there are several."""
    return list(words) if hosts == 1 else _running[0].on(_running[0].names[0], words, folder)


def settings(hosts: int) -> dict[str, str]:
    """Return the environment of a launcher, beside that of one host."""
    return {} if hosts == 1 else dict(OPEN_MPI)
