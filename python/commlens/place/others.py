# SPDX-License-Identifier: Apache-2.0
"""Mappers of others, as back ends and as a measure of ours: KaHIP's process mapping and Scotch's gmap.

Both are optional: KaHIP is the package `kahip` of PyPI, Scotch the package `scotch` of Debian, or any other that has put its
program `gmap` or `scotch_gmap` on the path.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np

from commlens.base.arrays import Ints
from commlens.base.errors import CommlensError
from commlens.place.machine import Machine
from commlens.place.objective import Graph

ECO, STRONG = 1, 2  # of KaHIP
MULTISECTION = 0
LARGEST = 2**31 - 1  # of KaHIP's numbers, also of its sums
LARGEST_WEIGHT = 2**24  # of Scotch, whose sums are as small
PATIENCE = 600  # seconds

Mapper = Callable[[Graph, list[int], list[int], int], Ints]
"""Takes traffic of as many vertices as there are slots, groups of each group, their distances, and a seed."""


def regular_tree(machine: Machine) -> tuple[list[int], list[int]]:
    """Return how many groups each group has, from the inside, and the distances between them, as integers.

    The slots of the innermost groups are one of these numbers: they are equally far from each other.
    """
    sizes = []
    for level in machine.levels:
        rooms = np.bincount(level.groups)
        if np.any(rooms != rooms[0]) or machine.between is not None:
            raise CommlensError(
                "KaHIP and Scotch need a machine whose nodes, sockets and other groups are all alike, without a table of distances"
            )
        sizes.append(int(rooms[0]))
    fan = [(outer // inner, level) for inner, outer, level in zip(sizes, sizes[1:], machine.levels[1:])]
    fan = [(count, level) for count, level in fan if count > 1] or [(1, machine.levels[-1])]
    return [count for count, _ in fan], [max(1, round(level.distance)) for _, level in fan]


def whole(graph: Graph, largest: float) -> Ints:
    """Return the traffic as integers from 1 on whose sum is at most about `largest`."""
    scale = min(1.0, largest / max(1.0, 2 * graph.total))
    return np.maximum(1, np.rint(graph.weight * scale)).astype(np.int64)


def placed(name: str, graph: Graph, machine: Machine, pins: Ints, seed: int) -> tuple[Ints, int]:
    """Return a slot for each vertex as another mapper wants it, and how many vertices it put into full groups.

    Parameters
    ----------
    name : str
        "kahip" or "scotch".
    graph : Graph
        One vertex for each slot; those without traffic are slots that remain free.
    pins : Ints
        Slot of each vertex that must have it, else -1. Neither mapper knows pins: such a vertex changes places with the
        one that got its slot.

    Raises
    ------
    CommlensError
        The mapper is not installed or failed, or the groups of the machine are not alike.
    """
    rooms, distances = regular_tree(machine)
    # In a single group all slots are equally far from each other, so there is nothing to ask for.
    part = MAPPERS[name](graph, rooms, distances, seed) if rooms[1:] else np.zeros(graph.size, dtype=np.int64)
    slots = seated(part, rooms[0])
    vertex = np.empty_like(slots)
    vertex[slots] = np.arange(len(slots))
    for pinned in np.flatnonzero(pins >= 0).tolist():
        there, here = int(pins[pinned]), int(slots[pinned])
        other = int(vertex[there])
        slots[pinned], slots[other] = there, here
        vertex[there], vertex[here] = pinned, other
    return slots, int(np.maximum(0, np.bincount(part) - rooms[0]).sum())


def seated(part: Ints, room: int) -> Ints:
    """Return a slot for each vertex in its group, or if that is full in the next one that has room."""
    order = np.argsort(part, kind="stable")
    count = len(part) // room
    taken = np.zeros(count, dtype=np.int64)
    slots = np.full(len(part), -1, dtype=np.int64)
    late = []
    for vertex in order.tolist():
        group = int(part[vertex])
        if taken[group] < room:
            slots[vertex] = group * room + taken[group]
            taken[group] += 1
        else:
            late.append(vertex)
    for vertex in late:
        free = np.flatnonzero(taken < room)
        group = int(free[np.abs(free - part[vertex]).argmin()])
        slots[vertex] = group * room + taken[group]
        taken[group] += 1
    return slots


def kahip_library() -> ctypes.CDLL:
    """Return the library of KaHIP that this Python has installed."""
    try:
        found = [file for file in files("kahip") or () if file.name == "libkahip.so"]
    except PackageNotFoundError:
        found = []
    if not found:
        raise CommlensError("KaHIP is not installed: pip install kahip")
    try:
        return ctypes.CDLL(str(found[0].locate()))
    except OSError as error:
        raise CommlensError(f"KaHIP cannot be loaded: {error}") from None


def by_kahip(graph: Graph, rooms: list[int], distances: list[int], seed: int, mode: int = ECO) -> Ints:
    """Return the innermost group of each vertex, by KaHIP."""
    library = kahip_library()

    def numbers(values: Ints | list[int]) -> ctypes.Array[ctypes.c_int]:
        some = np.asarray(values, dtype=np.int32).tolist()
        return (ctypes.c_int * len(some))(*some)

    outer, far = rooms[1:] or [1], distances[1:] or distances
    part = numbers([0] * graph.size)
    library.process_mapping(
        ctypes.byref(ctypes.c_int(graph.size)),
        numbers([1] * graph.size),
        numbers(graph.start),
        numbers(whole(graph, LARGEST / (2 * max(far)))),
        numbers(graph.column),
        numbers(outer),
        numbers(far),
        ctypes.c_int(len(outer)),
        ctypes.c_int(mode),
        ctypes.c_int(MULTISECTION),
        ctypes.byref(ctypes.c_double(0.0)),
        ctypes.c_bool(True),
        ctypes.c_int(seed),
        ctypes.byref(ctypes.c_int()),
        ctypes.byref(ctypes.c_int()),
        part,
    )
    return np.array(part, dtype=np.int64)


def by_scotch(
    graph: Graph, rooms: list[int], distances: list[int], _seed: int = 0, program: str = ""
) -> Ints:
    """Return the innermost group of each vertex, by Scotch, whose random numbers always begin alike."""
    program = program or shutil.which("scotch_gmap") or shutil.which("gmap") or ""
    if not program:
        raise CommlensError("Scotch is not installed: there is no program scotch_gmap or gmap on the path")
    weight = whole(graph, LARGEST_WEIGHT).tolist()
    column = graph.column.tolist()
    lines = [f"0\n{graph.size} {len(column)}\n0 010"]
    for first, end in zip(graph.start.tolist(), graph.start.tolist()[1:]):
        some = " ".join(f"{weight[at]} {column[at]}" for at in range(first, end))
        lines.append(f"{end - first} {some}")
    # From the outside: number of groups, and distance between them.
    outer = list(zip(rooms[1:], distances[1:]))[::-1] or [(1, 1)]
    target = f"tleaf {len(outer)} " + " ".join(f"{count} {far}" for count, far in outer)
    with tempfile.TemporaryDirectory() as folder:
        names = [str(Path(folder) / name) for name in ("graph.grf", "target.tgt", "out.map")]
        Path(names[0]).write_text("\n".join(lines) + "\n", encoding="utf-8")
        Path(names[1]).write_text(target + "\n", encoding="utf-8")
        try:
            done = subprocess.run(
                [program, *names],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CommlensError(f"{program}: {error}") from None
        if done.returncode:
            raise CommlensError(f"{program} failed: {done.stderr.strip()[:200]}")
        return _mapping(Path(names[2]), graph.size, math.prod(rooms[1:]), program)


def _mapping(path: Path, size: int, groups: int, program: str) -> Ints:
    """Return the group of each vertex that Scotch wrote: their number, then a line for each with vertex and group."""
    part = np.full(size, -1, dtype=np.int64)
    try:
        words = np.array(path.read_text(encoding="utf-8").split(), dtype=np.int64)
        vertex, group = words[1:].reshape(size, 2).T
        part[vertex] = group
    except (OSError, ValueError, IndexError):
        part[:] = -1
    if np.any(part < 0) or np.any(part >= groups):
        raise CommlensError(f"{program} wrote no mapping of {size:,} vertices: is it a program of Scotch?")
    return part


TITLES = {"kahip": "KaHIP", "scotch": "Scotch"}
MAPPERS: dict[str, Mapper] = {"kahip": by_kahip, "scotch": by_scotch}
