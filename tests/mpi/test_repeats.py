# SPDX-License-Identifier: Apache-2.0
"""Calls that are nearly the same, from few places: none is counted as the one before it where it is not like it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from harness import LINK, ROOT, Mpi
from profile_rows import Profile

ROUNDS = 1000
FEW, MANY = 3, 600  # communicators


def program(mpi: Mpi) -> Path:
    """Compile it with the library that it says its regions to."""
    return mpi.compile("repeats.c", None, *LINK, flags=[f"-I{ROOT / 'include' / 'commlens'}"])


CELLS = """
SELECT o.name AS op, c.user_name AS comm, CASE g.id WHEN 0 THEN '-' ELSE g.name END AS region, k.bin, x.rank,
  SUM(x.calls), SUM(x.bytes_sent), SUM(x.bytes_received)
  FROM cell x JOIN key k ON k.id = x.key JOIN op o ON o.id = k.op JOIN comm c ON c.id = k.comm
  JOIN region g ON g.id = k.region WHERE c.user_name LIKE 'c%' GROUP BY 1, 2, 3, 4, 5"""
PEERS = """
SELECT c.user_name AS comm, f.name || CASE WHEN f.name LIKE '%to%' THEN '/' || o.name ELSE '' END AS kind, p.bin,
  COALESCE(p.peer, -1) AS peer, p.rank, SUM(p.messages), SUM(p.bytes)
  FROM peer p JOIN flow f ON f.id = p.flow JOIN comm c ON c.id = p.comm LEFT JOIN op o ON o.id = p.op
 WHERE c.user_name LIKE 'c%' AND f.name NOT IN ('collective', 'internal', 'share') GROUP BY 1, 2, 3, 4, 5"""

Counts = dict[tuple[object, ...], tuple[int, ...]]


def expected(files: list[Path]) -> tuple[Counts, Counts]:
    """Return the program's own cells and peers, with the rank behind what they are of."""
    found: dict[str, dict[tuple[object, ...], Counter[int]]] = {"cell": {}, "peer": {}}
    for rank, file in enumerate(files):
        for line in file.read_text().splitlines():
            what, *of, first, second, third = line.split()
            if what == "cell":
                key: tuple[object, ...] = (*of[:-1], int(of[-1]), rank)
            else:
                key = (of[0], of[1], int(of[2]), int(of[3]), rank)
            sums = found[what].setdefault(key, Counter())
            sums.update({0: int(first), 1: int(second), 2: int(third)})
    cells: Counts = {key: (n[0], n[1], n[2]) for key, n in found["cell"].items()}
    return cells, {key: (n[0], n[1]) for key, n in found["peer"].items()}


def counted(profile: Profile, sql: str, keys: int) -> Counts:
    """Return the answer to `sql`, by its first `keys` columns."""
    rows: list[tuple[Any, ...]] = [tuple(row.values()) for row in profile.rows(sql)]
    return {row[:keys]: row[keys:] for row in rows if any(row[keys:])}


def apart(found: Counts, wanted: Counts) -> list[object]:
    """Return the first few that differ: what, found, wanted."""
    keys = sorted(found.keys() | wanted.keys(), key=str)
    differ: list[object] = [(k, found.get(k), wanted.get(k)) for k in keys if found.get(k) != wanted.get(k)]
    return differ[:10]


@pytest.mark.parametrize(
    ("seed", "threads", "comms", "env"),
    [
        (1, 1, FEW, {}),
        (2, 1, FEW, {"COMMLENS_CALLSITES": "0", "COMMLENS_MATRIX": "all"}),
        (3, 1, FEW, {"COMMLENS_MATRIX": "off"}),
        (4, 1, FEW, {"COMMLENS_MATRIX_BY": "both"}),
        (5, 3, FEW, {}),
        # More calls in turn than there are places for at first, and at last.
        (6, 1, MANY, {}),
    ],
)
def test_every_call_is_counted_as_what_it_is(
    mpi: Mpi, seed: int, threads: int, comms: int, env: dict[str, str]
) -> None:
    files = mpi.fresh("model") / "rank"
    argv: list[str | Path] = [
        program(mpi),
        str(seed),
        str(ROUNDS // (threads**2 if comms == FEW else 3)),
        str(threads),
        str(comms),
        files,
    ]
    ranks = 4 if threads == 1 and comms == FEW else 2
    result = mpi.run(ranks, argv, env)
    assert result.rc == 0, (result.stdout, result.stderr[:3000])
    profile = result.open()
    profile.check()
    cells, peers = expected([Path(f"{files}.{rank}") for rank in range(ranks)])
    ops = {key[0] for key in cells}
    found = {key: n for key, n in counted(profile, CELLS, 5).items() if key[0] in ops}
    assert len(ops) > 20 and sum(n[0] for n in cells.values()) > 5000
    assert apart(found, cells) == []
    if env.get("COMMLENS_MATRIX") == "off":
        peers = {}
    assert apart(counted(profile, PEERS, 5), peers) == []
