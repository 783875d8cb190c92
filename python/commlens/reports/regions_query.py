# SPDX-License-Identifier: Apache-2.0
"""The statements for the code regions of a run, on all ranks or on some."""

from __future__ import annotations

from collections.abc import Sequence

from commlens.reports.query import Selection
from commlens.reports.silent import SILENT_RANKS_SQL
from commlens.selection.conditions import where

Ranges = tuple[tuple[int, int], ...]

# Of a region on the ranks that were in it; `place` numbers these, beginning with the slowest.
TOTALS = """COUNT(*) AS ranks, SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(exclusive_ns) AS exclusive_ns,
         SUM(mpi_ns) AS mpi_ns, MIN(time_ns) AS rank_min_ns, MAX(time_ns) AS rank_max_ns,
         MAX(CASE place WHEN 1 THEN rank END) AS slowest_rank,
         CASE COUNT(useful_ns) WHEN COUNT(*) THEN SUM(useful_ns) END AS useful_ns,
         CASE COUNT(useful_ns) WHEN COUNT(*) THEN MAX(useful_ns) END AS useful_max_ns"""

SHARES = """ranks, calls, still_open, time_ns,
       rank_min_ns, rank_max_ns, slowest_rank, (2 * time_ns + ranks) / (2 * ranks) AS rank_avg_ns,
       exclusive_ns, (2 * exclusive_ns + ranks) / (2 * ranks) AS exclusive_avg_ns,
       mpi_ns, 1.0 * mpi_ns / NULLIF(time_ns, 0) AS mpi_share,
       1.0 * rank_max_ns * ranks / NULLIF(time_ns, 0) AS imbalance,
       1.0 * useful_ns / ranks / NULLIF(rank_max_ns, 0) AS parallel_efficiency,
       1.0 * useful_ns / ranks / NULLIF(useful_max_ns, 0) AS load_balance,
       1.0 * useful_max_ns / NULLIF(rank_max_ns, 0) AS communication_efficiency,
       call_min_ns, call_max_ns"""

# The reference of all shares: the time of the whole program on the selected ranks.
ALL_TIME = "(SELECT NULLIF(SUM(app_ns), 0) FROM {rank})"
SUMMARY_ALL_TIME = """(SELECT NULLIF(sum, 0) FROM scope JOIN spread ON spread.scope = scope.id
                      WHERE family IS NULL AND comm IS NULL AND region IS NULL AND counter = 'app_ns')"""

# The whole program is region 0.  A profile of summary detail has statistics over all ranks instead of single ranks.
PLACES = f"""\
WITH total AS (
  SELECT region, {TOTALS}
    FROM (SELECT region_rank.*, ROW_NUMBER() OVER (PARTITION BY region ORDER BY time_ns DESC, rank) AS place
            FROM {{region_rank}})
   GROUP BY region)"""

SUMMARY_PLACES = """\
WITH total AS (
  SELECT region, MAX(spread.ranks) AS ranks, SUM(CASE counter WHEN 'calls' THEN sum ELSE 0 END) AS calls,
         SUM(CASE counter WHEN 'time_ns' THEN sum ELSE 0 END) AS time_ns,
         SUM(CASE counter WHEN 'exclusive_ns' THEN sum ELSE 0 END) AS exclusive_ns,
         SUM(CASE counter WHEN 'mpi_ns' THEN sum ELSE 0 END) AS mpi_ns,
         MAX(CASE counter WHEN 'time_ns' THEN min ELSE 0 END) AS rank_min_ns,
         MAX(CASE counter WHEN 'time_ns' THEN max ELSE 0 END) AS rank_max_ns,
         MAX(CASE counter WHEN 'time_ns' THEN max_rank END) AS slowest_rank,
         SUM(CASE counter WHEN 'outside_ns' THEN sum ELSE 0 END) AS useful_ns,
         MAX(CASE counter WHEN 'outside_ns' THEN max ELSE 0 END) AS useful_max_ns
    FROM scope JOIN spread ON spread.scope = scope.id WHERE region IS NOT NULL GROUP BY region
  UNION ALL
  SELECT 0, MAX(members), MAX(members), SUM(CASE counter WHEN 'app_ns' THEN sum END), NULL,
         SUM(CASE counter WHEN 'mpi_ns' THEN sum ELSE 0 END), MAX(CASE counter WHEN 'app_ns' THEN min END),
         MAX(CASE counter WHEN 'app_ns' THEN max END), MAX(CASE counter WHEN 'app_ns' THEN max_rank END),
         CASE WHEN {is_known} THEN SUM(CASE counter WHEN 'outside_ns' THEN sum ELSE 0 END) END,
         CASE WHEN {is_known} THEN MAX(CASE counter WHEN 'outside_ns' THEN max ELSE 0 END) END
    FROM scope LEFT JOIN spread ON spread.scope = scope.id WHERE family IS NULL AND comm IS NULL AND region IS NULL)""".format(
    is_known="MAX(CASE counter WHEN 'threads' THEN max ELSE 0 END) <= 1"
)

