# SPDX-License-Identifier: Apache-2.0
"""The threads of a run: which thread made which calls on which communicator, and its time in regions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.profile import meta
from commlens.render.table import Column, Table
from commlens.render.units import bytes_text, name_text, path_text, share_text, time_text
from commlens.reports.query import Selection
from commlens.selection.conditions import where
from commlens.selection.names import check_communicators, check_ranks

Row = dict[str, Any]

NO_THREADS = "no counters of single threads: set COMMLENS_THREADS=each in the run"
NO_CALLS = "no calls match"
NOT_IN_SUMMARIES = (
    "a profile of summary detail contains no counters of single threads; COMMLENS_DETAIL=full keeps them"
)

BY_NAME = "thread.kind, thread.name"
EACH = "rank, thread, thread.kind, thread.name"

THREADS_SQL = """\
SELECT {line}, COUNT(DISTINCT rank) AS ranks, SUM(thread.threads) AS threads, COALESCE(SUM(calls), 0) AS calls,
       COALESCE(SUM(time_ns), 0) AS time_ns,
       -- the others are several threads
       CASE thread.kind WHEN 'others' THEN NULL ELSE COALESCE(MAX(time_ns), 0) END AS thread_max_ns,
       COALESCE(SUM(bytes_sent), 0) AS bytes_sent, COALESCE(SUM(bytes_received), 0) AS bytes_received
  FROM thread
       LEFT JOIN (SELECT rank, thread, SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(bytes_sent) AS bytes_sent,
                         SUM(bytes_received) AS bytes_received
                    FROM thread_cell JOIN key ON key.id = key JOIN op ON op.id = op JOIN comm ON comm.id = comm{chosen}
                   GROUP BY rank, thread) USING (rank, thread){ranks}
 GROUP BY {line}{having} ORDER BY time_ns DESC, {line}"""

CALLS_SQL = """\
SELECT {line}, comm, comm.name AS communicator, op.name AS operation, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
       MIN(CASE WHEN calls > 0 AND time_max_ns > 0 THEN time_min_ns END) AS call_min_ns, MAX(time_max_ns) AS call_max_ns,
       SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received
  FROM thread_cell JOIN key ON key.id = key JOIN op ON op.id = op JOIN comm ON comm.id = comm
       JOIN thread USING (rank, thread){chosen}
 GROUP BY {line}, comm, op ORDER BY {line}, time_ns DESC, comm, op"""

REGIONS_SQL = """\
SELECT {line}, path, SUM(calls) AS calls, SUM("open") AS "open", SUM(time_ns) AS time_ns, SUM(nested_ns) AS nested_ns,
       SUM(mpi_ns) AS mpi_ns
  FROM thread_region JOIN region_path USING (region) JOIN thread USING (rank, thread){ranks}
 GROUP BY {line}, region ORDER BY {line}, time_ns DESC, path, region"""


@dataclass
class Threads:
    """The threads of a profile.

    Attributes
    ----------
    by : str
        What the rows of a thread are: calls or regions.
    is_counted : bool
        Whether the profile has single threads.
    rows : list of dict
        One row per line, with the sums over its calls.
    parts : list of dict
        The rows of the threads.
    statements : list of (title, SQL)
    columns : dict
        Title of a statement -> names of its columns.
    """

    by: str
    is_counted: bool
    rows: list[Row] = field(default_factory=list)
    parts: list[Row] = field(default_factory=list)
    statements: list[tuple[str, str]] = field(default_factory=list)
    columns: dict[str, list[str]] = field(default_factory=dict)


def read_threads(connection: sqlite3.Connection, selection: Selection, *, each: bool, by: str) -> Threads:
    """Read the threads of a profile: the selected calls, or all regions on the selected ranks."""
    if meta.is_summary(connection):
        raise CommlensError(f"threads: {NOT_IN_SUMMARIES}")
    check_communicators(connection, selection.comms)
    check_ranks(connection, selection.ranks)
    ranks = selection.rank_conditions("rank")
    calls = [*selection.comm_conditions(), *selection.key_conditions()]
    parts = {
        "line": EACH if each else BY_NAME,
        "chosen": where([*calls, *ranks]),
        "ranks": where(ranks),
        "having": "\nHAVING SUM(calls) IS NOT NULL" if calls else "",
    }
    found = Threads(by, bool(connection.execute("SELECT EXISTS (SELECT 1 FROM thread)").fetchone()[0]))
    found.statements = [
        ("threads", THREADS_SQL.format(**parts)),
        (by, (CALLS_SQL if by == "calls" else REGIONS_SQL).format(**parts)),
    ]
    rows: dict[str, list[Row]] = {}
    for title, sql in found.statements:
        cursor = connection.execute(sql)
        found.columns[title] = [column[0] for column in cursor.description]
        rows[title] = [dict(row) for row in cursor]
    found.rows, found.parts = rows["threads"], rows[by]
    return found


def line_of(row: Row) -> tuple[Any, ...]:
    """Return what tells the lines apart."""
    return tuple(row.get(name) for name in ("rank", "thread", "kind", "name"))


def thread_name(row: Row) -> str:
    """Return the name of a line.

    >>> thread_name({"kind": "main", "name": "app"}), thread_name({"kind": "thread", "name": "io", "rank": 3, "thread": 1})
    ('main thread (app)', '3.1 io')
    """
    number = f"{row['rank']}.{row['thread']} " if row.get("thread", -1) >= 0 else ""
    if row["kind"] == "others":
        return f"{row['rank']}: others" if "rank" in row else "others"
    name = name_text(row["name"] or "")
    if row["kind"] == "main":
        return f"{number}main thread ({name})" if name else f"{number}main thread"
    return f"{number}{name}" if name else f"{number}(no name)"


def _shares(rows: Sequence[Row]) -> list[str]:
    """Return the share of each row in the time of all."""
    total = sum(row["time_ns"] for row in rows)
    return [share_text(row["time_ns"] / total if total else None) for row in rows]


def _by_line(parts: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows of each line, which follow each other."""
    return {line: list(group) for line, group in groupby(parts, key=line_of)}


