# SPDX-License-Identifier: Apache-2.0
"""Reads the times of one profile by chosen columns: the sum over the ranks, and the time of the slowest rank."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from commlens.base.errors import CommlensError
from commlens.profile import meta
from commlens.reports.query import Selection
from commlens.selection.conditions import where
from commlens.selection.names import matching_operations

COLUMNS = {
    "family": "comm.family",
    "comm-size": "comm.size + COALESCE(comm.remote_size, 0)",
    "op": "op.name",
    "size": "key.bin",
    "region": "key.region",
}
"""Columns by which times can be grouped."""

PATHS_SQL = "SELECT region, path FROM region_path"

SUMMARY_TIMES = """\
(SELECT scope.key, sum, max FROM scope JOIN spread ON spread.scope = scope.id
            WHERE counter = 'time_ns' AND scope.key IS NOT NULL)"""


class GroupKey(NamedTuple):
    """A group; what the rows are not grouped by is None."""

    family: int | None
    comm_size: int | None
    operation: str | None
    bin: int | None
    region: str | None


class GroupTime(NamedTuple):
    """Times of a group; slowest_ns is None if unknown."""

    sum_ns: int
    slowest_ns: int | None


@dataclass
class Chosen:
    """The communicators that --comm selects in one run: whole families, and single communicators of others."""

    families: list[int]
    ids: list[int]

    def condition(self) -> str:
        """Return the condition on a row of comm."""
        families, ids = (", ".join(map(str, numbers)) for numbers in (self.families, self.ids))
        return f"(comm.family IN ({families}) OR comm.id IN ({ids}))"


def select_operations(
    connection: sqlite3.Connection, selection: Selection
) -> tuple[Selection | None, dict[str, CommlensError]]:
    """Return the selection with the procedures of this profile, None if it has none, and an error per unknown pattern."""
    found: list[str] = []
    missing = {}
    for pattern in selection.operations:
        try:
            found += matching_operations(connection, [pattern])
        except CommlensError as error:  # another run may have calls of it
            missing[pattern] = error
    if selection.operations and not found:
        return None, missing
    return replace(selection, operations=tuple(found)), missing


def read_groups(
    connection: sqlite3.Connection,
    by: Sequence[str],
    selection: Selection,
    region: str | None = None,
    chosen: Chosen | None = None,
) -> dict[GroupKey, GroupTime]:
    """Return the times of a profile.

    Parameters
    ----------
    by : sequence of str
        Names in COLUMNS.
    selection : Selection
        Operations of this profile, classes and sizes.
    region : str or None
        Only regions whose path matches this glob.
    """
    paths = dict(tuple(row) for row in connection.execute(PATHS_SQL))
    conditions = [*selection.key_conditions(), *([chosen.condition()] if chosen else [])]
    if region is not None:
        inside = [str(number) for number, path in paths.items() if fnmatchcase(path or "", region)]
        conditions.append(f"key.region IN ({', '.join(inside)})")
    columns = ", ".join(
        f"{sql if name in by else 'NULL'} AS g{i}" for i, (name, sql) in enumerate(COLUMNS.items())
    )
    groups = ", ".join(f"g{i}" for i in range(len(COLUMNS)))
    rows = f"FROM key JOIN comm ON comm.id = key.comm JOIN op ON op.id = key.op{{}}{where(conditions)}"
    if meta.is_summary(connection):
        sql = f"""\
SELECT {columns}, SUM(said.sum), CASE COUNT(*) WHEN 1 THEN MAX(said.max) END
  {rows.format(f" JOIN {SUMMARY_TIMES} AS said ON said.key = key.id")} GROUP BY {groups}"""
    else:
        sql = f"""\
SELECT {groups}, SUM(spent), MAX(spent)
  FROM (SELECT {columns}, SUM(cell.time_ns) AS spent
          {rows.format(" JOIN cell ON cell.key = key.id")} GROUP BY {groups}, cell.rank)
 GROUP BY {groups}"""
    found: dict[GroupKey, GroupTime] = {}
    for family, size, operation, bin, place, total, most in connection.execute(sql):
        path = (paths.get(place) or "") if "region" in by else None
        group = GroupKey(family, size, operation, bin, path)
        # A region and a loop may have the same path.
        found[group] = (
            GroupTime(found[group].sum_ns + total, None) if group in found else GroupTime(total, most)
        )
    return found
