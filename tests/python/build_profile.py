# SPDX-License-Identifier: Apache-2.0
"""Builds profiles for tests, without MPI: tables as generated, rows as given."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from commlens.profile import _schema

OPS = {
    1: ("MPI_Allreduce", "collective"),
    2: ("MPI_Alltoallv", "collective"),
    3: ("MPI_Bcast", "collective"),
    4: ("MPI_Comm_dup", "comm"),
    5: ("MPI_Comm_free", "comm"),
    6: ("MPI_Comm_rank", "other"),
    7: ("MPI_Comm_split", "comm"),
    8: ("MPI_File_write_all", "io"),
    9: ("MPI_Irecv", "p2p"),
    10: ("MPI_Isend", "p2p"),
    11: ("MPI_Neighbor_alltoall", "neighbor"),
    12: ("MPI_Put", "rma"),
    13: ("MPI_Waitall", "completion"),
    14: ("MPI_Cart_create", "comm"),
    15: ("MPI_Comm_get_parent", "comm"),
}
# Those are in a profile only where it has calls of them.
SELDOM = {
    16: ("MPI_Barrier", "collective"),
    17: ("MPI_Reduce", "collective"),
    18: ("MPI_Gather", "collective"),
    19: ("MPI_Gatherv", "collective"),
    20: ("MPI_Scatter", "collective"),
    21: ("MPI_Scatterv", "collective"),
    22: ("MPI_Allgather", "collective"),
    23: ("MPI_Allgatherv", "collective"),
    24: ("MPI_Alltoall", "collective"),
    25: ("MPI_Alltoallw", "collective"),
    26: ("MPI_Reduce_scatter", "collective"),
    27: ("MPI_Reduce_scatter_block", "collective"),
    28: ("MPI_Scan", "collective"),
    29: ("MPI_Exscan", "collective"),
    30: ("MPI_Ibcast", "collective"),
    31: ("MPI_Bcast_init", "collective"),
    32: ("MPI_Allreduce_init", "collective"),
    33: ("MPI_Reduce_init", "collective"),
    34: ("MPI_Recv", "p2p"),
    35: ("MPI_Iprobe", "p2p"),
    36: ("MPI_Sendrecv", "p2p"),
    37: ("MPI_Ssend", "p2p"),
    38: ("MPI_Send", "p2p"),
}
OP_ID = {name: id for id, (name, _) in {**OPS, **SELDOM}.items()}

# The kinds of traffic, and whether the bytes go from the rank that tells it to its peer.
FLOWS = {
    "sent": True,
    "received": False,
    "put": True,
    "get": False,
    "collective": True,
    "internal": True,
    "share": True,
    "one_to_all": True,
    "all_to_one": True,
    "all_to_all": True,
}


def execute(path: Path, statement: str) -> None:
    """Change a profile that was written."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def size_bin(size: int | None) -> int:
    """Return the bin of a message size; None is a call whose blocks differ."""
    if size is None:
        return -1
    k = 0
    while size >= 2**k:
        k += 1
    return k


@dataclass
class Comm:
    """A communicator of the profile to be."""

    id: int
    name: str
    ranks: list[int]
    kind: str = "intra"
    parent: int | None = None
    creator: str | None = None
    callsite: int | None = None
    family: int = 0
    user_name: str | None = None
    topology: str | None = None
    created_ns: int = 0
    freed_ns: int | None = None
    members: str | None = None
    remote_size: int | None = None
    sets: tuple[int, ...] = ()


@dataclass
class Cell:
    """One cell with its key written out."""

    comm: int
    op: str
    bin: int
    callsite: int
    rank: int
    calls: int
    time_ns: int
    min_ns: int
    max_ns: int
    sent: int
    received: int
    noncontiguous: int
    region: int


@dataclass
class Region:
    """A code region of the profile to be; 0 is the whole program."""

    id: int
    parent: int | None
    name: str
    kind: str = "region"


@dataclass
class RegionTime:
    """One row of region_time."""

    region: int
    execution: int
    iteration: int
    rank: int
    calls: int
    open: int
    time_ns: int
    min_ns: int
    max_ns: int
    nested_ns: int
    mpi_ns: int


@dataclass
class LoopTime:
    """One row of loop_time."""

    region: int
    execution: int
    iteration: int
    rank: int
    iterations: int
    time_ns: int
    min_ns: int
    max_ns: int
    nested_ns: int
    mpi_ns: int


