# SPDX-License-Identifier: Apache-2.0
"""The jobs of the scale laboratory as real jobs of one machine, beside what the laboratory says of them.

    .venv/bin/python bench/scale_real.py                     # 64, 256 and 512 ranks of Intel MPI: some minutes
    .venv/bin/python bench/scale_real.py --page              # and writes them into docs/evidence/scale.md

Sizes must be the same. Times are not: hundreds of ranks share a few cores here, and wait for each other's turns. What can
be compared is the time of the rank that writes, from the last row it got to the end.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import scale

sys.path.insert(0, str(scale.ROOT / "tests" / "mpi"))
from harness import Mpi

MARK = "<!-- written by bench/scale_real.py; DO NOT EDIT up to the next heading -->"
KEYS = 5  # of each communicator


@dataclass(frozen=True)
class Job:
    """One real job."""

    ranks: int
    detail: str
    waiting: str  # COMMLENS_WAITING
    rows: int
    plain_s: float
    under_s: float
    gather_s: float
    write_s: float
    profile_bytes: int


def run(mpi: Mpi, program: Path, ranks: int, duplicates: int, detail: str, waiting: str) -> Job:
    """Run a job without and with commlens, as one file."""
    arguments: list[str | Path] = [program, str(duplicates)]
    plain = mpi.run(ranks, arguments, mode="off", timeout=600, once=True)
    settings = {"COMMLENS_DETAIL": detail, "COMMLENS_WAITING": waiting, "COMMLENS_AGGREGATORS": "1"}
    under = mpi.run(ranks, arguments, settings, timeout=900, once=True)
    for result in (plain, under):
        if result.rc != 0:
            raise SystemExit(
                f"{' '.join(result.command)}: exit code {result.rc}\n{result.stdout}{result.stderr}"
            )
    spent = {phase: ns / 1e9 for phase, ns in scale.phases_of(under.profile).items()}
    with closing(sqlite3.connect(under.profile)) as db:
        rows = (duplicates + 1) * KEYS * ranks
        if detail == "full":
            of_pattern = "op.name IN ('MPI_Send', 'MPI_Recv', 'MPI_Sendrecv', 'MPI_Probe', 'MPI_Iprobe')"
            (found,) = db.execute(
                "SELECT COUNT(*) FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op WHERE "
                + of_pattern
            ).fetchone()
            if found != rows:
                raise SystemExit(f"{ranks} ranks: {found} rows instead of {rows}")
    return Job(
        ranks, detail, waiting, rows, plain.seconds, under.seconds,
        sum(spent[phase] for phase in ("wait", "collect", "gather")), sum(spent[phase] for phase in ("agree", "write")),
        under.profile.stat().st_size,
    )  # fmt: skip


def table(jobs: list[Job], duplicates: int) -> list[str]:
    """Return the jobs beside those of the laboratory, in Markdown."""
    lines = [
        "| ranks | detail | samples of waiting | rows | job without, s | with, s | gather, s | write, s | in the laboratory, s | profile, MB "
        "| in the laboratory, MB |",
        "|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for job in jobs:
        virtual = scale.measure(job.ranks, "1" if job.detail == "full" else scale.SUMMARY, duplicates)
        lines.append(
            f"| {job.ranks:,} | {job.detail} | {'yes' if job.waiting == '1' else 'no'} | {job.rows:,} | {job.plain_s:.1f} | {job.under_s:.1f} | {job.gather_s:.2f} "
            f"| {job.write_s:.3f} | {virtual.seconds:.3f} | {job.profile_bytes / 1e6:.2f} "
            f"| {virtual.profile_bytes / 1e6:.2f} |"
        )
    return lines


def main() -> None:
    """Run, print, and write the page if that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mpi", default="intel", help="which MPI library, as tests/mpi names it (default: %(default)s)"
    )
    parser.add_argument("--ranks", default="64,256,512", help="how many (default: %(default)s)")
    # 1,024 processes of Intel MPI that have a communicator of all beside MPI_COMM_WORLD need 30 GB, without commlens, too.
    parser.add_argument("--duplicates", type=int, default=3, help="of MPI_COMM_WORLD (default: %(default)s)")
    parser.add_argument("--page", action="store_true", help="write docs/evidence/scale.md, too")
    options = parser.parse_args()
    jobs = []
    with tempfile.TemporaryDirectory(prefix="commlens-scale-") as place:
        mpi = Mpi(options.mpi, Path(place))
        program = mpi.compile(scale.ROOT / "bench" / "scale" / "pattern.c")
        for ranks in map(int, options.ranks.split(",")):
            for detail, waiting in (("full", "1"), ("full", "0"), ("summary", "1"), ("summary", "0")):
                jobs.append(run(mpi, program, ranks, options.duplicates, detail, waiting))
                print(jobs[-1], file=sys.stderr, flush=True)
    words = "\n".join(
        [
            *table(jobs, options.duplicates),
            "",
            f"{options.mpi} {mpi.release}, all ranks on this machine, one file; MPI_COMM_WORLD and {options.duplicates} duplicates, "
            "five procedures in each that talk to nobody. gather: until rank 0 has what all ranks have counted, the others' "
            "turns on the cores included; write: from then on. The laboratory's time is that of both. Real profiles have the slices "
            "of time and the rows of MPI_Comm_dup and MPI_Barrier besides.",
            "",
        ]
    )
    print(words)
    if options.page:
        before, _, behind = scale.PAGE.read_text().partition(MARK)
        rest = behind[behind.index("## The laboratory") :]
        scale.PAGE.write_text(before + MARK + "\n\n" + words + "\n" + rest)


if __name__ == "__main__":
    main()
