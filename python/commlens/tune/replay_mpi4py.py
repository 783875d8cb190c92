# SPDX-License-Identifier: Apache-2.0
"""Does what replay.c does, where there is no compiler.

    mpirun -n 8 python -m commlens.tune.replay_mpi4py PLAN CSV SECONDS [ROUND CANDIDATE CASE,CASE...]

It reads the same plan and writes the same times. Python needs some microseconds for each call, which are in all times.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import mpi4py.MPI
import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from commlens.tune.measurements import FAILED, FIRST

MOST_REPETITIONS = 40
FIRST_ROUNDS, JOB_BATCHES = 3, 4
FIRST_BATCH, BATCH = 1_500_000, 6_000_000  # ns
RESERVE = 100_000  # ns of a window
LINE, POOL = 64, 16 << 20
PINGS = 20
SHORT_COMPUTING, SHORT_MESSAGE = 1000, 1024  # ns; bytes
LEAST_CHANGE = 0.03

WORLD = MPI.COMM_WORLD
FROM_ROOT = ("bcast", "scatter", "scatterv")
TO_ROOT = ("reduce", "gather", "gatherv")
PREFIX = ("scan", "exscan")

Bytes = NDArray[np.uint8]
Times = NDArray[np.int64]


@dataclass
class Candidate:
    """An algorithm: what chooses it, and what is known about it. Names as in replay_plan.h."""

    name: str
    settings: list[tuple[str, int]]
    comm: MPI.Intracomm | None = None
    window: int = 0
    last: float = 0.0
    is_done: bool = False
    ratios: list[float] = field(default_factory=list)


@dataclass
class Layout:
    """The communicators that are active at the same time: mine, and the number of members of all."""

    comm: MPI.Intracomm | None
    members: int


@dataclass
class Case:
    """A collective with its candidates."""

    collective: str
    layout: Layout
    size: int
    computing: int
    blocks: list[tuple[int, int, int]]  # rank, bytes sent, bytes received: of my communicator
    candidates: list[Candidate] = field(default_factory=list)
    call: Callable[[MPI.Intracomm], Any] = lambda _: None
    sent: Bytes = field(default_factory=lambda: np.zeros(1, np.uint8))
    received: Bytes = field(default_factory=lambda: np.zeros(1, np.uint8))

    @property
    def is_for_all(self) -> bool:
        """Whether nobody leaves a call before all have entered."""
        return self.collective not in (*FROM_ROOT, *TO_ROOT, *PREFIX)

    @property
    def is_back_to_back(self) -> bool:
        """Whether the calls of a batch share a window: see replay_calls.h."""
        return 0 <= self.size <= SHORT_MESSAGE and self.computing < SHORT_COMPUTING and self.is_for_all


@dataclass
class Plan:
    """What the file says."""

    seed: int
    is_call: bool
    exclude: str
    cases: list[Case]


def fail(text: str) -> None:
    """End all processes with a line that replay.py shows, from a file beside the plan or from the job's output."""
    sys.stderr.write(f"commlens-replay: {text}\n")
    sys.stderr.flush()
    if len(sys.argv) > 1:
        with suppress(OSError), Path(f"{sys.argv[1]}{FAILED}").open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
    WORLD.Abort(3)


def read_plan(path: str) -> Plan:
    """Read the words of a plan; make its communicators."""
    words = iter(Path(path).read_text(encoding="utf-8").split())
    if next(words) != FIRST:
        fail(f"{path}: no plan of this version")
    facts = {next(words): next(words) for _ in range(4)}
    if int(facts["processes"]) != WORLD.size:
        fail(f"{WORLD.size} processes were started, but the profile has {facts['processes']}")
    next(words)
    layouts = [_read_layout(words) for _ in range(int(next(words)))]
    next(words)
    cases = [_read_case(words, layouts) for _ in range(int(next(words)))]
    return Plan(int(facts["seed"]), facts["set"] == "call", facts["exclude"], cases)


