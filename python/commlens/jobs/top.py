# SPDX-License-Identifier: Apache-2.0
"""Shows the activity of running jobs between two samples."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from commlens.jobs.arenas import Job
from commlens.render.table import Column, Table
from commlens.render.units import bytes_text, share_text, time_text

ROWS = 20

COLUMNS = (
    Column("communicator", right=False),
    Column("operation", right=False),
    Column("time/rank"),
    Column("share"),
    Column("calls/s"),
    Column("sent/s"),
    Column("received/s", wide=1),
    Column("ranks in it"),
)

# A cell includes the time so far of a call that has not returned. Otherwise a waiting job would look idle.
TOTALS_SQL = """\
WITH now AS (
  SELECT key.comm, key.op, SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(bytes_sent) AS sent,
         SUM(bytes_received) AS received, 0 AS inside
    FROM cell JOIN key ON key.id = cell.key GROUP BY key.comm, key.op
  UNION ALL
  SELECT comm, op, 0, 0, 0, 0, COUNT(DISTINCT rank) FROM position WHERE inside GROUP BY comm, op)
SELECT family.name AS comm, op.name AS op, SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(sent) AS sent,
       SUM(received) AS received, SUM(inside) AS inside
  FROM now JOIN comm ON comm.id = now.comm JOIN family ON family.family = comm.family JOIN op ON op.id = now.op
 GROUP BY family.name, op.name"""

RANKS_SQL = "SELECT COUNT(*) AS ranks, SUM(app_ns) AS app_ns, MAX(app_ns) AS elapsed_ns FROM rank"


@dataclass
class Totals:
    """All calls of one operation on one family of communicators."""

    calls: int = 0
    time_ns: int = 0
    sent: int = 0
    received: int = 0
    inside: int = 0


@dataclass
class Look:
    """The state of a job at one sample.

    Attributes
    ----------
    ranks : int
        Ranks that could be read.
    app_ns, elapsed_ns : int
        Time since MPI_Init: the sum over all ranks, and the longest of one rank.
    totals : dict
        (communicator, operation) -> totals.
    """

    ranks: int = 0
    app_ns: int = 0
    elapsed_ns: int = 0
    totals: dict[tuple[str, str], Totals] = field(default_factory=dict)


def look_at(connection: sqlite3.Connection) -> Look:
    """Read the profile of a running job."""
    ranks = connection.execute(RANKS_SQL).fetchone()
    look = Look(ranks["ranks"], ranks["app_ns"], ranks["elapsed_ns"])
    for row in connection.execute(TOTALS_SQL):
        look.totals[row["comm"], row["op"]] = Totals(
            row["calls"], row["time_ns"], row["sent"], row["received"], row["inside"]
        )
    return look


def between(before: Look, after: Look) -> Look:
    """Return the difference of two samples, with the ranks inside calls at the second; all of it if a rank has ended meanwhile.

    >>> a = Look(2, 100, 50, {("W0.0", "MPI_Send"): Totals(10, 30, 80, 0, 1)})
    >>> b = Look(2, 300, 150, {("W0.0", "MPI_Send"): Totals(15, 70, 120, 0, 0), ("W0.0", "MPI_Recv"): Totals(1, 2, 3, 4, 2)})
    >>> between(a, b).totals["W0.0", "MPI_Send"]
    Totals(calls=5, time_ns=40, sent=40, received=0, inside=0)
    >>> between(a, b).app_ns
    200
    >>> between(a, Look(1, 150, 150, {})).app_ns
    150
    """
    if after.ranks < before.ranks or after.app_ns < before.app_ns:
        return after
    totals = {}
    for key, now in after.totals.items():
        old = before.totals.get(key, Totals())
        # A call may return between reading its place and its cell.
        totals[key] = Totals(
            now.calls - old.calls, max(now.time_ns - old.time_ns, 0), now.sent - old.sent,
            now.received - old.received, now.inside,
        )  # fmt: skip
    return Look(after.ranks, after.app_ns - before.app_ns, after.elapsed_ns - before.elapsed_ns, totals)


def heading(job: Job, since: Look) -> str:
    """Return one line on a job: its title, its run time, and the share of MPI."""
    spent = sum(totals.time_ns for totals in since.totals.values())
    share = share_text(min(spent / since.app_ns, 1.0)) if since.app_ns > 0 else "-"
    return f"{job.title}: {share} of the last {time_text(since.elapsed_ns)} in MPI"


def draw(since: Look) -> Table:
    """Return the busiest rows as a table, by time."""
    table = Table(COLUMNS)
    seconds = since.elapsed_ns / 1e9
    if seconds <= 0 or not since.ranks:
        return table

    def rate(count: int) -> str:
        return f"{count / seconds:,.0f}"

    busy = sorted(since.totals.items(), key=lambda item: (-item[1].time_ns, item[0]))
    busy = [item for item in busy if item[1].time_ns or item[1].calls]
    for (comm, op), totals in busy[:ROWS]:
        table.add([
            comm, op, time_text(totals.time_ns // since.ranks), share_text(totals.time_ns / max(since.app_ns, 1)),
            rate(totals.calls), bytes_text(int(totals.sent / seconds)), bytes_text(int(totals.received / seconds)),
            str(totals.inside),
        ])  # fmt: skip
    if len(busy) > ROWS:
        table.say(f"and {len(busy) - ROWS} more")
    if not busy:
        table.say("no MPI call began or returned")
    return table
