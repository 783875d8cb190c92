# SPDX-License-Identifier: Apache-2.0
"""Finds the collectives in which another algorithm could pay: one row per family, procedure and message size."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from commlens.algorithms.calls import collective_of
from commlens.algorithms.offered import Offer, offered
from commlens.algorithms.recognise import recognise
from commlens.algorithms.registry import COLLECTIVES
from commlens.base.errors import CommlensError
from commlens.profile import meta
from commlens.selection.conditions import comm_conditions, quoted, where
from commlens.waiting.waits import Wait, read_waits

Row = dict[str, Any]
Key = tuple[int, str, int]
"""Family, name of the procedure and size bin."""

LEAST_GAIN = 0.01  # share of the run time from which on a place is worth trying
LEAST_CALLS = 10  # per member of a communicator: in fewer, the first calls count most, which make connections and fill caches
LEAST_NS = 1_000_000  # that each rank could save on average: a run does not show less

BLOCKING = tuple(f"MPI_{collective.capitalize()}" for collective in COLLECTIVES)
"""The procedures that have algorithms to choose from."""

RECEIVE_ALL = ("MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Barrier")
"""Those in which every rank receives at least as many bytes as the message size."""

PLACES_SQL = """\
SELECT total.family, total.bin, family.name AS communicator, family.communicators, family.size_min, family.size_max,
       op.name AS operation, total.calls, total.time_ns, total.fastest_ns,
       (SELECT SUM(size * communicators) FROM comm WHERE comm.family = total.family) AS members
  FROM (SELECT comm.family, key.op, key.bin, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
               COALESCE(MIN(CASE WHEN part.time_min_ns > 0 THEN part.time_min_ns END), 0) AS fastest_ns
          FROM key_total AS part JOIN key ON key.id = part.key JOIN comm ON comm.id = key.comm
         GROUP BY comm.family, key.op, key.bin) AS total
       JOIN family ON family.family = total.family JOIN op ON op.id = total.op{chosen}
 ORDER BY total.time_ns DESC, communicator, operation, total.bin"""

RECEIVES_SQL = """\
SELECT key.bin, COALESCE(MIN(CASE WHEN part.time_min_ns > 0 THEN part.time_min_ns END), 0) AS fastest_ns
  FROM key_total AS part JOIN key ON key.id = part.key JOIN op ON op.id = key.op
 WHERE op.name IN ('MPI_Recv', 'MPI_Mrecv') AND key.bin >= 0 AND part.calls > 0
 GROUP BY key.bin"""

# The time of calls that had not returned is in the cells of no bytes, together with that of other calls.
OPEN_SQL = """\
SELECT comm.family, op.name AS operation, COUNT(*) AS calls
  FROM position JOIN comm ON comm.id = position.comm JOIN op ON op.id = position.op
 WHERE position.inside = 1 AND EXISTS (SELECT 1 FROM meta WHERE key = 'open_calls' AND value = 'counted')
 GROUP BY comm.family, op.name"""


@dataclass(frozen=True)
class Place:
    """The calls of one family of communicators, procedure and message size.

    Attributes
    ----------
    row : dict
        The row of PLACES_SQL: names, calls and time of all ranks.
    wait : Wait or None
        Its waiting, from samples; None if no call was sampled.
    least_ns : int
        Time that a call takes at least with any algorithm.
    ran : tuple of str
        The algorithms that ran, as `commlens algorithms` names them; empty if they were not measured.
    offer : Offer or None
        The algorithms that the library has for the collective; None if unknown.
    run_ns : int
        Run time of all ranks; 0 if unknown.
    ranks : int
        Number of ranks of the run.
    open_calls : int
        Calls that had not returned, but whose time counts here.
    """

    row: Row
    wait: Wait | None
    least_ns: int
    ran: tuple[str, ...]
    offer: Offer | None
    run_ns: int
    ranks: int
    open_calls: int = 0

    @property
    def time_ns(self) -> int:
        """Time in the calls, sum over the ranks."""
        return int(self.row["time_ns"])

    @property
    def calls_per_rank(self) -> float | None:
        """Calls of a member of a communicator, on average; None if the number of members is unknown."""
        members = self.row["members"]
        return float(self.row["calls"] / members) if members else None

    @property
    def waiting_ns(self) -> int | None:
        """Estimated waiting; None if no call was sampled."""
        return None if self.wait is None else round(self.wait.share.share * self.time_ns)

    @property
    def operation_ns(self) -> int | None:
        """Estimated time of the operation itself; None if no call was sampled."""
        return None if self.waiting_ns is None else self.time_ns - self.waiting_ns

    @property
    def operation_max_ns(self) -> int:
        """Largest time of the operation that the samples allow: all of the time if they allow no interval."""
        low = self.wait.share.low if self.wait is not None else None
        return self.time_ns - int((low or 0.0) * self.time_ns)

    @property
    def gain_max_ns(self) -> int:
        """Upper bound of the time that another algorithm could save, sum over the ranks."""
        return max(0, self.operation_max_ns - int(self.row["calls"]) * self.least_ns)

    @property
    def gain_share(self) -> float | None:
        """Share of this bound in the run time; None if the run time is unknown."""
        return self.gain_max_ns / self.run_ns if self.run_ns else None

    @property
    def has_choice(self) -> bool:
        """Whether the library has, or may have, another algorithm."""
        return self.offer is None or len(self.offer.names) > 1

    @property
    def is_large(self) -> bool:
        """Whether the gain may reach LEAST_GAIN and LEAST_NS."""
        is_seen = self.gain_max_ns >= LEAST_NS * max(1, self.ranks)
        return is_seen and (self.gain_share is None or self.gain_share >= LEAST_GAIN)

    @property
    def is_frequent(self) -> bool:
        """Whether there are LEAST_CALLS."""
        return self.calls_per_rank is None or self.calls_per_rank >= LEAST_CALLS

    @property
    def is_worth(self) -> bool:
        """Whether another algorithm is worth trying. The time that a job hung says nothing about algorithms."""
        return self.is_large and self.is_frequent and self.has_choice and not self.open_calls

    def numbers(self) -> Row:
        """Return all columns, for csv and json."""
        names = ("communicator", "communicators", "size_min", "size_max", "operation", "bin", "calls")
        share = self.wait.share if self.wait is not None else None
        return {
            **{name: self.row[name] for name in names},
            "calls_per_rank": self.calls_per_rank,
            "time_ns": self.time_ns,
            "waiting_ns": self.waiting_ns,
            "share_low": share.low if share else None,
            "share_high": share.high if share else None,
            "operation_ns": self.operation_ns,
            "operation_max_ns": self.operation_max_ns,
            "fastest_ns": self.row["fastest_ns"],
            "least_ns": self.least_ns,
            "gain_max_ns": self.gain_max_ns,
            "gain_share": self.gain_share,
            "algorithm": " or ".join(self.ran) or None,
            "variable": self.offer.variable if self.offer else None,
            "offered": ", ".join(self.offer.names) if self.offer else None,
            "is_worth_trying": int(self.is_worth),
            "open_calls": self.open_calls,
        }


@dataclass(frozen=True)
class Plan:
    """All places, those with the largest possible gain first.

    Attributes
    ----------
    library : str
        First line of the text of MPI_Get_library_version.
    run_ns : int
        Run time of all ranks; 0 if unknown.
    statements : list of (str, str)
        Names and texts of the statements.
    """

    places: list[Place]
    library: str
    run_ns: int
    statements: list[tuple[str, str]] = field(default_factory=list)

    @property
    def worth(self) -> list[Place]:
        """The places in which another algorithm is worth trying."""
        return [place for place in self.places if place.is_worth]


def read_plan(connection: sqlite3.Connection, comms: Sequence[Any], operations: Sequence[str]) -> Plan:
    """Read where another algorithm could pay, in the families with these communicators and procedures, or in all."""
    names = [name for name in BLOCKING if not operations or name in operations]
    chosen = ["family.kind = 'intra'", "family.size_max > 1", f"op.name IN ({', '.join(map(quoted, names))})"]
    if comms:
        chosen.append(f"family.family IN (SELECT comm.family FROM comm{where(comm_conditions(comms))})")
    places_sql = PLACES_SQL.format(chosen=where(chosen))
    rows = [dict(row) for row in connection.execute(places_sql)] if names else []
    facts = meta.facts(connection)
    library = facts.get("mpi_library", "")
    ranks = meta.number(facts, "ranks_collected")
    run_ns = meta.number(facts, "elapsed_ns") * ranks
    called = sorted({row["operation"] for row in rows})
    waits, ran = (
        (_waits(connection, comms, called), _algorithms(connection, comms, called)) if rows else ({}, {})
    )
    unreturned = {
        (row["family"], row["operation"], 0): row["calls"] for row in map(dict, connection.execute(OPEN_SQL))
    }
    receives = {row["bin"]: row["fastest_ns"] for row in map(dict, connection.execute(RECEIVES_SQL))}
    places = []
    for row in rows:
        key = (row["family"], row["operation"], row["bin"])
        offer = offered(library, collective_of(row["operation"]) or "")
        places.append(
            Place(
                row,
                waits.get(key),
                least_time(row["operation"], row["bin"], receives),
                ran.get(key, ()),
                offer,
                run_ns,
                ranks,
                unreturned.get(key, 0),
            )
        )
    places.sort(key=lambda place: -place.gain_max_ns)
    statements = [("places", places_sql), ("receives", RECEIVES_SQL), ("open calls", OPEN_SQL)]
    return Plan(places, library, run_ns, statements)


def least_time(operation: str, bin: int, receives: Mapping[int, int]) -> int:
    """Return the time that a call takes at least with any algorithm, ns; 0 if nothing is known.

    In the collectives of RECEIVE_ALL every rank receives the bytes of the message size. This takes no less time than the
    fastest receive of the run that cannot have had more bytes.

    Parameters
    ----------
    receives : mapping
        The time of the fastest receive, by size bin.

    >>> least_time("MPI_Allreduce", 11, {3: 200, 10: 900, 11: 1500}), least_time("MPI_Barrier", 0, {0: 150, 1: 160})
    (900, 150)
    >>> least_time("MPI_Bcast", 11, {3: 200}), least_time("MPI_Allreduce", 11, {})
    (0, 0)
    """
    if operation not in RECEIVE_ALL or bin < 0:
        return 0
    return max((ns for size, ns in receives.items() if size < bin or size == bin == 0), default=0)


def _waits(connection: sqlite3.Connection, comms: Sequence[Any], names: Sequence[str]) -> dict[Key, Wait]:
    """Return the waiting by place; empty if the profile cannot have samples."""
    try:
        found = read_waits(connection, comms, names)
    except CommlensError:
        return {}
    return {(wait.row["family"], wait.row["operation"], wait.row["bin"]): wait for wait in found.waits}


def _algorithms(
    connection: sqlite3.Connection, comms: Sequence[Any], names: Sequence[str]
) -> dict[Key, tuple[str, ...]]:
    """Return the algorithms that ran, by place; empty if the messages inside collectives were not measured."""
    try:
        found = recognise(connection, comms, names)
    except CommlensError:
        return {}
    ran: dict[Key, set[str]] = {}
    for line in found.lines:
        if line.best is not None:
            for bin in line.bins:
                ran.setdefault((line.where[0].family, line.procedure, bin), set()).add(line.verdict)
    return {key: tuple(sorted(verdicts)) for key, verdicts in ran.items()}
