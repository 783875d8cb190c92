# SPDX-License-Identifier: Apache-2.0
"""The code regions of a run as a tree, with their times and contents.

`docs/reference/efficiency.md` explains the efficiencies.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.outputs import finite
from commlens.profile import meta
from commlens.profile.shape import has_table, version_of
from commlens.render.table import Column, Table
from commlens.render.tree import Tree, prefix_text
from commlens.render.units import count_text, name_text, share_text, time_text

Row = dict[str, Any]

BAR_CELLS, WIDEST_BAR = 10, 40
BLOCKS = "▁▂▃▄▅▆▇█"
COMMUNICATORS_NAMED = 3

NO_REGIONS = (
    "no code regions: the application marks them with commlens_begin() and commlens_end() of commlens.h, "
    "in C, C++, Fortran and Python"
)

NOT_IN_SUMMARIES = (
    "a profile of summary detail contains no executions, iterations or metrics of the application; "
    "COMMLENS_DETAIL=full keeps them"
)

COLUMNS = (
    Column("region", right=False),
    Column("calls"),
    Column("max/rank"),
    Column("slowest"),
    Column("avg/rank"),
    Column("min/rank", wide=5, drawing=True),
    Column("own/rank"),
    Column("MPI"),
    Column("share", wide=6, drawing=True),
    Column("", right=False, wide=4, drawing=True),
    Column("max/avg", wide=3),
    Column("PE"),
    Column("LB", wide=1),
    Column("CE", wide=2),
)

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

# The reference of all shares: the time of the whole program on all ranks.
ALL_TIME = "(SELECT NULLIF(SUM(app_ns), 0) FROM rank)"
SUMMARY_ALL_TIME = """(SELECT NULLIF(sum, 0) FROM scope JOIN spread ON spread.scope = scope.id
                      WHERE family IS NULL AND comm IS NULL AND region IS NULL AND counter = 'app_ns')"""

# The whole program is region 0.  A profile of summary detail has statistics over all ranks instead of single ranks.
PLACES = f"""\
WITH total AS (
  SELECT region, {TOTALS}
    FROM (SELECT region_rank.*, ROW_NUMBER() OVER (PARTITION BY region ORDER BY time_ns DESC, rank) AS place
            FROM region_rank)
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
         CASE WHEN {is_known} THEN SUM(CASE counter WHEN 'outside_ns' THEN sum END) END,
         CASE WHEN {is_known} THEN MAX(CASE counter WHEN 'outside_ns' THEN max END) END
    FROM scope LEFT JOIN spread ON spread.scope = scope.id WHERE family IS NULL AND comm IS NULL AND region IS NULL)""".format(
    is_known="MAX(CASE counter WHEN 'threads' THEN max ELSE 0 END) <= 1"
    " AND MAX(CASE counter WHEN 'outside_ns' THEN ranks END) = MAX(members)"
)

REGIONS = f"""
SELECT region.id AS region, region.parent, depth, path, region.name, region.kind,
       1.0 * time_ns / {{all_time}} AS share,
       {SHARES}
  FROM region_path CROSS JOIN region ON region.id = region_path.region
       LEFT JOIN total ON total.region = region.id
       LEFT JOIN (SELECT region, SUM(open) AS still_open,
                         MIN(CASE WHEN calls > open THEN time_min_ns END) AS call_min_ns,
                         MAX(CASE WHEN calls > open THEN time_max_ns END) AS call_max_ns
                    FROM region_time GROUP BY region) AS single ON single.region = region.id
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
    FROM region_operation JOIN comm ON comm.id = region_operation.comm
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
    "region": "calls, open, time_ns, time_min_ns, time_max_ns, nested_ns, mpi_ns FROM region_time",
    "loop": "iterations, 0, time_ns, time_min_ns, time_max_ns, nested_ns, mpi_ns FROM loop_time",
}

PARTS_SQL = """\
WITH timed(what, region, execution, iteration, rank, calls, open, time_ns, time_min_ns, time_max_ns, nested_ns, mpi_ns) AS (
  {timed}),
  of_rank AS (
  SELECT what, region, {by}rank, SUM(calls) AS calls, SUM(open) AS still_open, SUM(time_ns) AS time_ns,
         SUM(time_ns - nested_ns) AS exclusive_ns, SUM(mpi_ns) AS mpi_ns, SUM(time_ns - mpi_ns) AS useful_ns,
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
  FROM loop_bin GROUP BY region, bin ORDER BY region, bin"""

