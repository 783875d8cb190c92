# SPDX-License-Identifier: Apache-2.0
"""The communicators of a run as a tree: which was created from which."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from commlens.render.table import Column, Table
from commlens.render.tree import Row, Tree, prefix_text
from commlens.render.units import time_text
from commlens.reports.report import line_origin, line_size, name_of
from commlens.selection.conditions import comm_conditions, where
from commlens.symbols.paths import distinct_labels

FOLDED_SQL = """\
SELECT family.family AS line, family.name AS communicator, user_name, kind, communicators,
       size_min, size_max, members, family.parent AS parent_line, above.name AS parent, creator,
       callsite AS created_at, topology, created_ns, freed, freed_ns,
       COALESCE(calls, 0) AS calls, COALESCE(time_ns, 0) AS time_ns, rank_max_ns, rank_avg_ns
  FROM family
       JOIN (SELECT family, MIN(created_ns) AS created_ns, MAX(freed_ns) AS freed_ns,
                    SUM(CASE WHEN freed_ns IS NULL THEN 0 ELSE communicators END) AS freed,
                    CASE WHEN COUNT(*) = 1 THEN MIN(members) END AS members
               FROM comm GROUP BY family) AS life ON life.family = family.family
       LEFT JOIN (SELECT family, name FROM family) AS above ON above.family = family.parent
       LEFT JOIN family_total ON family_total.family = family.family
 WHERE kind IN ('intra', 'inter'){chosen}
 ORDER BY created_ns, line"""

UNFOLDED_SQL = """\
SELECT comm.id AS line, comm.name AS communicator, comm.user_name, comm.kind, 1 AS communicators,
       comm.size + COALESCE(comm.remote_size, 0) AS size_min, comm.size + COALESCE(comm.remote_size, 0) AS size_max,
       comm.members, comm.parent AS parent_line, above.name AS parent, op.name AS creator,
       comm.callsite AS created_at, comm.topology, comm.created_ns, comm.freed_ns IS NOT NULL AS freed, comm.freed_ns,
       COALESCE(calls, 0) AS calls, COALESCE(time_ns, 0) AS time_ns, rank_max_ns, rank_avg_ns
  FROM comm
       LEFT JOIN comm AS above ON above.id = comm.parent
       LEFT JOIN op ON op.id = comm.creator
       LEFT JOIN comm_total ON comm_total.comm = comm.id
 WHERE comm.kind IN ('intra', 'inter'){chosen}
 ORDER BY comm.created_ns, line"""

COLUMNS = (
    Column("communicator", right=False),
    Column("size", right=False),
    Column("calls"),
    Column("max/rank"),
    Column("avg/rank"),
    Column("created", wide=1),
    Column("freed", wide=2),
)

MPISEE_LETTERS = {"G": "r", "x": "g", "y": "j", "g": "u", "w": "d", "j": "i", "u": "?"}
"""Our letter -> that of mpisee (its src/commprof.cpp) for the same procedure, where the two differ: MPI_Graph_create,
MPI_Dist_graph_create, MPI_Dist_graph_create_adjacent and MPI_Comm_create_group. mpisee has no letters for
MPI_Comm_dup_with_info and MPI_Comm_idup_with_info, which get those of the plain forms, nor for an unknown procedure."""

MEMBERS_SHOWN = 40  # characters; longer lists of ranks are in csv, json and the table comm


def tree_sql(comms: Sequence[str], *, fold: bool) -> str:
    """Return the statement for the selected communicators, or for all; with `fold` their families."""
    conditions = comm_conditions(comms)
    if not conditions:
        return (FOLDED_SQL if fold else UNFOLDED_SQL).format(chosen="")
    if not fold:
        return UNFOLDED_SQL.format(chosen="".join(f"\n   AND {condition}" for condition in conditions))
    families = f"SELECT comm.family FROM comm{where(conditions)}"
    return FOLDED_SQL.format(chosen=f"\n   AND family.family IN ({families})")


def read_tree(connection: sqlite3.Connection, sql: str) -> Tree:
    """Read the communicators."""
    rows = [dict(row) for row in connection.execute(sql)]
    sites = [row["created_at"] for row in rows if row["created_at"] is not None]
    return Tree(rows, distinct_labels(connection, sites))


def with_letters_of_mpisee(name: str | None) -> str | None:
    """Return the name of a communicator or family with mpisee's letter for the procedure that created it.

    >>> with_letters_of_mpisee("s0.1"), with_letters_of_mpisee("x*.3"), with_letters_of_mpisee(None)
    ('s0.1', 'g*.3', None)
    """
    return MPISEE_LETTERS.get(name[0], name[0]) + name[1:] if name else name


def use_letters_of_mpisee(tree: Tree) -> None:
    """Rename the communicators of a tree."""
    for row in tree.rows:
        for column in ("communicator", "parent"):
            row[column] = with_letters_of_mpisee(row[column])


def freed_text(row: Row) -> str:
    """Return when a communicator was freed, or how many of a family were freed."""
    count, freed = row["communicators"], row["freed"]
    if count == 1:
        return time_text(row["freed_ns"]) if freed else "-"
    if freed in (0, count):
        return "all" if freed else "-"
    return f"{freed} of {count}"


def draw(tree: Tree, top: int | None) -> Table:
    """Return the tree as a table, with two lines for each communicator that was created from another."""
    table = Table(COLUMNS)
    for prefix, below, row in tree.walk(top):
        prefix, below = prefix_text(prefix), prefix_text(below)
        if isinstance(row, int):
            table.say(f"and {row:,} more", prefix)
            continue
        table.add(
            [
                prefix + name_of(row),
                line_size(row),
                f"{row['calls']:,}",
                time_text(row["rank_max_ns"]),
                time_text(row["rank_avg_ns"]),
                time_text(row["created_ns"]),
                freed_text(row),
            ],
            "" if prefix else "bold",
        )
        members = row["members"] or ""
        is_short = 0 < len(members) <= MEMBERS_SHOWN and (row["size_max"] or 0) > 1
        origin = [f"{'rank' if members.isdigit() else 'ranks'} {members}"] if is_short else []
        origin += [line_origin(row, tree.labels)]
        text = ", ".join(part for part in origin if part)
        if text:
            table.say(text, below)
    return table
