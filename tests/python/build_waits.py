# SPDX-License-Identifier: Apache-2.0
"""Adds samples of collectives and messages to a profile of the tests."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from build_profile import OP_ID, ProfileBuilder


class Kind(NamedTuple):
    """Which calls were sampled."""

    comm: int
    op: str
    bin: int
    region: int = 0


class RankWaits(NamedTuple):
    """What one rank spent in the sampled calls, ns, and in how many it was last."""

    time_ns: int
    waiting_ns: int
    last: int = 0
    late_ns: int = 0
    behind_ns: int = 0
    between_ns: int = 0
    outside_ns: int = 0


def add_samples(
    build: ProfileBuilder,
    kind: Kind,
    ranks: Mapping[int, RankWaits],
    samples: int,
    collectives: int | None = None,
    error_ns: int | None = 0,
) -> None:
    """Add the rows of tables waiting and sampled. collectives: all calls; by default as many as samples."""
    place = (kind.comm, OP_ID[kind.op], kind.bin)
    for rank, one in ranks.items():
        row = (
            *place, kind.region, rank, samples, one.time_ns, one.waiting_ns, one.last, one.late_ns, one.behind_ns,
            one.between_ns, one.outside_ns,
        )  # fmt: skip
        build.more.setdefault("waiting", []).append(row)
    times, waits = (sum(one[i] for one in ranks.values()) for i in (0, 1))
    late = sum(one.late_ns for one in ranks.values())
    spread = max(one.behind_ns for one in ranks.values()) // samples
    build.more.setdefault("sampled", []).append(
        (*place, samples, collectives or samples, 0, 0, 0, times, waits, error_ns, spread, late)
    )


class Late(NamedTuple):
    """How often, and for how long, others waited for one rank in messages, and in which region it was then."""

    last: int
    late_ns: int
    region: int = 0


def add_messages(
    build: ProfileBuilder,
    kind: Kind,
    ranks: Mapping[int, tuple[int, RankWaits]],
    late: Mapping[int, Sequence[Late]],
    calls: int | None = None,
    error_ns: int | None = 0,
) -> None:
    """Add the rows of tables waiting and sampled for messages.

    ranks: the samples of each rank that has some, and what they say. late: for whom they waited, who may have none.
    calls: all calls; by default as many as samples.
    """
    place = (kind.comm, OP_ID[kind.op], kind.bin)
    rows: dict[tuple[int, int], list[int]] = {}
    for rank, (samples, one) in ranks.items():
        rows[kind.region, rank] = [samples, one.time_ns, one.waiting_ns, 0, 0, one.behind_ns, 0, 0]
    for rank, parts in late.items():
        for part in parts:
            row = rows.setdefault((part.region, rank), [0] * 8)
            row[3] += part.last
            row[4] += part.late_ns
    build.more.setdefault("waiting", []).extend(
        (*place, region, rank, *numbers) for (region, rank), numbers in rows.items()
    )
    n = sum(samples for samples, _ in ranks.values())
    times, waits = (sum(one[i] for _, one in ranks.values()) for i in (0, 1))
    late_ns = sum(row[4] for row in rows.values())
    build.more.setdefault("sampled", []).append(
        (*place, n, calls or n, 0, 0, 0, times, waits, error_ns, late_ns // n, late_ns)
    )


def add_unsplit(build: ProfileBuilder, kind: Kind, reason: str, calls: int) -> None:
    """Add a row of table unsplit."""
    build.more.setdefault("unsplit", []).append((kind.comm, OP_ID[kind.op], kind.bin, reason, calls))


def add_clock(
    build: ProfileBuilder, rank: int, error_ns: int | None, excess_ns: int | None = 0, calls: int = 100
) -> None:
    """Add the clock of the machine whose lowest rank is this one; without an error it is not related."""
    drift = None if error_ns is None else 1.5 * rank
    build.more.setdefault("clock", []).append(
        (rank, calls, drift, error_ns, None if error_ns is None else excess_ns)
    )


def add_random_waits(build: ProfileBuilder, dice: random.Random) -> None:
    """Add collectives with samples to some communicators; of others, no call was split, or some were not."""
    for comm in [each for each in build.comms.values() if each.kind == "intra" and len(each.ranks) > 1]:
        for op, size in (("MPI_Barrier", 0), ("MPI_Reduce", 100), ("MPI_Reduce", 5000), ("MPI_Scan", 8)):
            kind, samples, late = (
                Kind(comm.id, op, size.bit_length()),
                dice.randrange(1, 40),
                dice.choice(comm.ranks),
            )
            calls = samples * dice.choice([1, 1, 8])
            waits = {rank: random_rank(dice, samples, is_late=rank == late) for rank in comm.ranks}
            for rank, one in waits.items():
                build.count(
                    comm.id, op, rank, calls, one.time_ns * calls // samples + dice.randrange(10**6), size
                )
            if op != "MPI_Scan" and dice.random() < 0.9:
                error = 0 if calls == samples else dice.choice([None, dice.randrange(10**7)])
                add_samples(build, kind, waits, samples, calls, error)
            if op == "MPI_Scan" or dice.random() < 0.3:
                add_unsplit(build, kind, "prefix" if op == "MPI_Scan" else "members", dice.randrange(1, 9))


def add_random_messages(build: ProfileBuilder, dice: random.Random) -> None:
    """Add messages with samples; some ranks only send, and others wait for them more often than they make the call."""
    region = build.region("late")
    for comm in [each for each in build.comms.values() if each.kind == "intra" and len(each.ranks) > 2]:
        for op in ("MPI_Recv", "MPI_Sendrecv", "MPI_Waitall"):
            kind, n, each = Kind(comm.id, op, 10), dice.randrange(1, 30), dice.choice([1, 8])
            receivers = comm.ranks[1:]
            waits = {rank: (n, random_rank(dice, n, is_late=False)) for rank in receivers}
            for rank, (_, one) in waits.items():
                build.count(comm.id, op, rank, n * each, one.time_ns * each, 1000)
            senders = [comm.ranks[0], dice.choice(receivers)]
            late = {
                rank: [Late(n, dice.randrange(10**6, 10**8)), Late(n, dice.randrange(10**6, 10**8), region)]
                for rank in senders
            }
            error = 0 if each == 1 else dice.choice([None, dice.randrange(10**7)])
            add_messages(build, kind, waits, late, n * len(receivers) * each, error)
            if dice.random() < 0.5:
                add_unsplit(build, kind, dice.choice(["threads", "posting", "members"]), dice.randrange(1, 9))


def random_rank(dice: random.Random, samples: int, *, is_late: bool) -> RankWaits:
    """Return what a rank spent in sampled calls; a late one is last in most of them."""
    time = dice.randrange(10**6, 10**8)
    last = dice.randrange(samples * 3 // 4, samples + 1) if is_late else 0
    between = dice.randrange(10**8)
    return RankWaits(
        time, dice.randrange(time // 10 if is_late else time), last, dice.randrange(10**7) if last else 0,
        dice.randrange(10**7), between, dice.randrange(between + 1),
    )  # fmt: skip
