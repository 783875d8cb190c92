# SPDX-License-Identifier: Apache-2.0
"""Which variables of the MPI library, besides those that choose an algorithm, a profile gives a reason to try."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from commlens.algorithms._offered import LIBRARIES
from commlens.algorithms.offered import library_of
from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.profile import meta
from commlens.render.units import average_text, share_text, size_text
from commlens.selection.conditions import quoted
from commlens.tune._switches import SWITCHES, Switch
from commlens.tune.plan import LEAST_CALLS, LEAST_GAIN
from commlens.waiting.waits import read_waits

Row = dict[str, Any]

MOSTLY = 0.5  # share of the messages that must go the way that a variable concerns

MESSAGES_SQL = """\
SELECT key.bin, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns
  FROM key_total AS part JOIN key ON key.id = part.key JOIN op ON op.id = key.op
 WHERE op.class = 'p2p' AND key.bin BETWEEN 1 AND 40
 GROUP BY key.bin"""

# Messages to the process itself go neither way.
WAYS_SQL = """\
SELECT peer.bin, SUM(messages) AS messages,
       SUM(CASE WHEN source.node = destination.node THEN messages ELSE 0 END) AS within
  FROM peer JOIN flow ON flow.id = peer.flow JOIN rank AS source ON source.rank = peer.rank
       JOIN rank AS destination ON destination.rank = peer.peer
 WHERE flow.name = 'sent' AND peer.rank <> peer.peer
 GROUP BY peer.bin"""

# Nothing can be done within a node first if each has one member only.
ACROSS_SQL = """\
WITH spread AS (
  SELECT member_range.comm, COUNT(DISTINCT rank.node) AS nodes, COUNT(*) AS members
    FROM member_range JOIN rank ON rank.rank BETWEEN low AND high AND (rank.rank - low) % stride = 0
   GROUP BY member_range.comm
  HAVING nodes > 1 AND members > nodes)
SELECT comm.family, op.name AS operation, key.bin, spread.nodes, spread.members,
       SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns
  FROM key_total AS part JOIN key ON key.id = part.key JOIN op ON op.id = key.op
       JOIN comm ON comm.id = key.comm JOIN spread ON spread.comm = key.comm
 WHERE comm.kind = 'intra' AND op.name IN ({names})
 GROUP BY comm.id, key.op, key.bin"""


@dataclass(frozen=True)
class Trial:
    """A variable with a value that is worth trying.

    Attributes
    ----------
    variable : str
        Its name in the MPI library.
    value : str
    environment : dict
        What to set in the environment.
    reason : str
        Why, with numbers of the profile.
    """

    variable: str
    value: str
    environment: dict[str, str]
    reason: str


class Run:
    """What the conditions need of a profile, read when it is first needed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        facts = meta.facts(connection)
        self.ranks = meta.number(facts, "ranks_collected")
        self.run_ns = meta.number(facts, "elapsed_ns") * self.ranks

    def _rows(self, sql: str) -> list[Row]:
        return [dict(row) for row in self._connection.execute(sql)]

    @cached_property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self._connection.execute("SELECT COUNT(DISTINCT node) FROM rank").fetchone()[0])

    @cached_property
    def settings(self) -> dict[str, set[str]]:
        """The values of each setting, in lower case."""
        found: dict[str, set[str]] = {}
        for row in self._rows("SELECT name, value FROM setting"):
            found.setdefault(str(row["name"]), set()).add(str(row["value"]).lower())
        return found

    @cached_property
    def messages(self) -> list[Row]:
        """Calls and time of point-to-point calls by size bin."""
        return self._rows(MESSAGES_SQL)

    @cached_property
    def ways(self) -> list[Row]:
        """Messages by size bin, and those within a node."""
        return self._rows(WAYS_SQL)

    def collectives(self, names: tuple[str, ...]) -> list[Row]:
        """Return the calls on communicators that span nodes; time_ns is without the waiting that is certain."""
        if self.nodes < 2:
            return []
        rows = self._rows(ACROSS_SQL.format(names=", ".join(map(quoted, names))))
        try:
            waits = read_waits(self._connection, (), names).waits if rows else []
        except CommlensError:  # the profile cannot have samples
            waits = []
        share = {(w.row["family"], w.row["operation"], w.row["bin"]): w.share.low or 0.0 for w in waits}
        for row in rows:
            waiting = share.get((row["family"], row["operation"], row["bin"]), 0.0)
            row["time_ns"] -= int(waiting * row["time_ns"])
        return rows

    def is_large(self, time_ns: int) -> bool:
        """Whether this time is LEAST_GAIN of the run time."""
        return self.run_ns > 0 and time_ns >= LEAST_GAIN * self.run_ns

    def share_within(self, low: int, high: int) -> float | None:
        """Return the share of the messages of these bins that stay within a node; None if unknown."""
        if self.nodes == 1:
            return 1.0
        if self.nodes >= self.ranks:
            return 0.0
        rows = [row for row in self.ways if low <= row["bin"] <= high]
        messages = sum(row["messages"] for row in rows)
        return sum(row["within"] for row in rows) / messages if messages > 0 else None


