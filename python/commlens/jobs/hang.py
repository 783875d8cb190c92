# SPDX-License-Identifier: Apache-2.0
"""Groups ranks by their current call, and lists the members of its communicator that are not in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from commlens.profile.shape import has_table
from commlens.render.table import Column, Table
from commlens.render.units import path_text, time_text
from commlens.selection import ranges as ranges_of
from commlens.selection.words import ranges_text
from commlens.symbols.paths import distinct_labels

ANY = -1
"""MPI_ANY_SOURCE and MPI_ANY_TAG, as table position has them."""

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
       comm.user_name, comm.size + COALESCE(comm.remote_size, 0) AS size, dest, dest_tag, source, source_tag,
       position.callsite, MAX(rank.app_ns - position.since_ns, 0) AS since_ns, path
  FROM position JOIN op ON op.id = position.op JOIN comm ON comm.id = position.comm
       JOIN rank ON rank.rank = position.rank LEFT JOIN region_path ON region_path.region = position.region
 ORDER BY position.rank, position.thread"""

SILENT_SQL = """\
SELECT rank FROM rank
 WHERE state <> 'finalized' AND NOT EXISTS (SELECT 1 FROM position WHERE position.rank = rank.rank) ORDER BY 1"""

MEMBERS_SQL = "SELECT id, members FROM comm WHERE members IS NOT NULL"
SETS_SQL = "SELECT comm, member FROM comm_set"
RANKS_SQL = "SELECT rank FROM rank"


@dataclass
class Group:
    """Ranks in the same call on the same communicator, or outside MPI after it.

    Attributes
    ----------
    op, comm : str
        Procedure, and the communicator by all its names.
    inside : bool
        The ranks are in the call.
    size : int or None
        Processes of the communicator.
    ranks : dict of int to int
        World rank -> nanoseconds since the call began.
    absent : list of int
        Members of the communicator that are not in this call, among those whose arena could be read.
    regions : dict of str to list of int
        Path of a code region -> world ranks that are in it; the empty path means outside all regions.
    sites : dict of str to list of int
        Call site -> world ranks that called from it.
    partners : dict of str to list of int
        Other ends of the message of a blocking point-to-point call -> world ranks that wait for them.
    """

    op: str
    comm: str
    inside: bool
    size: int | None
    ranks: dict[int, int] = field(default_factory=dict)
    absent: list[int] = field(default_factory=list)
    regions: dict[str, list[int]] = field(default_factory=dict)
    sites: dict[str, list[int]] = field(default_factory=dict)
    partners: dict[str, list[int]] = field(default_factory=dict)

    def sites_text(self) -> str:
        """Return the call sites of these ranks; empty if unknown.

        >>> Group("", "", True, 1, {0: 1, 1: 1, 2: 1}, sites={"main a.c:7": [0, 1], "app+0x12": [2]}).sites_text()
        'at main a.c:7: 0-1; app+0x12: 2'
        >>> Group("", "", True, 1, {0: 1}, sites={"main a.c:7": [0]}).sites_text()
        'at main a.c:7'
        """
        parts = _by_ranks(self.sites, self.ranks)
        if [site for site, _ in parts] in ([], [UNKNOWN]):
            return ""
        if len(parts) == 1:
            return f"at {parts[0][0]}"
        return "at " + "; ".join(f"{site}: {ranks}" for site, ranks in parts)

    def regions_text(self) -> str:
        """Return the code regions of these ranks; empty if there are none.

        >>> Group("", "", True, 1, {0: 1, 1: 1, 2: 1}, regions={"solve/norm": [0, 1], "": [2]}).regions_text()
        'region solve/norm: 0-1; none: 2'
        >>> Group("", "", True, 1, {0: 1}, regions={"solve/norm": [0]}).regions_text()
        'region solve/norm'
        """
        parts = _by_ranks(self.regions, self.ranks)
        if [path for path, _ in parts] in ([], [""]):
            return ""
        if len(parts) == 1:
            return f"region {path_text(parts[0][0])}"
        return "region " + "; ".join(f"{path_text(path) or 'none'}: {ranks}" for path, ranks in parts)

    def partners_text(self) -> str:
        """Return whom these ranks send to and receive from; empty if the call has no such arguments.

        Of more than MOST_PARTNERS different ones, those of the lowest ranks.

        >>> Group("", "", True, 1, {0: 1, 1: 1}, partners={"from 3, tag 7": [0], "from any rank": [1]}).partners_text()
        'from 3, tag 7: 0; from any rank: 1'
        >>> Group("", "", True, 1, {0: 1, 1: 1}, partners={"to 2, any tag": [0, 1]}).partners_text()
        'to 2, any tag'
        """
        parts = _by_ranks(self.partners, self.ranks)
        if len(parts) == 1 and self.ranks.keys() <= set(*self.partners.values()):
            return parts[0][0]
        shown = [f"{partner}: {ranks}" for partner, ranks in parts[:MOST_PARTNERS]]
        left = len(parts) - len(shown)
        return "; ".join([*shown, *([f"and {left:,} more"] if left else [])])