REGIONS = f"""
SELECT region.id AS region, region.parent, depth, path, region.name, region.kind,
       1.0 * time_ns / {{all_time}} AS share,
       {SHARES}
  FROM region_path CROSS JOIN region ON region.id = region_path.region
       {{join}} total ON total.region = region.id
       LEFT JOIN (SELECT region, SUM(open) AS still_open,
                         MIN(CASE WHEN calls > open THEN time_min_ns END) AS call_min_ns,
                         MAX(CASE WHEN calls > open THEN time_max_ns END) AS call_max_ns
                    FROM {{region_time}} GROUP BY region) AS single ON single.region = region.id
 ORDER BY time_ns DESC, region.id"""

# Of all calls in a region, also in regions within it.
COMMUNICATORS_SQL = """\
WITH RECURSIVE around(region, inner) AS (
  SELECT id, id FROM region
  UNION ALL
  SELECT region.parent, around.inner FROM around JOIN region ON region.id = around.region
   WHERE region.parent IS NOT NULL),
  used AS (
  SELECT region, {line} AS line, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
         SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received
    FROM {region_operation} JOIN comm ON comm.id = region_operation.comm
   GROUP BY region, {line}),
  total AS (
  SELECT around.region, used.line, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
         SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received
    FROM used CROSS JOIN around ON around.inner = used.region GROUP BY around.region, used.line)
SELECT region, total.line AS {line_name}, name AS communicator, user_name, communicators, calls, time_ns,
       1.0 * time_ns / NULLIF(SUM(time_ns) OVER (PARTITION BY region), 0) AS share,
       bytes_sent, bytes_received
  FROM total JOIN (SELECT {columns} FROM {table}) AS named ON named.line = total.line
 ORDER BY region, time_ns DESC, calls DESC, total.line"""

# The counters of a region, and of the iterations of a loop, whose `calls` is their number and of which none is open.
TIMES = {
    "region": "calls, open, time_ns, time_min_ns, time_max_ns, nested_ns, mpi_ns FROM {region_time}",
    "loop": "iterations, 0, time_ns, time_min_ns, time_max_ns, nested_ns, mpi_ns FROM {loop_time}",
}

PARTS_SQL = """\
WITH timed(what, region, execution, iteration, rank, calls, open, time_ns, time_min_ns, time_max_ns, nested_ns, mpi_ns) AS (
  {timed}),
  of_rank AS (
  SELECT what, region, {by}rank, SUM(calls) AS calls, SUM(open) AS still_open, SUM(time_ns) AS time_ns,
         SUM(time_ns - nested_ns) AS exclusive_ns, SUM(mpi_ns) AS mpi_ns,
         CASE WHEN rank NOT IN ({silent}) THEN MAX(SUM(time_ns - mpi_ns), 0) END AS useful_ns,
         MIN(CASE WHEN calls > open THEN time_min_ns END) AS call_min_ns,
         MAX(CASE WHEN calls > open THEN time_max_ns END) AS call_max_ns
    FROM timed GROUP BY what, region, {by}rank),
  total AS (
  SELECT what, {by}{totals},
         SUM(still_open) AS still_open, MIN(call_min_ns) AS call_min_ns, MAX(call_max_ns) AS call_max_ns, region
    FROM (SELECT of_rank.*, ROW_NUMBER() OVER (PARTITION BY what, {by}region ORDER BY time_ns DESC, rank) AS place
            FROM of_rank)
   GROUP BY what, {by}region)
SELECT total.region, path, what, {by}1.0 * time_ns / {all_time} AS share,
       {shares}
  FROM total JOIN region_path ON region_path.region = total.region
 ORDER BY total.region, what DESC{order}"""

HISTOGRAMS_SQL = """\
SELECT region, bin, CASE bin WHEN 0 THEN 0 ELSE 1 << (bin - 1) END AS time_low_ns, ~(-1 << bin) AS time_high_ns,
       SUM(iterations) AS iterations
  FROM {loop_bin} GROUP BY region, bin ORDER BY region, bin"""

# A sum is NULL if one of those that it adds up is: unknown after an overflow.  The last value is NULL unless it is the same on all ranks.  On a rank it is that of the last iteration of the last
# execution; iterations that are counted together (-1) follow the others.
METRICS_SQL = """\
WITH place AS (
  SELECT metric, region, {by}rank, SUM(count) AS count, CASE WHEN COUNT(sum) = COUNT(*) THEN SUM(sum) END AS sum,
         MIN(min) AS min, MAX(max) AS max, SUM(not_finite) AS not_finite
    FROM {metric_value} GROUP BY metric, region, {by}rank),
  ending AS (
  SELECT metric, region, {by}rank, last,
         MAX(execution * 4294967296 + CASE iteration WHEN -1 THEN 4294967295 ELSE iteration END) AS place
    FROM {metric_value} WHERE last IS NOT NULL GROUP BY metric, region, {by}rank)
SELECT place.metric, metric.name, metric.unit, place.region, path, {of_place}COUNT(*) AS ranks, SUM(count) AS count,
       CASE WHEN COUNT(sum) = COUNT(*) THEN SUM(sum) END AS sum, MIN(min) AS min, MAX(max) AS max,
       CASE WHEN MIN(last) = MAX(last) THEN MIN(last) END AS last, SUM(not_finite) AS not_finite
  FROM place JOIN metric ON metric.id = place.metric JOIN region_path ON region_path.region = place.region
       LEFT JOIN ending ON {same}
 GROUP BY place.region, {of_place}metric.name, metric.unit, place.metric
 ORDER BY place.region, {of_place}metric.name, metric.unit, place.metric"""

