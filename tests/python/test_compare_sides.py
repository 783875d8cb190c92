# SPDX-License-Identifier: Apache-2.0
"""`commlens compare`: sides of which only one has a row, that were killed, or that are parts of large families."""

from __future__ import annotations

from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import MS, Run, small_builder
from test_compare import document

# A row of one side.


def with_barrier(folder: Path, runs: int) -> list[Path]:
    """Write runs of the small program that also call MPI_Barrier."""
    paths = []
    for i in range(runs):
        build = small_builder()
        build.count(1, "MPI_Barrier", 0, 5, 20 * MS + i)
        paths.append(build.write(folder / f"new{i}.db"))
    return paths


def test_a_new_row_fails_a_condition_on_times(small: Path, tmp_path: Path, run: Run) -> None:
    new = with_barrier(tmp_path, 6)
    result = run("compare", *[small] * 6, "--", *new, "--fail-if", "time > 5%")
    assert (result.exit_code, result.stderr) == (1, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "MPI_Barrier 0 B on W0.0 takes 20.0 ms more: new in B"
    assert any(
        line.startswith("failed 'time > 5%': MPI_Barrier 0 B on W0.0: time 0 ns → 20.0 ms (new)")
        for line in lines
    )
    (row,) = [line.split() for line in lines if line.startswith("  MPI_Barrier")]
    assert row[-4:] == ["new", "new", "new", "slower"]
    few = run("compare", *[small] * 3, "--", *new[:3], "--fail-if", "time > 5%")
    assert few.exit_code == 4


def test_a_row_that_only_a_has_is_faster(small: Path, tmp_path: Path, run: Run) -> None:
    old = with_barrier(tmp_path, 6)
    result = run("compare", *old, "--", *[small] * 6, "--fail-if", "time < -50%")
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("MPI_Barrier 0 B on W0.0 saves 20.0 ms: calls -100.0 %\n")
    assert run("compare", *old, "--", *[small] * 6, "--fail-if", "time > 5%").exit_code == 0


def test_a_family_that_only_b_has_fails_a_condition_on_times(tmp_path: Path, run: Run) -> None:
    paths = []
    for i in range(12):
        build = ProfileBuilder(ranks=2)
        build.count(1, "MPI_Bcast", 0, 5, 10 * MS)
        if i >= 6:
            comm = build.comm("d0.1", [0, 1], parent=1, creator="MPI_Comm_dup")
            build.count(comm, "MPI_Bcast", 0, 5, 10 * MS)
        paths.append(build.write(tmp_path / f"{i}.db"))
    result = run("compare", *paths[:6], "--", *paths[6:], "--fail-if", "time > 5%")
    assert result.exit_code == 1
    assert "failed 'time > 5%': MPI_Bcast 0 B on d0.1 (MPI_Comm_dup): time 0 ns" in result.stdout


def test_infinite_bounds_are_null_in_json_and_empty_in_csv(small: Path, tmp_path: Path, run: Run) -> None:
    sides = [*[small] * 6, "--", *with_barrier(tmp_path, 6)]
    (row,) = [row for row in document(run, *sides)["rows"] if row["operation"] == "MPI_Barrier"]
    assert (row["low"], row["high"], row["time_ns_change"], row["significant"]) == (None, None, None, True)
    assert "inf" not in run("compare", *sides, "--format", "csv").stdout.lower()


# Runs that differ in their end.


def differing_line(run: Run, *paths: Path) -> str:
    """Return the line that says how the runs differ; empty if there is none."""
    lines = run("compare", *paths[:-1], "--", paths[-1]).stdout.splitlines()
    return next((line for line in lines if line.startswith("runs differ: ")), "")


def test_a_killed_run_is_a_line(small: Path, tmp_path: Path, run: Run) -> None:
    build = small_builder()
    build.states = {1: "SIGKILL", 2: "SIGKILL"}
    build.meta.update(open_calls="counted", ranks_collected="3")
    killed = build.write(tmp_path / "killed.db")
    assert differing_line(run, small, killed) == (
        "runs differ: ranks without data 0 → 1; ranks without MPI_Finalize 0 → 2; "
        "time of calls that did not return not counted → counted"
    )
    assert document(run, small, killed)["runs"] == {
        "ranks without data": {"a": ["0"], "b": ["1"]},
        "ranks without MPI_Finalize": {"a": ["0"], "b": ["2"]},
        "time of calls that did not return": {"a": ["not counted"], "b": ["counted"]},
    }
    assert differing_line(run, small, killed, small).startswith(
        "runs differ: ranks without data 0 or 1 → 0; "
    )


def test_another_number_of_ranks_is_a_line(small: Path, tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=8)
    build.count(1, "MPI_Bcast", 0, 5, 10 * MS)
    assert differing_line(run, small, build.write(tmp_path / "8.db")) == "runs differ: ranks 4 → 8"


def test_runs_that_ended_equally_have_no_such_line(small: Path, run: Run) -> None:
    assert differing_line(run, small, small) == ""
    assert document(run, small, small)["runs"] == {}


# Parts of large families.


@pytest.mark.long
def test_most_communicators_of_a_large_family_can_be_selected(tmp_path: Path, run: Run) -> None:
    """SQLite accepts expressions of a depth up to 1,000: one OR for each communicator would be too deep."""
    build = ProfileBuilder(ranks=4)
    made = {"parent": 1, "creator": "MPI_Comm_split", "family": 2}
    for i in range(1600):
        comm = build.comm(f"s0.{i + 1}", [0, 1], created_ns=i, **made)
        build.count(comm, "MPI_Bcast", 0, 1, MS, size=8, sent=64)
    path = build.write(tmp_path / "many.db")
    rows = document(run, path, path, "--comm", "s0.1*", "--comm", "s0.2*", "--comm", "s0.[3-9]??")["rows"]
    calls = sum(str(i + 1)[0] in "12" or 300 <= i + 1 <= 999 for i in range(1600))
    assert calls > 1100
    assert [(row["calls_a"], row["calls_b"]) for row in rows[2:]] == [(calls, calls)]
