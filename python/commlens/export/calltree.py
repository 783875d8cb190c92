# SPDX-License-Identifier: Apache-2.0
"""The tree for call tree tools: code regions, and below each its MPI calls by communicator, or by call path.

A profile stores only the calls that occurred, but such tools need every node on every rank. So all nodes are created first,
from the data of all ranks. The values of a node are read when it is written: memory holds one node at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple

from commlens.base.outputs import finite
from commlens.export import waiting
from commlens.export.callpaths import functions
from commlens.export.keys import key_lists
from commlens.export.ranges import Ranges, within
from commlens.profile.shape import has_table

# Values of each metric of the application for nodes without a record.
NO_VALUES = {"count": 0, "sum": 0.0, "min": None, "max": None}


class Values(NamedTuple):
    """The numbers of one node on one rank; all 0 if the rank did not enter it.

    Attributes
    ----------
    rank : int
        World rank.
    calls : int
        How often a region was entered or an operation called; 0 for communicators, which are not called.
    exclusive_ns : int
        Time in this node without the nodes below. All exclusive times add up to the time of the root, see `CallTree.values`.
    inclusive_ns : int
        Time in this node and those below.
    mpi_ns : int
        Part of the inclusive time inside MPI calls.
    bytes_sent, bytes_received : int
        Of operations; else 0, so that they can be added up.
    metric_values : tuple of float or None
        Metrics that the application recorded here, in the order of `CallTree.metrics`; then the estimated waiting in s, if
        the profile has samples: 0 but for operations, None if it is not known.
    """

    rank: int
    calls: int = 0
    exclusive_ns: int = 0
    inclusive_ns: int = 0
    mpi_ns: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    metric_values: tuple[float | None, ...] = ()


@dataclass
class Node:
    """One node; its number is its place in `CallTree.nodes`, and those of its parents are smaller."""

    number: int
    name: str
    kind: str
    parent: int | None
    region: int
    keys: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)


@dataclass
class Branch:
    """The operations of a communicator, or of a function with the functions that it calls."""

    operations: dict[str, list[int]] = field(default_factory=dict)
    functions: dict[str, Branch] = field(default_factory=dict)


class CallTree:
    """All nodes in preorder, and their numbers.

    Parameters
    ----------
    unfold : bool
        Each communicator instead of families.
    mpi : bool
        Include MPI calls as nodes; otherwise their time counts in the enclosing regions.
    ranks : ranges of int
        Only these world ranks; empty means all.
    callsites : bool
        The functions of call paths, from the outside in, instead of communicators.

    Attributes
    ----------
    metrics : dict of int to str
        Metrics of the application with their units, by id.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        unfold: bool,
        mpi: bool,
        ranks: Ranges = (),
        *,
        callsites: bool = False,
    ):
        self.connection = connection
        self.nodes: list[Node] = []
        self._taken: dict[int | None, dict[str, int]] = {}  # the names below each node
        self._mpi = mpi
        self._only = within(ranks, "rank")
        self.ranks = [
            rank for (rank,) in connection.execute(f"SELECT rank FROM rank WHERE {self._only} ORDER BY rank")
        ]
        self.has_regions = has_regions(connection)
        self.metrics: dict[int, str] = {}
        if self.has_regions:
            taken: dict[str, int] = {}
            for id, name, unit in connection.execute("SELECT id, name, unit FROM metric ORDER BY id"):
                self.metrics[id] = apart(f"{name} [{unit}]" if unit else name, taken)
        self._waiting = (
            waiting.Waiting(connection, unfold)
            if mpi and not callsites and waiting.has_samples(connection)
            else None
        )
        self._kind = "function" if callsites else "communicator"
        self._grow(unfold)

    def narrowed(self, rank: int) -> CallTree:
        """Return this tree with the numbers of one rank only."""
        other = copy(self)
        other.ranks, other._only = [rank], within([(rank, rank)], "rank")
        return other

    def _grow(self, unfold: bool) -> None:
        """Create the nodes."""
        (program,) = self.connection.execute("SELECT MAX(value) FROM meta WHERE key = 'program'").fetchone()
        within_region: dict[int | None, list[sqlite3.Row]] = {}
        kind = "kind" if self.has_regions else "'program'"
        for row in self.connection.execute(
            f"SELECT id, parent, name, {kind} AS kind FROM region ORDER BY id"
        ):
            within_region.setdefault(row["parent"], []).append(row)
        keys = self._branches(unfold) if self._mpi else {}

        pending: list[tuple[int | None, sqlite3.Row]] = [(None, row) for row in within_region.get(None, [])]
        while pending:
            parent, row = pending.pop()
            name, kind = (row["name"], row["kind"]) if row["id"] else (program or "program", "program")
            node = self._add(name, kind, parent, row["id"])
            self._add_branch(keys.get(row["id"], Branch()), node)
            pending += [(node.number, child) for child in reversed(within_region.get(row["id"], []))]

    def _add_branch(self, branch: Branch, node: Node) -> None:
        """Add the operations and functions below a node, and their keys to it."""
        for operation, ids in branch.operations.items():
            self._add(operation, "operation", node.number, node.region).keys += ids
            node.keys += ids
        for name, inner in branch.functions.items():
            below = self._add(name, self._kind, node.number, node.region)
            self._add_branch(inner, below)
            node.keys += below.keys

    def _add(self, name: str, kind: str, parent: int | None, region: int) -> Node:
        """Add a node with a unique name: tools merge nodes with the same name below the same parent."""
        name = apart(name, self._taken.setdefault(parent, {}))
        node = Node(len(self.nodes), name, kind, parent, region)
        if parent is not None:
            self.nodes[parent].children.append(node.number)
        self.nodes.append(node)
        return node

    def _branches(self, unfold: bool) -> dict[int, Branch]:
        """Return the communicators or functions of every region, with the keys of their operations."""
        part = "key.callsite" if self._kind == "function" else "comm.id" if unfold else "comm.family"
        rows = self.connection.execute(
            f"SELECT key.id, region, {part} AS part, op.name"
            " FROM key JOIN comm ON comm.id = key.comm JOIN op ON op.id = key.op ORDER BY part, op.name, key.id"
        ).fetchall()
        paths: Mapping[int, Sequence[str]]
        if self._kind == "function":
            paths = functions(self.connection, {part for _, _, part, _ in rows})
        else:
            names = communicator_names(self.connection, unfold)
            paths = {part: (names[part],) for _, _, part, _ in rows}
        found: dict[int, Branch] = {}
        for key, region, part, operation in rows:
            branch = found.setdefault(region, Branch())
            for name in paths[part]:
                branch = branch.functions.setdefault(name, Branch())
            branch.operations.setdefault(operation, []).append(key)
        return found

    def values(self, node: Node) -> Iterator[Values]:
        """Return the values of a node on every rank, in rank order.

        The exclusive time of the root is the time from MPI_Init to MPI_Finalize minus that of regions and MPI calls. It
        is 0 if these take longer, because regions may begin earlier and times of threads are added. That of a region is 0 if
        the time of its MPI calls is an estimate and longer.
        """
        rows, recorded, waits = dict(self._rows(node)), self._metric_values(node), self._waits(node)
        none = tuple(NO_VALUES.values()) * len(self.metrics)
        absent = (0,) * 6
        return (
            Values._make((rank, *rows.get(rank, absent), (*recorded.get(rank, none), *waits.get(rank, ()))))
            for rank in self.ranks
        )

    def metric_names(self) -> list[str]:
        """Return the names of the entries of `Values.metric_values`."""
        recorded = [f"{metric} {what}" for metric in self.metrics.values() for what in NO_VALUES]
        return [*recorded, waiting.NAME] if self._waiting else recorded

    def _waits(self, node: Node) -> dict[int, tuple[float | None]]:
        """Return the waiting in a node on every rank; empty without samples."""
        if self._waiting is None:
            return {}
        found = self._waiting.seconds(node.keys) if node.kind == "operation" else {}
        return {rank: (None if found is None else found.get(rank, 0.0),) for rank in self.ranks}

    def _metric_values(self, node: Node) -> dict[int, tuple[float | None, ...]]:
        """Return the metrics that the application recorded in a region, by rank."""
        found: dict[int, list[float | None]] = {}
        if node.kind in (self._kind, "operation"):
            return {}
        for place, metric in enumerate(self.metrics):
            for rank, *values in self.connection.execute(
                'SELECT rank, SUM("count"), CASE WHEN COUNT("sum") = COUNT(*) THEN SUM("sum") END, MIN("min"), MAX("max")'
                " FROM metric_value"
                f" WHERE metric = {metric} AND region = {node.region} AND {self._only} GROUP BY rank"
            ):
                of_rank = found.setdefault(rank, [*NO_VALUES.values()] * len(self.metrics))
                of_rank[place * len(NO_VALUES) : (place + 1) * len(NO_VALUES)] = map(finite, values)
        return {rank: tuple(values) for rank, values in found.items()}

    def _rows(self, node: Node) -> Iterable[tuple[int, tuple[int, ...]]]:
        """Return the stored values of a node by rank: the fields of `Values` from calls to bytes."""
        if node.kind == "operation":
            for rank, (calls, time_ns, sent, received) in self._cells(node.keys).items():
                yield rank, (calls, time_ns, time_ns, time_ns, sent, received)
            return
        cells = self._cells(node.keys)
        if node.kind == self._kind:
            for rank, (_, time_ns, _, _) in cells.items():
                yield rank, (0, 0, time_ns, time_ns, 0, 0)
            return
        direct = {rank: time_ns for rank, (_, time_ns, _, _) in cells.items()}
        outermost: dict[int, int] = {}
        if node.region == 0:
            if self.has_regions:
                outermost = dict(
                    self.connection.execute(
                        "SELECT rank, SUM(time_ns) FROM region_time WHERE region IN (SELECT id FROM region WHERE parent = 0)"
                        f" AND {self._only} GROUP BY rank"
                    ).fetchall()
                )
            sql = f"SELECT rank, 1, app_ns, app_ns, mpi_ns FROM rank WHERE {self._only}"
        else:
            sql = (
                "SELECT rank, SUM(calls), SUM(time_ns - nested_ns), SUM(time_ns), SUM(mpi_ns)"
                f" FROM region_time WHERE region = {node.region} AND {self._only} GROUP BY rank"
            )
        for rank, calls, exclusive_ns, inclusive_ns, mpi_ns in self.connection.execute(sql):
            # The time in MPI may be an estimate, or the sum over several threads.
            exclusive_ns = max(0, exclusive_ns - outermost.get(rank, 0) - direct.get(rank, 0))
            yield rank, (calls, exclusive_ns, inclusive_ns, mpi_ns, 0, 0)

    def _cells(self, keys: list[int]) -> dict[int, tuple[int, ...]]:
        """Return calls, time and bytes of some keys by rank."""
        total: dict[int, tuple[int, ...]] = {}
        for some in key_lists(keys):
            for rank, *row in self.connection.execute(
                "SELECT rank, SUM(calls), SUM(time_ns), SUM(bytes_sent), SUM(bytes_received)"
                f" FROM cell WHERE key IN ({some}) AND {self._only} GROUP BY rank"
            ):
                total[rank] = tuple(a + b for a, b in zip(total.get(rank, (0, 0, 0, 0)), row))
        return total


def apart(name: str, taken: dict[str, int]) -> str:
    """Return an unused name: the same, or with a number. `taken` stores the last number of each name.

    >>> taken = {}
    >>> [apart(name, taken) for name in ("sweep", "norm", "sweep", "sweep (2)", "sweep")]
    ['sweep', 'norm', 'sweep (2)', 'sweep (2) (2)', 'sweep (3)']
    """
    other = name
    while other in taken:
        taken[name] += 1
        other = f"{name} ({taken[name]})"
    taken[other] = 1
    return other


def has_regions(connection: sqlite3.Connection) -> bool:
    """Return whether the schema of a profile has code regions."""
    return has_table(connection, "region_time")


def communicator_names(connection: sqlite3.Connection, unfold: bool) -> dict[int, str]:
    """Return the name of every communicator or family, with the name that the application set."""
    sql = f"SELECT {'id' if unfold else 'family'}, name, user_name FROM {'comm' if unfold else 'family'}"
    return {
        id: f'{name} "{user_name}"' if user_name else name for id, name, user_name in connection.execute(sql)
    }
