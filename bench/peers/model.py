# SPDX-License-Identifier: Apache-2.0
"""What a correct profile contains, from sources that share nothing with any tool.

- Calls of the programs of bench/apps: worked out by hand (bench/apps.py).
- Their bytes and communicators: witness.c, a library that adds up the arguments of the calls; its calls must be those
  worked out by hand.
- Listing 1: worked out here.
- Random programs: the model of fuzz/model.py, from the script of each rank and from the program's own logs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.apps import PROGRAMS
from fuzz.model import BIN_V, Call, Communicator, CompleteRequests, Key, RankModel
from fuzz.program import Program, log_of

IGNORED = frozenset(
    ("MPI_Comm_rank", "MPI_Comm_size", "MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Wtime")
)
"""Procedures that are not compared: they neither communicate nor wait, and some tools leave them out on purpose."""


@dataclass
class Volume:
    """Calls, and bytes as a tool may count them; `message` is None if the model does not know it."""

    calls: int = 0
    sent: int = 0
    received: int = 0
    message: int | None = 0

    def add(self, calls: int, sent: int, received: int, message: int | None) -> None:
        """Add another count."""
        self.calls += calls
        self.sent += sent
        self.received += received
        self.message = None if self.message is None or message is None else self.message + message

    def readings(self) -> dict[str, int]:
        """Return the numbers of bytes that a tool may mean."""
        found = {"sent": self.sent, "received": self.received, "sent and received": self.sent + self.received}
        return found if self.message is None else {**found, "of the message": self.message}


@dataclass
class Truth:
    """What a run must have.

    Attributes
    ----------
    total : by procedure; all ranks
    comms : members -> procedure -> calls of all ranks, for the procedures that have one communicator and move data
    local : as `comms`, for each rank
    large : by procedure, the calls of its large-count form; they are in `total`, too
    knows_bytes : whether `total` has bytes
    """

    total: dict[str, Volume] = field(default_factory=lambda: defaultdict(Volume))
    comms: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    local: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    large: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    knows_bytes: bool = True

    def count(self, op: str, comm: str, ranks: Iterable[int], volume: Volume) -> None:
        """Count what each of these ranks does."""
        for rank in ranks:
            self.total[op].add(volume.calls, volume.sent, volume.received, volume.message)
            self.attribute(op, comm, rank, volume.calls)

    def attribute(self, op: str, comm: str, rank: int, calls: int) -> None:
        """Count calls of a rank on a communicator."""
        self.comms[comm][op] += calls
        self.local[f"{rank}/{comm}"][op] += calls


class WitnessError(Exception):
    """The witness counted other calls than those worked out by hand."""


def of_listing1(ranks: int) -> Truth:
    """Return what Listing 1 must have: 30 sums of a number on all ranks, 100 of two doubles on each half."""
    found = Truth()
    found.count("MPI_Allreduce", "world", range(ranks), Volume(30, 120, 120, 120))
    for half in (range(ranks // 2), range(ranks // 2, ranks)):
        found.count("MPI_Allreduce", f"half {half[0]}", half, Volume(100, 1600, 1600, 1600))
    for op in ("MPI_Comm_split", "MPI_Comm_free"):
        found.total[op].calls = ranks
    return found


def of_app(name: str, ranks: int, arguments: Iterable[int], witnessed: Iterable[Path]) -> Truth:
    """Return what a program of bench/apps must have, from paper and from the files of the witness.

    Raises
    ------
    WitnessError
        The two differ.
    """
    found = Truth()
    for path in witnessed:
        for line in path.read_text().splitlines():
            op, comm, _size, *numbers = line.split()
            calls, message, sent, received = map(int, numbers)
            found.count(op, comm, [int(path.suffix[1:])], Volume(calls, sent, received, message))
    paper = PROGRAMS[name].calls(ranks, *arguments)
    for op, volume in found.total.items():
        if paper[op] != volume.calls:
            raise WitnessError(f"{name}: {op} {volume.calls} calls, {paper[op]} on paper")
    # The Fortran interface of Open MPI does not call the C functions that the witness defines.
    found.knows_bytes = name != "fortran_loop"
    for op, calls in paper.items():
        found.total[op].calls = calls
    return found


class Sized(RankModel):
    """The model of a rank that also adds up message sizes and the communicator of each call."""

    def __init__(self, world_rank: int, truth: Truth) -> None:
        super().__init__(world_rank)
        self.truth = truth
        self.messages: dict[str, int | None] = defaultdict(int)

    def count(
        self, comms: set[Communicator], call: Call, size: int | None, sent: int = 0, received: int = 0
    ) -> Key:
        """Count one call, as the model of the fuzzer does, and note its communicator and message size."""
        op = "MPI_" + call.name.removesuffix("_c")
        self.truth.large[op] += call.name.endswith("_c")
        before = self.messages[op]
        self.messages[op] = None if size is None or before is None else before + size
        if len(comms) == 1 and op in ATTRIBUTED:
            (comm,) = comms
            self.truth.attribute(op, comm.name, self.me, 1)
        return super().count(comms, call, size, sent, received)


ATTRIBUTED = frozenset(
    f"MPI_{name}"
    for name in (
        "Send", "Ssend", "Rsend", "Bsend", "Isend", "Issend", "Irsend", "Ibsend", "Recv", "Irecv", "Sendrecv", "Bcast",
        "Barrier", "Reduce", "Allreduce", "Scan", "Exscan", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather",
        "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw", "Reduce_scatter", "Reduce_scatter_block", "Ibcast", "Ibarrier",
        "Ireduce", "Iallreduce", "Iscan", "Iexscan", "Igather", "Igatherv", "Iscatter", "Iscatterv", "Iallgather",
        "Iallgatherv", "Ialltoall", "Ialltoallv", "Ialltoallw", "Ireduce_scatter", "Ireduce_scatter_block",
        "Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw",
        "Ineighbor_allgather", "Ineighbor_allgatherv", "Ineighbor_alltoall", "Ineighbor_alltoallv",
        "Ineighbor_alltoallw", "Put", "Get", "Accumulate", "Rput", "Rget", "Raccumulate",
    )
)  # fmt: skip
"""Procedures whose communicator is compared: messages and collectives."""


def of_random(program: Program, folder: Path) -> Truth:
    """Return what a random program must have, from its scripts and the logs that it wrote into `folder`."""
    found = Truth()
    for me in range(program.ranks):
        model = Sized(me, found)
        logs = [log_of(folder / f"log.{me}.{script.strand}") for script in program.scripts]
        threads = [CompleteRequests() for _ in program.scripts]
        for parts in program.parts:
            for part in parts:
                model.follow(part.calls[me], logs[part.strand], threads[part.thread])
        for (_, op, size_bin), counts in model.cells.items():
            message = None if size_bin == BIN_V else 0
            found.total[op].add(counts.calls, counts.bytes_sent, counts.bytes_received, message)
        for op, message in model.messages.items():
            volume = found.total[op]
            volume.message = None if volume.message is None or message is None else volume.message + message
    return found


def mapping(truth: Truth) -> Mapping[str, Volume]:
    """Return the procedures that are compared."""
    return {op: volume for op, volume in truth.total.items() if op not in IGNORED and volume.calls}
