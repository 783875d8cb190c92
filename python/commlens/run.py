# SPDX-License-Identifier: Apache-2.0
"""The head of a report: what ran, where, how long, and how much of it was MPI."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from commlens.units import share_text, time_text

META_SQL = "SELECT key, value FROM meta ORDER BY key"

RANKS_SQL = """\
SELECT COUNT(*) AS ranks,
       MAX(app_ns) AS elapsed_ns, SUM(app_ns) AS app_ns,
       SUM(mpi_ns) AS mpi_ns,
       (2 * SUM(mpi_ns) + COUNT(*)) / (2 * COUNT(*)) AS mpi_avg_ns,
       MIN(mpi_ns) AS mpi_min_ns, (SELECT rank FROM rank ORDER BY mpi_ns, rank LIMIT 1) AS mpi_min_rank,
       MAX(mpi_ns) AS mpi_max_ns, (SELECT rank FROM rank ORDER BY mpi_ns DESC, rank LIMIT 1) AS mpi_max_rank,
       1.0 * SUM(mpi_ns) / NULLIF(SUM(app_ns), 0) AS mpi_share,
       -- time between MPI calls: how much of the largest the average is; unknown where threads overlap
       CASE WHEN MAX(threads) <= 1 AND MIN(app_ns - mpi_ns) >= 0
            THEN 1.0 * SUM(app_ns - mpi_ns) / COUNT(*) / NULLIF(MAX(app_ns - mpi_ns), 0) END AS balance,
       SUM(calls) AS calls, SUM(lost_calls) AS lost_calls, MAX(threads) AS threads,
       SUM(state <> 'finalized') AS unfinished,
       (SELECT GROUP_CONCAT(ranks || ' ' || state, ', ')
          FROM (SELECT state, COUNT(*) AS ranks FROM rank WHERE state <> 'finalized'
                 GROUP BY state ORDER BY COUNT(*) DESC, state)) AS ends
  FROM rank"""

NODES_SQL = "SELECT node, COUNT(*) AS ranks FROM rank GROUP BY node ORDER BY MIN(rank)"

OVERHEAD_SQL = """\
SELECT MAX(CASE what WHEN 'init' THEN ns END) AS init_ns,
       MAX(CASE what WHEN 'collect' THEN ns END) AS collect_ns,
       MAX(CASE what WHEN 'call' THEN ns END) AS call_ns,
       SUM(CASE what WHEN 'call' THEN 0 ELSE ns END) AS all_ns
  FROM overhead"""

# What the application can call; a profile from before there was this table has none.
IMPORTED_SQL = """\
SELECT SUM(state = 'measured' AND reason IS NULL) AS measured,
       MIN(CASE WHEN state = 'measured' AND reason IS NULL THEN procedure END) AS example,
       GROUP_CONCAT(CASE state WHEN 'unseen' THEN procedure END) AS unseen,
       COUNT(DISTINCT CASE state WHEN 'unseen' THEN reason END) AS reasons,
       MAX(CASE state WHEN 'unseen' THEN reason END) AS reason
  FROM procedure"""

STATEMENTS = (
    ("run: facts", META_SQL),
    ("run: ranks", RANKS_SQL),
    ("run: nodes", NODES_SQL),
    ("run: what commlens cost", OVERHEAD_SQL),
    ("run: what the application imports", IMPORTED_SQL),
)

NODES_NAMED = 4
UNSEEN_NAMED = 4


@dataclass(frozen=True)
class Run:
    """What a profile says about the whole run."""

    meta: dict[str, str]
    ranks: dict[str, Any]
    nodes: list[tuple[str, int]]
    overhead: dict[str, Any]
    imported: dict[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "meta": self.meta,
            "ranks": self.ranks,
            "nodes": dict(self.nodes),
            "overhead": self.overhead,
            "imported": self.imported,
        }

    def head(self) -> list[tuple[str, str]]:
        """Return the head of the report: name and text of each line."""
        meta, ranks = self.meta, self.ranks
        nodes = [
            f"{node} ({count})" if len(self.nodes) > 1 else node for node, count in self.nodes[:NODES_NAMED]
        ]
        if len(self.nodes) > NODES_NAMED:
            nodes.append(f"and {len(self.nodes) - NODES_NAMED} more")
        threads = meta.get("thread_level", "")
        mpi = [f"MPI {meta['mpi_standard']}"] if meta.get("mpi_standard") else []
        mpi += [f"threads {threads}"] if threads else []
        summed = ", all threads added up" if (ranks["threads"] or 1) > 1 else ""
        lines = [
            ("command", meta.get("command_line", "")),
            (
                "started",
                meta.get("start_time", "") + (f", job {meta['job_id']}" if meta.get("job_id") else ""),
            ),
            (
                "where",
                f"{_many(ranks['ranks'], 'rank')} on {_many(len(self.nodes), 'node')}: {', '.join(nodes)}",
            ),
            ("MPI", meta.get("mpi_library", "") + (f" ({', '.join(mpi)})" if mpi else "")),
            (
                "time",
                f"{time_text(ranks['elapsed_ns'])} from MPI_Init to {'the end' if ranks['unfinished'] else 'MPI_Finalize'}",
            ),
            (
                "in MPI",
                f"{share_text(ranks['mpi_share'])} of it{summed}, {_many(ranks['calls'] or 0, 'call')}; per rank "
                f"{time_text(ranks['mpi_avg_ns'])} on average, from {time_text(ranks['mpi_min_ns'])} "
                f"(rank {ranks['mpi_min_rank']}) to {time_text(ranks['mpi_max_ns'])} (rank {ranks['mpi_max_rank']})",
            ),
        ]
        if ranks["balance"] is not None:
            lines.append(
                (
                    "balance",
                    f"{share_text(ranks['balance'])}: time between MPI calls, average rank to busiest",
                )
            )
        cost = self.overhead
        if cost["all_ns"] is not None and ranks["app_ns"]:
            parts = [
                f"{time_text(cost[key])} {what}"
                for key, what in (
                    ("init_ns", "in MPI_Init"),
                    ("collect_ns", "in MPI_Finalize"),
                    ("call_ns", "a call"),
                )
                if cost[key] is not None
            ]
            share = share_text(cost["all_ns"] / ranks["app_ns"])
            lines.append(("commlens", f"{meta.get('commlens_version', '')} cost {share}: {', '.join(parts)}"))
        return [(name, text) for name, text in lines if text]

    def warnings(self) -> list[str]:
        """Return what a reader must know before trusting the numbers."""
        found = []
        wanted = self.meta.get("ranks", "")
        if wanted.isdigit() and int(wanted) != self.ranks["ranks"]:
            found.append(f"only {self.ranks['ranks']} of {wanted} ranks are in this profile")
        if self.ranks["unfinished"]:
            ranks = _many(self.ranks["unfinished"], "rank")
            found.append(f"{ranks} did not reach MPI_Finalize: {self.ranks['ends']}")
        if self.ranks["lost_calls"]:
            found.append(
                f"{_many(self.ranks['lost_calls'], 'call')} counted without communicator and operation"
            )
        return found + self.blind_spots()

    def blind_spots(self) -> list[str]:
        """Return what the numbers leave out because commlens could not see it, or why there are none."""
        found: list[str] = []
        imported = self.imported
        if imported is None:
            return found
        if not self.ranks["calls"]:
            measured = imported["measured"] or 0
            if measured:
                others = f" and {_many(measured - 1, 'other procedure')}" if measured > 1 else ""
                why = f"it can call {imported['example']}{others} and did not"
            else:
                why = "nothing that is loaded imports an MPI procedure that is measured"
            found.append(f"no MPI call was seen between MPI_Init and MPI_Finalize: {why}")
        unseen = sorted(imported["unseen"].split(",")) if imported["unseen"] else []
        if unseen:
            named = ", ".join(unseen[:UNSEEN_NAMED])
            if len(unseen) > UNSEEN_NAMED:
                named += f" and {len(unseen) - UNSEEN_NAMED} more"
            why = imported["reason"] if imported["reasons"] == 1 else "'commlens coverage' says why"
            found.append(f"calls of {named} are not in this profile: {why}")
        return found


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def read_run(connection: sqlite3.Connection) -> Run:
    """Read the facts about the run."""
    ranks = dict(connection.execute(RANKS_SQL).fetchone())
    overhead = dict(connection.execute(OVERHEAD_SQL).fetchone())
    tells = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'coverage'").fetchone()
    return Run(
        meta=dict(tuple(row) for row in connection.execute(META_SQL)),
        ranks=ranks,
        nodes=[(node, count) for node, count in connection.execute(NODES_SQL)],
        overhead=overhead,
        imported=dict(connection.execute(IMPORTED_SQL).fetchone()) if tells else None,
    )
