# SPDX-License-Identifier: Apache-2.0
"""Collects what the page shows besides the counters: the head of the report, findings, names, and small tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from commlens.base.escape import Target, escape
from commlens.base.outputs import finite
from commlens.charts import palette
from commlens.findings._rules import RULES
from commlens.findings.find import read_findings, refusal
from commlens.matrix.facts import Facts as MatrixFacts
from commlens.matrix.facts import read_facts as read_matrix_facts
from commlens.matrix.patterns import Pattern
from commlens.matrix.query import Selection, read_matrix
from commlens.matrix.text import sayings
from commlens.matrix.topology import read_topology
from commlens.page.collectives import collectives
from commlens.page.paths import Paths
from commlens.page.tables import Folded, losses
from commlens.profile import meta
from commlens.profile.shape import has_table
from commlens.render.units import share_text
from commlens.reports.coverage import statement as coverage_sql
from commlens.reports.run import read_run
from commlens.reports.settings import SETTINGS_SQL
from commlens.reports.silent import SILENT_RANKS_SQL

# NULL for a region that a rank without a time of death has entered.
EFFICIENCIES = ",\n       ".join(
    f"CASE WHEN silent.region IS NULL THEN region_total.{name} END AS {name}"
    for name in ("load_balance", "communication_efficiency", "parallel_efficiency")
)

SHEETS: dict[str, tuple[str, str]] = {
    "ranks": (
        "rank",
        "SELECT rank, node, cpus, app_ns, mpi_ns, cpu_ns, preempted, calls, threads, state FROM rank ORDER BY rank",
    ),
    "comms": (
        "comm",
        """\
SELECT comm.id AS comm, comm.name AS communicator, comm.user_name, comm.kind, comm.family, comm.parent,
       comm.size + COALESCE(comm.remote_size, 0) AS size, comm.communicators, comm.topology,
       CASE WHEN comm.kind = 'intra' AND (comm.topology LIKE 'cart %' OR LENGTH(comm.members) <= 64)
            THEN comm.members END AS members
  FROM comm ORDER BY comm.id""",
    ),
    "families": (
        "comm",
        """\
SELECT family.family, family.name, family.user_name, family.kind, family.communicators, family.size_min,
       family.size_max, family.parent, family.creator, family.callsite
  FROM family ORDER BY family.family""",
    ),
    "ops": ("op", "SELECT id, name, class FROM op ORDER BY id"),
    "flows": ("flow", "SELECT id, name FROM flow ORDER BY id"),
    "regions": (
        "region_time",
        f"""\
SELECT region_path.region, region.parent, region.name, region_path.path, region.kind, region_total.ranks,
       region_total.calls, region_total.time_ns, region_total.exclusive_ns, region_total.mpi_ns,
       region_total.rank_min_ns, region_total.rank_max_ns,
       {EFFICIENCIES}
  FROM region_path JOIN region ON region.id = region_path.region
       LEFT JOIN region_total ON region_total.region = region_path.region
       LEFT JOIN (SELECT DISTINCT region FROM region_rank WHERE rank IN ({SILENT_RANKS_SQL})) AS silent
         ON silent.region = region_path.region
 ORDER BY region_path.region""",
    ),
    "loops": (
        "loop_bin",
        """\
SELECT region_path.path, loop_bin.region, loop_bin.bin, SUM(loop_bin.iterations) AS iterations
  FROM loop_bin JOIN region_path ON region_path.region = loop_bin.region
 GROUP BY loop_bin.region, loop_bin.bin ORDER BY loop_bin.region, loop_bin.bin""",
    ),
    "iterations": (
        "loop_time",
        """\
SELECT region_path.path, loop_time.region, loop_time.iteration, COUNT(DISTINCT loop_time.rank) AS ranks,
       SUM(loop_time.iterations) AS iterations, SUM(loop_time.time_ns) AS time_ns,
       MIN(loop_time.time_min_ns) AS least_ns, MAX(loop_time.time_max_ns) AS most_ns, SUM(loop_time.mpi_ns) AS mpi_ns
  FROM loop_time JOIN region_path ON region_path.region = loop_time.region
 WHERE loop_time.iteration >= 0
 GROUP BY loop_time.region, loop_time.iteration ORDER BY loop_time.region, loop_time.iteration""",
    ),
    "region_slices": (
        "region_slice",
        """\
SELECT region_slice.slot, region_slice.region, region_path.path, SUM(region_slice.calls) AS calls,
       SUM(region_slice.exclusive_ns) AS exclusive_ns
  FROM region_slice JOIN region_path ON region_path.region = region_slice.region
 GROUP BY region_slice.slot, region_slice.region ORDER BY region_slice.slot, region_slice.region""",
    ),
    "metrics": (
        "metric_value",
        """\
