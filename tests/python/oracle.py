# SPDX-License-Identifier: Apache-2.0
"""What a report must say, computed from the cells by loops: no SQL, nothing from the package."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from build_profile import OPS, Cell, ProfileBuilder

CLASS_OF = dict(OPS.values())
Row = dict[str, Any]


def rounded(total: int, count: int) -> int:
    """Return total / count to the nearest integer, halves up."""
    quotient, rest = divmod(total, count)
    return quotient + (1 if 2 * rest >= count else 0)


def bucket_of(bin: int, bounds: list[int] | None) -> int:
    """Return the bucket of a bin: by bounds, or one for each bin."""
    if bounds is None or bin < 0:
        return bin
    smallest = 0 if bin == 0 else 2 ** (bin - 1)
    return sum(1 for bound in bounds if smallest >= bound)


def bucket_sizes(bins: Iterable[int], bounds: list[int] | None) -> tuple[int | None, int | None]:
    """Return the smallest and largest size of the bucket these bins are in."""
    bin = next(iter(bins))
    if bin < 0:
        return None, None
    if bounds is None:
        return (0, 0) if bin == 0 else (2 ** (bin - 1), 2**bin - 1)
    edges: list[int | None] = [0, *bounds, None]
    i = bucket_of(bin, bounds)
    low, high = edges[i], edges[i + 1]
    return low, None if high is None else high - 1


class Oracle:
    """Expected rows of a report on `build`."""

    def __init__(
        self,
        build: ProfileBuilder,
        comms: set[int] | None = None,
        operations: set[str] | None = None,
        classes: set[str] | None = None,
        ranks: set[int] | None = None,
        sizes: tuple[int, int] | None = None,
        time_ns: tuple[int, int] | None = None,
        fold: bool = True,
        callsites: bool = False,
        bounds: list[int] | None = None,
        all_ranks: bool = False,
    ):
        self.build, self.fold, self.callsites, self.bounds = build, fold, callsites, bounds
        self.comms = set(build.comms) if comms is None else comms
        self.ranks = set(range(build.ranks)) if ranks is None else ranks
        self.time_ns, self.all_ranks = time_ns, all_ranks
        self.cells = [
            cell
            for cell in build.cells
            if cell.comm in self.comms
            and (operations is None or cell.op in operations)
            and (classes is None or CLASS_OF[cell.op] in classes)
            and cell.rank in self.ranks
            and (sizes is None or self.inside(cell.bin, sizes))
        ]
        if time_ns is not None:
            low, high = time_ns
            rows = self.grouped(self.row_of)
            kept = set()
            for key, cells in rows.items():
                times = self.by_rank(cells).values()
                hits = [t for t in times if low <= t <= high] if all_ranks else [max(times)]
                if any(low <= t <= high for t in hits):
                    kept.add(key)
            self.cells = [cell for cell in self.cells if self.row_of(cell) in kept]

    @staticmethod
    def inside(bin: int, sizes: tuple[int, int]) -> bool:
        """Return whether all sizes of a bin are in the half-open range."""
        if bin < 0:
            return False
        low, high = bucket_sizes([bin], None)
        assert low is not None and high is not None
        return sizes[0] <= low and high < sizes[1]

    def line_of(self, cell: Cell) -> int:
        """Return family or communicator."""
        return self.build.comms[cell.comm].family if self.fold else cell.comm

    def row_of(self, cell: Cell) -> tuple[int, ...]:
        """Return what tells rows of operations apart."""
        op = next(id for id, (name, _) in OPS.items() if name == cell.op)
        site = (cell.callsite,) if self.callsites else ()
        return (self.line_of(cell), op, bucket_of(cell.bin, self.bounds), *site)

    def grouped(self, key: Any) -> dict[Any, list[Cell]]:
        """Return the cells by key."""
        groups = defaultdict(list)
        for cell in self.cells:
            groups[key(cell)].append(cell)
        return groups

    @staticmethod
    def by_rank(cells: list[Cell]) -> dict[int, int]:
        """Return the time of each rank."""
        times: dict[int, int] = defaultdict(int)
        for cell in cells:
            times[cell.rank] += cell.time_ns
        return times

    def members(self, line: int) -> set[int]:
        """Return the ranks asked for that belong to a line."""
        comms = [c for c in self.build.comms.values() if c.id in self.comms]
        return {r for c in comms if (c.family if self.fold else c.id) == line for r in c.ranks} & self.ranks

    def sizes(self, line: int) -> Row:
        """Return how many communicators a line stands for, and the sizes of the smallest and largest."""
        comms = [c for c in self.build.comms.values() if c.id in self.comms]
        mine = [c for c in comms if (c.family if self.fold else c.id) == line]
        sizes = [len(c.ranks) for c in mine if c.kind in ("intra", "inter")]
        return {
            "communicators": len(mine),
            "size_min": min(sizes) if sizes else None,
            "size_max": max(sizes) if sizes else None,
        }

    def counters(self, line: int, cells: list[Cell]) -> Row:
        """Return the counters of a row."""
        total = sum(cell.time_ns for cell in cells)
        return {
            "calls": sum(cell.calls for cell in cells),
            "time_ns": total,
            "rank_max_ns": max(self.by_rank(cells).values()),
            "rank_avg_ns": rounded(total, len(self.members(line))),
            "call_min_ns": min(cell.min_ns for cell in cells),
            "call_max_ns": max(cell.max_ns for cell in cells),
            "bytes_sent": sum(cell.sent for cell in cells),
            "bytes_received": sum(cell.received for cell in cells),
            "noncontiguous": sum(cell.noncontiguous for cell in cells),
        }

    def lines(self) -> dict[int, Row]:
        """Return the communicator lines."""
        return {
            line: {"ranks": len(self.members(line)), **self.sizes(line), **self.counters(line, cells)}
            for line, cells in self.grouped(self.line_of).items()
        }

    def operations(self) -> dict[tuple[int, ...], Row]:
        """Return the rows of operations."""
        rows = {}
        for key, cells in self.grouped(self.row_of).items():
            low, high = bucket_sizes([cell.bin for cell in cells], self.bounds)
            rows[key] = {"size_low": low, "size_high": high, **self.counters(key[0], cells)}
        return rows

    def rank_rows(self) -> dict[tuple[int, ...], Row]:
        """Return the rows of single ranks."""
        rows = {}
        for key, cells in self.grouped(lambda cell: (*self.row_of(cell), cell.rank)).items():
            row = self.counters(key[0], cells)
            del row["rank_max_ns"], row["rank_avg_ns"]
            if self.time_ns is None or self.time_ns[0] <= row["time_ns"] <= self.time_ns[1]:
                rows[key] = row
        return rows
