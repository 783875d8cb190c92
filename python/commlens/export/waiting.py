# SPDX-License-Identifier: Apache-2.0
"""The estimated waiting in the operations of a call tree, by rank."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from commlens.export.keys import key_lists
from commlens.profile.shape import has_rows, has_table

NAME = "waiting"

LEAST_KNOWN = 0.5
"""Share of the time of an operation with samples from which on it has an estimate, as in `commlens report --waiting`."""

SEVERAL_SQL = """\
SELECT key.id
  FROM (SELECT {part} AS part, key.op, key.bin FROM key JOIN comm ON comm.id = key.comm
         GROUP BY 1, 2, 3 HAVING COUNT(DISTINCT key.region) > 1) AS several
       JOIN key ON key.op = several.op AND key.bin = several.bin
       JOIN comm ON comm.id = key.comm AND {part} = several.part"""

WAITING_SQL = """\
SELECT cell.rank, SUM(cell.time_ns), TOTAL(CASE WHEN share IS NOT NULL THEN cell.time_ns END),
       TOTAL(cell.time_ns * share)
  FROM cell JOIN key ON key.id = cell.key
       LEFT JOIN (SELECT comm, op, bin, rank, 1.0 * SUM(waiting_ns) / SUM(time_ns) AS share
                    FROM (SELECT DISTINCT comm, op, bin FROM key WHERE id IN ({keys})) JOIN waiting USING (comm, op, bin)
                   GROUP BY comm, op, bin, rank HAVING SUM(time_ns) > 0) AS part
         ON part.comm = key.comm AND part.op = key.op AND part.bin = key.bin AND part.rank = cell.rank
 WHERE cell.key IN ({keys}) GROUP BY cell.rank"""


def has_samples(connection: sqlite3.Connection) -> bool:
    """Return whether calls of a profile were sampled and split."""
    return has_table(connection, "sampled") and has_rows(connection, "sampled")


class Waiting:
    """Divides the waiting of view split among the ranks.

    Samples estimate all calls of a communicator, procedure and message size, whatever their code region.

    Parameters
    ----------
    unfold : bool
        Each communicator instead of families.
    """

    def __init__(self, connection: sqlite3.Connection, unfold: bool):
        self._connection = connection
        sql = SEVERAL_SQL.format(part="comm.id" if unfold else "comm.family")
        self._in_several_regions = {key for (key,) in connection.execute(sql)}

    def seconds(self, keys: Sequence[int]) -> dict[int, float] | None:
        """Return the waiting in the calls of some keys by rank, s; None if it is not known.

        The time of a rank is multiplied by the share of waiting in its samples, or without samples by that of the others.
        """
        if not self._in_several_regions.isdisjoint(keys):
            return None
        rows = list(self._rows(keys))
        time, known, waiting = (sum(row[i] for row in rows) for i in (1, 2, 3))
        if not known or known < LEAST_KNOWN * time:
            return None
        found: dict[int, float] = {}
        for rank, time_ns, known_ns, waiting_ns in rows:
            ns = waiting_ns + (time_ns - known_ns) * waiting / known
            found[rank] = found.get(rank, 0.0) + ns / 1e9
        return found

    def _rows(self, keys: Sequence[int]) -> Iterator[tuple[int, int, float, float]]:
        """Yield rank, time, the part of it with samples, and the waiting in this part, ns; a rank may have several rows."""
        for some in key_lists(keys):
            yield from map(tuple, self._connection.execute(WAITING_SQL.format(keys=some)))
