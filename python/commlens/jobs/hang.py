# SPDX-License-Identifier: Apache-2.0
"""Groups ranks by their current call, and lists the members of its communicator that are not in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

from commlens.jobs.arenas import ranges
from commlens.render.table import Column, Table
from commlens.render.units import path_text, time_text

COLUMNS = (
    Column("where", right=False),
    Column("communicator", right=False),
    Column("ranks", right=False),
    Column("of"),
    Column("since, shortest"),
    Column("longest"),
)

PLACES_SQL = """\
SELECT position.rank, position.thread, position.inside, op.name AS op, comm.id AS comm, comm.name AS comm_name,
       comm.user_name, comm.kind, comm.size, MAX(rank.app_ns - position.since_ns, 0) AS since_ns, path
  FROM position JOIN op ON op.id = position.op JOIN comm ON comm.id = position.comm
       JOIN rank ON rank.rank = position.rank LEFT JOIN region_path ON region_path.region = position.region
 ORDER BY position.rank, position.thread"""

MEMBERS_SQL = """\
SELECT rank.rank FROM member_range JOIN rank
    ON rank.rank BETWEEN low AND high AND (rank.rank - low) % stride = 0
 WHERE comm = ? ORDER BY 1"""


@dataclass
class Group:
    """Ranks in the same call on the same communicator, or outside MPI after it.

    Attributes
    ----------
    op, comm : str
        Procedure, and the communicator by all its names.
    inside : bool
        They are in the call.
    size : int or None
        Processes of the communicator.
    ranks : dict of int to int
        World rank -> nanoseconds since the call began.
    absent : list of int
        Members of the communicator that are not in this call, of those that could be looked at.
    regions : dict of str to list of int
        Path of a code region -> world ranks that are in it; the empty path is outside all of them.
    """

    op: str
    comm: str
    inside: bool
    size: int | None
    ranks: dict[int, int] = field(default_factory=dict)
    absent: list[int] = field(default_factory=list)
    regions: dict[str, list[int]] = field(default_factory=dict)

    def regions_text(self) -> str:
        """Return the code regions of these ranks; empty if there are none.

        >>> Group("", "", True, 1, {0: 1, 1: 1, 2: 1}, regions={"solve/norm": [0, 1], "": [2]}).regions_text()
        'region solve/norm: 0-1; none: 2'
        >>> Group("", "", True, 1, {0: 1}, regions={"solve/norm": [0]}).regions_text()
        'region solve/norm'
        """
        # Ranks outside MPI that have another thread inside it are not in the group.
        paths = {path: [r for r in ranks if r in self.ranks] for path, ranks in self.regions.items()}
        parts = [(path, ranges(ranks)) for path, ranks in sorted(paths.items(), key=lambda p: p[1]) if ranks]
        if [path for path, _ in parts] in ([], [""]):
            return ""
        if len(parts) == 1:
            return f"region {path_text(parts[0][0])}"
        return "region " + "; ".join(f"{path_text(path) or 'none'}: {ranks}" for path, ranks in parts)


def read_places(connection: sqlite3.Connection) -> list[Group]:
    """Return the groups, those in a call first, the largest first."""
    groups: dict[tuple[int, str, int], Group] = {}
    for row in connection.execute(PLACES_SQL):
        key = (row["inside"], row["op"], row["comm"])
        name = row["comm_name"] + (f" '{row['user_name']}'" if row["user_name"] else "")
        group = groups.setdefault(key, Group(row["op"], name, bool(row["inside"]), row["size"]))
        group.ranks[row["rank"]] = max(row["since_ns"], group.ranks.get(row["rank"], 0))
        group.regions.setdefault(row["path"] or "", []).append(row["rank"])
    for (inside, _, comm), group in groups.items():
        if inside and comm != 0:
            members = [rank for (rank,) in connection.execute(MEMBERS_SQL, (comm,))]
            group.absent = [rank for rank in members if rank not in group.ranks]
    # A rank with a thread in MPI is not outside it.
    busy = {rank for group in groups.values() if group.inside for rank in group.ranks}
    for group in groups.values():
        if not group.inside:
            group.ranks = {rank: since for rank, since in group.ranks.items() if rank not in busy}
    return sorted((g for g in groups.values() if g.ranks), key=lambda g: (not g.inside, -len(g.ranks), g.op))


def draw(groups: Sequence[Group]) -> Table:
    """Return the groups as a table; below each, the code regions and the missing members."""
    table = Table(COLUMNS)
    for group in groups:
        since = sorted(group.ranks.values())
        where = f"in {group.op}" if group.inside else f"outside MPI, last in {group.op}"
        of = "" if group.size is None else str(group.size)
        table.add([where, group.comm, ranges(group.ranks), of, time_text(since[0]), time_text(since[-1])])
        region = group.regions_text()
        if region:
            table.say(region, prefix="  ")
        if group.absent:
            table.say(f"not in this call: {ranges(group.absent)}", prefix="  ", style="yellow")
    return table
