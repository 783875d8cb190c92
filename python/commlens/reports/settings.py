# SPDX-License-Identifier: Apache-2.0
"""How a job was set up: labels, and settings that differ between ranks."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from commlens.base.counts import count_text
from commlens.profile.shape import has_table

SETTINGS_SQL = """\
SELECT source, name, value, ranks FROM setting ORDER BY source <> 'label', source, name, ranks DESC, value"""

MOST_DIFFERENCES, MOST_VALUES = 3, 3
"""Settings that differ between ranks in the header of a report, and values of each; table setting has all."""


class Setting(NamedTuple):
    """A row of table setting: where it comes from, its name and value, and the number of processes that had it."""

    source: str
    name: str
    value: str
    ranks: int


def read_settings(connection: sqlite3.Connection) -> list[Setting]:
    """Return all settings, labels first; empty for profiles that have none."""
    if not has_table(connection, "setting"):
        return []
    return [Setting(*row) for row in connection.execute(SETTINGS_SQL)]


def labels_text(settings: Sequence[Setting]) -> str:
    """Return the labels as COMMLENS_LABEL has them.

    >>> labels_text([Setting("label", "alg", "ring", 4), Setting("environment", "OMP_NUM_THREADS", "2", 4)])
    'alg=ring'
    """
    return " ".join(dict.fromkeys(f"{s.name}={s.value}" for s in settings if s.source == "label"))


def differences_text(settings: Sequence[Setting], ranks: int) -> str:
    """Return the settings that not all of `ranks` processes have with the same value; empty if there are none.

    >>> two = [Setting("environment", "OMP_NUM_THREADS", "4", 3), Setting("environment", "OMP_NUM_THREADS", "2", 1)]
    >>> differences_text(two, 4)
    'OMP_NUM_THREADS is 4 on 3 ranks, 2 on 1 rank'
    >>> differences_text([Setting("label", "a", "", 1)], 2), differences_text([Setting("label", "a", "", 2)], 2)
    ("a is '' on 1 rank, not set on 1 rank", '')
    """
    by_name: dict[tuple[str, str], list[Setting]] = {}
    for setting in settings:
        by_name.setdefault((setting.source, setting.name), []).append(setting)
    found = []
    for (_, name), values in by_name.items():
        left = ranks - sum(setting.ranks for setting in values)
        if len(values) == 1 and left <= 0:
            continue
        parts = [f"{s.value or repr('')} on {count_text(s.ranks, 'rank')}" for s in values[:MOST_VALUES]]
        if len(values) > MOST_VALUES:
            parts.append(count_text(len(values) - MOST_VALUES, "other value"))
        parts += [f"not set on {count_text(left, 'rank')}"] if left > 0 else []
        found.append(f"{name} is {', '.join(parts)}")
    more = len(found) - MOST_DIFFERENCES
    return "; ".join(
        [*found[:MOST_DIFFERENCES], *([f"and {count_text(more, 'setting')} more"] if more > 0 else [])]
    )
