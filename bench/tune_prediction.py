# SPDX-License-Identifier: Apache-2.0
"""Compare the gain that `commlens tune` predicts with that of runs, for a library that is slow in one algorithm.

    PYTHONPATH=python python bench/tune_prediction.py [--microseconds 8000] [--pairs 10] [--budget 20]

The library and the program are those of tests/mpi/test_tune.py: Open MPI's own choice for two processes sleeps in each
MPI_Alltoall. One run is profiled and replayed, and rules are written. Then the program runs without and with the rules,
in turns. Prints the predicted saving, the measured one with its 95 % interval, and their ratio. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.run import ENVIRONMENT, launch  # noqa: E402

from commlens.overhead.estimate import estimate  # noqa: E402
from commlens.overhead.legs import split  # noqa: E402
from commlens.profile import open_profile  # noqa: E402
from commlens.tune.cases import read_cases  # noqa: E402
from commlens.tune.decide import compared, decide  # noqa: E402
from commlens.tune.plan import read_plan  # noqa: E402
from commlens.tune.replay import replay  # noqa: E402
from commlens.tune.steps import make_rules, store_rules  # noqa: E402
from commlens.tune.steps_text import predicted_ns  # noqa: E402

PROGRAMS = ROOT / "tests" / "mpi" / "programs"
MPI = "openmpi"
RANKS = 2
CALL = "MPI_Alltoall"

TIME_SQL = """\
SELECT SUM(part.time_ns) FROM key_total AS part JOIN key ON key.id = part.key JOIN op ON op.id = key.op
 WHERE op.name = ?"""


def time_of_run(program: Path, runner: Path, profile: Path, variables: dict[str, str]) -> int:
    """Run the program with some variables; return the time in the slow call, sum over the ranks."""
    os.environ.update(variables)
    profile.unlink(missing_ok=True)  # else the profile gets another name
    launch(MPI, RANKS, [program], runner, profile)
    for name in variables:
        del os.environ[name]
    with open_profile(str(profile)) as connection:
        return int(connection.execute(TIME_SQL, (CALL,)).fetchone()[0])


def prediction(profile: Path, program: Path, folder: Path, budget: float) -> tuple[float, dict[str, str]]:
    """Replay, write rules; return the predicted saving and the variables that use them."""
    with open_profile(str(profile)) as connection:
        plan = read_plan(connection, (), (CALL,))
        cases = read_cases(connection, plan)
    words = split([f"mpirun.{MPI}", "-n", str(RANKS), str(program)])
    measured = replay(cases, words, folder, budget_s=budget, announce=False)
    choices = decide(measured, compared(measured))
    with open_profile(str(profile)) as connection:
        rules = make_rules(connection, choices, plan.library)
    store_rules(rules, "", folder)
    for choice in choices:
        print(
            f"{CALL}: {choice.candidate.name}, {choice.change:+.1%} ({choice.low:+.1%} to {choice.high:+.1%})"
        )
    variables = {
        name: value.replace("{folder}", str(folder.absolute())) for name, value in rules.variables.items()
    }
    return predicted_ns(plan, choices, measured.cases), variables


def main() -> None:
    """Predict, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--microseconds", type=int, default=8000, help="that each slow call sleeps")
    parser.add_argument("--pairs", type=int, default=10, help="runs without and with the rules; at least 6")
    parser.add_argument("--budget", type=float, default=20.0, help="of the replay, in seconds")
    parser.add_argument("--runner", type=Path, default=ROOT / "build" / "release" / "bin" / "commlens-run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        slow, program, profile = (folder / name for name in ("slow.so", "tune", "profile.db"))
        compiler = [f"mpicc.{MPI}", "-O2"]
        subprocess.run(
            [*compiler, "-shared", "-fPIC", PROGRAMS / "slow_algorithm.c", "-o", slow, "-ldl"], check=True
        )
        subprocess.run([*compiler, PROGRAMS / "tune.c", "-o", program], check=True)
        os.environ.update(ENVIRONMENT, MPICC=compiler[0], SLOW_MICROSECONDS=str(given.microseconds))
        os.environ["LD_PRELOAD"] = str(slow)
        time_of_run(program, given.runner, profile, {})
        saving, rules = prediction(profile, program, folder / "profile.tune", given.budget)
        saved = []
        for _ in range(given.pairs):
            before, after = (
                time_of_run(program, given.runner, profile, variables) for variables in ({}, rules)
            )
            saved.append(before - after)
    found = estimate(saved, np.random.default_rng(1))
    interval = f"{found.low / 1e6:.1f} to {found.high / 1e6:.1f} ms"
    print(f"predicted saving {saving / 1e6:.1f} ms, sum over the ranks")
    print(f"measured saving  {found.value / 1e6:.1f} ms (95 % interval {interval}, {given.pairs} pairs)")
    print(f"measured / predicted {found.value / saving:.3f}" if saving else "nothing was predicted")


if __name__ == "__main__":
    main()
