# SPDX-License-Identifier: Apache-2.0
"""A year of a computing centre, made up: rows of jobs whose truth is known, to try a dataset and to test alerts.

The centre has 64 nodes of 16 processes each. Each code has a few inputs; a run takes the time of its input, up to noise, of
which all jobs of a day share a part. Some runs are disturbed and take longer. At
weekends there are fewer jobs, and these are a little faster, as the network is quiet. The number of jobs grows over the year.
One node computes slower from a day on, and one update of the MPI library makes one code slower.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from commlens.fleet._dataset import TABLES
from commlens.fleet.job import Rows, month_of
from commlens.fleet.pseudonyms import Pseudonyms

CLUSTER = "made-up"
NODES, PER_NODE = 64, 16
BEGIN = datetime(2026, 1, 1)
DAYS = 365
GROWTH = 0.3  # more jobs a day at the end of the year than at its beginning
WEEKEND_JOBS, WEEKEND_TIME = 0.5, 0.96
NOISE = 0.02  # of the time of a run, and of the time outside MPI of a node
OF_DAY = 0.006  # noise that all jobs of a day share
DISTURBED, MOST_DISTURBED = 0.05, 1.6  # part of the runs that take longer, by up to this factor
AT_ONCE = 500
NS = 10**9


@dataclass(frozen=True)
class Truth:
    """What is wrong in the year, if anything is.

    Attributes
    ----------
    slow_node : str
        Node that computes slower from day slow_from on by factor slow; empty: none does.
    slower_code : str
        Code whose runs take longer from day update on by factor cost; empty: none.
    """

    slow_node: str = "n017"
    slow_from: int = 200
    slow: float = 1.15
    slower_code: str = "LAMMPS"
    update: int = 120
    cost: float = 1.08

    def update_date(self) -> datetime:
        """Return the day of the update."""
        return BEGIN + timedelta(days=self.update)

    def slow_date(self) -> datetime:
        """Return the day from which on the node is slow."""
        return BEGIN + timedelta(days=self.slow_from)


QUIET = Truth(slow_node="", slower_code="")


@dataclass(frozen=True)
class Kind:
    """A code of the centre.

    Attributes
    ----------
    seconds : float
        Time of its first input; the others take longer.
    in_mpi : float
        Share of MPI.
    waiting : float
        Share of waiting in it.
    balance : float
        Load balance.
    operations : tuple
        Procedure, class, size bin, calls of a process, share of the time in MPI, on sub-communicators.
    """

    name: str
    program: str
    weight: int
    seconds: float
    in_mpi: float
    waiting: float
    balance: float
    pattern: str
    operations: tuple[tuple[str, str, int, int, float, bool], ...]


ALLREDUCE, P2P = ("MPI_Allreduce", "collective"), ("MPI_Isend", "p2p")
WAITALL, BCAST, BARRIER = (
    ("MPI_Waitall", "completion"),
    ("MPI_Bcast", "collective"),
    ("MPI_Barrier", "collective"),
)
ALLTOALL = ("MPI_Alltoall", "collective")
KINDS = (
    Kind(
        *("LAMMPS", "lmp", 5, 1800.0, 0.22, 0.4, 0.93, "nearest neighbour"),
        (
            (*P2P, 14, 90_000, 0.2, True),
            (*WAITALL, 14, 90_000, 0.5, True),
            (*ALLREDUCE, 4, 9_000, 0.3, False),
        ),
    ),
    Kind(
        *("Quantum ESPRESSO", "pw.x", 4, 3600.0, 0.35, 0.3, 0.9, "all-to-all"),
        (
            (*ALLTOALL, 17, 20_000, 0.6, True),
            (*ALLREDUCE, 12, 40_000, 0.3, True),
            (*BCAST, 12, 9_000, 0.1, False),
        ),
    ),
    Kind(
        *("CP2K", "cp2k.psmp", 3, 2700.0, 0.3, 0.35, 0.88, "none"),
        (
            (*ALLTOALL, 17, 9_000, 0.5, True),
            (*P2P, 20, 5_000, 0.2, False),
            (*ALLREDUCE, 4, 50_000, 0.3, False),
        ),
    ),
    Kind(
        *("OpenFOAM", "simpleFoam", 4, 5400.0, 0.45, 0.7, 0.7, "nearest neighbour"),
        (
            (*ALLREDUCE, 4, 400_000, 0.6, False),
            (*P2P, 12, 200_000, 0.15, False),
            (*WAITALL, 12, 200_000, 0.25, False),
        ),
    ),
    Kind(
        *("own_cfd", "own_cfd", 2, 900.0, 0.55, 0.6, 0.6, "ring"),
        ((*BARRIER, 0, 200_000, 0.5, False), (*P2P, 5, 2_000_000, 0.5, False)),
    ),
)
GROUPS = ("chemistry", "physics", "engineering")


class Centre:
    """Makes the jobs of a year, one after the other.

    Parameters
    ----------
    jobs : int
        About how many.
    seed : int
        The same seed makes the same jobs.
    """

    def __init__(self, jobs: int, truth: Truth, seed: int):
        self._jobs, self._truth = jobs, truth
        self._chance = random.Random(seed)
        self._seed = seed
        self._number = 0

    def starts(self) -> Iterator[datetime]:
        """Yield the times at which jobs start."""
        weights = []
        for day in range(DAYS):
            is_weekend = (BEGIN + timedelta(days=day)).weekday() >= 5
            weights.append((1 + GROWTH * day / DAYS) * (WEEKEND_JOBS if is_weekend else 1))
        total = sum(weights)
        for day, weight in enumerate(weights):
            expected = self._jobs * weight / total
            count = int(expected) + (self._chance.random() < expected % 1)
            seconds = sorted(self._chance.randrange(86400) for _ in range(count))
            yield from (BEGIN + timedelta(days=day, seconds=second) for second in seconds)

    def job(self, start: datetime) -> Rows:
        """Return the rows of a job."""
        chance, truth = self._chance, self._truth
        kind = chance.choices(KINDS, [kind.weight for kind in KINDS])[0]
        which = chance.randrange(4)
        count = (1, 2, 4, 8)[(which + chance.randrange(2)) % 4]
        first = chance.randrange(NODES - count + 1)
        nodes = [f"n{first + i:03d}" for i in range(count)]
        day = (start - BEGIN).days
        speeds = {node: chance.gauss(1, NOISE / 2) for node in nodes}
        if truth.slow_node in speeds and day >= truth.slow_from:
            speeds[truth.slow_node] *= truth.slow
        seconds = kind.seconds * (1 + which) / count**0.8 * chance.lognormvariate(0, NOISE)
        if chance.random() < DISTURBED:
            seconds *= chance.uniform(1, MOST_DISTURBED)
        seconds *= random.Random(f"{self._seed} {day}").lognormvariate(0, OF_DAY)
        seconds *= WEEKEND_TIME if start.weekday() >= 5 else 1
        if kind.name == truth.slower_code and day >= truth.update:
            seconds *= truth.cost
        # The others wait for the slowest node.
        seconds *= 1 + (1 - kind.in_mpi) * max(0.0, max(speeds.values()) - 1 - 2 * NOISE)
        self._number += 1
        identity = Pseudonyms().number("made up", self._seed, self._number)
        return _Rows(self._number, identity, kind, which, start, nodes, speeds, seconds).rows()


class _Rows:
    """The rows of one made-up job."""

    def __init__(
        self,
        number: int,
        identity: int,
        kind: Kind,
        which: int,
        start: datetime,
        nodes: list[str],
        speeds: dict[str, float],
        seconds: float,
    ):
        self.number, self.identity, self.kind, self.which, self.start = number, identity, kind, which, start
        self.nodes, self.speeds, self.elapsed = nodes, speeds, int(seconds * NS)
        self.ranks = len(nodes) * PER_NODE
        self.app = self.elapsed * self.ranks
        self.mpi = int(self.app * kind.in_mpi)
        self.month = month_of(start)

    def _row(self, table: str, **values: Any) -> tuple[Any, ...]:
        """Return a row; columns without a value are 0, empty or NULL."""
        values.update(
            job=self.identity, cluster=CLUSTER, month=self.month, code=self.kind.name, start=self.start
        )
        empty = {"TEXT": "", "BIGINT": 0, "INTEGER": 0, "DOUBLE": 0.0, "TIMESTAMP": None}
        return tuple(
            values.get(column.name, None if column.null else empty[column.type])
            for column in TABLES[table].columns
        )

    def rows(self) -> Rows:
        """Return the rows of all tables."""
        operations = [self._operation(i) for i in range(len(self.kind.operations))]
        found: Rows = {name: [] for name in TABLES}
        found["operation"] = operations
        found["job"] = [self._job()]
        found["node"] = [self._node(node) for node in self.nodes]
        found["comm_family"] = [self._family(is_sub) for is_sub in (False, True)]
        found["region"] = [self._region()]
        found["matrix"] = [self._matrix()]
        found["site"] = [self._site(i) for i in range(len(self.kind.operations))]
        found["setting"] = [
            self._row("setting", source="machine", name="processor", value="made up", ranks=self.ranks)
        ]
        if self.kind.name == "own_cfd":
            text = "MPI_Barrier takes half of the time in MPI"
            found["finding"] = [
                self._row("finding", number=1, rule="barriers", op="MPI_Barrier", share=0.275, text=text)
            ]
        return found

    def _time(self, share: float) -> int:
        return int(self.mpi * share)

    def _sub_time(self) -> int:
        return sum(self._time(share) for *_, share, is_sub in self.kind.operations if is_sub)

    def _efficiency(self) -> dict[str, float]:
        parallel = 1 - self.kind.in_mpi
        balance = self.kind.balance
        return {
            "load_balance": balance,
            "communication_efficiency": parallel / balance,
            "parallel_efficiency": parallel,
        }

    def _job(self) -> tuple[Any, ...]:
        kind = self.kind
        return self._row(
            "job",
            input=f"{kind.program}-{self.which}-{self.ranks}",
            program=kind.program,
            owner=f"user{(self.number * 7 + self.which) % 23:02d}",
            owner_group=GROUPS[KINDS.index(kind) % len(GROUPS)],
            queue="large" if len(self.nodes) > 2 else "small",
            job_id=str(100_000 + self.number),
            command_line=f"{kind.program} -in input{self.which}",
            directory="/scratch/made-up",
            profile=f"/profiles/{self.month}/{self.number}.db",
            file=self.identity,
            ranks=self.ranks,
            ranks_collected=self.ranks,
            nodes=len(self.nodes),
            elapsed_ns=self.elapsed,
            app_ns=self.app,
            mpi_ns=self.mpi,
            waiting_ns=sum(int(self._time(share) * kind.waiting) for *_, share, _ in kind.operations),
            waiting_of_ns=sum(self._time(share) for *_, share, _ in kind.operations),
            sub_ns=self._sub_time(),
            calls=sum(calls for *_, calls, _, _ in kind.operations) * self.ranks,
            own_ns=self.app // 500,
            mpi_library="Open MPI v4.1.4",
            mpi_family="openmpi",
            thread_level="funneled",
            detail="full",
            state="finalized",
            schema_version=16,
            commlens_version="0.1.0",
            **self._efficiency(),
        )

    def _operation(self, place: int) -> tuple[Any, ...]:
        op, group, size_bin, calls, share, is_sub = self.kind.operations[place]
        time, is_receive = self._time(share), op == "MPI_Waitall"
        each = time // self.ranks
        volume = calls * self.ranks * ((1 << size_bin) - 1 if size_bin else 0)
        return self._row(
            "operation",
            **{
                "family": 2 if is_sub else 1,
                "size": PER_NODE if is_sub else self.ranks,
                "is_sub": int(is_sub and len(self.nodes) > 1),
                "op": op,
                "class": group,
                "bin": size_bin,
                "calls": calls * self.ranks,
                "time_ns": time,
                "call_max_ns": 40 * each // calls,
                "ranks": self.ranks,
                "waiting_ns": int(time * self.kind.waiting),
                "bytes_sent": 0 if is_receive else volume,
                "bytes_received": volume,
            },
            **{
                f"rank_{q}_ns": int(each * f)
                for q, f in (("min", 0.6), ("p25", 0.9), ("p50", 1), ("p75", 1.1), ("max", 1.5))
            },
        )

    def _family(self, is_sub: bool) -> tuple[Any, ...]:
        parts = [self._time(share) for *_, share, of_sub in self.kind.operations if of_sub == is_sub]
        calls = [calls for *_, calls, _, of_sub in self.kind.operations if of_sub == is_sub]
        size = PER_NODE if is_sub else self.ranks
        return self._row(
            "comm_family",
            family=2 if is_sub else 1,
            lineage="MPI_COMM_WORLD" + f" > MPI_Comm_split at {self.kind.program}+0x1234" * is_sub,
            kind="intra",
            creator="MPI_Comm_split" * is_sub,
            size_min=size,
            size_max=size,
            communicators=len(self.nodes) if is_sub else 1,
            is_sub=int(is_sub and len(self.nodes) > 1),
            calls=sum(calls) * self.ranks,
            time_ns=sum(parts),
            waiting_ns=int(sum(parts) * self.kind.waiting),
        )

    def _node(self, node: str) -> tuple[Any, ...]:
        usual = sorted(self.speeds.values())[len(self.speeds) // 2]
        app, outside = self.elapsed * PER_NODE, self.elapsed * PER_NODE * (1 - self.kind.in_mpi)
        is_slowest = self.speeds[node] == max(self.speeds.values())
        return self._row(
            "node",
            node=node,
            nodes=len(self.nodes),
            ranks=PER_NODE,
            app_ns=app,
            mpi_ns=max(0, app - int(outside * self.speeds[node])),
            slowness=self.speeds[node] / usual if len(self.nodes) > 1 else None,
            last=100 if is_slowest else 1,
            late_ns=int(app * max(0.0, self.speeds[node] - 1)),
        )

    def _region(self) -> tuple[Any, ...]:
        return self._row(
            "region", kind="program", ranks=self.ranks, calls=self.ranks, time_ns=self.app, mpi_ns=self.mpi,
            rank_max_ns=self.elapsed, **self._efficiency(),
        )  # fmt: skip

    def _matrix(self) -> tuple[Any, ...]:
        messages = (
            sum(calls for op, _, _, calls, _, _ in self.kind.operations if op == "MPI_Isend") * self.ranks
        )
        pairs = self.ranks * 6
        return self._row(
            "matrix", pattern=self.kind.pattern, pattern_share=1.0, pairs=pairs, messages=max(messages, pairs),
            bytes=max(messages, pairs) * 4096, locality=1.0 if len(self.nodes) == 1 else 0.55,
            heaviest_destination=1, heaviest_share=1 / pairs,
        )  # fmt: skip

    def _site(self, place: int) -> tuple[Any, ...]:
        op, _, _, calls, share, _ = self.kind.operations[place]
        site = f"{self.kind.program}+0x{0x1000 + 16 * place:x}"
        return self._row("site", site=site, op=op, calls=calls * self.ranks, time_ns=self._time(share))


def batches(jobs: int, truth: Truth, seed: int = 0) -> Iterator[Rows]:
    """Yield the rows of a year, some hundred jobs at a time."""
    centre = Centre(jobs, truth, seed)
    batch: Rows = {name: [] for name in TABLES}
    for start in centre.starts():
        for table, rows in centre.job(start).items():
            batch[table] += rows
        if len(batch["job"]) >= AT_ONCE:
            yield batch
            batch = {name: [] for name in TABLES}
    if batch["job"]:
        yield batch
