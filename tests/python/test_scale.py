# SPDX-License-Identifier: Apache-2.0
"""A million cells are read in seconds: how SQLite does the work, and how many of its steps that takes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from build_profile import EMPTY
from conftest import Run, Steps

from commlens.reports.query import Queries, Selection, Shape

RANKS, COMMS, KEYS_EACH = 1024, 2000, 8
SIZE = 64
CELLS = COMMS * KEYS_EACH * SIZE
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a profile of 2,000 communicators of 64 of 1,024 ranks, with 1,024,000 cells."""
    path = tmp_path_factory.mktemp("scale") / "million.db"
    connection = sqlite3.connect(path)
    connection.executescript(EMPTY)
    connection.executescript(f"""
        INSERT INTO op VALUES (0, 'unknown', 'other');
        CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 16000)
            SELECT i FROM n;
        INSERT INTO op SELECT i, 'MPI_Operation_' || i, 'collective' FROM n WHERE i BETWEEN 1 AND 8;
        INSERT INTO callsite SELECT i, '/bin/app', '', 16 * i, NULL FROM n WHERE i < 50;
        INSERT INTO region VALUES (0, NULL, '', 'program');
        INSERT INTO meta VALUES ('ranks', '{RANKS}');
        INSERT INTO rank SELECT i, 1, 'n' || (i / 64), i, '', 0, 60000000000, 1, 1, 1, 0, 'finalized', NULL, NULL
            FROM n WHERE i < {RANKS};
        INSERT INTO comm VALUES (0, 0, '-', NULL, 'none', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1);
        INSERT INTO comm VALUES (1, 1, 'W0.0', NULL, 'intra', NULL, NULL, NULL, {RANKS}, NULL, 0, '0-{RANKS - 1}',
            NULL, 0, NULL, 1, 1);
        INSERT INTO comm SELECT i + 2, i, 's' || (i * {SIZE} % {RANKS}) || '.' || i, NULL, 'intra', 1, 1, 1, {SIZE},
            NULL, i * {SIZE} % {RANKS}, (i * {SIZE} % {RANKS}) || '-' || (i * {SIZE} % {RANKS} + {SIZE - 1}), NULL, i,
            NULL, 2 + i % 40, 1 FROM n WHERE i < {COMMS};
        INSERT INTO key SELECT i * {RANKS}, 2 + i / {KEYS_EACH}, 1 + i % 8, i * 7 % 12, 0, i % 50, 10, 800, 800, 0
            FROM n WHERE i < {COMMS * KEYS_EACH};
        INSERT INTO cell_row SELECT key.id + (key.comm - 2) * {SIZE} % {RANKS} + n.i, 0,
            1000 + key.id / {RANKS} * 7919 % 100003, 50, 2000, 0, 0, 0 FROM key JOIN n ON n.i < {SIZE};
    """)
    assert connection.execute("SELECT COUNT(*) FROM cell").fetchone() == (1_024_000,)
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize(
    "options", [[], ["--unfold"], ["--buckets", "all"], ["--comm", "s0.*"], ["--time", "0:1"]]
)
def test_a_million_cells_are_reported_soon(million: Path, run: Run, steps: Steps, options: list[str]) -> None:
    result = run("report", million, *options)
    assert result.exit_code == 0
    assert 0 < steps.taken < 400 * CELLS
    assert len(result.stdout.splitlines()) < 200


@pytest.mark.parametrize(
    "view", ["family_total", "family_operation", "comm_total", "comm_operation", "member"]
)
def test_the_views_answer_soon(million: Path, steps: Steps, view: str) -> None:
    connection = sqlite3.connect(million)
    steps.count(connection)
    assert connection.execute(f"SELECT COUNT(*) FROM (SELECT * FROM {view})").fetchone()[0] > 0
    assert 0 < steps.taken < 100 * CELLS
    connection.close()


@pytest.mark.parametrize("fold", [True, False])
def test_cells_are_found_by_their_key_and_never_scanned_within_a_scan(million: Path, fold: bool) -> None:
    """SQLite reads `cell` in its own order or by key; a nested full scan would be a million times a thousand."""
    connection = sqlite3.connect(million)
    queries = Queries(Selection(), Shape(fold=fold, top=10))
    for sql in (queries.communicators(), queries.operations([(2,), (3,)])):
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
        touching = [step for step in steps if " cell_row" in step]
        assert touching
        assert all("SEARCH" in step and "(rowid>? AND rowid<?)" in step for step in touching), touching
    connection.close()
