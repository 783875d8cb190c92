# SPDX-License-Identifier: Apache-2.0
"""Reads who keeps whom waiting: one row per family of communicators, procedure and message size."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from commlens.profile import meta
from commlens.profile.shape import has_rows, has_table
from commlens.reports.waiting import refuse_without_samples
from commlens.selection.conditions import comm_conditions, quoted, where
from commlens.waiting.estimate import (
    Chance,
    Pattern,
    Sampled,
    Share,
    pattern_of,
    pattern_of_messages,
    waiting_share,
)

Row = dict[str, Any]
Place = tuple[int, int, int]
"""Family, procedure and size bin."""

SAMPLING = "COMMLENS_WAITING"

NEIGHBORS = "neighbor"
"""Class of the neighbourhood collectives, in which each rank waits for its neighbours."""

PREFIX_SUMS = ("MPI_Scan", "MPI_Exscan")
"""Collectives in which each rank waits for others, as in messages."""

MESSAGES = ("p2p", "completion")
"""Classes of procedures that send or receive messages, or complete collectives; the others are collectives."""

SPLIT_SQL = """\
SELECT split.family, split.op, split.bin, family.name AS communicator, family.size_min, family.size_max,
       op.name AS operation, op.class, split.calls, split.time_ns, split.samples, split.sampled_ns, split.waiting_ns,
       split.operation_ns,
       op.class = 'completion' AND EXISTS (
         SELECT 1 FROM key JOIN comm ON comm.id = key.comm JOIN op AS started ON started.id = key.op
          WHERE comm.family = split.family AND started.class IN ('collective', 'neighbor')
            AND (started.name GLOB 'MPI_I*' OR started.name GLOB '*_init')) AS completes_collectives
  FROM split JOIN family ON family.family = split.family JOIN op ON op.id = split.op{chosen}
 ORDER BY split.waiting_ns DESC, split.time_ns DESC, communicator, operation, split.bin"""

SAMPLED_SQL = """\
SELECT comm.family, s.op, s.bin, s.comm, s.samples, s.collectives, s.across - COALESCE(s.by_clock, 0) AS by_stay,
       s.time_ns, s.waiting_ns, s.error_ns, s.spread_ns, s.late_ns, SUM(cell.time_ns) AS all_ns,
       SUM(cell.calls) AS calls,
       SUM(CASE WHEN part.share IS NULL THEN 0 ELSE cell.time_ns END) AS known_ns,
       COALESCE(SUM(cell.time_ns * part.share), 0) AS known_waiting_ns
  FROM sampled AS s JOIN comm ON comm.id = s.comm
       JOIN key ON key.comm = s.comm AND key.op = s.op AND key.bin = s.bin
       JOIN cell ON cell.key = key.id
       LEFT JOIN (SELECT comm, op, bin, rank, 1.0 * SUM(waiting_ns) / SUM(time_ns) AS share
                    FROM waiting GROUP BY comm, op, bin, rank HAVING SUM(time_ns) > 0) AS part
         ON part.comm = s.comm AND part.op = s.op AND part.bin = s.bin AND part.rank = cell.rank
 WHERE s.samples > 0
 GROUP BY s.comm, s.op, s.bin"""

RANKS_SQL = """\
SELECT comm.family, op, bin, rank, SUM(samples) AS samples, SUM(time_ns) AS time_ns, SUM(waiting_ns) AS waiting_ns,
       SUM(last) AS last, SUM(late_ns) AS late_ns, SUM(behind_ns) AS behind_ns, SUM(between_ns) AS between_ns,
       SUM(outside_ns) AS outside_ns,
       SUM(samples * (1.0 / (comm.size + COALESCE(comm.remote_size, 0)))) AS chance_mean,
       SUM(samples * (1.0 / (comm.size + COALESCE(comm.remote_size, 0)))
                   * (1 - 1.0 / (comm.size + COALESCE(comm.remote_size, 0)))) AS chance_variance
  FROM waiting JOIN comm ON comm.id = waiting.comm
 GROUP BY comm.family, op, bin, rank
