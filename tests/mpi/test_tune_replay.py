# SPDX-License-Identifier: Apache-2.0
"""The replay on real libraries: its communicators, calls, sizes and algorithms, as commlens itself counts them."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from build_once import PATIENCE
from click.testing import CliRunner
from harness import ROOT, TRIES, Mpi
from test_languages import mpi4py_env

from commlens.algorithms.registry import COLLECTIVES
from commlens.base.errors import CommlensError
from commlens.cli import commlens
from commlens.launch import compiler
from commlens.overhead.legs import HERE
from commlens.tune import measurements
from commlens.tune import replay as module
from commlens.tune.candidates import candidates_of
from commlens.tune.cases import Cases, Layout
from commlens.tune.measurements import PLAN, TIMES, Measurements, Time, plan_text, read_measurements
from commlens.tune.model import Case

ROWS: Layout = ((0, 1), (3, 2))
RANKS = 4
ALLGATHER = Case(2, "rows", "allgather", 2, 9, 300)
SCAN = Case(1, "W0.0", "scan", 4, 11, 1024)
PYTHON = str(ROOT / "python")


def library_of(mpi: Mpi) -> str:
    name = "Open MPI v" if mpi.family == "openmpi" else "MPICH Version: "
    return f"{name}{mpi.release}"


def planned(mpi: Mpi, *cases: Case, processes: int = RANKS) -> Cases:
    all_of_them: Layout = (tuple(range(processes)),)
    layouts = [ROWS if case.comm_size < processes else all_of_them for case in cases]
    return Cases(list(cases), layouts, [None] * len(cases), processes, library_of(mpi))


def compiled(mpi: Mpi, folder: Path) -> list[str]:
    """Return the program, without replay.py."""
    program = mpi.compile(module.SOURCE, None, "-lm")
    return [str(program), str(folder / PLAN), str(folder / TIMES)]


def interpreted(folder: Path) -> list[str]:
    """Return the program in Python."""
    return [sys.executable, "-m", "commlens.tune.replay_mpi4py", str(folder / PLAN), str(folder / TIMES)]


@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_job_may_measure_one_candidate(mpi: Mpi, tmp_path: Path, is_compiled: bool) -> None:
    """As for Intel MPI: the job gets the number of the round, the candidate and the cases. The first batch is round 0."""
    cases = replace(planned(mpi, ALLGATHER, SCAN), library="Intel(R) MPI Library 2021.18.1 for Linux* OS")
    (tmp_path / PLAN).write_text(plan_text(cases, 1), encoding="utf-8")
    (tmp_path / TIMES).touch()
    program = compiled(mpi, tmp_path) if is_compiled else interpreted(tmp_path)
    settings = {**mpi4py_env(mpi), "PYTHONPATH": PYTHON}
    done = mpi.run(RANKS, [*program, "60", "7", "2", "1,0"], settings, mode="off")
    assert done.rc == 0, done
    found = read_measurements(tmp_path).times
    assert {(time.case, time.candidate, time.round) for time in found} == {
        (case, 2, round) for case in (0, 1) for round in (0, 7)
    }
    assert [time.case for time in found] == sorted((time.case for time in found), reverse=True)


def launched(
    mpi: Mpi, cases: Cases, folder: Path, monkeypatch: pytest.MonkeyPatch, budget_s: float, ranks: int = RANKS
) -> Measurements:
    for name, value in mpi.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MPICC", " ".join([mpi.compilers["c"], *mpi.flags]))
    launch = [mpi.launcher, "-n", str(ranks), HERE, "./application", "input"]
    return module.replay(cases, launch, folder, budget_s=budget_s, announce=False)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_it_makes_the_calls_of_the_plan(mpi: Mpi, tmp_path: Path, is_compiled: bool) -> None:
    """Two rows of two ranks gather 300 bytes of each; the v form has the bytes of each rank."""
    cases = Cases(
        [Case(2, "s*.1", "allgather", 2, 9, 300), Case(1, "W0.0", "alltoallv", 4, -1, 1000)],
        [ROWS, (tuple(range(RANKS)),)],
        [None, (((400, 400), (400, 400), (800, 0), (0, 800)),)],
        RANKS,
        library_of(mpi),
    )
    (tmp_path / PLAN).write_text(plan_text(cases, 1), encoding="utf-8")
    (tmp_path / TIMES).touch()
    settings = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "COMMLENS_MATRIX": "all"}
    program = compiled(mpi, tmp_path) if is_compiled else interpreted(tmp_path)
    done = mpi.run(RANKS, [*program, "0.5"], {**settings, **mpi4py_env(mpi), "PYTHONPATH": PYTHON})
    assert done.rc == 0, done
    found = read_measurements(tmp_path)
    with closing(sqlite3.connect(done.profile)) as connection:
        rows = connection.execute(
            "SELECT comm.size, op.name, key.bin, cell.rank, SUM(calls), SUM(bytes_sent), SUM(bytes_received) FROM cell "
            "JOIN key ON key.id = cell.key JOIN comm ON comm.id = key.comm JOIN op ON op.id = key.op "
            "WHERE op.name IN ('MPI_Allgather', 'MPI_Alltoallv') GROUP BY comm.size, op.name, key.bin, cell.rank"
        ).fetchall()
    gathers = sum(1 for one in found.times if one.case == 0)
    exchanges = sum(1 for one in found.times if one.case == 1)
    assert gathers or exchanges  # with much other load, the time may be over before both
    assert {tuple(row) for row in rows if row[1] == "MPI_Allgather"} == {
        (2, "MPI_Allgather", 9, rank, gathers, 300 * gathers, 600 * gathers)
        for rank in range(RANKS if gathers else 0)
    }
    totals = {
        row[3]: (row[4], round(row[5] / row[4]), round(row[6] / row[4]))
        for row in rows
        if row[1] != "MPI_Allgather"
    }
    assert totals == {
        rank: (exchanges, *sizes)
        for rank, sizes in enumerate([(400, 400), (400, 400), (800, 0), (0, 800)] if exchanges else [])
    }


def test_it_goes_on_after_an_interruption(mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = planned(mpi, Case(1, "W0.0", "alltoall", 2, 10, 1000), processes=2)
    launched(mpi, cases, tmp_path, monkeypatch, 5.5, ranks=2)
    first = killed_early(tmp_path)
    rest: list[Time] = []
    for _ in range(TRIES):  # with much other load, the time may be over before anything is measured
        rest = rest or more_than(first, launched(mpi, cases, tmp_path, monkeypatch, 5.5, ranks=2).times)
    assert rest


def killed_early(folder: Path) -> list[Time]:
    """Leave of a measurement what a kill in round 2 leaves, when no candidate is known well enough; return its times."""
    path = folder / TIMES
    header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.startswith(("0,", "1,"))]
    path.write_text("".join([header, *kept, "2,0,0,0"]), encoding="utf-8")
    first = read_measurements(folder).times
    assert first
    return first


def more_than(first: list[Time], times: list[Time]) -> list[Time]:
    """Assert that a replay went on after `first`; return what it added."""
    assert times[: len(first)] == first
    rest = times[len(first) :]
    assert all(one.round == 0 or one.round > first[-1].round for one in rest)
    return rest


def test_an_interrupt_keeps_what_was_measured(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt of a terminal, which reaches all processes. The launcher never ends by itself."""
    if mpi.family != "openmpi":
        pytest.skip("the slow library, which gives the plan its case, is for Open MPI")
    slow = mpi.compile("slow_algorithm.c", None, "-ldl", shared=True)
    monkeypatch.setenv("SLOW_MICROSECONDS", "2000")
    before = mpi.run(2, [mpi.compile("tune.c")], mode="preload", preload=[slow])
    bins = tmp_path / "bin"
    bins.mkdir()
    (bins / "mpirun").write_text(f'#!/bin/sh\n{mpi.launcher} "$@"\nsleep 600\n', encoding="utf-8")
    (bins / "mpirun").chmod(0o755)
    compiler = " ".join([mpi.compilers["c"], *mpi.flags])
    environment = {**os.environ, **mpi.environment, "MPICC": compiler}
    command = [
        sys.executable,
        "-m",
        "commlens",
        "tune",
        before.profile,
        "--op",
        "Alltoall",
        "--until",
        "replay",
    ]
    command += ["--to", tmp_path / "to"]
    application = ["-n", "2", mpi.compile("tune.c")]
    times = tmp_path / "to" / TIMES
    job = subprocess.Popen(
        [*map(str, command), "--budget", "100", "--", str(bins / "mpirun"), *map(str, application)],
        env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell ignores it in its background jobs
    )  # fmt: skip
    until = time.monotonic() + 90 * PATIENCE
    while not (times.exists() and "\n1,0," in times.read_text(encoding="utf-8")) and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(job.pid, signal.SIGINT)
    said = job.communicate(timeout=60 * PATIENCE)[1]
    assert job.returncode == 2, said
    assert said.splitlines()[-1].endswith("to has what was measured, and the same command goes on"), said
    assert "Traceback" not in said
    assert {one.round for one in read_measurements(tmp_path / "to").times} >= {0, 1}
    first = killed_early(tmp_path / "to")
    rest: list[Time] = []
    for _ in range(TRIES):  # as above
        if not rest:
            done = subprocess.run(
                [*map(str, command), "--budget", "6", "--", mpi.launcher, *map(str, application)],
                env=environment, capture_output=True, text=True, timeout=120 * PATIENCE, check=True,
            )  # fmt: skip
            assert "measured)" in done.stdout
            rest = more_than(first, read_measurements(tmp_path / "to").times)
    assert rest