def _read_layout(words: Iterator[str]) -> Layout:
    next(words)
    color, position, members = MPI.UNDEFINED, 0, 0
    for i in range(int(next(words))):
        next(words)
        ranks = [int(next(words)) for _ in range(int(next(words)))]
        members += len(ranks)
        if WORLD.rank in ranks:
            color, position = i, ranks.index(WORLD.rank)
    made = WORLD.Split(color, position)
    return Layout(made if isinstance(made, MPI.Intracomm) and made != MPI.COMM_NULL else None, members)


def _read_case(words: Iterator[str], layouts: list[Layout]) -> Case:
    next(words)
    collective, at, size, computing = next(words), int(next(words)), int(next(words)), int(next(words))
    for _ in range(4):
        next(words)
    blocks: list[tuple[int, int, int]] = []
    if size < 0:
        next(words)
        for _ in range(int(next(words))):
            rows = [(int(next(words)), int(next(words)), int(next(words))) for _ in range(int(next(words)))]
            if any(row[0] == WORLD.rank for row in rows):
                blocks = rows
    case = Case(collective, layouts[at], size, computing, blocks)
    for _ in range(int(next(words))):
        next(words)
        name, number = next(words), int(next(words))
        case.candidates.append(Candidate(name, [(next(words), int(next(words))) for _ in range(number)]))
    comm = case.layout.comm
    if comm is not None:
        _prepare_equal(case, comm) if size >= 0 else _prepare_blocks(case, comm)
    return case


