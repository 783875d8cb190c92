# SPDX-License-Identifier: Apache-2.0
"""Finds a placement: the best of several starts, each improved by swaps; of few ranks, the best there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commlens.base.arrays import Ints, ints
from commlens.base.errors import CommlensError
from commlens.matrix.patterns import Grid
from commlens.place import exact, others, recover
from commlens.place.anneal import HOT, anneal
from commlens.place.bisect import Random, divide
from commlens.place.cycles import settle
from commlens.place.grids import blocks, fits
from commlens.place.groups import Groups, of_machine, seat, slots_of
from commlens.place.machine import Machine
from commlens.place.objective import Graph, cost
from commlens.place.refine import DENSE, refine

SEED = 1
OWN = "commlens"
SPARE = 2  # times as many slots as ranks that are considered at most
SMALL_MACHINE = 64  # slots that are always considered

STARTS = ((128, 8, 40), (512, 3, 8), (1024, 2, 0))
"""Up to a number of slots: how many divisions to try, and how many kicks each gets. Larger machines: one, none."""

DIVISIONS = 4  # of a machine that is not small, of which the best one is improved
SWAPPED = 1024  # slots up to which swaps of all pairs follow the annealing
SWEEPS, MOST_STEPS = 1000, 50_000_000  # of the annealing: sweeps, and these times pairs
FEW_TRIES = 2  # where all placements are tried afterwards
ANNEALED = 2  # starts that are annealed
LEAST_ANNEALED = 32  # slots; swaps suffice for fewer
MELTING = 2.0  # temperature of the second start, at which little is left of its division
CYCLES = 150  # tried after the annealing


@dataclass(frozen=True)
class Placement:
    """A placement.

    Attributes
    ----------
    slots : Ints
        Slot of each rank.
    cost : float
    optimal : bool
        Whether all other placements were excluded.
    late : int
        Ranks that another mapper had put into full groups.
    """

    slots: Ints
    cost: float
    optimal: bool
    late: int = 0


def place(
    graph: Graph,
    machine: Machine,
    *,
    seed: int = SEED,
    pins: Mapping[int, int] | None = None,
    starts: Sequence[Ints] = (),
    grids: Sequence[tuple[Grid, Ints]] = (),
    by: str = OWN,
) -> Placement:
    """Return a good placement: the same for the same arguments.

    Parameters
    ----------
    pins : mapping
        Slot of each rank that must have it.
    starts : placements
        To be improved, such as that of the run. The result costs no more than any of them that respects the pins.
    grids : sequence of (grid, positions)
        Grids of all ranks, with the position of each.
    by : str
        OWN, "kahip" or "scotch": who finds the placement that swaps then improve.

    Raises
    ------
    CommlensError
        The machine has fewer slots than there are ranks, a pin is impossible, or the other mapper cannot be used.
    """
    if graph.size > len(machine):
        raise CommlensError(f"{graph.size:,} ranks, but the machine has only {len(machine):,} slots")
    fixed = _pinned(graph.size, len(machine), pins or {})
    kept = _considered(graph.size, machine, fixed)
    part = machine.part(kept)
    at = np.full(len(machine), -1, dtype=np.int64)
    at[kept] = np.arange(len(kept))
    own_pins = np.where(fixed >= 0, at[fixed], -1)
    best: Ints | None = None
    least = np.inf
    late = 0
    if by == OWN:
        found = _found(graph, part, own_pins, seed, [at[s] for s in starts], grids, kept)
    else:
        theirs, late = _by_other(by, graph, part, own_pins, seed)
        found = iter([kept[theirs]])
    for slots in [*starts, *found]:
        if np.any(slots < 0) or np.any((fixed >= 0) & (slots != fixed)):
            continue
        now = cost(graph, machine, slots)
        if best is None or now < least * (1 - 1e-12):
            best, least = slots, now
    if best is None:
        raise CommlensError("no placement respects the pins")
    sure = exact.best(graph, machine, fixed, best, least)
    if sure is not None:
        best = sure
    return Placement(best, cost(graph, machine, best), sure is not None, late)


def _pinned(ranks: int, slots: int, pins: Mapping[int, int]) -> Ints:
    """Return the slot of each pinned rank, else -1."""
    fixed = np.full(ranks, -1, dtype=np.int64)
    for rank, slot in pins.items():
        if not 0 <= rank < ranks:
            raise CommlensError(f"there is no rank {rank} to pin")
        if not 0 <= slot < slots:
            raise CommlensError(f"there is no slot {slot} to pin rank {rank} to")
        if slot in fixed:
            raise CommlensError(f"two ranks are pinned to slot {slot}")
        fixed[rank] = slot
    return fixed


def _considered(ranks: int, machine: Machine, fixed: Ints) -> Ints:
    """Return the slots to consider: all, or of a large machine those of the smallest part that has enough."""
    if len(machine) <= max(SMALL_MACHINE, SPARE * ranks):
        return np.arange(len(machine), dtype=np.int64)
    wanted = np.unique(fixed[fixed >= 0])
    low, high = 0, len(machine)
    for level in reversed(machine.levels):
        some = level.groups[low:high]
        first, rooms = np.unique(some, return_index=True)[1], np.unique(some, return_counts=True)[1]
        enough = np.flatnonzero(rooms >= ranks)
        if not len(enough):
            break
        chosen = enough[rooms[enough].argmin()]
        low, high = low + int(first[chosen]), low + int(first[chosen] + rooms[chosen])
    else:
        return np.union1d(np.arange(low, high), wanted)
    # Whole groups one after another, the largest first.
    number = np.unique(some, return_inverse=True)[1]
    order = np.argsort(-rooms, kind="stable")
    groups = int(np.searchsorted(np.cumsum(rooms[order]), ranks + len(wanted))) + 1
    kept = low + np.flatnonzero(np.isin(number, order[:groups]))
    return np.union1d(kept, wanted).astype(np.int64)


def _found(
    graph: Graph,
    machine: Machine,
    pins: Ints,
    seed: int,
    starts: Sequence[Ints],
    grids: Sequence[tuple[Grid, Ints]],
    names: Ints,
) -> Iterator[Ints]:
    """Yield improved placements on a part of the machine, as slots of the whole machine."""
    full, all_pins = _filled(graph, machine, pins)
    tries, kicks = next(((t, k) for most, t, k in STARTS if len(machine) <= most), (1, 0))
    if graph.size <= exact.MOST_RANKS:
        tries = min(tries, FEW_TRIES)
    explained = False
    for grid, positions in [*grids, *recover.grids(graph)] if not np.any(pins >= 0) else []:
        found = blocks(graph, machine, grid, positions)
        if found is not None:
            explained = explained or fits(graph, grid, positions)
            random = np.random.default_rng([seed, tries])
            yield names[_swapped(full, machine, found, all_pins, random)[: graph.size]]
    groups = of_machine(machine)
    divisions = DIVISIONS if SMALL_MACHINE < len(machine) <= DENSE else 1
    for number in range(tries if not (explained and len(machine) > SMALL_MACHINE) else 0):
        random = np.random.default_rng([seed, number])
        divided = [divide(full, machine, random, all_pins) for _ in range(divisions)]
        slots = min(divided, key=lambda some: cost(full, machine, some))
        # A division of a regular graph may be exact already: so both it and what annealing makes of it.
        yield names[refine(full, machine, slots, all_pins, random, kicks)[: graph.size]]
        if groups is None or number >= ANNEALED or len(machine) < LEAST_ANNEALED:
            continue
        annealed = _annealed(full, groups, slots, all_pins, random, MELTING if number % 2 else HOT)
        if annealed is not None:
            yield names[_swapped(full, machine, annealed, all_pins, random, kicks)[: graph.size]]
    if len(machine) <= SWAPPED:
        for start in starts:
            if np.any(start < 0) or np.any((pins >= 0) & (start != pins)):
                continue
            rest = np.setdiff1d(np.arange(len(machine)), start)
            random = np.random.default_rng([seed, tries + 1])
            slots = np.concatenate([start, rest])
            yield names[refine(full, machine, slots, all_pins, random)[: graph.size]]


def _filled(graph: Graph, machine: Machine, pins: Ints) -> tuple[Graph, Ints]:
    """Return traffic and pins with a vertex without traffic for each slot that remains free."""
    full = Graph.of_entries(len(machine), graph.row, graph.column, graph.weight)
    full = replace(full, messages=graph.messages)
    return full, np.concatenate([pins, np.full(len(machine) - graph.size, -1, dtype=np.int64)])


def _by_other(by: str, graph: Graph, machine: Machine, pins: Ints, seed: int) -> tuple[Ints, int]:
    """Return the placement of another mapper, improved as ours are, and the ranks that it had put into full groups."""
    full, all_pins = _filled(graph, machine, pins)
    slots, late = others.placed(by, full, machine, all_pins, seed)
    groups = of_machine(machine)
    if groups is not None:
        seating = seat(full, groups, slots, all_pins)
        if settle(seating, CYCLES):
            slots = slots_of(seating, all_pins)
    kicks = next((k for most, _, k in STARTS if len(machine) <= most), 0)
    random = np.random.default_rng([seed, 0])
    return refine(full, machine, slots, all_pins, random, kicks)[: graph.size], late


def _annealed(
    graph: Graph, groups: Groups, slots: Ints, pins: Ints, random: Random, hot: float
) -> Ints | None:
    """Return a placement after annealing and cycles of moves; None where there are too many groups for them."""
    seating = seat(graph, groups, slots, pins)
    anneal(seating, random, min(SWEEPS, MOST_STEPS // max(1, len(graph.row))), hot)
    return slots_of(seating, pins) if settle(seating, CYCLES) else None


def _swapped(graph: Graph, machine: Machine, slots: Ints, pins: Ints, random: Random, kicks: int = 0) -> Ints:
    """Return a placement improved by swaps, if that does not take long."""
    return refine(graph, machine, slots, pins, random, kicks) if len(machine) <= SWAPPED else slots


def in_order(ranks: int, machine: Machine) -> Ints:
    """Return the placement of a launcher that fills core after core, node after node.

    Raises
    ------
    CommlensError
        The machine has fewer slots than there are ranks.
    """
    if ranks > len(machine):
        raise CommlensError(f"{ranks:,} ranks, but the machine has only {len(machine):,} slots")
    return ints(range(ranks))
