# SPDX-License-Identifier: Apache-2.0
"""Builds profiles for tests, without MPI: tables as generated, rows as given."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from commlens import _schema

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
OP_ID = {name: id for id, (name, _) in OPS.items()}


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


@dataclass
class ProfileBuilder:
    """Collects communicators and counters, then writes them as a profile."""

    ranks: int
    meta: dict[str, str] = field(default_factory=dict)
    comms: dict[int, Comm] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    sites: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    imports: list[tuple[str, str, str, str, str | None]] = field(default_factory=list)
    positions: list[tuple[int, int, int, str, int, int]] = field(default_factory=list)
    states: dict[int, str] = field(default_factory=dict)
    app_ns: int = 10**9
    nodes: int = 1

    def __post_init__(self) -> None:
        everybody = list(range(self.ranks))
        self.comms[0] = Comm(0, "-", everybody, kind="none", family=0)
        self.comms[1] = Comm(1, "W0.0", everybody, family=1)
        self.sites[0] = ("", "", 0)

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
    ) -> None:
        """Add a cell; its shortest and longest call are made up from the average."""
        average = time_ns // calls
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
            )
        )

    def stands(
        self, rank: int, op: str, comm: int, since_ns: int, inside: bool = True, thread: int = 0
    ) -> None:
        """Let a thread of a rank be in a call, or outside MPI after it."""
        self.positions.append((rank, thread, int(inside), op, comm, since_ns))
        self.states[rank] = "running"

    def write(self, path: Path) -> Path:
        """Write the profile and return its path."""
        connection = sqlite3.connect(path)
        connection.executescript(_schema.SQL)

        def insert(table: str, rows: list[tuple[object, ...]]) -> None:
            for row in rows:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

        meta = dict.fromkeys(_schema.META_KEYS, "")
        meta.update(
            schema_version=str(_schema.VERSION), ranks=str(self.ranks), ranks_collected=str(self.ranks)
        )
        meta.update(self.meta)
        insert("meta", list(meta.items()))
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
                    )
                ],
            )
            for what, ns in (("init", 10**6), ("collect", 2 * 10**6), ("call", 15), ("calls", 15 * calls)):
                insert("overhead", [(rank, what, ns)])
        insert("op", [(0, "unknown", "other"), *((id, *op) for id, op in OPS.items())])
        insert("region", [(0, None, "")])
        insert("coverage", [(*row, self.ranks) for row in self.imports])
        insert("callsite", [(id, *site) for id, site in self.sites.items()])
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
        # What is usual for a key is what its first cell has; the rows hold differences to it.
        usual: dict[tuple[int, int, int, int, int], tuple[int, Cell]] = {}
        for cell in self.cells:
            key = (cell.comm, OP_ID[cell.op], cell.bin, 0, cell.callsite)
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
        for rank, thread, inside, op, comm_id, since_ns in self.positions:
            insert("position", [(rank, thread, inside, OP_ID[op], comm_id, 0, since_ns)])
        connection.commit()
        connection.close()
        return path
