# SPDX-License-Identifier: Apache-2.0
"""Reads machines: from a profile, from hwloc's lstopo, from Slurm's topology.conf, from a table of distances."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from commlens.base.errors import CommlensError
from commlens.matrix.hwloc import Core, content
from commlens.matrix.topology import Topology, cpu_numbers
from commlens.place.machine import Floats, Slot

MOST_NODES = 1 << 20


def node_slots(node: str, cores: Sequence[Core], per_rank: int) -> list[Slot]:
    """Return the slots of a node: `per_rank` cores each, all in one core complex, else in one domain or socket."""
    slots, rest = [], list(enumerate(cores))
    for depth in (3, 2, 1, 0):
        by_group: dict[tuple[int, ...], list[tuple[int, Core]]] = {}
        for at, core in rest:
            by_group.setdefault(core.inside[:depth], []).append((at, core))
        rest = []
        for some in by_group.values():
            whole = len(some) - len(some) % per_rank
            for first in range(0, whole, per_rank):
                taken = some[first : first + per_rank]
                cpus = tuple(cpu for _, core in taken for cpu in core.cpus)
                slots.append(Slot(node, cpus, tuple(at for at, _ in taken), taken[0][1].inside))
            rest += some[whole:]
    return sorted(slots, key=lambda slot: slot.cores)


@dataclass(frozen=True)
class Run:
    """Where the ranks of a profile ran.

    Attributes
    ----------
    slots : list of Slot
        One for each rank.
    bound : bool
        Whether each rank had CPUs of its own, so that places inside a node are meaningful.
    """

    slots: list[Slot]
    bound: bool


def run_slots(
    ranks: int,
    nodes: Mapping[int, str],
    cpus: Mapping[int, str],
    topology: Topology,
    cores: Mapping[str, list[Core]],
) -> Run:
    """Return the slot in which each rank of a profile ran.

    Raises
    ------
    CommlensError
        The profile lacks the node of a rank.
    """
    missing = [rank for rank in range(ranks) if not nodes.get(rank)]
    if missing:
        raise CommlensError(
            f"this profile has no node for rank {missing[0]}; describe the machine with --nodes, --sockets and --cores"
        )
    found, taken, shared = [], set(), False
    bound_to: dict[tuple[str, str], Slot] = {}  # ranks without binding all have the CPUs of their node
    by_cpu = {name: _cores_by_cpu(of_node) for name, of_node in cores.items()}
    for rank in range(ranks):
        node, text = nodes[rank], cpus.get(rank) or ""
        if (node, text) not in bound_to:
            known = node if node in cores else ""
            bound_to[node, text] = _slot_of(node, text, topology, cores.get(known, []), by_cpu.get(known, {}))
        found.append(bound_to[node, text])
        own = found[-1].cpus
        if shared:
            continue
        for cpu in own:
            shared = shared or (node, cpu) in taken
            taken.add((node, cpu))
    bound = not shared and all(slot.cpus for slot in found)
    if not bound:
        found = [Slot(slot.node) for slot in found]
    return Run(found, bound)


def _cores_by_cpu(of_node: Sequence[Core]) -> dict[int, list[int]]:
    """Return the places of the cores that have each CPU."""
    found: dict[int, list[int]] = {}
    for at, core in enumerate(of_node):
        for cpu in core.cpus:
            found.setdefault(cpu, []).append(at)
    return found


def _slot_of(
    node: str, cpus: str, topology: Topology, of_node: Sequence[Core], by_cpu: Mapping[int, Sequence[int]]
) -> Slot:
    """Return the slot of a rank that may use these CPUs of a node with these cores."""
    own = tuple(cpu_numbers(cpus))
    socket, complex_ = topology.place(node, cpus)
    inside = (-1 if socket is None else socket, -1, -1 if complex_ is None else complex_)
    some = tuple(sorted({at for cpu in own for at in by_cpu.get(cpu, ())}))
    if some and len({of_node[at].inside for at in some}) == 1:
        inside = of_node[some[0]].inside
    return Slot(node, own, some, inside)


def read_switches(path: Path) -> list[tuple[str, dict[str, int]]]:
    """Return the levels of switches from Slurm's topology.conf, from the leaves: name, and the group of each node.

    Raises
    ------
    CommlensError
        The file has no switches, or they form no tree.
    """
    nodes: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for line in content(path).decode("utf-8", "replace").replace("\\\n", " ").splitlines():
        words = {
            key.lower(): value
            for key, equals, value in (word.partition("=") for word in line.partition("#")[0].split())
            if equals
        }
        name = words.get("switchname")
        if name is None:
            continue
        nodes[name] = host_names(words.get("nodes", ""))
        below[name] = host_names(words.get("switches", ""))
    if not nodes:
        raise CommlensError(f"{path}: not a topology.conf: it has no line SwitchName=")
    parent = {child: name for name, children in below.items() for child in children}
    chains: dict[str, list[str]] = {}
    for leaf, hosts in nodes.items():
        chain = [leaf]
        while chain[-1] in parent:
            if parent[chain[-1]] in chain:
                raise CommlensError(f"{path}: switch {chain[-1]} is its own ancestor")
            chain.append(parent[chain[-1]])
        for host in hosts:
            chains[host] = chain
    number = {name: at for at, name in enumerate(nodes)}
    depth = max(map(len, chains.values()), default=0)
    levels = []
    for up in range(depth):
        groups = {host: number.get(chain[min(up, len(chain) - 1)], 0) for host, chain in chains.items()}
        levels.append(("switch" if up == 0 else f"switch level {up + 1}", groups))
    return levels


def host_names(text: str) -> list[str]:
    """Return the names in a list of hosts as Slurm writes it.

    >>> host_names("login,n[1-3,08-09]-ib")
    ['login', 'n1-ib', 'n2-ib', 'n3-ib', 'n08-ib', 'n09-ib']
    """
    found: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        names = [""]
        for plain, ranges in re.findall(r"([^\[\]]+)|\[([^\]]*)\]", part):
            endings = [plain] if plain else [number for one in ranges.split(",") for number in _numbers(one)]
            if len(names) * len(endings) > MOST_NODES:
                raise CommlensError(f"'{part[:40]}' stands for too many hosts")
            names = [name + ending for name in names for ending in endings]
        found += names
    return found


def _numbers(text: str) -> list[str]:
    """Return the numbers of a range, with leading zeros as in its first."""
    match = re.fullmatch(r"\s*([0-9]{1,9})(?:-([0-9]{1,9}))?\s*", text)
    if not match:
        raise CommlensError(f"'{text[:40]}' is not a range of hosts")
    first, last = int(match[1]), int(match[2] or match[1])
    if last - first > MOST_NODES:
        raise CommlensError(f"'{text[:40]}' stands for too many hosts")
    return [str(number).zfill(len(match[1])) for number in range(first, last + 1)]


def read_table(path: Path) -> tuple[list[str], Floats]:
    """Return names of nodes and their distances: each line has a name and the distances to all nodes, in their order.

    Raises
    ------
    CommlensError
        The table is not square, not symmetric, or has a negative distance.
    """
    lines = [line.partition("#")[0].split() for line in content(path).decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line]
    names = [line[0] for line in lines]
    try:
        rows = [[float(word) for word in line[1:]] for line in lines]
    except ValueError as error:
        raise CommlensError(f"{path}: not a table of distances: {error}") from None
    if not rows or any(len(row) != len(rows) for row in rows):
        raise CommlensError(
            f"{path}: not a table of distances: each line needs the name of a node and one distance for each of {len(rows)} nodes"
        )
    table = np.array(rows, dtype=np.float64)
    if not np.all(np.isfinite(table)) or np.any(table < 0):
        raise CommlensError(f"{path}: a distance is negative or not finite")
    if not np.array_equal(table, table.T):
        raise CommlensError(f"{path}: the distances differ between the two directions")
    if len(set(names)) < len(names):
        raise CommlensError(f"{path}: a node has two lines")
    return names, table
