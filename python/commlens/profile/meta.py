# SPDX-License-Identifier: Apache-2.0
"""Reads the facts about the run from table meta, and converts numbers."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping

from commlens.base.errors import CommlensError
from commlens.profile._schema import META_NUMBERS, RELATIONS
from commlens.profile.facts import temporary

META_SQL = "SELECT key, value FROM meta ORDER BY key"
NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


def number(meta: Mapping[str, str], key: str) -> int:
    """Return a fact as a number, 0 if unknown; the check of the profile has accepted only digits."""
    return int(meta.get(key) or 0)


def facts(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the facts of table meta."""
    return dict(tuple(row) for row in connection.execute(META_SQL))


def is_summary(connection: sqlite3.Connection) -> bool:
    """Return whether a profile has summary detail: statistics over all ranks instead of rows per rank."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'detail'").fetchone()
    return bool(row) and row[0] == "summary"


def no_single_ranks(what: str) -> CommlensError:
    """Return the reason for refusing, in summary detail, a request that needs the rows of single ranks."""
    return CommlensError(
        f"{what} needs data of single ranks, but this profile has summary detail: "
        "query its table spread with 'commlens sql', or run with COMMLENS_DETAIL=full"
    )


def slices_are_of_families(connection: sqlite3.Connection) -> bool:
    """Return whether the time slices add up the communicators of a family."""
    return facts(connection).get("slice_of") == "family"


def no_slices_of_communicators() -> CommlensError:
    """Return the reason for refusing --unfold if they do."""
    return CommlensError("--unfold: the time slices of this profile are those of families")


def option(connection: sqlite3.Connection, name: str) -> str | None:
    """Return the value of an option in the run, or None if the profile lacks it."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'options'").fetchone()
    options = dict(line.partition("=")[::2] for line in (row[0] if row else "").splitlines())
    return options.get(name)


def mend_meta(
    connection: sqlite3.Connection, sources: dict[str, str], most_ranks: int, keys_fit: Callable[[int], bool]
) -> tuple[int, list[str]]:
    """Replace invalid facts; return the number of ranks, and complaints.

    The number of ranks determines the distance of keys and the length of loops. It is accepted if the keys match it;
    otherwise the rows of table rank are counted.
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
    return ranks, [f"table meta: the value of {key} is invalid" for key in wrong]


def _replace(connection: sqlite3.Connection, sources: dict[str, str], wrong: Mapping[str, str]) -> None:
    if sources["meta"] != "temp.meta":
        connection.execute(temporary(RELATIONS["meta"].sql))
        connection.execute(f"INSERT OR IGNORE INTO temp.meta SELECT key, value FROM {sources['meta']}")
        sources["meta"] = "temp.meta"
    connection.executemany("INSERT OR REPLACE INTO temp.meta VALUES (?, ?)", wrong.items())
