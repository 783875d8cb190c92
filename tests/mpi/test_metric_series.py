# SPDX-License-Identifier: Apache-2.0
"""The values of a metric one by one (COMMLENS_METRIC_SERIES), also of a job that was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness import LINK, ROOT, Mpi
from profile_rows import Profile
from test_survive import commlens

RANKS = 3
ROWS = """
SELECT m.name, rank, thread, number, path, execution, iteration, value, time_ns
  FROM metric_series s JOIN metric m ON m.id = metric JOIN region_path p ON p.region = s.region
 ORDER BY m.name, rank, thread, number"""


def program(mpi: Mpi) -> Path:
    """Return programs/metric_series.c."""
    return mpi.compile("metric_series.c", "c", *LINK, flags=(f"-I{ROOT / 'include'}",))


def series(profile: Profile) -> list[tuple[Any, ...]]:
    """Return the values; their times must not decrease on a rank."""
    rows = [tuple(row.values()) for row in profile.rows(ROWS)]
    for one, next_one in zip(rows, rows[1:], strict=False):
        assert one[:3] != next_one[:3] or one[-1] <= next_one[-1], (one, next_one)
    return [row[:-1] for row in rows]


def expected(stride: int) -> list[tuple[Any, ...]]:
    """Return what the program records, without times, of every rank."""
    return [
        *(("memory", rank, 0, i, "", 0, -1, float(i)) for rank in range(RANKS) for i in range(5)),
        *(
            ("residual", rank, 0, step, "steps", 0, step, 1000.0 * rank + step)
            for rank in range(RANKS)
            for step in range(0, 100, stride)
        ),
    ]


@pytest.mark.dealt
@pytest.mark.parametrize(("values", "stride"), [(1000, 1), (100, 1), (99, 1), (98, 2), (25, 4), (8, 16)])
def test_the_stored_values_are_evenly_spaced(mpi: Mpi, values: int, stride: int) -> None:
    result = mpi.run(RANKS, [program(mpi)], env={"COMMLENS_METRIC_SERIES": str(values)})
    assert (result.rc, result.stdout) == (0, ""), result
    profile = result.open()
    profile.check()
    found = expected(stride)
    assert series(profile) == found
    # The sums are always of all values.
    (row,) = profile.rows(
        "SELECT SUM(count) AS n, SUM(sum) AS total FROM metric_value v JOIN metric m ON m.id = v.metric "
        "WHERE m.name = 'residual'"
    )
    assert (row["n"], row["total"]) == (100 * RANKS, sum(1000.0 * r * 100 + 4950 for r in range(RANKS)))


def test_without_the_option_there_are_none(mpi: Mpi) -> None:
    profile = mpi.run(RANKS, [program(mpi)]).open()
    assert series(profile) == []
    assert profile.rows("SELECT COUNT(*) AS n FROM metric")[0]["n"] == 2


def test_a_summary_has_none(mpi: Mpi) -> None:
    env = {"COMMLENS_METRIC_SERIES": "10", "COMMLENS_DETAIL": "summary"}
    assert series(mpi.run(RANKS, [program(mpi)], env=env).open()) == []


def test_the_values_of_a_killed_job_are_recovered(mpi: Mpi) -> None:
    # The launcher may end a rank before that kills itself: its counters are then in a copy beside the output.
    where = mpi.fresh("killed")
    env = {"COMMLENS_METRIC_SERIES": "64", "COMMLENS_ARENA_DIR": str(where)}
    result = mpi.run(RANKS, [program(mpi), "killed"], env, profile=where / "x.db", cwd=where, once=True)
    assert mpi.may_have_failed(result.rc), result
    recovered = where / "recovered.db"
    commlens("recover", where, "-o", recovered, cwd=where)
    profile = Profile(recovered)
    assert series(profile) == expected(2)
    shown = commlens("metrics", recovered, "--series", "--metric", "residual", cwd=where)
    assert shown.startswith("residual: 150 of 300 values, 0 (▁) to 2098 (█)")
    assert [line.split()[:2] for line in shown.splitlines()[2:]] == [
        [str(rank), "50"] for rank in range(RANKS)
    ]
