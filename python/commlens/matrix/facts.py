# SPDX-License-Identifier: Apache-2.0
"""Facts about a matrix, as numbers and short texts."""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from commlens.base.arrays import Ints, ints
from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.matrix.ends import Ends, compare_ends
from commlens.matrix.pairs import Pairs
from commlens.matrix.patterns import NONE, Finder, Grid, Pattern, cart_grid
from commlens.matrix.query import KINDS, Matrix
from commlens.matrix.topology import Topology
from commlens.selection.members import Comm
from commlens.selection.ranges import size_of

MOST_COMMS = 5  # number of communicators with a printed pattern
MOST_GRIDS = 16  # number of topologies to try on all ranks

# How close two processes are, nearest first.
NEAR = ("in a core complex", "in a socket", "in a node", "between nodes", "not known")

Row = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """The rows and columns of a matrix.

    Attributes
    ----------
    noun : str
        rank, node or socket.
    labels : list of str
        One for each row.
    numbers : Ints
        Row of each world rank; -1: no row.
    """

    noun: str
    labels: list[str]
    numbers: Ints

    @property
    def names(self) -> list[int] | list[str]:
        """The labels, ranks as numbers."""
        return [int(label) for label in self.labels] if self.noun == "rank" else self.labels


@dataclass
class Facts:
    """Facts printed below the picture of a matrix."""

    matrix: Matrix
    what: str
    axis: Axis
    pairs: Pairs  # of rows of the axis, including divided blocks
    heaviest: list[Row]
    locality: dict[str, tuple[int, int]]
    symmetry: float | None
    partners: dict[str, tuple[int, float, int]]
    pattern: Pattern | None
    of_comms: list[Row]
    ends: Ends | None
    remarks: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        matrix = self.matrix
        pairs, names = self.pairs, self.axis.names
        columns = (pairs.source, pairs.destination, pairs.messages, pairs.bytes)
        return {
            "kind": matrix.kind,
            "origin": "modelled" if matrix.is_modelled else "measured",
            "what": self.what,
            "by": self.axis.noun,
            "ranks": matrix.ranks,
            "labels": names,
            "kinds": [{"kind": k, "messages": m, "bytes": b} for k, (m, b) in matrix.kinds.items()],
            "not_told_apart": {
                "messages": matrix.messages,
                "bytes": matrix.bytes,
                "spread_messages": matrix.spread.total("messages"),
                "spread_bytes": matrix.spread.total("bytes"),
            },
            "heaviest": self.heaviest,
            "locality": [
                {"where": where, "messages": m, "bytes": b} for where, (m, b) in self.locality.items()
            ],
            "symmetry": self.symmetry,
            "partners": {
                way: dict(zip(("min", "median", "max"), counts)) for way, counts in self.partners.items()
            },
            "pattern": asdict(self.pattern) if self.pattern else None,
            "communicators": self.of_comms,
            "ends": None if self.ends is None else self.ends.as_dict(),
            "remarks": self.remarks,
            "pairs": [
                {
                    "source": names[source],
                    "destination": names[destination],
                    "messages": messages,
                    "bytes": bytes,
                }
                for source, destination, messages, bytes in zip(*(column.tolist() for column in columns))
            ],
        }


def axis_of(matrix: Matrix, by: str, topology: Topology) -> Axis:
    """Return the rows of a matrix by ranks, nodes or sockets.

    Raises
    ------
    CommlensError
        Sockets are selected, but unknown for all ranks.
    """
    shown = matrix.shown
    numbers = np.full(matrix.ranks, -1, dtype=np.int64)
    if by == "rank":
        numbers[shown] = np.arange(len(shown))
        return Axis(by, [str(rank) for rank in shown.tolist()], numbers)
    rows: dict[str, int] = {}
    known = False
    for rank in shown.tolist():
        node = matrix.nodes.get(rank, "unknown node")
        label = node
        if by == "socket":
            socket, _ = topology.place(node, matrix.cpus.get(rank) or "")
            known = known or socket is not None
            label = f"{node} socket {'unknown' if socket is None else socket}"
        numbers[rank] = rows.setdefault(label, len(rows))
    if by == "socket" and not known:
        raise CommlensError(f"--by socket: {why_not_known(matrix, topology)}")
    return Axis(by, list(rows), numbers)


def why_not_known(matrix: Matrix, topology: Topology) -> str:
    """Return the reason why sockets are unknown."""
    unknown = sorted({node for node in matrix.nodes.values() if not topology.knows(node)})
    if unknown:
        return (
            f"the sockets of {unknown[0]} are unknown here; "
            f"run 'lstopo {unknown[0]}.xml' on that node and pass the file with --topology {unknown[0]}.xml"
        )
    rank = min(matrix.cpus, default=0)
    return (
        f"no rank is bound to one socket (rank {rank} may run on CPUs {matrix.cpus.get(rank) or 'unknown'})"
    )


