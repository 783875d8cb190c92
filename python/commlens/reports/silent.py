# SPDX-License-Identifier: Apache-2.0
"""Ranks without a time of death: their time outside MPI, and each load balance with them, is unknown."""

from __future__ import annotations

# SIGKILL leaves no time of death.  Such a rank counts up to its last sign of life, other ranks longer.
SILENT_RANKS_SQL = """\
SELECT rank FROM rank, (SELECT MAX(app_ns) AS elapsed_ns FROM rank)
        WHERE state = 'ended' AND elapsed_ns - app_ns > elapsed_ns / 100"""