# The last value is NULL unless it is the same on all ranks.  On a rank it is that of the last iteration of the last
# execution; iterations that are counted together (-1) follow the others.
METRICS_SQL = """\
WITH place AS (
  SELECT metric, region, {by}rank, SUM(count) AS count, SUM(sum) AS sum, MIN(min) AS min, MAX(max) AS max,
         SUM(not_finite) AS not_finite
    FROM metric_value GROUP BY metric, region, {by}rank),
  ending AS (
  SELECT metric, region, {by}rank, last,
         MAX(execution * 4294967296 + CASE iteration WHEN -1 THEN 4294967295 ELSE iteration END) AS place
    FROM metric_value WHERE last IS NOT NULL GROUP BY metric, region, {by}rank)
SELECT place.metric, metric.name, metric.unit, place.region, path, {of_place}COUNT(*) AS ranks, SUM(count) AS count,
       SUM(sum) AS sum, MIN(min) AS min, MAX(max) AS max,
       CASE WHEN MIN(last) = MAX(last) THEN MIN(last) END AS last, SUM(not_finite) AS not_finite
  FROM place JOIN metric ON metric.id = place.metric JOIN region_path ON region_path.region = place.region
       LEFT JOIN ending ON {same}
 GROUP BY place.region, {of_place}metric.name, metric.unit, place.metric
 ORDER BY place.region, {of_place}metric.name, metric.unit, place.metric"""

RANKS_SQL = """\
SELECT region_rank.region, path, rank, calls, time_ns, exclusive_ns, mpi_ns,
       1.0 * mpi_ns / NULLIF(time_ns, 0) AS mpi_share, useful_ns
  FROM region_rank JOIN region_path ON region_path.region = region_rank.region
 ORDER BY region_rank.region, time_ns DESC, rank"""

TAGS_SQL = "SELECT region, name, value FROM tag ORDER BY region, name, value"


def columns_of(by: Sequence[str], table: str = "") -> str:
    """Return columns to put in front of others.

    >>> columns_of(["execution", "iteration"], "place.")
    'place.execution, place.iteration, '
    """
    return "".join(f"{table}{column}, " for column in by)


def regions_sql(*, is_summary: bool) -> str:
    """Return the statement for one row per region."""
    if is_summary:
        return SUMMARY_PLACES + REGIONS.format(all_time=SUMMARY_ALL_TIME)
    return PLACES + REGIONS.format(all_time=ALL_TIME)


def communicators_sql(*, fold: bool) -> str:
    """Return the statement for the communicators that are used in each region."""
    return COMMUNICATORS_SQL.format(
        line="comm.family" if fold else "comm.id",
        line_name="family" if fold else "comm",
        table="family" if fold else "comm",
        columns=f"{'family' if fold else 'id'} AS line, name, user_name, communicators",
    )


def parts_sql(of: Sequence[str], by: Sequence[str] = ()) -> str:
    """Return the statement for the times of regions, of loop iterations, or both, separate or summed."""
    timed = "\n  UNION ALL\n  ".join(
        f"SELECT '{what}', region, execution, iteration, rank, {TIMES[what]}" for what in of
    )
    order = "".join(f", {column}" for column in by)
    return PARTS_SQL.format(
        all_time=ALL_TIME, timed=timed, by=columns_of(by), totals=TOTALS, shares=SHARES, order=order
    )


def metrics_sql(by: Sequence[str] = ()) -> str:
    """Return the statement for the metrics recorded in each region."""
    columns = ["metric", "region", *by, "rank"]
    return METRICS_SQL.format(
        by=columns_of(by),
        of_place=columns_of(by, "place."),
        same=" AND ".join(f"ending.{column} = place.{column}" for column in columns),
    )


@dataclass
class Regions:
    """The data about the regions of a run, by region, and the statements that returned it.

    Attributes
    ----------
    by : tuple of str
        Dimensions within a region: execution, iteration.
    is_summary : bool
        Whether the profile has summary detail.
    found : dict of str to dict of int to list of dict
        Title of a statement -> region -> its rows.
    """

    by: tuple[str, ...]
    is_summary: bool = False
    rows: list[Row] = field(default_factory=list)
    found: dict[str, dict[int, list[Row]]] = field(default_factory=dict)
    statements: list[tuple[str, str]] = field(default_factory=list)
    columns: dict[str, list[str]] = field(default_factory=dict)

    def of(self, title: str, region: int) -> list[Row]:
        """Return the rows of a statement for a region."""
        return self.found.get(title, {}).get(region, [])

    def plain_rows(self, title: str) -> list[Row]:
        """Return the rows of a statement, as its SQL gives them."""
        if title == "regions":
            return self.rows
        return [row for rows in self.found[title].values() for row in rows]


