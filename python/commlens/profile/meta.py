# SPDX-License-Identifier: Apache-2.0
"""The facts about the run in table meta, which are texts: those that are numbers are numbers."""

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
    """Return a fact that is a number, 0 where it is not known; the check of a profile lets only digits through."""
    return int(meta.get(key) or 0)


def facts(connection: sqlite3.Connection) -> dict[str, str]:
    """Return what table meta has."""
    return dict(tuple(row) for row in connection.execute(META_SQL))


def is_summary(connection: sqlite3.Connection) -> bool:
    """Return whether a profile has what all ranks together say, and not what each says."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'detail'").fetchone()
    return bool(row) and row[0] == "summary"


def no_single_ranks(what: str) -> CommlensError:
    """Return why something that only the rows of single ranks can tell is refused in summary detail."""
    return CommlensError(
        f"{what} needs data of single ranks, but this profile has summary detail: "
        "query its table spread with 'commlens sql', or run with COMMLENS_DETAIL=full"
    )


def option(connection: sqlite3.Connection, name: str) -> str | None:
    """Return an option that was in force in the run, or None where the profile does not tell."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'options'").fetchone()
    options = dict(line.partition("=")[::2] for line in (row[0] if row else "").splitlines())
    return options.get(name)


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
    return ranks, [f"table meta: the value of {key} is invalid" for key in wrong]


def _replace(connection: sqlite3.Connection, sources: dict[str, str], wrong: Mapping[str, str]) -> None:
    if sources["meta"] != "temp.meta":
        connection.execute(temporary(RELATIONS["meta"].sql))
        connection.execute(f"INSERT OR IGNORE INTO temp.meta SELECT key, value FROM {sources['meta']}")
        sources["meta"] = "temp.meta"
    connection.executemany("INSERT OR REPLACE INTO temp.meta VALUES (?, ?)", wrong.items())
