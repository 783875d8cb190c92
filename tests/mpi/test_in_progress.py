# SPDX-License-Identifier: Apache-2.0
"""The time of a long call or region that has not ended is divided among the slices that it covers, and counted once."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Mpi
from harness import commlens as run_commlens
from profile_rows import Profile

SECONDS = 3
MOST_SLICES = 128
IN_CALL = """
SELECT slot, SUM(time_ns) AS ns FROM slice JOIN op ON op.id = slice.op WHERE rank = 1 AND op.name = 'MPI_Recv' GROUP BY slot"""
IN_REGION = """
SELECT slot, SUM(exclusive_ns) AS ns FROM region_slice JOIN region ON region.id = region_slice.region
 WHERE rank = 0 AND region.name = 'compute' GROUP BY slot"""


def run(mpi: Mpi, how: str, env: dict[str, str]) -> Path:
    """Run programs/in_progress.c to its end; return the folder with what it left."""
    where = mpi.fresh("in-progress")
    for name in ("arenas", "out"):
        (where / name).mkdir()
    result = mpi.run(
        2,
        [mpi.compile("in_progress.c"), str(SECONDS), how],
        env={"COMMLENS_ARENA_DIR": str(where / "arenas"), **env},
        profile=where / "out" / "profile.db",
        cwd=where,
        once=True,
    )
    if how == "send":
        assert result.rc == 0, result
    else:
        assert mpi.may_have_failed(result.rc), result
    return where


def made(where: Path, *arguments: str | Path) -> Profile:
    """Return the profile that a command makes."""
    path = where / "made.db"
    path.unlink(missing_ok=True)
    done = run_commlens(*arguments, "-o", path, cwd=where)
    assert path.exists(), done
    return Profile(path)


def check_spread(profile: Profile, sql: str) -> None:
    """Assert that each slice between the first and the last is full of it."""
    slice_ns = int(profile.column("SELECT value FROM meta WHERE key = 'slice_ns'")[0])
    times = {row["slot"]: row["ns"] for row in profile.rows(sql)}
    first, last = min(times), max(times)
    assert last < MOST_SLICES
    assert 0.8e9 * SECONDS < sum(times.values()) < 1.5e9 * SECONDS + 1e9
    assert set(times) == set(range(first, last + 1))
    assert all(times[slot] == pytest.approx(slice_ns, rel=1e-6) for slot in range(first + 1, last))
    assert max(times[first], times[last]) <= slice_ns + 1


def test_the_slices_of_a_killed_job_have_its_last_call(mpi: Mpi) -> None:
    where = run(mpi, "call", {})
    profile = made(where, "recover", where / "arenas", where / "out")
    check_spread(profile, IN_CALL)
    of_slices = profile.column("SELECT SUM(time_ns) FROM slice WHERE rank = 1")[0]
    assert of_slices == pytest.approx(profile.column("SELECT mpi_ns FROM rank WHERE rank = 1")[0], abs=1000)


def test_the_slices_of_a_killed_job_have_its_last_region(mpi: Mpi) -> None:
    where = run(mpi, "region", {})
    profile = made(where, "recover", where / "arenas", where / "out")
    check_spread(profile, IN_REGION)


def test_a_call_over_several_snapshots_is_counted_once(mpi: Mpi) -> None:
    """The rows of `commlens history` add up to the time in MPI of the profile, and none has more than there is."""
    where = run(mpi, "send", {"COMMLENS_FLUSH_EVERY": "1"})
    path = where / "out" / "profile.db"
    rows = run_commlens("history", path, "--format", "csv", cwd=where).stdout.splitlines()
    names, *lines = (row.split(",") for row in rows)
    found = [dict(zip(names, line, strict=True)) for line in lines]
    assert len(found) >= SECONDS
    whole = Profile(path).column("SELECT SUM(mpi_ns) FROM rank")[0]
    assert sum(int(row["new_time_ns"]) for row in found) == pytest.approx(whole, rel=0.01)
    assert all(int(row["new_time_ns"]) <= 1.01 * int(row["new_app_ns"]) for row in found)