@dataclass
class LoopBin:
    """One row of loop_bin."""

    region: int
    execution: int
    rank: int
    bin: int
    iterations: int


@dataclass
class RegionSlice:
    """One row of region_slice."""

    region: int
    rank: int
    slot: int
    calls: int
    exclusive_ns: int


@dataclass
class MetricValue:
    """One row of metric_value."""

    metric: int
    region: int
    execution: int
    iteration: int
    rank: int
    count: int
    sum: float
    min: float | None
    max: float | None
    last: float | None
    not_finite: int


@dataclass
class PeerRow:
    """One row of peer, with the kind and the procedure by their names."""

    comm: int
    kind: str
    op: str | None
    call_bin: int | None
    region: int
    slice: int
    rank: int
    peer: int | None
    first: int | None
    peers: int
    bin: int
    messages: int
    bytes: int
    posted: str | None = None


Partners = tuple["int | None", "int | None", "int | None", "int | None"]
"""Receiver and tag, sender and tag of a message, as in table position."""

EMPTY = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _schema.SQL
"""Creates the tables of a profile. Each statement is a transaction: waiting for the disk would take most of the time."""

Insert = Callable[[str, list[tuple[object, ...]]], None]
"""Adds rows to a table."""


@dataclass
class ProfileBuilder:
    """Collects communicators, counters and regions, then writes them as a profile."""

    ranks: int
    meta: dict[str, str] = field(default_factory=dict)
    comms: dict[int, Comm] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    sites: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    callers: dict[int, int] = field(default_factory=dict)
    imports: list[tuple[str, str, str, str, str | None]] = field(default_factory=list)
    positions: list[tuple[int, int, int, str, int, int, int, Partners]] = field(default_factory=list)
    regions: dict[int, Region] = field(default_factory=dict)
    region_times: list[RegionTime] = field(default_factory=list)
    loop_times: list[LoopTime] = field(default_factory=list)
    loop_bins: list[LoopBin] = field(default_factory=list)
    region_slices: list[RegionSlice] = field(default_factory=list)
    metrics: list[tuple[str, str]] = field(default_factory=list)
    metric_values: list[MetricValue] = field(default_factory=list)
    tags: list[tuple[int, str, str]] = field(default_factory=list)
    settings: list[tuple[str, str, str, int]] = field(default_factory=list)  # source, name, value, ranks
    peers: list[PeerRow] = field(default_factory=list)
    more: dict[str, list[tuple[object, ...]]] = field(
        default_factory=dict
    )  # rows of other tables, as they are
    states: dict[int, str] = field(default_factory=dict)
    use: dict[int, tuple[int, int]] = field(default_factory=dict)  # cpu_ns and preempted of a rank
    app_ns: int = 10**9
    nodes: int = 1

    def __post_init__(self) -> None:
        everybody = list(range(self.ranks))
        self.comms[0] = Comm(0, "-", everybody, kind="none", family=0)
        self.comms[1] = Comm(1, "W0.0", everybody, family=1)
        self.sites[0] = ("", "", 0)
        self.regions[0] = Region(0, None, "", "program")

    def comm(self, name: str, ranks: list[int], **more: object) -> int:
        """Add a communicator and return its id; without a family it is one of its own."""
        id = len(self.comms)
        comm = Comm(id, name, ranks, **more)  # type: ignore[arg-type]
        comm.family = comm.family or id
        self.comms[id] = comm
        return id

    def count(
        self,
        comm: int,
        op: str,
        rank: int,
        calls: int,
        time_ns: int,
        size: int | None = 0,
        sent: int = 0,
        received: int = 0,
        callsite: int = 0,
        noncontiguous: int = 0,
        region: int = 0,
    ) -> None:
        """Add a cell; its shortest and longest call are made up from the average. Without calls: of one that never returned."""
        average = time_ns // max(calls, 1)
        self.cells.append(
            Cell(
                comm,
                op,
                size_bin(size),
                callsite,
                rank,
                calls,
                time_ns,
                average // 2,
                average * 2,
                sent,
                received,
                noncontiguous,
                region,
            )
        )

    def region(self, name: str, parent: int = 0, kind: str = "region") -> int:
        """Add a code region and return its id."""
        id = len(self.regions)
        self.regions[id] = Region(id, parent, name, kind)
        return id

    def spend(
        self,
        region: int,
        rank: int,
        calls: int,
        time_ns: int,
        nested_ns: int = 0,
        mpi_ns: int = 0,
        execution: int = 0,
        iteration: int = -1,
        open: int = 0,
    ) -> None:
        """Add a row of region_time; the shortest and longest of those that ended are made up from the average."""
        low, high = (time_ns // calls // 2, time_ns // calls * 2) if calls > open else (0, 0)
        self.region_times.append(
            RegionTime(region, execution, iteration, rank, calls, open, time_ns, low, high, nested_ns, mpi_ns)
        )

    def iterate(
        self,
        loop: int,
        rank: int,
        iterations: int,
        time_ns: int,
        nested_ns: int = 0,
        mpi_ns: int = 0,
        execution: int = 0,
        iteration: int = -1,
    ) -> None:
        """Add a row of loop_time, and count its iterations in loop_bin, as if all took the average."""
        average = time_ns // iterations
        low, high = (average, average) if iterations == 1 else (average // 2, average * 2)
        self.loop_times.append(
            LoopTime(loop, execution, iteration, rank, iterations, time_ns, low, high, nested_ns, mpi_ns)
        )
        bin = size_bin(average)
        for row in self.loop_bins:
            if (row.region, row.execution, row.rank, row.bin) == (loop, execution, rank, bin):
                row.iterations += iterations
                return
        self.loop_bins.append(LoopBin(loop, execution, rank, bin, iterations))

    def metric(self, name: str, unit: str = "") -> int:
        """Add a metric of the application and return its id."""
        self.metrics.append((name, unit))
        return len(self.metrics) - 1

    def tell(
        self,
        metric: int,
        region: int,
        rank: int,
        values: list[float],
        not_finite: int = 0,
        execution: int = 0,
        iteration: int = -1,
    ) -> None:
        """Add the values of a metric that a rank has told in one place."""
        low, high, last = (min(values), max(values), values[-1]) if values else (None, None, None)
        self.metric_values.append(
            MetricValue(
                metric,
                region,
                execution,
                iteration,
                rank,
                len(values),
                sum(values),
                low,
                high,
                last,
                not_finite,
            )
        )

    def tell_peer(
        self,
        kind: str,
        rank: int,
        peer: int | None,
        messages: int,
        size: int,
        comm: int = 1,
        op: str | None = None,
        call_bin: int | None = None,
        region: int = 0,
        slice: int = 0,
        first: int | None = None,
        peers: int = 1,
    ) -> None:
        """Let a rank tell of messages of one size, to or from a peer; without one, `first` is where that is known."""
        row = PeerRow(
            *(comm, kind, op, call_bin, region, slice, rank, peer, first, peers),
            *(size_bin(size), messages, messages * size),
        )
        self.peers.append(row)

    def send(
        self,
        source: int,
        destination: int,
        messages: int,
        size: int,
        comm: int = 1,
        region: int = 0,
        slice: int = 0,
    ) -> None:
        """Let both ends tell of two-sided messages."""
        for kind, rank, peer in (("sent", source, destination), ("received", destination, source)):
            self.tell_peer(kind, rank, peer, messages, size, comm, region=region, slice=slice)

    def stands(
        self,
        rank: int,
        op: str,
        comm: int,
        since_ns: int,
        inside: bool = True,
        thread: int = 0,
        region: int = 0,
        partners: Partners = (None, None, None, None),
    ) -> None:
        """Let a thread of a rank be in a call, or outside MPI after it.

        partners : receiver and tag of what it sends, sender and tag of what it receives
        """
        self.positions.append((rank, thread, int(inside), op, comm, since_ns, region, partners))
        self.states[rank] = "running"

    def write(self, path: Path) -> Path:
        """Write the profile and return its path."""
        connection = sqlite3.connect(path)
        connection.executescript(EMPTY)

        def insert(table: str, rows: list[tuple[object, ...]]) -> None:
            for row in rows:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

        self._write_names(insert)
        self._write_ranks(insert)
        self._write_peers(insert)
        self._write_regions(insert)
        self._write_comms(insert)
        self._write_cells(insert)
        connection.commit()
        connection.close()
        return path

    def _write_names(self, insert: Insert) -> None:
        meta = dict.fromkeys(_schema.META_KEYS, "")
        meta.update(
            schema_version=str(_schema.VERSION), ranks=str(self.ranks), ranks_collected=str(self.ranks)
        )
        meta.update(self.meta)
        insert("meta", list(meta.items()))
        insert("setting", list(self.settings))
        called = {cell.op for cell in self.cells} | {position[3] for position in self.positions}
        ops = {**OPS, **{id: op for id, op in SELDOM.items() if op[0] in called}}
        insert("op", [(0, "unknown", "other"), *((id, *op) for id, op in ops.items())])
        insert("flow", [(id, name, int(outward)) for id, (name, outward) in enumerate(FLOWS.items())])
        insert("coverage", [(*row, self.ranks) for row in self.imports])
        insert("callsite", [(id, *site, self.callers.get(id)) for id, site in self.sites.items()])

    def _write_ranks(self, insert: Insert) -> None:
        for rank in range(self.ranks):
            mine = [cell for cell in self.cells if cell.rank == rank]
            node = f"node{rank * self.nodes // self.ranks}"
            mpi_ns, calls = sum(c.time_ns for c in mine), sum(c.calls for c in mine)
            insert(
                "rank",
                [
                    (
                        rank,
                        7,
                        node,
                        100 + rank,
                        "0-3",
                        5 * 10**6,
                        self.app_ns,
                        mpi_ns,
                        1,
                        calls,
                        0,
                        self.states.get(rank, "finalized"),
                        *self.use.get(rank, (None, None)),
                    )
                ],
            )
            for what, ns in (("init", 10**6), ("collect", 2 * 10**6), ("call", 15), ("calls", 15 * calls)):
                insert("overhead", [(rank, what, ns)])
        for rank, thread, inside, op, comm_id, since_ns, region, partners in self.positions:
            insert("position", [(rank, thread, inside, OP_ID[op], comm_id, 0, since_ns, region, *partners)])

    def _write_peers(self, insert: Insert) -> None:
        insert(
            "peer",
            [
                (
                    row.comm, list(FLOWS).index(row.kind), OP_ID[row.op] if row.op else 0, row.call_bin, row.region,
                    row.slice, row.rank, row.peer, row.first, row.peers, row.bin, row.messages, row.bytes,
                    row.posted,
                )
                for row in self.peers
            ],
        )  # fmt: skip

    def _write_regions(self, insert: Insert) -> None:
        tables: dict[str, Sequence[Any]] = {
            "region": list(self.regions.values()),
            "region_time": self.region_times,
            "loop_time": self.loop_times,
            "loop_bin": self.loop_bins,
            "region_slice": self.region_slices,
            "metric_value": self.metric_values,
        }
        for table, rows in tables.items():
            insert(table, [astuple(row) for row in rows])
        for table, plain in self.more.items():
            insert(table, plain)
        insert("metric", [(id, *metric) for id, metric in enumerate(self.metrics)])
        insert("tag", list(self.tags))

    def _write_comms(self, insert: Insert) -> None:
        for comm in self.comms.values():
            real = comm.kind in ("intra", "inter")
            size = len(comm.ranks) - (comm.remote_size or 0) if real else None
            members = comm.members or ", ".join(map(str, comm.ranks))
            creator = OP_ID[comm.creator] if comm.creator else None
            insert(
                "comm",
                [
                    (
                        comm.id, 1000 + comm.id, comm.name, comm.user_name, comm.kind, comm.parent, creator,
                        comm.callsite, size, comm.remote_size, comm.ranks[0] if real else None,
                        members if real else None, comm.topology, comm.created_ns if real else None,
                        comm.freed_ns, comm.family, 1,
                    )
                ],
            )  # fmt: skip
            insert("comm_set", [(comm.id, member) for member in comm.sets])

    def _write_cells(self, insert: Insert) -> None:
        # What is usual for a key is what its first cell has; the rows hold differences to it.
        usual: dict[tuple[int, int, int, int, int], tuple[int, Cell]] = {}
        for cell in self.cells:
            key = (cell.comm, OP_ID[cell.op], cell.bin, cell.region, cell.callsite)
            if key not in usual:
                usual[key] = ((len(usual) + 1) * self.ranks, cell)
                of_one = (cell.calls, cell.sent, cell.received, cell.noncontiguous)
                insert("key", [(usual[key][0], *key, *of_one)])
            id, first = usual[key]
            insert(
                "cell_row",
                [
                    (
                        id + cell.rank, cell.calls - first.calls, cell.time_ns, cell.min_ns, cell.max_ns,
                        cell.sent - first.sent, cell.received - first.received,
                        cell.noncontiguous - first.noncontiguous,
                    )
                ],
            )  # fmt: skip
