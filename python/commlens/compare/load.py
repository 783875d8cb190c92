# SPDX-License-Identifier: Apache-2.0
"""Reads how often the kernel took the CPU from the ranks of a run, for other work."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from commlens.profile import meta


class NodeLoad(NamedTuple):
    """The rank of a node that was preempted most often per second; in summary detail that of the run, without a node."""

    node: str
    rank: int
    preempted: int
    rate: float


NODES_SQL = """\
SELECT node, rank, preempted, MAX(1e9 * preempted / app_ns) AS rate
  FROM rank WHERE preempted IS NOT NULL AND app_ns > 0 GROUP BY node ORDER BY rate DESC, node"""
# A counter that is 0 on all ranks has no row: if cpu_ns has one, preempted is 0 and not unknown.
SUMMARY_SQL = """\
SELECT '' AS node, MAX(CASE counter WHEN 'preempted' THEN max_rank ELSE 0 END) AS rank,
       MAX(CASE counter WHEN 'preempted' THEN max ELSE 0 END) AS preempted,
       1e9 * MAX(CASE counter WHEN 'preempted' THEN max ELSE 0 END)
           / MAX(CASE counter WHEN 'app_ns' THEN max END) AS rate
  FROM scope JOIN spread ON spread.scope = scope.id WHERE family IS NULL AND comm IS NULL AND region IS NULL
 GROUP BY NULL
HAVING MAX(counter = 'cpu_ns') AND MAX(CASE counter WHEN 'app_ns' THEN max END) > 0"""


def read_loads(connection: sqlite3.Connection) -> tuple[NodeLoad, ...]:
    """Return the load of each node, the highest first; nothing if the profile does not have it."""
    sql = SUMMARY_SQL if meta.is_summary(connection) else NODES_SQL
    return tuple(NodeLoad(*row) for row in connection.execute(sql))
