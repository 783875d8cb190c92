# SPDX-License-Identifier: Apache-2.0
"""Measures what commlens_reorder() saves, and costs, in a stencil that turns half-way, on four hosts with slow links.

    .venv/bin/python bench/shaped_reorder.py [--rounds 10] [--rate 10] [--page]
    .venv/bin/python bench/shaped_reorder.py --render

bench/turning.c and its like in Fortran and Python run without and with calls, in turns. --page writes
docs/evidence/reorder.md, its picture and the times of all runs, --render page and picture again from these. As root; ten
minutes. MPICH 5 and the wheel of mpi4py are those of the tests (tools/mpis.sh).
"""

from __future__ import annotations

import csv
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from bench.shaped_hosts import OPEN_MPI, Hosts, default, machine, openmpi, options, started  # noqa: E402
from bench.shaped_placement import around  # noqa: E402
from bench.shaped_reorder_page import PICTURE, Case, Run, page, picture  # noqa: E402

FOLDER = ROOT / "build" / "reordering"
PAGE = ROOT / "docs" / "evidence" / "reorder.md"
RAW = PAGE.with_suffix(".csv")
MPICH = ROOT / "build" / "mpis" / "mpich5"
RUNNER = ROOT / "build" / "release" / "bin" / "commlens-run"
API = ROOT / "build" / "release" / "lib"
RANKS, PER_HOST = 16, 4

CASES = (
    Case("C, Open MPI", 2048, 40, 5),
    Case("C, MPICH", 2048, 40, 5),
    Case("Fortran, Open MPI", 2048, 40, 5),
    Case("mpi4py, Open MPI", 2048, 40, 5),
    Case("C, Open MPI, short messages", 16, 40, 1),
)


@dataclass(frozen=True)
class Program:
    """How to start a program: its command, and whether MPICH runs it."""

    command: tuple[str | Path, ...]
    is_mpich: bool = False


PROGRAMS = {
    "C, Open MPI": Program((FOLDER / "turning.openmpi",)),
    "C, MPICH": Program((FOLDER / "turning.mpich",), is_mpich=True),
    "Fortran, Open MPI": Program((FOLDER / "turning.fortran",)),
    "mpi4py, Open MPI": Program((sys.executable, ROOT / "bench" / "turning.py")),
    "C, Open MPI, short messages": Program((FOLDER / "turning.openmpi",)),
}


