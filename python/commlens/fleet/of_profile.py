# SPDX-License-Identifier: Apache-2.0
"""The queries by which a profile becomes rows of a dataset. Each works in full and in summary detail."""

from __future__ import annotations

WORLDS_SQL = "SELECT DISTINCT world FROM rank ORDER BY world LIMIT 64"
FIRST_COMM_SQL = "SELECT hash FROM comm WHERE kind = 'intra' AND parent IS NULL ORDER BY id LIMIT 1"

# Of summary detail: the totals of the whole run.
TOTALS_SQL = """
SELECT SUM(app_ns) AS app_ns, SUM(mpi_ns) AS mpi_ns, SUM(calls) AS calls FROM rank HAVING COUNT(*) > 0
UNION ALL
SELECT SUM(CASE counter WHEN 'app_ns' THEN sum END), SUM(CASE counter WHEN 'mpi_ns' THEN sum END),
       SUM(CASE counter WHEN 'calls' THEN sum END)
  FROM scope JOIN spread ON spread.scope = scope.id
 WHERE family IS NULL AND comm IS NULL AND region IS NULL AND op IS NULL AND bin IS NULL HAVING COUNT(*) > 0
"""

STATE_SQL = """
SELECT state FROM rank ORDER BY state = 'finalized', rank LIMIT 1
"""

# outside_ns: NULL if threads of a rank were in MPI at the same time, or if ranks ended at different times.
NODES_SQL = """
WITH waited AS (SELECT rank, SUM(last) AS last, SUM(late_ns) AS late_ns FROM waiting GROUP BY rank),
     job AS (SELECT COALESCE(MAX(threads), 1) <= 1 AND MIN(state = 'finalized') AS is_known FROM rank)
SELECT node, COUNT(*) AS ranks, SUM(app_ns) AS app_ns, SUM(mpi_ns) AS mpi_ns,
       CASE WHEN is_known THEN 1.0 * SUM(MAX(app_ns - mpi_ns, 0)) / COUNT(*) END AS outside_ns,
       COALESCE(SUM(last), 0) AS last, COALESCE(SUM(late_ns), 0) AS late_ns
  FROM job CROSS JOIN rank LEFT JOIN waited ON waited.rank = rank.rank
 GROUP BY node ORDER BY node
"""

FAMILIES_SQL = """
SELECT comm.family, MIN(comm.id) AS first, SUM(comm.communicators) AS communicators,
       MIN(comm.size + COALESCE(comm.remote_size, 0)) AS size_min,
       MAX(comm.size + COALESCE(comm.remote_size, 0)) AS size_max
  FROM comm GROUP BY comm.family
"""

COMMS_SQL = """
SELECT comm.id, comm.name, comm.kind, comm.parent, op.name AS creator, comm.callsite, comm.topology
  FROM comm LEFT JOIN op ON op.id = comm.creator
"""

# A quantile of n ranks is the time of the rank at place ceil(p n) in the order of their times.
OPERATIONS_SQL = """
WITH part AS (
       SELECT comm.family, key.op, key.bin, cell.rank, SUM(cell.calls) AS calls, SUM(cell.time_ns) AS time_ns,
              MAX(cell.time_max_ns) AS call_max_ns, SUM(cell.bytes_sent) AS bytes_sent,
              SUM(cell.bytes_received) AS bytes_received, SUM(cell.noncontiguous) AS noncontiguous
         FROM key JOIN comm ON comm.id = key.comm JOIN cell ON cell.key = key.id
        GROUP BY comm.family, key.op, key.bin, cell.rank),
     placed AS (
       SELECT *, COUNT(*) OVER (PARTITION BY family, op, bin) AS ranks,
              ROW_NUMBER() OVER (PARTITION BY family, op, bin ORDER BY time_ns) AS place
         FROM part)
SELECT family, op, bin, SUM(calls) AS calls, SUM(time_ns) AS time_ns, MAX(call_max_ns) AS call_max_ns, ranks,
       MIN(time_ns) AS rank_min_ns,
       MAX(CASE place WHEN (ranks + 3) / 4 THEN time_ns END) AS rank_p25_ns,
       MAX(CASE place WHEN (2 * ranks + 3) / 4 THEN time_ns END) AS rank_p50_ns,
       MAX(CASE place WHEN (3 * ranks + 3) / 4 THEN time_ns END) AS rank_p75_ns,
       MAX(time_ns) AS rank_max_ns,
       SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received, SUM(noncontiguous) AS noncontiguous
  FROM placed GROUP BY family, op, bin
"""

# Of summary detail: scopes of a family, procedure and size; if it has only one call site, the scope of that.
SUMMARY_OPERATIONS_SQL = """
WITH total AS (
       SELECT comm.family, key.op, key.bin, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
              MAX(part.time_max_ns) AS call_max_ns, SUM(part.bytes_sent) AS bytes_sent,
              SUM(part.bytes_received) AS bytes_received, SUM(part.noncontiguous) AS noncontiguous
         FROM key_total AS part JOIN key ON key.id = part.key JOIN comm ON comm.id = key.comm
        GROUP BY comm.family, key.op, key.bin),
     ranked AS (
       SELECT scope.family, scope.op, scope.bin, spread.*,
              ROW_NUMBER() OVER (PARTITION BY scope.family, scope.op, scope.bin
                                 ORDER BY scope.callsite IS NOT NULL, scope.id) AS choice
         FROM scope JOIN spread ON spread.scope = scope.id
        WHERE spread.counter = 'time_ns' AND scope.family IS NOT NULL AND scope.op IS NOT NULL
          AND scope.bin IS NOT NULL AND scope.region IS NULL)
SELECT total.family, total.op, total.bin, calls, time_ns, call_max_ns, COALESCE(ranks, 0) AS ranks,
       COALESCE(min, 0) AS rank_min_ns, COALESCE(p25, min, 0) AS rank_p25_ns, COALESCE(p50, min, 0) AS rank_p50_ns,
       COALESCE(p75, min, 0) AS rank_p75_ns, COALESCE(max, 0) AS rank_max_ns,
       bytes_sent, bytes_received, noncontiguous
  FROM total LEFT JOIN ranked ON ranked.family = total.family AND ranked.op = total.op AND ranked.bin = total.bin
   AND ranked.choice = 1
"""

SPLIT_SQL = "SELECT family, op, bin, time_ns, waiting_ns FROM split"

SITES_SQL = """
SELECT key.callsite, key.op, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
       SUM(part.bytes_sent) AS bytes_sent, SUM(part.bytes_received) AS bytes_received, COUNT(*) OVER () AS all_rows
  FROM key_total AS part JOIN key ON key.id = part.key
 GROUP BY key.callsite, key.op ORDER BY 4 DESC, 1, 2 LIMIT ?
"""

REGIONS_SQL = """
SELECT total.region, path, region.kind, total.ranks, total.calls, time_ns, mpi_ns, rank_max_ns,
       load_balance, communication_efficiency, parallel_efficiency
  FROM region_total AS total JOIN region_path ON region_path.region = total.region
       JOIN region ON region.id = total.region
"""

# Of the application's own messages each is counted by its sender and by its receiver.
PAIRS_SQL = """
SELECT source, destination, SUM(messages) AS messages, SUM(bytes) AS bytes
  FROM pair WHERE kind IN ('sent', 'put', 'get') AND source IS NOT NULL AND destination IS NOT NULL
 GROUP BY source, destination ORDER BY source, destination
"""

RANK_NODES_SQL = "SELECT rank, node FROM rank"

SETTINGS_SQL = "SELECT source, name, value, ranks FROM setting ORDER BY ranks DESC, source, name, value"
