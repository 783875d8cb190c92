# SPDX-License-Identifier: Apache-2.0
"""Measures what the advice of `commlens place` saves on four hosts with slow links, and what was predicted.

    .venv/bin/python bench/shaped_placement.py [--rounds 20] [--rate 10] [--page]
    .venv/bin/python bench/shaped_placement.py --render

Two programs run with their ranks shuffled, as the launcher places them, and as `commlens place` advises, in turns. --page
writes docs/evidence/placement.md and the times of all runs beside it, --render the page again from these. As root; a
quarter of an hour.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import numpy as np  # noqa: E402
from bench.shaped_hosts import (  # noqa: E402
    COUNT,
    OPEN_MPI,
    Hosts,
    default,
    machine,
    openmpi,
    options,
    seq,
    started,
)

from commlens.matrix import selected  # noqa: E402
from commlens.matrix.query import read_matrix  # noqa: E402
from commlens.overhead.estimate import Estimate, estimate  # noqa: E402
from commlens.profile import open_profile  # noqa: E402

FOLDER = ROOT / "build" / "placement"
PAGE = ROOT / "docs" / "evidence" / "placement.md"
RAW = PAGE.with_suffix(".csv")
PLACEMENTS = ("shuffled", "default", "advised")
SEED = 1
LINK = (str(1 << 20), "3")  # bytes and times of the measurement of a link


@dataclass(frozen=True)
class Program:
    """A program: its source, arguments, ranks, and the steps of a run."""

    name: str
    source: str
    arguments: tuple[str, ...]
    ranks: int
    steps: int
    what: str

    @property
    def file(self) -> Path:
        """The compiled program."""
        return FOLDER / self.name

    @property
    def command(self) -> list[str | Path]:
        """Program and arguments."""
        return [self.file, *self.arguments]


PROGRAMS = (
    Program(
        "plane",
        "bench/plane.c",
        ("32", "512", "6"),
        16,
        6,
        "halo exchange on a 4x4 grid of ranks, 128 KiB to each neighbour",
    ),
    Program(
        "fft", "bench/apps/fft.c", ("64", "2"), 8, 2, "FFT of 64 x 64 x 64 points on a 2x4 grid of ranks"
    ),
)


@dataclass
class Case:
    """What is known of a program: hosts of the ranks, bytes over the busiest link in a step, seconds of a step."""

    program: Program
    where: dict[str, list[str]] = field(default_factory=dict)
    bytes: dict[str, float] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in PLACEMENTS})


def compile_all() -> None:
    """Compile the programs."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    sources = [(program.source, program.file) for program in PROGRAMS]
    for source, file in [*sources, ("bench/link.c", FOLDER / "link")]:
        subprocess.run(["mpicc.openmpi", "-O2", ROOT / source, "-o", file, "-lm"], check=True)


