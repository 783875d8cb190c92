# SPDX-License-Identifier: Apache-2.0
"""What the samples of waiting cost: the programs of bench/apps with COMMLENS_WAITING=1, the default, and with 0.

    .venv/bin/python bench/waiting_cost.py [--rounds 30] [--mpi openmpi,mpich] [PROGRAM ...]

Both, and a run without commlens, follow each other in each round, in random order.  Prints how much longer the program takes
between MPI_Init and MPI_Finalize with samples, with the 95 % interval, and the same for MPI_Init and MPI_Finalize together.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.apps import PROGRAMS, build  # noqa: E402
from bench.run import BUILD, ENVIRONMENT  # noqa: E402

from commlens.base.interrupt import interruptible  # noqa: E402
from commlens.overhead.estimate import Estimate, estimate, relative, whole_rounds  # noqa: E402
from commlens.overhead.legs import commlens_tool, find_stopwatch, split  # noqa: E402
from commlens.overhead.measure import Run, rounds  # noqa: E402

RANKS = 2
WITH, WITHOUT = "with samples", "without samples"


def measure(mpi: str, name: str, number: int) -> list[dict[str, Run]]:
    """Return the runs of each round, by tool."""
    program = PROGRAMS[name]
    launch = split([f"mpirun.{mpi}", "-n", str(RANKS), str(build(program, mpi)), *map(str, program.usual)])
    tools = [commlens_tool(leg, {"COMMLENS_WAITING": value}) for leg, value in ((WITH, "1"), (WITHOUT, "0"))]
    return whole_rounds([run for run in rounds(tools, launch, find_stopwatch(), number, 1) if run.round > 0])


def text(found: Estimate, unit: str, scale: float) -> str:
    """Return an estimate with its interval."""
    return f"{scale * found.value:+8.2f} {unit} ({scale * found.low:+.2f} to {scale * found.high:+.2f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measures what the samples of waiting cost.")
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS), help="default: all of bench/apps")
    parser.add_argument("--rounds", type=int, default=30, help="default 30")
    parser.add_argument("--mpi", default="openmpi,mpich", help="which MPI libraries (default openmpi,mpich)")
    options = parser.parse_args()
    os.environ.update(ENVIRONMENT, PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}")
    generator = np.random.default_rng(1)
    print(f"{'MPI':8} {'program':14} {'net':>32} {'MPI_Init and MPI_Finalize':>34}")
    for mpi in options.mpi.split(","):
        for name in options.programs:
            found = measure(mpi, name, options.rounds)
            with_, without = ([one[leg].net_ns for one in found] for leg in (WITH, WITHOUT))
            net = relative(with_, without, generator)
            assert net is not None, "all runs took time"
            hook = estimate([float(one[WITH].hook_ns - one[WITHOUT].hook_ns) for one in found], generator)
            print(f"{mpi:8} {name:14} {text(net, '%', 100):>32} {text(hook, 'ms', 1e-6):>34}", flush=True)


if __name__ == "__main__":
    with interruptible():  # SIGTERM, too, removes the folder of the runs
        main()
