# SPDX-License-Identifier: Apache-2.0
"""The correlation of many runs as text, for csv and for json."""

from __future__ import annotations

from typing import Any

from commlens.base.counts import count_text
from commlens.compare.coefficients import Coefficient
from commlens.compare.correlate import Association, Correlation, Row, middle
from commlens.compare.match import Node
from commlens.compare.read import UNFINISHED
from commlens.compare.text import bin_text
from commlens.profile import meta
from commlens.render.table import Column, Table
from commlens.render.units import path_text, time_text

SHOWN_PATHS = 3

COLUMNS = (
    Column("row", right=False),
    Column("Spearman"),
    Column("95 % interval", seldom=True),  # fewer than four runs have none
    Column("Pearson", wide=2),
    Column("95 % interval", wide=4, seldom=True),
    Column("per second", wide=1),
    Column("time", wide=3),
    Column("of the sum", wide=5),
    Column("p"),
    Column("claim", right=False, seldom=True),
)


def family_of(row: Row, result: Correlation) -> Node | None:
    """Return the family of a row."""
    return None if row.node is None else result.nodes[row.node]


def size_name(row: Row, result: Correlation) -> str:
    """Return the size of the communicators of a row; empty if the rows are not grouped by it."""
    if "comm-size" not in result.by or row.setting is not None:
        return ""
    size = row.key.comm_size
    return "no single communicator" if size is None else f"communicators of {count_text(size, 'rank')}"


def name_text(row: Row, result: Correlation) -> str:
    """Return the name of a row: operation, message size, communicators and region."""
    if row.setting is not None:
        return f"setting {row.setting}"
    key, family = row.key, family_of(row, result)
    parts = [key.operation or "", bin_text(key.bin) if key.bin is not None else ""]
    of = " ".join(part for part in (family.first.label if family else "", size_name(row, result)) if part)
    parts.append(f"on {of}" if key.operation and of else of)
    parts.append(f"in {path_text(key.region)}" if key.region else "")
    text = " ".join(part for part in parts if part)
    return text or ("outside all regions" if key.region is not None else "all operations")


def number_text(value: float | None) -> str:
    """Return a coefficient.

    >>> number_text(0.456), number_text(-1.0), number_text(None)
    ('+0.46', '-1.00', '')
    """
    return "" if value is None else f"{value:+.2f}"


def interval_text(found: Coefficient) -> str:
    """Return the interval of a coefficient."""
    return "" if found.low is None else f"{number_text(found.low)} to {number_text(found.high)}"


def p_text(p: float | None) -> str:
    """Return a p value.

    >>> p_text(0.0333), p_text(1e-12), p_text(1.0), p_text(None)
    ('0.033', '<0.0001', '1', '')
    """
    if p is None:
        return ""
    return "<0.0001" if p < 0.0001 else f"{p:.2g}"


def slope_text(row: Row) -> str:
    """Return the time in a row for each second that a run takes longer; empty for a setting."""
    if row.setting is not None:
        return ""
    slope = row.main.slope
    return ("-" if slope < 0 else "+") + time_text(round(abs(slope) * 1e9))


def value_text(row: Row) -> str:
    """Return the median of the values of a row."""
    return f"{middle(row):g}" if row.setting is not None else time_text(round(middle(row)))


def headline(result: Correlation) -> str:
    """Return the strongest significant relation as one sentence, or a sentence that there is none."""
    row = next((row for row in result.rows if row.claim), None)
    if row is None:
        return "no row correlates significantly with the run time"
    found = row.main.spearman
    family = family_of(row, result)
    origin = f" ({family.first.origin})" if family and family.first.origin else ""
    text = (
        f"{name_text(row, result)}{origin} {row.claim} with the run time: Spearman {number_text(found.value)} "
        f"({interval_text(found)})"
    )
    # The line of least squares may fall although the ranks rise, if one run is far from the others.
    if row.setting is not None or row.main.slope * found.value <= 0:
        return text
    whose = "its slowest rank" if row.slowest else "all ranks together"
    less = "less" if row.main.slope < 0 else "more"
    each = time_text(round(abs(row.main.slope) * 1e9))
    return f"{text}; in a run that takes 1 s longer {whose} spends {each} {less} there"


def unfinished(result: Correlation) -> list[str]:
    """Return the paths of the runs in which a rank did not call MPI_Finalize."""
    return [head.path for head in result.heads if meta.number(head.facts, UNFINISHED)]