UNKNOWN = "unknown"
"""The label that distinct_labels() returns for no call site."""


MOST_PARTNERS = 8
MOST_RANKS = 1 << 31  # of a world; read_places() does not need to know how many there are


class Members:
    """The members of the communicators of a profile; the text of each is parsed once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._texts: dict[int, str] = {row[0]: row[1] for row in connection.execute(MEMBERS_SQL)}
        self._sets: dict[int, list[int]] = {}
        for comm, member in connection.execute(SETS_SQL):
            self._sets.setdefault(comm, []).append(member)
        self._ranks = {rank for (rank,) in connection.execute(RANKS_SQL)}
        self._groups: dict[int, list[ranges_of.Group]] = {}

    def groups(self, comm: int) -> list[ranges_of.Group]:
        """Return the groups of a communicator: two of an intercommunicator, none if unknown."""
        if comm not in self._groups:
            parsed = ranges_of.groups(self._texts.get(comm), MOST_RANKS)
            self._groups[comm] = [ranges_of.Group(one) for one in parsed]
        return self._groups[comm]

    def remote(self, comm: int, rank: int) -> ranges_of.Group:
        """Return the group whose ranks a member names in its messages: of an intercommunicator the other one."""
        found = self.groups(comm)
        if len(found) == 2:
            return found[1 if ranges_of.holds(found[0].ranges, rank) else 0]
        return found[0] if found else ranges_of.Group(())

    def absent(self, comm: int, present: Container[int]) -> list[int]:
        """Return the members of a communicator, or of the communicators of a set, that are not among `present`."""
        found = {
            rank
            for one in self._sets.get(comm, [comm])
            for group in self.groups(one)
            for some in group.ranges
            for rank in self._known(some)
            if rank not in present
        }
        return sorted(found)

    def _known(self, some: range) -> Iterator[int]:
        """Yield the ranks of a range that are in the profile; a damaged one may have billions of others."""
        if len(some) <= len(self._ranks):
            return (rank for rank in some if rank in self._ranks)
        return (rank for rank in self._ranks if rank in some)


def _end_text(preposition: str, rank: int | None, tag: int | None, group: ranges_of.Group) -> str:
    """Return one end of a message: its rank in the communicator, its world rank if that is another, and the tag.

    >>> two, unknown = ranges_of.Group((range(4, 6),)), ranges_of.Group(())
    >>> _end_text("from", 1, 7, two), _end_text("to", 1, 0, ranges_of.Group((range(2),)))
    ('from 1 (world rank 5), tag 7', 'to 1, tag 0')
    >>> _end_text("from", -1, -1, two), _end_text("to", -2, 3, two), _end_text("to", None, None, two)
    ('from any rank, any tag', 'to MPI_PROC_NULL, tag 3', '')
    >>> _end_text("from", 9, 0, two), _end_text("from", 9, None, unknown)
    ('from 9 (no such rank), tag 0', 'from 9 (world rank unknown)')
    """
    if rank is None:
        return ""
    if rank < 0:
        who = "any rank" if rank == ANY else "MPI_PROC_NULL"
    else:
        in_world = group.member(rank)
        if in_world is None:
            who = f"{rank} (no such rank)" if group.size else f"{rank} (world rank unknown)"
        else:
            who = str(rank) if in_world == rank else f"{rank} (world rank {in_world})"
    if tag is None:
        return f"{preposition} {who}"
    return f"{preposition} {who}, " + ("any tag" if tag == ANY else f"tag {tag}")


def _partners_of(row: sqlite3.Row, members: Members) -> str:
    """Return whom the call that a row is in sends to and receives from; empty if it has no such arguments."""
    if not row["inside"] or (row["dest"] is None and row["source"] is None):
        return ""
    group = members.remote(row["comm"], row["rank"])
    ends = (("to", row["dest"], row["dest_tag"]), ("from", row["source"], row["source_tag"]))
    return ", ".join(filter(None, (_end_text(*end, group) for end in ends)))


def _by_ranks(named: Mapping[str, Sequence[int]], members: Container[int]) -> list[tuple[str, str]]:
    """Return names and the ranks that have them, as ranges, by the first rank.

    Leaves out ranks that are not in the group: ranks outside MPI that have another thread inside it.
    """
    found = {name: [rank for rank in ranks if rank in members] for name, ranks in named.items()}
    return [(name, ranges_text(ranks)) for name, ranks in sorted(found.items(), key=lambda f: f[1]) if ranks]


def read_places(connection: sqlite3.Connection) -> list[Group]:
    """Return the groups, those in a call first, the largest first."""
    groups: dict[tuple[int, str, int], Group] = {}
    rows = connection.execute(PLACES_SQL).fetchall()
    labels = distinct_labels(connection, {row["callsite"] for row in rows})
    members = Members(connection)
    for row in rows:
        key = (row["inside"], row["op"], row["comm"])
        name = row["comm_name"] + (f" '{row['user_name']}'" if row["user_name"] else "")
        group = groups.setdefault(key, Group(row["op"], name, bool(row["inside"]), row["size"]))
        group.ranks[row["rank"]] = max(row["since_ns"], group.ranks.get(row["rank"], 0))
        group.regions.setdefault(row["path"] or "", []).append(row["rank"])
        partners = _partners_of(row, members)
        if partners:
            group.partners.setdefault(partners, []).append(row["rank"])
        group.sites.setdefault(labels.get(row["callsite"], UNKNOWN), []).append(row["rank"])
    for (inside, _, comm), group in groups.items():
        if inside and comm != 0:
            group.absent = members.absent(comm, group.ranks)
    # A rank with a thread in MPI is not outside it.
    busy = {rank for group in groups.values() if group.inside for rank in group.ranks}
    for group in groups.values():
        if not group.inside:
            group.ranks = {rank: since for rank, since in group.ranks.items() if rank not in busy}
    return sorted((g for g in groups.values() if g.ranks), key=lambda g: (not g.inside, -len(g.ranks), g.op))


def read_end(connection: sqlite3.Connection) -> tuple[list[Group], list[int]]:
    """Return the groups of a recovered profile, and the ranks that had not made an MPI call.

    Both are empty if all ranks reached MPI_Finalize.
    """
    if not has_table(connection, "position"):
        return [], []
    return read_places(connection), [rank for (rank,) in connection.execute(SILENT_SQL)]


def draw_end(groups: Sequence[Group], silent: Sequence[int], top: int) -> Table:
    """Return where the ranks were when the job ended, as a table of at most `top` groups; 0: all."""
    table = draw(groups[: top or None])
    if top and len(groups) > top:
        table.say(f"and {len(groups) - top} more; --top 0 shows all")
    if silent:
        table.say(f"no MPI call after MPI_Init: {ranges_text(silent)}")
    return table


def draw(groups: Sequence[Group]) -> Table:
    """Return the groups as a table; below each, the call sites, the code regions and the missing members."""
    table = Table(COLUMNS)
    for group in groups:
        since = sorted(group.ranks.values())
        where = f"in {group.op}" if group.inside else f"outside MPI, last in {group.op}"
        of = "" if group.size is None else str(group.size)
        table.add(
            [where, group.comm, ranges_text(group.ranks), of, time_text(since[0]), time_text(since[-1])]
        )
        site = group.sites_text()
        if site:
            table.say(site, prefix="  ")
        partners = group.partners_text()
        if partners:
            table.say(partners, prefix="  ")
        region = group.regions_text()
        if region:
            table.say(region, prefix="  ")
        if group.absent:
            table.say(f"not in this call: {ranges_text(group.absent)}", prefix="  ", style="yellow")
    return table
