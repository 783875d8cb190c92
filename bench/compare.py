# SPDX-License-Identifier: Apache-2.0
"""Time and memory of `commlens compare` for 40 profiles of 256 ranks and 500 communicators.

    PYTHONPATH=python python bench/compare.py [FOLDER]

Makes the profiles in FOLDER, or in a temporary one, compares 20 with 20, and prints seconds and peak memory.
"""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from commlens.profile import _schema

PROFILES, RANKS, COMMS, SIZE, KEYS_EACH = 40, 256, 500, 16, 8


def make(path: Path, seed: int) -> None:
    """Write a profile with 64,000 cells; the times depend on the seed."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _schema.SQL)
        connection.executescript(f"""
            INSERT INTO op VALUES (0, 'unknown', 'other');
            CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
                SELECT i FROM n;
            INSERT INTO op SELECT i, 'MPI_Operation_' || i, 'collective' FROM n WHERE i BETWEEN 1 AND 8;
            INSERT INTO callsite SELECT i, '/bin/app', '', 16 * i, NULL FROM n WHERE i < 50;
            INSERT INTO region VALUES (0, NULL, '', 'program');
            INSERT INTO meta VALUES ('ranks', '{RANKS}'), ('elapsed_ns', '{10**10 + seed * 10**6}');
            INSERT INTO rank SELECT i, 1, 'n' || (i / 64), i, '', 0, 60000000000, 1, 1, 1, 0, 'finalized', NULL, NULL
                FROM n WHERE i < {RANKS};
            INSERT INTO comm VALUES (0, 0, '-', NULL, 'none', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1);
            INSERT INTO comm VALUES (1, 1, 'W0.0', NULL, 'intra', NULL, NULL, NULL, {RANKS}, NULL, 0, '0-{RANKS - 1}',
                NULL, 0, NULL, 1, 1);
            INSERT INTO comm SELECT i + 2, i, 's' || (i * {SIZE} % {RANKS}) || '.' || i, NULL, 'intra', 1, 1, 1 + i % 40,
                {SIZE}, NULL, i * {SIZE} % {RANKS},
                (i * {SIZE} % {RANKS}) || '-' || (i * {SIZE} % {RANKS} + {SIZE - 1}), NULL, i, NULL, 2 + i % 40, 1
                FROM n WHERE i < {COMMS};
            INSERT INTO key SELECT i * {RANKS}, 2 + i / {KEYS_EACH}, 1 + i % 8, i * 7 % 12, 0, i % 50, 10, 800, 800, 0
                FROM n WHERE i < {COMMS * KEYS_EACH};
            INSERT INTO cell_row SELECT key.id + (key.comm - 2) * {SIZE} % {RANKS} + n.i, 0,
                100000 + (key.id * 7919 + {seed} * 104729) % 1003, 50, 2000, 0, 0, 0 FROM key JOIN n ON n.i < {SIZE};
        """)


def main(folder: Path) -> None:
    """Make the profiles, compare them, print what it took."""
    paths = [folder / f"{i:02}.db" for i in range(PROFILES)]
    for i, path in enumerate(paths):
        make(path, i)
    half = PROFILES // 2
    command = [
        sys.executable,
        "-m",
        "commlens",
        "compare",
        *map(str, paths[:half]),
        "--",
        *map(str, paths[half:]),
    ]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{PROFILES} profiles of {RANKS} ranks and {COMMS} communicators: {seconds:.1f} s, {peak:.0f} MiB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
