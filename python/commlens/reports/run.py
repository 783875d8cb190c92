# SPDX-License-Identifier: Apache-2.0
"""The header of a report: program, nodes, run time, and share of MPI."""

from __future__ import annotations

import math
import re
import sqlite3
from dataclasses import dataclass
from typing import Any

from commlens.base.counts import count_text
from commlens.profile.meta import META_SQL, facts, is_summary, number
from commlens.profile.shape import has_table
from commlens.render.units import path_text, share_text, time_text
from commlens.reports.settings import (
    SETTINGS_SQL,
    Setting,
    differences_text,
    labels_text,
    read_settings,
)
from commlens.reports.silent import SILENT_RANKS_SQL

RANKS_SQL = """\
WITH of_rank AS (SELECT *, MAX(app_ns - mpi_ns, 0) AS outside_ns FROM rank)
SELECT COUNT(*) AS ranks,
       MAX(app_ns) AS elapsed_ns, SUM(app_ns) AS app_ns,
       SUM(mpi_ns) AS mpi_ns,
       (2 * SUM(mpi_ns) + COUNT(*)) / (2 * COUNT(*)) AS mpi_avg_ns,
       MIN(mpi_ns) AS mpi_min_ns, (SELECT rank FROM rank ORDER BY mpi_ns, rank LIMIT 1) AS mpi_min_rank,
       MAX(mpi_ns) AS mpi_max_ns, (SELECT rank FROM rank ORDER BY mpi_ns DESC, rank LIMIT 1) AS mpi_max_rank,
       1.0 * SUM(mpi_ns) / NULLIF(SUM(app_ns), 0) AS mpi_share,
       -- time between MPI calls: how much of the largest the average is; unknown where threads overlap
       CASE WHEN MAX(threads) <= 1
            THEN 1.0 * SUM(outside_ns) / COUNT(*) / NULLIF(MAX(outside_ns), 0) END AS balance,
       CASE WHEN MAX(threads) <= 1
            THEN (SELECT rank FROM of_rank ORDER BY outside_ns, rank LIMIT 1) END AS outside_min_rank,
       CASE WHEN MAX(threads) <= 1
            THEN (SELECT rank FROM of_rank ORDER BY outside_ns DESC, rank LIMIT 1) END AS outside_max_rank,
       SUM(calls) AS calls, SUM(lost_calls) AS lost_calls, MAX(threads) AS threads,
       SUM(state <> 'finalized') AS unfinished,
       (SELECT GROUP_CONCAT(ranks || ' ' || state, ', ')
          FROM (SELECT state, COUNT(*) AS ranks FROM rank WHERE state <> 'finalized'
                 GROUP BY state ORDER BY COUNT(*) DESC, state)) AS ends
  FROM of_rank"""

SUMMARY_RANKS_SQL = """\
SELECT MAX(members) AS ranks,
       MAX(CASE counter WHEN 'app_ns' THEN max END) AS elapsed_ns,
       SUM(CASE counter WHEN 'app_ns' THEN sum END) AS app_ns,
       SUM(CASE counter WHEN 'mpi_ns' THEN sum ELSE 0 END) AS mpi_ns,
       (2 * SUM(CASE counter WHEN 'mpi_ns' THEN sum ELSE 0 END) + MAX(members)) / (2 * MAX(members)) AS mpi_avg_ns,
       MAX(CASE counter WHEN 'mpi_ns' THEN min ELSE 0 END) AS mpi_min_ns,
       MAX(CASE counter WHEN 'mpi_ns' THEN min_rank ELSE 0 END) AS mpi_min_rank,
       MAX(CASE counter WHEN 'mpi_ns' THEN max ELSE 0 END) AS mpi_max_ns,
       MAX(CASE counter WHEN 'mpi_ns' THEN max_rank ELSE 0 END) AS mpi_max_rank,
       1.0 * SUM(CASE counter WHEN 'mpi_ns' THEN sum ELSE 0 END)
           / NULLIF(SUM(CASE counter WHEN 'app_ns' THEN sum END), 0) AS mpi_share,
       CASE WHEN MAX(CASE counter WHEN 'threads' THEN max ELSE 0 END) <= 1
            THEN 1.0 * SUM(CASE counter WHEN 'outside_ns' THEN sum END) / MAX(members)
                 / NULLIF(MAX(CASE counter WHEN 'outside_ns' THEN max END), 0) END AS balance,
       CASE WHEN MAX(CASE counter WHEN 'threads' THEN max ELSE 0 END) <= 1
            THEN MAX(CASE counter WHEN 'outside_ns' THEN min_rank ELSE 0 END) END AS outside_min_rank,
       CASE WHEN MAX(CASE counter WHEN 'threads' THEN max ELSE 0 END) <= 1
            THEN MAX(CASE counter WHEN 'outside_ns' THEN max_rank ELSE 0 END) END AS outside_max_rank,
       SUM(CASE counter WHEN 'calls' THEN sum ELSE 0 END) AS calls,
       SUM(CASE counter WHEN 'lost_calls' THEN sum ELSE 0 END) AS lost_calls,
       MAX(CASE counter WHEN 'threads' THEN max ELSE 0 END) AS threads,
       0 AS unfinished, NULL AS ends
  FROM scope LEFT JOIN spread ON spread.scope = scope.id WHERE family IS NULL AND comm IS NULL AND region IS NULL"""