HAVING SUM(samples) > 0 OR SUM(last) > 0"""

LATE_SQL = """\
SELECT comm.family, op, bin, rank, waiting.region, region_path.path, SUM(late_ns) AS late_ns
  FROM waiting JOIN comm ON comm.id = waiting.comm JOIN region_path ON region_path.region = waiting.region
 WHERE late_ns > 0 AND waiting.region > 0
 GROUP BY comm.family, op, bin, rank, waiting.region"""

UNSPLIT_SQL = """\
SELECT comm.family, unsplit.op, unsplit.bin, family.name AS communicator, op.name AS operation, op.class, unsplit.reason,
       SUM(unsplit.calls) AS calls
  FROM unsplit JOIN comm ON comm.id = unsplit.comm JOIN family ON family.family = comm.family
       JOIN op ON op.id = unsplit.op{chosen}
 GROUP BY comm.family, unsplit.op, unsplit.bin, unsplit.reason
 ORDER BY calls DESC, communicator, operation, unsplit.bin, unsplit.reason"""

UNSAMPLED_SQL = """\
SELECT op.name AS operation, SUM(total.time_ns) AS time_ns
  FROM key_total AS total JOIN key ON key.id = total.key JOIN op ON op.id = key.op
       JOIN comm ON comm.id = key.comm JOIN family ON family.family = comm.family{chosen}
 GROUP BY op.id
