# SPDX-License-Identifier: Apache-2.0
"""Writes MPI calls, as C and for the model, and makes the datatypes and communicators they use."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from bytes_calls import LARGE, PARAMETERS
from bytes_model import Call, Communicator, Datatype, Made, Request, makes_request

BASES = {"MPI_BYTE": 1, "MPI_SHORT": 2, "MPI_INT": 4, "MPI_DOUBLE": 8}
PAIRS = {"MPI_DOUBLE_INT": (12, 16), "MPI_SHORT_INT": (6, 8), "MPI_2INT": (8, 8)}
"""Pair types for MPI_MAXLOC: data size and extent differ."""

DIVISOR = 6
"""Every derived datatype here holds 0, 1, 2, 3 or 6 elements, so any of them can lay out a multiple of 6."""


def ints(values: Sequence[int], element: str = "int") -> str:
    """Return a C array of `values`; arrays of no elements are not C, so an empty one gets a zero."""
    return f"({element}[]){{{', '.join(map(str, values or [0]))}}}"


def offsets(counts: Sequence[int], stride: int = 1) -> list[int]:
    """Return where blocks of `counts` elements start when they follow each other."""
    return [stride * sum(counts[:i]) for i in range(len(counts))]


class Writer:
    """Collects the calls of all ranks.

    Parameters
    ----------
    seed : int
        Decides everything.
    ranks : int
        Size of MPI_COMM_WORLD.
    mpi4 : bool
        The MPI library has MPI 4.0: large counts, persistent collectives, partitioned communication.
    get_status : bool
        MPI_Request_get_status leaves the request as it is.  That of MPICH 4.2 ends it.
    """

    def __init__(self, seed: int, ranks: int, mpi4: bool, get_status: bool = True) -> None:
        self.random = random.Random(seed)
        self.mpi4 = mpi4
        self.get_status = get_status
        self.world = tuple(range(ranks))
        self.calls: list[list[Call]] = [[] for _ in self.world]
        self.lines: list[list[str]] = [[] for _ in self.world]
        self.pending: list[list[Request]] = [[] for _ in self.world]
        self.comms = [Communicator("c[0]", "W0.0", (self.world,))]
        self.comms += [Communicator("c[1]", f"S{me}.0", ((me,),)) for me in self.world]
        self.received_comms = [0] * ranks
        self.types = {base: [Datatype(base, size, size, base, 1)] for base, size in BASES.items()}
        self.used = {"c": 2, "t": 0, "w": 0, "f": 0, "g": 0, "r": 0, "m": 0}
        self.tag = 0

    def slot(self, array: str) -> str:
        """Return the next unused handle variable of the C program."""
        self.used[array] += 1
        return f"{array}[{self.used[array] - 1}]"

    def call(self, me: int, name: str, arrives: int = 0, **args: Any) -> None:
        """Emit a call whose arguments the table `PARAMETERS` orders; large-count form now and then."""
        large = self.mpi4 and name in LARGE and self.random.random() < 0.4
        rendered = [self.render(name, p, args.get(p), large) for p in PARAMETERS[name].split()]
        name += "_c" * large
        self.calls[me].append(Call(name, args, arrives))
        made = f" made({args['request'].c});" if makes_request(name) else ""
        self.lines[me].append(f"MPI_{name}({', '.join(rendered)});{made}")

    def code(self, me: int, name: str, text: str, **args: Any) -> None:
        """Emit a call written out in C; `args` is what the model needs of it."""
        self.calls[me].append(Call(name, args))
        self.lines[me].append(text)

    def render(self, name: str, parameter: str, value: Any, large: bool) -> str:
        if parameter == "status":
            return self.random.choice(["&status", "MPI_STATUS_IGNORE"])
        if parameter == "info":
            return "MPI_INFO_NULL"
        if parameter in ("message", "request"):
            return "&" + str(value.c)
        if isinstance(value, str):
            return value
        if isinstance(value, (Communicator, Made, Datatype)):
            return value.c
        if parameter == "buf" or parameter.endswith(("buf", "_addr")):
            return f"room({value})"
        if parameter.endswith("counts"):
            return ints(value, "MPI_Count" if large else "int")
        if parameter.endswith("displs"):
            addresses = large or name.lower().startswith(("neighbor_alltoallw", "ineighbor_alltoallw"))
            return ints(value, "MPI_Aint" if addresses else "int")
        if parameter.endswith("types"):
            return f"(MPI_Datatype[]){{{', '.join([d.c for d in value] or ['MPI_INT'])}}}"
        assert isinstance(value, int), (name, parameter, value)
        return str(value)

    def request(self) -> Request:
        return Request(self.slot("r"))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def elements(self) -> int:
        """Return a number of elements, a multiple of `DIVISOR`: often none or few, seldom many."""
        return DIVISOR * self.random.choice(
            [0, 1, 1, 2, 3, 7, self.random.randrange(60), self.random.randrange(1500)]
        )

    def base(self) -> str:
        return self.random.choice(sorted(self.types))

    def layout(
        self, base: str, elements: int, empty_types: bool = True, plain: bool = False
    ) -> tuple[int, Datatype]:
        """Return a count and a datatype that hold `elements` elements of `base`: `plain`, or any that fits.

        No elements may also be some of a datatype without data, unless `empty_types` is false.
        """
        if plain:
            return elements, self.types[base][0]
        types = [d for d in self.types[base] if d.elements or (empty_types and elements == 0)]
        datatype = self.random.choice(types)
        return (elements // datatype.elements if datatype.elements else self.random.randrange(5)), datatype

    def new_tag(self) -> int:
        self.tag += 1
        return self.tag

    def intra(self, smallest: int = 1) -> Communicator:
        return self.random.choice(
            [c for c in self.comms if len(c.groups) == 1 and len(c.groups[0]) >= smallest]
        )

    def make_type(self) -> None:
        """Add one derived datatype, on every rank."""
        base = self.base()
        size = BASES[base]
        c = self.slot("t")
        maker, elements, extent, arguments = self.random.choice(
            [
                ("Type_contiguous", 3, 3 * size, f"3, {base}"),
                ("Type_contiguous", 0, 0, f"0, {base}"),
                ("Type_vector", 6, 8 * size, f"3, 2, 3, {base}"),
                ("Type_indexed", 3, 5 * size, f"2, {ints([1, 2])}, {ints([0, 3])}, {base}"),
                ("Type_create_hvector", 2, 5 * size, f"2, 1, {4 * size}, {base}"),
                ("Type_create_resized", 1, 3 * size, f"{base}, 0, {3 * size}"),
                ("Type_create_resized", 1, 2 * size, f"{base}, {-size}, {2 * size}"),
                ("Type_dup", 1, size, base),
                (
                    "Type_create_struct",
                    2,
                    4 * size,
                    f"2, {ints([1, 1])}, {ints([0, 3 * size], 'MPI_Aint')}, (MPI_Datatype[]){{{base}, {base}}}",
                ),
            ]
        )
        for me in self.world:
            self.code(me, maker, f"MPI_{maker}({arguments}, &{c});")
            self.code(me, "Type_commit", f"MPI_Type_commit(&{c});")
        self.types[base].append(Datatype(c, elements * size, extent, base, elements))

    def register(
        self, letter: str, c: str, groups: tuple[tuple[int, ...], ...], **topology: Any
    ) -> Communicator:
        """Note a communicator that its members just got, and name it."""
        for me in sum(groups, ()):
            self.received_comms[me] += 1
        leader = min(group[0] for group in groups)
        comm = Communicator(c, f"{letter}{leader}.{self.received_comms[leader]}", groups, **topology)
        self.comms.append(comm)
        return comm

    def make_comm(self) -> None:
        """Make a communicator by a random procedure."""
        self.random.choice(
            [self.dup, self.split, self.cart, self.graph, self.dist_graph, self.adjacent, self.inter]
        )()

    def dup(self) -> None:
        parent = self.random.choice(self.comms)
        c = self.slot("c")
        if self.chance(0.5):
            for me in sum(parent.groups, ()):
                self.code(me, "Comm_dup", f"MPI_Comm_dup({parent.c}, &{c});", comm=parent)
            letter = "d"
        else:
            for me in sum(parent.groups, ()):
                request = self.request()
                text = f"MPI_Comm_idup({parent.c}, &{c}, &{request.c}); made({request.c});"
                self.code(me, "Comm_idup", text, comm=parent, request=request)
                self.call(me, "Wait", request=request)
            letter = "i"
        # A duplicate keeps the topology.
        self.register(letter, c, parent.groups, sources=parent.sources, destinations=parent.destinations)

    def split(self) -> None:
        parent = self.intra()
        c = self.slot("c")
        colors = {me: self.random.randrange(2) for me in parent.groups[0]}
        for me, color in colors.items():
            self.code(me, "Comm_split", f"MPI_Comm_split({parent.c}, {color}, {-me}, &{c});", comm=parent)
        for color in sorted(set(colors.values())):
            # The key is the negative rank, so the order turns round.
            self.register(
                "s", c, (tuple(sorted((me for me in colors if colors[me] == color), reverse=True)),)
            )

    def cart(self) -> None:
        parent = self.intra(2)
        group = parent.groups[0]
        dims = self.random.choice(
            [
                d
                for d in ((2, 2), (3, 1), (2, 1), (4, 1), (5, 1), (2,), (3,), (1, 2, 2))
                if self.product(d) <= len(group)
            ]
        )
        periods = [int(self.chance(0.3)) for _ in dims]
        c = self.slot("c")
        for me in group:
            text = f"MPI_Cart_create({parent.c}, {len(dims)}, {ints(dims)}, {ints(periods)}, 0, &{c});"
            self.code(me, "Cart_create", text, comm=parent)
        members = group[: self.product(dims)]
        neighbours: dict[int, list[int | None]] = {}
        for rank, me in enumerate(members):
            neighbours[me] = []
            for d, extent in enumerate(dims):
                stride = self.product(dims[d + 1 :])
                place = rank // stride % extent
                for step in (-1, 1):
                    inside = periods[d] or 0 <= place + step < extent
                    moved = (place + step) % extent
                    neighbours[me].append(members[rank + (moved - place) * stride] if inside else None)
        self.register("a", c, (members,), sources=neighbours, destinations=neighbours)

    @staticmethod
    def product(values: Sequence[int]) -> int:
        result = 1
        for value in values:
            result *= value
        return result

    def graph(self) -> None:
        parent = self.intra(2)
        group = parent.groups[0]
        edges: dict[int, list[int]] = {rank: [] for rank in range(len(group))}
        for a in edges:
            for b in range(a):
                if self.chance(0.6):
                    edges[a].append(b)
                    edges[b].append(a)
        ends = [sum(len(edges[rank]) for rank in range(last + 1)) for last in edges]
        flat = [peer for rank in edges for peer in edges[rank]]
        c = self.slot("c")
        for me in group:
            text = f"MPI_Graph_create({parent.c}, {len(group)}, {ints(ends)}, {ints(flat)}, 0, &{c});"
            self.code(me, "Graph_create", text, comm=parent)
        neighbours = {me: [group[peer] for peer in edges[rank]] for rank, me in enumerate(group)}
        self.register("G", c, (group,), sources=neighbours, destinations=neighbours)

    def arcs(self, group: tuple[int, ...]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """Return random directed edges, as sources and destinations per rank, in ranks of `group`."""
        pairs = [(a, b) for a in range(len(group)) for b in range(len(group)) if self.chance(0.4)]
        sources = {b: [x for x, y in pairs if y == b] for b in range(len(group))}
        destinations = {a: [y for x, y in pairs if x == a] for a in range(len(group))}
        return sources, destinations

    def adjacent(self) -> None:
        parent = self.intra(2)
        group = parent.groups[0]
        sources, destinations = self.arcs(group)
        c = self.slot("c")
        for rank, me in enumerate(group):
            ends = ", ".join(
                f"{len(side[rank])}, {ints(side[rank])}, MPI_UNWEIGHTED" for side in (sources, destinations)
            )
            text = f"MPI_Dist_graph_create_adjacent({parent.c}, {ends}, MPI_INFO_NULL, 0, &{c});"
            self.code(me, "Dist_graph_create_adjacent", text, comm=parent)
        self.register(
            "y",
            c,
            (group,),
            sources={me: [group[x] for x in sources[rank]] for rank, me in enumerate(group)},
            destinations={me: [group[x] for x in destinations[rank]] for rank, me in enumerate(group)},
        )

    def dist_graph(self) -> None:
        """Every rank gives its own outgoing edges.

        The order of neighbours is then the library's choice, which no byte count depends on as long as all blocks
        of a call are equally large; `neighbourhood` sees to that.
        """
        parent = self.intra(2)
        group = parent.groups[0]
        sources, destinations = self.arcs(group)
        c = self.slot("c")
        for rank, me in enumerate(group):
            degree = len(destinations[rank])
            text = (
                f"MPI_Dist_graph_create({parent.c}, 1, {ints([rank])}, {ints([degree])}, {ints(destinations[rank])}, "
                f"MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &{c});"
            )
            self.code(me, "Dist_graph_create", text, comm=parent)
        self.register(
            "x",
            c,
            (group,),
            sources={me: [group[x] for x in sources[rank]] for rank, me in enumerate(group)},
            destinations={me: [group[x] for x in destinations[rank]] for rank, me in enumerate(group)},
        )

    def inter(self) -> None:
        """Split WORLD in two, not in the middle, and join the halves."""
        cut = self.random.randrange(1, len(self.world))
        halves = (self.world[:cut], self.world[cut:])
        local, c = self.slot("c"), self.slot("c")
        world = self.comms[0]
        for me in self.world:
            self.code(me, "Comm_split", f"MPI_Comm_split(c[0], {int(me >= cut)}, 0, &{local});", comm=world)
        locals_ = [self.register("s", local, (half,)) for half in halves]
        tag = self.new_tag()
        for side, half in enumerate(halves):
            for me in half:
                text = f"MPI_Intercomm_create({local}, 0, c[0], {halves[1 - side][0]}, {tag}, &{c});"
                self.code(me, "Intercomm_create", text, comm=locals_[side])
        self.register("I", c, halves)
