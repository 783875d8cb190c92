# SPDX-License-Identifier: Apache-2.0
"""Steps of collective calls, within a group, between groups, and with neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fuzz.messages import Messages
from fuzz.model import COLLECTIVE, IN_PLACE, PROC_NULL, ROOT, ROOTED, Communicator, Datatype, Request
from fuzz.writer import BASES, DIVISOR, PAIRS, offsets


class Reduction(NamedTuple):
    """What a reduction does: an operation on elements of a datatype."""

    datatype: Datatype
    op: str

    def args(self, n: int, **counts: Any) -> dict[str, Any]:
        """Return the arguments of one with buffers of `n` elements; `counts` are those of the call."""
        room = n * self.datatype.extent
        return {"sendbuf": room, "recvbuf": room, **counts, "datatype": self.datatype, "op": self.op}


def uneven_parts(n: int, parts: int) -> list[int]:
    """Return blocks of different sizes whose sum is that of `parts` equal ones of `n` elements.

    >>> uneven_parts(12, 3)
    [3, 5, 4]
    """
    sizes = [n // parts] * parts
    if parts > 1:
        sizes[0] -= n // parts // 3
        sizes[1] += n // parts // 3
    return sizes


class Collectives(Messages):
    """Emits collectives in all their forms."""

    def collective(self) -> None:
        comm = self.random.choice(self.comms)
        inter = len(comm.groups) == 2
        names = [
            n
            for n in sorted(COLLECTIVE)
            if not n.startswith("Neighbor") and not (inter and n.endswith("can"))
        ]
        name = self.random.choice(names)
        self.draw_layouts()
        self.emit_collective(
            name, comm, self.inter_args(name, comm) if inter else self.intra_args(name, comm)
        )

    def neighbourhood(self) -> None:
        comms = [comm for comm in self.comms if comm.sources]
        if comms:
            comm = self.random.choice(comms)
            self.draw_layouts()
            # MPICH 4.0 hangs in Neighbor_alltoallw now and then, in all its forms.
            without = "Neighbor_alltoallw" if self.mpi4 else ""
            name = self.random.choice(
                [n for n in sorted(COLLECTIVE) if n.startswith("Neighbor") and n != without]
            )
            self.emit_collective(name, comm, self.neighbor_args(name, comm))

    def draw_layouts(self) -> None:
        """Choose the layouts that all processes use in the next collective, for empty blocks and for the v forms."""
        self.nothing = {base: self.layout(base, 0) for base in BASES}
        self.common = {base: self.layout(base, DIVISOR, empty_types=False)[1] for base in BASES}

    def emit_collective(self, name: str, comm: Communicator, args: dict[int, dict[str, Any]]) -> None:
        """Emit one collective on all members: blocking, non-blocking or persistent."""
        form = self.random.choice(["now", "now", "request"] + ["persistent", "persistent"] * self.mpi4)
        exchange_in_place = "Alltoall" in name and any(
            mine.get("sendbuf") == IN_PLACE for mine in args.values()
        )
        wrong_number = name == "Alltoallw" and (len(comm.groups) == 2 or bool(comm.sources))
        if not self.mpi4 and (exchange_in_place or wrong_number):
            # Open MPI 4.1 does not end a non-blocking Alltoallv in place that has empty blocks; and Ialltoallw looks
            # at as many datatypes as the local group has processes, or the topology neighbours, which is too many.
            form = "now"
        if form == "now":
            for me, mine in args.items():
                self.call(me, name, **mine, comm=comm)
            return
        requests = {me: Request(self.slot("r"), comm=comm, collective=True) for me in args}
        for me, mine in args.items():
            alias = f"I{name[0].lower()}{name[1:]}" if form == "request" else name + "_init"
            self.call(me, alias, **mine, comm=comm, request=requests[me])
            if form == "request":
                self.pending[me].append(requests[me])
        if form == "persistent":
            # Of persistent collectives, MPICH 4.0 gives back its references to communicator and datatype with
            # every completion, so a second start may meet freed ones; and Testall returns MPI_ERR_IN_STATUS.
            self.rounds({me: [request] for me, request in requests.items()}, rounds=1, without="Testall")

    def one_buffer(self, side: str, base: str, n: int, blocks: int = 1) -> dict[str, Any]:
        """Return buffer, count and datatype of `blocks` blocks of `n` elements each."""
        count, datatype = self.block_layout(base, n)
        return {
            side + "buf": blocks * count * datatype.extent,
            side + "count": count,
            side + "type": datatype,
        }

    def one_of_v(self, side: str, base: str, n: int) -> dict[str, Any]:
        """Return the own block of a v collective.

        Open MPI 4.1 chooses the algorithm of MPI_Allgatherv, and collects the blocks of a group, as if all processes
        named the same datatype; so they do.
        """
        datatype = self.common[base]
        return {
            side + "buf": n // datatype.elements * datatype.extent,
            side + "count": n // datatype.elements,
            side + "type": datatype,
        }

    def block_layout(self, base: str, n: int) -> tuple[int, Datatype]:
        """Return a layout of one block of a collective.

        Elements without data do not match a count of 0 everywhere in Open MPI 4.1, so `nothing` is the same on all.
        """
        return self.layout(base, n, empty_types=False) if n else self.nothing[base]

    def many_blocks(self, side: str, base: str, ns: Sequence[int], displacements: str) -> dict[str, Any]:
        """Return buffer, counts, displacements and datatype of blocks of `ns` elements."""
        datatype = self.common[base]
        counts = [n // datatype.elements for n in ns]
        return {
            side + "buf": sum(counts) * datatype.extent,
            side + "counts": counts,
            side + "type": datatype,
            displacements: offsets(counts),
        }

    def typed_blocks(self, side: str, base: str, ns: Sequence[int]) -> dict[str, Any]:
        """Return the w form: every block has its own datatype, displacements are bytes."""
        # Open MPI 4.1 skips blocks of count 0, but waits for blocks of some elements without data.  MPICH 4.0 hangs
        # or loses references when the datatypes are derived ones.
        layouts = [self.layout(base, n, empty_types=False, plain=self.mpi4) for n in ns]
        sizes = [count * datatype.extent for count, datatype in layouts]
        return {
            side + "buf": sum(sizes),
            side + "counts": [count for count, _ in layouts],
            side + "types": [datatype for _, datatype in layouts],
            side[0] + "displs": offsets(sizes),
        }

    def broadcast(self, base: str, n: int) -> dict[str, Any]:
        """Return the arguments of a broadcast."""
        count, datatype = self.block_layout(base, n)
        return {"buf": count * datatype.extent, "count": count, "datatype": datatype}

    def gathered(self, name: str, base: str, n: int, own: int, ns: Sequence[int]) -> dict[str, Any]:
        """Return the arguments of a gather or allgather: `n` elements of each, or for a v form `own` and `ns`."""
        if name.endswith("v"):
            return {**self.one_of_v("send", base, own), **self.many_blocks("recv", base, ns, "displs")}
        return {**self.one_buffer("send", base, n), **self.one_buffer("recv", base, n, len(ns))}

    def scattered(self, name: str, base: str, n: int, own: int, ns: Sequence[int]) -> dict[str, Any]:
        """Return the arguments of a scatter; see `gathered`."""
        if name.endswith("v"):
            return {**self.one_of_v("recv", base, own), **self.many_blocks("send", base, ns, "displs")}
        return {**self.one_buffer("recv", base, n), **self.one_buffer("send", base, n, len(ns))}

    def exchanged(
        self, name: str, base: str, outgoing: Sequence[int], incoming: Sequence[int]
    ) -> dict[str, Any]:
        """Return the arguments of an alltoall in its v or w form."""
        if name.endswith("w"):
            return {**self.typed_blocks("send", base, outgoing), **self.typed_blocks("recv", base, incoming)}
        return {
            **self.many_blocks("send", base, outgoing, "sdispls"),
            **self.many_blocks("recv", base, incoming, "rdispls"),
        }

    def reduction(self) -> Reduction:
        """Return a datatype and an operation on it."""
        if self.chance(0.3):
            c, (size, extent, true_extent) = self.random.choice(sorted(PAIRS.items()))
            return Reduction(Datatype(c, size, extent, true_extent, "pair", 1), "MPI_MAXLOC")
        base = self.random.choice(["MPI_INT", "MPI_DOUBLE", "MPI_SHORT"])
        return Reduction(self.types[base][0], "MPI_SUM")

    def intra_args(self, name: str, comm: Communicator) -> dict[int, dict[str, Any]]:
        """Return the arguments of collective `name` for every member of an intracommunicator."""
        group = comm.groups[0]
        p = len(group)
        root = self.random.randrange(p)
        base, n = self.base(), self.elements()
        ns = [self.elements() for _ in group]
        in_place = self.chance(0.35)
        reduction = self.reduction()
        matrix = [[DIVISOR * self.random.choice([0, 1, 2, 5]) for _ in group] for _ in group]
        if in_place and name in ("Alltoallv", "Alltoallw"):
            # Blocks are exchanged in one buffer: what i sends to j is as large as what j sends to i.
            matrix = [[matrix[max(i, j)][min(i, j)] for j in range(p)] for i in range(p)]
        result: dict[int, dict[str, Any]] = {}
        for rank, me in enumerate(group):
            a: dict[str, Any] = {}
            if name == "Bcast":
                a = self.broadcast(base, n)
            elif name.startswith(("Gather", "Allgather")):
                a = self.gathered(name, base, n, ns[rank], ns)
            elif name in ("Scatter", "Scatterv"):
                a = self.scattered(name, base, n, ns[rank], ns)
            elif name in ("Reduce", "Allreduce", "Scan", "Exscan"):
                a = reduction.args(n, count=n)
            elif name == "Reduce_scatter":
                a = reduction.args(sum(ns), recvcounts=ns)
            elif name == "Reduce_scatter_block":
                a = reduction.args(n * p, recvcount=n)
            elif name == "Alltoall":
                a = {**self.one_buffer("send", base, n, p), **self.one_buffer("recv", base, n, p)}
            elif name in ("Alltoallv", "Alltoallw"):
                a = self.exchanged(name, base, matrix[rank], [row[rank] for row in matrix])
            if in_place and name not in ("Bcast", "Barrier") and (name not in ROOTED or rank == root):
                a["recvbuf" if name.startswith("Scatter") else "sendbuf"] = IN_PLACE
            if name in ROOTED:
                a["root"] = root
            result[me] = a
        if in_place and name in ("Alltoall", "Alltoallv", "Alltoallw"):
            self.same_layout_everywhere(result)
        return result

    def same_layout_everywhere(self, args: dict[int, dict[str, Any]]) -> None:
        """MPI_IN_PLACE exchanges ask for one datatype on all processes: use the plain one."""
        for a in args.values():
            for key in ("recvtype", "recvtypes"):
                if key not in a:
                    continue
                if key == "recvtypes":
                    elements = [n * d.elements for n, d in zip(a["recvcounts"], a[key])]
                    plain = self.types[a[key][0].base][0]
                    a.update(recvcounts=elements, recvtypes=[plain] * len(elements))
                    a["rdispls"] = offsets(elements, plain.size)
                    a["recvbuf"] = sum(elements) * plain.size
                else:
                    old, plain = a[key], self.types[a[key].base][0]
                    a[key] = plain
                    if "recvcounts" in a:
                        a["recvcounts"] = [n * old.elements for n in a["recvcounts"]]
                        a["rdispls"] = offsets(a["recvcounts"])
                        a["recvbuf"] = sum(a["recvcounts"]) * plain.size
                    else:
                        blocks = a["recvbuf"] // max(1, a["recvcount"] * old.extent)
                        a["recvcount"] *= old.elements
                        a["recvbuf"] = blocks * a["recvcount"] * plain.size

    def inter_args(self, name: str, comm: Communicator) -> dict[int, dict[str, Any]]:
        """Return the arguments of collective `name` for every member of an intercommunicator."""
        root_side = self.random.randrange(2)
        root = self.random.randrange(len(comm.groups[root_side]))
        base, n = self.base(), self.elements()
        reduction = self.reduction()
        lengths = {me: self.elements() for me in comm.everybody}
        pair = {(a, b): DIVISOR * self.random.choice([0, 1, 3]) for a in lengths for b in lengths}
        # MPICH 4.0 hangs in Allgather when one direction alone is empty.
        side_length = [DIVISOR + self.elements(), DIVISOR + self.elements()] if n else [0, 0]
        vector = DIVISOR * self.product([len(group) for group in comm.groups]) * self.random.randrange(20)
        result: dict[int, dict[str, Any]] = {}
        for side, group in enumerate(comm.groups):
            others = comm.groups[1 - side]
            here, there = side_length[side], side_length[1 - side]
            for rank, me in enumerate(group):
                is_root = side == root_side and rank == root
                idle = side == root_side and not is_root
                blocks = [lengths[x] for x in others]
                a: dict[str, Any] = {}
                if name == "Bcast":
                    a = self.broadcast(base, n)
                elif name in ("Gather", "Gatherv", "Allgatherv"):
                    a = self.gathered(name, base, n, lengths[me], blocks)
                elif name in ("Scatter", "Scatterv"):
                    a = self.scattered(name, base, n, lengths[me], blocks)
                elif name in ("Reduce", "Allreduce"):
                    a = reduction.args(n, count=n)
                elif name == "Reduce_scatter_block":
                    a = reduction.args(vector, recvcount=vector // len(group))
                elif name == "Reduce_scatter":
                    a = reduction.args(vector, recvcounts=uneven_parts(vector, len(group)))
                elif name == "Allgather":
                    a = self.one_buffer("send", base, here)
                    a.update(self.one_buffer("recv", base, there, len(others)))
                elif name == "Alltoall":
                    a = self.one_buffer("send", base, here, len(others))
                    a.update(self.one_buffer("recv", base, there, len(others)))
                elif name in ("Alltoallv", "Alltoallw"):
                    outgoing, incoming = [pair[me, x] for x in others], [pair[x, me] for x in others]
                    a = self.exchanged(name, base, outgoing, incoming)
                if name in ROOTED:
                    a["root"] = ROOT if is_root else PROC_NULL if idle else root
                result[me] = a
        return result

    def neighbor_args(self, name: str, comm: Communicator) -> dict[int, dict[str, Any]]:
        """Return the arguments of a neighbourhood collective; blocks that move are all equally large."""
        base, n = self.base(), self.elements()
        result: dict[int, dict[str, Any]] = {}
        for me in comm.groups[0]:
            sources, destinations = comm.sources[me], comm.destinations[me]

            def blocks(peers: Sequence[int | None], n: int = n) -> list[int]:
                # A block towards MPI_PROC_NULL does not move, whatever its count.
                return [DIVISOR * self.random.randrange(4) if peer is None else n for peer in peers]

            if name.startswith("Neighbor_allgather"):
                a = (self.one_of_v if name.endswith("v") else self.one_buffer)("send", base, n)
                if name.endswith("v"):
                    a.update(self.many_blocks("recv", base, blocks(sources), "displs"))
                else:
                    a.update(self.one_buffer("recv", base, n, len(sources)))
            elif name == "Neighbor_alltoall":
                a = self.one_buffer("send", base, n, len(destinations))
                a.update(self.one_buffer("recv", base, n, len(sources)))
            elif name == "Neighbor_alltoallv":
                a = self.many_blocks("send", base, blocks(destinations), "sdispls")
                a.update(self.many_blocks("recv", base, blocks(sources), "rdispls"))
            else:
                a = self.typed_blocks("send", base, blocks(destinations))
                a.update(self.typed_blocks("recv", base, blocks(sources)))
            result[me] = a
        return result
