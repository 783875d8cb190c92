# SPDX-License-Identifier: Apache-2.0
"""Profiles whose rows make no sense: types, ranges, references."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run, marked_builder
from test_hostile_profiles import COMMANDS, change, said


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a profile with regions and messages, which the test may spoil."""
    return marked_builder().write(tmp_path / "p.db")


# Types, ranges, references.


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        (
            "UPDATE rank SET app_ns = 'soon' WHERE rank = 1",
            "table rank: 1 row is invalid and left out",
        ),
        ("UPDATE rank SET calls = 2.5 WHERE rank = 1", "table rank: 1 row is invalid and left out"),
        ("UPDATE rank SET node = NULL WHERE rank < 2", "table rank: 2 rows are invalid and left out"),
        ("UPDATE rank SET mpi_ns = -1 WHERE rank = 0", "table rank: 1 row is invalid and left out"),
        (
            "UPDATE rank SET rank = 1099511627776 WHERE rank = 3",
            "table rank: 1 row is invalid and left out",
        ),
        ("UPDATE comm SET kind = 'odd' WHERE id = 2", "table comm: 1 row is invalid and left out"),
        (
            "UPDATE comm SET size = 'x' WHERE id = 2",
            "table comm: an invalid value is left out in 1 row",
        ),
        ("UPDATE key SET bin = 64 WHERE bin = 4", "table key: 1 row is invalid and left out"),
        (
            "UPDATE key SET op = 999 WHERE bin = 4",
            "table key: an invalid value is left out in 1 row",
        ),
        (
            "UPDATE cell_row SET time_ns = x'00' WHERE id = 5",
            "table cell_row: 1 row is invalid and left out",
        ),
        ("UPDATE op SET name = x'4d' WHERE id = 1", "table op: 1 row is invalid and left out"),
        (
            "UPDATE meta SET value = '12x' WHERE key = 'slice_ns'",
            "table meta: the value of slice_ns is invalid",
        ),
        (
            "UPDATE meta SET value = '٣' WHERE key = 'elapsed_ns'",
            "table meta: the value of elapsed_ns is invalid",
        ),
        ("UPDATE peer SET rank = -5 WHERE rank = 1", "table peer: 2 rows are invalid and left out"),
        (
            "UPDATE region SET parent = 99 WHERE id = 3",
            "table region: an invalid value is left out in 1 row",
        ),
        ("UPDATE region SET parent = id", "table region: an invalid value is left out in 8 rows"),
        (
            "UPDATE region SET name = HEX(ZEROBLOB(1000000)) WHERE id = 3",
            "table region: 1 row is invalid and left out",
        ),
    ],
)
def test_what_makes_no_sense_is_left_out_and_said(
    profile: Path, run: Run, statement: str, complaint: str
) -> None:
    change(profile, "PRAGMA ignore_check_constraints = ON", statement)
    for command in COMMANDS:
        assert complaint in said(run, profile, *command)


def test_counters_whose_sum_is_more_than_a_number_can_hold_are_left_out(profile: Path, run: Run) -> None:
    change(profile, "UPDATE cell_row SET time_ns = 1 << 60 WHERE id % 4 < 2")
    with closing(sqlite3.connect(profile)) as connection:
        (count,) = connection.execute("SELECT COUNT(*) FROM cell_row WHERE time_ns = 1 << 60").fetchone()
    assert said(run, profile, "report") == [f"table cell_row: {count} rows are invalid and left out"]
    change(profile, "UPDATE key SET usual_calls = 1 << 60")
    assert any("table cell_row" in line for line in said(run, profile, "report"))


@pytest.mark.parametrize("table", ["comm", "region"])
def test_parents_that_lead_back_come_to_an_end(profile: Path, run: Run, table: str) -> None:
    change(profile, f"UPDATE {table} SET parent = (id + 1) % 3 WHERE id < 3")
    for command in (*COMMANDS, ("comms", "--unfold")):
        assert any(f"table {table}" in line for line in said(run, profile, *command))
    unfolded = json.loads(run("comms", profile, "--unfold", "--format", "json").stdout)
    assert len(unfolded) == 3, "nobody is lost"


@pytest.mark.long
def test_regions_are_no_deeper_than_a_thread_goes(profile: Path, run: Run) -> None:
    change(
        profile,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
        " INSERT INTO region SELECT 99 + i, CASE i WHEN 1 THEN 0 ELSE 98 + i END, 'deep', 'region' FROM n",
    )
    assert "table region: 38 rows have an invalid parent" in said(run, profile, "regions")


