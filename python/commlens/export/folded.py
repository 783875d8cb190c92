# SPDX-License-Identifier: Apache-2.0
"""Folded stacks, for flame graph tools: the call path of each MPI procedure in one line, with its time."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import IO

from commlens.base.escape import Target, escape
from commlens.base.progress import tracked
from commlens.export.callpaths import functions
from commlens.export.ranges import Ranges, within

SEPARATOR = ";"


def frame(name: str) -> str:
    r"""Return a name that is one frame of a line.

    >>> frame("operator;\n")
    'operator:\\n'
    """
    return escape(name.replace(SEPARATOR, ":"), Target.LINE)


def write_folded(connection: sqlite3.Connection, file: IO[str], source: str, ranks: Ranges = ()) -> None:
    """Write the time of all ranks, or of some, in nanoseconds by call path and procedure."""
    rows = connection.execute(
        "SELECT key.callsite, op.name, SUM(cell.time_ns) FROM key JOIN cell ON cell.key = key.id"
        f" JOIN op ON op.id = key.op WHERE {within(ranks, 'cell.rank')} GROUP BY key.callsite, op.id"
    ).fetchall()
    paths = functions(connection, {site for site, _, _ in rows})
    stacks = {site: SEPARATOR.join(map(frame, path)) for site, path in paths.items()}
    times: Counter[str] = Counter()
    for site, operation, time_ns in tracked(rows, source):
        times[f"{stacks[site]}{SEPARATOR}{frame(operation)}"] += time_ns
    for stack in sorted(times):
        file.write(f"{stack} {times[stack]}\n")
