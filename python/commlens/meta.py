# SPDX-License-Identifier: Apache-2.0
"""The facts about the run in table meta, which are texts: those that are numbers are numbers."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping

from commlens._schema import META_NUMBERS, RELATIONS
from commlens.facts import temporary

NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


def mend_meta(
    connection: sqlite3.Connection, sources: dict[str, str], most_ranks: int, keys_fit: Callable[[int], bool]
) -> tuple[int, list[str]]:
    """Put facts that make sense in place of those that do not; return the number of ranks, and what is to be said.

    How many ranks there are is what the distance of keys depends on, and many a loop: it is believed as far as the keys
    fit it, else the rows of table rank count.
    """
    sql = f"SELECT key, value FROM {sources['meta']}"
    facts = dict(connection.execute(sql).fetchall())
    wrong = {key: "" for key in META_NUMBERS if facts.get(key) and not NUMBER.fullmatch(facts[key])}
    (highest,) = connection.execute(f"SELECT MAX(rank) FROM {sources['rank']}").fetchone()
    rows = (highest if isinstance(highest, int) else 0) + 1
    claim = int(facts["ranks"]) if facts.get("ranks") and "ranks" not in wrong else 0
    is_likely = rows <= claim <= most_ranks and keys_fit(claim)
    ranks = claim if is_likely or (0 < claim <= most_ranks and not keys_fit(rows)) else rows
    if ranks != claim:
        wrong["ranks"] = str(ranks)
    if wrong:
        _replace(connection, sources, wrong)
    return ranks, [f"table meta: {key} makes no sense" for key in wrong]


def _replace(connection: sqlite3.Connection, sources: dict[str, str], wrong: Mapping[str, str]) -> None:
    if sources["meta"] != "temp.meta":
        connection.execute(temporary(RELATIONS["meta"].sql))
        connection.execute(f"INSERT OR IGNORE INTO temp.meta SELECT key, value FROM {sources['meta']}")
        sources["meta"] = "temp.meta"
    connection.executemany("INSERT OR REPLACE INTO temp.meta VALUES (?, ?)", wrong.items())
