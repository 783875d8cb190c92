# SPDX-License-Identifier: Apache-2.0
"""Does `commlens overhead` find what tools cost?  Tools whose cost is known, or known to differ.

    .venv/bin/python bench/overhead_check.py               # two minutes
    .venv/bin/python bench/overhead_check.py --runs 40 --mpi mpich

bench/tools has them: one waits a microsecond in each call, one counts as profilers of an afternoon do.  Prints what each adds
to a call, by the method and as it should be.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.run import ENVIRONMENT, HERE

sys.path.insert(0, str(HERE.parent / "python"))
import os

from commlens.base.interrupt import interruptible
from commlens.base.progress import announced
from commlens.overhead.estimate import Estimate, costs
from commlens.overhead.legs import commlens_tool, find_stopwatch, parse_tool, split
from commlens.overhead.measure import rounds

CALLS = 1_000_000
WAITS = 1000  # ns


def per_call(added: Estimate) -> str:
    """Return nanoseconds that are added to a call, with their interval."""
    return f"{added.value / CALLS:8.1f} ns   {added.low / CALLS:8.1f} .. {added.high / CALLS:.1f}"


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpi", default="openmpi", choices=["openmpi", "mpich"])
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shared = ["-O2", "-w", "-shared", "-fPIC"]
        for compiler, source, target, flags in (
            ("mpicxx", "counter.cpp", "counter.so", shared),
            ("mpicc", "waits.c", "waits.so", shared),
            ("mpicc", "allreduces.c", "allreduces", ["-O2", "-w"]),
        ):
            command = [f"{compiler}.{given.mpi}", *flags, str(HERE / "tools" / source)]
            subprocess.run([*command, "-o", folder / target], check=True)
        tools = [
            commlens_tool(),
            parse_tool(f"counter={folder}/counter.so"),
            parse_tool(f"waits={folder}/waits.so,WAITS={WAITS}"),
        ]
        launch = split([f"mpirun.{given.mpi}", "-n", "1", str(folder / "allreduces"), str(CALLS)])
        number = (given.runs + 1) * (len(tools) + 1)
        found = costs(
            list(
                announced(
                    rounds(tools, launch, find_stopwatch(), given.runs, 1), number, len(tools) + 1, "runs"
                )
            )
        )
    expected = {"waits": f"{WAITS} ns, and what two looks at the clock take", "counter": "more than commlens"}
    print(
        f"{given.mpi}: {CALLS:,} MPI_Allreduce of 8 bytes on 16 communicators in turns, {given.runs} rounds"
    )
    for cost in found:
        if cost.net is not None:
            print(
                f"{cost.tool:10} {per_call(cost.net)}   p = {cost.net.p:.2g}   {expected.get(cost.tool, '')}"
            )


if __name__ == "__main__":
    with interruptible():  # SIGTERM, too, removes the folder of the runs
        main()
