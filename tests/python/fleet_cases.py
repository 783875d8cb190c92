# SPDX-License-Identifier: Apache-2.0
"""Profiles of several jobs for the tests of ingest and fleet, and what a dataset has of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from build_profile import ProfileBuilder

from commlens.fleet._dataset import TABLES
from commlens.fleet.answer import ask
from commlens.fleet.dataset import Dataset
from commlens.fleet.engine import DuckEngine, Scope
from commlens.fleet.files import read_batches
from commlens.fleet.log import Log
from commlens.fleet.questions import read_question

MS = 10**6


def builder(number: int, **meta: str) -> ProfileBuilder:
    """Return job `number` of a code: 4 ranks on 2 nodes, 10 Allreduce of 8 bytes, 20 Bcast on halves."""
    facts = {
        "command_line": f"/home/alice/bin/lmp -in case{number % 2}",
        "program": "lmp",
        "start_time": f"2026-0{1 + number % 3}-01T00:{number % 60:02d}:00Z",
        "job_id": str(1000 + number),
        "working_directory": "/home/alice/run",
        **meta,
    }
    build = ProfileBuilder(ranks=4, meta=facts, nodes=2)
    build.sites[1] = ("/home/alice/bin/lmp", "", 0x1234)
    build.comm("s0.1", [0, 1], parent=1, creator="MPI_Comm_split", callsite=1, family=2)
    build.comm("s2.1", [2, 3], parent=1, creator="MPI_Comm_split", callsite=1, family=2)
    for rank in range(4):
        build.count(1, "MPI_Allreduce", rank, 10, (10 + rank) * MS, size=8, sent=80, received=80, callsite=1)
        half = 2 + rank // 2
        build.count(half, "MPI_Bcast", rank, 20, 5 * MS, 1024, 20480 * (rank % 2 == 0), 20480 * (rank % 2))
    return build


def write_jobs(folder: Path, numbers: range) -> list[Path]:
    """Write the profiles of some jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    return [builder(number).write(folder / f"job{number}.db") for number in numbers]


def rows_of(dataset: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    files = Log(dataset).read().of(table)
    return [row for batch in read_batches(dataset, files) for row in batch.to_pylist()]


def content(dataset: Path) -> dict[str, list[Any]]:
    """Return all rows of all tables, in an order that does not depend on the files."""
    return {
        table: sorted(map(repr, rows_of(dataset, table))) for table in TABLES if Log(dataset).read().of(table)
    }


def doubled(dataset: Path) -> list[str]:
    """Return the keys of rows that a table has twice."""
    found = []
    for table, spec in TABLES.items():
        keys = Counter(tuple(row[name] for name in spec.key) for row in rows_of(dataset, table))
        found += [f"{table} {key}" for key, times in keys.items() if times > 1]
    return found


def values_of(table: str, **values: Any) -> tuple[Any, ...]:
    """Return a row; columns without a value are 0, empty or NULL."""
    empty = {"TEXT": "", "BIGINT": 0, "INTEGER": 0, "DOUBLE": 0.0, "TIMESTAMP": None}
    columns = TABLES[table].columns
    assert set(values) <= {column.name for column in columns}
    return tuple(values.get(c.name, None if c.null else empty[c.type]) for c in columns)


def of_rows(folder: Path, **rows: list[dict[str, Any]]) -> Path:
    """Write a dataset of these rows; all are of cluster c and month 2026-01."""
    common = {"cluster": "c", "month": "2026-01"}
    Dataset(folder).add(
        {table: [values_of(table, **{**common, **row}) for row in some] for table, some in rows.items()}
    )
    return folder


def answers(folder: Path, name: str, **scope: Any) -> list[dict[str, Any]]:
    """Return the answer to a question."""
    titles, rows = ask(DuckEngine(folder, Scope(**scope)), read_question(name))
    return [dict(zip(titles, row)) for row in rows]
