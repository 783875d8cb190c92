# SPDX-License-Identifier: Apache-2.0
"""What another request would save: fewer nodes, or nodes that are closer to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from commlens.base.arrays import Ints, ints
from commlens.base.counts import count_text
from commlens.place import mapper, objective
from commlens.place.machine import DISTANCES, NETWORK, NODE, ONE_SWITCH, Machine, build
from commlens.place.plan import AS_GOOD, LEAST_GAIN, Plan
from commlens.render.units import share_text

Network = Sequence[tuple[str, Mapping[str, int]]]


def fewer(plan: Plan, cores: int = 1, seed: int = mapper.SEED) -> str | None:
    """Return a sentence if the ranks have room on fewer nodes than the run had, and cost less there.

    cores : of each rank, as the machine was built
    """
    machine, ranks = plan.machine, plan.graph.size
    room = np.bincount(machine.node)
    had = len(np.unique(machine.node[plan.before]))
    count = int(np.searchsorted(np.cumsum(-np.sort(-room)), ranks)) + 1
    if count >= had:
        return None
    cost = plan.cost_after
    if len(np.unique(machine.node[plan.after])) > count:
        kept = np.flatnonzero(np.isin(machine.node, _fullest(machine, room, ranks, count)))
        cost = mapper.place(plan.graph, machine.part(kept), seed=seed).cost
    if cost > plan.cost_after * (1 + AS_GOOD) or cost > plan.cost_before * (1 - LEAST_GAIN):
        return None
    saved = share_text(1 - cost / plan.cost_before)
    return (
        f"all ranks have room on {count_text(count, 'node')} instead of {had:,}, with {count_text(cores, 'core')} each "
        f"(--cpus-per-rank): there bytes x distance is {saved} less than in the run, if memory suffices"
    )


def _fullest(machine: Machine, room: Ints, ranks: int, count: int) -> Ints:
    """Return so many nodes with room for all ranks, below the same switch if there are such."""
    first = np.unique(machine.node, return_index=True)[1]
    best = np.argsort(-room, kind="stable")[:count]
    outside = [level.name for level in machine.levels].index(NODE) + 1
    for level in machine.levels[outside:]:
        group = level.groups[first]
        for number in range(int(group[-1]) + 1):
            inside = np.flatnonzero(group == number)
            some = inside[np.argsort(-room[inside], kind="stable")[:count]]
            if int(room[some].sum()) >= ranks:
                return some.astype(np.int64)
    return best.astype(np.int64)


def closer(plan: Plan, network: Network, seed: int = mapper.SEED) -> str | None:
    """Return a sentence if as many nodes below one switch, such as the cluster has, would cost less.

    Parameters
    ----------
    network : sequence of (name, group of each node)
        Switches of the whole cluster, from the leaves. Its other nodes are taken to be like those of the run.
    """
    machine = plan.machine
    names = machine.nodes
    found = _smallest(network, names)
    if found is None:
        return None
    depth, group = found
    hosts = _chosen(network, depth, group, len(names))
    chosen = dict(zip(names, hosts))
    beside = [
        (title, {name: groups[host] for name, host in chosen.items() if host in groups})
        for title, groups in network
    ]
    near = _measured(build(machine.slots, beside), machine, beside)
    present = _measured(machine, machine, network)
    start = _moved(machine, near, plan.after)
    cost = mapper.place(plan.graph, near, seed=seed, starts=[start]).cost
    before = objective.cost(plan.graph, present, plan.after)
    if cost > before * (1 - LEAST_GAIN):
        return None
    where = "one switch" if depth == 0 else f"one switch of level {depth + 1}"
    return (
        f"the cluster has {where} with at least {count_text(len(names), 'node')}: on {count_text(len(names), 'node')} below it, "
        f"the best placement found costs {share_text(1 - cost / before)} less than on the nodes of the run"
        + (" (Slurm: --switches=1)" if depth == 0 else "")
    )


def _smallest(network: Network, names: Sequence[str]) -> tuple[int, int] | None:
    """Return level and number of the smallest switch with so many nodes; None if all of these are below one already."""
    for depth, (_, groups) in enumerate(network):
        if len({groups.get(name, name) for name in names}) == 1:
            return None
        size = Counter(groups.values())
        fit = [group for group, count in size.items() if count >= len(names)]
        if fit:
            return depth, min(fit, key=lambda group: (size[group], group))
    return None


def _chosen(network: Network, depth: int, group: int, count: int) -> list[str]:
    """Return so many hosts below a switch, those of its largest switches first."""
    hosts = [host for host, own in network[depth][1].items() if own == group]
    for _, groups in network[:depth][::-1]:
        size = Counter(groups.get(host, -1) for host in hosts)
        hosts.sort(key=lambda host: (-size[groups.get(host, -1)], groups.get(host, -1)))
    return hosts[:count]


def _measured(machine: Machine, like: Machine, network: Network) -> Machine:
    """Return a machine whose distances outside a node count the levels of the whole cluster.

    Of one job, levels that divide none of its nodes do not show: without this, a job with each node below another
    switch would seem as close as one with all of them below the same.
    """
    names = machine.nodes
    counts = [len({groups.get(name, name) for name in names}) for _, groups in network]
    known = {level.name: level for level in like.levels}
    outside = [level.name for level in machine.levels].index(NODE) + 1
    levels = []
    for at, level in enumerate(machine.levels):
        if at < outside:
            inner = known[level.name]
            levels.append(replace(level, distance=inner.distance, per_message=inner.per_message))
            continue
        groups = int(level.groups[-1]) + 1
        depth = next((at for at, count in enumerate(counts) if count <= groups), len(counts))
        far = DISTANCES[NETWORK] + ONE_SWITCH * depth
        levels.append(replace(level, distance=far, per_message=like.levels[-1].per_message))
    return replace(machine, levels=tuple(levels))


def _moved(machine: Machine, other: Machine, slots: Ints) -> Ints:
    """Return the same slots of a machine in which they have another order."""
    left: dict[object, list[int]] = {}
    for at in range(len(other) - 1, -1, -1):
        left.setdefault(other.slots[at], []).append(at)
    number = ints(left[slot].pop() for slot in machine.slots)
    return number[slots]
