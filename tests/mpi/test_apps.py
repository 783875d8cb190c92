# SPDX-License-Identifier: Apache-2.0
"""Real applications, unmodified, as Debian packages them.

Each runs four times: alone, under commlens, under commlens with call paths, and under `apps_counter.c`, a preloaded
library that counts MPI calls and shares nothing with commlens.  Output and exit code must be those of the run alone, and
the profiles must have the calls the counter counted, per procedure and communicator size.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from harness import Mpi
from launches import Result

HERE = Path(__file__).resolve().parent
INPUTS = HERE / "apps_inputs"

Scrub = tuple[str, str]
"""A pattern and what takes its place, for what differs from run to run without commlens, too."""

NUMBERS: Scrub = (r"[-+]?\d+\.\d*(?:[eEdD][-+]?\d+)?", "#")
SPACES: Scrub = (r"[ \t]+", " ")

POLLING = dict.fromkeys(
    ("MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Iprobe", "MPI_Waitany", "MPI_Waitsome"),
    "how often it is called before it succeeds depends on time",
)


@dataclass(frozen=True)
class App:
    """How to run one application, and what in it depends on time."""

    package: str
    command: str
    inputs: tuple[str, ...]
    mpi: str = "openmpi"
    ranks: int = 4
    prepare: str = ""
    results: tuple[str, ...] = ()  # files it writes that must come out the same
    scrub: tuple[Scrub, ...] = ()
    keep: str = ""  # lines with this pattern are compared
    drop: str = ""  # but not those with this one
    varies: dict[str, str] = field(default_factory=dict)  # procedure: why it varies from run to run


BY_TIME = "a benchmark: how many messages it takes depends on speed"
BALANCED = (
    "tasks go to who asks first: iterations until convergence, and so calls, differ a little from run to run"
)
BINDING = "Open MPI's Fortran binding calls it inside other procedures; that is not the application, but the counter cannot tell"

APPS = {
    "lammps": App(
        "lammps",
        "lmp -in lammps.in",
        ("lammps.in",),
        drop=r"Loop time|Performance|CPU|^(Pair|Neigh|Comm|Output|Modify|Other) |Total wall",
    ),
    "hpcc": App(
        "hpcc",
        "hpcc",
        ("hpccinf.txt",),
        results=("hpccoutf.txt",),
        scrub=(NUMBERS, SPACES),
        # A benchmark prints little else than times; what is left is what it checks.
        keep=r"PASSED|FAILED|Success|Errors|_[Nn]=|Procs=|nb=|residual|^End of|^Begin of",
        # PTRANS prints this row only where it measured more than zero seconds of processor time.
        drop=r"^CPU ",
        varies={"MPI_Send": BY_TIME, "MPI_Recv": BY_TIME, "MPI_Isend": BY_TIME, "MPI_Irecv": BY_TIME},
    ),
    "quantum-espresso": App(
        "quantum-espresso",
        "pw.x -nk 2 -in silicon.in",
        ("silicon.in", "pseudopotential.in"),
        prepare="ld1.x -in pseudopotential.in",
        drop=r"starts on|cpu time|CPU|terminated on",
        varies={"MPI_Comm_size": BINDING},
    ),
    "cp2k": App(
        "cp2k",
        "cp2k.psmp -i hydrogen.inp",
        ("hydrogen.inp",),
        # The time column of an SCF step; then everything from the table of timings on.
        scrub=((r"^( +\d+ \S+ +\S+ +)\d+\.\d", r"\1#"), (r"(?s)\n -+\n - +-\n - +T I M I N G.*", "")),
        drop=r"PROGRAM (STARTED|ENDED|STOPPED|RAN|PROCESS)|MEMORY\||/|app-(off|run|pat)",
        varies={"MPI_Comm_size": BINDING},
    ),
    "nwchem": App(
        "nwchem-openmpi",
        "nwchem.openmpi helium.nw",
        ("helium.nw",),
        # Only what the calculation says: memory and time are everywhere in this output.
        scrub=((r"(?s)^.*?(?=NWChem Input Module)", ""), (r"(?m)^( +\d+ +-\d+\.\d+ .*\D)\d+\.\d$", r"\1#")),
        drop=r"[Tt]ime|wall|calls|bytes|heap|stack|blocks|total  |records|MO Center|date|solution at|memory|GA|/",
        varies={
            "MPI_" + name: BALANCED
            for name in (
                *("Allreduce", "Barrier", "Type_size", "Put", "Get", "Accumulate"),
                *("Win_flush", "Win_flush_local", "Win_flush_all"),
                *("Type_commit", "Type_free"),  # with Open MPI 5
            )
        },
    ),
    "mpi4py": App("python3-mpi4py", "/usr/bin/python3 grid.py", ("grid.py",)),
    "scalapack-lu": App(
        "scalapack-mpi-test",
        "/usr/lib/*/scalapack/mpich-tests/xdlu",
        ("LU.dat",),
        mpi="mpich",
        ranks=2,
        scrub=(NUMBERS, SPACES),
    ),
    "scalapack-sep": App(
        "scalapack-mpi-test",
        "/usr/lib/*/scalapack/mpich-tests/xdsep",
        ("SEP.dat",),
        mpi="mpich",
        ranks=2,
        scrub=(NUMBERS, SPACES),
    ),
}


@dataclass(frozen=True)
class Run:
    """One run of an application, and the directory it ran in."""

    result: Result
    where: Path


@dataclass(frozen=True)
class Runs:
    """An application alone, under commlens, also with call paths, and under the counter."""

    app: App
    alone: Run
    under: Run
    with_paths: Run
    counted: Run

    def profiled(self, how: str) -> Run:
        """Return the run under commlens, "run", or with call paths, "paths"."""
        return self.with_paths if how == "paths" else self.under


def run(mpi: Mpi, app: App, how: str) -> Run:
    """Run `app` in a directory of its own: "off" (alone), "run" (under commlens), "paths", or "count"."""
    where = mpi.fresh(f"app-{how[:3]}")  # some print the path, and wrap it by its length
    for name in app.inputs:
        shutil.copy(INPUTS / name, where)
    if app.prepare:
        helper = app.prepare.split()
        subprocess.run(
            helper, cwd=where, check=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL
        )
    program, *arguments = app.command.split()
    env = {"OMP_NUM_THREADS": "1"}
    preload = []
    if how == "count":
        env["APPS_COUNTER"] = str(where / "calls")
        preload = [mpi.compile(HERE / "apps_counter.c", None, "-ldl", shared=True)]
    if how == "paths":
        env["COMMLENS_FRAMES"] = "64"
    argv = [installed(program, app.package), *arguments]
    mode = "run" if how in ("run", "paths") else "off"
    return Run(mpi.run(app.ranks, argv, env, 120, mode=mode, preload=preload, cwd=where), where)


def installed(program: str, package: str) -> str:
    """Return the program's path; these tests need it, so its absence is a failure."""
    # A path has the machine's architecture in it.
    found = next(map(str, Path("/").glob(program[1:])), None) if "/" in program else shutil.which(program)
    if found is None:
        pytest.fail(f"{program} is missing: apt-get install {package}")
    return found


