# SPDX-License-Identifier: Apache-2.0
"""Profiles with untimed calls, of which the reader knows how many there are and how exact their time is."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run, small_builder
from fleet_cases import content

MS = 10**6


def with_untimed(plain: Path, path: Path) -> Path:
    """Write a copy of a profile in which every third call of each cell was not timed."""
    shutil.copy(plain, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO untimed SELECT key, rank, calls / 3, 4 FROM cell WHERE calls >= 3")
    return path


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    """Return a profile, and the same one with untimed calls."""
    plain = small_builder().write(tmp_path / "plain.db")
    return plain, with_untimed(plain, tmp_path / "untimed.db")


def test_the_views_tell_timed_calls_and_the_error(both: tuple[Path, Path], run: Run) -> None:
    plain, untimed = both
    sql = "SELECT SUM(calls), SUM(timed), SUM(calls / 3), SUM(time_error_ns), SUM(calls >= 3) FROM {}"
    for view in ("cell", "counter"):
        calls, timed, third, error, cells = map(
            int, run("sql", untimed, sql.format(view), "--format", "csv").stdout.splitlines()[1].split(",")
        )
        assert third > 0
        assert (timed, error) == (calls - third, 4 * cells), view
        assert run("sql", plain, sql.format(view), "--format", "csv").stdout.splitlines()[1].split(",")[
            :4
        ] == [
            str(calls),
            str(calls),
            str(third),
            "0",
        ]


def test_the_error_of_a_sum_is_the_root_of_the_squares(both: tuple[Path, Path], run: Run) -> None:
    with closing(sqlite3.connect(both[1])) as connection:
        rows, calls = connection.execute("SELECT COUNT(*), SUM(calls) FROM untimed").fetchone()
    (line,) = [x for x in run("report", both[1]).stdout.splitlines() if x.startswith("estimated")]
    assert f"{calls:,} calls" in line
    assert f"standard error of the time in MPI: {round(4 * rows**0.5)} ns" in line


def test_ranks_and_the_timeline_say_so_too(both: tuple[Path, Path], run: Run) -> None:
    plain, untimed = both
    (line,) = [x for x in run("report", untimed).stdout.splitlines() if x.startswith("estimated")]
    assert run("ranks", untimed).stdout == f"{line}\n\n{run('ranks', plain).stdout}"
    for path in both:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('slice_ns', ?)", (str(500 * MS),))
            key, rank = connection.execute("SELECT key, rank FROM cell LIMIT 1").fetchone()
            connection.execute(
                "INSERT INTO slice SELECT comm, op, ?, 0, 1, 9000000000, 0, 0 FROM key WHERE id = ?",
                (rank, key),
            )
    drawn = run("timeline", untimed).stdout
    assert drawn == f"{line}\n{run('timeline', plain).stdout}"
    assert drawn.splitlines()[-1].startswith("in MPI: 0 % .:-=+*#%@ 100.0 %; a cell is")


def test_other_commands_see_the_same_calls(both: tuple[Path, Path], tmp_path: Path, run: Run) -> None:
    plain, untimed = both
    assert run("compare", plain, untimed, "--fail-if", "messages > 0%").exit_code == 0
    for command in (("comms",), ("ranks",), ("report",)):
        tables = [json.loads(run(*command, path, "--format", "json").stdout) for path in both]
        for table in tables:
            if isinstance(table, dict):
                table.pop("untimed", None)
                table.pop("run", None)
        assert tables[0] == tables[1], command
    for name, path in (("a", plain), ("b", untimed)):
        shutil.copy(path, tmp_path / "job.db")
        done = run("ingest", tmp_path / "job.db", "--into", tmp_path / name, "--cluster", "demo")
        assert done.exit_code == 0, done.stderr
    datasets = [content(tmp_path / name) for name in ("a", "b")]
    for dataset in datasets:
        del dataset["job"]  # has when it was read
        assert dataset["operation"]
    assert datasets[0] == datasets[1]


def test_a_rank_without_timed_calls_does_not_have_the_shortest(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2)
    for rank in range(2):
        build.count(1, "MPI_Iprobe", rank, 10, MS)
    path = build.write(tmp_path / "x.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO untimed SELECT key, rank, 10, 4 FROM cell WHERE rank = 1")
        connection.execute("UPDATE cell_row SET time_min_ns = 0, time_max_ns = 0 WHERE id % 2 = 1")
    (row,) = json.loads(run("report", path, "--format", "json").stdout)["operations"]
    assert (row["calls"], row["call_min_ns"], row["call_max_ns"]) == (20, MS // 20, MS // 5)
    least = run("sql", path, "SELECT time_min_ns FROM key_total", "--format", "csv").stdout.splitlines()
    assert least[1:] == [str(MS // 20)]
