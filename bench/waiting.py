# SPDX-License-Identifier: Apache-2.0
"""Compare the waiting that `commlens waits` estimates with a trace of all calls, on the programs of bench/apps.

    .venv/bin/python bench/waiting.py [--rounds 5] [--mpi openmpi,mpich] [--ranks 2] [PROGRAM ...]

Both watch the same run: bench/tools/trace.c stores when each rank entered and left each blocking collective.  From the
trace follows how long each rank waited, for every call and not for some.  Prints a row for each procedure and message size
of which commlens has sampled some calls only, and how often the 95 % interval contains the truth; of those whose calls were
all sampled, by how much the share of waiting deviates.

The trace lies between commlens and the MPI library.  Its times contain none of commlens, while commlens sees what the
trace adds to a call; the time by which a rank enters before the last one is the same for both.  So what is compared is the
waiting for each call, not its share of the call.  With more ranks than processors, the operating system decides who waits,
which is no fault of either.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.apps import PROGRAMS, Program, build  # noqa: E402
from bench.run import BUILD, launch  # noqa: E402

COMMLENS = ROOT / ".venv" / "bin" / "commlens"
OPERATIONS = ("MPI_Barrier", "MPI_Allreduce", "MPI_Bcast", "MPI_Allgather", "MPI_Alltoall", "MPI_Alltoallv")
"""In the order of enum op in trace.c."""
BCAST = OPERATIONS.index("MPI_Bcast")
RECORD = np.dtype(
    [
        ("comm", "u8"),
        *((name, "i8") for name in ("op", "bytes", "root", "members", "member")),
        ("entered", "i8"),
        ("left", "i8"),
    ]
)
ARGUMENTS: dict[str, tuple[int, ...]] = {
    "polling": (20_000, 500),
    "cg": (24, 20_000),
    "halo": (16, 4, 5_000),
    "fft": (16, 4_000),
    "amr": (100, 100, 10, 16),
    "sample_sort": (3_000, 6_000),
    "closure": (4_000, 8),
}
"""Single-threaded C programs, and arguments with which each makes tens of thousands of collectives within seconds."""

LEAST_NS = 1_000
"""Calls that take less are left out: the two tools look at the clock some 50 ns apart."""

OTHERS = 0.01
"""Share of calls that other communicators of the same members may have, which the trace cannot tell apart."""

Place = tuple[str, int, int]
"""Procedure, size bin and number of members."""


@dataclass
class Truth:
    """What the trace says about the calls of one place: time and waiting of all ranks, ns, and calls of all ranks."""

    calls: int = 0
    time: int = 0
    waiting: int = 0


def size_bin(bytes: int) -> int:
    """Return the size bin as commlens numbers it: 0 for no data, else the number of binary digits; -1 for v calls."""
    return -1 if bytes < 0 else bytes.bit_length()


def read_trace(folder: Path, ranks: int) -> dict[Place, Truth]:
    """Return the truth by place; the n-th call of each rank of a communicator and kind is the same call."""
    records = np.concatenate([np.fromfile(folder / str(rank), RECORD) for rank in range(ranks)])
    kinds, group = np.unique(records[["comm", "op", "bytes"]], return_inverse=True)
    found: dict[Place, Truth] = defaultdict(Truth)
    for number, kind in enumerate(kinds):
        calls = records[group == number]
        members = int(calls["members"][0])
        by_member = [calls[calls["member"] == member] for member in range(members)]
        if members < 2 or len({len(one) for one in by_member}) != 1:
            continue
        entered = np.stack([one["entered"] for one in by_member])
        left = np.stack([one["left"] for one in by_member])
        until = entered.max(axis=0)
        if kind["op"] == BCAST:
            until = entered[by_member[0]["root"], np.arange(entered.shape[1])]
        waited = np.clip(until - entered, 0, left - entered)
        truth = found[OPERATIONS[kind["op"]], size_bin(int(kind["bytes"])), members]
        truth.calls += calls.size
        truth.time += int((left - entered).sum())
        truth.waiting += int(waited.sum())
    return found


def read_waits(profile: Path) -> dict[Place, dict[str, Any]]:
    """Return the rows of `commlens waits` by place: those of the family of communicators with the most calls there."""
    done = subprocess.run(
        [COMMLENS, "waits", profile, "--format", "json"], capture_output=True, text=True, check=True
    )
    found: dict[Place, dict[str, Any]] = {}
    for row in json.loads(done.stdout)["waits"]:
        place = (row["operation"], row["bin"], row["size_min"])
        if row["size_min"] == row["size_max"] and row["calls"] > found.get(place, {"calls": 0})["calls"]:
            found[place] = row
    return found


def run(program: Program, mpi: str, ranks: int, tracer: Path, folder: Path) -> Path:
    """Run a program under commlens and the tracer; return the profile."""
    profile = folder / "profile.db"
    profile.unlink(missing_ok=True)
    library = BUILD / "lib" / mpi / "libcommlens.so"
    settings = [
        f"LD_PRELOAD={library}:{tracer}",
        f"TRACE={folder}",
        f"COMMLENS_OUTPUT={profile}",
        "COMMLENS_QUIET=1",
    ]
    launch(
        mpi, ranks, ["env", *settings, build(program, mpi), *map(str, ARGUMENTS[program.name])], None, profile
    )
    return profile


def compare(
    name: str, mpi: str, truths: dict[Place, Truth], waits: dict[Place, dict[str, Any]]
) -> tuple[list[bool], list[float]]:
    """Print the rows of one run; return for sampled ones whether the interval has the truth, for others the deviation."""
    covered, deviations = [], []
    for place, truth in sorted(truths.items()):
        row = waits.get(place)
        if (
            row is None
            or abs(row["calls"] - truth.calls) > OTHERS * truth.calls
            or truth.time < LEAST_NS * truth.calls
        ):
            continue
        share = truth.waiting / row["time_ns"]
        if row["share_low"] is None:
            continue
        if row["share_low"] == row["share_high"]:
            deviations.append(row["waiting_share"] - share)
            continue
        covered.append(row["share_low"] <= share <= row["share_high"])
        low, high = (limit * row["time_ns"] / row["calls"] for limit in (row["share_low"], row["share_high"]))
        print(
            f"{mpi:8} {name:14} {place[0]:14} {place[1]:3} {truth.calls:9,} {truth.waiting / truth.calls:9.0f} ns "
            f"{low:9.0f} to {high:9.0f} ns"
            f"{'' if covered[-1] else '  not in it'}",
            flush=True,
        )
    return covered, deviations


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Compares estimated waiting with a trace of all calls.")
    parser.add_argument("programs", nargs="*", default=list(ARGUMENTS), help="default: all of ARGUMENTS")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each program (default 5)")
    parser.add_argument("--mpi", default="openmpi,mpich", help="which MPI libraries (default openmpi,mpich)")
    parser.add_argument("--ranks", type=int, default=2, help="default 2")
    options = parser.parse_args()
    print(
        f"{'MPI':8} {'program':14} {'procedure':14} {'bin':>3} {'calls':>9} {'waiting':>12} {'interval of commlens waits':>27}"
    )
    covered: list[bool] = []
    deviations: list[float] = []
    for mpi in options.mpi.split(","):
        with tempfile.TemporaryDirectory(prefix="commlens-waiting-") as name:
            folder = Path(name)
            tracer = folder / "trace.so"
            source = ROOT / "bench" / "tools" / "trace.c"
            subprocess.run(
                [f"mpicc.{mpi}", "-O2", "-w", "-shared", "-fPIC", source, "-ldl", "-o", tracer], check=True
            )
            for _ in range(options.rounds):
                for each in options.programs:
                    profile = run(PROGRAMS[each], mpi, options.ranks, tracer, folder)
                    found = compare(each, mpi, read_trace(folder, options.ranks), read_waits(profile))
                    covered += found[0]
                    deviations += found[1]
    print(f"sampled: the interval has the truth in {sum(covered)} of {len(covered)} cases")
    if deviations:
        print(
            f"all calls sampled: {len(deviations)} cases; the share of waiting deviates by {100 * np.median(np.abs(deviations)):.2f} "
            f"percentage points (median), {100 * np.max(np.abs(deviations)):.2f} (largest)"
        )


if __name__ == "__main__":
    main()
