# SPDX-License-Identifier: Apache-2.0
"""Call paths that a run did not record to their begin: they have as many frames as asked for, or no room was left."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from commlens.profile import meta
from commlens.render.units import share_text
from commlens.symbols.paths import Callers, PathTree, read_callers

MOST_FRAMES = 64
MOST_NODES = 1 << 16
"""Call sites and callers that a process stores; it counts further paths at their call site alone."""

TIMES_SQL = """\
SELECT key.callsite, SUM(key_total.time_ns) FROM key JOIN key_total ON key_total.key = key.id
 WHERE key.callsite <> 0 GROUP BY key.callsite"""


def ends(callers: Callers, sites: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return the outermost call site of each path, and the number of call sites on it.

    >>> ends({1: None, 2: 1, 3: 2}, [3]), ends({1: 2, 2: 1}, [1])
    ({1: (1, 1), 2: (1, 2), 3: (1, 3)}, {2: (2, 1), 1: (2, 2)})
    """
    found: dict[int, tuple[int, int]] = {}
    for site in sites:
        path: dict[int, None] = {}
        each: int | None = site
        while each and each in callers and each not in found and each not in path:
            path[each] = None
            each = callers[each]
        outer, above = found.get(each or 0, (0, 0))
        for frames, inner in enumerate(reversed(path), above + 1):
            outer = outer or inner
            found[inner] = (outer, frames)
    return found


def warnings(connection: sqlite3.Connection, tree: PathTree) -> list[str]:
    """Return a line about paths with as many frames as the run asked for, and one about a full table of paths."""
    value = meta.option(connection, "COMMLENS_FRAMES") or ""
    most = min(int(value), MOST_FRAMES) if meta.NUMBER.fullmatch(value) else 0
    if most < 2:
        return []
    callers = read_callers(connection)
    times = dict(map(tuple, connection.execute(TIMES_SQL)))
    known = ends(callers, times)
    total = sum(times.values()) or 1
    cut = {
        site
        for site, (outer, frames) in known.items()
        if site in times and frames >= most and not tree.is_begin(outer)
    }
    full = meta.facts(connection).get("full_paths")
    # Recovered profiles, and those of libraries that did not write the fact, have at least as many rows if there was no room.
    is_full = int(full) > 0 if full else len(callers) >= MOST_NODES
    alone = {site for site in times if is_full and known.get(site, (0, 0))[1] == 1} - cut
    found = []
    if cut:
        share = share_text(sum(times[site] for site in cut) / total)
        found.append(
            f"{count(cut, times)} with {share} of the MPI time have {most} frames, as COMMLENS_FRAMES asks for: "
            "the functions around them are unknown"
        )
    if alone:
        share = share_text(sum(times[site] for site in alone) / total)
        found.append(
            f"{count(alone, times)} with {share} of the MPI time have no callers: "
            f"{'processes' if not full else '1 process' if full == '1' else f'{int(full):,} processes'} "
            f"had no room for more than {MOST_NODES:,} call sites and callers, and counted further paths at their call "
            "site alone"
        )
    return found


def count(some: set[int], all: dict[int, int]) -> str:
    """Return how many of the paths these are."""
    return f"{len(some):,} of {len(all):,} call paths"
