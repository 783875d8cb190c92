# SPDX-License-Identifier: Apache-2.0
"""Waiting in jobs whose processes, sessions and communicators come and go: against a trace that outlives them."""

from __future__ import annotations

import json
import math
import os
import random
import re
import struct
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from forge import HEAD, HEADER_BYTES_AT
from harness import Mpi, commlens
from launches import Result, started
from processes import is_alive, kill_at_once, wait_until
from profile_rows import Profile
from test_sessions import NO_SESSIONS

CALLS, LATE_NS = 40, 2_000_000
WORLD, MERGED, TO_PARENT, TO_CHILD, FROM_PARENT, FROM_CHILD, KEPT, LAST, SESSION, TURNED, FIRST_OF_LOOP = (
    range(11)
)
"""Labels of programs/lifetimes.c."""
BARRIER, SEND, RECEIVE = range(3)
OPERATIONS = {BARRIER: "MPI_Barrier", RECEIVE: "MPI_Recv"}
COUNTS, CALL = struct.Struct("=qqq"), struct.Struct("=dddii")
TOLERANCE = 0.1
PAUSE_NS = 1_000_000
"""For so long a virtual machine may stand still between a rank's own look at the clock and that of commlens."""

OVER_TCP = {"OMPI_MCA_btl": "self,vader,tcp"}
"""Debian's Open MPI reaches processes of another job over TCP only."""

BETWEEN = "SELECT * FROM {} AS t JOIN comm ON comm.id = t.comm WHERE kind = 'inter'"
"""Rows of intercommunicators."""

SAMPLES, MESSAGES = 11, 12
"""Kinds of segments of an arena, core/arena/format.h."""
CHUNK_BYTES, CHUNK_HEAD = 512, struct.Struct("=QII16x")
"""The head of a chunk of samples: key, count and level."""
MOST_BYTES = 1 << 20
"""For samples of each of these kinds, in one process."""
INDEX_BYTES = 1 << 20
"""The hash maps in which it looks strata and channels up come on top."""
SLACK_BYTES = 1 << 20
"""The peak of two runs without samples differs by up to half of this."""
FEWEST = 12
"""Number of samples that a stratum keeps when the memory is used up (docs/decisions/0024-waiting.md)."""
ALL_OF = 64
"""Of so many communicators of one line all are sampled."""


class Call(NamedTuple):
    """One call of a trace, in ns."""

    entered: float
    left: float
    without_processor: float
    kind: int
    label: int


@dataclass(frozen=True)
class Truth:
    """What the traces say about the calls of one kind and label: times in ns."""

    calls: int
    time: float
    waiting: float
    without_processor: float
    """How long the processes that took part waited for a processor, maybe between their look at the clock and commlens'."""
    late: list[float]
    """For how long the others waited for each process alone; only the senders of receives are late, and this is empty."""

    @property
    def tolerance(self) -> float:
        return max(TOLERANCE * self.time, PAUSE_NS) + self.without_processor


class Traces:
    """The traces of all processes of a job, or of some of them; the last call of one that was killed may be missing."""

    def __init__(self, folder: Path, worlds: str = "wc") -> None:
        self.begun: list[list[Call]] = []
        self.done: list[list[Call]] = []
        for path in sorted(folder.glob(f"[{worlds}][0-9]")):
            data = path.read_bytes()
            _, begun, done = COUNTS.unpack_from(data)
            every = [Call(*CALL.unpack_from(data, COUNTS.size + i * CALL.size)) for i in range(begun)]
            self.begun.append(every)
            self.done.append(every[:done])

    def of(self, label: int, kind: int) -> list[list[Call]]:
        """Return the completed calls of each process that made some."""
        found = ([c for c in calls if (c.kind, c.label) == (kind, label)] for calls in self.done)
        return [calls for calls in found if calls]

    def most_begun(self, label: int, kind: int) -> int:
        """Return how many calls the process has begun that has begun most."""
        return max(sum((c.kind, c.label) == (kind, label) for c in calls) for calls in self.begun)

    def truth(self, label: int, kind: int) -> Truth:
        """Return how long the calls waited: barriers for the last rank, receives for the send."""
        each = list(zip(*self.of(label, kind), strict=False))
        pauses = sum(call.without_processor for one in each for call in one)
        waiting, late = 0.0, [0.0] * (len(each[0]) if kind == BARRIER and each else 0)
        if kind == BARRIER:
            for one in each:
                *_, second, last = sorted(one)
                late[one.index(last)] += last.entered - second.entered
            waiting = sum(max(c.entered for c in one) - c.entered for one in each for c in one)
        else:
            (sent,) = self.of(label, SEND)
            for (call,), send in zip(each, sent, strict=False):
                waiting += max(0.0, min(send.entered, call.left) - call.entered)
                pauses += send.without_processor
        return Truth(len(each), sum(c.left - c.entered for one in each for c in one), waiting, pauses, late)


