# SPDX-License-Identifier: Apache-2.0
"""Measure what commlens costs: per call, at the start of a program, in MPI_Init and MPI_Finalize.

See bench/README.md for the method.  Nothing is asserted: times on a shared machine say what they say.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "release"
RUNNER = BUILD / "bin" / "commlens-run"

# Root may run, binding is ours (calls.c pins itself), and messages between processes of this machine use memory.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # Open MPI 4
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # Open MPI 5
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader",
}

Row = tuple[str, int]
"""What is measured, and over how many communicators in turn."""


def launch(mpi: str, ranks: int, argv: Sequence[str | Path], profile: Path | None) -> str:
    """Run `argv` on `ranks` processes, under commlens if `profile` says where its profile goes; return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMLENS_")}
    environment.update(ENVIRONMENT)
    command = [f"mpirun.{mpi}", "-n", str(ranks)]
    if profile is not None:
        environment.update(COMMLENS_OUTPUT=str(profile), COMMLENS_QUIET="1")
        command.append(str(RUNNER))
    command += map(str, argv)
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def rows_of(output: str) -> dict[Row, float]:
    """Return nanoseconds per call from the output of calls.c."""
    found: dict[Row, float] = {}
    for line in output.splitlines():
        name, communicators, ns = line.split("|")
        found[name, int(communicators)] = float(ns)
    return found


def own_cost(profile: Path) -> dict[str, float]:
    """Return what the profile says commlens itself cost: the slowest rank, microseconds."""
    with sqlite3.connect(profile) as db:
        rows = db.execute(
            "SELECT what, MAX(ns) FROM overhead WHERE what IN ('init', 'collect') GROUP BY what"
        )
        return {what: ns / 1000 for what, ns in rows}


def spread(values: Sequence[float], unit: str) -> str:
    """Return median, quartiles and extremes as text."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:8.1f} {unit}   quartiles {low:.1f} .. {high:.1f}   all {min(values):.1f} .. {max(values):.1f}"


def measure_calls(mpi: str, ranks: int, pairs: int, program: Path, scratch: Path) -> list[str]:
    """Run calls.c without and with commlens in turns; return the lines of the table."""
    without: dict[Row, list[float]] = defaultdict(list)
    under: dict[Row, list[float]] = defaultdict(list)
    cost: dict[str, list[float]] = defaultdict(list)
    for pair in range(pairs):
        profile = scratch / f"{mpi}-{ranks}-{pair}.db"
        # Who comes first changes from pair to pair: neither always meets the warmer machine.
        for tool in (False, True) if pair % 2 == 0 else (True, False):
            output = launch(mpi, ranks, [program], profile if tool else None)
            for row, ns in rows_of(output).items():
                (under if tool else without)[row].append(ns)
        for what, us in own_cost(profile).items():
            cost[what].append(us)
    lines = []
    for row, baseline in without.items():
        added = [b - a for a, b in zip(baseline, under[row])]
        ratio = statistics.median(under[row]) / statistics.median(baseline)
        lines.append(
            f"{mpi:8} {row[0]:30} {row[1]:5} {statistics.median(baseline):9.1f} {statistics.median(under[row]):9.1f} "
            f"{ratio:6.2f}   {spread(added, 'ns')}"
        )
    for what, values in cost.items():
        name = {"init": "inside MPI_Init", "collect": "inside MPI_Finalize"}[what]
        lines.append(f"{mpi:8} {f'commlens {name}, {ranks} rank(s)':63} {'':7}  {spread(values, 'us')}")
    return lines


def measure_start(starts: int, program: Path) -> str:
    """Return the line for what commlens-run adds to the start of a program."""
    true = shutil.which("true") or "/bin/true"
    output = subprocess.run(
        [program, str(starts), RUNNER, true], capture_output=True, text=True, timeout=300, check=True
    ).stdout
    pairs = [tuple(map(int, line.split())) for line in output.splitlines()]
    without, under = (statistics.median(pair[i] for pair in pairs) / 1000 for i in (0, 1))
    added = [(b - a) / 1000 for a, b in pairs]
    return f"{'':8} {'start of /bin/true, us':30} {'':5} {without:9.1f} {under:9.1f} {under / without:6.2f}   {spread(added, 'us')}"


def machine() -> str:
    """Return what the numbers were taken on."""
    cpu = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{cpu}, {len(os.sched_getaffinity(0))} cores, {platform.system()} {platform.release()}, load {load}"
    )


def main() -> None:
    """Measure and print; with --save also write bench/results/."""
    parser = argparse.ArgumentParser(
        description="Measure what commlens costs, against no tool, in interleaved pairs."
    )
    parser.add_argument("--pairs", type=int, default=12, help="runs without and with commlens (default 12)")
    parser.add_argument("--mpi", default="openmpi,mpich", help="which MPI libraries (default openmpi,mpich)")
    parser.add_argument("--save", action="store_true", help="also write bench/results/DATE-MACHINE.txt")
    options = parser.parse_args()
    if options.pairs < 2:
        parser.error("--pairs: at least 2, the spread needs them")
    if not RUNNER.exists():
        sys.exit(f"{RUNNER} is missing: run make build first")

    lines = [
        f"commlens bench, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        machine(),
        f"{options.pairs} interleaved pairs a row; added: median, quartiles and extremes of the paired differences",
        "",
        f"{'MPI':8} {'row':30} {'comms':>5} {'alone ns':>9} {'under ns':>9} {'ratio':>6}   {'added':>11}",
    ]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory(prefix="commlens-bench-") as name:
        scratch = Path(name)
        for mpi in options.mpi.split(","):
            program = scratch / f"calls-{mpi}"
            subprocess.run(
                [f"mpicc.{mpi}", "-O2", "-w", str(HERE / "calls.c"), "-o", str(program)], check=True
            )
            for ranks in (1, 2):
                table = measure_calls(mpi, ranks, options.pairs, program, scratch)
                print("\n".join(table), flush=True)
                lines += table
        spawn = scratch / "spawn"
        subprocess.run(["cc", "-O2", str(HERE / "spawn.c"), "-o", str(spawn)], check=True)
        lines.append(measure_start(200, spawn))
        print(lines[-1])
    if options.save:
        results = HERE / "results"
        results.mkdir(exist_ok=True)
        target = results / f"{datetime.date.today():%Y-%m-%d}-{platform.node()}.txt"
        target.write_text("\n".join(lines) + "\n")
        print(f"saved as {target}")


if __name__ == "__main__":
    main()
