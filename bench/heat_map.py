# SPDX-License-Identifier: Apache-2.0
"""Heat maps of what commlens costs: MPI operation x message size, for 2 to 16 ranks on one host and on four.

    .venv/bin/python bench/heat_map.py --hosts 1 --ranks 2 4    # a minute or more for each number of ranks
    .venv/bin/python bench/heat_map.py --hosts 4                # as root
    .venv/bin/python bench/heat_map.py --page                   # makes the page and the maps of what was measured

Runs without and with commlens alternate.  Each measurement replaces its lines in docs/evidence/heat-map.csv; the page and
the maps are made of this file, so parts of it can come from other machines.  Four hosts are those of
bench/shaped_hosts.py, with links of 1 Gbit/s; Open MPI 4.1 has no one-sided operations over TCP, so these are left out.
With more ranks than processors, ranks that wait sleep, and the times are those of the scheduler, too.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.matrix import Times, picture, ratios, size_of
from bench.run import HERE, RUNNER, launch, machine, rows_of
from bench.shaped_hosts import OPEN_MPI, Hosts, enter_namespaces, openmpi

PAGE = HERE.parent / "docs" / "evidence" / "heat-map.md"
NUMBERS = PAGE.with_suffix(".csv")
PICTURES = PAGE.with_suffix("")
MARK = "<!-- written by bench/heat_map.py; DO NOT EDIT below -->"
FIELDS = ("hosts", "ranks", "mpi", "rounds", "operation", "bytes", "low", "median", "high", "ns", "machine")
"""Columns of the file: the quartiles are of what commlens adds, in percent; `ns` is the median added to a call."""
COUNTS = (2, 4, 8, 16)
HOSTS = (1, 4)
WAYS = ("off", "on")  # "off" is the one that matrix.ratios() compares with

Row = dict[str, str]


def divisor(ranks: int) -> int:
    """Return how many times fewer calls a run has, so that it ends soon where ranks share processors."""
    shared = ranks / (os.cpu_count() or 1)
    return 1 if shared <= 1 else round(2 * shared)


def on_one(ranks: int, program: Path, profile: Path, way: str) -> str:
    """Run the program on this machine; return its output."""
    yields = {"OMPI_MCA_mpi_yield_when_idle": "1"} if ranks > (os.cpu_count() or 1) else {}
    words = [*(f"{name}={value}" for name, value in yields.items()), *([str(RUNNER)] if way == "on" else [])]
    return launch(
        "openmpi", ranks, ["env", *words, program, str(divisor(ranks))], None, profile, OUTPUT=str(profile)
    )


def on_four(hosts: Hosts, ranks: int, program: Path, profile: Path, way: str) -> str:
    """Run the program on up to four hosts; return its output."""
    used = hosts.names[:ranks]
    where = ["--host", ",".join(f"{name}:{ranks // len(used)}" for name in used)]
    under = ["env", f"COMMLENS_OUTPUT={profile}", "COMMLENS_QUIET=1", str(RUNNER)] if way == "on" else []
    words = [
        *openmpi(hosts, ranks, where),
        *hosts.preload(),
        *under,
        str(program),
        str(divisor(ranks)),
        "messages",
    ]
    return hosts.run(words, OPEN_MPI)


def measure(hosts: Hosts | None, ranks: int, rounds: int, program: Path, scratch: Path) -> Times:
    """Run without and with commlens in turns."""
    found: Times = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        for way in WAYS[:: 1 if number % 2 == 0 else -1]:
            profile = scratch / f"{ranks}-{number}-{way}.db"
            output = (
                on_four(hosts, ranks, program, profile, way)
                if hosts
                else on_one(ranks, program, profile, way)
            )
            for row, ns in rows_of(output).items():
                found[row][way].append(ns)
            if profile.is_file() != (way == "on"):
                raise SystemExit(f"commlens was not as it should be: {way}")
        print(f"{ranks} ranks: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def lines_of(found: Times, hosts: int, ranks: int, rounds: int, mpi: str) -> list[Row]:
    """Return the lines of the file of one measurement."""
    lines = []
    for (operation, size), times in found.items():
        percent = [100 * (ratio - 1) for ratio in ratios(times, "on")]
        low, median, high = statistics.quantiles(percent, n=4, method="inclusive")
        ns = statistics.median(on - off for on, off in zip(times["on"], times["off"], strict=True))
        numbers = [f"{value:.2f}" for value in (low, median, high)]
        values = (hosts, ranks, mpi, rounds, operation, size, *numbers, f"{ns:.0f}", machine())
        lines.append({name: str(value) for name, value in zip(FIELDS, values, strict=True)})
    return lines


def read_numbers() -> list[Row]:
    """Return the lines of the file, if there is one."""
    if not NUMBERS.exists():
        return []
    with NUMBERS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def store(lines: list[Row]) -> None:
    """Replace the lines of this measurement in the file."""
    mine = (lines[0]["hosts"], lines[0]["ranks"])
    kept = [line for line in read_numbers() if (line["hosts"], line["ranks"]) != mine]
    every = sorted([*kept, *lines], key=lambda line: (int(line["hosts"]), int(line["ranks"])))
    with NUMBERS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(every)


def write_page() -> None:
    """Write the maps, and the page below its mark."""
    jobs: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for line in read_numbers():
        jobs[line["hosts"], line["ranks"]].append(line)
    PICTURES.mkdir(exist_ok=True)
    out = [
        "| hosts | ranks | rounds | below 1 KiB, median | 1 KiB and more, median | machine |",
        "|--:|--:|--:|--:|--:|---|",
    ]
    maps = []
    for (hosts, ranks), lines in jobs.items():
        percent = {(line["operation"], int(line["bytes"])): float(line["median"]) for line in lines}
        small, large = (
            statistics.median(value for (_, size), value in percent.items() if (size >= 1024) == is_large)
            for is_large in (False, True)
        )
        first = lines[0]
        out.append(
            f"| {hosts} | {ranks} | {first['rounds']} | {small:+.2f} % | {large:+.2f} % | {first['mpi']}; {first['machine']} |"
        )
        name = f"{hosts}-hosts-{ranks}-ranks"
        title = f"{ranks} ranks on {'one host' if hosts == '1' else 'four hosts'}: time added by commlens"
        (PICTURES / f"{name}.svg").write_text(picture(percent, title), encoding="utf-8")
        maps += ["", f"![{title}]({PICTURES.name}/{name}.svg)"]
        widest = max(lines, key=lambda line: float(line["high"]) - float(line["low"]))
        maps += [
            "",
            f"Widest middle half of a cell: {widest['operation']}, {size_of(int(widest['bytes']))}, "
            f"{widest['low']} to {widest['high']} %.",
        ]
    before = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    PAGE.write_text("\n".join([before + MARK, "", *out, *maps, ""]), encoding="utf-8")


def release() -> str:
    """Return the name and version of the launcher's MPI library."""
    done = subprocess.run(["mpirun.openmpi", "--version"], capture_output=True, text=True, check=True)
    return "Open MPI " + done.stdout.split("\n")[0].split()[-1]


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, choices=HOSTS, default=1, help="(default: %(default)s)")
    parser.add_argument("--ranks", type=int, nargs="+", choices=COUNTS, default=list(COUNTS))
    parser.add_argument("--rounds", type=int, default=9, help="at least 2 (default: %(default)s)")
    parser.add_argument("--page", action="store_true", help="write docs/evidence/heat-map.md and the maps")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    if options.hosts > 1:
        enter_namespaces()
    with tempfile.TemporaryDirectory(prefix="commlens-heat-") as name:
        scratch = Path(name)
        program = scratch / "matrix"
        subprocess.run(["mpicc.openmpi", "-O2", "-w", str(HERE / "matrix.c"), "-o", str(program)], check=True)

        def run(hosts: Hosts | None) -> None:
            for ranks in options.ranks:
                found = measure(hosts, ranks, options.rounds, program, scratch)
                store(lines_of(found, options.hosts, ranks, options.rounds, release()))

        if options.hosts == 1:
            run(None)
        else:
            with Hosts(scratch / "hosts", rate=1000) as hosts:
                run(hosts)


if __name__ == "__main__":
    main()
