# SPDX-License-Identifier: Apache-2.0
"""Call paths as stacks of functions, and their file for speedscope."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import IO

from commlens.base.progress import tracked
from commlens.export.ranges import Ranges, within
from commlens.symbols.paths import MOST_LEVELS, PathTree


def functions(connection: sqlite3.Connection, sites: Iterable[int]) -> dict[int, list[str]]:
    """Return the functions on the path to each call site, the outermost first; of long paths the innermost ones."""
    wanted = set(sites)
    tree = PathTree(connection, wanted)
    return {site: [frame.name for frame in islice(tree.told(site), MOST_LEVELS)][::-1] for site in wanted}


def write_speedscope_paths(
    connection: sqlite3.Connection, file: IO[str], source: str, run: dict[str, str], ranks: Ranges
) -> None:
    """Write the time of MPI calls by call path and procedure: a sampled profile of all ranks, and one for each rank.

    A sample is a stack of functions, and its weight the time of all such calls.
    """
    rows = connection.execute(
        "SELECT cell.rank, key.callsite, op.name, SUM(cell.time_ns) FROM key JOIN cell ON cell.key = key.id"
        f" JOIN op ON op.id = key.op WHERE {within(ranks, 'cell.rank')}"
        " GROUP BY cell.rank, key.callsite, op.id ORDER BY cell.rank"
    ).fetchall()
    paths = functions(connection, {site for _, site, _, _ in rows})
    numbers: dict[str, int] = {}
    times: dict[int, Counter[tuple[int, ...]]] = {}
    for rank, of_rank in groupby(tracked(rows, source), key=lambda row: row[0]):
        times[rank] = Counter()
        for _, site, operation, time_ns in of_rank:
            names = (*paths[site], operation)
            times[rank][tuple(numbers.setdefault(name, len(numbers)) for name in names)] += time_ns
    total: Counter[tuple[int, ...]] = Counter()
    for counted in times.values():
        total.update(counted)
    file.write('{"$schema": "https://www.speedscope.app/file-format-schema.json",\n')
    file.write(f'"exporter": {json.dumps("commlens " + run.get("commlens_version", ""))},\n')
    file.write(f'"name": {json.dumps(run.get("program") or source)},\n"activeProfileIndex": 0,\n')
    file.write(f'"shared": {json.dumps({"frames": [{"name": name} for name in numbers]})},\n"profiles": [\n')
    file.write(",\n".join(_profiles(total, times)))
    file.write("]}\n")


def _profiles(total: Counter[tuple[int, ...]], times: dict[int, Counter[tuple[int, ...]]]) -> Iterator[str]:
    """Yield the profile of all ranks, and those of each rank."""
    for name, counted in (
        ("all ranks", total),
        *((f"rank {rank}", of_rank) for rank, of_rank in times.items()),
    ):
        stacks = sorted(counted)
        yield json.dumps(
            {
                "type": "sampled",
                "name": name,
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": sum(counted.values()),
                "samples": stacks,
                "weights": [counted[stack] for stack in stacks],
            }
        )