def unfinished_text(result: Correlation) -> str:
    """Return a sentence about the runs of `unfinished`; empty if there are none."""
    paths = unfinished(result)
    if not paths:
        return ""
    end = "its run time ends" if len(paths) == 1 else "their run times end"
    more = f" and {len(paths) - SHOWN_PATHS:,} more" if len(paths) > SHOWN_PATHS else ""
    return (
        f"{len(paths):,} of {count_text(len(result.heads), 'run')} did not call MPI_Finalize on all ranks, "
        f"so {end} at the last sign of life: {', '.join(paths[:SHOWN_PATHS])}{more}"
    )


def left_out(result: Correlation) -> str:
    """Return a sentence about the rows that are not shown; empty if there are none."""
    parts = (
        [f"{count_text(result.constant, 'row')} with the same time in all runs"] if result.constant else []
    )
    parts += (
        [f"{count_text(result.small, 'row')} below 0.1 % of the MPI time in every run"]
        if result.small
        else []
    )
    return f"left out: {', '.join(parts)}" if parts else ""


def cells(row: Row, result: Correlation) -> list[str]:
    """Return the cells of a row after its name."""
    main = row.main
    claim = "" if row is result.whole else row.claim if result.can_claim else "?"
    return [
        number_text(main.spearman.value),
        interval_text(main.spearman),
        number_text(main.pearson.value),
        interval_text(main.pearson),
        slope_text(row),
        value_text(row),
        number_text(row.total.spearman.value) if row.total and row.slowest else "",
        p_text(main.spearman.q),
        claim,
    ]


def draw(result: Correlation, top: int | None) -> Table:
    """Return the table: the whole run, then the rows, strongest first."""
    table = Table(COLUMNS)
    if result.whole is not None:
        table.add(["all operations", *cells(result.whole, result)], "bold")
    for row in result.rows[:top]:
        colour = {"rises": "red", "falls": "green"}.get(row.claim, "")
        table.add([name_text(row, result), *cells(row, result)], colour)
        family = family_of(row, result)
        if family and family.first.origin:
            table.say(family.first.origin, "  ")
    if top is not None and len(result.rows) > top:
        table.say(f"and {count_text(len(result.rows) - top, 'more row')}")
    return table


def coefficients(name: str, found: Association | None) -> dict[str, Any]:
    """Return the coefficients of one time for csv and json."""
    values: dict[str, Any] = {}
    for kind in ("spearman", "pearson"):
        one = getattr(found, kind, None)
        values[f"{name}_{kind}"] = getattr(one, "value", None)
        values.update({f"{name}_{kind}_{part}": getattr(one, part, None) for part in Coefficient._fields[1:]})
    return {**values, f"{name}_per_second": found.slope if found else None}


def as_dict(row: Row, result: Correlation) -> dict[str, Any]:
    """Return a row for csv and json."""
    family, key = family_of(row, result), row.key
    return {
        "setting": row.setting,
        "family": family.first.label if family else None,
        "origin": family.first.origin if family else None,
        "comm_size": key.comm_size,
        "region": key.region,
        "operation": key.operation,
        "size_bin": key.bin,
        "median": middle(row),
        **coefficients("slowest", row.slowest),
        **coefficients("sum", row.total),
        "claim": row.claim,
    }


def csv_rows(result: Correlation) -> tuple[list[str], list[list[Any]]]:
    """Return titles and rows for csv."""
    names = ["setting", "family", "origin", "comm_size", "region", "operation", "size_bin", "median"]
    titles = [*names, *coefficients("slowest", None), *coefficients("sum", None), "claim"]
    return titles, [[as_dict(row, result)[title] for title in titles] for row in result.rows]


def document(result: Correlation) -> dict[str, Any]:
    """Return the correlation for json, with the values of each run."""
    return {
        "profiles": [head.path for head in result.heads],
        "elapsed_ns": [head.elapsed_ns for head in result.heads],
        "strongest": headline(result),
        "statistics": result.statement(),
        "by": list(result.by),
        "unfinished": unfinished(result),
        "left_out": {"constant": result.constant, "small": result.small},
        "rows": [
            {
                **as_dict(row, result),
                "slowest": row.slowest.values if row.slowest else None,
                "sum": row.total.values if row.total else None,
            }
            for row in result.rows
        ],
    }