def refuse_older(connection: sqlite3.Connection) -> None:
    """Refuse a profile that is older than regions."""
    if not has_table(connection, "region_time"):
        version = version_of(connection)
        raise CommlensError(
            f"this profile has schema version {version}: code regions need version 5 or later"
        )


def read_regions(
    connection: sqlite3.Connection, by: tuple[str, ...], *, fold: bool, all_ranks: bool = False
) -> Regions:
    """Read the regions of a profile; `by` are the dimensions within them."""
    refuse_older(connection)
    is_summary = meta.is_summary(connection)
    if is_summary and by:
        raise CommlensError(f"{' and '.join(by)}: {NOT_IN_SUMMARIES}")
    if is_summary and all_ranks:
        raise meta.no_single_ranks("--all-ranks")
    result = Regions(by, is_summary)
    statements = {
        "regions": regions_sql(is_summary=is_summary),
        "communicators": communicators_sql(fold=fold),
        "loops": parts_sql(["loop"]),
        "histograms": HISTOGRAMS_SQL,
        "metrics": metrics_sql(),
        "tags": TAGS_SQL,
    }
    if by:
        statements["parts"] = parts_sql(["region", *(["loop"] if "iteration" in by else [])], by)
        statements["metrics_of_parts"] = metrics_sql(by)
    if all_ranks:
        statements["ranks"] = RANKS_SQL
    for title, sql in statements.items():
        cursor = connection.execute(sql)
        result.columns[title] = [column[0] for column in cursor.description]
        rows = [dict(row) for row in cursor]
        if title == "regions":
            result.rows = rows
        else:
            result.found[title] = defaultdict(list)
            for row in rows:
                result.found[title][row["region"]].append(row)
    result.statements = list(statements.items())
    return result


def bar(share: float | None, own_share: float | None, cells: int) -> str:
    """Return a bar for a share of the whole; the region's own part is darker than that of nested regions.

    >>> bar(0.7, 0.2, 10), bar(0.3, None, 10)
    ('██░░░░░', '░░░')
    """
    whole, own = (round(cells * min(max(part or 0, 0), 1)) for part in (share, own_share))
    return "█" * min(own, whole) + "░" * max(whole - own, 0)


