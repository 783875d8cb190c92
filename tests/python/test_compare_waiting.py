# SPDX-License-Identifier: Apache-2.0
"""`commlens compare` splits the time of sampled operations into waiting and operation."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder
from build_waits import Kind, Late, RankWaits, add_messages, add_samples
from conftest import Run

MS = 10**6
CALLS = 100
BIN = 4  # 8 to 15 bytes


def run_of(
    path: Path,
    waiting_ms: float,
    operation_ms: float,
    *,
    sampled: bool = True,
    regions: int = 1,
    alg: str = "",
) -> Path:
    """Write a run of two ranks that spend both times in MPI_Allreduce each; half of the calls are sampled.

    alg: label of the run.
    """
    build = ProfileBuilder(ranks=2, app_ns=1000 * MS)
    build.settings = [("label", "alg", alg, 2)] if alg else []
    time = round((waiting_ms + operation_ms) * MS)
    ids = [build.region(f"step{i}") for i in range(regions)] if regions > 1 else [0]
    for rank in range(2):
        for region in ids:
            build.count(1, "MPI_Allreduce", rank, CALLS // regions, time // regions, size=8, region=region)
    if sampled:
        one = RankWaits(time // 2, round(waiting_ms * MS / 2))
        add_samples(build, Kind(1, "MPI_Allreduce", BIN), {0: one, 1: one}, CALLS // 2, CALLS)
    return build.write(path)


def row_of(run: Run, *arguments: str | Path) -> dict[str, Any]:
    """Return the row of MPI_Allreduce."""
    rows = json.loads(run("compare", *arguments, "--format", "json").stdout)["rows"]
    return next(row for row in rows if row["operation"] == "MPI_Allreduce")


def test_a_change_is_split_into_waiting_and_operation(run: Run, tmp_path: Path) -> None:
    sides = run_of(tmp_path / "a.db", 10, 20), run_of(tmp_path / "b.db", 50, 21)
    row = row_of(run, *sides)
    found = [row[f"{part}_ns_{side}"] for part in ("waiting", "operation") for side in "ab"]
    # The sum over two ranks.
    assert found == pytest.approx([20 * MS, 100 * MS, 40 * MS, 42 * MS])
    line = "    waiting: A 20.0 ms, B 100 ms; operation: A 40.0 ms, B 42.0 ms\n"
    assert line in run("compare", *sides).stdout


def test_the_parts_of_several_runs_are_medians(run: Run, tmp_path: Path) -> None:
    before = [run_of(tmp_path / f"a{i}.db", waiting, 20) for i, waiting in enumerate((10, 11, 90))]
    after = run_of(tmp_path / "b.db", 50, 20)
    assert row_of(run, *before, "--", after)["waiting_ns_a"] == pytest.approx(22 * MS)


def test_a_side_without_samples_is_named(run: Run, tmp_path: Path) -> None:
    without, sampled = run_of(tmp_path / "a.db", 10, 20, sampled=False), run_of(tmp_path / "b.db", 50, 20)
    row = row_of(run, without, sampled)
    assert (row["waiting_ns_a"], row["operation_ns_a"]) == (None, None)
    assert (
        "waiting: A not sampled, B 100 ms; operation: A not sampled, B 40.0 ms\n"
        in run("compare", without, sampled).stdout
    )
    assert "waiting:" not in run("compare", without, without).stdout


def test_calls_in_several_regions_are_not_split(run: Run, tmp_path: Path) -> None:
    """The samples are not kept apart by region in view split: a row of one region would show the waiting of all."""
    one, two = run_of(tmp_path / "a.db", 10, 20), run_of(tmp_path / "b.db", 10, 20, regions=2)
    assert "waiting:" not in run("compare", two, two).stdout
    assert "waiting:" not in run("compare", two, two, "--region", "step0").stdout
    assert "waiting:" in run("compare", one, one).stdout


def study(folder: Path) -> list[Path]:
    """Write runs of three configurations; of the third, none is sampled."""
    waits = {"x": (10, 11, 90), "y": (50, 51, 52), "z": (5, 6, 7)}
    return [
        run_of(folder / f"{alg}{i}.db", ms, 20, sampled=alg != "z", alg=alg)
        for alg, each in waits.items()
        for i, ms in enumerate(each)
    ]


def test_three_configurations_have_the_medians_of_both_parts(run: Run, tmp_path: Path) -> None:
    paths = study(tmp_path)
    rows = json.loads(run("compare", *paths, "--by", "alg", "--format", "json").stdout)["rows"]
    found = {
        row["value"]: (row["waiting_ns"], row["operation_ns"])
        for row in rows
        if row["operation"] == "MPI_Allreduce"
    }
    # The sum over two ranks.
    assert found["x"] == pytest.approx((22 * MS, 40 * MS))
    assert found["y"] == pytest.approx((102 * MS, 40 * MS))
    assert found["z"] == (None, None)
    whole = [row for row in rows if row["family"] == "whole run"]
    assert {(row["waiting_ns"], row["operation_ns"]) for row in whole} == {(None, None)}
    table = list(csv.DictReader(io.StringIO(run("compare", *paths, "--by", "alg", "--format", "csv").stdout)))
    of_z = next(row for row in table if row["value"] == "z" and row["operation"] == "MPI_Allreduce")
    assert (of_z["waiting_ns"], of_z["operation_ns"]) == ("", "")
    assert (
        "    waiting: A 22.0 ms, B 102 ms, C not sampled; operation: A 40.0 ms, B 40.0 ms, C not sampled\n"
        in run("compare", *paths, "--by", "alg").stdout
    )


def test_configurations_without_samples_have_no_line(run: Run, tmp_path: Path) -> None:
    paths = [run_of(tmp_path / f"{alg}.db", 10, 20, sampled=False, alg=alg) for alg in "xyz"]
    assert "waiting:" not in run("compare", *paths, "--by", "alg").stdout


def test_a_configuration_that_makes_no_such_call_is_left_out(run: Run, tmp_path: Path) -> None:
    paths = [run_of(tmp_path / f"{alg}.db", 10, 20, alg=alg) for alg in "xz"]
    other = ProfileBuilder(ranks=2, app_ns=1000 * MS)
    other.settings = [("label", "alg", "y", 2)]
    other.count(1, "MPI_Barrier", 0, 1, MS)
    paths.append(other.write(tmp_path / "y.db"))
    line = "    waiting: A 20.0 ms, C 20.0 ms; operation: A 40.0 ms, C 40.0 ms\n"
    assert line in run("compare", *paths, "--by", "alg").stdout


def test_messages_are_split_too(run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=2, app_ns=1000 * MS)
    build.count(1, "MPI_Recv", 1, 10, 30 * MS, size=8)
    one = (10, RankWaits(30 * MS, 20 * MS))
    add_messages(build, Kind(1, "MPI_Recv", BIN), {1: one}, {0: [Late(10, 20 * MS)]})
    path = build.write(tmp_path / "a.db")
    line = "    waiting: A 20.0 ms, B 20.0 ms; operation: A 10.0 ms, B 10.0 ms\n"
    assert line in run("compare", path, path).stdout
