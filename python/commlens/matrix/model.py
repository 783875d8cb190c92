# SPDX-License-Identifier: Apache-2.0
"""Models the messages inside collectives that were not measured, from their calls and an algorithm."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from commlens.algorithms import calls as called
from commlens.algorithms import mpich
from commlens.algorithms.calls import Calls
from commlens.algorithms.pattern import Budget
from commlens.algorithms.registry import BUFFER, Algorithm, algorithm, algorithms
from commlens.algorithms.schedule import Call, Integers
from commlens.matrix.pairs import Pairs
from commlens.profile.meta import facts

TOO_MANY = "too many messages to model all of them"
_EQUAL = BUFFER | {"barrier", "gather", "scatter", "allgather", "reduce_scatter_block"}
"""Collectives in which all ranks have equal amounts of data."""


@dataclass
class Model:
    """Modelled messages of each communicator, in world ranks, and the algorithms used."""

    pairs: dict[int, list[Pairs]] = field(default_factory=lambda: defaultdict(list))
    chosen: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Calls by collective, algorithm and source of the choice."""
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Calls by procedure and the reason why they are not modelled."""
    statements: list[tuple[str, str]] = field(default_factory=list)

    def remarks(self) -> Iterator[str]:
        """Yield remarks about the model."""
        yield "modelled, not measured: the messages that collectives would send with these algorithms"
        for (collective, name, by), calls in sorted(self.chosen.items()):
            yield f"{collective} by {name}, {by}: {calls:,} calls"
        for (procedure, why), calls in sorted(self.left_out.items()):
            yield f"not modelled: {calls:,} calls of {procedure}: {why}"


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
            found.left_out[one.procedure, why] += one.calls
    return found


def _add(found: Model, one: Calls, requested: Mapping[str, str], library: str, budget: Budget) -> str:
    """Add the messages of calls; return the reason if that fails, else the empty text."""
    if one.where.why:
        return one.where.why
    if one.is_persistent:
        if one.starts is None:
            return "the number of starts of the requests is unknown"
        one = replace(one, calls=one.starts)
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
    found.chosen[one.collective, best.name, by] += one.calls
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
    share = weight * one.calls
    calls = share // int(weight.sum())
    left = one.calls - int(calls.sum())
    nearest = np.argsort(-(share % int(weight.sum())), kind="stable")[:left]
    calls[nearest] += 1
    return [(int(root), int(calls[root])) for root in np.flatnonzero(calls)]