def read_facts(
    connection: sqlite3.Connection,
    matrix: Matrix,
    what: str,
    by: str,
    topology: Topology,
    top: int,
    *,
    whole: bool,
) -> Facts:
    """Compute all facts about a matrix.

    `whole`: no region or slice is selected, so that senders and receivers can be compared.
    """
    axis = axis_of(matrix, by, topology)
    pairs = matrix.all.renumbered(axis.numbers)
    known = matrix.pairs.renumbered(axis.numbers)
    near, remarks = locality(matrix, topology)
    facts = Facts(
        matrix=matrix,
        what=what,
        axis=axis,
        pairs=pairs,
        heaviest=heaviest(matrix, known, axis, what, top),
        locality=near,
        symmetry=symmetry(known, len(axis.labels), what),
        partners=partners(known, len(axis.labels)) if len(known) and len(axis.labels) > 1 else {},
        pattern=None,
        of_comms=[],
        ends=None,
        remarks=[*matrix.remarks, *remarks],
    )
    if by == "rank" and len(known) and not len(matrix.spread):
        facts.of_comms = of_comms(matrix, what)
        facts.pattern = overall(matrix, facts, what)
    if "sent" in KINDS[matrix.kind] and whole:
        facts.ends = compare_ends(connection, matrix)
    if len(matrix.spread):
        facts.remarks.append(
            f"{matrix.spread.total('messages'):,} messages are counted per block of ranks (COMMLENS_MATRIX_PAIRS). The "
            "matrix draws them evenly over the ranks of a block; the pairs, locality, symmetry and partners below exclude them, "
            "and the pattern cannot be determined"
        )
    lacking = sum(rank not in matrix.states for rank in matrix.shown.tolist())
    if lacking and len(known):
        facts.remarks.append(
            f"{count_text(lacking, 'rank')} of {len(matrix.shown):,} {'is' if lacking == 1 else 'are'} not in this profile: "
            "what they sent is missing, so symmetry, partners and pattern may differ from those of the run"
        )
    return facts


def heaviest(matrix: Matrix, pairs: Pairs, axis: Axis, what: str, top: int) -> list[Row]:
    """Return the pairs with the largest values, in descending order."""
    other = "bytes" if what == "messages" else "messages"
    order = np.lexsort((pairs.destination, pairs.source, -pairs.values(other), -pairs.values(what)))[
        : top or None
    ]
    most = pairs.chosen(order)
    labels = axis.names
    rows = []
    for source, destination, messages, bytes in zip(
        *(column.tolist() for column in (most.source, most.destination, most.messages, most.bytes))
    ):
        names = [labels[end] for end in (source, destination)]
        nodes = [matrix.nodes.get(name) if isinstance(name, int) else None for name in names]
        rows.append(
            {
                "source": names[0],
                "destination": names[1],
                "source_node": nodes[0],
                "destination_node": nodes[1],
                "messages": messages,
                "bytes": bytes,
            }
        )
    return rows


