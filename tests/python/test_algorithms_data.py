# SPDX-License-Identifier: Apache-2.0
"""Every schedule is carried out, message by message, on data of its own, and does what the collective promises.

What is carried out knows the collectives, and not how the schedules were made: a message may only carry what its sender
has at the beginning of the round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
from python_calls import count_calls

from commlens.algorithms.registry import (
    ALGORITHMS,
    BUFFER,
    COLLECTIVES,
    ROOTED,
    Algorithm,
    algorithm,
    compositions,
)
from commlens.algorithms.schedule import Call, Integers, Schedule

SIZES = (*range(1, 34), 64)
MANY = 17
"""From here on one call of each kind: the same code, and it takes seconds."""
Bits = npt.NDArray[np.bool_]
COMPOSED = [one for collective in COLLECTIVES for one in compositions(collective)]


class NotCarriedOutError(Exception):
    """The schedule does not do what the collective promises."""


def demand(holds: object, why: str) -> None:
    if not holds:
        raise NotCarriedOutError(why)


def calls(one: Algorithm, size: int) -> Iterator[Call]:
    """Yield calls that an algorithm is defined for: roots, sizes that do not divide, segments, elements, unequal parts."""
    roots = range(size) if size < 10 else (0, 1, size - 1) if size < MANY else (size // 3,)
    unequal = (np.arange(size) * 5 + 3) % 7
    nodes = [rank // 3 % 5 for rank in range(size)]
    for root in roots if one.collective in ROOTED else (0,):
        call = Call(size, block=2 * size + 1, root=root, nodes=nodes)
        if one.collective in ("alltoall", "alltoallv", "alltoallw"):
            yield call.but(block=3)
            if one.name != "bruck":
                yield call.but(block=np.add.outer(unequal, unequal).reshape(-1))
        elif one.collective in ("bcast", "reduce", "allreduce", "scan", "exscan"):
            yield call
            yield call.but(block=16 * size, element=8)
            if "segment" in one.uses:
                yield call.but(segment=3)
        else:
            yield call.but(block=3, segment=2)
            yield call.but(block=unequal)
        if "fanout" in one.uses:
            yield from (call.but(fanout=fanout, segment=4) for fanout in (2, 3))
        if "radix" in one.uses:
            yield from (call.but(radix=radix, block=2) for radix in (3, 4))


def rounds(schedule: Schedule) -> Iterator[list[tuple[int, int, int, int]]]:
    """Yield source, destination, bytes and offset of the messages of each round."""
    places = np.flatnonzero(np.diff(schedule.round, prepend=-1, append=schedule.rounds))
    for first, last in zip(places, places[1:]):
        columns = (schedule.source, schedule.destination, schedule.bytes, schedule.offset)
        yield list(zip(*(column[first:last].tolist() for column in columns)))


def places(nbytes: int, offset: int, total: int) -> Integers:
    demand(nbytes == 0 or (0 <= offset <= total and nbytes <= total), "a message of what is not there")
    return (offset + np.arange(nbytes)) % max(total, 1)


def parts_of(call: Call) -> list[slice]:
    ends = np.cumsum(call.parts)
    return [slice(int(end - nbytes), int(end)) for nbytes, end in zip(call.parts, ends)]


def move(schedule: Schedule, has: Bits) -> Bits:
    """Copy data: has[rank, byte]."""
    for messages in rounds(schedule):
        before = has.copy()
        for source, destination, nbytes, offset in messages:
            where = places(nbytes, offset, has.shape[1])
            demand(before[source, where].all(), f"rank {source} sends what it does not have")
            has[destination, where] = True
    return has


def combine(call: Call, schedule: Schedule, total: int, hands_on: bool = False) -> Bits:
    """Reduce: what is returned says of [rank, byte] whose operands are in it.

    Data that comes is either added, then it shares no operand with what is there, or takes its place, then it has all
    of those: nothing else gives a sum in which each operand is once.  With `hands_on`, a message to a rank that is nearer
    than earlier partners were carries what came last, without what the sender has.
    """
    size = call.size
    of = np.zeros((size, total, size), bool)
    of[np.arange(size), :, np.arange(size)] = True
    came = np.zeros_like(of)
    farthest = 0
    for messages in rounds(schedule):
        before, came_before = of.copy(), came.copy()
        for source, destination, nbytes, offset in messages:
            where = places(nbytes, offset, total)
            farthest = max(farthest, source ^ destination)
            on = hands_on and source ^ destination < farthest
            comes, there = (came_before if on else before)[source, where], of[destination, where]
            apart = ~(comes & there).any(axis=1)
            over = ~(there & ~comes).any(axis=1)
            demand((apart | over).all(), f"an operand is in the sum twice, {source} to {destination}")
            of[destination, where] = comes | there
            came[destination, where] = comes
    return of


def bcast(call: Call, schedule: Schedule) -> None:
    has = np.zeros((call.size, call.bytes), bool)
    has[call.root] = True
    demand(move(schedule, has).all(), "someone lacks data")


def gather(call: Call, schedule: Schedule) -> None:
    has = np.zeros((call.size, int(call.parts.sum())), bool)
    for rank, part in enumerate(parts_of(call)):
        has[rank, part] = True
    demand(move(schedule, has)[call.root].all(), "the root lacks data")


def scatter(call: Call, schedule: Schedule) -> None:
    has = np.zeros((call.size, int(call.parts.sum())), bool)
    has[call.root] = True
    has = move(schedule, has)
    demand(all(has[rank, part].all() for rank, part in enumerate(parts_of(call))), "someone lacks its part")


def allgather(call: Call, schedule: Schedule) -> None:
    has = np.zeros((call.size, int(call.parts.sum())), bool)
    for rank, part in enumerate(parts_of(call)):
        has[rank, part] = True
    demand(move(schedule, has).all(), "someone lacks data")


def alltoall(call: Call, schedule: Schedule) -> None:
    size, matrix = call.size, call.matrix
    ends = np.cumsum(matrix).reshape(size, size)
    has = np.zeros((size, int(matrix.sum())), bool)
    for rank in range(size):
        has[rank, ends[rank, 0] - matrix[rank, 0] : ends[rank, -1]] = True
    has = move(schedule, has)
    for source in range(size):
        for rank in range(size):
            end = ends[source, rank]
            demand(has[rank, end - matrix[source, rank] : end].all(), "someone lacks its part")


def bruck(call: Call, schedule: Schedule) -> None:
    """All that has to go as far as has the digit this round is about, in the base of the call, goes at once."""
    size = call.size
    at = {(source, to): source for source in range(size) for to in range(size)}
    for messages in rounds(schedule):
        moved = {}
        for source, destination, nbytes, _ in messages:
            distance = (destination - source) % size
            power = 1
            while power * call.radix <= distance:
                power *= call.radix
            goes = [
                (origin, to)
                for (origin, to), holder in at.items()
                if holder == source and (to - origin) % size // power % call.radix == distance // power
            ]
            demand(nbytes == len(goes) * call.bytes, "a message of another size")
            moved.update(dict.fromkeys(goes, destination))
        at.update(moved)
    demand(all(to == holder for (_, to), holder in at.items()), "something has not arrived")


def reduce(call: Call, schedule: Schedule) -> None:
    demand(combine(call, schedule, call.bytes)[call.root].all(), "the root lacks an operand")


def allreduce(call: Call, schedule: Schedule) -> None:
    demand(combine(call, schedule, call.bytes).all(), "someone lacks an operand")


def reduce_scatter(call: Call, schedule: Schedule, hands_on: bool = False) -> None:
    of = combine(call, schedule, int(call.parts.sum()), hands_on)
    demand(
        all(of[rank, part].all() for rank, part in enumerate(parts_of(call))),
        "someone lacks an operand of its part",
    )


def barrier(call: Call, schedule: Schedule) -> None:
    knows = np.eye(call.size, dtype=bool)
    for messages in rounds(schedule):
        before = knows.copy()
        for source, destination, nbytes, _ in messages:
            demand(nbytes == 0, "a barrier moves data")
            knows[destination] |= before[source]
    demand(knows.all(), "someone goes on before all are there")


def scan(call: Call, schedule: Schedule) -> None:
    """Each rank keeps the sum of what has come, and apart from it that of what has come from below."""
    size = call.size
    all_came, below = np.eye(size, dtype=bool), np.zeros((size, size), bool)
    for messages in rounds(schedule):
        before = all_came.copy()
        for source, destination, nbytes, offset in messages:
            demand((nbytes, offset) == (call.bytes, 0), "a part of the data only")
            demand(not (all_came[destination] & before[source]).any(), "an operand is in the sum twice")
            all_came[destination] |= before[source]
            if source < destination:
                below[destination] |= before[source]
    demand((below == np.tri(size, k=-1, dtype=bool)).all(), "a sum of others than those below")


def swing(call: Call, schedule: Schedule) -> None:
    """Send one's partner the sums of the blocks that the partner and all those it goes on to meet will need."""
    size = call.size
    number = size.bit_length() - 1
    block = [call.count // size + (rank < call.count % size) for rank in range(size)]
    peers = []
    for messages in list(rounds(schedule))[:number]:
        peers.append({source: destination for source, destination, _, _ in messages})

    def meets(rank: int, turn: int) -> set[int]:
        return {rank}.union(*(meets(peers[later][rank], later + 1) for later in range(turn, number)))

    sums = [{owner: {rank} for owner in range(size)} for rank in range(size)]
    for turn, messages in enumerate(rounds(schedule)):
        before = [{owner: set(of) for owner, of in all_of.items()} for all_of in sums]
        for source, destination, nbytes, _ in messages:
            first = turn < number
            carried = meets(destination, turn + 1) if first else meets(source, 2 * number - turn)
            demand(
                nbytes == sum(block[owner] for owner in carried) * call.element, "a message of another size"
            )
            for owner in carried:
                there, comes = sums[destination][owner], before[source][owner]
                demand(not there & comes or there <= comes, "an operand is in the sum twice")
                there |= comes
    demand(all(len(of) == size for all_of in sums for of in all_of.values()), "someone lacks an operand")


def mirrored_halving(call: Call, schedule: Schedule) -> None:
    """Of the blocks both have, partners part those of ranks with their own bit."""
    size = call.size
    sums = [{owner: {rank} for owner in range(size)} for rank in range(size)]
    for turn, messages in enumerate(rounds(schedule)):
        before = [{owner: set(of) for owner, of in all_of.items()} for all_of in sums]
        for source, destination, nbytes, _ in messages:
            carried = [owner for owner in before[source] if (owner ^ destination) % (2 << turn) == 0]
            demand(nbytes == len(carried) * call.bytes, "a message of another size")
            for owner in carried:
                demand(not sums[destination][owner] & before[source][owner], "an operand is in the sum twice")
                sums[destination][owner] |= before[source][owner]
    demand(all(len(sums[rank][rank]) == size for rank in range(size)), "someone lacks an operand")


def hierarchical(collective: str, call: Call, schedule: Schedule) -> None:
    """Count the bytes of each rank and let what it knows spread: the data is not one range."""
    size, parts = call.size, call.parts
    knows = np.eye(size, dtype=bool)
    comes, goes = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(comes, schedule.destination, schedule.bytes)
    np.add.at(goes, schedule.source, schedule.bytes)
    for messages in rounds(schedule):
        before = knows.copy()
        for source, destination, _, _ in messages:
            knows[destination] |= before[source]
    others = np.arange(size) != call.root
    if collective.startswith("gather"):
        demand(knows[call.root].all() and (goes - comes == parts)[others].all(), "the root lacks data")
    elif collective.startswith("scatter"):
        demand(knows[:, call.root].all() and (comes - goes == parts)[others].all(), "someone lacks its part")
    else:
        leads = np.isin(np.arange(size), np.unique(np.asarray(call.nodes), return_index=True)[1])
        demand(knows.all() and (comes >= parts.sum() - parts * leads).all(), "someone lacks data")


PROMISES: dict[str, Callable[[Call, Schedule], None]] = {
    "barrier": barrier,
    "bcast": bcast,
    "reduce": reduce,
    "allreduce": allreduce,
    "gather": gather,
    "gatherv": gather,
    "scatter": scatter,
    "scatterv": scatter,
    "allgather": allgather,
    "allgatherv": allgather,
    "alltoall": alltoall,
    "alltoallv": alltoall,
    "alltoallw": alltoall,
    "reduce_scatter": reduce_scatter,
    "reduce_scatter_block": reduce_scatter,
    "scan": scan,
    "exscan": scan,
}


def carry_out(one: Algorithm, call: Call, schedule: Schedule) -> None:
    """Carry a schedule out.

    Raises
    ------
    NotCarriedOutError
        The collective's promise is not kept.
    """
    if one.name != "pairwise_with_self":
        demand((schedule.source != schedule.destination).all(), "a message to oneself")
    if one.name == "swing":
        swing(call, schedule)
    elif one.name == "mirrored_halving":
        mirrored_halving(call, schedule)
    elif one.name == "recursive_doubling" and one.collective.startswith("reduce_scatter"):
        reduce_scatter(call, schedule, hands_on=True)
    elif one.collective == "alltoall" and one.name == "bruck":
        bruck(call, schedule)
    elif one.name == "hierarchical" and one.collective not in (*BUFFER, "barrier"):
        hierarchical(one.collective, call, schedule)
    else:
        PROMISES[one.collective](call, schedule)


NOT_NEEDED: dict[tuple[str, str], Callable[[Schedule, Call], Bits]] = {
    # Empty, and call for the others.
    ("gather", "linear_sync"): lambda schedule, _: schedule.bytes == 0,
    # Back to those who had it: in an all-gather all get all, and who had to scatter has more than one part.
    ("bcast", "scatter_allgather"): lambda schedule, _: schedule.round >= 3,
    ("bcast", "scatter_ring"): lambda schedule, _: schedule.round >= 3,
    # Who the result comes back to still has the operands it has sent away, if it added them once more.
    ("reduce", "in_order_binary"): lambda schedule, call: schedule.source == call.root,
    ("reduce", "rabenseifner"): lambda schedule, _: schedule.source < schedule.destination,
    ("reduce", "reduce_scatter_gather"): lambda schedule, _: schedule.source < schedule.destination,
    # What one round says of the first ranks, the other says, too.
    ("barrier", "double_ring"): lambda schedule, call: abs(schedule.round - call.size + 0.5) > call.size - 2,
    # Oneself has it.
    ("alltoallv", "pairwise_with_self"): lambda schedule, _: schedule.source == schedule.destination,
    # Sums from above are needed by no rank below, but by those who hand them on.
    ("scan", "recursive_doubling"): lambda schedule, _: schedule.source > schedule.destination,
    ("exscan", "recursive_doubling"): lambda schedule, _: schedule.source > schedule.destination,
}
"""Messages that algorithms send although the promise would be kept without any one of them; and why."""


def without(schedule: Schedule, place: int) -> Schedule:
    """Return a schedule that lacks one message."""
    keep = np.arange(len(schedule)) != place
    return Schedule(
        schedule.size,
        schedule.round[keep],
        schedule.source[keep],
        schedule.destination[keep],
        schedule.bytes[keep],
        schedule.offset[keep],
    )


@pytest.mark.parametrize("one", ALGORITHMS, ids=lambda one: f"{one.collective}-{one.name}")
def test_data_gets_where_the_collective_promises(one: Algorithm) -> None:
    done = 0
    for size in SIZES:
        for call in calls(one, size):
            if not one.needs(call) or (size >= MANY and call.segment):
                continue
            schedule = one.schedule(call)
            if len(schedule) < 40 * size or size <= 33:
                carry_out(one, call, schedule)
                done += 1
    assert done


@pytest.mark.parametrize("one", COMPOSED, ids=lambda one: f"{one.collective}-{one.name}")
def test_data_gets_where_the_collective_promises_by_two_others(one: Algorithm) -> None:
    done = 0
    for size in (1, 2, 3, 6, 7, 8, 13):
        call = Call(size, block=2 * size + 1, segment=5)
        if one.needs(call):
            carry_out(one, call, one.schedule(call))
            done += 1
    assert done


@pytest.mark.parametrize("one", ALGORITHMS, ids=lambda one: f"{one.collective}-{one.name}")
def test_without_any_one_of_its_messages_the_promise_is_broken(one: Algorithm) -> None:
    """The other tests can fail; and nothing is sent twice, but for what is meant to be."""
    size = 8 if one.needs(Call(8, block=17, nodes=[0] * 8)) else 2
    call = Call(size, block=17, nodes=[rank // 3 for rank in range(size)], segment=2)
    schedule = one.schedule(call)
    kept = []
    for place in range(len(schedule)):
        try:
            carry_out(one, call, without(schedule, place))
        except (NotCarriedOutError, KeyError):
            continue
        kept.append(place)
    if (one.collective, one.name) not in NOT_NEEDED:
        assert not kept
    else:
        assert kept
        assert NOT_NEEDED[one.collective, one.name](schedule, call)[kept].all()


def test_a_schedule_of_4096_ranks_takes_no_longer_than_its_messages() -> None:
    """Rounds are made with arrays: rank by rank this would take minutes."""
    for collective, name in (("allgather", "ring"), ("alltoall", "pairwise"), ("bcast", "binomial")):
        one = algorithm(collective, name)
        calls, messages = count_calls(
            lambda one=one: sum(len(step.round) for step in one.steps(Call(4096, block=8192)))  # type: ignore[misc]
        )
        rounds = 12 if collective == "bcast" else 4095
        assert messages == (4095 if collective == "bcast" else 4096 * 4095)
        assert calls < 400 * rounds, name  # as measured: 85 for each round of a ring


def test_an_algorithm_refuses_a_call_it_is_not_defined_for() -> None:
    with pytest.raises(ValueError, match="allgather by neighbour_exchange is not defined"):
        algorithm("allgather", "neighbour_exchange").schedule(Call(5))
    with pytest.raises(ValueError, match="bcast has no algorithm fastest; there are linear, chain"):
        algorithm("bcast", "fastest")
    with pytest.raises(ValueError, match="no collective bcasts"):
        algorithm("bcasts", "linear")