def commlens(*arguments: str | Path) -> str:
    """Run the command and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "commlens", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def busiest(profile: Path, where: Sequence[str], names: Sequence[str]) -> float:
    """Return the bytes over the busiest link, in its busier direction, with the ranks on these hosts."""
    with open_profile(str(profile)) as connection:
        pairs = read_matrix(connection, selected(connection, "all", (), (), (), ())).all
    host = np.array([names.index(name) for name in where])
    source, destination = host[pairs.source], host[pairs.destination]
    apart = source != destination
    return float(
        max(
            np.bincount(side[apart], pairs.bytes[apart], minlength=len(names)).max()
            for side in (source, destination)
        )
    )


def prepare(program: Program, hosts: Hosts) -> Case:
    """Run a program under commlens, ask for advice, and predict the bytes over the links."""
    profile, advice = FOLDER / f"{program.name}.db", FOLDER / f"{program.name}.advised"
    for old in (profile, advice):
        old.unlink(missing_ok=True)
    per_host = program.ranks // COUNT
    variables = ["-x", f"COMMLENS_OUTPUT={profile}", "-x", "COMMLENS_MATRIX=all"]
    runner = ROOT / "build" / "release" / "bin" / "commlens-run"
    hosts.run(
        [*openmpi(hosts, program.ranks, default(hosts, per_host)), *variables, runner, *program.command],
        OPEN_MPI,
    )
    commlens("place", profile, "--launcher", "openmpi-seq", "--to", advice)
    numbers = json.loads(commlens("place", profile, "--format", "json"))
    case = Case(program)
    case.where["default"] = [hosts.names[rank // per_host] for rank in range(program.ranks)]
    case.where["shuffled"] = random.Random(SEED).sample(case.where["default"], program.ranks)
    case.where["advised"] = advice.read_text(encoding="ascii").split()
    case.cost = {"default": numbers["cost_before"], "advised": numbers["cost_after"]}
    for name in PLACEMENTS:
        (FOLDER / f"{program.name}.{name}").write_text("\n".join(case.where[name]) + "\n", encoding="ascii")
        case.bytes[name] = busiest(profile, case.where[name], hosts.names) / program.steps
    return case


def launcher(case: Case, name: str, hosts: Hosts) -> list[str]:
    """Return the start of the command line for a placement."""
    program = case.program
    if name == "default":
        return openmpi(hosts, program.ranks, default(hosts, program.ranks // COUNT))
    return openmpi(hosts, program.ranks, seq(FOLDER / f"{program.name}.{name}"))


def measure(cases: Sequence[Case], hosts: Hosts, rounds: int) -> list[float]:
    """Run all programs with all placements in turns, and return the bytes a second of a link in each round."""
    links = []
    for number in range(rounds):
        said = hosts.run(
            [*openmpi(hosts, 2, default(hosts, 1)), *hosts.preload(), FOLDER / "link", *LINK], OPEN_MPI
        )
        links.append(float(said.split()[-1]))
        for case in cases:
            names = list(PLACEMENTS)
            random.Random(number).shuffle(names)
            for name in names:
                seconds = hosts.time(launcher(case, name, hosts), case.program.command)
                case.seconds[name].append(seconds / case.program.steps)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return links


def around(values: Sequence[float]) -> Estimate:
    """Return the middle of values, with its interval."""
    return estimate(values, np.random.default_rng(SEED))


def milliseconds(found: Estimate) -> str:
    """Return a time and its interval."""
    return f"{1e3 * found.value:.0f} | {1e3 * found.low:.0f} to {1e3 * found.high:.0f}"


def falls(case: Case, bandwidth: float) -> list[tuple[str, float, Estimate]]:
    """Return how much a step falls from other placements to the advised one, predicted and measured."""
    found = []
    for name in ("default", "shuffled"):
        seconds = [b - a for b, a in zip(case.seconds[name], case.seconds["advised"])]
        found.append((name, (case.bytes[name] - case.bytes["advised"]) / bandwidth, around(seconds)))
    return found


def tables(cases: Sequence[Case], bandwidth: float) -> str:
    """Return the tables of the page."""
    lines = []
    for case in cases:
        steps = {name: around(case.seconds[name]) for name in PLACEMENTS}
        predicted = {name: case.bytes[name] / bandwidth for name in PLACEMENTS}
        lines += [
            f"**{case.program.name}**: {case.program.what}.",
            "",
            "| placement | KiB over the busiest link | predicted ms | measured ms | 95 % interval |",
            "|---|---|---|---|---|",
        ]
        for name in PLACEMENTS:
            lines.append(
                f"| {name} | {case.bytes[name] / 1024:,.0f} | {1e3 * predicted[name]:.0f} | {milliseconds(steps[name])} |"
            )
        kept = sum(
            sorted(one, reverse=True) == list(one) for one in zip(*(case.seconds[n] for n in PLACEMENTS))
        )
        order = sorted(PLACEMENTS, key=lambda name: -predicted[name])
        seen = sorted(PLACEMENTS, key=lambda name: -steps[name].value)
        lines += [
            "",
            f"Predicted order, slowest first: {', '.join(order)}. Measured: {', '.join(seen)};\n"
            f"in {kept} of {len(case.seconds['default'])} rounds this order.",
            "",
            "| a step falls | predicted ms | measured ms | 95 % interval | measured / predicted |",
            "|---|---|---|---|---|",
        ]
        for name, expected, fall in falls(case, bandwidth):
            lines.append(
                f"| {name} to advised | {1e3 * expected:.0f} | {milliseconds(fall)} | {fall.value / expected:.2f} |"
            )
        lines.append("")
    return "\n".join(lines)


TEXT = """\
# Placement on hosts with slow links

`commlens place` ([guide](../guide/place.md)) predicts which placement is faster. Here real jobs run with three placements
on four simulated hosts, and the time of a step is compared with the prediction.

    {command}

