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


def launch(
    mpi: str, ranks: int, argv: Sequence[str | Path], runner: Path | None, profile: Path, **options: str
) -> str:
    """Run `argv` on `ranks` processes, behind `runner` if there is one, with COMMLENS_ `options`; return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMLENS_")}
    environment.update(ENVIRONMENT)
    environment.update({f"COMMLENS_{name}": value for name, value in options.items()})
    command = [f"mpirun.{mpi}", "-n", str(ranks)]
    if runner is not None:
        environment.update(COMMLENS_OUTPUT=str(profile), COMMLENS_QUIET="1")
        command.append(str(runner))
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


def measure_calls(
    mpi: str, ranks: int, rounds: int, program: Path, scratch: Path, runners: dict[str, Path]
) -> list[str]:
    """Run calls.c without and with commlens in turns, with each build of `runners`; return the lines of the table."""
    alone = "alone"
    legs: list[tuple[str, Path | None]] = [(alone, None), *runners.items()]
    taken: dict[str, dict[Row, list[float]]] = {name: defaultdict(list) for name, _ in legs}
    cost: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number in range(rounds):
        # Who comes first changes from round to round: none always meets the warmer machine.
        for name, runner in legs[number % len(legs) :] + legs[: number % len(legs)]:
            profile = scratch / f"{mpi}-{ranks}-{number}-{name}.db"
            for row, ns in rows_of(launch(mpi, ranks, [program], runner, profile)).items():
                taken[name][row].append(ns)
            for what, us in own_cost(profile).items() if runner else ():
                cost[name, what].append(us)
    lines = []
    for row, baseline in taken[alone].items():
        for name in runners:
            under = taken[name][row]
            added = [b - a for a, b in zip(baseline, under)]
            ratio = statistics.median(under) / statistics.median(baseline)
            lines.append(
                f"{mpi:8} {row[0]:30} {row[1]:5} {name:5} {statistics.median(baseline):9.1f} "
                f"{statistics.median(under):9.1f} {ratio:6.2f}   {spread(added, 'ns')}"
            )
    for (name, what), values in cost.items():
        place = {"init": "inside MPI_Init", "collect": "inside MPI_Finalize"}[what]
        text = f"commlens {place}, {ranks} rank(s)"
        lines.append(f"{mpi:8} {text:36} {name:5} {'':28}  {spread(values, 'us')}")
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
    return f"{'':8} {'start of /bin/true, us':30} {'':5} {'':5} {without:9.1f} {under:9.1f} {under / without:6.2f}   {spread(added, 'us')}"


def measure_annotations(scratch: Path) -> list[str]:
    """Return the lines of annotate.cpp: calls of the interface in a program without the profiler."""
    program = scratch / "annotate"
    libraries = [f"-L{BUILD / 'lib'}", "-lcommlens-api", f"-Wl,-rpath,{BUILD / 'lib'}"]
    include = f"-I{HERE.parent / 'include'}"
    command = [
        "c++",
        "-std=c++17",
        "-O2",
        include,
        str(HERE / "annotate.cpp"),
        "-o",
        str(program),
        *libraries,
    ]
    subprocess.run(command, check=True)
    output = subprocess.run([program], capture_output=True, text=True, timeout=300, check=True).stdout
    return ["", "calls of commlens.h without the profiler, each", *output.splitlines()]


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
    parser.add_argument("--rounds", type=int, default=12, help="runs without and with commlens (default 12)")
    parser.add_argument(
        "--before",
        type=Path,
        help="another build to take in turns with this one: build/release of an older checkout",
    )
    parser.add_argument("--mpi", default="openmpi,mpich", help="which MPI libraries (default openmpi,mpich)")
    parser.add_argument("--save", action="store_true", help="also write bench/results/DATE-MACHINE.txt")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: at least 2, the spread needs them")
    runners = {"now": RUNNER}
    if options.before:
        runners["before"] = options.before.resolve() / "bin" / "commlens-run"
    for runner in runners.values():
        if not runner.exists():
            sys.exit(f"{runner} is missing: run make build first")

    lines = [
        f"commlens bench, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        machine(),
        f"{options.rounds} interleaved rounds; added: median, quartiles and extremes of the differences within rounds",
        "",
        f"{'MPI':8} {'row':30} {'comms':>5} {'build':5} {'alone ns':>9} {'under ns':>9} {'ratio':>6}   {'added':>11}",
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
                table = measure_calls(mpi, ranks, options.rounds, program, scratch, runners)
                print("\n".join(table), flush=True)
                lines += table
        spawn = scratch / "spawn"
        subprocess.run(["cc", "-O2", str(HERE / "spawn.c"), "-o", str(spawn)], check=True)
        lines.append(measure_start(200, spawn))
        print(lines[-1], flush=True)
        table = measure_annotations(scratch)
        print("\n".join(table))
        lines += table
    if options.save:
        results = HERE / "results"
        results.mkdir(exist_ok=True)
        target = results / f"{datetime.date.today():%Y-%m-%d}-{platform.node()}.txt"
        target.write_text("\n".join(lines) + "\n")
        print(f"saved as {target}")


if __name__ == "__main__":
    main()