def locality(matrix: Matrix, topology: Topology) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Return messages and bytes by the distance of source and destination, and those whose distance is unknown."""
    names = {name: number for number, name in enumerate(dict.fromkeys(matrix.nodes.values()))}
    node, socket, complex = (np.full(matrix.ranks, -1, dtype=np.int64) for _ in range(3))
    places: dict[tuple[str, str], tuple[int | None, int | None]] = {}
    for rank, name in matrix.nodes.items():
        key = (name, matrix.cpus.get(rank) or "")
        if key not in places:
            places[key] = topology.place(*key)
        node[rank] = names[name]
        socket[rank], complex[rank] = (-1 if place is None else place for place in places[key])
    pairs = matrix.pairs
    s, d = pairs.source, pairs.destination
    level = np.where(node[s] == node[d], 2, 3)
    same_node = level == 2
    level[same_node & (socket[s] >= 0) & (socket[s] == socket[d])] = 1
    level[same_node & (complex[s] >= 0) & (complex[s] == complex[d])] = 0
    level[(node[s] < 0) | (node[d] < 0)] = 4
    found = {
        where: (int(pairs.messages[level == i].sum()), int(pairs.bytes[level == i].sum()))
        for i, where in enumerate(NEAR)
        if i in (2, 3) or np.any(level == i)
    }
    of_node = same_node & (level == 2)
    unsure = of_node & ((socket[s] < 0) | (socket[d] < 0))
    remarks = []
    if np.any(unsure) and not np.any(socket >= 0):
        remarks.append(f"sockets and core complexes: {why_not_known(matrix, topology)}")
    elif np.any(unsure):
        remarks.append(
            f"'in a node' includes {int(pairs.messages[unsure].sum()):,} messages of ranks whose socket is unknown, or that "
            "are not bound to one"
        )
    return found, remarks


def symmetry(pairs: Pairs, size: int, what: str) -> float | None:
    """Return the part of the traffic between different rows that is matched in the opposite direction.

    None without traffic.
    """
    others = pairs.chosen(pairs.source != pairs.destination)
    values = others.values(what)
    total = int(values.sum())
    if not total:
        return None
    codes = others.codes(size)
    back = others.destination * size + others.source
    at = np.minimum(np.searchsorted(codes, back), len(codes) - 1)
    returned = np.where(codes[at] == back, values[at], 0)
    return int(np.minimum(values, returned).sum()) / total


def partners(pairs: Pairs, size: int) -> dict[str, tuple[int, float, int]]:
    """Return minimum, median and maximum over the rows of the number of destinations, sources, and partners."""
    others = pairs.chosen(pairs.source != pairs.destination)
    both = np.unique(np.concatenate([others.codes(size), others.destination * size + others.source])) // max(
        size, 1
    )
    counted = {"to": others.source, "from": others.destination, "either": both}
    found = {}
    for way, rows in counted.items():
        counts = np.bincount(rows, minlength=size)
        if size:
            found[way] = (int(counts.min()), float(np.median(counts)), int(counts.max()))
    return found


def overall(matrix: Matrix, facts: Facts, what: str) -> Pattern:
    """Return the pattern of all shown traffic: that of its communicator if there is one, else in world ranks."""
    only = [Pattern(**row["pattern"]) for row in facts.of_comms if row["share"] == 1.0]
    if only and only[0].name != NONE:
        return only[0]
    size = len(facts.axis.labels)
    known = matrix.pairs.renumbered(facts.axis.numbers)
    return Finder(known, size, what).pattern(grids_on(matrix, facts.axis))


def grids_on(matrix: Matrix, axis: Axis) -> list[tuple[str, Grid, Ints]]:
    """Return the Cartesian topologies that contain all rows of an axis."""
    found: list[tuple[str, Grid, Ints]] = []
    for comm in matrix.comms.values():
        grid = cart_grid(comm.topology)
        if (
            grid is None
            or len(found) == MOST_GRIDS
            or not len(axis.labels) == comm.size == math.prod(grid.dims)
        ):
            continue
        order = axis.numbers[comm.members]
        if order.min() >= 0:
            found.append((comm.name, grid, order))
    return found


def of_comms(matrix: Matrix, what: str) -> list[Row]:
    """Return the communicators with the most traffic, each with the pattern in its own rank order."""
    parts: dict[int, list[Pairs]] = defaultdict(list)
    for (id, flow), traffic in matrix.traffic.items():
        if flow in KINDS[matrix.kind]:
            parts[id].append(traffic.pairs)
    joined = {id: Pairs.joined(some) for id, some in parts.items()}
    total = matrix.pairs.total(what)
    rows = []
    for id in sorted(joined, key=lambda id: (-joined[id].total(what), id))[:MOST_COMMS]:
        pairs, comm = joined[id], matrix.comms.get(id)
        rows.append(
            {
                "comm": id,
                "name": comm.name if comm else "",
                "label": comm.label if comm else "",
                "size": sum(map(size_of, comm.groups)) if comm else 0,
                "messages": pairs.total("messages"),
                "bytes": pairs.total("bytes"),
                "share": pairs.total(what) / total if total else float(len(parts) == 1),
                "pattern": asdict(pattern_of(matrix, comm, pairs, what)),
            }
        )
    return rows


def pattern_of(matrix: Matrix, comm: Comm | None, pairs: Pairs, what: str) -> Pattern:
    """Return the pattern of a communicator in the order of its ranks or, if that is unknown, of the world ranks."""
    members = comm.members if comm else ints()
    if not len(members):
        return Finder(pairs, matrix.ranks, what).pattern()
    numbers = np.full(matrix.ranks, -1, dtype=np.int64)
    numbers[members] = np.arange(len(members))
    grid = cart_grid(comm.topology) if comm else None
    fits = grid is not None and math.prod(grid.dims) == len(members)
    grids = [("its topology", grid, np.arange(len(members)))] if grid and fits else []
    return Finder(pairs.renumbered(numbers), len(members), what).pattern(grids)
