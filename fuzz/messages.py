# SPDX-License-Identifier: Apache-2.0
"""Steps of point-to-point messages, and the completion of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuzz.model import PROC_NULL, Communicator, Made, Request, block
from fuzz.writer import BASES, DIVISOR, Writer, ints


class Messages(Writer):
    """Emits messages in all modes, and their completion."""

    def post_send(self, me: int, comm: Communicator, dest: int | str, tag: int, base: str, n: int) -> None:
        """Emit a send of a random mode, blocking or not."""
        small = n * BASES[base] <= 4096  # what one buffered send may take of the attached buffer
        mode = self.random.choice(["Send", "Send", "Ssend", "Bsend" if small else "Send"])
        self.send(me, mode, comm, dest, tag, base, n)

    def send(
        self, me: int, mode: str, comm: Communicator, dest: int | str, tag: int, base: str, n: int
    ) -> None:
        count, datatype = self.layout(base, n)
        args: dict[str, Any] = {"count": count, "datatype": datatype, "dest": dest, "tag": tag, "comm": comm}
        args["buf"] = count * datatype.extent
        if self.chance(0.5):
            args["request"] = self.request()
            self.pending[me].append(args["request"])
            mode = f"I{mode.lower()}"
        self.call(me, mode, **args)

    def receive_args(self, base: str, n: int, plain: bool = False) -> dict[str, Any]:
        """Return a buffer for `n` elements: of the sender's size, or longer, in any layout."""
        room = n if self.chance(0.5) else n + DIVISOR * self.random.randrange(9)
        count, datatype = self.layout(base, room, plain=plain)
        return {"buf": count * datatype.extent, "count": count, "datatype": datatype}

    def message(self) -> None:
        """Emit one message, perhaps to or from MPI_PROC_NULL."""
        comm = self.random.choice(self.comms)
        base, n, tag = self.base(), self.elements(), self.new_tag()
        source = self.random.choice(comm.everybody)
        if self.chance(0.12):
            self.post_send(source, comm, PROC_NULL, tag, base, n)
            return
        if self.chance(0.12):
            self.receive(source, comm, PROC_NULL, tag, base, n, 0)
            return
        dest = self.random.choice(comm.partners(source))
        to, source_rank = comm.partners(source).index(dest), comm.local(source).index(source)
        size = n * BASES[base]
        if dest == source or self.chance(0.2):
            self.ready_or_self(comm, source, dest, tag, base, n)
            return
        self.post_send(source, comm, to, tag, base, n)
        if self.chance(0.3):
            # A tag is used once, so any source is safe; of one source messages come in order, so is any tag.
            self.receive(dest, comm, "MPI_ANY_SOURCE", tag, base, n, size)
        elif self.chance(0.2):
            self.receive(dest, comm, source_rank, "MPI_ANY_TAG", base, n, size, blocking=True)
        else:
            self.receive(dest, comm, source_rank, tag, base, n, size)

    def ready_or_self(self, comm: Communicator, source: int, dest: int, tag: int, base: str, n: int) -> None:
        """Emit a message whose receive is posted before the send: to oneself, or in ready mode."""
        request = self.request()
        args = self.receive_args(base, n)
        args.update(source=comm.local(source).index(source), tag=tag, comm=comm, request=request)
        self.call(dest, "Irecv", arrives=n * BASES[base], **args)
        self.pending[dest].append(request)
        to = comm.partners(source).index(dest)
        if dest == source:
            self.send(source, "Send", comm, to, tag, base, n)
            return
        for me in comm.everybody:
            self.call(me, "Barrier", comm=comm)
        self.send(source, "Rsend", comm, to, tag, base, n)

    def receive(
        self,
        me: int,
        comm: Communicator,
        source: int | str,
        tag: int | str,
        base: str,
        n: int,
        arrives: int,
        blocking: bool = False,
    ) -> None:
        """Emit a receive of a random kind for a message that another step part sends."""
        args = self.receive_args(base, n)
        where: dict[str, Any] = {"source": source, "tag": tag, "comm": comm}
        kind = self.random.randrange(3 if source == PROC_NULL else 7)
        if blocking:
            kind = 0
        request = self.request()
        if kind in (2, 6):
            self.pending[me].append(request)
        if kind in (0, 1):
            self.call(me, "Recv", arrives, **args, **where)
        elif kind == 2:
            self.call(me, "Irecv", arrives, **args, **where, request=request)
        elif kind == 3:
            self.call(me, "Probe", **where)
            self.call(me, "Recv", arrives, **args, **where)
        elif kind == 4:
            self.code(me, "Iprobe", f"Iprobe({source}, {tag}, {comm.c});", comm=comm)
            self.call(me, "Recv", arrives, **args, **where)
        else:
            message = Made("message", comm)
            if kind == 5:
                self.call(me, "Mprobe", **where, message=message)
                self.call(me, "Mrecv", arrives, **args, message=message)
            else:
                self.code(me, "Improbe", f"Improbe({source}, {tag}, {comm.c}, &{message.c});", comm=comm)
                self.call(me, "Imrecv", arrives, **args, message=message, request=request)

    def shift(self) -> None:
        """Let every process of a communicator send to one process and receive from another, perhaps MPI_PROC_NULL."""
        comm = self.intra()
        group = comm.groups[0]
        base, tag, step = self.base(), self.new_tag(), self.random.randrange(len(group))
        around = self.chance(0.5)
        replace = self.chance(0.4)
        lengths = [self.elements()] * len(group) if replace else [self.elements() for _ in group]
        # MPICH 4.0 crashes in Isendrecv of derived datatypes, and with MPI_PROC_NULL.
        plain = self.mpi4 and around and self.chance(0.4)
        both = self.layout(base, lengths[0], plain=plain)
        for rank, me in enumerate(group):
            to, source = (rank + step) % len(group), (rank - step) % len(group)
            dest: int | str = to if around or to >= rank else PROC_NULL
            origin: int | str = source if around or source <= rank else PROC_NULL
            arrives = 0 if origin == PROC_NULL else lengths[source] * BASES[base]
            args: dict[str, Any] = {
                "dest": dest,
                "source": origin,
                "sendtag": tag,
                "recvtag": tag,
                "comm": comm,
            }
            if replace:
                count, datatype = both
                args.update(buf=count * datatype.extent, count=count, datatype=datatype)
            else:
                count, datatype = self.layout(base, lengths[rank], plain=plain)
                args.update(sendbuf=count * datatype.extent, sendcount=count, sendtype=datatype)
                got = self.receive_args(base, lengths[source], plain)
                args.update(recvbuf=got["buf"], recvcount=got["count"], recvtype=got["datatype"])
            name = "endrecv" + "_replace" * replace
            if self.mpi4 and plain:
                args["request"] = self.request()
                self.pending[me].append(args["request"])
                self.call(me, "Is" + name, arrives, **args)
            else:
                self.call(me, "S" + name, arrives, **args)

    def cancelled(self) -> None:
        comm = self.random.choice(self.comms)
        me = self.random.choice(comm.everybody)
        request = self.request()
        args = self.receive_args(self.base(), self.elements())
        self.call(
            me, "Irecv", **args, source="MPI_ANY_SOURCE", tag=self.new_tag(), comm=comm, request=request
        )
        self.code(me, "Cancel", f"MPI_Cancel(&{request.c});", request=request)
        self.call(me, "Wait", request=request)

    def forgotten(self) -> None:
        """Free the request of a message to oneself that is under way."""
        comm = self.random.choice([c for c in self.comms if len(c.groups) == 1])
        me = self.random.choice(comm.groups[0])
        base, n, tag, rank = self.base(), self.elements(), self.new_tag(), comm.groups[0].index(me)
        incoming, outgoing = self.request(), self.request()
        where: dict[str, Any] = {"tag": tag, "comm": comm}
        args = self.receive_args(base, n)
        self.call(me, "Irecv", n * BASES[base], **args, source=rank, **where, request=incoming)
        self.pending[me].append(incoming)
        count, datatype = self.layout(base, n)
        args = {"buf": count * datatype.extent, "count": count, "datatype": datatype}
        self.call(me, self.random.choice(["Isend", "Issend"]), **args, dest=rank, **where, request=outgoing)
        self.code(me, "Request_free", f"MPI_Request_free(&{outgoing.c});", request=outgoing)

    def persistent_messages(self) -> None:
        """Emit persistent sends and receives, started together more than once, completed together."""
        requests: dict[int, list[Request]] = {me: [] for me in self.world}
        for _ in range(self.random.randrange(1, 4)):
            comm = self.random.choice(self.comms)
            source = self.random.choice(comm.everybody)
            dest = self.random.choice(comm.partners(source))
            base, n, tag = self.base(), self.elements(), self.new_tag()
            where: dict[str, Any] = {"tag": tag, "comm": comm}
            count, datatype = self.layout(base, n)
            request = self.request()
            requests[source].append(request)
            self.call(
                source,
                self.random.choice(["Send_init", "Ssend_init"]),
                buf=count * datatype.extent,
                count=count,
                datatype=datatype,
                dest=comm.partners(source).index(dest),
                **where,
                request=request,
            )
            request = self.request()
            requests[dest].append(request)
            args = self.receive_args(base, n)
            args["source"] = comm.local(source).index(source)
            self.call(dest, "Recv_init", n * BASES[base], **args, **where, request=request)
        self.rounds(requests, self.random.randrange(1, 4))

    def rounds(
        self,
        requests: dict[int, list[Request]],
        rounds: int,
        after_start: Callable[[], None] | None = None,
        without: str = "",
    ) -> None:
        """Start persistent requests and complete them, `rounds` times, then free them."""
        for _ in range(rounds):
            for me, mine in requests.items():
                if len(mine) == 1 or self.chance(0.3):
                    for request in mine:
                        self.call(me, "Start", request=request)
                else:
                    self.complete_call(me, "Startall", mine)
            if after_start is not None:
                after_start()
            for me, mine in requests.items():
                self.complete(me, mine, without)
        for me, mine in requests.items():
            for request in mine:
                self.code(me, "Request_free", f"MPI_Request_free(&{request.c});", request=request)

    def partitioned(self) -> None:
        if len(self.world) < 2:
            return
        comm = self.intra(2)
        source, dest = self.random.sample(comm.groups[0], 2)
        partitions, n = self.random.randrange(1, 4), self.random.randrange(50)
        base, tag = self.base(), self.new_tag()
        # MPICH 4.0 hangs now and then when the datatype is a derived one.
        count, datatype = self.layout(base, n, plain=True)
        args: dict[str, Any] = {"buf": partitions * count * datatype.extent, "partitions": partitions}
        args.update(count=count, datatype=datatype, tag=tag, comm=comm)
        there, here = self.request(), self.request()
        self.call(source, "Psend_init", **args, dest=comm.groups[0].index(dest), request=there)
        arrives = partitions * block(count, datatype)
        self.call(dest, "Precv_init", arrives, **args, source=comm.groups[0].index(source), request=here)

        def ready() -> None:
            if self.chance(0.5):
                text = f"MPI_Pready_range(0, {partitions - 1}, {there.c});"
                self.code(source, "Pready_range", text, request=there)
            else:
                for part in range(partitions):
                    self.code(source, "Pready", f"MPI_Pready({part}, {there.c});", request=there)
            self.code(dest, "Parrived", f"MPI_Parrived({here.c}, 0, &flag);", request=here)

        # MPICH 4.0 returns MPI_ERR_IN_STATUS from a Testall here, too.
        self.rounds({source: [there], dest: [here]}, self.random.randrange(1, 4), ready, without="Testall")

    def complete_some(self) -> None:
        """Let one rank complete some of its pending requests, of any communicators."""
        me = self.random.choice(self.world)
        n = min(len(self.pending[me]), self.random.randrange(1, 7))
        self.complete(me, self.random.sample(self.pending[me], n))

    def complete_all(self) -> None:
        for me in self.world:
            while self.pending[me]:
                self.complete(me, self.pending[me][:8])

    def complete(self, me: int, requests: list[Request], without: str = "") -> None:
        """Complete `requests` by one procedure, not `without`; null requests may stand among them."""
        self.pending[me] = [r for r in self.pending[me] if r not in requests]
        if len(requests) == 1 and self.chance(0.6):
            if self.chance(0.2) and self.get_status:
                text = f"MPI_Request_get_status({requests[0].c}, &flag, MPI_STATUS_IGNORE);"
                self.code(me, "Request_get_status", text, request=requests[0])
            if self.chance(0.6):
                self.call(me, "Wait", request=requests[0])
            else:
                self.complete_call(me, "Test", requests)
            return
        with_null = requests + [Request("null")] * (self.random.randrange(3) if self.chance(0.3) else 0)
        self.random.shuffle(with_null)
        names = ["Waitall", "Waitall", "Waitany", "Waitsome", "Testall", "Testany", "Testsome"]
        self.complete_call(me, self.random.choice([name for name in names if name != without]), with_null)

    def complete_call(self, me: int, name: str, requests: list[Request]) -> None:
        """Emit a call on an array of requests: they are gathered into one and put back."""
        which = [-1 if r.c == "null" else int(r.c[2:-1]) for r in requests]
        live = [i for i, index in enumerate(which) if index >= 0]
        n, array = len(which), ints(which)
        if name in ("Waitall", "Startall"):
            statuses = (
                "" if name == "Startall" else self.random.choice([", statuses", ", MPI_STATUSES_IGNORE"])
            )
            text = f"gather({n}, {array}); MPI_{name}({n}, row{statuses}); scatter({n}, {array});"
        else:
            more = f", {ints(live)}" if name == "Testall" else ""
            text = f"{name}({n}, {array}, {len(live)}{more});"
        self.code(me, name, text, requests=requests)
