# SPDX-License-Identifier: Apache-2.0
"""Models the messages inside collectives that were not measured, from their calls and an algorithm."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from commlens.algorithms import calls as called
from commlens.algorithms import mpich
from commlens.algorithms.calls import Calls
from commlens.algorithms.pattern import Budget
from commlens.algorithms.registry import BUFFER, Algorithm, algorithm, algorithms
from commlens.algorithms.schedule import Call, Integers
from commlens.base.counts import count_text
from commlens.matrix.pairs import Pairs
from commlens.profile.meta import facts

TOO_MANY = "too many messages to model all of them"
_EQUAL = BUFFER | {"barrier", "gather", "scatter", "allgather", "reduce_scatter_block"}
"""Collectives in which all ranks have equal amounts of data."""


class Counted(NamedTuple):
    """Numbers of calls.

    Attributes
    ----------
    collectives : int
        Collectives: the calls of all ranks of a communicator count once. Of a persistent form, its starts.
    calls : int
        Calls of all ranks, as in a report. Of a persistent form, the starts of all ranks.
    """

    collectives: int = 0
    calls: int = 0

    def plus(self, one: Calls) -> Counted:
        """Return the numbers with more calls."""
        return Counted(self.collectives + one.calls, self.calls + one.rank_calls)

    def text(self) -> str:
        """Return both numbers with their nouns.

        >>> Counted(206, 412).text()
        '206 collectives, 412 calls of all ranks'
        """
        return f"{count_text(self.collectives, 'collective')}, {count_text(self.calls, 'call')} of all ranks"


@dataclass
class Model:
    """Modelled messages of each communicator, in world ranks, and the algorithms used."""

    pairs: dict[int, list[Pairs]] = field(default_factory=lambda: defaultdict(list))
    chosen: dict[tuple[str, str, str], Counted] = field(default_factory=dict)
    """Calls by collective, algorithm and source of the choice."""
    left_out: dict[tuple[str, str], Counted] = field(default_factory=dict)
    """Calls by procedure and the reason why they are not modelled."""
    statements: list[tuple[str, str]] = field(default_factory=list)

    def remarks(self) -> Iterator[str]:
        """Yield remarks about the model."""
        yield "modelled, not measured: the messages that collectives would send with these algorithms"
        for (collective, name, by), counted in sorted(self.chosen.items()):
            yield f"{collective} by {name}, {by}: {counted.text()}"
        for (procedure, why), counted in sorted(self.left_out.items()):
            yield f"not modelled: {procedure}, {counted.text()}: {why}"


def model(
    connection: sqlite3.Connection,
    comms: Sequence[str],
    operations: Sequence[str],
    requested: Mapping[str, str],
) -> Model:
    """Model the collectives on some communicators, or on all."""
    ops = called.procedures(connection, operations)
    sql = called.calls_sql(list(ops), comms)
    found = Model(statements=[("calls of collectives", sql)])
    library = facts(connection).get("mpi_library", "")
    all_calls = called.read_calls(connection, sql, ops, called.read_comms(connection))
    budget = Budget.of(sum(len(one.sent) for one in all_calls))
    for one in all_calls:
        why = _add(found, one, requested, library, budget)
        if why:
            left_out = found.left_out.get((one.procedure, why), Counted())
            found.left_out[one.procedure, why] = left_out.plus(one)
    return found


def _add(found: Model, one: Calls, requested: Mapping[str, str], library: str, budget: Budget) -> str:
    """Add the messages of calls; return the reason if that fails, else the empty text."""
    if one.where.why:
        return one.where.why
    if one.is_persistent:
        if one.starts is None:
            return "the number of starts of the requests is unknown"
        one = replace(one, calls=one.starts, rank_calls=one.starts * one.where.size)
    if one.calls < 1:
        return "none returned"
    if one.collective != "barrier" and not one.sent.any() and not one.received.any():
        return "they transfer no bytes"
    size = one.where.size
    if one.collective.startswith("alltoall") and size * size > budget.left:
        return TOO_MANY
    chosen = _choice(one, Call(size, block=_mean(one)), requested, library)
    if chosen is None:
        return (
            f"the algorithm that '{library or 'the MPI library'}' uses is unknown; "
            f"choose one with --algorithm {one.collective}=NAME"
        )
    best, by = chosen
    parts = []
    for root, calls, block in _blocks(one):
        call = Call(size, block=block, root=root)
        if not best.needs(call):
            return f"{best.name} is not defined for these calls"
        pairs = budget.pairs(size, best.steps(call))
        if pairs is None:
            return TOO_MANY
        parts.append(pairs.times(calls))
    members = one.where.members
    found.pairs[one.where.id] += [
        Pairs.summed(members[part.source], members[part.destination], part.messages, part.bytes)
        for part in parts
    ]
    chosen_key = (one.collective, best.name, by)
    found.chosen[chosen_key] = found.chosen.get(chosen_key, Counted()).plus(one)
    return ""


def _choice(
    one: Calls, call: Call, requested: Mapping[str, str], library: str
) -> tuple[Algorithm, str] | None:
    """Return the algorithm, and the source of the choice."""
    if one.collective in requested:
        return algorithm(one.collective, requested[one.collective]), "as chosen"
    if library.startswith("MPICH"):
        name = mpich.chosen(one.collective, call, {})
        if name is not None:
            return algorithm(one.collective, name), "as MPICH chooses by default"
    elif library.startswith("Open MPI") and not any(x.openmpi for x in algorithms(one.collective)):
        return algorithms(one.collective)[0], "the only algorithm of Open MPI"
    return None


def _totals(one: Calls) -> Integers:
    """Return the bytes of all calls as `Call.block` counts them: one number, or one per rank."""
    size = one.where.size
    part = {
        "scatter": one.received,
        "scatterv": one.received,
        "reduce_scatter": one.received,
        "reduce_scatter_block": one.received,
    }.get(one.collective, one.sent)
    if one.collective == "bcast":
        return np.array([int(one.sent.sum())])
    if one.collective in _EQUAL:
        return np.array([int(part.max())])
    if one.collective == "alltoall":
        return np.array([int(part.max()) // size])
    if one.shares is not None:
        return one.shares
    if one.collective.startswith("alltoall"):
        # The destinations are unknown: divides the bytes equally, with one byte more for the first ones.
        whole, rest = np.divmod(part, size)
        table: Integers = whole[:, None] + (np.arange(size) < rest[:, None])
        return table.reshape(-1)
    return part


def _mean(one: Calls) -> int | Integers:
    """Return the bytes of a call by which libraries choose an algorithm; the mean if pairs differ."""
    mean = _totals(one) // one.calls
    return _shaped(mean) if len(mean) <= one.where.size else int(mean.mean())


def _shaped(block: Integers) -> int | Integers:
    return int(block[0]) if len(block) == 1 else block


def _blocks(one: Calls) -> Iterator[tuple[int, int, int | Integers]]:
    """Yield root, number and bytes of calls; all calls are equal, except the last, which has the remainder."""
    totals = _totals(one)
    block = totals // one.calls
    roots = _roots(one)
    last = roots[-1][0]
    rest = totals - block * one.calls
    for root, calls in roots:
        same = calls - (1 if root == last and rest.any() else 0)
        if same:
            yield root, same, _shaped(block)
    if rest.any():
        yield last, 1, _shaped(block + rest)


def _roots(one: Calls) -> list[tuple[int, int]]:
    """Return the number of calls per root, from the bytes that only roots count."""
    weight = one.at_root
    if weight is None:
        return [(0, one.calls)]
    whole = int(weight.sum())
    # Python's integers: calls times bytes may need more than 64 bits.
    parts = {int(root): divmod(int(weight[root]) * one.calls, whole) for root in np.flatnonzero(weight)}
    left = one.calls - sum(calls for calls, _ in parts.values())
    more = set(sorted(parts, key=lambda root: (-parts[root][1], root))[:left])
    shares = [(root, calls + (root in more)) for root, (calls, _) in parts.items()]
    return [(root, calls) for root, calls in shares if calls]
