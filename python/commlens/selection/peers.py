# SPDX-License-Identifier: Apache-2.0
"""Whether a profile says who talks to whom."""

from __future__ import annotations

import sqlite3

from commlens.base.errors import CommlensError
from commlens.profile.meta import is_summary, no_single_ranks, option
from commlens.profile.shape import has_table, version_of

FIRST_VERSION = 6


def refuse(connection: sqlite3.Connection) -> None:
    """Refuse a profile that cannot say who talks to whom."""
    if not has_table(connection, "peer"):
        raise CommlensError(
            f"this profile has schema version {version_of(connection)}: who talks to whom is in those from {FIRST_VERSION} on"
        )
    if is_summary(connection):
        raise no_single_ranks("a matrix")
    if option(connection, "COMMLENS_MATRIX") == "off":
        raise CommlensError(
            "this profile was made with COMMLENS_MATRIX=off: nobody counted who talks to whom"
        )


def refuse_unkept(connection: sqlite3.Connection, what: str) -> None:
    """Refuse to tell apart what the run has not told apart."""
    if connection.execute(f"SELECT 1 FROM peer WHERE {what} <> 0 LIMIT 1").fetchone():
        return
    if option(connection, "COMMLENS_MATRIX_BY") not in (what, "both"):
        raise CommlensError(
            f"this profile does not keep messages apart by {what}: that needs COMMLENS_MATRIX_BY={what} in the run"
        )