@pytest.mark.parametrize("table", ["op", "comm", "callsite", "region"])
def test_a_table_that_has_lost_its_rows_has_the_one_for_what_is_not_known(
    profile: Path, run: Run, table: str
) -> None:
    change(profile, f"DELETE FROM {table}")
    for command in COMMANDS:
        assert f"table {table} has no rows" in said(run, profile, *command)
    rows = run("sql", profile, f"SELECT id FROM {table}", "--format", "csv").stdout
    assert rows == "id\n0\n"


def test_a_column_that_is_lost_is_empty(profile: Path, run: Run) -> None:
    change(
        profile,
        "ALTER TABLE meta RENAME TO old",
        "CREATE TABLE meta (key TEXT PRIMARY KEY) WITHOUT ROWID",
        "INSERT INTO meta SELECT key FROM old",
        "DROP TABLE old",
    )
    for command in COMMANDS:
        assert "table meta lacks the columns value" in said(run, profile, *command)
    rows = run(
        "sql", profile, "SELECT DISTINCT value FROM meta WHERE key <> 'ranks'", "--format", "csv"
    ).stdout
    assert rows in ('value\n""\n', "value\n\n")


@pytest.mark.parametrize("ranks", [10**7, 2**40, 2**63, 10**30, -1])
def test_a_claim_of_ranks_is_no_memory(profile: Path, run: Run, ranks: int) -> None:
    change(profile, f"UPDATE meta SET value = '{ranks}' WHERE key = 'ranks'")
    result = run("matrix", profile, "--format", "json")
    assert len(json.loads(result.stdout)["labels"]) == 4
    assert said(run, profile, "report") == ["table meta: the value of ranks is invalid"]
    report = json.loads(run("report", profile, "--format", "json").stdout)
    assert sum(row["calls"] for row in report["communicators"]) == sum(
        cell.calls for cell in marked_builder().cells
    ), "the keys say how many there are"


@pytest.mark.parametrize(
    "members", ["0-1099511627775", "0-9999999", "0-3:0", "3-0", "²", "0-" + "9" * 400, ",,,", "0-1:-1"]
)
def test_a_claim_of_members_is_no_memory(profile: Path, run: Run, members: str) -> None:
    change(profile, f"UPDATE comm SET members = '{members}', size = 1000000 WHERE id = 1")
    for command in (
        *COMMANDS,
        ("matrix", "--comm", "*"),
        ("matrix", "--kind", "modelled"),
        ("matrix", "--kind", "modelled", "--algorithm", "bcast=linear"),
        ("algorithms",),
    ):
        name, *options = command
        assert run(name, profile, *options).exit_code in (0, 3)


def test_ranks_iterations_and_slices_far_apart_are_no_memory(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2, meta={"slice_ns": "9" * 18})
    loop = build.region("loop", kind="loop")
    for place in range(200):
        build.spend(loop, 1, 1, 10, execution=1000 * place, iteration=2**21)
    path = build.write(tmp_path / "far.db")
    result = run("export", path, "--to", "tinyprof", "-o", tmp_path / "out.csv")
    assert result.exit_code == 2
    assert "too far apart for this format" in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_number_beyond_what_sqlite_has_is_refused(profile: Path, run: Run) -> None:
    for option, value in (("--rank", "9" * 25), ("--time", "9" * 25 + ":")):
        result = run("report", profile, option, value)
        assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize(
    "text", ["CAST(x'ff80' AS TEXT)", "CAST(x'eda080' AS TEXT)", "CHAR(0, 65, 0)", "CHAR(27, 155, 8238)"]
)
def test_a_text_may_have_any_bytes(profile: Path, run: Run, tmp_path: Path, text: str) -> None:
    for table, column in (
        ("comm", "name"),
        ("region", "name"),
        ("rank", "node"),
        ("callsite", "module"),
        ("op", "name"),
        ("tag", "value"),
    ):
        change(
            profile,
            f"UPDATE OR IGNORE {table} SET {column} = {text} WHERE rowid > 1"
            if table != "tag"
            else f"UPDATE OR IGNORE tag SET value = {text}",
        )
    for command in COMMANDS:
        name, *options = command
        assert run(name, profile, *options).exit_code in (0, 3)
    for to in ("hatchet", "chrome", "csv"):
        assert run("export", profile, "--to", to, "-o", tmp_path / to).exit_code in (0, 3)
