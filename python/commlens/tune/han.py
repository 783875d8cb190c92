# SPDX-License-Identifier: Apache-2.0
"""Where Open MPI's component coll/han comes before the rules: some collectives on communicators of several nodes."""

from __future__ import annotations

import sqlite3

from commlens.tune.switches import switches_of

PRIORITY = "coll_han_priority"
TUNED = 30
"""Priority of coll/tuned, which reads the rules."""

SET_SQL = "SELECT value FROM setting WHERE name IN (?, ?)"

ACROSS_SQL = """\
SELECT DISTINCT comm.family
  FROM comm JOIN member_range ON member_range.comm = comm.id
       JOIN rank ON rank.rank BETWEEN low AND high AND (rank.rank - low) % stride = 0
 GROUP BY comm.id
HAVING COUNT(DISTINCT rank.node) > 1"""

WITHOUT_MEMBERS_SQL = """\
SELECT DISTINCT family FROM comm
 WHERE id NOT IN (SELECT comm FROM member_range) AND (SELECT COUNT(DISTINCT node) FROM rank) > 1"""


def han_collectives(connection: sqlite3.Connection, library: str) -> set[str]:
    """Return the collectives that coll/han does on communicators of several nodes; empty if coll/tuned comes first."""
    for switch in switches_of(library):
        if switch.variable != PRIORITY:
            continue
        told = [row[0] for row in connection.execute(SET_SQL, (switch.variable, switch.environment))]
        values = [int(value) if value.lstrip("-").isdigit() else TUNED + 1 for value in told]
        if max(values, default=int(switch.default)) > TUNED:
            return {name.removeprefix("MPI_").lower() for name in switch.operations}
    return set()


def families_across(connection: sqlite3.Connection) -> set[int]:
    """Return the families with a communicator that spans nodes, or may do so because its members are unknown."""
    return {int(family) for sql in (ACROSS_SQL, WITHOUT_MEMBERS_SQL) for (family,) in connection.execute(sql)}