def _prepare_equal(case: Case, comm: MPI.Intracomm) -> None:
    """Make the buffers and the call of a collective with blocks of equal size."""
    name, size = case.collective, case.size
    whole, is_root = size * comm.size, comm.rank == 0
    out = {
        "bcast": size * is_root,
        "scatter": whole * is_root,
        "reduce_scatter_block": whole,
        "alltoall": whole,
    }
    into = {
        "bcast": size * (not is_root),
        "reduce": size * is_root,
        "gather": whole * is_root,
        "allgather": whole,
        "alltoall": whole,
    }
    case.sent = np.zeros(max(1, out.get(name, size)), np.uint8)
    case.received = np.zeros(max(1, into.get(name, size)), np.uint8)
    kind, op, count = (MPI.DOUBLE, MPI.SUM, size // 8) if size % 8 == 0 else (MPI.BYTE, MPI.BOR, size)
    sent, received = [case.sent, size, MPI.BYTE], [case.received, size, MPI.BYTE]
    these, sums = [case.sent, count, kind], [case.received, count, kind]
    buffer = sent if is_root else received
    case.call = {
        "barrier": lambda on: on.Barrier(),
        "bcast": lambda on: on.Bcast(buffer, 0),
        "gather": lambda on: on.Gather(sent, received if is_root else None, 0),
        "scatter": lambda on: on.Scatter(sent if is_root else None, received, 0),
        "allgather": lambda on: on.Allgather(sent, received),
        "alltoall": lambda on: on.Alltoall(sent, received),
        "reduce": lambda on: on.Reduce(these, sums if is_root else None, op, 0),
        "allreduce": lambda on: on.Allreduce(these, sums, op),
        "scan": lambda on: on.Scan(these, sums, op),
        "exscan": lambda on: on.Exscan(these, sums, op),
        "reduce_scatter_block": lambda on: on.Reduce_scatter_block(these, sums, op),
    }[name]


def _prepare_blocks(case: Case, comm: MPI.Intracomm) -> None:
    """Make the buffers and the call of a collective whose blocks are in proportion to what the ranks send and receive."""
    name = case.collective
    sends, receives = ([row[i] for row in case.blocks] for i in (1, 2))
    all_sent, me, n = sum(sends), comm.rank, comm.size

    def block(source: int, target: int) -> int:
        if name.startswith("alltoall"):
            return int(sends[source] * receives[target] / all_sent) if all_sent else 0
        if name == "scatterv":
            return receives[target] if source == 0 else 0
        if name == "gatherv":
            return sends[source] if target == 0 else 0
        return receives[source] if name == "reduce_scatter" else sends[source]

    out, into = [block(me, i) for i in range(n)], [block(i, me) for i in range(n)]
    out_at, into_at = ([sum(sizes[:i]) for i in range(n)] for sizes in (out, into))
    case.sent = np.zeros(max(1, sum(out), sum(into)), np.uint8)
    case.received = np.zeros(max(1, sum(into)), np.uint8)
    sent, received = case.sent, case.received
    parts, wholes = [sent, (out, out_at), MPI.BYTE], [received, (into, into_at), MPI.BYTE]
    kinds = [MPI.BYTE] * n
    case.call = {
        "alltoallv": lambda on: on.Alltoallv(parts, wholes),
        "alltoallw": lambda on: on.Alltoallw(
            [sent, (out, out_at), kinds], [received, (into, into_at), kinds]
        ),
        "allgatherv": lambda on: on.Allgatherv([sent, into[me], MPI.BYTE], wholes),
        "gatherv": lambda on: on.Gatherv([sent, out[0], MPI.BYTE], wholes if me == 0 else None, 0),
        "scatterv": lambda on: on.Scatterv(parts if me == 0 else None, [received, into[0], MPI.BYTE], 0),
        "reduce_scatter": lambda on: on.Reduce_scatter(
            [sent, sum(into), MPI.BYTE], [received, into[me], MPI.BYTE], into, MPI.BOR
        ),
    }[name]


class LoadedFile(ctypes.Structure):
    """Dl_info of dladdr()."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class Variables:
    """The integer variables of the MPI library, by MPI_T, which mpi4py does not have."""

    def __init__(self) -> None:
        self.mpi = ctypes.CDLL(mpi4py.MPI.__file__)
        self.mpi.MPI_T_init_thread(0, ctypes.byref(ctypes.c_int()))

    def module(self) -> str:
        """Return the file of the MPI library; empty if the system does not tell."""
        found = LoadedFile()
        init = ctypes.cast(self.mpi.PMPI_Init, ctypes.c_void_p)
        if not ctypes.CDLL(None).dladdr(init, ctypes.byref(found)):
            return ""
        file: bytes = found.file or b""
        return os.fsdecode(file)

    def set(self, name: str, value: int) -> int | None:
        """Set a variable; return its former value, None if it cannot be set."""
        index, count, handle = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        before, new = ctypes.c_int(), ctypes.c_int(value)
        if self.mpi.MPI_T_cvar_get_index(name.encode(), ctypes.byref(index)):
            return None
        if self.mpi.MPI_T_cvar_handle_alloc(index, None, ctypes.byref(handle), ctypes.byref(count)):
            return None
        failed = (
            count.value != 1
            or self.mpi.MPI_T_cvar_read(handle, ctypes.byref(before))
            or self.mpi.MPI_T_cvar_write(handle, ctypes.byref(new))
        )
        self.mpi.MPI_T_cvar_handle_free(ctypes.byref(handle))
        return None if failed else before.value

    def choose(self, candidate: Candidate) -> tuple[list[tuple[str, int]], str | None]:
        """Set those of a candidate; return the former values, and the name of one that must be set and cannot be."""
        former, missing = [], None
        for name, value in candidate.settings:
            before = self.set(name.removeprefix("?"), value)
            if before is not None:
                former.append((name.removeprefix("?"), before))
            elif not name.startswith("?"):
                missing = name
        return former, missing

    def restore(self, former: list[tuple[str, int]]) -> None:
        """Set former values, the last first."""
        for name, value in reversed(former):
            self.set(name, value)


def children(me: int, size: int) -> list[int]:
    """Return the children of a rank in a binomial tree, the one with the largest subtree first.

    >>> children(0, 6), children(2, 6), children(4, 6), children(5, 6)
    ([4, 2, 1], [3], [5], [])
    """
    least = me & -me or size
    return [
        me + step
        for step in (1 << n for n in reversed(range(size.bit_length())))
        if step < least and me + step < size
    ]


class Replay:
    """The measurement: a batch on all processes, and on process 0 what to measure next."""

    def __init__(self, plan: Plan, only: int = -1) -> None:
        self.plan, self.variables = plan, Variables()
        self.offset, self.lead_ns = 0, 300_000
        self.machine = WORLD.Split_type(MPI.COMM_TYPE_SHARED)
        self.machines = WORLD.Split(0 if self.machine.rank == 0 else MPI.UNDEFINED)
        self.is_one_machine = WORLD.allreduce(self.machine.size, MPI.MIN) == WORLD.size
        self.pool, self.pool_at = np.zeros(POOL, np.uint8), 0
        for case in plan.cases:
            for k, candidate in enumerate(case.candidates):
                if only in (-1, k):
                    self.make_comm(case, candidate)

    def make_comm(self, case: Case, candidate: Candidate) -> None:
        """Duplicate the communicator while the variables are set."""
        former, missing = self.variables.choose(candidate)
        if missing:
            candidate.is_done = True
            if WORLD.rank == 0:
                sys.stdout.write(f"refused {missing}\n")
        if case.layout.comm is not None:
            info = MPI.INFO_NULL
            if candidate.settings and self.plan.exclude != "-":
                info = MPI.Info.Create({"ompi_comm_coll_preference": self.plan.exclude})
            candidate.comm = case.layout.comm.Dup(None if info == MPI.INFO_NULL else info)
        self.variables.restore(former)

    def now(self) -> int:
        """Return the time of process 0's clock, ns."""
        return time.monotonic_ns() - self.offset

    def relate_clocks(self) -> None:
        """Estimate the offset of each machine's clock to that of process 0, along a tree: see replay_calls.h."""
        if self.is_one_machine:
            return
        if self.machines != MPI.COMM_NULL:
            me, best = self.machines.rank, sys.maxsize
            for _ in range(PINGS if me else 0):
                begin = time.monotonic_ns()
                self.machines.send(0, me & (me - 1))
                theirs = self.machines.recv(source=me & (me - 1))
                end = time.monotonic_ns()
                if end - begin < best:
                    best, self.offset = end - begin, begin + (end - begin) // 2 - theirs
            for below in children(me, self.machines.size):
                for _ in range(PINGS):
                    self.machines.recv(source=below)
                    self.machines.send(self.now(), below)
        self.offset = self.machine.bcast(self.offset)

    def use_memory(self, case: Case) -> None:
        """Use memory as the application does between two calls: see replay_calls.h."""
        until = time.monotonic_ns() + case.computing
        case.received[::LINE].sum()
        while case.computing and time.monotonic_ns() < until:
            self.pool[self.pool_at : self.pool_at + 64 * LINE : LINE] += 1
            self.pool_at = (self.pool_at + 64 * LINE) % POOL
        case.sent[::LINE] += 1

    def batch(self, which: int, k: int, number: int, start: int, window: int) -> Times:
        """Make some repetitions; process 0 gets rows of times, late ones and operation times."""
        case = self.plan.cases[which]
        candidate = case.candidates[k]
        starts, ends, late = (np.zeros(number, np.int64) for _ in range(3))
        former = self.variables.choose(candidate)[0] if self.plan.is_call else []
        for i in range(number):
            if candidate.comm is None:
                break
            begin = start + (0 if case.is_back_to_back else i * window)
            if not case.is_back_to_back:
                self.use_memory(case)
            if i == 0 or not case.is_back_to_back:
                late[i] = self.now() > begin
                while self.now() < begin:
                    pass
                late[i] |= self.now() - begin > RESERVE
            starts[i] = self.now()
            case.call(candidate.comm)
            ends[i] = self.now()
            starts[i] -= begin
            ends[i] -= begin
        self.variables.restore(former)
        return self.collect(case, starts, ends, late)

    def collect(self, case: Case, starts: Times, ends: Times, late: Times) -> Times:
        """Return the latest end, whether any was late, and the mean operation time, of each repetition on process 0."""
        last, comm = starts.copy(), case.layout.comm
        if comm is None:
            pass
        elif case.collective in FROM_ROOT:
            comm.Bcast(last, 0)
        elif case.collective in TO_ROOT:
            comm.Reduce(starts, last if comm.rank == 0 else None, MPI.MAX, 0)
        elif case.collective in PREFIX:
            comm.Scan(starts, last, MPI.MAX)
        else:
            comm.Allreduce(starts, last, MPI.MAX)
        operation = np.maximum(0, ends - np.maximum(starts, last))
        if case.is_for_all and not case.is_back_to_back:
            ends = operation
        found = np.zeros((3, len(starts)), np.int64)
        for row, values, op in ((0, ends, MPI.MAX), (1, late, MPI.MAX), (2, operation, MPI.SUM)):
            WORLD.Reduce(values, found[row] if WORLD.rank == 0 else None, op, 0)
        if case.is_back_to_back:  # each call from the latest return of the one before
            found[0, 1:] = np.diff(found[0])
        found[2] //= case.layout.members
        return found

    def measure(self, file: TextIO, number: int, which: int, k: int) -> None:
        """Measure a candidate in a round; the first call of a job is round 0."""
        case = self.plan.cases[which]
        candidate = case.candidates[k]
        for round in (number,) if candidate.window else (0, number):
            span = FIRST_BATCH if len(candidate.ratios) < FIRST_ROUNDS else BATCH
            n = max(1, min(MOST_REPETITIONS, span // candidate.window)) if round else 1
            step = (which, k, n, time.monotonic_ns() + self.lead_ns + case.computing, candidate.window)
            WORLD.bcast(step)
            times, late, operation = self.batch(*step)
            for i in range(n):
                row = (round, which, k, i, int(late[i] > 0), max(1, times[i]), operation[i], case.collective)
                file.write(f"{','.join(map(str, row))},{candidate.name}\n")
            lead = 2 * self.lead_ns if late[0] else self.lead_ns * 31 // 32
            self.lead_ns = min(max(lead, 300_000), 10_000_000)
            candidate.last = float(np.median(times[late == 0] if not late.all() else times))
            wanted = (
                2 * int(candidate.last)
                + RESERVE
                + case.computing
                + (len(case.sent) + len(case.received)) // 4
            )
            candidate.window = max(wanted, (3 * candidate.window + wanted) // 4)

    def lead(self, path: str, seconds: float) -> None:
        """Measure in rounds until all is known, or the time is over."""
        begin = time.monotonic()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        cases = self.plan.cases
        number, is_over = read_earlier(path, cases), False
        draw = random.Random(self.plan.seed + number)  # another order when it goes on
        with Path(path).open("a", encoding="utf-8") as file:
            while not is_over and any(open_candidates(case) for case in cases):
                number += 1
                forget(cases)
                WORLD.bcast(())
                self.relate_clocks()
                for which in draw.sample(range(len(cases)), len(cases)):
                    tried = range(len(cases[which].candidates)) if open_candidates(cases[which]) else ()
                    for k in draw.sample(tried, len(tried)):
                        if not is_over and not cases[which].candidates[k].is_done:
                            self.measure(file, number, which, k)
                            is_over = time.monotonic() - begin > seconds
                conclude(cases)
                file.flush()
                left = sum(map(open_candidates, cases))
                sys.stdout.write(f"round {number} {left} {time.monotonic() - begin:.3f}\n")
                sys.stdout.flush()
        WORLD.bcast(None)

    def lead_job(self, path: str, seconds: float, number: int, k: int, names: str) -> None:
        """Measure one candidate of these cases, in their order; the first batch counts as round 0."""
        until = time.monotonic() + seconds
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        WORLD.bcast(())
        self.relate_clocks()
        with Path(path).open("a", encoding="utf-8") as file:
            for which in map(int, names.split(",")):
                self.measure(file, 0, which, k)
                self.plan.cases[which].candidates[k].ratios = [1.0] * FIRST_ROUNDS
                for _ in range(JOB_BATCHES):
                    if time.monotonic() < until:
                        self.measure(file, number, which, k)
        WORLD.bcast(None)

    def follow(self) -> None:
        """Do what process 0 says."""
        while (step := WORLD.bcast(None)) is not None:
            if step:
                self.batch(*step)
            else:
                self.relate_clocks()


def open_candidates(case: Case) -> int:
    """Return how many candidates are still measured."""
    return sum(not one.is_done for one in case.candidates[1:])


def forget(cases: list[Case]) -> None:
    """Forget the medians of the former round."""
    for case in cases:
        for one in case.candidates:
            one.last = 0.0


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return the 99 % interval of the median by order statistics.

    >>> interval([1.0, 3.0, 2.0]), interval([float(i) for i in range(20)])
    ((1.0, 3.0), (4.0, 15.0))
    """
    n = len(ratios)
    below = max(0, math.floor(n / 2 - 1.29 * math.sqrt(n)))
    return sorted(ratios)[below], sorted(ratios)[n - 1 - below]


def conclude(cases: list[Case]) -> None:
    """Take the medians of a round; see conclude_case() of replay.c for when a candidate is done."""
    least_rounds = max(
        8, math.ceil(math.log2(40 * (sum(len(case.candidates) - 1 for case in cases) + 1))) + 2
    )
    for case in cases:
        base = case.candidates[0].last
        case.candidates[0].ratios.append(1.0)
        for one in case.candidates[1:]:
            if one.last > 0 and base > 0:
                one.ratios.append(one.last / base)
        tried = case.candidates[1:]
        best = min([1 - LEAST_CHANGE, *(interval(one.ratios)[1] for one in tried if len(one.ratios) >= 8)])
        for one in tried:
            if one.is_done or len(one.ratios) < FIRST_ROUNDS:
                continue
            low, high = interval(one.ratios)
            is_slower = low > 2 and open_candidates(case) > 1 if len(one.ratios) < 8 else low > best
            error = max(LEAST_CHANGE, abs(1 - (low + high) / 2) / 10)
            one.is_done = is_slower or (len(one.ratios) >= least_rounds and high - low <= 2 * error)


def read_earlier(path: str, cases: list[Case]) -> int:
    """Take the earlier measurements of an interrupted run; return the number of the last round."""
    rounds: dict[int, dict[tuple[int, int], list[tuple[int, int]]]] = {}
    for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split(",")
        if len(words) != 9 or not all(word.isascii() and word.isdigit() for word in words[:7]):
            continue
        round, which, k, _, is_late, ns = map(int, words[:6])
        if round and which < len(cases) and k < len(cases[which].candidates):
            rounds.setdefault(round, {}).setdefault((which, k), []).append((is_late, ns))
    for _, found in sorted(rounds.items()):
        forget(cases)
        for (which, k), times in found.items():
            good = [ns for is_late, ns in times if not is_late] or [ns for _, ns in times]
            cases[which].candidates[k].last = float(np.median(good))
        conclude(cases)
    return max(rounds, default=0)


def main() -> None:
    """Run on all processes."""
    if WORLD.rank == 0:
        sys.stdout.write(f"library {MPI.Get_library_version().splitlines()[0]}\n")
        sys.stdout.write(f"module {Variables().module()}\n")
        sys.stdout.flush()
    plan, csv, seconds, *job = sys.argv[1:]
    try:
        replay = Replay(read_plan(plan), int(job[1]) if job else -1)
        if WORLD.rank == 0 and job:
            replay.lead_job(csv, float(seconds), int(job[0]), int(job[1]), job[2])
        elif WORLD.rank == 0:
            replay.lead(csv, float(seconds))
        else:
            replay.follow()
    except (OSError, StopIteration, ValueError, KeyError) as error:
        fail(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