# finalize_ns: of the rank that is there longest.  A rank that gathers waits for others that still collect, and what each
# phase takes at most is more together; summary detail has no better value.
# all_ns: of all ranks; none leaves MPI_Finalize before that one.
SUMMARY_OVERHEAD_SQL = """\
SELECT MAX(CASE counter WHEN 'own_init_ns' THEN max END) AS init_ns,
       MAX(CASE counter WHEN 'own_collect_ns' THEN max END) AS collect_ns,
       (SELECT MAX(ns) FROM overhead WHERE what = 'gather') AS gather_ns,
       (SELECT MAX(ns) FROM overhead WHERE what = 'agree') AS agree_ns,
       (SELECT MAX(ns) FROM overhead WHERE what = 'write') AS write_ns,
       (SELECT MAX(ns) FROM overhead WHERE what = 'store') AS store_ns,
       MAX(CASE counter WHEN 'own_collect_ns' THEN max END)
         + (SELECT COALESCE(SUM(ns), 0) FROM (SELECT MAX(ns) AS ns FROM overhead WHERE what <> 'split' GROUP BY what)) AS finalize_ns,
       MAX(CASE counter WHEN 'own_call_ns' THEN max END) AS call_ns,
       SUM(CASE WHEN counter IN ('own_init_ns', 'own_calls_ns') THEN sum ELSE 0 END)
         + (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'ranks')
           * (MAX(CASE counter WHEN 'own_collect_ns' THEN max ELSE 0 END)
              + (SELECT COALESCE(SUM(ns), 0) FROM (SELECT MAX(ns) AS ns FROM overhead WHERE what <> 'split' GROUP BY what))) AS all_ns
  FROM scope JOIN spread ON spread.scope = scope.id WHERE family IS NULL AND comm IS NULL AND region IS NULL"""

NODES_SQL = "SELECT node, COUNT(*) AS ranks FROM rank GROUP BY node ORDER BY MIN(rank)"

OVERHEAD_SQL = """\
WITH finalize AS (SELECT MAX(ns) AS ns FROM (SELECT SUM(ns) AS ns FROM overhead
                   WHERE what IN ('collect', 'gather', 'agree', 'write', 'store') GROUP BY rank))
SELECT MAX(CASE what WHEN 'init' THEN ns END) AS init_ns,
       MAX(CASE what WHEN 'collect' THEN ns END) AS collect_ns,
       MAX(CASE what WHEN 'gather' THEN ns END) AS gather_ns,
       MAX(CASE what WHEN 'agree' THEN ns END) AS agree_ns,
       MAX(CASE what WHEN 'write' THEN ns END) AS write_ns,
       MAX(CASE what WHEN 'store' THEN ns END) AS store_ns,
       (SELECT ns FROM finalize) AS finalize_ns,
       MAX(CASE what WHEN 'call' THEN ns END) AS call_ns,
       SUM(CASE WHEN what IN ('init', 'calls') THEN ns ELSE 0 END)
         + COUNT(DISTINCT rank) * COALESCE((SELECT ns FROM finalize), 0) AS all_ns
  FROM overhead"""

