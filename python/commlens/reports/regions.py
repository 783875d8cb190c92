# SPDX-License-Identifier: Apache-2.0
"""The code regions of a run as a tree, with their times and contents.

`docs/reference/efficiency.md` explains the efficiencies.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.base.outputs import finite
from commlens.profile import meta
from commlens.profile.shape import has_table, version_of
from commlens.render.table import Column, Table
from commlens.render.tree import Tree, prefix_text
from commlens.render.units import name_text, share_text, time_text
from commlens.reports.regions_query import (
    HISTOGRAMS_SQL,
    RANKS_SQL,
    TAGS_SQL,
    Ranges,
    communicators_sql,
    metrics_sql,
    parts_sql,
    regions_sql,
    sources,
)
from commlens.selection.names import check_ranks

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
    connection: sqlite3.Connection,
    by: tuple[str, ...],
    *,
    fold: bool,
    all_ranks: bool = False,
    ranks: Ranges = (),
) -> Regions:
    """Read the regions of a profile on these ranks, or on all; `by` are the dimensions within them."""
    refuse_older(connection)
    is_summary = meta.is_summary(connection)
    if is_summary and by:
        raise CommlensError(f"{' and '.join(by)}: {NOT_IN_SUMMARIES}")
    if is_summary and (all_ranks or ranks):
        raise meta.no_single_ranks("--all-ranks" if all_ranks else "--rank")
    check_ranks(connection, ranks)
    result = Regions(by, is_summary)
    statements = {
        "regions": regions_sql(ranks, is_summary=is_summary),
        "communicators": communicators_sql(ranks, fold=fold),
        "loops": parts_sql(ranks, ["loop"]),
        "histograms": HISTOGRAMS_SQL.format(**sources(ranks)),
        "metrics": metrics_sql(ranks),
        "tags": TAGS_SQL,
    }
    if by:
        statements["parts"] = parts_sql(ranks, ["region", *(["loop"] if "iteration" in by else [])], by)
        statements["metrics_of_parts"] = metrics_sql(ranks, by)
    if all_ranks:
        statements["ranks"] = RANKS_SQL.format(**sources(ranks))
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
    most = max(1, *counts.values())
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
    if count > 1 and row["min"] is not None and row["max"] is not None:
        text += f" from {value_text(row['min'], '')} to {value_text(row['max'], unit)}"
        text += f", sum {value_text(row['sum'], unit)}" if finite(row["sum"]) is not None else ""
        text += f", last {value_text(row['last'], unit)}" if row["last"] is not None else ""
    elif count == 1 and row["sum"] is not None:
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
        metrics = metrics_by_part(regions, id)
        for what in ("region", "loop"):
            parts = [part for part in regions.of("parts", id) if part["what"] == what]
            kept = longest(parts, top) if len(parts) > 1 else []
            for part in kept:
                name = part_text(part, told_apart(parts, regions.by))
                table.add([below + name, *numbers(part, whole_ns, cells)])
                told = part_metrics(regions, row, part, metrics)
                for text in some([metric_text(metric) for metric in told], top):
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


def metrics_by_part(regions: Regions, region: int) -> dict[tuple[int, ...], list[Row]]:
    """Return the metrics recorded in the executions or iterations of a region, by their numbers."""
    found: dict[tuple[int, ...], list[Row]] = defaultdict(list)
    for row in regions.of("metrics_of_parts", region):
        found[tuple(row[column] for column in regions.by)].append(row)
    return found


def part_metrics(
    regions: Regions, region: Row, part: Row, metrics: Mapping[tuple[int, ...], list[Row]]
) -> list[Row]:
    """Return the metrics recorded in one execution or iteration; for a loop, in one of its iterations."""
    if (part["what"] == "loop") != (region["kind"] == "loop" and "iteration" in regions.by):
        return []
    return metrics.get(tuple(part[column] for column in regions.by), [])


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
