# SPDX-License-Identifier: Apache-2.0
"""`commlens datatypes`: constructors, and the calls and bytes of each datatype."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run, small_builder

VECTOR = "vector(100, 3, 8) of MPI_DOUBLE"
# sent, received, target; of datatypes 1 (the vector), 2 (MPI_DOUBLE), 3 (never used)
USES = [
    (1, 0, 0, 0, 4, 4000, 9600, 0),
    (1, 2, 0, 1, 2, 2000, 4800, 2400),
    (2, 2, 0, 1, 10, 1000, 800, 800),
    (2, 0, 1, 1, 1, 100, 8, 0),
]


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return two ranks that send the vector, and receive it as numbers."""
    path = small_builder().write(tmp_path / "p.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        comm, op = connection.execute(
            "SELECT comm, op FROM key WHERE comm <> 0 AND op <> 0 ORDER BY id"
        ).fetchone()
        connection.executemany(
            "INSERT INTO datatype VALUES (?, ?, ?, ?, ?)",
            [
                (1, VECTOR, 2400, 0, 6360),
                (2, "MPI_DOUBLE", 8, 0, 8),
                (3, "contiguous(2) of MPI_CHAR", 2, 0, 2),
            ],
        )
        connection.executemany(
            f"INSERT INTO datatype_use VALUES ({comm}, {op}, ?, ?, ?, ?, ?, ?, ?, ?)", USES
        )
    return path


def test_a_call_counts_for_each_of_its_datatypes_and_bytes_for_one(profile: Path, run: Run) -> None:
    rows = json.loads(run("datatypes", profile, "--format", "json").stdout)
    found = {
        row["tree"]: (row["calls"], row["bytes_sent"], row["bytes_received"], row["ranks"]) for row in rows
    }
    assert found == {
        VECTOR: (7, 14400, 0, 2),
        "MPI_DOUBLE": (13, 808, 3200, 1),
        "contiguous(2) of MPI_CHAR": (0, 0, 0, 0),
    }
    assert [row["tree"] for row in rows] == list(found)
    assert rows[0]["share_of_calls"] == pytest.approx(7 / 17)
    assert sum(row["share_of_bytes"] or 0 for row in rows) == pytest.approx(1)


def test_ranks_can_be_selected_and_uses_shown(profile: Path, run: Run) -> None:
    result = run("datatypes", profile, "--uses", "--rank", "0", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(result.stdout))
    assert (row["tree"], row["calls"], row["bytes_sent"], float(row["share_of_bytes"])) == (
        VECTOR,
        "4",
        "9600",
        1,
    )
    lines = run("datatypes", profile, "--uses").stdout.splitlines()
    assert lines[1].split()[:8] == [*VECTOR.split(), "2,400", "B", "6,360"]
    assert lines[2].startswith("  ")
    assert lines[-1].split() == ["contiguous(2)", "of", "MPI_CHAR", "2", "B", "2", "B"]


def test_the_statements_give_the_rows(profile: Path, run: Run) -> None:
    done = run("datatypes", profile, "--uses", "--sql")
    assert (done.exit_code, done.stderr) == (0, "")
    statements = [text.strip() for text in done.stdout.split(";\n") if text.strip()]
    assert [text.split("\n")[0] for text in statements] == ["-- datatypes", "-- uses"]
    with closing(sqlite3.connect(profile)) as connection:
        connection.row_factory = sqlite3.Row
        for statement, options in zip(statements, ((), ("--uses",))):
            rows = json.loads(run("datatypes", profile, *options, "--format", "json").stdout)
            assert rows
            assert [dict(row) for row in connection.execute(statement)] == rows


def test_a_run_without_the_option_has_none(tmp_path: Path, run: Run) -> None:
    path = ProfileBuilder(ranks=1).write(tmp_path / "p.db")
    assert "COMMLENS_DATATYPES=1" in run("datatypes", path).stdout