SELECT metric.name, metric.unit, region_path.path AS region, metric_value.iteration, SUM(metric_value.count) AS count,
       CASE WHEN COUNT(metric_value.sum) = COUNT(*) THEN SUM(metric_value.sum) END AS sum, MIN(metric_value.min) AS min, MAX(metric_value.max) AS max
  FROM metric_value JOIN metric ON metric.id = metric_value.metric
       JOIN region_path ON region_path.region = metric_value.region
 GROUP BY metric.id, metric_value.region, metric_value.iteration
 ORDER BY metric.id, metric_value.region, metric_value.iteration""",
    ),
    "overhead": (
        "overhead",
        """\
SELECT what, COUNT(*) AS ranks, SUM(ns) AS time_ns, MIN(ns) AS least_ns, MAX(ns) AS most_ns
  FROM overhead GROUP BY what ORDER BY what""",
    ),
    "coverage": ("coverage", coverage_sql(("unseen", "skipped", "absent"))),
    "settings": ("setting", SETTINGS_SQL),
}
"""The small tables of the page: the table of the profile that each needs, and its query."""


def safe(value: Any) -> Any:
    """Return a value for the page: a text without invisible characters, None for a number that JSON cannot represent."""
    if isinstance(value, float):
        return finite(value)
    return escape(value, Target.LINE) if isinstance(value, str) else value


def sheet(connection: sqlite3.Connection, table: str, sql: str) -> dict[str, Any]:
    """Return the rows of a small table by column, with its query; no rows if the profile lacks the table."""
    if not has_table(connection, table):
        return {"sql": sql, "columns": {}}
    cursor = connection.cursor()
    cursor.row_factory = None
    cursor.execute(sql)
    rows = cursor.fetchall()
    names = [column[0] for column in cursor.description]
    return {
        "sql": sql,
        "columns": {name: [safe(row[i]) for row in rows] for i, name in enumerate(names)},
    }


def findings(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the findings with their evidence, or the reason why no rule applies."""
    found = [
        {
            "text": safe(finding.text),
            "share": finding.share,
            "rule": finding.rule.name,
            "title": finding.rule.title,
            "view": finding.rule.show,
            "advice": finding.rule.advice,
            "evidence": finding.evidence(),
            "op": safe(finding.values.get("op")),
            "family": safe(finding.values.get("family") or finding.values.get("communicator")),
            "region": safe(finding.values.get("region")),
        }
        for finding in read_findings(connection)
    ]
    return {"refused": refusal(connection), "rules": len(RULES), "found": found}


def patterns(facts: MatrixFacts) -> Iterator[tuple[str, str]]:
    """Yield name and pattern of the communicators with the most bytes, if there are several."""
    for row in facts.of_comms if len(facts.of_comms) > 1 else ():
        share = share_text(row["share"])
        yield row["label"], f"{Pattern(**row['pattern']).text()}; {share} of the bytes, {row['size']:,} ranks"


def traffic(connection: sqlite3.Connection) -> dict[str, list[tuple[str, str]]]:
    """Return what `commlens matrix` says below its picture, by kind of traffic: pattern, locality, symmetry, partners."""
    if not has_table(connection, "peer") or meta.is_summary(connection):
        return {}
    found = {}
    for kind in ("p2p", "one-sided", "collective", "internal"):
        matrix = read_matrix(connection, Selection(kind))
        if not len(matrix.pairs):
            continue
        nodes = read_topology((), matrix.nodes.values())
        facts = read_matrix_facts(connection, matrix, "bytes", "rank", nodes, 0, whole=False)
        found[kind] = [(label, safe(text)) for label, text in (*sayings(facts), *patterns(facts))]
    return found


def read_facts(
    connection: sqlite3.Connection, tables: Mapping[str, Folded], paths: Paths, budget: int
) -> dict[str, Any]:
    """Return the head of the page's data; every text in it is safe to show."""
    run = read_run(connection)
    return {
        "program": safe(run.meta.get("program") or "MPI application"),
        "version": safe(run.meta.get("commlens_version", "")),
        "is_summary": meta.is_summary(connection),
        "slice_ns": meta.number(run.meta, "slice_ns"),
        "extent": run.extent_text(),
        "run": {name: safe(value) for name, value in run.ranks.items()},
        "head": [(name, safe(text)) for name, text in run.head()],
        "warnings": [safe(text) for text in run.warnings()],
        "findings": findings(connection),
        "traffic": traffic(connection),
        "collectives": collectives(connection),
        "budget": budget,
        "folded": [*losses(dict(tables)), *paths.losses],
        "palette": [*palette.COLOURS, palette.OTHER],
        "sites": paths.sites,
        "path_names": paths.names,
        "sheets": {name: sheet(connection, table, sql) for name, (table, sql) in SHEETS.items()},
    }
