# SPDX-License-Identifier: Apache-2.0
"""Computes the profile that a known sequence of MPI calls must produce.

Written from the text of the MPI standard and ``docs/bytes.md`` only; it shares nothing with the library, its
generator or ``spec/calls.toml``.  `program.py` builds the calls of every rank, runs them, and compares the profile
with what a `RankModel` counted, cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PROC_NULL = "MPI_PROC_NULL"
ROOT = "MPI_ROOT"
IN_PLACE = "MPI_IN_PLACE"
NO_OP = "MPI_NO_OP"

BIN_V = -1
BIN_NULL = -2
"""Bin of the collectives whose blocks differ in size within one call."""

Key = tuple["frozenset[str]", str, int]
"""Names of the communicators the call counts under (several: a set, none: no communicator), procedure, bin."""


@dataclass(frozen=True)
class Datatype:
    """A datatype: its name in the C program, bytes of data, extent, from first to last byte, and what it is made of."""

    c: str
    size: int
    extent: int
    true_extent: int
    base: str
    elements: int

    def leaves_gaps(self, count: int) -> bool:
        """Return whether a block of `count` elements has gaps."""
        alone = self.size < self.true_extent
        return count > 0 and (alone or (count > 1 and self.size != self.extent))


@dataclass(eq=False)
class Communicator:
    """A communicator; `groups` holds world ranks in rank order, two groups for an intercommunicator."""

    c: str
    name: str
    groups: tuple[tuple[int, ...], ...]
    sources: Mapping[int, Sequence[int | None]] = field(default_factory=dict)
    destinations: Mapping[int, Sequence[int | None]] = field(default_factory=dict)
    dims: Sequence[int] = ()  # of a grid, with `periods`
    periods: Sequence[int] = ()
    user_name: str | None = None
    freed: bool = False
    kept: bool = False  # a window or file needs it

    @property
    def everybody(self) -> tuple[int, ...]:
        return sum(self.groups, ())

    def local(self, world_rank: int) -> tuple[int, ...]:
        """Return the group that `world_rank` is in."""
        return next(group for group in self.groups if world_rank in group)

    def partners(self, world_rank: int) -> tuple[int, ...]:
        """Return the group that `world_rank` exchanges blocks with."""
        return next((group for group in self.groups if world_rank not in group), self.groups[0])


@dataclass(eq=False)
class Made:
    """A window or file (or a probed message): remembers its communicator."""

    c: str
    comm: Communicator


@dataclass(eq=False)
class Request:
    """A request slot of one rank, and the facts of the model about its operation."""

    c: str
    comm: Communicator | None = None
    key: Key | None = None
    sent_when_started: int = 0
    received_when_completed: int = 0
    persistent: bool = False
    active: bool = False
    collective: bool = False
    shared: bool = False  # the handle is that of all requests that were complete when made


@dataclass
class Call:
    """One MPI call of one rank: procedure without ``MPI_``, arguments by the standard's names.

    `arrives` is the number of bytes that a receive or a read will get, which only the generator knows.
    """

    name: str
    args: dict[str, Any]
    arrives: int = 0


@dataclass
class Counts:
    """The deterministic counters of one cell."""

    calls: int = 0
    noncontiguous: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


def size_bin(size: int) -> int:
    """Return the bin of a message size: 0 for 0, k for 2**(k-1) <= size < 2**k."""
    return size.bit_length()


def block(count: int, datatype: Datatype) -> int:
    return count * datatype.size


def total(counts: Sequence[int], datatypes: Datatype | Sequence[Datatype]) -> int:
    if isinstance(datatypes, Datatype):
        datatypes = [datatypes] * len(counts)
    return sum(map(block, counts, datatypes))


# ---------------------------------------------------------------------------------------------------------------
# Collectives: (message size, sent, received); a message size of None means bin v.

Volume = tuple["int | None", int, int]


def bystander(a: Mapping[str, Any]) -> bool:
    """Return whether this process has no part in a rooted collective of an intercommunicator."""
    return "root" in a and len(a["comm"].groups) == 2 and a["root"] == PROC_NULL


def roots(a: Mapping[str, Any], me: int) -> bool:
    """Return whether this process is the root of a rooted collective."""
    comm = a["comm"]
    return bool(a["root"] == (ROOT if len(comm.groups) == 2 else comm.local(me).index(me)))


def rooted(name: str, a: Mapping[str, Any], comm: Communicator, me: int) -> Volume:
    """Bcast, Gather(v), Scatter(v), Reduce."""
    size: int | None
    inter = len(comm.groups) == 2
    if bystander(a):
        return (None if name.endswith("v") else 0), 0, 0
    partners = len(comm.partners(me))
    my_rank = comm.local(me).index(me)
    is_root = roots(a, me)
    if name == "Bcast":
        size = block(a["count"], a["datatype"])
        return (size, size, 0) if is_root else (size, 0, size)
    if name == "Reduce":
        size = block(a["count"], a["datatype"])
        return size, 0 if inter and is_root else size, size if is_root else 0
    outgoing = name.startswith("Scatter")
    many, one = ("send", "recv") if outgoing else ("recv", "send")
    # What the root's many blocks hold, and the root's own block among them.
    if is_root:
        if name.endswith("v"):
            all_blocks = total(a[many + "counts"], a[many + "type"])
            own_many = 0 if inter else block(a[many + "counts"][my_rank], a[many + "type"])
        else:
            own_many = block(a[many + "count"], a[many + "type"])
            all_blocks = partners * own_many
    else:
        all_blocks = own_many = 0
    if is_root and inter:
        single, size = 0, own_many
    elif is_root and a[one + "buf"] == IN_PLACE:
        single = size = own_many
    else:
        single = size = block(a[one + "count"], a[one + "type"])
    if name.endswith("v"):
        size = None
    return (size, all_blocks, single) if outgoing else (size, single, all_blocks)


def unrooted(name: str, a: Mapping[str, Any], comm: Communicator, me: int) -> Volume:
    """Barrier, Allreduce, scans, Reduce_scatter*, Allgather*, Alltoall*."""
    local = comm.local(me)
    my_rank = local.index(me)
    partners = len(comm.partners(me))
    in_place = a.get("sendbuf") == IN_PLACE
    if name == "Barrier":
        return 0, 0, 0
    if name in ("Allreduce", "Scan", "Exscan"):
        vector = block(a["count"], a["datatype"])
        return vector, vector, 0 if name == "Exscan" and my_rank == 0 else vector
    if name == "Reduce_scatter":
        return None, total(a["recvcounts"], a["datatype"]), block(a["recvcounts"][my_rank], a["datatype"])
    if name == "Reduce_scatter_block":
        mine = block(a["recvcount"], a["datatype"])
        return mine, len(local) * mine, mine
    if name in ("Allgather", "Alltoall"):
        back = block(a["recvcount"], a["recvtype"])
        mine = back if in_place else block(a["sendcount"], a["sendtype"])
        return mine, mine * (partners if name == "Alltoall" else 1), partners * back
    if name == "Allgatherv":
        back = total(a["recvcounts"], a["recvtype"])
        if in_place:
            return None, block(a["recvcounts"][my_rank], a["recvtype"]), back
        return None, block(a["sendcount"], a["sendtype"]), back
    assert name in ("Alltoallv", "Alltoallw"), name
    suffix = "types" if name == "Alltoallw" else "type"
    back = total(a["recvcounts"], a["recv" + suffix])
    return None, back if in_place else total(a["sendcounts"], a["send" + suffix]), back


def neighbor(name: str, a: Mapping[str, Any], comm: Communicator, me: int) -> Volume:
    """Neighbor_*: only the blocks of neighbours that exist move."""
    sources = [peer is not None for peer in comm.sources[me]]
    destinations = [peer is not None for peer in comm.destinations[me]]

    def moved(exists: Sequence[bool], side: str) -> int:
        types = a[side + "types"] if side + "types" in a else [a[side + "type"]] * len(exists)
        counts = a[side + "counts"] if side + "counts" in a else [a[side + "count"]] * len(exists)
        return sum(block(n, t) for n, t, there in zip(counts, types, exists) if there)

    received = moved(sources, "recv")
    if name.startswith("Neighbor_allgather"):
        sent = block(a["sendcount"], a["sendtype"]) if any(destinations) else 0
    else:
        sent = moved(destinations, "send")
    size = None if name[-1] in "vw" else block(a["sendcount"], a["sendtype"])
    return size, sent, received


ROOTED = {"Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Reduce"}
UNROOTED = {
    *("Barrier", "Allreduce", "Scan", "Exscan", "Reduce_scatter", "Reduce_scatter_block"),
    *("Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw"),
}
NEIGHBOR = {"Neighbor_allgather", "Neighbor_allgatherv"} | {
    "Neighbor_alltoall" + end for end in ("", "v", "w")
}
COLLECTIVE = ROOTED | UNROOTED | NEIGHBOR


def forms(name: str) -> dict[str, tuple[str, str]]:
    """Return the names of one operation: blocking, non-blocking and persistent."""
    return {
        name: (name, "now"),
        "I" + name[0].lower() + name[1:]: (name, "request"),
        name + "_init": (name, "persistent"),
    }


# ---------------------------------------------------------------------------------------------------------------
# The blocks of data a call names: a number of elements, and their datatype.


def blocks(call: Call, me: int) -> Iterator[tuple[int, Datatype]]:
    """Return the blocks in the significant arguments of a call, those that move and those that stay."""
    name, a = call.name.removesuffix("_c"), call.args
    name = COLLECTIVE_FORMS.get(name, (name, ""))[0]
    if name in ("Fetch_and_op", "Compare_and_swap"):
        yield 1, a["datatype"]
    elif name == "Reduce_scatter":
        yield sum(a["recvcounts"]), a["datatype"]
    elif name == "Reduce_scatter_block":
        yield a["recvcount"], a["datatype"]
    elif name.startswith(("Psend", "Precv")):
        yield a["partitions"] * a["count"], a["datatype"]
    elif "count" in a and "datatype" in a and not bystander(a):
        yield a["count"], a["datatype"]
    if "datatype" in a:
        return
    for side in sides(name, a, me):
        if side + "count" in a:
            yield a[side + "count"], a[side + "type" if side + "type" in a else side + "datatype"]
        elif side + "counts" in a:
            counts = a[side + "counts"]
            types = a[side + "types"] if side + "types" in a else [a[side + "type"]] * len(counts)
            there = [True] * len(counts)
            if name in NEIGHBOR:
                peers = (a["comm"].destinations if side == "send" else a["comm"].sources)[me]
                there = [peer is not None for peer in peers]
            yield from (block for block, exists in zip(zip(counts, types), there) if exists)


def sides(name: str, a: Mapping[str, Any], me: int) -> list[str]:
    """Return the prefixes of the significant pairs of count and datatype."""
    if name in RMA:
        fetches = name.endswith("et_accumulate")
        origin = ["origin_"] * (not fetches or a["op"] != NO_OP)
        return [*origin, "target_", *["result_"] * fetches]
    both = ["send", "recv"]
    if name in ROOTED:
        if bystander(a):
            return []
        own = ["recv" if name.startswith("Scatter") else "send"]  # the side that every process has
        if not roots(a, me):
            return own
        without = len(a["comm"].groups) == 2 or IN_PLACE in (a.get("sendbuf"), a.get("recvbuf"))
        return [side for side in both if not (without and side in own)]
    return both[1:] if a.get("sendbuf") == IN_PLACE else both


COLLECTIVE_FORMS = {alias: form for name in COLLECTIVE for alias, form in forms(name).items()}
SEND_FORMS = {
    alias: form for name in ("Send", "Bsend", "Ssend", "Rsend") for alias, form in forms(name).items()
}

COMPLETE_ONE_BY_ONE = {"Waitany", "Waitsome", "Test", "Testany", "Testsome", "Testall"}
"""These depend on timing: the program logs which requests each call completed, and repeats until all are."""


@dataclass
class CompleteRequests:
    """The requests of one thread that were complete when created: their number and kinds."""

    out: int = 0
    comms: set[Communicator] = field(default_factory=set)  # of all made since none was out

    def made(self, comm: Communicator) -> None:
        self.out += 1
        self.comms.add(comm)

    def finished(self) -> None:
        # Another thread may have made it: then there may be nothing to take away.
        self.out = max(0, self.out - 1)
        if self.out == 0:
            self.comms.clear()


class RankModel:
    """Follows the calls of one rank; `cells` are the expected cells of its profile."""

    def __init__(self, world_rank: int) -> None:
        self.me = world_rank
        self.cells: dict[Key, Counts] = {}
        self.log: Iterator[str] = iter(())
        self.complete = CompleteRequests()

    def follow(self, calls: Sequence[Call], log: Iterator[str], complete: CompleteRequests) -> None:
        """Count `calls` of the thread that `complete` belongs to; `log` is the output of the program meanwhile."""
        self.log, self.complete = log, complete
        for call in calls:
            try:
                self.run(call)
            except StopIteration:
                raise AssertionError(
                    f"rank {self.me} logged fewer calls than its script has: {call}"
                ) from None

    # -- counting ---------------------------------------------------------------------------------------------

    def count(
        self, comms: set[Communicator], call: Call, size: int | None, sent: int = 0, received: int = 0
    ) -> Key:
        """Count one call and return its key."""
        op = "MPI_" + call.name.removesuffix("_c")
        bin = BIN_V if size is None else size_bin(size)
        # MPI_Sendrecv to MPI_PROC_NULL may receive a message.
        is_null = PROC_NULL in (call.args.get("dest"), call.args.get("target_rank"))
        if is_null and "endrecv" not in call.name:
            bin = BIN_NULL
        key = (frozenset(comm.name for comm in comms), op, bin)
        cell = self.cells.setdefault(key, Counts())
        cell.calls += 1
        cell.noncontiguous += any(datatype.leaves_gaps(n) for n, datatype in blocks(call, self.me))
        self.add_bytes(key, sent, received)
        return key

    def add_bytes(self, key: Key, sent: int, received: int) -> None:
        cell = self.cells.setdefault(key, Counts())
        cell.bytes_sent += sent
        cell.bytes_received += received

    def take(self, call: Call, size: int | None, sent: int, received: int, form: str) -> None:
        """Count a call that moves data; in its non-blocking and persistent forms it fills a request.

        `received` of a receive is known at completion; that of a collective when it starts.  Every request of a
        script completes, so the difference shows only for requests that are cancelled (`arrives` is 0 then).
        """
        comm = owner(call)
        if form == "now":
            self.count({comm}, call, size, sent, received)
            return
        request = call.args["request"]
        request.comm = comm
        request.persistent = form == "persistent"
        request.active = form == "request"
        request.sent_when_started = sent
        request.received_when_completed = received
        request.key = self.count({comm}, call, size, sent if request.active else 0)
        if request.active:
            request.shared = next(self.log) == "1"
        if request.shared:
            self.complete.made(comm)
            self.add_bytes(request.key, 0, received)
            request.received_when_completed = 0

    def start(self, request: Request) -> None:
        request.active = True
        assert request.key is not None
        self.add_bytes(request.key, request.sent_when_started, 0)

    def finish(self, request: Request) -> None:
        assert request.active and request.key is not None
        request.active = False
        self.add_bytes(request.key, 0, request.received_when_completed)
        if request.shared:
            self.complete.finished()

    def comms_of(self, requests: list[Request]) -> set[Communicator]:
        """Return the communicators that a completion call of these active requests counts under."""
        own = {r.comm for r in requests if not r.shared and r.comm is not None}
        return own or (set(self.complete.comms) if any(r.shared for r in requests) else set())

    # -- one call ---------------------------------------------------------------------------------------------

    def run(self, call: Call) -> None:
        name, a = call.name.removesuffix("_c"), call.args
        if name in COLLECTIVE_FORMS:
            base, form = COLLECTIVE_FORMS[name]
            rule = rooted if base in ROOTED else neighbor if base in NEIGHBOR else unrooted
            self.take(call, *rule(base, a, a["comm"], self.me), form)
        elif name in SEND_FORMS:
            size = block(a["count"], a["datatype"])
            self.take(call, size, 0 if a["dest"] == PROC_NULL else size, 0, SEND_FORMS[name][1])
        elif name in ("Recv", "Mrecv", "Irecv", "Imrecv", "Recv_init"):
            form = {"I": "request", "R": "now", "M": "now"}[name[0]] if name != "Recv_init" else "persistent"
            self.take(call, block(a["count"], a["datatype"]), 0, call.arrives, form)
        elif name in ("Sendrecv", "Isendrecv", "Sendrecv_replace", "Isendrecv_replace"):
            prefix = "" if "replace" in name else "send"
            size = block(a[prefix + "count"], a[prefix + ("type" if prefix else "datatype")])
            form = "request" if name[0] == "I" else "now"
            # What Isendrecv receives is not known: MPICH 4.0 leaves its status as it was.
            received = call.arrives if form == "now" else 0
            self.take(call, size, 0 if a["dest"] == PROC_NULL else size, received, form)
        elif name in ("Psend_init", "Precv_init"):
            size = a["partitions"] * block(a["count"], a["datatype"])
            sent = size if name == "Psend_init" and a["dest"] != PROC_NULL else 0
            self.take(call, size, sent, call.arrives, "persistent")
        elif name in RMA:
            self.one_sided(call, name)
        elif name.startswith("File_") and {"read", "write"} & set(
            name.replace("iread", "read").replace("iwrite", "write").split("_")
        ):
            self.input_output(call, name)
        elif name in ("Start", "Startall"):
            requests = a["requests"] if name == "Startall" else [a["request"]]
            self.count({r.comm for r in requests}, call, 0)
            for request in requests:
                self.start(request)
        elif name in ("Wait", "Waitall"):
            requests = a["requests"] if name == "Waitall" else [a["request"]]
            active = [r for r in requests if r.active]
            self.count(self.comms_of(active), call, 0)
            for request in active:
                self.finish(request)
        elif name in COMPLETE_ONE_BY_ONE:
            self.complete_one_by_one(call)
        elif name in ("Iprobe", "Improbe", "Win_test"):
            while True:
                self.count({owner(call)}, call, 0)
                if next(self.log) == "0":
                    break
        elif name in REQUEST_CALLS:
            request = a["request"]
            self.count(self.comms_of([request]), call, 0)
            if name == "Request_free" and request.active:
                request.received_when_completed = 0
                self.finish(request)
        elif name in ("Comm_idup", "Comm_idup_with_info"):
            self.take(call, 0, 0, 0, "request")
        else:
            self.count(owners(call), call, 0)

    def complete_one_by_one(self, call: Call) -> None:
        requests = call.args["requests"]
        while True:
            self.count(self.comms_of([r for r in requests if r.active]), call, 0)
            for index in next(self.log).split():
                self.finish(requests[int(index)])
            if not any(r.active for r in requests):
                break

    def one_sided(self, call: Call, name: str) -> None:
        a = call.args
        form = "request" if name[0] == "R" else "now"
        if name == "Compare_and_swap":
            size = a["datatype"].size
            sent, received = 2 * size, size
        elif name == "Fetch_and_op":
            size = a["datatype"].size
            sent, received = 0 if a["op"] == NO_OP else size, size
        else:
            origin = size = block(a["origin_count"], a["origin_datatype"])
            if name.endswith("et_accumulate"):
                sent = 0 if a["op"] == NO_OP else origin
                received = block(a["result_count"], a["result_datatype"])
            else:
                sent, received = (0, origin) if name in ("Get", "Rget") else (origin, 0)
        if a["target_rank"] == PROC_NULL:
            sent = received = 0
        self.take(call, size, sent, received, form)

    def input_output(self, call: Call, name: str) -> None:
        a = call.args
        if name.endswith("_end"):
            self.count({owner(call)}, call, 0)
            self.add_bytes(a["fh"].begun, 0, a["fh"].arrives)
            return
        size = block(a["count"], a["datatype"])
        sent, received = (size, 0) if "write" in name else (0, call.arrives)
        if name.endswith("_begin"):
            a["fh"].begun = self.count({owner(call)}, call, size, sent)
            a["fh"].arrives = received
        else:
            self.take(call, size, sent, received, "request" if "_i" in name else "now")


RMA = {
    *("Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"),
    *("Rput", "Rget", "Raccumulate", "Rget_accumulate"),
}
REQUEST_CALLS = {
    "Cancel",
    "Request_free",
    "Request_get_status",
    "Pready",
    "Pready_range",
    "Pready_list",
    "Parrived",
}


def makes_request(name: str) -> bool:
    """Return whether a procedure starts an operation and returns its request."""
    name = name.removesuffix("_c")
    if name.startswith("File_"):
        return name.startswith("File_i")
    if name in RMA:
        return name[0] == "R"
    form = COLLECTIVE_FORMS.get(name) or SEND_FORMS.get(name)
    return form[1] == "request" if form else name in ("Irecv", "Imrecv", "Isendrecv", "Isendrecv_replace")


def owners(call: Call) -> set[Communicator]:
    """Return the communicator a call counts under, as a set of one or none."""
    for argument in call.args.values():
        if isinstance(argument, Communicator):
            return {argument}
        if isinstance(argument, Made):
            return {argument.comm}
    return set()


def owner(call: Call) -> Communicator:
    (comm,) = owners(call)
    return comm