HAVING SUM(total.time_ns) >= 0.01 * (SELECT SUM(time_ns) FROM key_total)
 ORDER BY time_ns DESC, operation"""

IS_COLLECTIVE_IO = " OR ".join(
    f"op.name GLOB 'MPI_File_{name}'"
    for name in (
        "open", "close", "sync", "preallocate", "set_*", "seek_shared", "[rw]*_all", "[rw]*_all_*", "[rw]*_ordered*",
    )
)  # fmt: skip
"""Condition for the procedures of files in which all processes of the file take part."""

MAY_WAIT = (
    f"(op.class IN ('p2p', 'completion', 'collective', 'neighbor', 'rma', 'comm') OR {IS_COLLECTIVE_IO})",
    "op.name NOT GLOB 'MPI_I[a-z]*'",
    "op.name NOT GLOB '*_init'",
    """(comm.family, key.op, key.bin) NOT IN (
         SELECT known.family, sampled.op, sampled.bin FROM sampled JOIN comm AS known ON known.id = sampled.comm
          WHERE sampled.samples > 0
          UNION SELECT known.family, unsplit.op, unsplit.bin FROM unsplit JOIN comm AS known ON known.id = unsplit.comm)""",
)
"""Conditions for calls that may wait for other processes, but have no samples."""

CLOCKS_SQL = """\
SELECT clock.rank, rank.node, clock.calls, clock.drift_ppm, clock.error_ns, clock.excess_ns
  FROM clock JOIN rank ON rank.rank = clock.rank
 ORDER BY clock.rank"""


@dataclass(frozen=True)
class Wait:
    """The waiting in the calls of one family of communicators, procedure and message size.

    Attributes
    ----------
    row : dict
        The row of view split, with names.
    share : Share
        Estimated share of waiting.
    spread_ns : int
        Median of the time from the first entry of a member to the last; for messages, between the two sides.
    late_ns : int
        How long the others waited for the last alone, on average over the calls.
    pattern : Pattern
        Who is waited for.
    cause : str
        Why the rank of pattern same is last: compute, mpi or "" for unknown.
    ranks : list of dict
        The rows of table waiting, summed over communicators and regions, by rank. late_region is the region in which the
        rank was late most of the time, and late_path its path; 0 and "" if there is none. A rank that others wait for
        in messages may have no samples of its own.
    by_stay : bool
        Whether some calls were across machines, and split by how long their members stayed in them.
    """

    row: Row
    share: Share
    spread_ns: int
    late_ns: int
    pattern: Pattern
    cause: str
    ranks: list[Row]
    by_stay: bool

    @property
    def is_message(self) -> bool:
        """Whether each rank waits for others; otherwise all members wait for the same one."""
        return waits_for_some(self.row)

    @property
    def late_path(self) -> str:
        """The region in which the rank of the pattern was late most of the time; "" if there is none."""
        return next((one["late_path"] for one in self.ranks if one["rank"] == self.pattern.rank), "")

    def numbers(self) -> Row:
        """Return all columns, for csv and json."""
        names = (
            "communicator",
            "size_min",
            "size_max",
            "operation",
            "class",
            "bin",
            "calls",
            "time_ns",
            "samples",
            "sampled_ns",
        )
        row = {name: self.row[name] for name in names}
        return {
            **row,
            "waiting_ns": self.row["waiting_ns"],
            "operation_ns": self.row["operation_ns"],
            "waiting_share": self.share.share,
            "share_low": self.share.low,
            "share_high": self.share.high,
            "spread_ns": self.spread_ns,
            "late_ns": self.late_ns,
            "pattern": self.pattern.kind,
            "last_rank": self.pattern.rank,
            "last_share": self.pattern.share,
            "last_node": self.pattern.node,
            "cause": self.cause,
        }


@dataclass(frozen=True)
class Waits:
    """All rows, the sampled calls that could not be split, the clocks, and the statements that returned them.

    Attributes
    ----------
    unsampled : list of dict
        Procedures that may wait for other processes and whose calls without samples take 1 % of the time in MPI or more.
    option : str or None
        Value of COMMLENS_WAITING in the run; None if the profile lacks it.
    is_without_selected : bool
        Whether calls were sampled, but none that the selected communicators and procedures have.
    """

    waits: list[Wait]
    unsplit: list[Row]
    clocks: list[Row]
    unsampled: list[Row] = field(default_factory=list)
    option: str | None = None
    is_without_selected: bool = False
    statements: list[tuple[str, str]] = field(default_factory=list)

    @property
    def has_barriers(self) -> bool:
        """Whether commlens put a barrier before each blocking collective."""
        return self.option == "barrier"

    @property
    def waiting_ns(self) -> int:
        """Estimated waiting, sum over all rows and ranks."""
        return sum(wait.row["waiting_ns"] for wait in self.waits)

    @property
    def time_ns(self) -> int:
        """Time of all calls, sum over all rows and ranks."""
        return sum(wait.row["time_ns"] for wait in self.waits)


def read_waits(
    connection: sqlite3.Connection,
    comms: Sequence[Any],
    operations: Sequence[str],
    *,
    reads_all_counters: bool = False,
) -> Waits:
    """Read the waiting in these communicators and procedures, or in all.

    Parameters
    ----------
    reads_all_counters : bool
        Find the procedures without samples also if no call was sampled, which takes a pass over all counters.
    """
    refuse_without_samples(connection)
    chosen = []
    if comms:
        families = f"SELECT comm.family FROM comm{where(comm_conditions(comms))}"
        chosen.append(f"family.family IN ({families})")
    if operations:
        chosen.append(f"op.name IN ({', '.join(map(quoted, operations))})")
    # The statements read all counters, whether there are samples or not.
    split_sql, unsplit_sql = (sql.format(chosen=where(chosen)) for sql in (SPLIT_SQL, UNSPLIT_SQL))
    unsampled_sql = UNSAMPLED_SQL.format(chosen=where([*chosen, *MAY_WAIT]))
    has_sampled, has_unsplit = (has_rows(connection, table) for table in ("sampled", "unsplit"))
    waits = read_split(connection, split_sql) if has_sampled else []
    unsplit = [dict(row) for row in connection.execute(unsplit_sql)] if has_unsplit else []
    is_any = bool(waits or unsplit)
    unsampled = (
        [dict(row) for row in connection.execute(unsampled_sql)] if is_any or reads_all_counters else []
    )
    is_without_selected = bool(chosen) and (has_sampled or has_unsplit) and not is_any
    clocks = [dict(row) for row in connection.execute(CLOCKS_SQL)] if has_table(connection, "clock") else []
    statements = [
        ("waits", split_sql),
        ("sampled", SAMPLED_SQL),
        ("ranks", RANKS_SQL),
        ("late", LATE_SQL),
        ("unsplit", unsplit_sql),
        ("unsampled", unsampled_sql),
        ("clocks", CLOCKS_SQL),
    ]
    option = meta.option(connection, SAMPLING)
    return Waits(waits, unsplit, clocks, unsampled, option, is_without_selected, statements)


def read_split(connection: sqlite3.Connection, sql: str) -> list[Wait]:
    """Return the rows of a statement on view split, each with its samples."""
    sampled, ranks = grouped(connection, SAMPLED_SQL), grouped(connection, RANKS_SQL)
    add_late_regions(ranks, grouped(connection, LATE_SQL))
    node_of = dict(connection.execute("SELECT rank, node FROM rank").fetchall())
    waits = []
    for row in map(dict, connection.execute(sql)):
        place = (row["family"], row["op"], row["bin"])
        if sampled[place]:
            waits.append(wait_of(row, sampled[place], ranks[place], node_of))
    return waits


def grouped(connection: sqlite3.Connection, sql: str) -> defaultdict[Place, list[Row]]:
    """Return the rows of a statement by family, procedure and size bin."""
    rows: defaultdict[Place, list[Row]] = defaultdict(list)
    for row in connection.execute(sql):
        rows[row["family"], row["op"], row["bin"]].append(dict(row))
    return rows


def add_late_regions(ranks: Mapping[Place, list[Row]], late: Mapping[Place, list[Row]]) -> None:
    """Add to each rank the region in which it was late for more than half of the time."""
    for place, rows in ranks.items():
        regions: defaultdict[int, list[Row]] = defaultdict(list)
        for one in late.get(place, ()):
            regions[one["rank"]].append(one)
        for row in rows:
            most = max(regions[row["rank"]], key=lambda one: int(one["late_ns"]), default=None)
            row.update(late_region=0, late_path="")
            if most and 2 * most["late_ns"] > row["late_ns"]:
                row.update(late_region=most["region"], late_path=most["path"])


def wait_of(row: Row, sampled: list[Row], ranks: list[Row], node_of: dict[int, str]) -> Wait:
    """Return what the samples say about one row of view split."""
    strata = [sampled_of(one, waits_for_some(row)) for one in sampled]
    share = waiting_share(row["waiting_ns"], row["time_ns"], strata)
    spread_ns = median(one["spread_ns"] for one in sampled)
    pattern = pattern_in(row, ranks, node_of, spread_ns)
    return Wait(
        row,
        share,
        round(spread_ns),
        round(sum(one["late_ns"] for one in sampled) / row["samples"]),
        pattern,
        cause_of(pattern, ranks) if pattern.kind == "same" else "",
        sorted(ranks, key=lambda one: one["rank"]),
        any(one["by_stay"] for one in sampled),
    )


def waits_for_some(row: Row) -> bool:
    """Return whether each rank waits for others: in messages, requests, prefix sums, neighbourhood collectives."""
    return row["class"] in (*MESSAGES, NEIGHBORS) or row["operation"] in PREFIX_SUMS


def sampled_of(one: Row, is_message: bool) -> Sampled:
    """Return the samples of one communicator.

    Some calls may wait for no message, and some ranks have no samples: the time of the samples then tells nothing of the
    time of all calls.
    """
    names = ["samples", "collectives", "time_ns", "waiting_ns", "error_ns", "all_ns"]
    if is_message and one["collectives"] < one["calls"]:
        names += ["known_ns", "known_waiting_ns"]
    return Sampled(*(one[name] for name in names))


def pattern_in(row: Row, ranks: list[Row], node_of: dict[int, str], spread_ns: float) -> Pattern:
    """Return who is waited for in one row of view split."""
    last = {one["rank"]: one["last"] for one in ranks if one["last"]}
    if waits_for_some(row):
        late, waiting = ({one["rank"]: one[name] for one in ranks} for name in ("late_ns", "waiting_ns"))
        return pattern_of_messages(late, waiting, sum(last.values()), node_of)
    behind = {one["rank"]: one["behind_ns"] / one["samples"] for one in ranks if one["samples"]}
    chances = {
        one["rank"]: Chance(one["chance_mean"] or 0.0, one["chance_variance"] or 0.0, one["samples"])
        for one in ranks
    }
    return pattern_of(last, chances, node_of, behind, spread_ns)


def cause_of(pattern: Pattern, ranks: list[Row]) -> str:
    """Return why a rank is last: compute, mpi or "" for unknown.

    It computes longer if its time outside MPI between two samples exceeds that of the others by at least half of the time
    for which they wait for it. It comes late from other MPI calls if it has less time than that outside MPI at all, and
    at least so much more than the others in other calls. Otherwise it may compute before these calls what the others
    compute after them.
    """
    outside, inside = outside_of(pattern.rank, ranks), inside_of(pattern.rank, ranks)
    if outside is None or inside is None:
        return ""
    half = next(one["late_ns"] / one["samples"] for one in ranks if one["rank"] == pattern.rank) / 2
    if outside[0] - outside[1] > half:
        return "compute"
    return "mpi" if outside[0] < half < inside[0] - inside[1] else ""


def outside_of(rank: int, ranks: list[Row]) -> tuple[float, float] | None:
    """Return the time of a rank outside MPI before a sampled call, ns, and the median of the others; None: unknown."""
    return compared(rank, ranks, lambda one: one["outside_ns"])


def inside_of(rank: int, ranks: list[Row]) -> tuple[float, float] | None:
    """Return the time of a rank in other MPI calls before a sampled call, as outside_of() does."""
    return compared(rank, ranks, lambda one: one["between_ns"] - one["outside_ns"])


def compared(rank: int, ranks: list[Row], time_of: Callable[[Row], int]) -> tuple[float, float] | None:
    """Return a time between the sampled calls of a rank, per call, and the median of the others; None: unknown."""
    times = {one["rank"]: time_of(one) / one["samples"] for one in ranks if one["samples"]}
    own = times.pop(rank, None)
    if own is None or not times or not any(one["between_ns"] for one in ranks):
        return None
    return own, median(times.values())
