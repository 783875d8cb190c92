# SPDX-License-Identifier: Apache-2.0
"""A profile of summary detail is read like one of full detail, where it can tell the same."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from build_profile import execute
from conftest import Run, small_builder
from summarise import summarised
from test_numbers import made_up

SAID_ONLY_OF_WHOLE_LINES = ("--op", "--class", "--size")
PARTS_OF_FAMILIES = {"--comm": ("ranks", "rank_max_ns", "rank_avg_ns", "calls_per_rank")}


@pytest.fixture(scope="module", params=range(6))
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    build = made_up(request.param) if request.param else small_builder()
    full = build.write(tmp_path_factory.mktemp("both") / "full.db")
    return full, summarised(full)


def report(run: Run, path: Path, *options: str) -> dict[str, Any]:
    """Return a report."""
    result = run("report", path, "--format", "json", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def known(row: dict[str, Any], other: dict[str, Any], columns: tuple[str, ...]) -> dict[str, Any]:
    """Return a row without what `other` does not know of these columns."""
    return {name: None if name in columns and other[name] is None else value for name, value in row.items()}


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--unfold",),
        ("--callsites",),
        ("--callsites", "--unfold"),
        ("--buckets", "all"),
        ("--buckets", "mpisee", "--unfold"),
        ("--op", "Allreduce", "--op", "mpi_i*"),
        ("--class", "p2p", "--unfold"),
        ("--size", "1K:"),
        ("--comm", "2", "--comm", "W0.0"),
        ("--comm", "W0.0"),
        ("--comm", "2", "--unfold"),
    ],
    ids=" ".join,
)
def test_a_report_says_the_same(both: tuple[Path, Path], run: Run, options: tuple[str, ...]) -> None:
    full, summary = (report(run, path, *options) for path in both)
    of_lines, of_rows = set(), set()
    if any(option in SAID_ONLY_OF_WHOLE_LINES for option in options):
        of_lines.add("rank_max_ns")
    if "--buckets" in options:
        of_rows.add("rank_max_ns")
    if {"--callsites", "--unfold"} <= set(options):
        of_rows.add("rank_max_ns")  # of a row of several regions
    if "--comm" in options and "--unfold" not in options:
        of_lines.update(PARTS_OF_FAMILIES["--comm"])
        of_rows.update(PARTS_OF_FAMILIES["--comm"])
    for title, columns in (("communicators", of_lines), ("operations", of_rows)):
        assert len(summary[title]) == len(full[title]) > 0
        for found, wanted in zip(summary[title], full[title]):
            assert found == known(wanted, found, tuple(columns))
    assert summary["run"]["ranks"] == full["run"]["ranks"]
    assert summary["run"]["overhead"] == full["run"]["overhead"]
    assert summary["run"]["imported"] == full["run"]["imported"]


def test_what_is_whole_is_known(run: Run, tmp_path: Path) -> None:
    summary = summarised(small_builder().write(tmp_path / "full.db"))
    world = report(run, summary, "--comm", "W0.0")["communicators"]
    assert [row["ranks"] for row in world] == [4] and world[0]["rank_max_ns"] > 0
    part = report(run, summary, "--comm", "s0.1")["communicators"]
    assert [(row["ranks"], row["rank_max_ns"], row["rank_avg_ns"]) for row in part] == [(None, None, None)]
    rows = report(run, summary, "--op", "Allreduce", "--comm", "W0.0")
    assert rows["communicators"][0]["rank_max_ns"] is None
    assert rows["operations"][0]["rank_max_ns"] == 13_000_000


@pytest.mark.parametrize("arguments", [("comms",), ("comms", "--unfold"), ("coverage",)])
def test_other_commands_say_the_same(both: tuple[Path, Path], run: Run, arguments: tuple[str, ...]) -> None:
    full, summary = (run(arguments[0], path, "--format", "csv", *arguments[1:]) for path in both)
    assert (summary.exit_code, summary.stderr) == (0, "")
    wanted, found = (list(csv.DictReader(io.StringIO(result.stdout))) for result in (full, summary))
    assert wanted
    assert found == [{**row, "members": ""} if "members" in row else row for row in wanted]


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "--all-ranks"), ("report", "--rank", "0"), ("report", "--time", "0.1:"), ("report", "--members"),
        ("regions", "--all-ranks"), ("regions", "--rank", "0"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_only_single_ranks_tell_is_refused(
    both: tuple[Path, Path], run: Run, arguments: tuple[str, ...]
) -> None:
    command, *options = arguments
    result = run(command, both[1], *options)
    assert result.exit_code == 2
    assert result.stderr == (
        f"commlens: {options[0]} needs data of single ranks, but this profile has summary detail: "
        "query its table spread with 'commlens sql', or run with COMMLENS_DETAIL=full\n"
    )


def test_the_head_names_no_nodes(run: Run, tmp_path: Path) -> None:
    summary = summarised(small_builder().write(tmp_path / "full.db"))
    assert "4 ranks on 2 nodes\n" in run("report", summary).stdout


def test_a_region_has_no_efficiency_if_threads_called_at_the_same_time(tmp_path: Path) -> None:
    full = small_builder().write(tmp_path / "full.db")
    columns = "load_balance, communication_efficiency, parallel_efficiency"
    known = []
    for threads in (1, 2):
        execute(full, f"UPDATE rank SET threads = {threads}")
        for path in (full, summarised(full)):
            with closing(sqlite3.connect(path)) as connection:
                (row,) = connection.execute(f"SELECT {columns} FROM region_total WHERE region = 0").fetchall()
                known.append({value is not None for value in row})
    assert known == [{True}, {True}, {False}, {False}]


def test_communicators_that_share_a_row_are_freed_with_it(tmp_path: Path, run: Run) -> None:
    path = small_builder().write(tmp_path / "p.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE comm SET communicators = 64 WHERE name = 'a0.2'")
    result = run("comms", path, "--format", "json")
    rows = {row["communicator"]: (row["freed"], row["communicators"]) for row in json.loads(result.stdout)}
    assert rows == {"W0.0": (0, 1), "s*.1": (1, 2), "a0.2": (64, 64)}


@pytest.mark.parametrize("name", ["version6-summary.db", "version7-summary.db"])
def test_the_query_in_the_guide_has_a_value_for_every_quantile(run: Run, name: str) -> None:
    root = Path(__file__).parents[2]
    guide = (root / "docs/guide/read.md").read_text(encoding="utf-8")
    query = guide.split('commlens sql app.db "')[1].split('"')[0].replace(" LIMIT 10", "")
    rows = json.loads(run("sql", root / "tests/profiles" / name, query, "--format", "json").stdout)
    assert len(rows) > 10
    assert all(row["p05"] <= row["p50"] <= row["p95"] <= row["max"] for row in rows)
