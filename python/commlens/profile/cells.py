# SPDX-License-Identifier: Apache-2.0
"""Checks the counters: a row of cell_row holds differences to the usual values of its key."""

from __future__ import annotations

from collections.abc import Mapping

from commlens.profile.database import Database
from commlens.profile.facts import LARGEST

PARTS = {
    "calls": "usual_calls",
    "bytes_sent": "usual_sent",
    "bytes_received": "usual_received",
    "noncontiguous": "usual_noncontig",
}
TOTALS = [f"{usual} + {difference}" for difference, usual in PARTS.items()]


class Cells:
    """The keys of a file and the rows of counters of each key.

    Parameters
    ----------
    sources : dict of str to str
        The table, checked copy or view that holds the valid rows of each table.
    ranks : int
        Number of ranks: the rows of a key are numbered from the id of the key on.
    count : int
        Number of rows in cell_row.
    most : int
        Upper bound of every difference.
    """

    def __init__(
        self,
        connection: Database,
        sources: Mapping[str, str],
        ranks: int,
        count: int,
        most: int,
    ):
        self.connection, self.count, self.most = connection, count, most
        self.keys = sources["key"]
        self.joined = (
            f"FROM {sources['key']} AS key CROSS JOIN {sources['cell_row']} AS cell_row"
            f" ON cell_row.id BETWEEN key.id AND key.id + {max(ranks, 1) - 1}"
        )

    def look(self) -> tuple[int, bool]:
        """Return the number of rows that belong to a key, and whether all are valid."""
        sound = " AND ".join(f"{total} >= 0" for total in TOTALS)
        sql = f"SELECT COUNT(*), COUNT(CASE WHEN {sound} THEN 1 END) {self.joined}"
        found, good = self.connection.execute(sql).fetchone()
        return found, good == found and self._has_sums()

    def _has_sums(self) -> bool:
        """Return whether no sum of counters overflows SQLite's integers."""
        largest = ", ".join(f"MAX(ABS({usual}))" for usual in PARTS.values())
        usual = self.connection.execute(f"SELECT {largest} FROM {self.keys}").fetchone()
        if all(self.count * ((most or 0) + self.most) <= 2 * LARGEST for most in usual):
            return True
        totals = ", ".join(f"TOTAL({total})" for total in TOTALS)
        found = self.connection.execute(f"SELECT {totals} {self.joined}").fetchone()
        return all(total <= 4 * LARGEST for total in found)

    def keep_sound(self, make: str, columns: str) -> int:
        """Replace the table by its valid rows; return their number. `make` is the statement that creates the table."""
        most = LARGEST // max(self.count, 1)
        sound = " AND ".join(f"{total} BETWEEN 0 AND {most}" for total in TOTALS)
        run = self.connection.execute
        run(f"CREATE TEMP TABLE sound_cell AS SELECT {columns} {self.joined} WHERE {sound}")
        run("DROP TABLE IF EXISTS temp.cell_row")
        run(make)
        run("INSERT OR IGNORE INTO temp.cell_row SELECT * FROM temp.sound_cell")
        run("DROP TABLE temp.sound_cell")
        return int(run("SELECT COUNT(*) FROM temp.cell_row").fetchone()[0])
