# SPDX-License-Identifier: Apache-2.0
"""Reads the communication matrix from a profile."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

import numpy as np

from commlens.base.arrays import Ints, ints
from commlens.base.errors import CommlensError
from commlens.base.spelling import did_you_mean
from commlens.matrix.model import model
from commlens.matrix.pairs import NOBODY, Pairs
from commlens.profile.meta import META_SQL, number
from commlens.selection.conditions import any_of, comm_conditions, quoted, where
from commlens.selection.members import Comm, comm_of, marked
from commlens.selection.peers import refuse, refuse_unkept
from commlens.selection.ranges import groups

# Kind -> the flows that it sums.  A message counted by both sender and receiver is in only one of them.
KINDS = {
    "p2p": ("sent",),
    "put": ("put",),
    "get": ("get",),
    "one-sided": ("put", "get"),
    "collective": ("collective",),
    "internal": ("internal",),
    "share": ("share",),
    "modelled": ("modelled",),  # not in the profile: computed by commlens.matrix.model
    "all": ("sent", "put", "get", "collective", "internal"),
}
MODELLED = "modelled"
INSIDE = ("collective", "internal", "share")
SHAPES = {
    "one_to_all": "counted at the root",
    "all_to_one": "counted at the root",
    "all_to_all": "counted on all ranks",
}
"""Kinds that count calls of collectives instead of messages, and the ranks that count them."""
TITLES = {
    "p2p": "two-sided messages, as sent",
    "put": "one-sided: put",
    "get": "one-sided: get",
    "one-sided": "one-sided: put and get",
    "collective": "messages inside collectives",
    "internal": "messages inside other calls",
    "share": "shares of collectives",
    "modelled": "inside collectives, modelled (not measured)",
    "all": "two-sided, one-sided and inside calls",
}

MOST_SPREAD = 2 * 10**6  # number of pairs over which blocks of peers are divided

ENDS = """\
       CASE outward WHEN 1 THEN rank ELSE peer END AS source,
       CASE outward WHEN 1 THEN peer ELSE rank END AS destination"""

COMMS_SQL = "SELECT id, name, kind, creator, size, remote_size, communicators, members, topology FROM comm ORDER BY id"
RANKS_SQL = "SELECT rank, node, cpus, state FROM rank ORDER BY rank"

Range = tuple[int, int]


@dataclass(frozen=True)
class Selection:
    """Selects the messages of a matrix.

    Attributes
    ----------
    kind : str
        One of KINDS.
    comms : names, globs or ids of communicators; empty: all
    operations : names of procedures, for messages inside calls
    regions : paths of code regions or globs; nested regions are included
    slices : ranges of slices of time
    algorithms : algorithm per collective, for modelled messages
    """

    kind: str = "p2p"
    comms: Sequence[str] = ()
    operations: Sequence[str] = ()
    regions: Sequence[int] = ()
    slices: Sequence[Range] = ()
    algorithms: Mapping[str, str] = field(default_factory=dict)

    def conditions(self) -> list[str]:
        """Return conditions on a row of table peer, except for the kind."""
        conditions = []
        if self.comms:
            conditions.append(f"peer.comm IN (SELECT id FROM comm{where(comm_conditions(self.comms))})")
        if self.operations:
            names = ", ".join(quoted(name) for name in self.operations)
            conditions.append(f"peer.op IN (SELECT id FROM op WHERE name IN ({names}))")
        if self.regions:
            conditions.append(f"peer.region IN ({', '.join(map(str, self.regions))})")
        return conditions + any_of([f"peer.slice BETWEEN {low} AND {high}" for low, high in self.slices])

    def of_flows(self, flows: Sequence[str], *more: str) -> str:
        """Return the beginning of a statement for rows of these kinds of traffic."""
        kinds = ", ".join(quoted(flow) for flow in flows)
        conditions = [f"flow.name IN ({kinds})", *more, *self.conditions()]
        return "\n  FROM peer JOIN flow ON flow.id = peer.flow" + where(conditions)

    def pairs_sql(self, flows: Sequence[str]) -> str:
        """Return the statement for pairs with known source and destination."""
        return (
            f"SELECT comm, flow.id AS flow,\n{ENDS},\n       SUM(messages) AS messages, SUM(bytes) AS bytes"
            + self.of_flows(flows, "peer IS NOT NULL")
            + "\n GROUP BY comm, flow.id, rank, peer ORDER BY comm, flow.id"
        )

    def loose_sql(self, flows: Sequence[str]) -> str:
        """Return the statement for rows with a block of peers, a peer without known world rank, or no peer."""
        return (
            "SELECT comm, flow.id AS flow, outward, rank, first, peers, SUM(messages) AS messages, SUM(bytes) AS bytes"
            + self.of_flows(flows, "peer IS NULL")
            + "\n GROUP BY comm, flow.id, rank, first, peers"
        )

    def kinds_sql(self) -> str:
        """Return the statement for the totals of all kinds."""
        return (
            "SELECT flow.name AS kind, SUM(messages) AS messages, SUM(bytes) AS bytes"
            "\n  FROM peer JOIN flow ON flow.id = peer.flow"
            + where(self.conditions())
            + "\n GROUP BY flow.id ORDER BY flow.id"
        )


@dataclass
class Traffic:
    """Rows of one communicator and flow.

    Attributes
    ----------
    pairs : Pairs
        Of world ranks, all of them known.
    spread : Pairs
        Counts of blocks of peers, divided equally over their members.
    in_blocks : set of int
        World ranks that have such blocks.
    messages, bytes : int
        Traffic whose other process is unknown.
    """

    pairs: Pairs = NOBODY
    spread: Pairs = NOBODY
    in_blocks: set[int] = field(default_factory=set)
    messages: int = 0
    bytes: int = 0


@dataclass
class Matrix:
    """The communication matrix.

    Attributes
    ----------
    kind : str
        Kind of traffic: one of KINDS.
    shown : Ints
        World ranks that have a row and a column, rising.
    ranks : int
        Processes in MPI_COMM_WORLD; pairs are of numbers below.
    pairs, spread : Pairs
        As in Traffic, all communicators together.
    messages, bytes : int
        Traffic in neither, because the other process is unknown.
    """

    kind: str
    shown: Ints
    ranks: int
    pairs: Pairs
    spread: Pairs
    messages: int
    bytes: int
    kinds: dict[str, tuple[int, int]]
    traffic: dict[tuple[int, str], Traffic]
    comms: dict[int, Comm]
    nodes: dict[int, str]
    cpus: dict[int, str]
    states: dict[int, str]
    slice_ns: int
    inside: str  # of messages inside calls: "measured", or why they are not
    statements: list[tuple[str, str]]
    remarks: list[str] = field(default_factory=list)

    @property
    def is_modelled(self) -> bool:
        """Whether the matrix is modelled."""
        return self.kind == MODELLED

    @property
    def all(self) -> Pairs:
        """All pairs, including the divided blocks."""
        return Pairs.joined([self.pairs, self.spread]) if len(self.spread) else self.pairs


def add_modelled(
    traffic: dict[tuple[int, str], Traffic],
    kinds: dict[str, tuple[int, int]],
    modelled: Mapping[int, Sequence[Pairs]],
) -> None:
    """Add the messages that a model of the collectives gives for each communicator, as a kind of their own."""
    for comm, some in modelled.items():
        traffic[comm, MODELLED] = Traffic(Pairs.joined(some))
    everything = Pairs.joined(traffic[comm, MODELLED].pairs for comm in modelled)
    if len(everything):
        kinds[MODELLED] = (everything.total("messages"), everything.total("bytes"))


def read_matrix(connection: sqlite3.Connection, selection: Selection) -> Matrix:
    """Read the communication matrix.

    Raises
    ------
    CommlensError
        The profile has no such data.
    """
    refuse(connection)
    meta = dict(connection.execute(META_SQL).fetchall())
    flows = KINDS[selection.kind]
    # For two-sided messages, also reads the counts of the receivers.
    read_flows = (*flows, "received") if "sent" in flows else flows
    statements = [
        ("pairs", selection.pairs_sql(read_flows)),
        ("peers counted together", selection.loose_sql(read_flows)),
        ("kinds", selection.kinds_sql()),
        ("communicators", COMMS_SQL),
        ("ranks", RANKS_SQL),
    ]
    rows = [connection.execute(sql) for _, sql in statements]
    kinds = {row["kind"]: (row["messages"], row["bytes"]) for row in rows[2]}
    ranks = rows[4].fetchall()
    size = max([1, number(meta, "ranks"), *(row["rank"] + 1 for row in ranks)])
    comms = {row["id"]: comm_of(row, size) for row in rows[3]}
    names = {row[0]: row[1] for row in connection.execute("SELECT id, name FROM flow")}
    traffic = paired(rows[0], names)
    place(rows[1].fetchall(), traffic, comms, names)
    remarks: list[str] = []
    if selection.kind == MODELLED:
        made = model(connection, selection.comms, selection.operations, selection.algorithms)
        add_modelled(traffic, kinds, made.pairs)
        statements += made.statements
        remarks = list(made.remarks())
    wanted = [part for (_, flow), part in traffic.items() if flow in flows]
    pairs, spread = (Pairs.joined(getattr(part, which) for part in wanted) for which in ("pairs", "spread"))
    both = Pairs.joined([pairs, spread])
    size = max([size, *(int(ends.max()) + 1 for ends in both.ends if len(ends))])
    return Matrix(
        kind=selection.kind,
        shown=shown_ranks(connection, selection, size, both),
        ranks=size,
        pairs=pairs,
        spread=spread,
        messages=sum(part.messages for part in wanted),
        bytes=sum(part.bytes for part in wanted),
        kinds=kinds,
        traffic=traffic,
        comms=comms,
        nodes={row["rank"]: row["node"] for row in ranks},
        cpus={row["rank"]: row["cpus"] for row in ranks},
        states={row["rank"]: row["state"] for row in ranks},
        slice_ns=number(meta, "slice_ns"),
        inside=meta.get("inside", ""),
        statements=statements,
        remarks=remarks,
    )


def paired(cursor: sqlite3.Cursor, names: dict[int, str]) -> dict[tuple[int, str], Traffic]:
    """Return the pairs of each communicator and flow."""
    cursor.row_factory = None
    table = np.fromiter(chain.from_iterable(cursor), dtype=np.int64).reshape(-1, 6)
    # The rows are in the order of these two columns.
    starts = np.flatnonzero(np.any(table[1:, :2] != table[:-1, :2], axis=1)) + 1
    parts = np.split(table, starts) if len(table) else []
    return {
        (int(part[0, 0]), names[int(part[0, 1])]): Traffic(
            Pairs.summed(part[:, 2], part[:, 3], part[:, 4], part[:, 5])
        )
        for part in parts
    }


def place(
    rows: Sequence[Any],
    traffic: dict[tuple[int, str], Traffic],
    comms: dict[int, Comm],
    names: dict[int, str],
) -> None:
    """Add rows without world rank of the peer: to the member if it is known, and divided equally over a block.

    If blocks would make too many pairs, only every second, third, ... rank in them gets a share: pictures are folded
    anyway.
    """
    nobody = Comm(0, "", None, ())
    blocks = []
    for row in rows:
        first = row["first"]
        facing = comms.get(row["comm"], nobody).facing(row["rank"])
        blocks.append(ints() if first is None else facing[first : first + row["peers"]])
    apart = 1 + sum(map(len, blocks)) // MOST_SPREAD
    found: dict[tuple[int, str], tuple[list[Pairs], list[Pairs]]] = defaultdict(lambda: ([], []))
    for row, members in zip(rows, blocks):
        key = (row["comm"], names[row["flow"]])
        part = traffic.setdefault(key, Traffic())
        is_block = row["peers"] > 1
        if is_block:
            part.in_blocks.add(row["rank"])
        if not len(members):
            part.messages += row["messages"]
            part.bytes += row["bytes"]
            continue
        block = members[::apart]
        messages, bytes = (shares(row[what], len(block)) for what in ("messages", "bytes"))
        me = np.full(len(block), row["rank"], dtype=np.int64)
        source, destination = (me, block) if row["outward"] else (block, me)
        some = (messages > 0) | (bytes > 0)
        found[key][is_block].append(Pairs(source, destination, messages, bytes).chosen(some))
    for key, (known, spread) in found.items():
        part = traffic[key]
        part.pairs, part.spread = Pairs.joined([part.pairs, *known]), Pairs.joined(spread)


def shares(total: int, parts: int) -> Ints:
    """Return `total` divided into integers that differ by at most 1.

    >>> [int(share) for share in shares(7, 3)]
    [3, 2, 2]
    """
    least, rest = divmod(total, parts)
    return least + (np.arange(parts) < rest).astype(np.int64)


def shown_ranks(connection: sqlite3.Connection, selection: Selection, size: int, pairs: Pairs) -> Ints:
    """Return the world ranks to show: all, or the members of the selected communicators and their peers."""
    if not selection.comms:
        return np.arange(size, dtype=np.int64)
    rows = connection.execute(f"SELECT members FROM comm{where(comm_conditions(selection.comms))}")
    members = marked([group for (text,) in rows for group in groups(text, size)], size)
    found = np.unique(np.concatenate([pairs.source, pairs.destination, members]))
    return found if len(found) else np.arange(size, dtype=np.int64)


def matching_regions(connection: sqlite3.Connection, patterns: Sequence[str]) -> tuple[int, ...]:
    """Return the code regions that match paths or globs, with their nested regions.

    Raises
    ------
    CommlensError
        A pattern matches no region, or the profile has no peers by region.
    """
    if not patterns:
        return ()
    refuse_unkept(connection, "region")
    paths = {row["region"]: row["path"] for row in connection.execute("SELECT region, path FROM region_path")}
    found: set[int] = set()
    for pattern in patterns:
        matches = {
            region
            for region, path in paths.items()
            if any(fnmatchcase(path, wanted) for wanted in (pattern, f"{pattern}/*"))
        }
        if not matches:
            known = [path for path in paths.values() if path]
            hint = did_you_mean(pattern, known) or "; 'commlens regions' lists them"
            raise CommlensError(f"no code region '{pattern}' in this profile{hint}")
        found |= matches
    return tuple(sorted(found))
