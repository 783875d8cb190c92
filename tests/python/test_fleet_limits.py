# SPDX-License-Identifier: Apache-2.0
"""Questions to a dataset just below and just above each limit: silent, then not. And other programs that open its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas
import polars
import pytest
from conftest import Run
from fleet_cases import answers, content, of_rows, rows_of, write_jobs

from commlens.fleet._dataset import TABLES

pytestmark = pytest.mark.usefixtures("without_fsync")

HOUR = 3600 * 10**9
RANKS = 4


def job(number: int, **values: Any) -> dict[str, Any]:
    """Return a job of four processes and an hour."""
    usual = {"code": f"c{number}", "ranks": RANKS, "app_ns": RANKS * HOUR, "elapsed_ns": HOUR, "nodes": 2}
    return {"job": number, **usual, **values}


def operation(number: int, op: str, group: str, **values: Any) -> dict[str, Any]:
    return {"job": number, "code": f"c{number}", "op": op, "class": group, **values}


@pytest.mark.parametrize(
    ("misuse", "below", "above"),
    [
        (
            "tiny_messages",
            operation(1, "MPI_Isend", "p2p", bin=6, calls=4 * 10**6 - 1, time_ns=HOUR),
            operation(1, "MPI_Isend", "p2p", bin=6, calls=4 * 10**6, time_ns=HOUR),
        ),
        (
            "tiny_messages",
            operation(1, "MPI_Isend", "p2p", bin=7, calls=10**9, time_ns=HOUR),
            operation(1, "MPI_Isend", "p2p", bin=0, calls=10**9, time_ns=HOUR),
        ),
        (
            "tiny_messages",
            operation(1, "MPI_Irecv", "p2p", bin=3, calls=10**9, time_ns=HOUR),
            operation(1, "MPI_Sendrecv", "p2p", bin=3, calls=10**9, time_ns=HOUR),
        ),
        (
            "barriers",
            operation(1, "MPI_Barrier", "collective", calls=1000 * RANKS, time_ns=HOUR),
            operation(1, "MPI_Barrier", "collective", calls=1000 * RANKS + 1, time_ns=HOUR),
        ),
        (
            "barriers",
            operation(1, "MPI_Barrier", "collective", calls=10**6, time_ns=RANKS * HOUR // 100),
            operation(1, "MPI_Barrier", "collective", calls=10**6, time_ns=RANKS * HOUR // 100 + 10**6),
        ),
        (
            "polling",
            operation(1, "MPI_Iprobe", "p2p", bin=0, calls=RANKS * 10**6 - 1, time_ns=HOUR),
            operation(1, "MPI_Iprobe", "p2p", bin=0, calls=RANKS * 10**6, time_ns=HOUR),
        ),
    ],
)
def test_a_misuse_is_named_above_its_limit_only(
    misuse: str, below: dict[str, Any], above: dict[str, Any], tmp_path: Path
) -> None:
    assert answers(of_rows(tmp_path / "below", job=[job(1)], operation=[below]), "misuse") == []
    (row,) = answers(of_rows(tmp_path / "above", job=[job(1)], operation=[above]), "misuse")
    assert (row["misuse"], row["jobs"], row["example"]) == (misuse, 1, 1)
    assert row["cost_hours"] == pytest.approx(above["time_ns"] / HOUR)


def test_communicators_in_a_loop_and_findings_are_misuse(tmp_path: Path) -> None:
    families = [
        {"job": 1, "code": "c1", "kind": "intra", "communicators": 10_000},
        {"job": 2, "code": "c2", "kind": "intra", "communicators": 10_000},
        {"job": 2, "code": "c2", "kind": "inter", "communicators": 1, "family": 2},
        {"job": 1, "code": "c1", "kind": "set", "communicators": 10**6, "family": 2},
    ]
    finding = [{"job": 1, "code": "c1", "number": 1, "rule": "late", "share": 0.25}]
    folder = of_rows(tmp_path / "set", job=[job(1), job(2)], comm_family=families, finding=finding)
    found = {(row["code"], row["misuse"]): row["cost_hours"] for row in answers(folder, "misuse")}
    assert found == {("c1", "late"): 1.0, ("c2", "communicators_in_a_loop"): None}


def test_codes_of_equal_speed_are_no_candidates(tmp_path: Path) -> None:
    rows = [
        operation(n, "MPI_Allreduce", "collective", size=64, bin=4, calls=1000, time_ns=HOUR)
        for n in range(1, 11)
    ]
    jobs = [job(n, code=f"k{n % 2}", nodes=1) for n in range(1, 11)]
    of_code = [{**row, "code": f"k{row['job'] % 2}"} for row in rows]
    # Placement: all on one node, or a pattern of which no order of the ranks is better.
    matrix = [{"job": n, "code": f"k{n % 2}", "pattern": "all-to-all", "locality": 0.5} for n in range(1, 11)]
    sends = [
        {**operation(n, "MPI_Send", "p2p", size=64, bin=9, calls=9, time_ns=HOUR), "code": f"k{n % 2}"}
        for n in range(1, 11)
    ]
    folder = of_rows(tmp_path / "set", job=jobs, operation=[*of_code, *sends], matrix=matrix)
    assert answers(folder, "candidates") == []
    # Four fast jobs are no reference, five are.
    for fast, expected in ((4, []), (5, [("k1", 5.0)])):
        many = [{**row, "time_ns": HOUR if row["code"] == "k0" else 2 * HOUR} for row in of_code]
        some = [row for row in many if row["code"] == "k1" or row["job"] <= 2 * fast]
        answer = answers(of_rows(tmp_path / f"{fast}", job=jobs, operation=some), "candidates")
        assert [(row["code"], row["saved_hours"]) for row in answer] == expected


def test_balanced_codes_lose_nothing_and_complete_jobs_are_not_missing(tmp_path: Path) -> None:
    whole = {
        "ranks_collected": RANKS,
        "state": "finalized",
        "load_balance": 1.0,
        "communication_efficiency": 1.0,
    }
    known = [{"id": 1, "job_id": "1", "state": "COMPLETED", "tasks": RANKS}]
    folder = of_rows(tmp_path / "set", job=[job(1, job_id="1", **whole)], batch_job=known)
    assert [(row["lost_hours"], row["worst"]) for row in answers(folder, "imbalance")] == [(0.0, 1.0)]
    assert answers(folder, "missing") == answers(folder, "refused") == answers(folder, "slow-nodes") == []
    one = of_rows(tmp_path / "one", job=[job(1, ranks=1, load_balance=0.5)])
    assert answers(one, "imbalance") == [], "a job of one process has no balance"


def test_the_cost_of_commlens_counts_jobs_above_two_percent(tmp_path: Path) -> None:
    jobs = [
        job(1, code="a", own_ns=RANKS * HOUR * 2 // 100),
        job(2, code="a", own_ns=RANKS * HOUR * 2 // 100 + 10**6),
        job(3, code="a", own_ns=RANKS * HOUR, elapsed_ns=59 * 10**9),
    ]
    (row,) = answers(of_rows(tmp_path / "set", job=jobs), "cost")
    assert (row["jobs"], row["above"], row["own_hours"]) == (3, 1, pytest.approx(4.16, rel=1e-6))
    assert row["worst_share"] == pytest.approx(0.02, rel=1e-5), "a job of less than a minute does not count"


def test_a_sub_communicator_has_the_time_of_its_families(tmp_path: Path) -> None:
    families = [
        {"family": 1, "kind": "intra", "communicators": 1, "size_min": 4, "size_max": 4, "time_ns": HOUR},
        {"family": 2, "kind": "intra", "creator": "MPI_Comm_split", "communicators": 2, "is_sub": 1}
        | {"size_min": 1, "size_max": 2, "time_ns": 3 * HOUR, "waiting_ns": HOUR},
    ]
    rows = [{"job": 1, "code": "c1", **family} for family in families]
    found = answers(of_rows(tmp_path / "set", job=[job(1)], comm_family=rows), "communicators")
    titles = ("creator", "per_job", "size_min", "size_max", "mpi_share", "sub_share", "waiting_share")
    assert [tuple(row[title] for title in titles) for row in found] == [
        ("MPI_Comm_split", 2.0, 1, 2, 0.75, 1.0, pytest.approx(1 / 3)),
        ("predefined", 1.0, 4, 4, 0.25, 0.0, None),
    ]


def test_polars_and_pandas_open_the_tables(tmp_path: Path, run: Run) -> None:
    run("ingest", *write_jobs(tmp_path / "jobs", range(4)), "--into", tmp_path / "set")
    for table in content(tmp_path / "set"):
        paths = run("fleet", tmp_path / "set", "--files", table).stdout.split()
        expected = rows_of(tmp_path / "set", table)
        columns = TABLES[table].columns
        # pandas has no integers beside NULL.
        plain = [c.name for c in columns if not c.null and c.type in ("BIGINT", "INTEGER", "TEXT")]
        for frame in (polars.read_parquet(paths), pandas.read_parquet(paths)):
            assert list(frame.columns) == [column.name for column in columns]
            for name in plain:
                assert sorted(map(str, frame[name])) == sorted(str(row[name]) for row in expected), name
