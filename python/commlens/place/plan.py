# SPDX-License-Identifier: Apache-2.0
"""The advice: traffic and machine of a profile, the placement of the run, a better one, and what it changes."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from commlens.base.arrays import Ints
from commlens.base.errors import CommlensError
from commlens.matrix.pairs import Pairs
from commlens.matrix.patterns import MOST_CART, Grid, cart_grid
from commlens.matrix.query import KINDS, Matrix
from commlens.place import mapper, objective, others
from commlens.place.grids import fits
from commlens.place.machine import Machine
from commlens.place.objective import Graph

WELL = 0.03
"""Distance from the lower bound, relative to it, from which on a placement is not changed."""

LEAST_GAIN = 0.01
"""Share of the cost that a change must save to be advised."""

AS_GOOD = 0.02
"""Relative difference of two costs that count as equally good."""

MOST_COMMS = 1000
"""Communicators with the most traffic that are compared."""


@dataclass(frozen=True)
class CommChange:
    """What the advice changes for a communicator: its cost before and after."""

    name: str
    size: int
    bytes: int
    before: float
    after: float

    @property
    def gain(self) -> float:
        """What it saves; below 0: what it pays."""
        return self.before - self.after


@dataclass(frozen=True)
class Reordered:
    """A Cartesian communicator with its dimensions in another order.

    Attributes
    ----------
    name : str
    dims, order : tuple of int
        Its dimensions, and which of them varies slowest, then next, for the placement of `cost`.
    cost : float
        Of all traffic, with ranks numbered in that order along the slots of the run.
    """

    name: str
    dims: tuple[int, ...]
    order: tuple[int, ...]
    cost: float

    @property
    def is_unchanged(self) -> bool:
        """Whether this is the order that the application has."""
        return self.order == tuple(range(len(self.dims)))


@dataclass
class Plan:
    """The advice.

    Attributes
    ----------
    before, after : Ints
        Slot of each rank in the run and as advised.
    before_is : str
        "as it ran", or the assumption about the other machine.
    bound : float
        A cost that no placement can go below.
    mapper : str
        Who searched.
    """

    machine: Machine
    graph: Graph
    before: Ints
    after: Ints
    before_is: str
    bound: float
    optimal: bool
    mapper: str = mapper.OWN
    comms: list[CommChange] = field(default_factory=list)
    grids: list[Reordered] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def cost_before(self) -> float:
        """Cost of the placement of the run."""
        return objective.cost(self.graph, self.machine, self.before)

    @property
    def cost_after(self) -> float:
        """Cost as advised."""
        return objective.cost(self.graph, self.machine, self.after)

    @property
    def is_well(self) -> bool:
        """Whether the ranks are placed well already."""
        before = self.cost_before
        return before <= self.bound * (1 + WELL) or before - self.cost_after < LEAST_GAIN * before

    @property
    def moved(self) -> int:
        """Number of ranks that get another slot."""
        return int(np.count_nonzero(self.before != self.after))

    def as_dict(self) -> dict[str, Any]:
        """Return the advice for JSON."""
        levels = zip(
            self.machine.levels,
            objective.by_level(self.graph, self.machine, self.before).tolist(),
            objective.by_level(self.graph, self.machine, self.after).tolist(),
        )
        return {
            "ranks": self.graph.size,
            "slots": len(self.machine),
            "before_is": self.before_is,
            "cost_before": self.cost_before,
            "cost_after": self.cost_after,
            "bound": self.bound,
            "optimal": self.optimal,
            "mapper": self.mapper,
            "placed_well": self.is_well,
            "moved": self.moved,
            "levels": [
                {"level": level.name, "distance": level.distance, "before": before, "after": after}
                for level, before, after in levels
            ],
            "communicators": [
                {"name": c.name, "size": c.size, "bytes": c.bytes, "before": c.before, "after": c.after}
                for c in self.comms
            ],
            "cartesian": [
                {"name": g.name, "dims": list(g.dims), "order": list(g.order), "cost": g.cost}
                for g in self.grids
            ],
            "remarks": self.remarks,
            "placement": [
                {
                    "rank": rank,
                    "node": self.machine.slots[slot].node,
                    "cpus": list(self.machine.slots[slot].cpus),
                    "node_before": self.machine.slots[old].node,
                }
                for rank, (slot, old) in enumerate(zip(self.after.tolist(), self.before.tolist()))
            ],
        }


def make(
    matrix: Matrix,
    machine: Machine,
    before: Ints,
    before_is: str,
    *,
    seed: int = mapper.SEED,
    pins: Mapping[int, int] | None = None,
    by: str = mapper.OWN,
    is_selected: bool = False,
) -> Plan:
    """Return the advice for a communication matrix.

    Parameters
    ----------
    before : Ints
        Slot of each rank in the run.
    by : str
        Who searches: "commlens", "kahip" or "scotch".
    is_selected : bool
        Whether the matrix has some communicators of the profile only.

    Raises
    ------
    CommlensError
        There is no traffic between ranks, the machine is too small, or the mapper cannot be used.
    """
    ranks = len(before)
    if ranks < 2:
        raise CommlensError("nothing to place: one rank has no partners")
    graph = objective.traffic(
        _of_ranks(matrix.all, ranks), ranks, float(machine.per_message[-1]), not machine.is_uniform
    )
    if not graph.total:
        where = "the selected communicators have" if is_selected else "this profile has"
        raise CommlensError(f"nothing to place: {where} no traffic between ranks of kind {matrix.kind}")
    grids = _grids(matrix, ranks)
    explained = [(grid, at) for grid, at in grids.values() if fits(graph, grid, at)]
    found = mapper.place(graph, machine, seed=seed, pins=pins, starts=[before], grids=explained, by=by)
    bound = found.cost if found.optimal else objective.lower_bound(graph, machine, explained)
    plan = Plan(machine, graph, before, found.slots, before_is, bound, found.optimal, by)
    plan.comms = _comms(matrix, plan)
    plan.grids = [
        best for name, (grid, at) in grids.items() if (best := _reordered(plan, name, grid, at)) is not None
    ]
    plan.remarks += matrix.remarks
    if by != mapper.OWN and not found.optimal and len(machine) > others.regular_tree(machine)[0][0]:
        plan.remarks.append(f"searched by {others.TITLES[by]}, then improved by moves and swaps of ranks")
    if found.late:
        plan.remarks.append(
            f"{others.TITLES[by]} had put {found.late:,} of the ranks and free slots into full groups; they went to the next "
            "group with room"
        )
    return plan


def _of_ranks(pairs: Pairs, ranks: int) -> Pairs:
    """Return the traffic between existing ranks."""
    return pairs.chosen((pairs.source < ranks) & (pairs.destination < ranks))


def _grids(matrix: Matrix, ranks: int) -> dict[str, tuple[Grid, Ints]]:
    """Return the Cartesian topologies of all ranks, with the position of each rank."""
    found: dict[str, tuple[Grid, Ints]] = {}
    for comm in matrix.comms.values():
        grid = cart_grid(comm.topology)
        if grid is None or comm.size != ranks or math.prod(grid.dims) != ranks or len(grid.dims) > MOST_CART:
            continue
        members = comm.members
        positions = np.full(ranks, -1, dtype=np.int64)
        positions[members] = np.arange(len(members))
        if np.all(positions >= 0):
            found.setdefault(comm.name, (grid, positions))
    return found


def _comms(matrix: Matrix, plan: Plan) -> list[CommChange]:
    """Return what changes for each communicator, the largest gain first."""
    parts: dict[int, list[Pairs]] = {}
    for (id, flow), traffic in matrix.traffic.items():
        if flow in KINDS[matrix.kind]:
            parts.setdefault(id, []).extend([traffic.pairs, traffic.spread])
    joined = {id: _of_ranks(Pairs.joined(some), plan.graph.size) for id, some in parts.items()}
    most = sorted(joined, key=lambda id: (-joined[id].total("bytes"), id))[:MOST_COMMS]
    changes = []
    for id in most:
        pairs, comm = joined[id], matrix.comms.get(id)
        costs = [_cost_of(pairs, plan.machine, slots) for slots in (plan.before, plan.after)]
        name = comm.label if comm else "unknown"
        changes.append(CommChange(name, comm.size if comm else 0, pairs.total("bytes"), *costs))
    return sorted(changes, key=lambda change: -change.gain)


def _cost_of(pairs: Pairs, machine: Machine, slots: Ints) -> float:
    """Return the cost of some traffic."""
    ends = slots[pairs.source], slots[pairs.destination]
    weight = pairs.bytes + machine.per_message[machine.levels_of(*ends)] * pairs.messages
    return float((weight * machine.distances(*ends)).sum())


def _reordered(plan: Plan, name: str, grid: Grid, positions: Ints) -> Reordered | None:
    """Return the best order of dimensions of a grid: position p of the reordered grid gets the slot of the p-th rank."""
    dims = grid.dims
    if len(dims) > 5 or sum(length > 1 for length in dims) < 2:
        return None
    at = np.stack(np.unravel_index(positions, dims))
    best = None
    in_order = plan.before[np.argsort(positions)]
    for order in permutations(range(len(dims))):
        if [dims[axis] for axis in order] == list(dims) and list(order) != sorted(order):
            continue  # the same call of MPI_Cart_create
        number = np.ravel_multi_index(tuple(at[axis] for axis in order), tuple(dims[axis] for axis in order))
        cost = objective.cost(plan.graph, plan.machine, in_order[number])
        if best is None or cost < best.cost * (1 - 1e-12):
            best = Reordered(name, dims, order, cost)
    return best


def profile_ranks(connection: sqlite3.Connection) -> int:
    """Return the number of ranks that the profile has."""
    row = connection.execute("SELECT COUNT(*), MAX(rank) FROM rank").fetchone()
    if not row[0]:
        raise CommlensError("this profile has no ranks")
    return int(row[1]) + 1
