# SPDX-License-Identifier: Apache-2.0
"""Read a profile with nothing but sqlite3, so that these tests do not lean on the reader they sit beside."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

MEASURED = ("p2p", "collective", "neighbor", "rma", "io", "completion", "comm")


COMMON = (
    "(op.name = 'MPI_Win_fence' OR (op.class = 'collective' AND op.name NOT IN ('MPI_Scan', 'MPI_Exscan')))"
)
"""Condition for procedures in which all members wait for the same one: their samples count once for all of them."""


class Count(NamedTuple):
    """Calls and bytes of one (communicator, operation, bin, rank)."""

    comm: str
    op: str
    bin: int
    rank: int
    calls: int
    sent: int
    received: int


class Profile:
    """An open profile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows("SELECT 1 FROM meta")  # it is a profile

    def rows(self, sql: str, *params: object) -> list[dict[str, Any]]:
        """Return the answer to `sql`, one dictionary per row."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(sql, params)]

    def column(self, sql: str, *params: object) -> list[Any]:
        """Return the first column of the answer to `sql`."""
        return [next(iter(row.values())) for row in self.rows(sql, *params)]

    def meta(self) -> dict[str, str]:
        """Return the facts about the run."""
        return {row["key"]: row["value"] for row in self.rows("SELECT key, value FROM meta")}

    def comms(self, *kinds: str) -> dict[str, dict[str, Any]]:
        """Return communicators by name, of the kinds named (default: real ones), members as lists of ranks."""
        found: dict[str, dict[str, Any]] = {}
        for row in self.rows(
            "SELECT c.*, p.name AS parent_name, o.name AS creator_name FROM comm c "
            "LEFT JOIN comm p ON p.id = c.parent LEFT JOIN op o ON o.id = c.creator ORDER BY c.id"
        ):
            if row["kind"] in (kinds or ("intra", "inter")):
                assert row["name"] not in found, f"two communicators are called {row['name']}"
                row["groups"] = [ranks(part) for part in (row["members"] or "").split("|")]
                found[row["name"]] = row
        return found

    def counts(self, *, op: str = "%", comm: str = "%", classes: tuple[str, ...] = ()) -> list[Count]:
        """Return the counters, call sites and regions added up."""
        sql = (
            "SELECT c.name AS comm, o.name AS op, k.bin, x.rank, SUM(x.calls), SUM(x.bytes_sent), "
            "SUM(x.bytes_received) FROM cell x JOIN key k ON k.id = x.key JOIN comm c ON c.id = k.comm JOIN op o ON o.id = k.op "
            "WHERE o.name LIKE ? AND c.name LIKE ?"
        )
        if classes:
            sql += f" AND o.class IN ({','.join('?' * len(classes))})"
        sql += " GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
        return [Count(*row.values()) for row in self.rows(sql, op, comm, *classes)]

    def calls(self, op: str, comm: str = "%") -> dict[str, Counter[int]]:
        """Return calls of one operation: communicator name -> rank -> calls."""
        answer: dict[str, Counter[int]] = {}
        for count in self.counts(op=op, comm=comm):
            answer.setdefault(count.comm, Counter())[count.rank] += count.calls
        return answer

    def total(self, op: str, comm: str = "%") -> tuple[int, int, int]:
        """Return (calls, bytes sent, bytes received) of one operation over all ranks."""
        found = self.counts(op=op, comm=comm)
        return sum(c.calls for c in found), sum(c.sent for c in found), sum(c.received for c in found)

    def check(self) -> None:
        """Assert what must hold in every profile."""
        assert self.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
        assert self.rows("PRAGMA foreign_key_check") == []
        self.check_waiting()
        for rank in self.rows(
            "SELECT r.rank, r.calls, r.mpi_ns, r.app_ns, r.threads, r.lost_calls, r.state, "
            "COALESCE(SUM(x.calls), 0) AS cell_calls, COALESCE(SUM(x.time_ns), 0) AS cell_ns, "
            "COALESCE(SUM(x.time_error_ns), 0) AS error_ns "
            "FROM rank r LEFT JOIN cell x ON x.rank = r.rank GROUP BY r.rank"
        ):
            assert rank["calls"] == rank["cell_calls"], rank
            assert rank["mpi_ns"] == rank["cell_ns"], rank
            assert rank["lost_calls"] == 0, rank
            assert rank["state"] == "finalized", rank
            if rank["threads"] <= 1 and not rank["error_ns"]:  # an estimate may be more than there is
                assert rank["mpi_ns"] <= rank["app_ns"] + 1000, rank
        # times are rounded to nanoseconds one by one, hence the slack of one a call; what is received after a reset by
        # a request from before it belongs to no call that counts
        strange = self.rows(
            "SELECT * FROM cell WHERE calls < 0 OR (calls = 0 AND (time_ns <> 0 OR bytes_received = 0)) OR time_min_ns < 0 OR time_min_ns > time_max_ns "
            "OR time_ns < time_max_ns OR time_ns < (time_min_ns - 1) * timed "
            "OR (time_error_ns = 0 AND (timed <> calls OR time_ns > (time_max_ns + 1) * calls)) OR timed < 0 OR timed > calls "
            "OR bytes_sent < 0 OR bytes_received < 0"
        )
        assert strange == [], strange
        self._check_references()
        self._check_slices()
        self.check_regions()
        # A leader is a rank of the world, and may be one whose data is not in this file.
        leaders = {r["leader"] for r in self.rows("SELECT leader FROM comm WHERE leader IS NOT NULL")}
        assert leaders <= set(range(int(self.meta()["ranks"]))), leaders

    def _check_references(self) -> None:
        """Assert that what rows refer to exists."""
        for table in ("comm", "key", "callsite", "region", "rank"):
            ids = {
                r["i"] for r in self.rows(f"SELECT {'rank' if table == 'rank' else 'id'} AS i FROM {table}")
            }
            used = {
                "comm": "SELECT comm AS i FROM key UNION SELECT parent FROM comm UNION SELECT member FROM comm_set",
                "key": "SELECT key AS i FROM cell",
                "callsite": "SELECT callsite AS i FROM key",
                "region": "SELECT region AS i FROM key",
                "rank": "SELECT rank AS i FROM cell UNION SELECT rank FROM overhead",
            }[table]
            missing = {r["i"] for r in self.rows(used)} - ids - {None}
            if table == "callsite":
                missing -= {0}
            assert not missing, f"{table}: {sorted(missing)} are used but not there"

    def _check_slices(self) -> None:
        """Assert that the slices have the same counters as the cells, and no more time than there is."""
        # The same counters over time: each entry is rounded by itself, hence one nanosecond for each.
        apart = self.rows(
            "SELECT * FROM (SELECT comm, op, rank, SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(bytes_sent) AS sent, "
            "SUM(bytes_received) AS received, SUM(n) AS n FROM "
            "(SELECT k.comm, k.op, x.rank, calls, time_ns, bytes_sent, bytes_received, 1 AS n "
            " FROM cell x JOIN key k ON k.id = x.key "
            " UNION ALL SELECT comm, op, rank, -calls, -time_ns, -bytes_sent, -bytes_received, 1 FROM slice) "
            "GROUP BY comm, op, rank) WHERE calls <> 0 OR sent <> 0 OR received <> 0 OR ABS(time_ns) > n"
        )
        assert apart == [], apart
        slots = self.rows("SELECT MIN(slot) AS low, MAX(slot) AS high FROM slice")[0]
        assert slots["low"] is None or (slots["low"] >= 0 and slots["high"] < 128), slots
        # No more time in a slice than there is, in a process with one thread.
        width = int(self.meta()["slice_ns"])
        full = self.rows(
            "SELECT s.rank, slot, SUM(time_ns) AS ns, COUNT(*) AS n FROM slice s JOIN rank r ON r.rank = s.rank "
            "WHERE threads <= 1 AND r.rank NOT IN (SELECT rank FROM untimed) GROUP BY s.rank, slot HAVING ns > ? + n",
            width,
        )
        assert all(row["slot"] == 0 for row in full), (
            full
        )  # what was before MPI_Init returned is in the first

    def check_waiting(self) -> None:
        """Assert what must hold of sampled calls; of times each sample is rounded by itself."""
        assert (
            self.rows(
                "SELECT * FROM waiting JOIN op ON op.id = op WHERE waiting_ns > time_ns OR outside_ns > between_ns "
                f"OR ({COMMON} AND last > samples)"
            )
            == []
        )
        wrong = f"""
        SELECT s.comm, s.op, s.bin FROM sampled AS s JOIN comm ON comm.id = s.comm JOIN op ON op.id = s.op
          LEFT JOIN (SELECT comm, op, bin, SUM(samples) AS samples, SUM(time_ns) AS time_ns,
                            SUM(waiting_ns) AS waiting_ns, SUM(last) AS last
                       FROM waiting GROUP BY comm, op, bin) AS w USING (comm, op, bin)
         WHERE w.samples IS NOT s.samples * CASE WHEN {COMMON} THEN comm.size ELSE 1 END OR w.time_ns IS NOT s.time_ns OR w.waiting_ns IS NOT s.waiting_ns
            OR w.last > s.samples OR s.samples > s.collectives OR s.across > s.samples"""
        assert self.rows(wrong) == []
        wrong = """
        SELECT w.comm, w.op, w.bin, w.rank
          FROM (SELECT comm, op, bin, rank, SUM(samples) AS samples, SUM(time_ns) AS time_ns
                  FROM waiting GROUP BY comm, op, bin, rank) AS w
          LEFT JOIN (SELECT key.comm, key.op, key.bin, rank, SUM(calls) AS calls, SUM(time_ns) AS time_ns
                       FROM cell JOIN key ON key.id = cell.key GROUP BY key.comm, key.op, key.bin, rank) AS c
                 USING (comm, op, bin, rank)
         WHERE (c.calls IS NULL AND w.samples > 0) OR w.samples > c.calls OR w.time_ns > c.time_ns + w.samples"""
        assert self.rows(wrong) == []

    def check_regions(self) -> None:
        """Assert what must hold of regions, loops and metrics; of times each row is rounded by itself."""
        assert self.rows("SELECT * FROM region WHERE parent >= id OR (parent IS NULL) <> (id = 0)") == []
        for table, column, target in (
            ("region_time", "region", "region.id"),
            ("region_time", "rank", "rank.rank"),
            ("loop_time", "region", "region.id"),
            ("loop_bin", "region", "region.id"),
            ("region_slice", "region", "region.id"),
            ("region_slice", "rank", "rank.rank"),
            ("metric_value", "metric", "metric.id"),
            ("metric_value", "region", "region.id"),
            ("tag", "region", "region.id"),
            ("position", "region", "region.id"),
            ("scope", "region", "region.id"),
        ):
            there, _, name = target.partition(".")
            lost = f"SELECT {column} FROM {table} WHERE {column} NOT IN (SELECT {name} FROM {there})"
            assert self.rows(lost) == [], (table, column)
        for table, calls, ended in (
            ("region_time", "calls", "calls - open"),
            ("loop_time", "iterations", "iterations"),
        ):
            strange = self.rows(
                f"SELECT t.* FROM {table} t JOIN region r ON r.id = region WHERE r.kind <> 'others' AND ({calls} <= 0 "
                f"OR {ended} < 0 OR time_min_ns > time_max_ns OR time_ns < time_max_ns OR nested_ns > time_ns "
                f"OR (mpi_ns > time_ns AND t.rank NOT IN (SELECT rank FROM untimed)) OR nested_ns < 0 OR mpi_ns < 0 OR time_min_ns < 0 "
                f"OR time_ns < (time_min_ns - 1) * ({ended}) "
                + ("OR (open = 0 AND time_ns > (time_max_ns + 1) * calls))" if calls == "calls" else
                   "OR time_ns > (time_max_ns + 1) * iterations)")
            )  # fmt: skip
            assert strange == [], table
        # As many iterations in the bins as there are, and all of loops.
        apart = self.rows(
            "SELECT * FROM (SELECT region, execution, rank, SUM(n) AS n FROM "
            "(SELECT region, execution, rank, iterations AS n FROM loop_time "
            " UNION ALL SELECT region, execution, rank, -iterations FROM loop_bin) GROUP BY 1, 2, 3) WHERE n <> 0"
        )
        assert apart == [], apart
        assert self.rows("SELECT * FROM loop_time JOIN region ON id = region WHERE kind <> 'loop'") == []
        # Over time: the same exclusive time, and the calls that ended.
        apart = self.rows(
            "SELECT * FROM (SELECT region, rank, SUM(calls) AS calls, SUM(ns) AS ns, COUNT(*) AS n FROM "
            "(SELECT region, rank, calls - open AS calls, time_ns - nested_ns AS ns FROM region_time "
            " UNION ALL SELECT region, rank, -calls, -exclusive_ns FROM region_slice) GROUP BY 1, 2) "
            "WHERE (calls <> 0 OR ABS(ns) > 2 * n) AND (SELECT COUNT(*) FROM region_slice) > 0"
        )
        assert apart == [], apart
        self._check_region_tree()

    def _check_region_tree(self) -> None:
        """Assert that nested_ns and mpi_ns of a region agree with its nested rows, in every process."""
        around = {r["id"]: r["parent"] for r in self.rows("SELECT id, parent FROM region")}
        times = {
            (r["region"], r["rank"]): r
            for r in self.rows(
                "SELECT region, rank, SUM(time_ns) AS time, SUM(nested_ns) AS nested, SUM(mpi_ns) AS mpi, "
                "COUNT(*) AS n FROM region_time GROUP BY 1, 2"
            )
        }
        nested, rows = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        for (region, rank), time in times.items():
            parent = around[region]
            while parent and (parent, rank) not in times:  # it does not count
                parent = around[parent]
            nested[parent, rank] += time["time"]
            rows[parent, rank] += time["n"]
        if "others" not in self.column("SELECT kind FROM region"):  # which lie anywhere
            for key, time in times.items():
                assert abs(time["nested"] - nested[key]) <= rows[key] + time["n"], (key, time, nested[key])
        within, cells = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        for row in self.rows(
            "SELECT region, rank, SUM(time_ns) AS ns, COUNT(*) AS n FROM cell JOIN key ON key.id = cell.key GROUP BY 1, 2"
        ):
            region, rank = row["region"], row["rank"]
            assert not region or (region, rank) in times, ("a call in a region in which nobody was", row)
            while region:
                within[region, rank] += row["ns"]
                cells[region, rank] += row["n"]
                region = around[region]
        for key, time in times.items():
            # A call while another thread paused took longer than its region.
            slack = cells[key] + time["n"]
            assert time["mpi"] + slack >= min(within[key], time["time"]), (key, time, within[key])

    def shape(self) -> tuple[list[Count], list[tuple[Any, ...]]]:
        """Return all that two runs of one deterministic program share: measured counters and communicators."""
        communicators = sorted(
            (
                name,
                row["kind"],
                row["parent_name"],
                row["creator_name"],
                row["size"],
                row["remote_size"],
                row["leader"],
                row["members"],
                row["topology"],
                row["user_name"],
                row["freed_ns"] is not None,
            )
            for name, row in self.comms("intra", "inter", "set").items()
        )
        return self.counts(classes=MEASURED), communicators


def ranks(text: str) -> list[int]:
    """Return the ranks a members text names, in its order.

    >>> ranks("0-3, 7, 8-14:2")
    [0, 1, 2, 3, 7, 8, 10, 12, 14]
    """
    found: list[int] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        span, _, stride = part.partition(":")
        first, _, last = span.partition("-")
        if last:
            step = int(stride or 1)
            found += range(int(first), int(last) + (1 if step > 0 else -1), step)
        else:
            found.append(int(first))
    return found
