# SPDX-License-Identifier: Apache-2.0
"""Checks whether a profile has a communication matrix."""

from __future__ import annotations

import sqlite3

from commlens.base.errors import CommlensError
from commlens.profile.meta import is_summary, no_single_ranks, option
from commlens.profile.shape import has_table, version_of

FIRST_VERSION = 6


def refuse(connection: sqlite3.Connection) -> None:
    """Refuse a profile without communication matrix."""
    if not has_table(connection, "peer"):
        raise CommlensError(
            f"this profile has schema version {version_of(connection)}: the communication matrix needs version {FIRST_VERSION} or later"
        )
    if is_summary(connection):
        raise no_single_ranks("a matrix")
    if option(connection, "COMMLENS_MATRIX") == "off":
        raise CommlensError("this profile has no communication matrix: COMMLENS_MATRIX was off in the run")


def refuse_unkept(connection: sqlite3.Connection, what: str) -> None:
    """Refuse a selection by a dimension that the run did not record."""
    if connection.execute(f"SELECT 1 FROM peer WHERE {what} <> 0 LIMIT 1").fetchone():
        return
    if option(connection, "COMMLENS_MATRIX_BY") not in (what, "both"):
        raise CommlensError(
            f"this profile does not split messages by {what}: the run needs COMMLENS_MATRIX_BY={what}"
        )
