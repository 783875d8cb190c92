# SPDX-License-Identifier: Apache-2.0
"""Programs that create and free many communicators: the first are counted separately, the rest together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from harness import Mpi
from profile_rows import Profile

ROUNDS, LIMIT = 40, 9


def listed(groups: list[list[int]]) -> str:
    """Return the ranks of a communicator as text, whatever the ranges of the profile are like."""
    return " | ".join("".join(map(str, group)) for group in groups)


EXPECTED = {
    ("MPI_Comm_dup", "0123"): ROUNDS,
    ("MPI_Comm_split", "3210"): ROUNDS,
    ("MPI_Comm_create_group", "3210"): ROUNDS,
    ("MPI_Comm_create_group", "02"): ROUNDS // 2,
    ("MPI_Comm_create_group", "13"): ROUNDS // 2,
    ("MPI_Intercomm_create", "02 | 13"): ROUNDS,
}
"""How many of them programs/churn.c makes and frees, by procedure and ranks."""


@pytest.mark.parametrize("limit", [LIMIT, 1024])
def test_those_beyond_the_limit_share_a_row_and_none_is_lost(mpi: Mpi, limit: int) -> None:
    argv: list[str | Path] = [mpi.compile("churn.c"), "made", str(ROUNDS)]
    result = mpi.run(4, argv, {"COMMLENS_COMMS": str(limit)})
    profile = result.open()
    profile.check()
    found: dict[tuple[str, str], list[int]] = {}
    messages: Counter[tuple[str, str]] = Counter()
    sent = {
        row["comm"]: row["n"]
        for row in profile.rows("SELECT comm, SUM(messages) AS n FROM pair WHERE kind = 'sent' GROUP BY comm")
    }
    barriers = profile.calls("MPI_Barrier")
    for name, row in profile.comms().items():
        of_a_parent = row["creator_name"] in ("MPI_Comm_dup", "MPI_Comm_split")
        if row["creator_name"] and not (of_a_parent and row["parent_name"] == "W0.0"):
            kind = row["creator_name"], listed(row["groups"])
            found.setdefault(kind, []).append(row["communicators"])
            messages[kind] += sent.get(row["id"], 0)
            assert barriers[name] == {
                rank: row["communicators"] for group in row["groups"] for rank in group
            }, row
            assert row["freed_ns"] is not None
    for kind, made in EXPECTED.items():
        beyond = [made - limit] if made > limit else []
        assert sorted(found.pop(kind)) == [1] * min(made, limit) + beyond, kind
        assert messages[kind] == made * (2 if kind[0] == "MPI_Intercomm_create" else 1)
    assert found == {}
    assert same_over_time(profile)


def same_over_time(profile: Profile) -> bool:
    """Return whether the sums of the time slices equal the cells, by rank and procedure."""
    cells, slices = (
        profile.rows(sql)
        for sql in (
            "SELECT x.rank, k.op, SUM(x.calls) AS calls, SUM(x.bytes_sent) AS sent FROM cell x "
            "JOIN key k ON k.id = x.key GROUP BY 1, 2 ORDER BY 1, 2",
            "SELECT rank, op, SUM(calls) AS calls, SUM(bytes_sent) AS sent FROM slice GROUP BY 1, 2 ORDER BY 1, 2",
        )
    )
    return bool(cells) and cells == slices


def test_a_process_does_not_grow_with_the_communicators_it_has_freed(mpi: Mpi) -> None:
    argv: list[str | Path] = [mpi.compile("churn.c"), "memory", "20000"]
    plain, result = mpi.pair(1, argv)
    grown, alone = (
        int(next(line for line in of.lines if line.startswith("grown ")).split()[1]) for of in (result, plain)
    )
    assert grown - alone < 8192  # KiB: slices of time find their width; 20,000 more rows would be 40,000
    assert result.open().total("MPI_Comm_free")[0] == 40000