{machine}.
Open MPI 4.1.4; {rounds} rounds with all placements in random order; other users shared the processors. The times of all
runs are in [placement.csv](placement.csv).

- A host is a network namespace. `tbf` limits its link to {rate:g} Mbit/s in each direction; ranks of one host use shared
  memory. No latency is added: the kernel has no `netem`.
- The profile is that of one run with the launcher's placement and `COMMLENS_MATRIX=all`. `commlens place PROFILE --launcher
  openmpi-seq --to FILE` writes the advised placement, and `mpirun` gets the options that it prints.
- *shuffled*: a random order of the same slots. *default*: the first ranks on the first host, `mpirun --host`.
- Predicted: the bytes of a step over the busiest link, from the communication matrix, divided by {link:.1f} Mbit/s. That
  is what each of two ranks receives if both send 1 MiB at the same time, measured in each round ({low:.1f} to {high:.1f}).
- Measured: the time between `MPI_Init` and `MPI_Finalize` of the slowest rank, divided by the number of steps;
  Hodges-Lehmann estimate. The programs check their results.

{tables}
The prediction contains neither computation nor the waiting of one rank for another, and a program may use a link better or
worse than the exchange of two ranks does. The measured fall differs from the predicted one by at most {error:.0f} %. The
cost that `commlens place` prints counts the bytes of all links, not those of the busiest one; here both order *default* and
*advised* in the same way.
"""


def write(cases: Sequence[Case], links: Sequence[float], rate: float, facts: str) -> str:
    """Return the page."""
    middle = around(links)
    ratios = [fall.value / expected for case in cases for _, expected, fall in falls(case, middle.value)]
    return TEXT.format(
        command=".venv/bin/python bench/shaped_placement.py --page",
        machine=facts,
        rounds=len(links),
        rate=rate,
        link=8e-6 * middle.value,
        low=8e-6 * min(links),
        high=8e-6 * max(links),
        tables=tables(cases, middle.value),
        error=max(100 * abs(ratio - 1) for ratio in ratios),
    )


HEAD = (
    "round",
    "program",
    "placement",
    "bytes_per_step",
    "seconds_per_step",
    "link_bytes_per_second",
    "rate_mbit",
)


def save_raw(cases: Sequence[Case], links: Sequence[float], rate: float, facts: str) -> None:
    """Write the time of a step of each run, and what belongs to it."""
    with RAW.open("w", encoding="ascii", newline="") as file:
        file.write(f"# {facts}\n")
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(HEAD)
        for number, link in enumerate(links):
            for case in cases:
                for name in PLACEMENTS:
                    seconds = f"{case.seconds[name][number]:.6f}"
                    first = [number, case.program.name, name, f"{case.bytes[name]:.0f}"]
                    rows.writerow([*first, seconds, f"{link:.0f}", f"{rate:g}"])


def read_raw() -> tuple[list[Case], list[float], float, str]:
    """Return what save_raw() wrote."""
    with RAW.open(encoding="ascii", newline="") as file:
        facts = file.readline()[2:].strip()
        rows = list(csv.DictReader(file))
    cases = [Case(program) for program in PROGRAMS]
    links: dict[str, float] = {}
    for row in rows:
        case = next(case for case in cases if case.program.name == row["program"])
        case.bytes[row["placement"]] = float(row["bytes_per_step"])
        case.seconds[row["placement"]].append(float(row["seconds_per_step"]))
        links[row["round"]] = float(row["link_bytes_per_second"])
    return cases, list(links.values()), float(rows[0]["rate_mbit"]), facts


def main() -> None:
    """Measure, and print or write the page."""
    wanted = options(__doc__, rounds=20)
    if wanted.render:
        PAGE.write_text(write(*read_raw()), encoding="utf-8")
        return
    with started(FOLDER, wanted.rate, compile_all) as hosts:
        cases = [prepare(program, hosts) for program in PROGRAMS]
        links = measure(cases, hosts, wanted.rounds)
    facts = machine()
    if wanted.page:
        save_raw(cases, links, wanted.rate, facts)
        PAGE.write_text(write(cases, links, wanted.rate, facts), encoding="utf-8")
    else:
        print(write(cases, links, wanted.rate, facts))


if __name__ == "__main__":
    main()