# -- runs, and what a profile says ------------------------------------------------------------------------------------


def folder_of(mpi: Mpi) -> Path:
    """Return a new folder for a job, with folders for its arenas and its traces."""
    folder = mpi.fresh("lifetimes")
    for name in ("arenas", "traces"):
        (folder / name).mkdir()
    return folder


def run(
    mpi: Mpi, *arguments: str | Path, ranks: int = 2, env: Mapping[str, str] | None = None, mode: str = "run"
) -> Result:
    """Run lifetimes.c."""
    folder = folder_of(mpi)
    command = [mpi.compile("lifetimes.c"), folder / "traces", *arguments]
    settings = {"COMMLENS_ARENA_DIR": str(folder / "arenas"), **OVER_TCP, **(env or {})}
    return mpi.run(ranks, command, settings, timeout=120, cwd=folder, mode=mode)


def traces_of(result: Result, worlds: str = "wc") -> Traces:
    return Traces(result.profile.parent / "traces", worlds)


def opened(result: Result) -> Profile:
    """Open the profile of a job that ended well, and left no arena."""
    assert result.rc == 0, result
    assert list((result.profile.parent / "arenas").iterdir()) == []
    profile = result.open()
    profile.check()
    return profile


def of_comm(profile: Profile, table: str, what: str, comm: str, op: str) -> list[dict[str, Any]]:
    """Return rows of a table for a communicator with this name, of the user or else of the profile."""
    return profile.rows(
        f"SELECT {what} FROM {table} AS t JOIN comm ON comm.id = t.comm JOIN op ON op.id = t.op "
        "WHERE IFNULL(user_name, comm.name) = ? AND op.name = ?",
        comm,
        op,
    )


def split(profile: Profile, comm: str, op: str) -> dict[str, Any]:
    (row,) = of_comm(profile, "sampled", "t.*", comm, op)
    return row


def unsplit(profile: Profile, comm: str, op: str) -> dict[str, int]:
    """Return how many sampled calls were not split, by reason."""
    return {row["reason"]: row["calls"] for row in of_comm(profile, "unsplit", "reason, calls", comm, op)}


def awaited(profile: Profile, comm: str, op: str) -> int:
    """Return the world rank for which the others waited longest."""
    rows = of_comm(profile, "waiting", "rank, late_ns", comm, op)
    return int(max(rows, key=lambda row: row["late_ns"])["rank"])


def check_split(row: Mapping[str, Any], truth: Truth) -> None:
    """Assert that all calls were sampled, and that their waiting is that of the trace."""
    assert row["samples"] == row["collectives"] == truth.calls, row
    assert row["waiting_ns"] == pytest.approx(truth.waiting, abs=truth.tolerance), row


def check_late(profile: Profile, comm: str, traces: Traces, label: int, late: int) -> None:
    """Assert this of barriers and receives, of which all were split, and that this world rank was late for all."""
    for kind, op in OPERATIONS.items():
        truth = traces.truth(label, kind)
        check_split(split(profile, comm, op), truth)
        assert unsplit(profile, comm, op) == {}
        if kind == RECEIVE and truth.waiting <= 0.5 * truth.calls * LATE_NS:
            continue  # the others came late by themselves: they had no processor
        found = awaited(profile, comm, op)
        # On a busy machine another rank may lose its processor for longer than this one is late.
        may_be_found = truth.late and truth.late[found] >= max(truth.late) - truth.tolerance
        assert found == late or may_be_found


