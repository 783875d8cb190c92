# SPDX-License-Identifier: Apache-2.0
"""Chooses the machine of an advice: that of the profile, or the one that options describe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from commlens.base.arrays import Ints
from commlens.base.errors import CommlensError
from commlens.matrix.hwloc import Core, read_hwloc
from commlens.matrix.query import Matrix
from commlens.matrix.topology import cpu_numbers, read_topology
from commlens.place import request
from commlens.place.machine import (
    DISTANCES,
    NETWORK,
    Machine,
    Slot,
    build,
    regular,
    with_messages,
    with_table,
)
from commlens.place.mapper import in_order
from commlens.place.plan import Plan
from commlens.place.sources import node_slots, read_switches, read_table, run_slots

AS_IT_RAN = "as it ran"
CORE_AFTER_CORE = "core after core"


@dataclass(frozen=True)
class Wanted:
    """What the options describe.

    Attributes
    ----------
    nodes, sockets, cores, numa : int
        Another machine: nodes, sockets of a node, cores and NUMA domains of a socket. 0 nodes: the machine of the run.
    per_rank : int
        Cores of a rank.
    topologies : sequence of str
        [NODE=]FILE of lstopo.
    distances, messages : mapping
        Distance of some levels, and bytes that a message counts there beside its own.
    per_message : float
        These bytes at all other levels.
    """

    nodes: int = 0
    sockets: int = 1
    cores: int = 0
    numa: int = 1
    per_rank: int = 1
    topologies: Sequence[str] = ()
    switches: Path | None = None
    table: Path | None = None
    distances: Mapping[str, float] = field(default_factory=dict)
    messages: Mapping[str, float] = field(default_factory=dict)
    per_message: float = 0.0


def choose(matrix: Matrix, ranks: int, wanted: Wanted) -> tuple[Machine, Ints, str, list[str]]:
    """Return the machine, the slot of each rank in the run, how that is known, and remarks.

    Raises
    ------
    CommlensError
        The machine is unknown or has too few slots.
    """
    remarks: list[str] = []
    names = list(dict.fromkeys(matrix.nodes[rank] for rank in sorted(matrix.nodes)))
    if wanted.nodes:
        if not wanted.cores:
            raise CommlensError("--nodes needs --cores: the cores of a socket")
        slots = regular(wanted.nodes, wanted.sockets, wanted.cores, wanted.numa, wanted.per_rank, names)
        machine = _shaped(slots, wanted)
        return machine, in_order(ranks, machine), CORE_AFTER_CORE, remarks
    cores = _topologies(wanted.topologies, names)
    topology = read_topology(wanted.topologies, names)
    run = run_slots(ranks, matrix.nodes, matrix.cpus, topology, cores)
    if cores and all(name in cores or "" in cores for name in names):
        slots = [
            slot
            for name in names
            for slot in node_slots(name, cores.get(name, cores.get("", [])), wanted.per_rank)
        ]
        machine = _shaped(slots, wanted)
        before = _in_run(machine, run.slots, run.bound)
        if before is not None:
            return (
                machine,
                before,
                AS_IT_RAN if run.bound else f"{AS_IT_RAN}, {CORE_AFTER_CORE} in a node",
                remarks,
            )
        raise CommlensError(
            f"{ranks:,} ranks, but the nodes of the run have only {len(machine):,} slots of their own"
        )
    if not run.bound:
        remarks.append(
            "the ranks were not bound to cores of their own: only the node of each rank is advised; --topology FILE.xml of "
            "lstopo lets commlens choose the cores, too"
        )
    machine = _shaped(run.slots, wanted)
    before = _in_run(machine, run.slots, run.bound)
    assert before is not None  # the machine has one slot for each rank
    return machine, before, AS_IT_RAN, remarks


def _topologies(texts: Sequence[str], names: Sequence[str]) -> dict[str, list[Core]]:
    """Return the cores of each node from files of lstopo; "" stands for all others."""
    found = {}
    for text in texts:
        node, equals, file = text.rpartition("=")
        if equals and node not in names:
            raise CommlensError(f"no node '{node}' in this profile")
        found[node] = read_hwloc(Path(file))
    return found


def _shaped(slots: Sequence[Slot], wanted: Wanted) -> Machine:
    """Return the machine with its network."""
    machine = build(slots, read_switches(wanted.switches) if wanted.switches else ())
    if wanted.table:
        machine = with_table(machine, *read_table(wanted.table))
    return with_messages(machine.with_distances(wanted.distances), wanted.per_message, wanted.messages)


def _in_run(machine: Machine, ran: Sequence[Slot], bound: bool) -> Ints | None:
    """Return the slot of each rank: the one with its CPUs, else the next free one of its node; None if there is none."""
    free: dict[str, list[int]] = {}
    by_cpu: dict[tuple[str, tuple[int, ...]], int] = {}
    for at, slot in enumerate(machine.slots):
        free.setdefault(slot.node, []).append(at)
        by_cpu.setdefault((slot.node, slot.cpus), at)
    by_first = {(slot.node, cpu): at for at, slot in enumerate(machine.slots) for cpu in slot.cpus}
    found = np.full(len(ran), -1, dtype=np.int64)
    taken: set[int] = set()
    for rank, slot in enumerate(ran):
        own = by_cpu.get((slot.node, slot.cpus)) if bound else None
        if bound and own is None and slot.cpus:
            own = by_first.get((slot.node, slot.cpus[0]))
        if own is not None and own not in taken:
            found[rank] = own
            taken.add(own)
    rest = {node: iter([at for at in some if at not in taken]) for node, some in free.items()}
    for rank in np.flatnonzero(found < 0).tolist():
        own = next(rest.get(ran[rank].node, iter(())), None)
        if own is None:
            return None
        found[rank] = own
    return found


def requests(advice: Plan, matrix: Matrix, wanted: Wanted, seed: int, pins: Mapping[int, int]) -> list[str]:
    """Return what fewer nodes or closer ones would save, if anything; pins are to nodes of the run."""
    if pins:
        return []
    # With distances or latencies of one's own outside nodes there is no scale for those of other nodes.
    given = {*wanted.distances, *wanted.messages} - {*DISTANCES} or NETWORK in {
        *wanted.distances,
        *wanted.messages,
    }
    found: list[str | None] = []
    if wanted.nodes or not _had_more_cpus(matrix, wanted.per_rank):
        found.append(request.fewer(advice, wanted.per_rank, seed))
    if wanted.switches and not wanted.table and not given and not wanted.nodes:
        found.append(request.closer(advice, read_switches(wanted.switches), seed))
    return [sentence for sentence in found if sentence]


def _had_more_cpus(matrix: Matrix, per_rank: int) -> bool:
    """Return whether each rank of the run had more CPUs than it is to have, for itself: it may have threads on them."""
    taken: set[tuple[str, int]] = set()
    for rank, node in matrix.nodes.items():
        own = {(node, cpu) for cpu in cpu_numbers(matrix.cpus.get(rank) or "")}
        if len(own) <= per_rank or taken & own:
            return False
        taken |= own
    return bool(taken)


def pinned(machine: Machine, texts: Sequence[str]) -> dict[int, int]:
    """Return the slot of each pinned rank from RANK=NODE or RANK=NODE:CPU.

    A node without a CPU is its first slot that no other pin has.
    """
    found: dict[int, int] = {}
    for text in texts:
        match = re.fullmatch(r"([0-9]{1,9})=([^:]+)(?::([0-9]{1,9}))?", text)
        if not match:
            raise CommlensError(f"--pin {text}: not RANK=NODE or RANK=NODE:CPU")
        cpu = None if match[3] is None else int(match[3])
        some = [
            at
            for at, slot in enumerate(machine.slots)
            if slot.node == match[2] and (cpu is None or cpu in slot.cpus) and at not in found.values()
        ]
        if not some:
            raise CommlensError(f"--pin {text}: the machine has no such free slot")
        if int(match[1]) in found:
            raise CommlensError(f"--pin: rank {match[1]} is pinned twice")
        found[int(match[1])] = some[0]
    return found