def compile_all() -> None:
    """Compile the programs, and what lets waiting ranks of MPICH sleep."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    link = [f"-L{API}", f"-Wl,-rpath,{API}", "-lcommlens-api"]
    include, source = f"-I{ROOT}/include", ROOT / "bench" / "turning.c"
    mpich = [f"-I{MPICH}/include", f"-L{MPICH}/lib", f"-Wl,-rpath,{MPICH}/lib"]
    fortran: list[str | Path] = ["-cpp", f"-I{ROOT}/fortran", f"-J{FOLDER}", ROOT / "bench" / "turning.F90"]
    sleep = ROOT / "tests" / "mpi" / "programs" / "sleep_when_idle.c"
    commands: list[list[str | Path]] = [
        ["mpicc.openmpi", "-O2", include, source, *link, "-o", FOLDER / "turning.openmpi"],
        ["cc", "-O2", include, *mpich, source, *link, "-lmpi", "-o", FOLDER / "turning.mpich"],
        ["mpifort.openmpi", "-O2", *fortran, *link, "-o", FOLDER / "turning.fortran"],
        ["cc", "-O2", "-shared", "-fPIC", sleep, "-o", FOLDER / "sleep_when_idle.so"],
    ]
    for command in commands:
        subprocess.run(command, check=True)


def launch(case: Case, every: int, hosts: Hosts) -> Run:
    """Run a program under commlens, and return its times."""
    program = PROGRAMS[case.name]
    variables = {
        "COMMLENS_OUTPUT": f"{FOLDER}/profile.db",
        "PYTHONPATH": f"{ROOT}/python",
        "MPI4PY_MPIABI": "openmpi",
    }
    command = [RUNNER, *program.command, str(case.numbers), str(case.steps), str(every)]
    if program.is_mpich:
        where = ",".join(f"{name}:{PER_HOST}" for name in hosts.names)
        start: list[str | Path] = [MPICH / "bin" / "mpirun", "-n", str(RANKS), "-launcher", "ssh"]
        start += ["-launcher-exec", hosts.remote_shell, "-hosts", where]
        variables["LD_PRELOAD"] = f"{FOLDER}/sleep_when_idle.so"
        given = [word for name, value in variables.items() for word in ("-genv", name, value)]
    else:
        start = [*openmpi(hosts, RANKS, default(hosts, PER_HOST)), *hosts.preload()]
        given = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
    said = hosts.run([*start, *given, *command], {} if program.is_mpich else OPEN_MPI, timeout=120)
    return parsed(said.splitlines())


def parsed(lines: Iterable[str]) -> Run:
    """Return the times that a program prints."""
    run = Run()
    for line in lines:
        words = line.split()
        if words[:1] == ["step"]:
            run.steps.append(float(words[2]))
        elif words[:1] == ["call"]:
            run.calls[int(words[1])] = (int(words[2]), float(words[3]), float(words[4]))
    return run


def measure(cases: Sequence[Case], hosts: Hosts, rounds: int, save: Callable[[], None]) -> None:
    """Run all programs without and with calls, in turns, and save the times after each round."""
    for number in range(rounds):
        for case in cases:
            for every in random.Random(f"{number} {case.name}").sample((0, case.every), 2):
                (case.calling if every else case.alone).append(launch(case, every, hosts))
        save()
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)


def save_raw(cases: Sequence[Case], rate: float, facts: str) -> None:
    """Write the times of all runs: one line a run, of its steps, and one of its calls."""
    with RAW.open("w", encoding="ascii", newline="") as file:
        file.write(f"# {facts}\n# {rate:g} Mbit/s\n# round, case, with calls, what, milliseconds\n")
        rows = csv.writer(file, lineterminator="\n")
        for case in cases:
            for calls, runs in ((0, case.alone), (1, case.calling)):
                for number, run in enumerate(runs):
                    first = [number, case.name, calls]
                    rows.writerow([*first, "steps", *(f"{1e3 * value:.3f}" for value in run.steps)])
                    for after, (outcome, called, moving) in run.calls.items():
                        times = [f"{1e3 * called:.3f}", f"{1e3 * moving:.3f}"]
                        rows.writerow([*first, "call", after, outcome, *times])


def read_raw() -> tuple[tuple[Case, ...], float, str]:
    """Return what save_raw() wrote."""
    cases = {case.name: case for case in CASES}
    with RAW.open(encoding="ascii", newline="") as file:
        facts = file.readline()[2:].strip()
        rate = float(file.readline().split()[1])
        file.readline()
        for _, name, calls, what, *values in csv.reader(file):
            runs = cases[name].calling if calls == "1" else cases[name].alone
            if what == "steps":
                runs.append(Run([1e-3 * float(value) for value in values]))
            else:
                after, outcome, called, moving = values
                runs[-1].calls[int(after)] = (int(outcome), 1e-3 * float(called), 1e-3 * float(moving))
    return tuple(cases.values()), rate, facts


def write(cases: Sequence[Case], rate: float, facts: str) -> None:
    """Write the page and its picture."""
    PAGE.write_text(page(cases, rate, facts, around), encoding="utf-8")
    (PAGE.parent / PICTURE).write_text(picture(cases), encoding="utf-8")


def main() -> None:
    """Measure, and print or write the page."""
    wanted = options(__doc__, rounds=10)
    if wanted.render:
        write(*read_raw())
        return
    with started(FOLDER, wanted.rate, compile_all) as hosts:
        facts = machine()
        measure(
            CASES,
            hosts,
            wanted.rounds,
            lambda: save_raw(CASES, wanted.rate, facts) if wanted.page else None,
        )
    if wanted.page:
        write(CASES, wanted.rate, facts)
    else:
        print(page(CASES, wanted.rate, facts, around))


if __name__ == "__main__":
    main()