# -- processes and sessions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profiled", ["both", "parents"])
def test_parents_and_spawned_children_have_their_own_waiting(mpi: Mpi, profiled: str) -> None:
    """Ranks and tags are the same in both worlds, and on both sides of the intercommunicator."""
    plain = run(mpi, "spawn", "/usr/bin/env", mode="off")
    if plain.rc != 0:
        pytest.skip("MPI_Comm_spawn fails without commlens, too")
    result = run(mpi, "spawn", mpi.runner if profiled == "both" else "/usr/bin/env")
    worlds = {"w": opened(result)}
    if profiled == "both":
        others = Profile(result.profile.with_suffix(".1.db"))
        others.check()
        is_of_children = any(name[0] == "P" for name in worlds["w"].comms())  # they may have ended first
        worlds = {"w": others, "c": worlds["w"]} if is_of_children else {**worlds, "c": others}
    assert len(list(result.profile.parent.glob("*.db"))) == len(worlds)
    for world, profile in worlds.items():
        traces = traces_of(result, world)
        check_late(profile, "W0.0", traces, WORLD, 0 if world == "w" else 1)
        # Of calls on the merged communicator, a profile has the samples of its own world only.
        assert of_comm(profile, "sampled", "samples", "merged", "MPI_Barrier") == []
        assert unsplit(profile, "merged", "MPI_Barrier") == {"members": CALLS}
        own = traces.truth(FROM_PARENT if world == "w" else FROM_CHILD, RECEIVE)
        check_split(split(profile, "merged", "MPI_Recv"), own)
        assert awaited(profile, "merged", "MPI_Recv") == 0
        assert unsplit(profile, "merged", "MPI_Recv") == {"members": CALLS}
        assert unsplit(profile, "merged", "MPI_Send") == {"members": CALLS}
        assert profile.rows(BETWEEN.format("sampled")) == profile.rows(BETWEEN.format("unsplit")) == []


def test_child_processes_take_no_samples(mpi: Mpi) -> None:
    """Some end at once, become another program, call MPI, or outlive calls of their parent."""
    result = run(mpi, "children")
    profile = opened(result)
    check_late(profile, "W0.0", traces_of(result), WORLD, 0)
    assert profile.calls("MPI_Sendrecv") == {}
    assert profile.calls("MPI_Barrier") == {"W0.0": {0: CALLS, 1: CALLS}}
    assert [path.name for path in result.profile.parent.glob("*.db")] == ["profile.db"]


def test_communicators_of_two_sessions_have_their_own_waiting(mpi: Mpi) -> None:
    result = run(mpi, "sessions")
    if result.rc == NO_SESSIONS:
        pytest.skip("this MPI library has no sessions")
    profile = opened(result)
    check_late(profile, "session", traces_of(result), SESSION, 0)
    check_late(profile, "turned", traces_of(result), TURNED, 1)


# -- communicators ----------------------------------------------------------------------------------------------------


