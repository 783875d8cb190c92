# SPDX-License-Identifier: Apache-2.0
"""Real profiles in one dataset, and the page of it: programs of bench/apps, and what the tests with MPI leave.

    .venv/bin/python -m pytest -q tests/mpi -n 2 --basetemp build/fleet/tests    # a quarter of an hour
    .venv/bin/python bench/fleet_real.py build/fleet build/fleet/tests

Runs each program of bench/apps with Open MPI and MPICH on 2 and on 4 ranks, reads these profiles and those below the further
folders into build/fleet/set, and writes build/fleet/fleet.html and the page of each job to which it has a link. The tests leave
damaged profiles, too, which the dataset then lists.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.apps import PROGRAMS, build
from bench.run import BUILD, launch

RUNNER = BUILD / "bin" / "commlens-run"
LINK = re.compile(r'href="\./jobs/(-?\d+)\.html"')


def commlens(*arguments: object, accepted: tuple[int, ...] = (0,)) -> str:
    """Run `commlens`; return what it prints."""
    command = [sys.executable, "-m", "commlens", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode in accepted, command
    return done.stdout


def run_programs(folder: Path) -> None:
    """Write a profile of each program, library and number of ranks, if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS.values():
        for mpi in ("openmpi", "mpich"):
            for ranks in (2, 4):
                profile = folder / f"{program.name}-{mpi}-{ranks}.db"
                if not profile.exists():
                    command = [str(build(program, mpi)), *map(str, program.small)]
                    launch(mpi, ranks, command, RUNNER, profile, LABEL=f"input={program.name}")


def write_pages(folder: Path) -> int:
    """Write the page of the dataset and those of the jobs to which it leads; return how many these are."""
    page = folder / "fleet.html"
    commlens("fleet", folder / "set", "--html", page, "--job-page", "./jobs/{job}.html")
    (folder / "jobs").mkdir(exist_ok=True)
    jobs = sorted(set(LINK.findall(page.read_text(encoding="utf-8"))))
    query = f"SELECT CAST(job AS TEXT) AS job, profile FROM job WHERE job IN ({', '.join(jobs)})"
    found = json.loads(commlens("fleet", folder / "set", "--query", query, "--format", "json"))
    for row in found:
        target = folder / "jobs" / f"{row['job']}.html"
        if not target.exists() and Path(row["profile"]).exists():
            commlens("html", row["profile"], "--output", target)
    return len(jobs)


def main() -> None:
    """Run, read, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("profiles", type=Path, nargs="*", help="further folders with profiles")
    options = parser.parse_args()
    run_programs(options.folder / "apps")
    sources = [options.folder / "apps", *options.profiles]
    print(
        commlens("ingest", *sources, "--into", options.folder / "set", "--cluster", "tests", accepted=(0, 3))
    )
    print(f"{write_pages(options.folder)} jobs with a page, {options.folder / 'fleet.html'}")


if __name__ == "__main__":
    main()