# The procedures of the view `procedure`, without the sums of their calls, which take as long as the report's.
IMPORTED_SQL = """\
WITH listed AS (
SELECT procedure, state, reason FROM coverage GROUP BY procedure, state, reason
UNION ALL
SELECT name, 'measured', NULL FROM op
 WHERE id <> 0 AND id IN (SELECT op FROM key)
   AND name NOT IN (SELECT procedure FROM coverage WHERE state = 'measured'))
SELECT SUM(state = 'measured' AND reason IS NULL) AS measured,
       MIN(CASE WHEN state = 'measured' AND reason IS NULL THEN procedure END) AS example,
       GROUP_CONCAT(CASE state WHEN 'unseen' THEN procedure END) AS unseen,
       COUNT(DISTINCT CASE state WHEN 'unseen' THEN reason END) AS reasons,
       MAX(CASE state WHEN 'unseen' THEN reason END) AS reason
  FROM listed"""

# The region with the most exclusive time; a profile of summary detail has no times of regions.
REGIONS_SQL = """\
SELECT (SELECT COUNT(*) FROM region WHERE id <> 0) AS regions, path AS busiest, exclusive_ns
  FROM (SELECT 1) LEFT JOIN (
       SELECT region, SUM(time_ns - nested_ns) AS exclusive_ns
         FROM region_time GROUP BY region ORDER BY 2 DESC, region LIMIT 1) AS most
       LEFT JOIN region_path ON region_path.region = most.region"""

# app_ns excludes cleared and paused time.  Hence the maximum with 0.
UNDER_WAY_SQL = """\
SELECT COUNT(*) AS calls, MAX(MAX(app_ns - since_ns, 0)) AS longest_ns
  FROM position JOIN rank ON rank.rank = position.rank WHERE inside"""

SILENT_SQL = f"""\
SELECT COUNT(*) AS ranks, MIN(rank) AS rank, MAX(elapsed_ns - app_ns) AS longest_ns
  FROM rank, (SELECT MAX(app_ns) AS elapsed_ns FROM rank)
 WHERE rank IN ({SILENT_RANKS_SQL})"""

EVENTS_SQL = """\
SELECT event, unit, SUM(events) AS events, SUM(CASE WHEN operation IS NOT NULL THEN events ELSE 0 END) AS in_mpi,
       MIN(counted) AS least_counted
  FROM event GROUP BY event, unit ORDER BY event, unit"""

# squared: the standard error of a sum is the root of the sum of the squares.
UNTIMED_SQL = "SELECT SUM(calls) AS calls, SUM(1.0 * time_error_ns * time_error_ns) AS squared FROM untimed"
SUMMARY_UNTIMED_SQL = """\
SELECT SUM(sum) AS calls, NULL AS squared
  FROM scope JOIN spread ON spread.scope = scope.id WHERE scope.key IS NOT NULL AND counter = 'untimed'"""

# The time in MPI_Init is that of no cell: it is before the time from MPI_Init to MPI_Finalize.
INIT_SQL = """\
SELECT COUNT(*) AS ranks, SUM(init_ns) AS time_ns, (2 * SUM(init_ns) + COUNT(*)) / (2 * COUNT(*)) AS rank_avg_ns,
       MAX(init_ns) AS rank_max_ns FROM rank GROUP BY NULL HAVING SUM(init_ns) > 0"""
SUMMARY_INIT_SQL = """\
SELECT ranks, sum AS time_ns, (2 * sum + ranks) / (2 * ranks) AS rank_avg_ns, max AS rank_max_ns
  FROM scope JOIN spread ON spread.scope = scope.id
 WHERE family IS NULL AND comm IS NULL AND region IS NULL AND counter = 'init_ns'"""

SILENT = "run: ranks without a time of death"
RANKS, COST = "run: ranks", "run: what commlens cost"
FACTS, NODES, IMPORTED = "run: facts", "run: nodes", "run: what the application imports"
SETTINGS = "run: settings, labels first"
REGIONS, UNDER_WAY = "run: code regions", "run: calls that had not returned"
INIT, EVENTS = "run: time in MPI_Init", "run: hardware counters and software events"
UNTIMED = "run: calls that were not timed"
STATEMENTS = {
    FACTS: META_SQL,
    RANKS: RANKS_SQL,
    NODES: NODES_SQL,
    SETTINGS: SETTINGS_SQL,
    COST: OVERHEAD_SQL,
    IMPORTED: IMPORTED_SQL,
    REGIONS: REGIONS_SQL,
    UNDER_WAY: UNDER_WAY_SQL,
    SILENT: SILENT_SQL,
    INIT: INIT_SQL,
    EVENTS: EVENTS_SQL,
    UNTIMED: UNTIMED_SQL,
}
SUMMARY_STATEMENTS = {
    **STATEMENTS,
    RANKS: SUMMARY_RANKS_SQL,
    COST: SUMMARY_OVERHEAD_SQL,
    INIT: SUMMARY_INIT_SQL,
    UNTIMED: SUMMARY_UNTIMED_SQL,
}

