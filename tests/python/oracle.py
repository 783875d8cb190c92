# SPDX-License-Identifier: Apache-2.0
"""What reports must say, computed from what was put into a profile by loops: no SQL, nothing from the package."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest
from build_profile import OPS, Cell, Comm, LoopTime, MetricValue, ProfileBuilder, RegionTime

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
        by: str = "family",
        callsites: bool = False,
        bounds: list[int] | None = None,
        all_ranks: bool = False,
        regions: set[int] | None = None,
    ):
        self.build, self.fold, self.by, self.callsites, self.bounds = build, fold, by, callsites, bounds
        self.comms = set(build.comms) if comms is None else comms
        self.ranks = set(range(build.ranks)) if ranks is None else ranks
        self.some_ranks = ranks is not None
        self.time_ns, self.all_ranks = time_ns, all_ranks
        self.cells = [
            cell
            for cell in build.cells
            if cell.comm in self.comms
            and (regions is None or cell.region in regions)
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

    def line_of_comm(self, comm: Comm) -> int:
        """Return family, communicator or size."""
        if self.by == "comm-size":
            return len(comm.ranks) if comm.kind in ("intra", "inter") else 0
        return comm.family if self.fold else comm.id

    def line_of(self, cell: Cell) -> int:
        """Return family, communicator or size."""
        return self.line_of_comm(self.build.comms[cell.comm])

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
        return {r for c in comms if self.line_of_comm(c) == line for r in c.ranks} & self.ranks

    def sizes(self, line: int) -> Row:
        """Return how many communicators a line stands for, and the sizes of the smallest and largest."""
        comms = [c for c in self.build.comms.values() if c.id in self.comms]
        mine = [c for c in comms if self.line_of_comm(c) == line]
        sizes = [len(c.ranks) for c in mine if c.kind in ("intra", "inter")]
        return {
            "communicators": len(mine),
            "size_min": min(sizes) if sizes else None,
            "size_max": max(sizes) if sizes else None,
        }

    def collectives(self, cells: list[Cell]) -> float | None:
        """Return the collective operations: each call is one part of as many as its communicator has ranks."""
        if self.some_ranks:
            return None
        shared = [cell for cell in cells if CLASS_OF[cell.op] in ("collective", "neighbor")]
        shared = [cell for cell in shared if self.build.comms[cell.comm].kind in ("intra", "inter")]
        return sum(cell.calls / len(self.build.comms[cell.comm].ranks) for cell in shared) if shared else None

    def counters(self, line: int, cells: list[Cell]) -> Row:
        """Return the counters of a row."""
        total = sum(cell.time_ns for cell in cells)
        return {
            "calls": sum(cell.calls for cell in cells),
            "time_ns": total,
            "rank_max_ns": max(self.by_rank(cells).values()),
            "rank_avg_ns": rounded(total, len(self.members(line))),
            "call_avg_ns": rounded(total, sum(cell.calls for cell in cells)),
            "calls_per_rank": sum(cell.calls for cell in cells) / len(self.members(line)),
            "collectives": pytest.approx(self.collectives(cells)),
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
            del row["rank_max_ns"], row["rank_avg_ns"], row["calls_per_rank"], row["collectives"]
            if self.time_ns is None or self.time_ns[0] <= row["time_ns"] <= self.time_ns[1]:
                rows[key] = row
        return rows


def divided(a: float | None, b: float | None) -> float | None:
    """Return a / b, or None where one is not known or b is nothing."""
    return None if a is None or not b else a / b


def place(row: RegionTime | LoopTime | MetricValue, by: tuple[str, ...]) -> tuple[int, ...]:
    """Return what a row is about: its region, and what is told apart in it."""
    return (row.region, *(getattr(row, column) for column in by))


class RegionOracle:
    """Expected rows of `commlens regions` on `build`."""

    def __init__(self, build: ProfileBuilder):
        self.build = build

    def path(self, region: int) -> list[str]:
        """Return the names from the outermost region to this one."""
        names: list[str] = []
        while region:
            names.insert(0, self.build.regions[region].name)
            region = self.build.regions[region].parent or 0
        return names

    def with_all_around(self, region: int) -> list[int]:
        """Return a region and those around it, up to the whole program."""
        regions = [region]
        while regions[-1] != 0:
            regions.append(self.build.regions[regions[-1]].parent or 0)
        return regions

    @staticmethod
    def row(ranks: dict[int, Row]) -> Row:
        """Return what the times of ranks add up to, and the efficiencies."""
        count = len(ranks)
        time_ns, mpi_ns = (sum(rank[what] for rank in ranks.values()) for what in ("time", "mpi"))
        longest = max(rank["time"] for rank in ranks.values())
        useful = [max(rank["time"] - rank["mpi"], 0) for rank in ranks.values()]
        own = [rank["own"] for rank in ranks.values()]
        exclusive = None if None in own else sum(own)
        ended_min = [rank["min"] for rank in ranks.values() if rank["min"] is not None]
        ended_max = [rank["max"] for rank in ranks.values() if rank["max"] is not None]
        return {
            "ranks": count,
            "calls": sum(rank["calls"] for rank in ranks.values()),
            "time_ns": time_ns,
            "rank_min_ns": min(rank["time"] for rank in ranks.values()),
            "rank_max_ns": longest,
            "rank_avg_ns": rounded(time_ns, count),
            "exclusive_ns": exclusive,
            "exclusive_avg_ns": None if exclusive is None else rounded(exclusive, count),
            "mpi_ns": mpi_ns,
            "mpi_share": divided(mpi_ns, time_ns),
            "imbalance": divided(longest, time_ns / count),
            "load_balance": divided(sum(useful) / count, max(useful)),
            "communication_efficiency": divided(max(useful), longest),
            "parallel_efficiency": divided(sum(useful) / count, longest),
            "call_min_ns": min(ended_min, default=None),
            "call_max_ns": max(ended_max, default=None),
        }

    def rows_of(
        self, times: list[RegionTime] | list[LoopTime], by: tuple[str, ...]
    ) -> dict[tuple[int, ...], Row]:
        """Return the rows of regions, or of iterations, told apart or not."""
        ranks: dict[tuple[int, ...], dict[int, Row]] = defaultdict(dict)
        for row in times:
            calls, still_open = (row.iterations, 0) if isinstance(row, LoopTime) else (row.calls, row.open)
            zero: Row = {"calls": 0, "time": 0, "own": 0, "mpi": 0, "min": None, "max": None}
            sums = ranks[place(row, by)].setdefault(row.rank, zero)
            sums["calls"] += calls
            sums["time"] += row.time_ns
            sums["own"] += row.time_ns - row.nested_ns
            sums["mpi"] += row.mpi_ns
            if calls > still_open:
                sums["min"] = row.min_ns if sums["min"] is None else min(sums["min"], row.min_ns)
                sums["max"] = row.max_ns if sums["max"] is None else max(sums["max"], row.max_ns)
        return {key: self.row(of_ranks) for key, of_ranks in ranks.items()}

    def whole(self) -> Row:
        """Return the row of the whole program."""
        return self.row(
            {
                rank: {
                    "calls": 1,
                    "time": self.build.app_ns,
                    "own": None,
                    "mpi": sum(cell.time_ns for cell in self.build.cells if cell.rank == rank),
                    "min": None,
                    "max": None,
                }
                for rank in range(self.build.ranks)
            }
        )

    def regions(self) -> dict[int, Row]:
        """Return the rows of all regions that a rank was in, and of the whole program."""
        rows = {key[0]: row for key, row in self.rows_of(self.build.region_times, ()).items()}
        return {0: self.whole(), **rows}

    def communicators(self, fold: bool) -> dict[tuple[int, int], Row]:
        """Return what was called on each communicator, or family, in a region and in those within it."""
        rows: dict[tuple[int, int], Row] = {}
        for cell in self.build.cells:
            line = self.build.comms[cell.comm].family if fold else cell.comm
            for region in self.with_all_around(cell.region):
                row = rows.setdefault(
                    (region, line), {"calls": 0, "time_ns": 0, "bytes_sent": 0, "bytes_received": 0}
                )
                row["calls"] += cell.calls
                row["time_ns"] += cell.time_ns
                row["bytes_sent"] += cell.sent
                row["bytes_received"] += cell.received
        for (region, _), row in rows.items():
            row["share"] = row["time_ns"] / sum(
                r["time_ns"] for (other, _), r in rows.items() if other == region
            )
        return rows

    def histograms(self) -> dict[tuple[int, int], int]:
        """Return the iterations of each loop and bin."""
        bins: dict[tuple[int, int], int] = defaultdict(int)
        for row in self.build.loop_bins:
            bins[row.region, row.bin] += row.iterations
        return bins

    def metrics(self, by: tuple[str, ...]) -> dict[tuple[int, ...], Row]:
        """Return what was told of each metric in each region."""
        told: dict[tuple[int, ...], list[MetricValue]] = defaultdict(list)
        for value in self.build.metric_values:
            told[(value.metric, *place(value, by))].append(value)
        rows = {}
        for key, values in told.items():
            some = [value for value in values if value.count]
            last: dict[int, MetricValue] = {}
            for value in some:
                when = (value.execution, value.iteration == -1, value.iteration)
                known = last.get(value.rank)
                if known is None or when > (known.execution, known.iteration == -1, known.iteration):
                    last[value.rank] = value
            ends = {value.last for value in last.values()}
            rows[key] = {
                "ranks": len({value.rank for value in values}),
                "count": sum(value.count for value in values),
                "sum": sum(value.sum for value in values),
                "min": min((value.min for value in some if value.min is not None), default=None),
                "max": max((value.max for value in some if value.max is not None), default=None),
                "last": ends.pop() if len(ends) == 1 else None,
                "not_finite": sum(value.not_finite for value in values),
            }
        return rows
