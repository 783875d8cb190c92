# SPDX-License-Identifier: Apache-2.0
"""Identifies the algorithms of the collectives in a profile from the measured messages inside them."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from commlens.algorithms import calls as called
from commlens.algorithms.calls import Calls, CommFacts
from commlens.algorithms.matching import Candidate, Match, Measured, match
from commlens.algorithms.pattern import Budget, Pairs
from commlens.algorithms.schedule import Call, Integers
from commlens.algorithms.trees import depth
from commlens.selection.names import check_communicators, matching_operations
from commlens.selection.peers import refuse

_MOST_STARTS = 24
"""Numbers of starts to try for a persistent collective."""
_EXACT = 1 - 1e-9

SENDS_NOTHING = "sends nothing"
UNKNOWN = "unknown"


@dataclass
class Line:
    """Communicators of one family on which calls of one procedure and size use the same algorithm.

    Attributes
    ----------
    where : the communicators
    calls : all of them together; for a persistent form, the number of starts, or None if unknown
    block : bytes of each call as `schedule.Call.block` counts them, if all calls have the same size
    messages : those inside the calls, by rank of the communicator; of the first communicator
    match : the candidates, best first; of the communicator with the worst fit
    roots : number of calls per root, as rank of the communicator
    why : reason why there is no match, or the empty text
    """

    where: list[CommFacts]
    procedure: str
    collective: str
    bins: tuple[int, ...]
    sizes: tuple[int, int] | None
    calls: int | None
    block: int | None
    messages: Pairs
    match: Match
    roots: Counter[int]
    why: str

    @property
    def best(self) -> Candidate | None:
        """The algorithm, or the first of several that send the same messages."""
        return self.match.best[0] if self.match.best else None

    @property
    def verdict(self) -> str:
        """The name of the algorithm, "unknown", "ambiguous: A or B", or the reason why none can be named."""
        return self.why or self.match.verdict

    @property
    def fit(self) -> float | None:
        """The fit of the best candidate, even if it is too low to name it."""
        return self.match.candidates[0].fit if self.match.candidates else None

    @property
    def call(self) -> Call | None:
        """One call of the algorithm, with its known properties."""
        if self.best is None:
            return None
        parameters = dict(self.best.parameters)
        parameters.pop("segments", None)
        if "segment" in parameters:
            parameters["segment"] = parameters["segment"][0]
        block = self.block if self.block is not None else self.sizes[0] if self.sizes else 1
        root = min(self.roots) if self.roots else 0
        return Call(self.where[0].size, block=block, root=root).but(**parameters)

    @property
    def tree(self) -> Integers | None:
        """Parent of each rank, -1 for the root; with several roots, the tree of the first. None if it is not a tree."""
        if self.best is None or self.best.algorithm.tree is None:
            return None
        call = self.call
        assert call is not None
        return self.best.algorithm.tree(call)

    @property
    def shape(self) -> dict[str, int]:
        """Depth and degree of a tree, else the number of rounds; empty if unknown."""
        tree = self.tree
        if tree is not None:
            return {
                "depth": int(depth(tree).max()),
                "degree": int(np.bincount(tree[tree >= 0]).max(initial=0)),
            }
        call, best = self.call, self.best
        # Without the nodes, the rounds of an algorithm that depends on them are unknown.
        if best is None or call is None or "nodes" in best.algorithm.uses or not best.algorithm.needs(call):
            return {}
        rounds = max((int(one.round.max(initial=-1)) for one in best.algorithm.steps(call)), default=-1) + 1
        return {"rounds": rounds}


@dataclass
class Found:
    """The lines found, and remarks about them."""

    lines: list[Line]
    remarks: list[str] = field(default_factory=list)
    statements: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class _Inside:
    """The messages of one communicator and procedure that belong to calls of one size, by rank of the communicator."""

    pairs: Pairs
    is_in_blocks: bool = False
    posted: str = ""  # how all of them were posted; empty if in different ways


def recognise(
    connection: sqlite3.Connection, comms: Sequence[str] = (), operations: Sequence[str] = ()
) -> Found:
    """Name the algorithms of the collectives on some communicators, or on all.

    Raises
    ------
    CommlensError
        The profile has no messages, or no such communicator or procedure.
    """
    refuse(connection)
    check_communicators(connection, comms)
    ops = called.procedures(connection, matching_operations(connection, operations))
    places = called.read_comms(connection)
    calls_sql, pairs_sql = called.calls_sql(list(ops), comms), _pairs_sql(list(ops), comms)
    found = Found([], statements=[("calls", calls_sql), ("messages inside them", pairs_sql)])
    outcome = connection.execute("SELECT value FROM meta WHERE key = 'inside'").fetchone()
    inside, unplaced = _read_inside(connection, pairs_sql, places)
    if not inside and (outcome is None or outcome[0] != "measured"):
        found.remarks.append(_not_measured(outcome[0] if outcome else ""))
        return found
    if unplaced:
        found.remarks.append(
            f"{unplaced:,} messages inside collectives are left out: they belong to communicators that the MPI library created "
            "for itself, or one end is unknown"
        )
    nodes = {int(rank): node for rank, node in connection.execute("SELECT rank, node FROM rank")}
    matcher = _Matcher(nodes, Budget.of(sum(len(one.pairs.source) for one in inside.values())))
    names = {name: id for id, (name, _) in ops.items()}
    singles = [
        _line(one, inside.get((one.where.id, names[one.procedure], bin)), matcher)
        for group in called.by_procedure(called.read_calls(connection, calls_sql, ops, places))
        for one, bin in _with_bins(group, inside, names[group[0].procedure])
    ]
    found.lines = _families(singles)
    return found


def _not_measured(outcome: str) -> str:
    why = f" ({outcome})" if outcome else ""
    return (
        f"the messages inside collectives were not measured{why}; the run needs COMMLENS_MATRIX=all and an MPI library that "
        "exposes them (Open MPI). 'commlens matrix --kind modelled' draws the messages that an algorithm would send"
    )


def _pairs_sql(ops: Sequence[int], comms: Sequence[str]) -> str:
    return (
        f"SELECT comm, op, COALESCE(call_bin, {_NO_BIN}) AS call_bin, rank, COALESCE(peer, -1), COALESCE(first, -1), peers,\n"
        "       SUM(messages), SUM(bytes),\n"
        f"       MIN({_POSTED}), MAX({_POSTED})\n"
        "  FROM peer JOIN flow ON flow.id = peer.flow\n"
        f" WHERE flow.name = 'collective' AND {called.conditions('peer', ops, comms)}\n"
        " GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3"
    )


_HOW = ("", "isend", "send", "start")
_POSTED = "CASE posted WHEN 'isend' THEN 1 WHEN 'send' THEN 2 WHEN 'start' THEN 3 ELSE 0 END"
"""Index in _HOW; 0 in profiles that do not have it."""

_NO_BIN = -2
"""Bin of messages whose call has an unknown size."""


def _read_inside(
    connection: sqlite3.Connection, sql: str, places: dict[int, CommFacts]
) -> tuple[dict[tuple[int, int, int], _Inside], int]:
    """Return the messages by communicator, procedure and size bin, and the number of unassigned messages."""
    table = called.rows_of(connection, sql, 11)
    starts = np.flatnonzero(np.any(table[1:, :3] != table[:-1, :3], axis=1)) + 1
    found, unplaced = {}, 0
    for part in np.split(table, starts) if len(table) else []:
        comm, op, bin = (int(value) for value in part[0, :3])
        if comm not in places:
            unplaced += int(part[:, 7].sum())
            continue
        members = places[comm].members
        if not len(members):
            found[comm, op, bin] = _Inside(_NOTHING)
            continue
        source = called.ranks_of(members, part[:, 3])
        known = part[:, 4] >= 0
        destination = np.where(known, called.ranks_of(members, part[:, 4]), part[:, 5])
        good = (part[:, 6] == 1) & (source >= 0) & (destination >= 0) & (destination < len(members))
        unplaced += int(part[~good & (part[:, 6] == 1), 7].sum())
        pairs = Pairs.of(len(members), source[good], destination[good], part[good, 7], part[good, 8])
        lowest, highest = int(part[:, 9].min()), int(part[:, 10].max())
        posted = _HOW[lowest] if lowest == highest else ""
        found[comm, op, bin] = _Inside(pairs, bool((part[:, 6] > 1).any()), posted)
    return found, unplaced


_NOTHING = Pairs.of(1, *(np.zeros(0, np.int64) for _ in range(4)))


def _with_bins(
    group: list[Calls], inside: dict[tuple[int, int, int], _Inside], op: int
) -> Iterator[tuple[Calls, int]]:
    """Yield calls with the bin of their messages: per size, or all together if the size of some messages is unknown."""
    comm = group[0].where.id
    if (comm, op, _NO_BIN) not in inside:
        yield from ((one, one.bins[0]) for one in group)
        return
    first, *others = group
    for one in group:
        mine = inside.pop((comm, op, one.bins[0]), None)
        if mine is not None:
            rest = inside[comm, op, _NO_BIN]
            rest.pairs = _added(rest.pairs, mine.pairs)
            rest.is_in_blocks = rest.is_in_blocks or mine.is_in_blocks
            rest.posted = rest.posted if rest.posted == mine.posted else ""
    yield first.merged(others), _NO_BIN


def _added(one: Pairs, other: Pairs) -> Pairs:
    columns = ("source", "destination", "messages", "bytes")
    return Pairs.of(
        max(one.size, other.size),
        *(np.concatenate([getattr(pairs, column) for pairs in (one, other)]) for column in columns),
    )


class _Matcher:
    """Matches patterns, and caches the results for equal patterns on other communicators."""

    def __init__(self, nodes: dict[int, str], budget: Budget) -> None:
        self.nodes, self.budget = nodes, budget
        self.known: dict[tuple[Any, ...], Match] = {}

    def of(
        self, one: Calls, calls: int, inside: _Inside, block: int | Integers | tuple[int, int] | None
    ) -> Match:
        pairs = inside.pairs
        # Non-blocking and persistent collectives have algorithms of their own, which post in their own way.
        is_blocking = one.procedure.lower() == f"mpi_{one.collective}"
        posted = inside.posted if is_blocking else ""
        nodes = self._nodes_of(one.where.members)
        at_root = one.at_root
        roots = None if at_root is None else tuple(np.flatnonzero(at_root).tolist())
        key = (
            *(one.collective, one.where.size, calls, nodes, roots, posted),
            block.tobytes() if isinstance(block, np.ndarray) else block,
            *(column.tobytes() for column in (pairs.pair, pairs.messages, pairs.bytes)),
        )
        if key not in self.known:
            measured = Measured(
                one.collective, calls, pairs, block, roots=roots, posted=posted, budget=self.budget
            )
            self.known[key] = match(measured, nodes)
        return self.known[key]

    def _nodes_of(self, members: Integers) -> tuple[int, ...] | None:
        """Return the node of each rank; None without a hierarchy: all ranks on one node, or each on its own."""
        numbers: dict[str, int] = {}
        found = tuple(numbers.setdefault(self.nodes.get(rank, ""), len(numbers)) for rank in members.tolist())
        return found if 1 < len(numbers) < len(found) else None


def _line(one: Calls, inside: _Inside | None, matcher: _Matcher) -> Line:
    nothing = Match(())
    why = one.where.why
    if not why and inside is not None and inside.is_in_blocks:
        why = "unknown: messages are counted for blocks of ranks together (COMMLENS_MATRIX_PAIRS)"
    elif why:
        why = f"unknown: {why}"
    elif inside is None or not len(inside.pairs.pair):
        why = SENDS_NOTHING
    calls: int | None = one.calls
    block = None
    found = nothing
    if not why and inside is not None:
        if one.is_persistent:
            calls, block, found = _started(one, inside, matcher)
        else:
            block, found = _matched(one, one.calls, inside, matcher)
    elif one.is_persistent:
        calls = None
    best = found.best[0] if found.best else None
    return Line(
        where=[one.where],
        procedure=one.procedure,
        collective=one.collective,
        bins=one.bins,
        sizes=one.sizes,
        calls=calls,
        block=block,
        messages=inside.pairs if inside else _NOTHING,
        match=found,
        roots=Counter(best.roots if best else {}),
        why=why,
    )


def _matched(one: Calls, calls: int, inside: _Inside, matcher: _Matcher) -> tuple[int | None, Match]:
    """Match under the assumption that all calls have one size if possible; if nothing fits, without it."""
    block = one.mean(calls)
    range_ = None if one.sizes is None else (one.sizes[0], one.sizes[1] + 1)
    found = matcher.of(one, calls, inside, block if block is not None else range_)
    if block is not None and not found.best and (one.sizes is None or one.sizes[0] < one.sizes[1]):
        of_several = matcher.of(one, calls, inside, range_)
        if of_several.best:
            return None, of_several
    return block if isinstance(block, int) else None, found


def _started(one: Calls, inside: _Inside, matcher: _Matcher) -> tuple[int | None, int | None, Match]:
    """Match the messages of a persistent form.

    An unknown number of starts must divide the number of messages of every pair.
    """
    if one.starts:
        block, found = _matched(one, one.starts, inside, matcher)
        if found.best:
            return one.starts, block, found
    common = int(np.gcd.reduce(inside.pairs.messages))
    divisors = sorted(
        {part for n in range(1, math.isqrt(common) + 1) if common % n == 0 for part in (n, common // n)},
        reverse=True,
    )
    if one.sizes is not None and one.sizes[0] < one.sizes[1]:
        divisors = [starts for starts in divisors if one.mean(starts) is not None]
    best: tuple[int | None, int | None, Match] = (None, None, Match(()))
    for starts in divisors[:_MOST_STARTS]:
        block, found = _matched(one, starts, inside, matcher)
        if found.best and (not best[2].best or found.best[0].fit > best[2].best[0].fit):
            best = (starts, block, found)
            if found.best[0].fit > _EXACT:
                break
    return best


def _families(singles: list[Line]) -> list[Line]:
    """Combine the communicators of a family that have the same result."""
    groups: dict[tuple[Any, ...], list[Line]] = defaultdict(list)
    for one in singles:
        first = one.where[0]
        key = (first.family, one.procedure, one.bins, first.size, one.verdict, _parameters(one), one.block)
        groups[key].append(one)
    lines = []
    for group in groups.values():
        worst = min(group, key=lambda one: one.fit if one.fit is not None else 1.0)
        calls = [one.calls for one in group]
        worst.where, worst.messages = [one.where[0] for one in group], group[0].messages
        worst.calls = None if None in calls else sum(calls)  # type: ignore[arg-type]  # no None among them
        worst.roots = sum((one.roots for one in group), Counter())
        lines.append(worst)
    return sorted(lines, key=lambda one: (one.where[0].id, one.procedure, one.bins))


def _parameters(one: Line) -> str:
    return repr(sorted(one.best.parameters.items())) if one.best else ""