def test_a_handle_that_stands_for_another_communicator_begins_anew(mpi: Mpi) -> None:
    """Two of three have the ranks in reverse order, and who is late changes; a receive outlives each handle."""
    number, calls_each = 48, 2
    result = run(mpi, "reuse", str(number))
    profile, traces = opened(result), traces_of(result)
    handles = re.findall(r"handle \d+ 0 (\w+)", result.stdout)
    assert len(handles) == number
    assert len(set(handles)) < number / 2, "no handle was reused"
    waited = 0.0
    for i in range(number):
        late = (i // 2 + (i % 3 > 0)) % 2
        for label, kind, op in (
            (FIRST_OF_LOOP + i, BARRIER, "MPI_Barrier"),
            (FIRST_OF_LOOP + i, RECEIVE, "MPI_Recv"),
            (-1 - i, RECEIVE, "MPI_Wait"),
        ):
            truth = traces.truth(label, kind)
            check_split(split(profile, str(i), op), truth)
            assert unsplit(profile, str(i), op) == {}
            if kind == RECEIVE and truth.waiting > PAUSE_NS:
                assert awaited(profile, str(i), op) == late
            waited += truth.waiting
    assert waited > 0.5 * number * (2 * calls_each + 1) * LATE_NS, "the program makes nobody wait"


def test_a_merged_communicator_has_the_messages_of_its_own(mpi: Mpi) -> None:
    """Both groups of the intercommunicator use the same ranks and tag; it has no samples."""
    result = run(mpi, "merge")
    profile = opened(result)
    check_late(profile, "merged", traces_of(result), MERGED, 1)
    assert profile.rows(BETWEEN.format("sampled")) == profile.rows(BETWEEN.format("unsplit")) == []


def segments(arena: bytes) -> Iterator[tuple[int, int, int]]:
    """Return of each segment where its content is, its kind and its size, also behind the holes between chunks."""
    at = int(struct.unpack_from("=I", arena, HEADER_BYTES_AT)[0])
    while at + HEAD.size <= len(arena):
        kind, _, size, _ = HEAD.unpack_from(arena, at)
        at += HEAD.size
        yield at, kind, size
        at += size


def segment_bytes(arena: Path) -> Counter[int]:
    """Return how much memory a process has in its arena, by the kind of the segments."""
    sizes = Counter[int]()
    for _, kind, size in segments(arena.read_bytes()):
        sizes[kind] += size
    return sizes


def check_memory(result: Result, without: Result, index: int = 0) -> list[Counter[int]]:
    """Assert that samples took no more memory than they may, and return what they took in the arenas."""
    arenas = [segment_bytes(path) for path in (result.profile.parent / "traces" / "arenas").iterdir()]
    assert all(0 < sizes[kind] <= MOST_BYTES for sizes in arenas for kind in (SAMPLES, MESSAGES)), arenas
    peaks = [
        {rank: int(kib) * 1024 for rank, kib in re.findall(r"peak (\d) (\d+)", one.stdout)}
        for one in (result, without)
    ]
    assert len(peaks[0]) == len(arenas)
    assert all(peaks[0][rank] - peaks[1][rank] < 2 * MOST_BYTES + index + SLACK_BYTES for rank in peaks[0]), (
        peaks
    )
    return arenas


@pytest.mark.dealt
@pytest.mark.parametrize(
    ("number", "of_baseline", "counted"), [(100_000, 10_000, 1024), (5_000, 5_000, 1_000_000)]
)
def test_many_communicators_take_no_memory_and_no_samples_from_others(
    mpi: Mpi, number: int, of_baseline: int, counted: int
) -> None:
    """One is used all the time, one is made at the end; each of the others has a barrier and a message.

    counted: COMMLENS_COMMS.  The baseline has no samples, and where further communicators need no memory, fewer.
    """
    env = {"COMMLENS_COMMS": str(counted)}
    result = run(mpi, "many", str(number), env=env)
    profile = opened(result)
    assert profile.total("MPI_Comm_free")[0] == 2 * (number + 2)
    assert profile.total("MPI_Send")[0] == number + 2 * CALLS
    check_late(profile, "kept", traces_of(result), KEPT, 0)
    check_late(profile, "last", traces_of(result), LAST, 1)
    most = ALL_OF * (1 + math.log2(min(number, counted) / ALL_OF))
    for op in OPERATIONS.values():
        samples = profile.column(
            "SELECT samples FROM sampled AS s JOIN comm ON comm.id = s.comm JOIN op ON op.id = s.op "
            "WHERE op.name = ? AND comm.name <> 'W0.0' ORDER BY samples",
            op,
        )
        assert ALL_OF <= len(samples) <= 2 + most
        assert set(samples[:-2]) == {1}
    without = run(mpi, "many", str(of_baseline), env={**env, "COMMLENS_WAITING": "0"})
    check_memory(result, without)


def test_a_member_that_has_used_up_its_memory_has_some_samples_in_common_with_others(mpi: Mpi) -> None:
    """Rank 0 samples every call on a communicator, and rank 1 hardly any, because it has so many others."""
    number = 250
    result = run(mpi, "crowd", str(number), ranks=3)
    profile, traces = opened(result), traces_of(result)
    found = json.loads(commlens("waits", result.profile, "--comm", "s0.1", "--format", "json").stdout)[
        "waits"
    ]
    for kind, op in OPERATIONS.items():
        row, truth = split(profile, "kept", op), traces.truth(KEPT, kind)
        assert 4 <= row["samples"] <= row["collectives"] == truth.calls == number
        (share,) = (one for one in found if one["operation"] == op)
        # Of so few samples, one in which a rank lost its processor counts much: the interval is wide. The trace
        # also has the time without a processor in calls that were not sampled.
        tolerance = TOLERANCE + truth.without_processor / truth.time
        low, high = share["share_low"] - tolerance, share["share_high"] + tolerance
        assert low <= truth.waiting / truth.time <= high, share
        assert awaited(profile, "kept", op) == 0
    assert split(profile, "kept", "MPI_Barrier")["samples"] < number
    assert set(unsplit(profile, "kept", "MPI_Barrier")) == {"members"}
    without = run(mpi, "crowd", str(number), ranks=3, env={"COMMLENS_WAITING": "0"})
    arenas = check_memory(result, without, INDEX_BYTES)
    assert sorted(sizes[SAMPLES] for sizes in arenas)[1:] == [MOST_BYTES * 3 // 4] * 2, (
        "there was memory left"
    )


# -- jobs that are killed ---------------------------------------------------------------------------------------------


def killed(mpi: Mpi, moment: float, late_us: int = 100) -> Path:
    """Kill all ranks of a job after so many seconds; recover its profile while child processes of theirs live on.

    late_us : how late a rank is for each call
    """
    folder = folder_of(mpi)
    command, environment = mpi.prepare(
        2,
        [mpi.compile("lifetimes.c"), folder / "traces", "endless", str(late_us)],
        {"COMMLENS_ARENA_DIR": str(folder / "arenas")},
        folder / "profile.db",
    )
    traces = [folder / "traces" / name for name in ("w0", "w1")]
    with started(command, environment, folder):
        wait_until(
            lambda: all(pid_and_done(trace)[1] > 2 * CALLS for trace in traces), "the ranks make no calls"
        )
        time.sleep(moment)
        pids = [pid_and_done(trace)[0] for trace in traces]
        kill_at_once(pids)
        wait_until(lambda: not any(map(is_alive, pids)), "ranks outlive SIGKILL")
        recover(folder)
    return folder


def recover(folder: Path, output: str = "recovered.db") -> Profile:
    """Make the profile of the arenas there."""
    done = commlens("recover", "-o", folder / output, folder / "arenas")
    assert done.returncode == 0, done.stderr
    profile = Profile(folder / output)
    profile.check_waiting()
    return profile


def pid_and_done(trace: Path) -> tuple[int, int]:
    """Return the process of a trace, and how many calls it has completed."""
    data = trace.read_bytes()[: COUNTS.size] if trace.exists() else b""
    pid, _, done = COUNTS.unpack(data.ljust(COUNTS.size, b"\0"))
    return pid, done


@pytest.mark.parametrize("nth", range(3))
def test_killed_jobs_have_the_waiting_until_then(mpi: Mpi, nth: int) -> None:
    """Samples are neither lost nor there twice; of many calls, some are sampled."""
    seed = f"{mpi.name} {nth} {os.environ.get('COMMLENS_TEST_SEED', '')}"
    moment = random.Random(seed).uniform(0, 1.2)
    print(f"seed {seed!r}: killed after {moment:.3f} s")
    folder = killed(mpi, moment)
    profile, traces = Profile(folder / "recovered.db"), Traces(folder / "traces")
    profile.check_waiting()
    for kind, op in OPERATIONS.items():
        truth, row = traces.truth(KEPT, kind), split(profile, "kept", op)
        begun = traces.most_begun(KEPT, kind)
        assert truth.calls <= row["collectives"] <= begun, row
        lost = unsplit(profile, "kept", op)  # what only one of the ranks had completed
        assert set(lost) <= {"members"}
        assert sum(lost.values()) <= 1
        if begun < 256:
            assert truth.calls <= row["samples"] <= begun, row
            assert row["waiting_ns"] == pytest.approx(truth.waiting, abs=truth.tolerance)
        assert row["samples"] >= min(truth.calls, FEWEST), row
        tolerance = TOLERANCE + truth.without_processor / truth.time
        assert row["waiting_ns"] / row["time_ns"] == pytest.approx(truth.waiting / truth.time, abs=tolerance)
        of_freed = profile.rows(
            "SELECT samples, collectives FROM sampled AS s JOIN op ON op.id = s.op JOIN comm ON comm.id = s.comm "
            "JOIN comm AS parent ON parent.id = comm.parent WHERE op.name = ? AND parent.user_name = 'kept'",
            op,
        )
        assert min(ALL_OF, traces.truth(LAST, kind).calls) <= len(of_freed) <= traces.most_begun(LAST, kind)
        assert all(one == {"samples": 1, "collectives": 1} for one in of_freed)


class Chunks(NamedTuple):
    """The chunks of samples of one kind in an arena, core/hot/samples.h and messages.h."""

    kind: int
    sample_bytes: int

    def slots(self, arena: bytes) -> dict[int, list[int]]:
        """Return where the samples of each list are, in their order, by its key."""
        found: dict[int, list[int]] = {}
        for begin, kind, size in segments(arena):
            for at in range(begin, begin + size, CHUNK_BYTES) if kind == self.kind else ():
                key, count, _ = CHUNK_HEAD.unpack_from(arena, at)
                first = at + CHUNK_HEAD.size
                found.setdefault(key, []).extend(first + i * self.sample_bytes for i in range(count))
        return found

    def half_raised(self, arena: bytearray) -> tuple[int, int]:
        """Move every other sample of the longest list to the front, as far as its first half.

        Returns how many there were, and how many are left, some of them twice.
        """
        slots = max(self.slots(bytes(arena)).values(), key=len)
        moved = len(slots) // 4
        for to, source in zip(slots[:moved], slots[::2], strict=False):
            arena[to : to + self.sample_bytes] = arena[source : source + self.sample_bytes]
        return len(slots), len({bytes(arena[at : at + 8]) for at in slots})


def test_a_rank_killed_while_it_removes_samples_has_none_twice(mpi: Mpi) -> None:
    """What it has removed is unsplit; what it has copied, and not removed, counts once."""
    # With so few calls, all are sampled. When the memory is used up, one rank may keep only half of another's samples.
    folder = killed(mpi, 0.05, late_us=2000)
    before = Profile(folder / "recovered.db")
    path = min((folder / "arenas").glob("*.arena"))
    arena = bytearray(path.read_bytes())
    kinds = {"MPI_Barrier": Chunks(SAMPLES, 40), "MPI_Recv": Chunks(MESSAGES, 48)}
    there_and_left = {op: chunks.half_raised(arena) for op, chunks in kinds.items()}
    path.write_bytes(arena)
    after = recover(folder, "after.db")
    for op, (there, left) in there_and_left.items():
        whole, row = split(before, "kept", op), split(after, "kept", op)
        removed = there - left
        assert removed > 5
        assert row["samples"] == whole["samples"] - removed
        assert (
            unsplit(after, "kept", op)["members"] - unsplit(before, "kept", op).get("members", 0) == removed
        )
        assert 0 < row["time_ns"] <= whole["time_ns"]
        assert 0 < row["waiting_ns"] <= whole["waiting_ns"]