def test_a_budget_is_kept(mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = planned(
        mpi,
        *(Case(1, "W0.0", name, 2, 15, 20000) for name in ("bcast", "allreduce", "alltoall")),
        processes=2,
    )
    begin = time.monotonic()
    found = launched(mpi, cases, tmp_path, monkeypatch, 6.0, ranks=2)
    assert time.monotonic() - begin < 60 * PATIENCE
    assert found.times
    assert Path(found.module).name.startswith("libmpi")  # the file whose tables a rule for MPICH changes


def test_another_number_of_processes_or_library_is_refused(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(1, "W0.0", "barrier", 4, 0, 0)
    with pytest.raises(CommlensError, match=r"3 processes were started, but the profile has 4"):
        launched(mpi, planned(mpi, case), tmp_path / "a", monkeypatch, 5, ranks=3)
    other = "MPICH Version: 4.0" if mpi.family == "openmpi" else "Open MPI v4.1.4"
    with pytest.raises(CommlensError, match=r"set MPICC to the mpicc of the run's library"):
        launched(mpi, Cases([case], [((0, 1, 2, 3),)], [None], 4, other), tmp_path / "b", monkeypatch, 5)


def test_without_a_compiler_python_measures(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collectives with a choice are called. Without mpi4py, one line says what is missing."""
    if mpi.family == "abi":
        pytest.skip("mpi4py's wheel has no build for the standard interface")
    varying, alike = (((400, 800), (800, 400)),), (((800, 400), (800, 400)),)
    named = [Case(1, "W0.0", name, 2, 7, 64) for name in sorted(COLLECTIVES)]
    cases = planned(mpi, *named, processes=2)
    monkeypatch.setattr(measurements, "candidates_of", lambda library, case: candidates_of(library, case)[:2])
    for i, case in enumerate(named):
        if case.collective.endswith(("v", "w")):
            cases.blocks[i] = varying
        if case.collective == "reduce_scatter":  # an algorithm of MPICH needs equal blocks
            cases.blocks[i] = alike
    monkeypatch.delenv("MPICC", raising=False)
    for name, value in {**mpi.environment, **mpi4py_env(mpi), "PYTHONPATH": PYTHON}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    launch = [mpi.launcher, "-n", "2", HERE, "./application"]
    times: list[Time] = []
    for _ in range(20):  # on a machine with much other load it goes on several times
        found = module.replay(cases, launch, tmp_path, budget_s=6, announce=False)
        assert module.IN_PYTHON in found.notes
        assert Path(found.module).name.startswith("libmpi")
        assert found.times[: len(times)] == times
        times = found.times
        if len({time.case for time in times if time.round}) > 10:  # the library has a choice for no fewer
            break
    else:
        pytest.fail(f"{len(times)} times, but not of ten collectives")
    assert all(time.operation_ns <= time.time_ns for time in times)
    monkeypatch.setattr(compiler, "find_spec", lambda _: None)
    with pytest.raises(
        CommlensError, match=r"^no mpicc to compile the replay with, and no mpi4py\. Set MPICC"
    ):
        module.replay(cases, launch, tmp_path, budget_s=6, announce=False)


def test_a_launcher_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mpi: Mpi) -> None:
    assert shutil.which("false")
    monkeypatch.setenv("MPICC", " ".join([mpi.compilers["c"], *mpi.flags]))
    cases = planned(mpi, Case(1, "W0.0", "barrier", 4, 0, 0))
    with pytest.raises(CommlensError, match=r"'false .*' ended with 1"):
        module.replay(cases, ["false", HERE, "./application"], tmp_path, announce=False)


def test_it_compiles_without_warnings(mpi: Mpi, tmp_path: Path) -> None:
    command = [mpi.compilers["c"], *mpi.flags, "-Wall", "-Wextra", "-fsyntax-only", str(module.SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr == ""


@pytest.mark.parametrize(("number", "is_compiled"), [(2, True), (3, True), (4, True), (4, False)])
def test_open_mpi_runs_the_algorithm_of_the_candidate(
    mpi: Mpi, tmp_path: Path, number: int, is_compiled: bool
) -> None:
    """The plan is cut down to one candidate, so that the messages below MPI are those of its algorithm alone."""
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI shows the messages inside collectives")
    cases = planned(mpi, Case(1, "W0.0", "allgather", 4, 7, 100))
    lines = plan_text(cases, 1).splitlines()
    head = lines[: lines.index(next(line for line in lines if line.startswith("case "))) + 1]
    chosen = next(line for line in lines if line.startswith(f"candidate {number}:"))
    (tmp_path / PLAN).write_text("\n".join([*head, "2", chosen, chosen]) + "\n", encoding="utf-8")
    settings = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "COMMLENS_MATRIX": "all"}
    (tmp_path / TIMES).touch()
    program = compiled(mpi, tmp_path) if is_compiled else interpreted(tmp_path)
    done = mpi.run(RANKS, [*program, "0.3"], {**settings, **mpi4py_env(mpi), "PYTHONPATH": PYTHON})
    assert done.rc == 0, done
    said = CliRunner().invoke(commlens, ["algorithms", str(done.profile), "--op", "allgather"]).output
    assert {2: "bruck", 3: "recursive_doubling", 4: "ring"}[number] in said, said
