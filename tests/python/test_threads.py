# SPDX-License-Identifier: Apache-2.0
"""`commlens threads`: calls and regions by thread."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, marked_builder
from rich.cells import cell_len
from test_old_profiles import refused
from test_text import in_terminal

from commlens.profile import open_profile


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a profile in which the keys are dealt out to the main thread, `io` and, on rank 1, all further threads."""
    build = marked_builder()
    for rank in range(4):
        build.more.setdefault("thread", []).extend(
            [
                (rank, 0, "main", 1, 100 + rank, "app"),
                (rank, 1, "thread", 1, 200 + rank, "io\x1b[31m"),
            ]
        )
    build.more["thread"].append((1, -1, "others", 1000, None, None))
    path = build.write(tmp_path / "threads.db")
    thread = "CASE WHEN rank = 1 AND key / 4 % 3 = 2 THEN -1 ELSE key / 4 % 2 END"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            f"INSERT INTO thread_cell SELECT key, rank, {thread}, calls, time_ns, time_min_ns, time_max_ns, bytes_sent, "
            "bytes_received FROM cell"
        )
        connection.execute(
            'INSERT INTO thread_region SELECT region, rank, 0, SUM(calls), SUM("open"), SUM(time_ns), SUM(nested_ns), '
            "SUM(mpi_ns) FROM region_time GROUP BY region, rank"
        )
        connection.commit()
    return path


def asked(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement."""
    with open_profile(str(path)) as connection:
        return [tuple(row) for row in connection.execute(sql)]


def test_a_row_is_all_threads_of_a_name(profile: Path, run: Run) -> None:
    found = json.loads(run("threads", profile, "--format", "json").stdout)
    threads = {(row["kind"], row["name"]): row for row in found["threads"]}
    assert {name: (row["ranks"], row["threads"]) for name, row in threads.items()} == {
        ("main", "app"): (4, 4),
        ("thread", "io\x1b[31m"): (4, 4),
        ("others", None): (1, 1000),
    }
    sums = ("calls", "time_ns", "bytes_sent", "bytes_received")
    for rows in (found["threads"], found["calls"]):
        total = asked(profile, f"SELECT {', '.join(f'SUM({name})' for name in sums)} FROM cell")
        assert [tuple(sum(row[name] for row in rows) for name in sums)] == total
    of_ranks = asked(profile, "SELECT SUM(time_ns) FROM thread_cell WHERE thread = 1 GROUP BY rank")
    assert threads["thread", "io\x1b[31m"]["thread_max_ns"] == max(of_ranks)[0]
    assert threads["others", None]["thread_max_ns"] is None


def test_each_thread_of_a_rank(profile: Path, run: Run) -> None:
    text = run("threads", profile, "--each", "--rank", "1", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {(row["rank"], row["thread"], row["kind"]) for row in rows} == {
        ("1", "0", "main"),
        ("1", "1", "thread"),
        ("1", "-1", "others"),
    }
    assert [(sum(int(row["calls"]) for row in rows),)] == asked(
        profile, "SELECT SUM(calls) FROM cell WHERE rank = 1"
    )
    lines = run("threads", profile, "--each", "--rank", "1").stdout.splitlines()
    names = [line[:23].rstrip() for line in lines if not line.startswith(" ")]
    assert sorted(names) == ["1.0 main thread (app)", "1.1 io\\x1b[31m", "1: others", "thread"]


def test_calls_can_be_selected(profile: Path, run: Run) -> None:
    found = json.loads(run("threads", profile, "--op", "bcast", "--format", "json").stdout)
    assert {row["operation"] for row in found["calls"]} == {"MPI_Bcast"}
    assert all(row["calls"] for row in found["threads"])
    assert run("threads", profile, "--op", "bcast", "--class", "p2p").stdout == "no calls match\n"
    assert "no rank 7" in refused(run, "threads", profile, "--rank", "7")


def test_regions_of_a_thread(profile: Path, run: Run) -> None:
    found = json.loads(run("threads", profile, "--by", "regions", "--format", "json").stdout)
    assert {row["kind"] for row in found["regions"]} == {"main"}
    assert {(row["path"], row["time_ns"]) for row in found["regions"]} == set(
        asked(
            profile,
            "SELECT path, SUM(time_ns) FROM region_time JOIN region_path USING (region) GROUP BY region",
        )
    )


def test_what_a_profile_without_threads_says(small: Path, run: Run) -> None:
    assert run("threads", small).stdout == (
        "no counters of single threads: set COMMLENS_THREADS=each in the run\n"
    )


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_table_fits_the_terminal(profile: Path, columns: int) -> None:
    for options in ((), ("--each",), ("--by", "regions")):
        lines = in_terminal(columns, "threads", profile, *options, NO_COLOR="1").splitlines()
        bare = ["".join(part.split("m", 1)[-1] for part in ("m" + line).split("\x1b[")) for line in lines]
        assert max(cell_len(line) for line in bare) <= columns