PHASES = ("collect", "gather", "agree", "write", "store")

NODES_NAMED = 4
SHORT_NS = (
    10**9
)  # shorter runs: the fixed cost of commlens is a large share, which says nothing about longer runs
UNSEEN_NAMED = 4
INTERVAL = re.compile(r"[0-9.]+s-[0-9.]+s")  # the label that commlens-arena writes


@dataclass(frozen=True)
class Run:
    """The facts of a profile about the whole run."""

    meta: dict[str, str]
    ranks: dict[str, Any]
    nodes: list[tuple[str, int]]
    settings: list[Setting]
    overhead: dict[str, Any]
    imported: dict[str, Any] | None
    regions: dict[str, Any] | None
    under_way: dict[str, Any] | None
    silent: dict[str, Any]
    init: dict[str, Any] | None
    events: list[dict[str, Any]]
    untimed: dict[str, Any] | None
    statements: list[tuple[str, str]]

    def as_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "meta": self.meta,
            "ranks": self.ranks,
            "nodes": dict(self.nodes),
            "settings": [setting._asdict() for setting in self.settings],
            "overhead": self.overhead,
            "imported": self.imported,
            "regions": self.regions,
            "under_way": self.under_way,
            "silent": self.silent,
            "init": self.init,
            "events": self.events,
            "untimed": self.untimed,
        }

    def head(self) -> list[tuple[str, str]]:
        """Return the header of the report: name and text of each line."""
        meta, ranks = self.meta, self.ranks
        threads = meta.get("thread_level", "")
        mpi = [f"MPI {meta['mpi_standard']}"] if meta.get("mpi_standard") else []
        mpi += [f"threads {threads}"] if threads else []
        summed = ", all threads added up" if (ranks["threads"] or 1) > 1 else ""
        lines = [
            ("command", meta.get("command_line", "")),
            ("labels", labels_text(self.settings)),
            (
                "started",
                meta.get("start_time", "") + (f", job {meta['job_id']}" if meta.get("job_id") else ""),
            ),
            (
                "where",
                f"{count_text(ranks['ranks'] or 0, 'rank')} on {self.nodes_text()}",
            ),
            ("MPI", meta.get("mpi_library", "") + (f" ({', '.join(mpi)})" if mpi else "")),
            (
                "time",
                f"{time_text(ranks['elapsed_ns'])} {self.extent_text()}",
            ),
            (
                "in MPI",
                f"{share_text(ranks['mpi_share'])} of it{summed}, {count_text(ranks['calls'] or 0, 'call')}; per rank "
                f"{time_text(ranks['mpi_avg_ns'])} on average, from {time_text(ranks['mpi_min_ns'])} "
                f"(rank {ranks['mpi_min_rank']}) to {time_text(ranks['mpi_max_ns'])} (rank {ranks['mpi_max_rank']})",
            ),
        ]
        lines.append(("estimated", self.estimated_text()))
        differences = differences_text(self.settings, number(meta, "ranks_collected") or 0)
        if differences:
            lines.append(("settings", differences))
        if ranks["balance"] is not None:
            lines.append(("load balance", self.balance_text()))
        if self.regions is not None and self.regions["regions"]:
            lines.append(("regions", self.regions_text()))
        if self.events:
            lines.append(("counters", self.events_text()))
        if self.overhead["all_ns"] is not None and ranks["app_ns"]:
            lines.append(("commlens", self.cost_text()))
            finalize = finalize_phases(self.overhead)
            if finalize:
                said = ", ".join(f"{phase} {time_text(ns)}" for phase, ns in finalize.items())
                lines.append(("finalize", f"{said}, after the last rank arrived"))
        return [(name, text) for name, text in lines if text]

    @property
    def is_interval(self) -> bool:
        """Whether the profile has what was counted between two snapshots (docs/guide/history.md)."""
        return any(
            s.source == "label" and s.name == "snapshot" and INTERVAL.fullmatch(s.value)
            for s in self.settings
        )

    def extent_text(self) -> str:
        """Return from when to when the ranks were counted."""
        if self.is_interval:
            return "from snapshot to snapshot"
        return f"from MPI_Init to {'the last sign of life' if self.ranks['unfinished'] else 'MPI_Finalize'}"

    def estimated_text(self) -> str:
        """Return how many calls were not timed, and what that means for the time in MPI; nothing if all were."""
        untimed = self.untimed
        if untimed is None or not untimed["calls"]:
            return ""
        text = f"the time of {count_text(untimed['calls'], 'call')} that cannot wait, from a random part that was timed"
        if untimed["squared"] is None:
            return text
        error = math.sqrt(untimed["squared"])
        share = f", {share_text(error / self.ranks['mpi_ns'])} of it" if self.ranks["mpi_ns"] else ""
        return f"{text}; standard error of the time in MPI: {time_text(round(error))}{share}"

    def balance_text(self) -> str:
        """Return the load balance, with the ranks that spent the most and the least time outside MPI."""
        busiest, idlest = self.ranks["outside_max_rank"], self.ranks["outside_min_rank"]
        ends = f" (busiest: rank {busiest}, idlest: rank {idlest})" if busiest != idlest else ""
        return f"{share_text(self.ranks['balance'])}: average / maximum time outside MPI{ends}"

    def cost_text(self) -> str:
        """Return what commlens cost: as a share of the run, or of a short run as a time."""
        cost, ranks = self.overhead, self.ranks
        parts = [
            f"{time_text(ns)} {what}"
            for ns, what in (
                (cost["init_ns"], "in MPI_Init"),
                (cost["finalize_ns"], "in MPI_Finalize"),
                (cost["call_ns"], "per call"),
            )
            if ns is not None
        ]
        of_run, end = share_text(cost["all_ns"] / ranks["app_ns"]), ""
        if ranks["elapsed_ns"] < SHORT_NS:
            each = time_text(round(cost["all_ns"] / ranks["ranks"]))
            of_run = f"{each} per rank in a run of {time_text(ranks['elapsed_ns'])}"
            end = "; only the cost of calls grows with the run"
        return f"{self.meta.get('commlens_version', '')} cost {of_run}: {', '.join(parts)}{end}"

    def regions_text(self) -> str:
        """Return the number of code regions, and the one with the most exclusive time."""
        regions = self.regions or {}
        text = f"{regions['regions']:,}"
        if regions["busiest"] is not None and self.ranks["app_ns"]:
            share = share_text(regions["exclusive_ns"] / self.ranks["app_ns"])
            text += f", most time in {path_text(regions['busiest'])} ({share})"
        return f"{text}; 'commlens regions' shows them"

    def events_text(self) -> str:
        """Return how many events were counted, and how many of them in MPI."""
        parts = []
        for row in self.events:
            if row["events"] is None:
                parts.append(f"{row['event']} unknown")
                continue
            number = time_text(round(row["events"])) if row["unit"] == "ns" else f"{row['events']:,.0f}"
            share = f" ({share_text(row['in_mpi'] / row['events'])} in MPI)" if row["events"] else ""
            is_part = row["least_counted"] is not None and row["least_counted"] < 1
            parts.append(f"{row['event']} {'about ' if is_part else ''}{number}{share}")
        return f"{', '.join(parts)}; 'commlens metrics --counters' shows them"

    def nodes_text(self) -> str:
        """Return the number of nodes, and the first of their names if the profile has them."""
        if not self.nodes:
            return count_text(number(self.meta, "nodes"), "node")
        named = [
            f"{node} ({count})" if len(self.nodes) > 1 else node for node, count in self.nodes[:NODES_NAMED]
        ]
        if len(self.nodes) > NODES_NAMED:
            named.append(f"and {len(self.nodes) - NODES_NAMED} more")
        return f"{count_text(len(self.nodes), 'node')}: {', '.join(named)}"

    def warnings(self) -> list[str]:
        """Return warnings about missing or unreliable data."""
        found = []
        wanted = number(self.meta, "ranks")
        if wanted and wanted != self.ranks["ranks"]:
            found.append(f"only {self.ranks['ranks'] or 0} of {wanted} ranks are in this profile")
        if self.ranks["unfinished"]:
            ranks = count_text(self.ranks["unfinished"], "rank")
            found.append(f"{ranks} did not reach MPI_Finalize: {self.ranks['ends']}")
        if self.under_way and self.under_way["calls"]:
            calls, longest = (
                count_text(self.under_way["calls"], "MPI call"),
                time_text(self.under_way["longest_ns"]),
            )
            is_counted = self.meta.get("open_calls") == "counted"
            found.append(
                f"{calls} had not returned, the longest after {longest}: "
                + ("this time counts as in MPI" if is_counted else "their time counts as outside MPI")
            )
        if self.silent["ranks"]:
            found.append(
                f"{count_text(self.silent['ranks'], 'rank')} left no time of death, such as rank {self.silent['rank']}: counted "
                f"up to the last sign of life, up to {time_text(self.silent['longest_ns'])} before that of the job; "
                "load balance is not known"
            )
        if self.ranks["lost_calls"]:
            found.append(
                f"{count_text(self.ranks['lost_calls'], 'call')} counted without communicator and operation"
            )
        return found + self.blind_spots()

    def blind_spots(self) -> list[str]:
        """Return the calls that commlens could not measure, or the reason why there are none at all."""
        found: list[str] = []
        imported = self.imported
        if imported is None:
            return found
        is_in_call = self.under_way is not None and self.under_way["calls"] > 0
        if not self.ranks["calls"] and not is_in_call and self.is_interval:
            found.append("no MPI call returned between the two snapshots")
        elif not self.ranks["calls"] and not is_in_call:
            measured = imported["measured"] or 0
            if measured:
                others = f" and {count_text(measured - 1, 'other procedure')}" if measured > 1 else ""
                why = f"the application can call {imported['example']}{others}, but did not"
            else:
                why = "no loaded object imports an MPI procedure that commlens measures"
            found.append(f"commlens saw no MPI call between MPI_Init and MPI_Finalize: {why}")
        unseen = sorted(imported["unseen"].split(",")) if imported["unseen"] else []
        if unseen:
            named = ", ".join(unseen[:UNSEEN_NAMED])
            if len(unseen) > UNSEEN_NAMED:
                named += f" and {len(unseen) - UNSEEN_NAMED} more"
            why = imported["reason"] if imported["reasons"] == 1 else "'commlens coverage' shows the reasons"
            found.append(f"calls of {named} are not in this profile: {why}")
        return found


