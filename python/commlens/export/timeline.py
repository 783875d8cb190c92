# SPDX-License-Identifier: Apache-2.0
"""Timelines from time slices, for trace viewers: trace events (Perfetto, chrome://tracing) and speedscope.

A profile has no events. For every time slice it has the time of a rank in each region, and in each operation on each
communicator, but not the order within the slice. So each slice is drawn as blocks of these lengths, one behind the other
from its beginning, in the order of the tree. Lengths are exact; positions within a slice are not. Slices of regions and
of MPI are independent; each rank has one line for each.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import IO, Any, NamedTuple

from commlens.base.progress import tracked
from commlens.export.calltree import communicator_names, has_regions
from commlens.export.ranges import Ranges, within
from commlens.profile.meta import facts, no_slices_of_communicators, number, slices_are_of_families

REGIONS, MPI = 0, 1
LINES = {REGIONS: "regions", MPI: "MPI"}


class Block(NamedTuple):
    """A block of a line; the blocks nested in it follow it.

    Attributes
    ----------
    path : tuple of int
        Frames from the outermost to this one.
    begin_ns, end_ns : int
        Begin and end in the drawing, since the return of MPI_Init.
    counted : dict
        Values of the profile for this slice.
    """

    path: tuple[int, ...]
    begin_ns: int
    end_ns: int
    counted: dict[str, int]


@dataclass
class Part:
    """The values of a frame in one slice."""

    self_ns: int = 0
    counted: dict[str, int] = field(default_factory=dict)
    below: dict[int, Part] = field(default_factory=dict)

    def total_ns(self) -> int:
        """Return its time including all children."""
        return self.self_ns + sum(part.total_ns() for part in self.below.values())


class Timeline:
    """The slices of a profile.

    Attributes
    ----------
    frames : list of str
        Names that blocks refer to by number.
    kinds : list of str
        region, communicator or operation, for each of them.
    """

    def __init__(self, connection: sqlite3.Connection, unfold: bool, mpi: bool, ranks: Ranges = ()):
        if unfold and mpi and slices_are_of_families(connection):
            raise no_slices_of_communicators()
        self.connection = connection
        self.frames: list[str] = []
        self.kinds: list[str] = []
        self._lines = [line for line in LINES if line != MPI or mpi]
        self._only = within(ranks, "rank")
        self._paths: dict[int, tuple[int, ...]] = {}
        self._comms: dict[int, int] = {}
        self._ops: dict[int, int] = {}
        self.slice_ns = number(facts(connection), "slice_ns")
        self._name(unfold)
        self.ranks = connection.execute(
            f"SELECT rank, node, app_ns FROM rank WHERE {self._only} ORDER BY rank"
        ).fetchall()

    def _name(self, unfold: bool) -> None:
        """Make the frames."""
        if has_regions(self.connection):
            rows = self.connection.execute(
                "SELECT region.id, parent, name, (SELECT value FROM meta WHERE key = 'program') FROM region ORDER BY id"
            )
            for id, parent, name, program in rows:
                around = self._paths[parent] if parent else ()  # the whole program encloses all regions
                self._paths[id] = (*around, self._frame(name if id else program or "program", "region"))
        part_of = dict(
            self.connection.execute(f"SELECT id, {'id' if unfold else 'family'} FROM comm").fetchall()
        )
        parts = {
            part: self._frame(name, "communicator")
            for part, name in communicator_names(self.connection, unfold).items()
        }
        self._comms = {comm: parts[part] for comm, part in part_of.items()}
        used = "SELECT id, name FROM op WHERE id IN (SELECT op FROM slice) ORDER BY name"
        self._ops = {op: self._frame(name, "operation") for op, name in self.connection.execute(used)}

    def _frame(self, name: str, kind: str) -> int:
        self.frames.append(name)
        self.kinds.append(kind)
        return len(self.frames) - 1

    def lines(self, source: str) -> Iterator[tuple[sqlite3.Row, int, Iterable[Block]]]:
        """Return rank, kind of line and blocks, rank by rank; blocks are ordered by begin.

        Every rank has a line, which may be empty.
        """
        streams = {line: self._slices(line) for line in self._lines}
        heads = {line: next(stream, None) for line, stream in streams.items()}
        for rank in tracked(self.ranks, source):
            is_silent = True
            for line, stream in streams.items():
                head = heads[line]
                if head is not None and head[0] == rank["rank"]:
                    yield rank, line, head[1]
                    heads[line], is_silent = next(stream, None), False
            if is_silent:
                yield rank, self._lines[0], []

    def _slices(self, line: int) -> Iterator[tuple[int, list[Block]]]:
        """Return the blocks of every rank that has any, in rank order."""
        if line == REGIONS:
            rows = (
                self._rows("region_slice", "region, 0, exclusive_ns, calls, 0, 0")
                if self._paths
                else iter(())
            )
        else:
            rows = self._rows("slice", "comm, op, time_ns, calls, bytes_sent, bytes_received")
        for rank, of_rank in groupby(rows, key=lambda row: row[0]):
            blocks: list[Block] = []
            for slot, of_slot in groupby(of_rank, key=lambda row: row[1]):
                blocks += self._blocks(slot, self._tree(line, of_slot))
            yield rank, blocks

    def _rows(self, table: str, columns: str) -> Iterator[tuple[int, ...]]:
        return map(
            tuple,
            self.connection.execute(
                f"SELECT rank, slot, {columns} FROM {table} WHERE {self._only} AND rank IN (SELECT rank FROM rank)"
                " ORDER BY rank, slot"
            ),
        )

    def _tree(self, line: int, rows: Iterable[tuple[int, ...]]) -> Part:
        """Return the content of a slice of a rank as a tree."""
        root = Part()
        for _, _, what, op, time_ns, calls, sent, received in rows:
            path = self._paths[what] if line == REGIONS else (self._comms[what], self._ops[op])
            part = root
            for frame in path:
                part = part.below.setdefault(frame, Part())
            part.self_ns += time_ns
            more = {"calls": calls, "time_ns": time_ns, "bytes_sent": sent, "bytes_received": received}
            if line == REGIONS:
                more = {"calls": calls, "exclusive_ns": time_ns}
            part.counted = {name: part.counted.get(name, 0) + value for name, value in more.items()}
        return root

    def _blocks(self, slot: int, root: Part) -> Iterator[Block]:
        """Return a slice as blocks.

        The summed times of threads can exceed the length of the slice; then all are scaled by the same factor.
        """
        begin_ns, total_ns = slot * self.slice_ns, root.total_ns()
        longest = max(total_ns, self.slice_ns)

        def place(ns: int) -> int:
            return begin_ns + (ns * self.slice_ns // longest if total_ns > self.slice_ns else ns)

        def walk(part: Part, path: tuple[int, ...], done_ns: int) -> Iterator[Block]:
            end_ns = done_ns
            for frame, below in sorted(part.below.items()):
                total = below.total_ns()
                here = (*path, frame)
                yield Block(here, place(end_ns), place(end_ns + total), below.counted)
                yield from walk(below, here, end_ns)
                end_ns += total

        return walk(root, (), 0)


def write_chrome(timeline: Timeline, file: IO[str], source: str, run: dict[str, str]) -> None:
    """Write trace events in the object form: complete events (X), and metadata (M) that names processes and threads."""
    file.write('{"traceEvents": [')
    between = "\n"

    def event(**members: Any) -> None:
        nonlocal between
        file.write(between + json.dumps(members))
        between = ",\n"

    for rank in timeline.ranks:
        name = f"rank {rank['rank']} on {rank['node']}"
        event(name="process_name", ph="M", pid=rank["rank"], tid=0, args={"name": name})
        event(name="process_sort_index", ph="M", pid=rank["rank"], tid=0, args={"sort_index": rank["rank"]})
    for rank, line, blocks in timeline.lines(source):
        event(name="thread_name", ph="M", pid=rank["rank"], tid=line, args={"name": LINES[line]})
        event(name="thread_sort_index", ph="M", pid=rank["rank"], tid=line, args={"sort_index": line})
        for block in blocks:
            frame = block.path[-1]
            event(
                name=timeline.frames[frame], cat=timeline.kinds[frame], ph="X", pid=rank["rank"], tid=line,
                ts=block.begin_ns / 1000, dur=(block.end_ns - block.begin_ns) / 1000, args=block.counted,
            )  # fmt: skip
    file.write(f'],\n"displayTimeUnit": "ns",\n"otherData": {json.dumps(run)}}}\n')


def write_speedscope(timeline: Timeline, file: IO[str], source: str, run: dict[str, str]) -> None:
    """Write speedscope's own format: an evented profile for every line."""
    file.write('{"$schema": "https://www.speedscope.app/file-format-schema.json",\n')
    file.write(f'"exporter": {json.dumps("commlens " + run.get("commlens_version", ""))},\n')
    file.write(f'"name": {json.dumps(run.get("program") or source)},\n"activeProfileIndex": 0,\n')
    file.write(
        f'"shared": {json.dumps({"frames": [{"name": name} for name in timeline.frames]})},\n"profiles": ['
    )
    between = "\n"
    for rank, line, blocks in timeline.lines(source):
        events, last_ns = list(opened_and_closed(blocks)), rank["app_ns"]
        profile = {
            "type": "evented",
            "name": f"rank {rank['rank']} {LINES[line]}",
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": max([last_ns, *(event["at"] for event in events[-1:])]),
            "events": events,
        }
        file.write(between + json.dumps(profile))
        between = ",\n"
    file.write("]}\n")


def opened_and_closed(blocks: Iterable[Block]) -> Iterator[dict[str, Any]]:
    """Return the begin and end events of the blocks of a line, in time order."""
    inside: list[Block] = []

    def leave(depth: int) -> Iterator[dict[str, Any]]:
        while len(inside) > depth:
            block = inside.pop()
            yield {"type": "C", "frame": block.path[-1], "at": block.end_ns}

    for block in blocks:
        yield from leave(len(block.path) - 1)
        inside.append(block)
        yield {"type": "O", "frame": block.path[-1], "at": block.begin_ns}
    yield from leave(0)