def draw(found: Threads, top: int | None, parts_top: int | None) -> Table:
    """Return a table: a line per thread, or name of threads, and its calls or regions below."""
    of_calls = found.by == "calls"
    more = [Column("sent", wide=1), Column("received", wide=1)] if of_calls else [Column("in MPI")]
    titles = ("threads", "calls", "max/thread", "time", "share")
    table = Table([Column("thread", right=False), *(Column(title) for title in titles), *more])
    parts = _by_line(found.parts)
    for row, share in list(zip(found.rows, _shares(found.rows), strict=True))[:top]:
        of_mpi = time_text(row["time_ns"])
        last = [bytes_text(row["bytes_sent"]), bytes_text(row["bytes_received"])] if of_calls else [of_mpi]
        longest = "-" if row["thread_max_ns"] is None else time_text(row["thread_max_ns"])
        numbers = [f"{row['threads']:,}", f"{row['calls']:,}", longest, of_mpi if of_calls else "", share]
        table.add([thread_name(row), *numbers, *last], "bold")
        below = parts.get(line_of(row), [])
        for part in below[:parts_top]:
            table.add(_call(part) if of_calls else _region(part))
        if parts_top is not None and len(below) > parts_top:
            table.say(f"and {count_text(len(below) - parts_top, 'more line')}", "  ")
    if top is not None and len(found.rows) > top:
        table.say(f"and {count_text(len(found.rows) - top, 'more line')}", "")
    return table


def _call(row: Row) -> list[str]:
    """Return the line of a communicator and a procedure."""
    return [
        f"  {name_text(row['communicator'])} {name_text(row['operation'])}",
        "",
        f"{row['calls']:,}",
        "",
        time_text(row["time_ns"]),
        "",
        bytes_text(row["bytes_sent"]),
        bytes_text(row["bytes_received"]),
    ]


def _region(row: Row) -> list[str]:
    """Return the line of a region: times in the region, and in MPI inside it."""
    return [
        f"  {path_text(row['path'])}",
        "",
        f"{row['calls']:,}",
        "",
        time_text(row["time_ns"]),
        "",
        time_text(row["mpi_ns"]),
    ]
