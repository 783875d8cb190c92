# SPDX-License-Identifier: Apache-2.0
"""A comparison of runs for the page: its sentences, and all rows by column."""

from __future__ import annotations

import math
from typing import Any

from commlens.compare.model import Comparison, Row, as_dict
from commlens.compare.text import headline, name_of_row, outlier_lines, setup_lines, verdict
from commlens.page.facts import safe


def row_of(row: Row, comparison: Comparison) -> dict[str, Any]:
    """Return a row as `commlens compare --format json` has it, with its name, its claim and what it adds to the time."""
    found = {
        "name": name_of_row(row),
        "claim": verdict(row, comparison),
        "added_ns": row.added_ns,
        **as_dict(row),
    }
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else safe(value)
        for name, value in found.items()
    }


def of_page(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison for the facts of a page; the rows of the whole run come first."""
    rows = [row_of(row, comparison) for row in (comparison.elapsed, comparison.whole, *comparison.rows)]
    return {
        "a": [safe(run.path) for run in comparison.sides[0]],
        "b": [safe(run.path) for run in comparison.sides[1]],
        "headline": safe(headline(comparison)),
        "statement": safe(comparison.statement()),
        "setup": [safe(line) for line in setup_lines(comparison)],
        "outliers": [safe(line) for line in outlier_lines(comparison)],
        "rows": {name: [row[name] for row in rows] for name in rows[0]},
    }
