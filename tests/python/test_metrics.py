# SPDX-License-Identifier: Apache-2.0
"""`commlens metrics`: sums of the values, and the values in order."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import ProfileBuilder, execute
from conftest import Run
from test_old_profiles import refused
from test_text import in_terminal

MS = 1_000_000


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return two ranks with a residual that halves, of which one has two threads, and a metric without a series."""
    build = ProfileBuilder(ranks=2)
    solve = build.region("solve")
    build.spend(solve, 0, 1, 1000)
    residual, memory = build.metric("residual", "1"), build.metric("memory in use", "MiB")
    for rank in (0, 1):
        build.tell(residual, solve, rank, [0.5**i for i in range(8)], not_finite=rank)
        build.tell(memory, 0, rank, [100.0 + rank])
    build.more["metric_series"] = [
        (residual, rank, thread, i, 10 * i * MS, solve, 0, -1, 0.5**i)
        for rank, thread in ((0, 0), (1, 0), (1, 3))
        for i in range(0, 8, 2)
    ]
    return build.write(tmp_path / "p.db")


def test_the_table_has_a_line_for_each_metric(profile: Path, run: Run) -> None:
    lines = run("metrics", profile).stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["metric", "values", "min", "average", "max", "sum", "not", "finite", "ranks", "regions"],
        ["memory", "in", "use", "[MiB]", "2", "100", "100.5", "101", "201", "2", "1"],
        ["residual", "16", "0.0078125", "0.249023", "1", "3.98438", "1", "2", "1"],
    ]


def test_a_sum_that_is_unknown_on_a_rank_is_unknown_as_a_whole(profile: Path, run: Run) -> None:
    execute(profile, "UPDATE metric_value SET sum = NULL WHERE rank = 1 AND region = 0")
    memory, residual = json.loads(run("metrics", profile, "--format", "json").stdout)
    assert (memory["count"], memory["sum"]) == (2, None)
    assert residual["sum"] == pytest.approx(3.984375)
    rows = json.loads(run("regions", profile, "--format", "json").stdout)["metrics"]
    assert {row["name"]: row["sum"] for row in rows} == {"memory in use": None, "residual": residual["sum"]}


def test_a_series_has_a_line_for_each_thread_that_recorded_values(profile: Path, run: Run) -> None:
    assert run("metrics", profile, "--series").stdout.splitlines() == [
        "residual: 12 of 16 values, 0.015625 (▁) to 1 (█), from 0 ns to 60.0 ms",
        "rank  values  over time",
        *(f"{name:<4}       4  █{'·' * 18}▂{'·' * 19}▁{'·' * 19}▁" for name in ("0.0", "1.0", "1.3")),
    ]


def test_ranks_and_metrics_can_be_selected(profile: Path, run: Run) -> None:
    rows = json.loads(run("metrics", profile, "--series", "--rank", "1", "--format", "json").stdout)
    assert [(row["rank"], row["thread"], row["number"]) for row in rows] == [
        (1, thread, number) for thread in (0, 3) for number in (0, 2, 4, 6)
    ]
    assert rows[1] == {
        "metric": 0, "name": "residual", "unit": "1", "rank": 1, "thread": 0, "number": 2, "time_ns": 20 * MS,
        "path": "solve", "execution": 0, "iteration": -1, "value": 0.25,
    }  # fmt: skip
    text = run("metrics", profile, "--metric", "mem*", "--format", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["name"], row["count"], row["sum"], row["regions"]) == ("memory in use", "2", "201.0", "1")
    assert run("metrics", profile, "--metric", "mem*", "--series").stdout == (
        "no values one by one: set COMMLENS_METRIC_SERIES in the run\n"
    )
    assert (
        refused(run, "metrics", profile, "--metric", "none") == "commlens: no metric 'none' in this profile\n"
    )
    assert "no rank 7" in refused(run, "metrics", profile, "--rank", "7")


def test_the_printed_statements_return_the_rows(profile: Path, run: Run) -> None:
    statements = run("metrics", profile, "--series", "--sql").stdout.split(";")
    with closing(sqlite3.connect(profile)) as connection:
        counts = [len(connection.execute(sql).fetchall()) for sql in statements if sql.strip()]
    assert counts == [2, 12]


def test_a_program_without_metrics_is_told_how_to_record_them(small: Path, run: Run) -> None:
    assert run("metrics", small).stdout.startswith("no metrics: the application records them with")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_gets_lines_that_fit(profile: Path, columns: int) -> None:
    lines = in_terminal(columns, "metrics", profile, "--series", NO_COLOR="1").splitlines()
    assert max(map(len, lines)) <= columns + 10  # of escapes


def test_values_that_are_no_numbers_are_not_drawn(profile: Path, run: Run) -> None:
    with closing(sqlite3.connect(profile)) as connection, connection:
        connection.execute("UPDATE metric_series SET value = 9e999 WHERE number = 2")
        connection.execute("UPDATE metric_series SET time_ns = 1152921504606846976 WHERE number = 4")
    result = run("metrics", profile, "--series")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("residual: 9 of 16 values")