def said(app: App, run: Run) -> list[str]:
    """Return the lines an application wrote, without what differs from run to run."""
    return steady(
        app, "\n".join([run.result.stdout, *((run.where / name).read_text() for name in app.results)])
    )


def steady(app: App, text: str) -> list[str]:
    """Return the lines of an application's output that do not differ from run to run."""
    for pattern, instead in app.scrub:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    lines = [line for line in text.splitlines() if re.search(app.keep, line)]
    return [line for line in lines if not (app.drop and re.search(app.drop, line))]


def counted(where: Path, ranks: int) -> tuple[Counter[str], Counter[tuple[str, int]]]:
    """Return what `apps_counter.c` counted: calls per procedure, and per procedure and communicator size."""
    totals: Counter[str] = Counter()
    by_size: Counter[tuple[str, int]] = Counter()
    for rank in range(ranks):
        for line in (where / f"calls.{rank}").read_text().splitlines():
            name, size, calls = line.split()
            totals[name] += int(calls)
            if int(size) > 0:
                by_size[name, int(size)] += int(calls)
    return totals, by_size


@pytest.fixture(scope="module", params=sorted(APPS))
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Return the three runs of one application."""
    app = APPS[request.param]
    mpi = Mpi(app.mpi, tmp_path_factory.mktemp(request.param))
    return Runs(app, *(run(mpi, app, how) for how in ("off", "run", "paths", "count")))


@pytest.mark.parametrize("how", ["run", "paths"])
def test_the_output_is_what_it_is_without_commlens(runs: Runs, how: str) -> None:
    alone, under = runs.alone.result, runs.profiled(how).result
    assert alone.rc == 0, f"fails without commlens: {alone}"
    assert under.rc == alone.rc, under
    assert len(said(runs.app, runs.alone)) > (10 if runs.app.keep or runs.app.drop else 0), (
        "little left to compare"
    )
    assert said(runs.app, runs.profiled(how)) == said(runs.app, runs.alone)
    errors = [line for line in under.stderr.splitlines() if not line.startswith("commlens")]
    assert sorted(errors) == sorted(alone.stderr.splitlines())


@pytest.mark.parametrize("how", ["run", "paths"])
def test_the_profile_has_the_calls_that_were_made(runs: Runs, how: str) -> None:
    app = runs.app
    profile = runs.profiled(how).result.open()
    totals, by_size = counted(runs.counted.where, app.ranks)
    assert sum(totals.values()) > 1000, "the counter saw no application"
    fixed = totals.keys() - app.varies.keys() - POLLING.keys()
    assert len(fixed) > 10

    measured = Counter(
        {
            row["name"]: row["calls"]
            for row in profile.rows(
                "SELECT o.name, SUM(x.calls) AS calls FROM cell x JOIN key k ON k.id = x.key JOIN op o ON o.id = k.op GROUP BY 1"
            )
        }
    )
    assert {name: measured[name] for name in fixed} == {name: totals[name] for name in fixed}
    # What varies must be there all the same.
    assert not [name for name in totals if measured[name] == 0]

    measured_by_size = Counter(
        {
            (row["name"], row["size"]): row["calls"]
            for row in profile.rows(
                "SELECT o.name, c.size, SUM(x.calls) AS calls FROM cell x JOIN key k ON k.id = x.key "
                "JOIN op o ON o.id = k.op JOIN comm c ON c.id = k.comm WHERE c.size IS NOT NULL GROUP BY 1, 2"
            )
        }
    )
    expected = {key: calls for key, calls in by_size.items() if key[0] in fixed}
    assert {key: measured_by_size[key] for key in expected} == expected


def test_all_call_paths_begin_where_the_program_starts(runs: Runs) -> None:
    # These applications call MPI in their main thread only, so a wrong or cut path would begin elsewhere.
    rows = runs.with_paths.result.open().rows(
        "SELECT id, module, IIF(build_id LIKE 'python:%', build_id, offset) AS place, caller FROM callsite WHERE id > 0"
    )
    by_id = {row["id"]: row for row in rows}
    first: Counter[tuple[str, object]] = Counter()
    frames = 0
    for row in rows:
        while row["caller"] is not None:
            row, frames = by_id[row["caller"]], frames + 1
        first[Path(row["module"]).name, row["place"]] += 1
    if runs.app.package == "python3-mpi4py":
        assert (
            first.pop(("grid.py", "python:<module>")) > 10
        )  # what remains: MPI_Finalize at the end of the interpreter
    assert len(first) == 1, first
    assert frames > len(rows)