def histogram(rows: Sequence[Row]) -> str:
    """Return the histogram of iteration times; empty if all are in one bin.

    >>> histogram([{"bin": b, "time_low_ns": 1 << (b - 1), "time_high_ns": (1 << b) - 1, "iterations": n}
    ...            for b, n in ((11, 1), (12, 80), (14, 40))])
    '1.02 µs ▁█·▄ 16.4 µs'
    """
    if len(rows) < 2:
        return ""
    counts = {row["bin"]: row["iterations"] for row in rows}
    most = max(counts.values())
    steps = [-(-counts.get(bin, 0) * len(BLOCKS) // most) for bin in range(min(counts), max(counts) + 1)]
    line = "".join(BLOCKS[step - 1] if step else "·" for step in steps)
    return f"{time_text(rows[0]['time_low_ns'])} {line} {time_text(rows[-1]['time_high_ns'])}"


def value_text(value: float, unit: str) -> str:
    """Return a value of a metric; the unit 1 means no unit.

    >>> value_text(16384.0, "cells"), value_text(1 / 3, ""), value_text(0.5, "1")
    ('16384 cells', '0.333333', '0.5')
    """
    return f"{value:.6g} {'' if unit == '1' else unit}".rstrip()


def metric_text(row: Row) -> str:
    """Return the recorded values of a metric; without the sum if it overflows."""
    count, unit = row["count"], name_text(row["unit"])
    text = f"{name_text(row['name'])}: {count:,} value{'' if count == 1 else 's'}"
    if count > 1:
        text += f" from {value_text(row['min'], '')} to {value_text(row['max'], unit)}"
        text += f", sum {value_text(row['sum'], unit)}" if finite(row["sum"]) is not None else ""
        text += f", last {value_text(row['last'], unit)}" if row["last"] is not None else ""
    elif count:
        text += f", {value_text(row['sum'], unit)}"
    return text + (f", {row['not_finite']:,} not finite" if row["not_finite"] else "")


def loop_text(row: Row, bins: Sequence[Row]) -> str:
    """Return the text about the iterations of a loop."""
    count = row["calls"]
    text = f"{count:,} iteration{'' if count == 1 else 's'}: {time_text(row['time_ns'])} of all ranks"
    text += f", {time_text(row['call_min_ns'])} to {time_text(row['call_max_ns'])}" if count > 1 else ""
    drawn = histogram(bins)
    return text + (f"; {drawn}" if drawn else "")


def used_text(rows: Sequence[Row]) -> str:
    """Return the communicators with the most time in a region."""
    named = [
        f"{row['communicator']}{' x' + str(row['communicators']) if row['communicators'] > 1 else ''}"
        + (f' "{row["user_name"]}"' if row["user_name"] else "")
        + f" {share_text(row['share'])}"
        for row in rows[:COMMUNICATORS_NAMED]
    ]
    if len(rows) > COMMUNICATORS_NAMED:
        named.append(f"{len(rows) - COMMUNICATORS_NAMED} more")
    return f"MPI in {', '.join(named)}" if named else ""


def part_text(row: Row, by: Sequence[str]) -> str:
    """Return the name of an execution or iteration.

    >>> part_text({"execution": 1, "iteration": 7}, ("execution", "iteration"))
    'execution 1, iteration 7'
    >>> part_text({"iteration": -1}, ("iteration",))
    'other iterations'
    """
    return ", ".join("other iterations" if row[column] < 0 else f"{column} {row[column]}" for column in by)


def numbers(row: Row, whole_ns: int, cells: int) -> list[str]:
    """Return the cells from `calls` on; `whole_ns` is the time of the whole program, `cells` the length of the bar."""
    own = None if row["exclusive_ns"] is None or not whole_ns else row["exclusive_ns"] / whole_ns
    share = row["time_ns"] / whole_ns if whole_ns and row["time_ns"] else None
    return [
        "-" if row["calls"] is None else f"{row['calls']:,}",
        time_text(row["rank_max_ns"]),
        "-" if row["slowest_rank"] is None else str(row["slowest_rank"]),
        time_text(row["rank_avg_ns"]),
        time_text(row["rank_min_ns"]),
        time_text(row["exclusive_avg_ns"]),
        share_text(row["mpi_share"]),
        share_text(share),
        bar(share, own, cells),
        "-" if row["imbalance"] is None else f"{row['imbalance']:.2f}",
        share_text(row["parallel_efficiency"]),
        share_text(row["load_balance"]),
        share_text(row["communication_efficiency"]),
    ]


def rank_numbers(row: Row, region: Row) -> list[str]:
    """Return the cells of a single rank from `calls` on; max/avg is its time divided by the average."""
    average = row["time_ns"] * region["ranks"] / region["time_ns"] if region["time_ns"] else None
    return [
        f"{row['calls']:,}",
        time_text(row["time_ns"]),
        "",
        "",
        "",
        time_text(row["exclusive_ns"]),
        share_text(row["mpi_share"]),
        "",
        "",
        "-" if average is None else f"{average:.2f}",
        "",
        "",
        "",
    ]


def longest(rows: Sequence[Row], top: int | None) -> list[Row]:
    """Return the rows with the most time, in their original order."""
    if top is None or len(rows) <= top:
        return list(rows)
    kept = {id(row) for row in sorted(rows, key=lambda row: -row["time_ns"])[:top]}
    return [row for row in rows if id(row) in kept]


def draw(regions: Regions, top: int | None, depth: int | None, width: int | None) -> Table:
    """Return the tree of regions as a table for a width: a terminal with room for all columns gets longer bars."""
    table = tree_table(regions, top, depth, BAR_CELLS)
    if width is None or len(table.titles(width)) < len(COLUMNS):
        return table
    return tree_table(regions, top, depth, min(BAR_CELLS + width - table.width(width), WIDEST_BAR))


def tree_table(regions: Regions, top: int | None, depth: int | None, cells: int) -> Table:
    """Return the tree of regions as a table: a row for each, with lines for its contents below."""
    table = Table(COLUMNS)
    shown = [row for row in regions.rows if depth is None or row["depth"] <= depth]
    hidden: dict[int, int] = defaultdict(int)
    for left in regions.rows:
        if depth is not None and left["depth"] == depth + 1:
            hidden[left["parent"]] += 1
    whole = next(row for row in regions.rows if row["region"] == 0)
    whole_ns, all_ranks = whole["time_ns"] or 0, whole["ranks"]
    for prefix, below, row in Tree(shown, id="region", parent="parent").walk(top):
        prefix, below = prefix_text(prefix), prefix_text(below)
        if isinstance(row, int):
            table.say(f"and {row:,} more", prefix)
            continue
        id = row["region"]
        name = name_text(row["name"]) or ("whole program" if id == 0 else f"({row['kind']})")
        table.add([prefix + name, *numbers(row, whole_ns, cells)], "" if prefix else "bold")
        add_ranks(table, regions.of("ranks", id), row, below, top)
        for text in notes(regions, row, all_ranks, top):
            table.say(text, below)
        for what in ("region", "loop"):
            parts = [part for part in regions.of("parts", id) if part["what"] == what]
            kept = longest(parts, top) if len(parts) > 1 else []
            for part in kept:
                name = part_text(part, told_apart(parts, regions.by))
                table.add([below + name, *numbers(part, whole_ns, cells)])
                for text in some([metric_text(metric) for metric in part_metrics(regions, row, part)], top):
                    table.say(text, below + "  ")
            if 0 < len(kept) < len(parts):
                table.say(f"and {len(parts) - len(kept):,} more", below)
        if hidden[id]:
            table.say(f"{hidden[id]:,} nested region{'' if hidden[id] == 1 else 's'}", below)
    return table


def add_ranks(table: Table, ranks: Sequence[Row], region: Row, below: str, top: int | None) -> None:
    """Add a line per rank, the slowest first; if `top` limits them, the last one is still the fastest."""
    most = len(ranks) if top is None else max(top, 2)
    left = len(ranks) - most
    for i, row in enumerate(ranks):
        if left <= 0 or i < most - 1 or i == len(ranks) - 1:
            table.add([f"{below}rank {row['rank']}", *rank_numbers(row, region)])
        elif i == most - 1:
            table.say(f"and {count_text(left, 'more rank')}", below)


def legend(titles: Sequence[str]) -> str:
    """Return the explanation of the columns with these titles.

    >>> legend(["slowest", "PE", "LB"])
    'slowest: the rank with max/rank; PE: parallel efficiency; LB: load balance; averages are over the ranks that entered the region'
    """
    words = {
        "slowest": "slowest: the rank with max/rank",
        "own/rank": "own: time outside nested regions",
        "share": "share: of the whole program",
        "PE": "PE: parallel efficiency",
        "LB": "LB: load balance",
        "CE": "CE: communication efficiency",
    }
    if "CE" in titles:  # columns are dropped from the right
        words["PE"] += f" = {words.pop('LB')} x {words.pop('CE')}"
    said = [text for title, text in words.items() if title in titles]
    return "; ".join([*said, "averages are over the ranks that entered the region"])


def told_apart(parts: Sequence[Row], by: Sequence[str]) -> list[str]:
    """Return the dimensions that distinguish these rows: without the iteration if none is in a loop."""
    return [column for column in by if any(part[column] >= 0 for part in parts)]


def part_metrics(regions: Regions, region: Row, part: Row) -> list[Row]:
    """Return the metrics recorded in one execution or iteration; for a loop, in one of its iterations."""
    if (part["what"] == "loop") != (region["kind"] == "loop" and "iteration" in regions.by):
        return []
    return [
        row
        for row in regions.of("metrics_of_parts", region["region"])
        if all(row[column] == part[column] for column in regions.by)
    ]


def some(texts: Sequence[str], top: int | None) -> list[str]:
    """Return the first texts, and the number of further ones.

    >>> some(["a", "b", "c"], 1), some(["a", "b"], 2)
    (['a', 'and 2 more'], ['a', 'b'])
    """
    if top is None or len(texts) <= top:
        return list(texts)
    return [*texts[:top], f"and {len(texts) - top:,} more"]


def notes(regions: Regions, row: Row, all_ranks: int | None, top: int | None) -> list[str]:
    """Return the notes on a region beside its times."""
    id = row["region"]
    texts = []
    about = []
    if row["ranks"] and all_ranks and row["ranks"] < all_ranks:
        about.append(f"on {row['ranks']:,} of {all_ranks:,} ranks")
    if row["still_open"]:
        about.append(f"{row['still_open']:,} not ended")
    tags: dict[str, list[str]] = defaultdict(list)
    for tag in regions.of("tags", id):
        tags[tag["name"]].append(name_text(tag["value"]))
    about += some(
        [f"{name_text(name)}: {' | '.join(some(values, top))}" for name, values in tags.items()], top
    )
    texts.append(", ".join(about))
    texts.append(used_text(regions.of("communicators", id)))
    texts += [loop_text(loop, regions.of("histograms", id)) for loop in regions.of("loops", id)]
    texts += some([metric_text(metric) for metric in regions.of("metrics", id)], top)
    return [text for text in texts if text]