RANKS_SQL = """\
SELECT region_rank.region, path, rank, calls, time_ns, exclusive_ns, mpi_ns,
       1.0 * mpi_ns / NULLIF(time_ns, 0) AS mpi_share, useful_ns
  FROM {region_rank} JOIN region_path ON region_path.region = region_rank.region
 ORDER BY region_rank.region, time_ns DESC, rank"""

TAGS_SQL = "SELECT region, name, value FROM tag ORDER BY region, name, value"


def columns_of(by: Sequence[str], table: str = "") -> str:
    """Return columns to put in front of others.

    >>> columns_of(["execution", "iteration"], "place.")
    'place.execution, place.iteration, '
    """
    return "".join(f"{table}{column}, " for column in by)


# View region_rank, without the time outside MPI of ranks that left no time of death.
REGION_RANK = f"""\
SELECT region, rank, calls, time_ns, exclusive_ns, mpi_ns,
             CASE WHEN rank NOT IN ({SILENT_RANKS_SQL}) THEN useful_ns END AS useful_ns
        FROM region_rank{{chosen}}"""

# View region_operation without its columns op and bin, for some of the ranks.
OPERATIONS_OF_RANKS = """\
SELECT region, comm, SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(bytes_sent) AS bytes_sent,
             SUM(bytes_received) AS bytes_received
        FROM cell JOIN key ON key.id = cell.key{chosen}
       GROUP BY region, comm"""


def sources(ranks: Ranges) -> dict[str, str]:
    """Return what the statements read instead of each table and view, if they are to see these ranks only.

    >>> sources(())["loop_bin"]
    'loop_bin'
    """
    tables = (
        "rank",
        "region_rank",
        "region_time",
        "region_operation",
        "loop_time",
        "loop_bin",
        "metric_value",
    )
    chosen = where(Selection(ranks=ranks).rank_conditions("rank"))
    read = {table: f"(SELECT * FROM {table}{chosen}) AS {table}" if ranks else table for table in tables}
    read["region_rank"] = f"({REGION_RANK.format(chosen=chosen)}) AS region_rank"
    if ranks:
        read["region_operation"] = f"({OPERATIONS_OF_RANKS.format(chosen=chosen)}) AS region_operation"
    return read


def regions_sql(ranks: Ranges, *, is_summary: bool) -> str:
    """Return the statement for one row per region; with ranks, per region that one of them entered."""
    read = sources(ranks)
    all_time = SUMMARY_ALL_TIME if is_summary else ALL_TIME.format(**read)
    places = SUMMARY_PLACES if is_summary else PLACES.format(**read)
    return places + REGIONS.format(all_time=all_time, join="JOIN" if ranks else "LEFT JOIN", **read)


def communicators_sql(ranks: Ranges, *, fold: bool) -> str:
    """Return the statement for the communicators that are used in each region."""
    return COMMUNICATORS_SQL.format(
        line="comm.family" if fold else "comm.id",
        line_name="family" if fold else "comm",
        table="family" if fold else "comm",
        columns=f"{'family' if fold else 'id'} AS line, name, user_name, communicators",
        **sources(ranks),
    )


def parts_sql(ranks: Ranges, of: Sequence[str], by: Sequence[str] = ()) -> str:
    """Return the statement for the times of regions, of loop iterations, or both, separate or summed."""
    read = sources(ranks)
    timed = "\n  UNION ALL\n  ".join(
        f"SELECT '{what}', region, execution, iteration, rank, {TIMES[what].format(**read)}" for what in of
    )
    order = "".join(f", {column}" for column in by)
    all_time = ALL_TIME.format(**read)
    return PARTS_SQL.format(
        all_time=all_time,
        timed=timed,
        by=columns_of(by),
        totals=TOTALS,
        shares=SHARES,
        order=order,
        silent=SILENT_RANKS_SQL,
    )


def metrics_sql(ranks: Ranges, by: Sequence[str] = ()) -> str:
    """Return the statement for the metrics recorded in each region."""
    columns = ["metric", "region", *by, "rank"]
    return METRICS_SQL.format(
        by=columns_of(by),
        of_place=columns_of(by, "place."),
        same=" AND ".join(f"ending.{column} = place.{column}" for column in columns),
        **sources(ranks),
    )
