# SPDX-License-Identifier: Apache-2.0
"""Turns a profile into the rows of its job: one list for each table of spec/dataset.toml."""

from __future__ import annotations

import grp
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from commlens.base.users import name_of
from commlens.findings.find import read_findings, refusal
from commlens.fleet import of_profile
from commlens.fleet._dataset import CODES, TABLES, Code
from commlens.fleet.codes import code_of, words
from commlens.fleet.lineage import lineages
from commlens.fleet.pseudonyms import Pseudonyms
from commlens.fleet.traffic import matrix_row
from commlens.profile.meta import facts, is_summary, number
from commlens.reports.run import OVERHEAD_SQL, SUMMARY_OVERHEAD_SQL
from commlens.symbols.paths import distinct_labels

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]
Values = dict[str, Any]

START = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
QUEUES = ("SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE")
MOST_TEXT = 4096


@dataclass(frozen=True)
class Origin:
    """Where a profile comes from, and how its rows are written.

    Attributes
    ----------
    path : Path
        The profile.
    stat : os.stat_result
        Of its file or folder.
    state : tuple of int
        Its bytes and when it changed, of state_of().
    """

    path: Path
    stat: os.stat_result
    state: tuple[int, int]
    cluster: str
    pseudonyms: Pseudonyms = field(default_factory=Pseudonyms)
    codes: Sequence[Code] = CODES

    @property
    def owner(self) -> str:
        """The user who owns the profile."""
        return _user(self.stat.st_uid)

    @property
    def file_id(self) -> int:
        """Hash of path, size and time of the file: equal if it was read before and has not changed since."""
        return self.pseudonyms.number("file", self.path, *self.state)

    @property
    def changed(self) -> datetime:
        """When the profile changed last."""
        return datetime.fromtimestamp(self.state[1] // 10**9, timezone.utc).replace(tzinfo=None)


def state_of(path: Path) -> tuple[int, int]:
    """Return the bytes of a profile and when it changed, in ns; of a profile that is a folder, those of its files."""
    every = [one.stat() for one in (path, *(path.iterdir() if path.is_dir() else ()))]
    return sum(facts.st_size for facts in every), max(facts.st_mtime_ns for facts in every)


@lru_cache(maxsize=4096)
def _user(uid: int) -> str:
    return name_of(uid)


@lru_cache(maxsize=4096)
def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def start_of(text: str) -> datetime | None:
    """Return a time of table meta, or None if it is none.

    >>> start_of("2026-11-27T13:26:48Z"), start_of("yesterday"), start_of("2026-13-01T00:00:00Z")
    (datetime.datetime(2026, 11, 27, 13, 26, 48), None, None)
    """
    if not START.fullmatch(text):
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return None


def month_of(time: datetime | None) -> str:
    """Return the month that names a partition; empty for an unknown time."""
    return time.strftime("%Y-%m") if time is not None and time.year >= 1970 else ""


class JobReader:
    """Reads the rows of one profile.

    Attributes
    ----------
    rows : dict of str to list of tuple
        Table -> rows, in the order of its columns.
    job : int
        Identity of the job.
    """

    def __init__(self, connection: sqlite3.Connection, origin: Origin):
        self._connection, self._origin = connection, origin
        self._meta = facts(connection)
        self._is_summary = is_summary(connection)
        self._settings = [tuple(row) for row in connection.execute(of_profile.SETTINGS_SQL)]
        self._start = start_of(self._meta.get("start_time", ""))
        self._names = {
            row[0]: (row[1], row[2]) for row in connection.execute("SELECT id, name, class FROM op")
        }
        self._arguments = words(self._meta.get("command_line", ""))
        program = self._meta.get("program", "")
        build_id = self._setting("program", "build_id")
        self._build_id = build_id
        self._code = code_of(program, build_id, self._arguments, origin.codes)
        self.job = self._identity()
        self.rows: Rows = {name: [] for name in TABLES}
        self._left_out = 0

    def _all(self, sql: str, *parameters: Any) -> list[Any]:
        return self._connection.execute(sql, parameters).fetchall()

    def _setting(self, source: str, *names: str) -> str:
        """Return the value of the first of these settings that most processes have; empty if none has."""
        for name in names:
            for of, of_name, value, _ in self._settings:
                if (of, of_name) == (source, name):
                    return str(value)
        return ""

    def _identity(self) -> int:
        """Return the identity of the job. A profile that was recovered first, and written later, has the same."""
        worlds = [row[0] for row in self._all(of_profile.WORLDS_SQL)]
        if not any(worlds):
            worlds = [row[0] for row in self._all(of_profile.FIRST_COMM_SQL)]
        named = [self._meta.get(key, "") for key in ("start_time", "ranks", "program", "job_id")]
        return Pseudonyms().number("job", *worlds, *named)

    def _input(self) -> str:
        label = self._setting("label", "input")
        if label:
            return self._origin.pseudonyms.token("input", label[:MOST_TEXT])
        arguments = self._arguments[1:]
        return f"{self._origin.pseudonyms.number('input', self._meta.get('ranks', ''), *arguments):016x}"

    def _add(self, table: str, rows: Sequence[Values]) -> None:
        """Add rows, at most as many as the table has room for."""
        spec = TABLES[table]
        if spec.most and len(rows) > spec.most:
            self._left_out += len(rows) - spec.most
            rows = sorted(rows, key=lambda row: -(row[spec.order] or 0))[: spec.most]
        common = {
            "job": self.job,
            "cluster": self._origin.cluster,
            "month": month_of(self._start),
            "code": self._code,
        }
        names = [column.name for column in spec.columns]
        self.rows[table] += [
            self._origin.pseudonyms.applied(
                spec, [common[name] if name in common else row[name] for name in names], self._origin.owner
            )
            for row in rows
        ]

    def read(self, complaints: int = 0) -> Rows:
        """Return the rows of all tables."""
        operations = self._operations()
        self._add("operation", operations)
        self._add("comm_family", self._families(operations))
        self._add("site", self._sites())
        regions = [dict(row) for row in self._all(of_profile.REGIONS_SQL)]
        self._add("region", regions)
        nodes = self._nodes()
        self._add("node", nodes)
        row = matrix_row(self._connection, number(self._meta, "ranks"))
        self._add("matrix", [row] if row else [])
        titles = ("source", "name", "value", "ranks")
        self._add("setting", [dict(zip(titles, row)) for row in self._settings])
        self._add("finding", self._findings())
        whole = next((region for region in regions if region["region"] == 0), {})
        self._add("job", [{**self._job(operations, whole, len(nodes)), "complaints": complaints}])
        return self.rows

    def _job(self, operations: Sequence[Values], whole: Mapping[str, Any], nodes: int) -> Values:
        meta, origin = self._meta, self._origin
        totals = self._connection.execute(of_profile.TOTALS_SQL).fetchone()
        state = self._connection.execute(of_profile.STATE_SQL).fetchone()
        overhead = self._connection.execute(
            SUMMARY_OVERHEAD_SQL if self._is_summary else OVERHEAD_SQL
        ).fetchone()
        texts = ("program", "job_id", "command_line", "mpi_library", "mpi_family", "thread_level", "detail")
        numbers = ("ranks", "ranks_collected", "elapsed_ns", "schema_version")
        return {
            **{key: meta.get(key, "")[:MOST_TEXT] for key in (*texts, "commlens_version")},
            **{key: number(meta, key) for key in numbers},
            **{key: (totals[key] if totals else 0) or 0 for key in ("app_ns", "mpi_ns", "calls")},
            **{key: sum(row[key] for row in operations) for key in ("bytes_sent", "bytes_received")},
            **{
                key: whole.get(key)
                for key in ("load_balance", "communication_efficiency", "parallel_efficiency")
            },
            "nodes": nodes or number(meta, "nodes"),
            "start": self._start,
            "input": self._input(),
            "build_id": self._build_id[:MOST_TEXT],
            "owner": origin.owner,
            "owner_group": _group(origin.stat.st_gid),
            "queue": self._setting("environment", *QUEUES)[:MOST_TEXT],
            "directory": meta.get("working_directory", "")[:MOST_TEXT],
            "profile": str(origin.path),
            "changed": origin.changed,
            "file": origin.file_id,
            "waiting_ns": sum(row["waiting_ns"] or 0 for row in operations),
            "waiting_of_ns": sum(row["time_ns"] for row in operations if row["waiting_ns"] is not None),
            "sub_ns": sum(row["time_ns"] for row in operations if row["is_sub"]),
            "own_ns": (overhead["all_ns"] if overhead else 0) or 0,
            "state": state[0] if state else "",
            "rows_left_out": self._left_out,
        }

    def _operations(self) -> list[Values]:
        sql = of_profile.SUMMARY_OPERATIONS_SQL if self._is_summary else of_profile.OPERATIONS_SQL
        waiting = {tuple(row[:3]): row for row in map(tuple, self._all(of_profile.SPLIT_SQL))}
        self._family_rows = {row["family"]: dict(row) for row in self._all(of_profile.FAMILIES_SQL)}
        ranks = number(self._meta, "ranks")
        rows = []
        for row in map(dict, self._all(sql)):
            name, kind = self._names.get(row["op"], ("unknown", "other"))
            size = self._family_rows.get(row["family"], {}).get("size_max")
            split = waiting.get((row["family"], row["op"], row["bin"]))
            waiting_ns = min(max(split[4], 0), row["time_ns"]) if split else None
            is_sub = int(size is not None and size < ranks)
            rows.append(
                {**row, "op": name, "class": kind, "size": size, "is_sub": is_sub, "waiting_ns": waiting_ns}
            )
        return rows

    def _families(self, operations: Sequence[Values]) -> list[Values]:
        counters = ("calls", "time_ns", "bytes_sent", "bytes_received")
        totals: dict[int, Values] = defaultdict(lambda: {"waiting_ns": None, **dict.fromkeys(counters, 0)})
        for row in operations:
            total = totals[row["family"]]
            for counter in counters:
                total[counter] += row[counter]
            if row["waiting_ns"] is not None:
                total["waiting_ns"] = (total["waiting_ns"] or 0) + row["waiting_ns"]
        comms = {row["id"]: dict(row) for row in self._all(of_profile.COMMS_SQL)}
        firsts = [row["first"] for row in self._family_rows.values()]
        lineage = lineages(self._connection, comms, firsts)
        ranks = number(self._meta, "ranks")
        found = []
        for family, row in self._family_rows.items():
            first, size = comms[row["first"]], row["size_max"]
            found.append(
                {
                    **row,
                    **totals[family],
                    "lineage": lineage[row["first"]],
                    "kind": first["kind"],
                    "creator": first["creator"] or "",
                    "topology": (first["topology"] or "").partition(" ")[0],
                    "is_sub": int(size is not None and size < ranks),
                }
            )
        return found

    def _sites(self) -> list[Values]:
        most = TABLES["site"].most
        rows = [dict(row) for row in self._all(of_profile.SITES_SQL, most)]
        self._left_out += max((row["all_rows"] - len(rows) for row in rows), default=0)
        ids = {row["callsite"] for row in rows if row["callsite"]}
        labels = distinct_labels(self._connection, ids) if ids else {}
        sql = "SELECT id, build_id FROM callsite"
        builds = {row[0]: row[1] for row in self._all(sql) if row[0] in ids}
        found: dict[tuple[str, str], Values] = {}
        for row in rows:
            site = labels.get(row["callsite"], "unknown")[:MOST_TEXT]
            op = self._names.get(row["op"], ("unknown", ""))[0]
            known = found.get((site, op))
            if known is None:
                found[site, op] = {**row, "site": site, "op": op, "build_id": builds.get(row["callsite"], "")}
                continue
            for counter in ("calls", "time_ns", "bytes_sent", "bytes_received"):
                known[counter] += row[counter]
        return list(found.values())

    def _nodes(self) -> list[Values]:
        rows = [dict(row) for row in self._all(of_profile.NODES_SQL)]
        usual = median(row["outside_ns"] or 0 for row in rows) if rows else 0
        for row in rows:
            row["slowness"] = row["outside_ns"] / usual if len(rows) > 1 and usual > 0 else None
            row.update(start=self._start, nodes=len(rows))
        return rows

    def _findings(self) -> list[Values]:
        if refusal(self._connection):
            return []
        found = read_findings(self._connection)
        return [
            {
                "number": place,
                "rule": finding.rule.name,
                **{
                    key: str(finding.values.get(key) or "")[:MOST_TEXT]
                    for key in ("op", "communicator", "site")
                },
                "share": float(finding.share),
                "text": finding.text[:MOST_TEXT],
            }
            for place, finding in enumerate(found, 1)
        ]
