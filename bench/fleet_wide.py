# SPDX-License-Identifier: Apache-2.0
"""Writes a dataset as large as that of a centre: 100,000 made-up jobs with a thousand rows of table operation each.

The jobs are those of commlens.fleet.made_up, whose truth is known. Each of their few operations is divided at random among 100
families of communicators and some message sizes, so that sums of time stay what they were. numpy does that for some hundred
jobs at once, and the files are written by the writer of commlens ingest, to the size to which it puts small files together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from commlens.fleet._dataset import TABLES
from commlens.fleet.files import PartWriter, arrow, table_of
from commlens.fleet.job import Rows
from commlens.fleet.log import DataFile, Log
from commlens.fleet.made_up import CLUSTER, Truth, batches

FAMILIES = 100
PIECES = 350
"""Rows of an operation of a job. Most jobs have three operations, so that 100,000 jobs have 10^8 rows."""
QUANTILES = (("min", 0.3, 0.9), ("p25", 0.9, 1.0), ("p50", 1.0, 1.05), ("p75", 1.05, 1.2), ("max", 1.2, 4.0))


class Wide:
    """Divides the operations of jobs.

    Parameters
    ----------
    seed : int
        The same seed makes the same rows.
    """

    def __init__(self, seed: int = 0):
        self._chance = np.random.default_rng(seed)

    def tables(self, rows: Rows) -> dict[str, Any]:
        """Return the rows of all tables, as pyarrow tables."""
        found = {name: table_of(name, some) for name, some in rows.items() if some}
        found["operation"] = self._operations(found["operation"])
        found["comm_family"] = self._families(found["comm_family"], found["operation"])
        return found

    def _between(self, low: float, high: float, count: int) -> Any:
        return self._chance.uniform(low, high, count)

    def _operations(self, few: Any) -> Any:
        """Return each operation in PIECES rows."""
        count = few.num_rows * PIECES
        piece = np.tile(np.arange(PIECES), few.num_rows)
        wide = few.take(np.repeat(np.arange(few.num_rows), PIECES))
        weights = self._chance.standard_gamma(0.7, (few.num_rows, PIECES)) + 1e-3
        share = (weights / weights.sum(axis=1, keepdims=True)).ravel()

        def of(name: str) -> Any:
            return wide.column(name).to_numpy()

        time = (of("time_ns") * share).astype(np.int64)
        calls = np.maximum(1, of("calls") * share * self._between(0.5, 1.5, count)).astype(np.int64)
        sizes = of("bin") + piece // FAMILIES
        volume = (calls * np.exp2(sizes - self._between(0, 1, count))).astype(np.int64) * (sizes > 0)
        family = piece % FAMILIES + 1
        size = np.maximum(2, of("size") >> (family % 7))
        each = time / np.maximum(1, of("ranks"))
        changed = {
            "family": family,
            "size": size,
            "is_sub": (size < of("ranks")).astype(np.int32),
            "bin": sizes.astype(np.int32),
            "calls": calls,
            "time_ns": time,
            "call_max_ns": (time / calls * self._between(2, 200, count)).astype(np.int64),
            "waiting_ns": (of("waiting_ns") * share).astype(np.int64),
            "bytes_sent": volume * (of("bytes_sent") > 0),
            "bytes_received": volume,
            **{f"rank_{q}_ns": (each * self._between(a, b, count)).astype(np.int64) for q, a, b in QUANTILES},
        }
        return replaced(wide, changed)

    def _families(self, few: Any, operations: Any) -> Any:
        """Return FAMILIES rows for each job, with the sums of their operations."""
        firsts = few.column("job").to_numpy()
        place = np.flatnonzero(np.concatenate(([True], firsts[1:] != firsts[:-1])))
        wide = few.take(np.repeat(place, FAMILIES))
        family = np.tile(np.arange(1, FAMILIES + 1), len(place))
        jobs = operations.column("job").to_numpy()
        number = np.concatenate(([0], np.cumsum(jobs[1:] != jobs[:-1])))
        index = number * FAMILIES + operations.column("family").to_numpy() - 1

        def total(name: str) -> Any:
            values = operations.column(name).to_numpy()
            return np.bincount(index, weights=values, minlength=len(family)).astype(np.int64)

        size = np.maximum(2, wide.column("size_max").to_numpy() >> (family % 7))
        programs = wide.column("lineage").to_pylist()
        lineage = [
            f"{begin} > MPI_Comm_split at solver+0x{f * 64:x}" for begin, f in zip(programs, family.tolist())
        ]
        changed = {
            "family": family,
            "lineage": lineage,
            "creator": ["MPI_Comm_split" if f > 1 else "" for f in family.tolist()],
            "size_min": size,
            "size_max": size,
            **{
                name: total(name)
                for name in ("calls", "time_ns", "waiting_ns", "bytes_sent", "bytes_received")
            },
        }
        return replaced(wide, changed)


def replaced(table: Any, changed: dict[str, Any]) -> Any:
    """Return a table with other values in some columns."""
    pa = arrow()
    arrays = [
        pa.array(changed[field.name], field.type) if field.name in changed else table.column(field.name)
        for field in table.schema
    ]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def by_month(jobs: int) -> Iterator[tuple[str, Iterator[Rows]]]:
    """Yield the months of a made-up year with the rows of their jobs, some hundred jobs at a time."""
    month_at = [column.name for column in TABLES["job"].columns].index("month")

    def parts() -> Iterator[tuple[str, Rows]]:
        for rows in batches(jobs, Truth()):
            at = {name: [c.name for c in TABLES[name].columns].index("month") for name in rows}
            for month in dict.fromkeys(job[month_at] for job in rows["job"]):
                yield month, {n: [row for row in some if row[at[n]] == month] for n, some in rows.items()}

    for month, group in groupby(parts(), key=lambda part: part[0]):
        yield month, (rows for _, rows in group)


def write_wide(folder: Path, jobs: int) -> int:
    """Write a dataset of about so many jobs; return how many they are."""
    log, wide, count = Log.create(folder), Wide(), 0
    state = log.read()
    for month, parts in by_month(jobs):
        writers: dict[str, PartWriter] = {}
        for rows in parts:
            count += len(rows["job"])
            for name, table in wide.tables(rows).items():
                if name not in writers:
                    writers[name] = PartWriter(folder, (name, CLUSTER, month))
                writers[name].write(table)
        files: list[DataFile] = [writer.finish() for writer in writers.values()]
        assert log.commit(state, files)
        print(f"{month}: {count:,} jobs, {os.times().user:,.0f} s", flush=True)
    return count
