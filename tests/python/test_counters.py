# SPDX-License-Identifier: Apache-2.0
"""`commlens metrics --counters`, and the lines of a report about events and MPI_Init."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from build_profile import OP_ID, ProfileBuilder
from conftest import Run
from test_old_profiles import refused
from test_shards import split

MS = 1_000_000


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return two ranks with cycles, which rank 1 counted half of the time in MPI, and CPU time."""
    build = ProfileBuilder(ranks=2)
    solve = build.region("solve")
    build.spend(solve, 0, 1, 1000)
    for rank in (0, 1):
        build.count(1, "MPI_Allreduce", rank, calls=1, time_ns=1 * MS, region=solve)
    cycles, clock = build.metric("cycles", ""), build.metric("task-clock", "ns")
    op = OP_ID["MPI_Allreduce"]
    build.more["event_count"] = [
        (cycles, 0, 0, 0, 0, 1000, 10, 10),
        (cycles, 0, 0, 0, 1, 500, 10, 10),
        (cycles, solve, 1, op, 0, 40, 10, 10),
        (cycles, solve, 1, op, 1, 30, 10, 5),
        (cycles, solve, 0, 0, 1, 0, 10, 0),
        (clock, solve, 1, op, 0, 3 * MS, 10, 10),
    ]
    return build.write(tmp_path / "p.db")


def test_a_line_is_a_region_or_a_procedure_in_it(profile: Path, run: Run) -> None:
    lines = run("metrics", profile, "--counters").stdout.splitlines()
    # Rank 1 counted 30 cycles in half of the time; of those outside MPI in region solve nothing is known.
    assert [line.split() for line in lines[:10]] == [
        ["region", "cycles", "task-clock"],
        ["whole", "program", "1,600", "3.00", "ms"],
        ["in", "MPI", "100", "3.00", "ms"],
        [],
        ["(outside", "all", "regions)", "1,500", "0", "ns"],
        ["outside", "MPI", "1,500", "0", "ns"],
        [],
        ["solve", "100", "3.00", "ms"],
        ["outside", "MPI", "?", "0", "ns"],
        ["MPI_Allreduce", "100", "3.00", "ms"],
    ]
    assert " ".join(" ".join(lines[10:]).split()) == (
        "note cycles: the processor had too few counters, so that the kernel counted it for a part of the time, at least 0 %; "
        "its numbers are estimates; of 1 row nothing is known"
    )


def test_events_and_ranks_can_be_selected(profile: Path, run: Run) -> None:
    command = ("metrics", profile, "--counters", "--rank", "1", "--metric", "cyc*", "--format", "json")
    rows = json.loads(run(*command).stdout)
    assert [(row["path"], row["operation"], row["count"], row["events"]) for row in rows] == [
        ("", None, 500, 500.0),
        ("solve", None, 0, None),
        ("solve", "MPI_Allreduce", 30, 60.0),
    ]
    text = run("metrics", profile, "--counters", "--format", "csv").stdout
    assert sum(int(row["count"]) for row in csv.DictReader(io.StringIO(text))) == 1570 + 3 * MS


def test_the_shards_of_a_profile_are_put_together(profile: Path, tmp_path: Path, run: Run) -> None:
    parts = split(profile, tmp_path / "parts.commlens")
    command = ("metrics", "--counters", "--format", "json")
    assert json.loads(run(*command, parts).stdout) == json.loads(run(*command, profile).stdout)


def test_wrong_requests_are_refused(profile: Path, small: Path, run: Run) -> None:
    assert "no event 'x' in this profile" in refused(run, "metrics", profile, "--counters", "--metric", "x")
    result = run("metrics", profile, "--counters", "--series")
    assert result.exit_code == 2
    assert "COMMLENS_COUNTERS" in run("metrics", small, "--counters").stdout


def test_a_report_has_the_sums_and_a_row_of_mpi_init(profile: Path, run: Run) -> None:
    (line,) = [line for line in run("report", profile).stdout.splitlines() if line.startswith("counters")]
    assert "cycles about 1,600 (6.2 % in MPI), task-clock 3.00 ms (100.0 % in MPI)" in line
    by_procedure = run("report", "--by", "op", profile).stdout.splitlines()
    (row,) = [line.split() for line in by_procedure if line.startswith("MPI_Init")]
    assert row[:5] == ["MPI_Init", "2", "ranks", "2", "1"]
    assert row.count("5.00") == 4  # largest and average of the ranks, of calls
    found = json.loads(run("report", profile, "--format", "json").stdout)["run"]
    assert found["init"] == {"ranks": 2, "time_ns": 10 * MS, "rank_avg_ns": 5 * MS, "rank_max_ns": 5 * MS}
    # A selection has no row of a call that is in no communicator and no cell.
    assert "MPI_Init" not in run("report", "--by", "op", "--comm", "W0.0", profile).stdout.replace(
        "from MPI_Init to MPI_Finalize", ""
    ).replace("in MPI_Init", "")