def finalize_phases(cost: dict[str, Any]) -> dict[str, int]:
    """Return the phases of MPI_Finalize after the last rank arrived, in ns, each of the slowest rank.

    Empty if the profile lacks them: it was recovered, or has an older schema.
    """
    if cost["store_ns"] is None or cost["collect_ns"] is None:
        return {}
    return {phase: cost[f"{phase}_ns"] or 0 for phase in PHASES}


def read_run(connection: sqlite3.Connection) -> Run:
    """Read the facts about the run."""
    statements = SUMMARY_STATEMENTS if is_summary(connection) else STATEMENTS
    ranks = dict(connection.execute(statements[RANKS]).fetchone())
    overhead = dict(connection.execute(statements[COST]).fetchone())

    silent = dict(connection.execute(SILENT_SQL).fetchone())
    if silent["ranks"]:
        ranks.update(balance=None, outside_min_rank=None, outside_max_rank=None)

    init = connection.execute(statements[INIT]).fetchone()

    def row_of(table: str, sql: str) -> dict[str, Any] | None:
        return dict(connection.execute(sql).fetchone()) if has_table(connection, table) else None

    return Run(
        meta=facts(connection),
        ranks=ranks,
        nodes=[(node, count) for node, count in connection.execute(NODES_SQL)],
        settings=read_settings(connection),
        overhead=overhead,
        imported=row_of("coverage", IMPORTED_SQL),
        regions=row_of("region_time", REGIONS_SQL),
        under_way=row_of("position", UNDER_WAY_SQL),
        silent=silent,
        init=dict(init) if init is not None else None,
        events=[dict(row) for row in connection.execute(EVENTS_SQL)]
        if has_table(connection, "event_count")
        else [],
        untimed=row_of("spread" if is_summary(connection) else "untimed", statements[UNTIMED]),
        statements=list(statements.items()),
    )
