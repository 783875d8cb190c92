# SPDX-License-Identifier: Apache-2.0
"""Finds which CPUs of a node share a socket, and which share a last-level cache: a core complex.

A profile has the CPUs on which a rank may run, but not their topology.  The topology comes from the system, if the
profile is read on a node of the run, or from a file that hwloc's `lstopo NODE.xml` wrote there.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from commlens.base.errors import CommlensError
from commlens.matrix.hwloc import LARGEST_CPU, read_hwloc

SYSTEM = Path("/sys/devices/system/cpu")

Place = tuple[int, int]
"""Socket and core complex of a CPU, both numbered within the node."""


@dataclass(frozen=True)
class Topology:
    """Socket and core complex of each CPU, by node. The key "" stands for all other nodes."""

    nodes: dict[str, dict[int, Place]]

    def place(self, node: str, cpus: str) -> tuple[int | None, int | None]:
        """Return the socket and the core complex of a process; None if it may run in several, or if unknown."""
        known = self.nodes.get(node, self.nodes.get("", {}))
        places = [known.get(cpu) for cpu in cpu_numbers(cpus)]
        found = {place for place in places if place is not None}
        if not found or None in places:
            return None, None
        sockets = {socket for socket, _ in found}
        return (
            sockets.pop() if len(sockets) == 1 else None,
            next(iter(found))[1] if len(found) == 1 else None,
        )

    def knows(self, node: str) -> bool:
        """Return whether the topology of a node is known."""
        return node in self.nodes or "" in self.nodes


def cpu_numbers(text: str) -> Iterator[int]:
    """Return the CPUs in a list of ranges.

    >>> list(cpu_numbers("0-2,8"))
    [0, 1, 2, 8]
    """
    for low, high in re.findall(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text):
        yield from range(int(low), min(int(high or low), LARGEST_CPU) + 1)


def read_topology(files: Sequence[str], nodes: Iterable[str]) -> Topology:
    """Return the topology from hwloc's files and, if this machine is one of the nodes, from the system.

    Parameters
    ----------
    files : texts
        FILE, for all nodes, or NODE=FILE.

    Raises
    ------
    CommlensError
        A file cannot be read, or names a node that is not in the profile.
    """
    nodes = set(nodes)
    found: dict[str, dict[int, Place]] = {}
    own = platform.node()
    if own in nodes and (places := of_this_machine()):
        found[own] = places
    for text in files:
        node, equals, file = text.rpartition("=")
        if equals and node not in nodes:
            raise CommlensError(f"no node '{node}' in this profile")
        if not equals:
            found.pop(own, None)
        found[node] = of_hwloc(Path(file))
    return Topology(found)


def of_hwloc(path: Path) -> dict[int, Place]:
    """Return socket and core complex of each CPU from a file of hwloc's lstopo."""
    cores = read_hwloc(path)
    insides = {cpu: core.inside for core in cores for cpu in core.cpus}
    return {
        cpu: (socket, complex if complex >= 0 else complex_of(socket))
        for cpu, (socket, _, complex) in insides.items()
    }


def complex_of(socket: int) -> int:
    """Return the core complex of the CPUs of a socket without a third-level cache: the socket is one."""
    return LARGEST_CPU + 1 + socket


def of_this_machine() -> dict[int, Place]:
    """Return socket and core complex of each CPU of this machine; empty if the system does not report them."""
    places: dict[int, Place] = {}
    for folder in SYSTEM.glob("cpu[0-9]*"):
        try:
            socket = int((folder / "topology" / "physical_package_id").read_text())
        except (OSError, ValueError):
            continue
        places[int(folder.name[3:])] = (socket, last_cache(folder, socket))
    return places


def last_cache(folder: Path, socket: int) -> int:
    """Return the id of a CPU's third-level cache, its first CPU; without such a cache, one of the socket; -1: unknown."""
    for cache in folder.glob("cache/index*"):
        try:
            if (cache / "level").read_text().strip() == "3":
                return next(cpu_numbers((cache / "shared_cpu_list").read_text()))
        except (OSError, StopIteration):
            continue
    return complex_of(socket) if socket >= 0 else -1
