# SPDX-License-Identifier: Apache-2.0
"""What a profile of full detail is in summary detail, by plain loops."""

from __future__ import annotations

import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

COUNTERS = ("calls", "time_ns", "time_min_ns", "time_max_ns", "bytes_sent", "bytes_received", "noncontiguous")
SUMS = ("calls", "time_ns", "bytes_sent", "bytes_received")
OF_RANKS = (
    *("rank", "cell_row", "slice", "peer", "overhead"),
    *("region_time", "loop_time", "loop_bin", "region_slice", "metric_value", "metric_series"),
    *("thread", "thread_cell", "thread_region", "untimed", "event_count", "datatype_use"),
    *("waiting", "clock", "sampled", "unsplit"),
)
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Line(NamedTuple):
    """What a line is about; None: all of them."""

    family: int | None = None
    comm: int | None = None
    op: int | None = None
    bin: int | None = None
    callsite: int | None = None
    key: int | None = None
    region: int | None = None


def spread_of(counter: str, values: dict[int, int]) -> tuple[int | None, ...]:
    """Return the columns from `ranks` on of rank -> value."""
    ordered = sorted(values.values())
    low, high = ordered[0], ordered[-1]
    quantiles: list[int | None] = [ordered[max(-int(-share * len(ordered) // 1), 1) - 1] for share in SHARES]
    return (
        len(ordered),
        None if counter in ("time_min_ns", "time_max_ns") else sum(ordered),
        low,
        min(rank for rank, value in values.items() if value == low),
        high,
        min(rank for rank, value in values.items() if value == high),
        *(quantiles if low != high else [None for _ in SHARES]),
    )


Values = dict[tuple[Line, str], dict[int, int]]
"""Counter of a line -> rank -> value."""


def add_cells(db: sqlite3.Connection, values: Values) -> None:
    """Add the cells of each rank to the lines they belong to."""
    for row in db.execute(
        "SELECT key.*, family, cell.* FROM cell JOIN key ON key.id = cell.key JOIN comm ON comm.id = key.comm"
    ):
        family, comm, what = row["family"], row["comm"], (row["op"], row["bin"])
        sums = [
            Line(family),
            Line(family, None, *what),
            Line(family, None, *what, row["callsite"]),
            Line(None, comm),
            Line(None, comm, *what),
        ]
        for line in sums:
            for counter in SUMS:
                values[line, counter][row["rank"]] += row[counter]
        for counter in COUNTERS:
            values[Line(None, comm, *what, row["callsite"], row["key"]), counter][row["rank"]] += row[counter]


def add_regions(db: sqlite3.Connection, values: Values) -> None:
    """Add the times of regions."""
    for row in db.execute("SELECT * FROM region_time"):
        line = Line(region=row["region"])
        exclusive, outside = row["time_ns"] - row["nested_ns"], row["time_ns"] - row["mpi_ns"]
        for counter in ("calls", "time_ns", "mpi_ns"):
            values[line, counter][row["rank"]] += row[counter]
        values[line, "exclusive_ns"][row["rank"]] += exclusive
        values[line, "outside_ns"][row["rank"]] += outside


def add_ranks(db: sqlite3.Connection, values: Values) -> None:
    """Add what is stored for each rank as a whole."""
    for row in db.execute("SELECT * FROM rank"):
        for counter in ("init_ns", "app_ns", "mpi_ns", "threads", "calls", "lost_calls"):
            values[Line(), counter][row["rank"]] = row[counter]
        for counter in ("cpu_ns", "preempted"):
            if row[counter] is not None:
                values[Line(), counter][row["rank"]] = row[counter]
        if row["app_ns"] >= row["mpi_ns"] or row["threads"] <= 1:
            values[Line(), "outside_ns"][row["rank"]] = max(row["app_ns"] - row["mpi_ns"], 0)
    for rank, what, ns in db.execute("SELECT rank, what, ns FROM overhead"):
        values[Line(), f"own_{what}_ns"][rank] = ns


def members_of(db: sqlite3.Connection) -> dict[Line, set[int]]:
    """Return the ranks of each family, of each communicator and of the job."""
    members: dict[Line, set[int]] = defaultdict(set)
    for comm, family, rank in db.execute(
        "SELECT comm, family, rank FROM member JOIN comm ON comm.id = member.comm"
    ):
        members[Line(family=family)].add(rank)
        members[Line(comm=comm)].add(rank)
    members[Line()] = {rank for (rank,) in db.execute("SELECT rank FROM rank")}
    return members


def store(db: sqlite3.Connection, members: dict[Line, set[int]], values: Values) -> None:
    """Write the lines and their spreads; a line with a single call site is that of the call site."""
    parts: dict[Line, set[Line]] = defaultdict(set)
    for line, _ in values:
        if line.callsite is not None:
            parts[line._replace(callsite=None, key=None)].add(line)
    lines = sorted(
        {line for line in {*members, *(line for line, _ in values)} if len(parts[line]) != 1}, key=repr
    )
    counters: dict[Line, set[str]] = defaultdict(set)
    for line, counter in values:
        counters[line].add(counter)
    for number, line in enumerate(lines):
        count = len(members[line]) if line in members else None
        *about, region = line
        db.execute("INSERT INTO scope VALUES (?,?,?,?,?,?,?,?,?)", (number, *about, count, region))
        for counter in counters[line]:
            if any(values[line, counter].values()):
                spread = spread_of(counter, values[line, counter])
                db.execute(f"INSERT INTO spread VALUES ({','.join('?' * 13)})", (number, counter, *spread))


def summarised(full: Path) -> Path:
    """Write what a profile says without single ranks beside it."""
    path = full.with_suffix(".summary.db")
    shutil.copy(full, path)
    with closing(sqlite3.connect(path)) as db, db:
        db.row_factory = sqlite3.Row
        values: Values = defaultdict(lambda: defaultdict(int))
        add_cells(db, values)
        add_regions(db, values)
        add_ranks(db, values)
        store(db, members_of(db), values)
        nodes = len({node for (node,) in db.execute("SELECT node FROM rank")})
        facts = {"detail": "summary", "nodes": str(nodes)}
        db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())
        for table in OF_RANKS:
            db.execute(f"DELETE FROM {table}")
        db.execute("UPDATE comm SET members = NULL")
    return path
