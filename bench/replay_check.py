# SPDX-License-Identifier: Apache-2.0
"""Compare the time of collectives in programs with that of their replay, with the library's own choice of algorithm.

    PYTHONPATH=python python bench/replay_check.py [--mpi openmpi] [--seconds 10]

Prints for each case of five programs of bench/apps the operation time per call in the profile with its interval, and the
median of the replay. Two ranks, so that each has a processor. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.apps import PROGRAMS  # noqa: E402
from bench.run import ENVIRONMENT, launch  # noqa: E402

from commlens.overhead.legs import split  # noqa: E402
from commlens.profile import open_profile  # noqa: E402
from commlens.tune.cases import read_cases  # noqa: E402
from commlens.tune.decide import round_medians  # noqa: E402
from commlens.tune.plan import Place, read_plan  # noqa: E402
from commlens.tune.replay import replay  # noqa: E402

NAMES = ("bcast_barrier", "fft", "sample_sort", "cg", "amr")
RANKS = 2


def interval(place: Place) -> str:
    """Return the operation time per call of a rank: estimate, and the interval of its waiting."""
    share = place.wait.share if place.wait else None
    each = place.time_ns / place.row["calls"] / 1000
    if share is None or share.low is None or share.high is None:
        return f"<= {each:.1f}"
    return f"{each * (1 - share.share):.1f} ({each * (1 - share.high):.1f} to {each * (1 - share.low):.1f})"


def check(name: str, mpi: str, runner: Path, seconds: float, folder: Path) -> None:
    """Print the lines of one program."""
    program = PROGRAMS[name]
    binary = folder / name
    subprocess.run([f"mpicc.{mpi}", "-O2", "-o", str(binary), str(program.source), "-lm"], check=True)
    profile = folder / f"{name}.db"
    launch(mpi, RANKS, [binary, *map(str, program.usual)], runner, profile)
    with open_profile(str(profile)) as connection:
        plan = read_plan(connection, (), ())
        cases = read_cases(connection, plan)
    words = split([f"mpirun.{mpi}", "-n", str(RANKS), str(binary)])
    found = replay(cases, words, folder / f"{name}.tune", budget_s=seconds, announce=False)
    medians = round_medians(found)
    for i, case in enumerate(found.cases):
        place = next(
            one
            for one in plan.worth
            if (one.row["family"], one.row["bin"]) == (case.family, case.bin)
            and one.row["operation"] == f"MPI_{case.collective.capitalize()}"
        )
        times = list(medians.get((i, 0), {}).values())
        replayed = f"{median(times) / 1000:.1f} of {len(times)} rounds" if times else "not measured"
        print(
            f"{name:14} {case.collective:10} {case.message_bytes:9,} B  run {interval(place)} us  replay {replayed}"
        )


def main() -> None:
    """Check the programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", default="openmpi", choices=("openmpi", "mpich"))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--runner", type=Path, default=ROOT / "build" / "release" / "bin" / "commlens-run")
    given = parser.parse_args()
    os.environ.update(ENVIRONMENT, MPICC=f"mpicc.{given.mpi}")
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            check(name, given.mpi, given.runner, given.seconds, Path(folder))


if __name__ == "__main__":
    main()
