# SPDX-License-Identifier: Apache-2.0
"""Writes MPI calls, as C and for the model, and makes the datatypes and communicators they use."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from fuzz.calls import LARGE, PARAMETERS
from fuzz.model import Call, Communicator, Datatype, Made, Request, makes_request

BASES = {"MPI_BYTE": 1, "MPI_SHORT": 2, "MPI_INT": 4, "MPI_DOUBLE": 8}
PAIRS = {"MPI_DOUBLE_INT": (12, 16, 12), "MPI_SHORT_INT": (6, 8, 8), "MPI_2INT": (8, 8, 8)}
"""Pair types for MPI_MAXLOC: data size, extent, and true extent."""

DIVISOR = 6
"""Every derived datatype here holds 0, 1, 2, 3 or 6 elements, so any of them can lay out a multiple of 6."""


def ints(values: Sequence[int], element: str = "int") -> str:
    """Return a C array of `values`; arrays of no elements are not C, so an empty one gets a zero."""
    return f"({element}[]){{{', '.join(map(str, values or [0]))}}}"


def offsets(counts: Sequence[int], stride: int = 1) -> list[int]:
    """Return where blocks of `counts` elements start when they follow each other."""
    return [stride * sum(counts[:i]) for i in range(len(counts))]


ROOM = {"c": 256, "t": 256, "w": 256, "f": 256, "g": 256, "r": 20000}
"""How many handles of a kind one strand of a program may use; run.h says the same."""


class Writer:
    """Collects the calls of all ranks.

    Parameters
    ----------
    seed : str
        Decides everything.
    ranks : int
        Size of MPI_COMM_WORLD.
    mpi4 : bool
        The MPI library has MPI 4.0: large counts, persistent collectives, partitioned communication.
    get_status : bool
        MPI_Request_get_status leaves the request as it is.  That of MPICH 4.2 ends it.
    strand : int
        0 is a program's main thread, which has MPI_COMM_WORLD and MPI_COMM_SELF.  The others run at the same time,
        each on handles of its own, and get duplicates of the two (`Script.lend`).  Which one the library names first
        is then a matter of luck, so their communicators are given names.
    """

    def __init__(self, seed: str, ranks: int, mpi4: bool, get_status: bool = True, strand: int = 0) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.mpi4 = mpi4
        self.get_status = get_status
        self.strand = strand
        self.world = tuple(range(ranks))
        self.calls: list[list[Call]] = [[] for _ in self.world]
        self.lines: list[list[str]] = [[] for _ in self.world]
        self.pending: list[list[Request]] = [[] for _ in self.world]
        self.used = {array: strand * room for array, room in ROOM.items()}
        whole, alone = self.slot("c"), self.slot("c")
        names = [f"{strand}:W", *(f"{strand}:S{me}" for me in self.world)] if strand else []
        names = names or ["W0.0", *(f"S{me}.0" for me in self.world)]
        self.comms = [Communicator(whole, names[0], (self.world,))]
        self.comms += [Communicator(alone, names[1 + me], ((me,),)) for me in self.world]
        self.everyone = self.comms[0]
        self.made_comms = list(self.comms)  # freed ones, too
        self.received_comms = [0] * ranks
        self.types = {base: [Datatype(base, size, size, size, base, 1)] for base, size in BASES.items()}
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
        if parameter.endswith(("counts", "displs", "types")):
            array = self.array(name, parameter, value, large)
            # The MPI library may read an array until the request is complete, when this function has returned.
            return f"KEPT({array})" if "request" in PARAMETERS[name].split() else array
        assert isinstance(value, int), (name, parameter, value)
        return str(value)

    @staticmethod
    def array(name: str, parameter: str, value: Any, large: bool) -> str:
        """Return a C array of counts, displacements or datatypes."""
        if parameter.endswith("counts"):
            return ints(value, "MPI_Count" if large else "int")
        if parameter.endswith("displs"):
            addresses = large or name.lower().startswith(("neighbor_alltoallw", "ineighbor_alltoallw"))
            return ints(value, "MPI_Aint" if addresses else "int")
        return f"(MPI_Datatype[]){{{', '.join([d.c for d in value] or ['MPI_INT'])}}}"

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
        """Return an intracommunicator, of at least `smallest` processes if there is one."""
        candidates = [c for c in self.comms if len(c.groups) == 1]
        large = [c for c in candidates if len(c.groups[0]) >= smallest]
        return self.random.choice(large or candidates)

    def make_type(self) -> None:
        """Add one derived datatype, on every rank."""
        base = self.base()
        size = BASES[base]
        c = self.slot("t")
        maker, elements, extent, true_extent, arguments = self.random.choice(
            [
                ("Type_contiguous", 3, 3 * size, 3 * size, f"3, {base}"),
                ("Type_contiguous", 0, 0, 0, f"0, {base}"),
                ("Type_vector", 6, 8 * size, 8 * size, f"3, 2, 3, {base}"),
                ("Type_indexed", 3, 5 * size, 5 * size, f"2, {ints([1, 2])}, {ints([0, 3])}, {base}"),
                ("Type_create_hvector", 2, 5 * size, 5 * size, f"2, 1, {4 * size}, {base}"),
                ("Type_create_resized", 1, 3 * size, size, f"{base}, 0, {3 * size}"),
                ("Type_create_resized", 1, 2 * size, size, f"{base}, {-size}, {2 * size}"),
                ("Type_dup", 1, size, size, base),
                (
                    "Type_create_struct",
                    2,
                    4 * size,
                    4 * size,
                    f"2, {ints([1, 1])}, {ints([0, 3 * size], 'MPI_Aint')}, (MPI_Datatype[]){{{base}, {base}}}",
                ),
            ]
        )
        for me in self.world:
            self.code(me, maker, f"MPI_{maker}({arguments}, &{c});")
            self.code(me, "Type_commit", f"MPI_Type_commit(&{c});")
        self.types[base].append(Datatype(c, elements * size, extent, true_extent, base, elements))

    def register(
        self, letter: str, c: str, groups: tuple[tuple[int, ...], ...], **topology: Any
    ) -> Communicator:
        """Note a communicator that its members just got, and name it."""
        for me in sum(groups, ()):
            self.received_comms[me] += 1
        leader = min(group[0] for group in groups)
        name = f"{letter}{leader}.{self.received_comms[leader]}"
        if self.strand:
            name = f"{self.strand}:{len(self.made_comms)}{name}"
        comm = Communicator(c, name, groups, **topology)
        self.comms.append(comm)
        self.made_comms.append(comm)
        if self.strand:
            self.set_name(comm, name)
        return comm

    def set_name(self, comm: Communicator, name: str) -> None:
        comm.user_name = name
        for me in comm.everybody:
            self.code(me, "Comm_set_name", f'MPI_Comm_set_name({comm.c}, "{name}");', comm=comm)

    def rename(self) -> None:
        """Give a communicator a name that others may have had."""
        if not self.strand:
            self.set_name(self.random.choice(self.comms), self.random.choice(["grid", "row", "a b", "é"]))

    def free_comm(self) -> None:
        """Free a communicator that is not needed any more; messages may still be under way on it."""
        idle = [
            comm for comm in self.made_comms[1 + len(self.world) :] if comm in self.comms and not comm.kept
        ]
        if not self.mpi4:
            # Open MPI 4.1 looks into the communicator when a non-blocking collective on it has ended.
            busy = [request.comm for pending in self.pending for request in pending if request.collective]
            idle = [comm for comm in idle if comm not in busy]
        if idle:
            self.free(self.random.choice(idle))

    def free(self, comm: Communicator) -> None:
        self.comms.remove(comm)
        comm.freed = True
        for me in comm.everybody:
            self.code(me, "Comm_free", f"MPI_Comm_free(&{comm.c});", comm=comm)

    def make_comm(self) -> None:
        """Make a communicator by a random procedure."""
        makers = [
            self.dup,
            self.split,
            self.split_type,
            self.create,
            self.create_group,
            self.cart,
            self.cart_sub,
        ]
        makers += [self.graph, self.dist_graph, self.adjacent, self.inter, self.merge]
        self.random.choice(makers)()

    def dup(self) -> None:
        parent = self.random.choice(self.comms)
        c = self.slot("c")
        letter = self.random.choice("dwi" + "j" * self.mpi4)
        for me in parent.everybody:
            if letter == "d":
                self.code(me, "Comm_dup", f"MPI_Comm_dup({parent.c}, &{c});", comm=parent)
            elif letter == "w":
                text = f"MPI_Comm_dup_with_info({parent.c}, MPI_INFO_NULL, &{c});"
                self.code(me, "Comm_dup_with_info", text, comm=parent)
            else:
                request = self.request()
                name, info = (
                    ("Comm_idup", "") if letter == "i" else ("Comm_idup_with_info", "MPI_INFO_NULL, ")
                )
                text = f"MPI_{name}({parent.c}, {info}&{c}, &{request.c}); made({request.c});"
                self.code(me, name, text, comm=parent, request=request)
                self.call(me, "Wait", request=request)
        # A duplicate keeps the topology.
        self.register(
            letter,
            c,
            parent.groups,
            sources=parent.sources,
            destinations=parent.destinations,
            dims=parent.dims,
            periods=parent.periods,
        )

    def split_type(self) -> None:
        """Split by shared memory: all processes of these programs are on one node."""
        parent = self.intra()
        c = self.slot("c")
        for me in parent.groups[0]:
            text = f"MPI_Comm_split_type({parent.c}, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &{c});"
            self.code(me, "Comm_split_type", text, comm=parent)
        self.register("t", c, parent.groups)

    def create(self) -> None:
        self.from_group("Comm_create", "c", "")

    def create_group(self) -> None:
        self.from_group("Comm_create_group", "g", f"{self.random.randrange(3)}, ")

    def from_group(self, name: str, letter: str, tag: str) -> None:
        """Make a communicator of some members of another, in any order."""
        parent = self.intra()
        group = parent.groups[0]
        ranks = self.random.sample(range(len(group)), self.random.randrange(1, len(group) + 1))
        c, whole, part = self.slot("c"), self.slot("g"), self.slot("g")
        members = tuple(group[rank] for rank in ranks)
        for me in group if letter == "c" else members:
            self.code(me, "Comm_group", f"MPI_Comm_group({parent.c}, &{whole});", comm=parent)
            text = f"MPI_Group_incl({whole}, {len(ranks)}, {ints(ranks)}, &{part});"
            self.code(me, "Group_incl", text)
            self.code(me, name, f"MPI_{name}({parent.c}, {part}, {tag}&{c});", comm=parent)
            self.code(me, "Group_free", f"MPI_Group_free(&{whole});")
            self.code(me, "Group_free", f"MPI_Group_free(&{part});")
        self.register(letter, c, (members,))

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
        self.cart_of(self.intra(2))

    def cart_of(self, parent: Communicator) -> None:
        group = parent.groups[0]
        dims = self.random.choice(
            [
                d
                for d in ((2, 2), (3, 1), (2, 1), (4, 1), (5, 1), (2,), (3,), (1, 2, 2), (1,), (1, 1))
                if self.product(d) <= len(group)
            ]
        )
        periods = [int(self.chance(0.3)) for _ in dims]
        c = self.slot("c")
        for me in group:
            text = f"MPI_Cart_create({parent.c}, {len(dims)}, {ints(dims)}, {ints(periods)}, 0, &{c});"
            self.code(me, "Cart_create", text, comm=parent)
        self.register_grid("a", c, group[: self.product(dims)], dims, periods)

    def register_grid(
        self, letter: str, c: str, members: tuple[int, ...], dims: Sequence[int], periods: Sequence[int]
    ) -> None:
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
        self.register(
            letter, c, (members,), sources=neighbours, destinations=neighbours, dims=dims, periods=periods
        )

    def cart_sub(self) -> None:
        """Keep the first or the last dimensions of a grid."""
        grids = [comm for comm in self.comms if len(comm.dims) > 1]
        if not grids:
            self.cart()
            return
        parent = self.random.choice(grids)
        members, dims, periods = parent.groups[0], parent.dims, parent.periods
        cut = self.random.randrange(1, len(dims))
        first = self.chance(0.5)
        keep = [int((d < cut) == first) for d in range(len(dims))]
        c = self.slot("c")
        for me in members:
            self.code(me, "Cart_sub", f"MPI_Cart_sub({parent.c}, {ints(keep)}, &{c});", comm=parent)
        inner = self.product(dims[cut:])
        parts = [members[i::inner] if first else members[i * inner :][:inner] for i in range(len(members))]
        for part in parts[: inner if first else len(members) // inner]:
            side = slice(0, cut) if first else slice(cut, None)
            self.register_grid("b", c, part, dims[side], periods[side])

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
        """Split everyone in two, not in the middle, and join the halves."""
        if len(self.world) < 2:
            return
        cut = self.random.randrange(1, len(self.world))
        halves = (self.world[:cut], self.world[cut:])
        local, c = self.slot("c"), self.slot("c")
        for me in self.world:
            text = f"MPI_Comm_split({self.everyone.c}, {int(me >= cut)}, 0, &{local});"
            self.code(me, "Comm_split", text, comm=self.everyone)
        locals_ = [self.register("s", local, (half,)) for half in halves]
        # Threads that do this at the same time for equal groups must not use equal tags: docs/fuzzing.md.
        tag = 1000 * self.strand + self.new_tag()
        for side, half in enumerate(halves):
            for me in half:
                text = f"MPI_Intercomm_create({local}, 0, {self.everyone.c}, {halves[1 - side][0]}, {tag}, &{c});"
                self.code(me, "Intercomm_create", text, comm=locals_[side])
        self.register("I", c, halves)

    def merge(self) -> None:
        """Make one group of an intercommunicator's two."""
        inters = [comm for comm in self.comms if len(comm.groups) == 2]
        if not inters:
            self.inter()
            return
        parent = self.random.choice(inters)
        high = self.random.randrange(2)
        c = self.slot("c")
        for side, group in enumerate(parent.groups):
            for me in group:
                text = f"MPI_Intercomm_merge({parent.c}, {int(side == high)}, &{c});"
                self.code(me, "Intercomm_merge", text, comm=parent)
        self.register("m", c, (parent.groups[1 - high] + parent.groups[high],))