def p2p_near_limit(run: Run, switch: Switch) -> list[tuple[str, str]]:
    """Return the values that reach point-to-point calls beyond the limit, with reasons.

    A larger value is worth trying only if the sizes that it adds take enough time by themselves.
    """
    found = []
    limit, low = switch.above, switch.above.bit_length()
    for value in switch.values:
        high = int(value).bit_length() - 1
        rows = [row for row in run.messages if low <= row["bin"] <= high]
        time_ns, calls = sum(row["time_ns"] for row in rows), sum(row["calls"] for row in rows)
        if not run.is_large(time_ns) or calls < LEAST_CALLS * run.ranks or not _goes(run, switch, low, high):
            continue
        found.append(
            (
                value,
                f"{share_text(time_ns / run.run_ns)} of the run time is in point-to-point calls of "
                f"{size_text(limit, int(value) - 1)}, {average_text(calls / run.ranks)} per rank",
            )
        )
        limit, low = int(value), high + 1
    return found


def _goes(run: Run, switch: Switch, low: int, high: int) -> bool:
    """Whether most messages of these bins go the way that the variable concerns."""
    within = run.share_within(low, high)
    if switch.way == "any" or within is None:
        return switch.way == "any"
    return (within if switch.way == "node" else 1 - within) > MOSTLY


def collectives_across_nodes(run: Run, switch: Switch) -> list[tuple[str, str]]:
    """Return the values if collectives take enough time on communicators with several nodes and ranks on each."""
    rows = [
        row
        for row in run.collectives(switch.operations)
        if row["calls"] >= LEAST_CALLS * row["members"] and row["bin"] >= switch.above.bit_length()
    ]
    time_ns = sum(row["time_ns"] for row in rows)
    if not run.is_large(time_ns):
        return []
    names = ", ".join(sorted({row["operation"] for row in rows}))
    sizes = f" of {size_text(switch.above, None)}" if switch.above else ""
    reason = (
        f"{share_text(time_ns / run.run_ns)} of the run time is in {names}{sizes} on communicators of up to "
        f"{count_text(max(row['nodes'] for row in rows), 'node')}, without waiting as far as it was sampled"
    )
    return [(value, reason) for value in switch.values]


CONDITIONS: dict[str, Callable[[Run, Switch], list[tuple[str, str]]]] = {
    "p2p_near_limit": p2p_near_limit,
    "collectives_across_nodes": collectives_across_nodes,
    "smp_collectives": collectives_across_nodes,  # with large messages only: `above`
}
"""The conditions of spec/switches.toml: each returns values and reasons."""


def switches_of(library: str) -> list[Switch]:
    """Return the switches of the library that MPI_Get_library_version names.

    >>> [one.variable for one in switches_of("Open MPI v5.0.11")][:2]
    ['btl_sm_eager_limit', 'btl_tcp_eager_limit']
    >>> switches_of("MPI of tomorrow 1.0")
    []
    """
    found = library_of(library)
    if found is None:
        return []
    return [
        switch
        for switch in SWITCHES
        if LIBRARIES[switch.library] is found[0]
        and switch.since <= found[1]
        and (switch.before is None or found[1] < switch.before)
    ]


def _has_effect(run: Run, switch: Switch) -> bool:
    """Whether the settings of the run let the variable have an effect, and nobody has set it already."""
    if {switch.variable, switch.environment} & run.settings.keys():
        return False
    if not switch.only:
        return True
    name, wanted = switch.only
    values = run.settings.get(name) or run.settings.get(name.removeprefix("OMPI_MCA_"))
    return switch.assumed if values is None else values == {wanted}


def read_switches(connection: sqlite3.Connection, library: str) -> list[Trial]:
    """Return the variables that the profile gives a reason to try, in the order of spec/switches.toml.

    Parameters
    ----------
    library : str
        First line of the text of MPI_Get_library_version.
    """
    run = Run(connection)
    trials = []
    for switch in switches_of(library):
        if not _has_effect(run, switch):
            continue
        for value, why in CONDITIONS[switch.when](run, switch):
            default = f"{switch.default} {switch.unit}".rstrip()
            reason = f"{why}; {switch.meaning} (default: {default})"
            trials.append(Trial(switch.variable, value, {switch.environment: value}, reason))
    return trials
