# SPDX-License-Identifier: Apache-2.0
"""Checks names that the user types against the profile, and suggests similar ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from commlens.base.errors import CommlensError
from commlens.base.spelling import did_you_mean
from commlens.selection.conditions import PREDEFINED_SQL, CommSize, comm_conditions, where

KNOWN_SQL = f"SELECT name FROM comm UNION SELECT user_name FROM comm UNION SELECT {PREDEFINED_SQL} FROM comm"


def check_communicators(connection: sqlite3.Connection, patterns: Iterable[str]) -> None:
    """Refuse a pattern that matches no communicator."""
    patterns = list(patterns)
    for pattern in patterns:
        if connection.execute(f"SELECT 1 FROM comm{where(comm_conditions([pattern]))} LIMIT 1").fetchone():
            continue
        if isinstance(pattern, CommSize):
            raise CommlensError(f"no {pattern} in this profile; 'commlens comms' shows the sizes")
        known = [name for (name,) in connection.execute(KNOWN_SQL) if name]
        hint = did_you_mean(pattern, known) or "; 'commlens comms' lists them"
        raise CommlensError(f"no communicator '{pattern}' in this profile{hint}")
    if (
        patterns
        and not connection.execute(f"SELECT 1 FROM comm{where(comm_conditions(patterns))} LIMIT 1").fetchone()
    ):
        raise CommlensError("no communicator in this profile has one of these names and one of these sizes")


def selects_part_of_family(connection: sqlite3.Connection, patterns: Sequence[str]) -> bool:
    """Return whether some, but not all communicators of a family are selected."""
    chosen = " AND ".join(f"COALESCE({condition}, 0)" for condition in comm_conditions(patterns)) or "1"
    sql = f"SELECT 1 FROM comm GROUP BY family HAVING SUM({chosen}) BETWEEN 1 AND COUNT(*) - 1 LIMIT 1"
    return connection.execute(sql).fetchone() is not None


def matching_operations(connection: sqlite3.Connection, patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the operations that match the patterns; refuse a pattern without match."""
    known = [name for (name,) in connection.execute("SELECT name FROM op ORDER BY id")]
    found: dict[str, None] = {}
    for pattern in patterns:
        wanted = {pattern.lower(), f"mpi_{pattern.lower()}"}
        matches = [name for name in known if any(fnmatchcase(name.lower(), w) for w in wanted)]
        if not matches:
            raise CommlensError(f"no operation '{pattern}'{did_you_mean(pattern, known)}")
        found.update(dict.fromkeys(matches))
    return tuple(found)


def check_ranks(connection: sqlite3.Connection, ranges: Iterable[tuple[int, int]]) -> None:
    """Refuse a range without any rank of this profile."""
    for first, last in ranges:
        if connection.execute("SELECT 1 FROM rank WHERE rank BETWEEN ? AND ?", (first, last)).fetchone():
            continue
        (highest,) = connection.execute("SELECT MAX(rank) FROM rank").fetchone()
        wanted = f"rank {first}" if first == last else f"rank from {first} to {last}"
        raise CommlensError(f"no {wanted} in this profile; the highest is {highest}")
