# SPDX-License-Identifier: Apache-2.0
"""COMMLENS_DETAIL=summary: what all ranks together say is what their rows say."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Mpi
from profile_rows import Profile

# A family, because communicators that one call made on all ranks share a row in a summary.
TOTALS_SQL = """
SELECT family.name, op.name AS op, key.bin, callsite.offset, SUM(calls) AS calls, SUM(bytes_sent) AS sent,
       SUM(bytes_received) AS received, SUM(noncontiguous) AS noncontiguous
  FROM {counters} JOIN key ON key.id = {counters}.key JOIN comm ON comm.id = key.comm
       JOIN family ON family.family = comm.family
       JOIN op ON op.id = key.op JOIN callsite ON callsite.id = key.callsite
 WHERE comm.kind <> 'set' GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"""
FAMILIES_SQL = """
SELECT name, kind, communicators, size_min, size_max, creator, topology FROM family WHERE kind <> 'set' ORDER BY 1"""
MEMBERS_SQL = """
SELECT family.name, COUNT(DISTINCT rank) AS members FROM member JOIN comm ON comm.id = member.comm
  JOIN family ON family.family = comm.family
 WHERE comm.kind IN ('intra', 'inter') GROUP BY family.name ORDER BY 1"""
SAID_MEMBERS_SQL = """
SELECT family.name, scope.members FROM scope JOIN family ON family.family = scope.family
 WHERE scope.op IS NULL AND kind IN ('intra', 'inter') ORDER BY 1"""
RANKS_SQL = "SELECT COUNT(*) AS ranks, SUM(calls) AS sum, MIN(calls) AS min, MAX(calls) AS max FROM rank"
SAID_RANKS_SQL = """
SELECT ranks, sum, min, max FROM scope JOIN spread ON spread.scope = scope.id
 WHERE family IS NULL AND comm IS NULL AND counter = 'calls'"""
LINES_SQL = """
SELECT name, SUM(calls) AS calls, MIN(calls) AS min, MAX(calls) AS max, COUNT(*) AS ranks
  FROM (SELECT comm.family, rank, SUM(calls) AS calls
          FROM cell JOIN key ON key.id = cell.key JOIN comm ON comm.id = key.comm GROUP BY 1, 2)
       JOIN family USING (family) WHERE kind <> 'set' GROUP BY family ORDER BY 1, 2"""
SAID_LINES_SQL = """
SELECT name, sum AS calls, min, max, ranks FROM scope JOIN spread ON spread.scope = scope.id JOIN family USING (family)
 WHERE scope.op IS NULL AND kind <> 'set' AND counter = 'calls' ORDER BY 1, 2"""
SAID_OF_ALL_SQL = """
SELECT name, user_name, topology, communicators FROM family WHERE kind <> 'set' ORDER BY 1, family"""
COVERAGE_SQL = "SELECT symbol, state, ranks FROM coverage ORDER BY 1"


def same(full: Profile, summary: Profile, sql: str, said: str | None = None) -> list[dict[str, Any]]:
    """Check that both give the same answer, and return it."""
    wanted = full.rows(sql)
    assert summary.rows(said or sql) == wanted
    return wanted


@pytest.mark.parametrize(("program", "ranks"), [("comms.c", 5), ("listing1.c", 16), ("requests.c", 2)])
def test_a_summary_says_what_the_rows_of_all_ranks_say(mpi: Mpi, program: str, ranks: int) -> None:
    executable = mpi.compile(program)
    one = mpi.run(ranks, [executable], timeout=180)
    other = mpi.run(ranks, [executable], env={"COMMLENS_DETAIL": "summary"}, timeout=180)
    assert (other.rc, other.lines) == (one.rc, one.lines)
    full, summary = one.open(), Profile(other.profile)
    assert (full.meta()["detail"], summary.meta()["detail"]) == ("full", "summary")
    assert summary.rows("SELECT * FROM rank") == summary.rows("SELECT * FROM cell_row") == []
    assert same(full, summary, TOTALS_SQL.format(counters="cell"), TOTALS_SQL.format(counters="key_total"))
    assert same(full, summary, FAMILIES_SQL)
    assert same(full, summary, MEMBERS_SQL, SAID_MEMBERS_SQL)
    assert same(full, summary, RANKS_SQL, SAID_RANKS_SQL)[0]["ranks"] == ranks
    assert same(full, summary, COVERAGE_SQL)
    assert summary.meta()["ranks_collected"] == str(ranks)
    assert not list(other.profile.parent.glob("*arena*"))


def test_the_rows_and_columns_of_a_grid_are_a_row_each(mpi: Mpi) -> None:
    result = mpi.run(16, [mpi.compile("listing1.c")], env={"COMMLENS_DETAIL": "summary"}, timeout=180)
    comms = Profile(result.profile).rows(
        "SELECT name, leader, size, communicators FROM comm WHERE communicators > 1"
    )
    assert comms, result
    for comm in comms:
        assert comm["name"][1] == "*" and comm["leader"] is None
        assert comm["size"] * comm["communicators"] == 16


def test_what_siblings_do_not_have_in_common_is_not_said_of_all(mpi: Mpi) -> None:
    executable = mpi.compile("siblings.c")
    full = mpi.run(8, [executable], timeout=180).open()
    summary = Profile(mpi.run(8, [executable], env={"COMMLENS_DETAIL": "summary"}, timeout=180).profile)
    families = same(full, summary, SAID_OF_ALL_SQL)
    rows = [family["user_name"] for family in families if family["communicators"] == 4]
    assert sorted(name or "" for name in rows) == ["", "", "", "", "row"]
    assert [f["topology"] for f in families if f["name"][0] == "a"] == [None]
    assert len([f for f in families if f["name"][0] == "g"]) == 2
    assert len([f for f in families if f["name"][0] == "d"]) == 2
    assert same(full, summary, FAMILIES_SQL)
    assert same(full, summary, LINES_SQL, SAID_LINES_SQL)
    assert same(full, summary, MEMBERS_SQL, SAID_MEMBERS_SQL)
    sets = summary.rows("SELECT DISTINCT communicators FROM comm WHERE kind = 'set'")
    assert sets == [{"communicators": 1}]
