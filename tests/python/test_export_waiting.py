# SPDX-License-Identifier: Apache-2.0
"""Exports of a profile with samples: waiting as a metric of operations, and its tables and view unchanged."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
import thicket
from build_profile import ProfileBuilder
from build_waits import Kind, Late, RankWaits, add_messages, add_samples, add_unsplit
from conftest import MS, Run
from test_export_trees import READERS, Reader

import commlens.export

# Warnings of these packages about each other.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SECOND = 1000 * MS
TABLES = ("waiting", "sampled", "unsplit", "split")


def sampled_builder() -> ProfileBuilder:
    """Return a run of three ranks.

    Half of the calls of MPI_Recv are sampled, on ranks 1 and 2: three quarters and a half of their time is waiting. Of
    MPI_Barrier, in region step, a tenth is sampled on each rank. MPI_Bcast is called in two regions, and MPI_Ssend has no
    samples.
    """
    build = ProfileBuilder(ranks=3, app_ns=60 * SECOND)
    step = build.region("step")
    for rank in range(3):
        build.spend(step, rank, 1, 40 * SECOND, 0, 20 * SECOND)
        build.count(1, "MPI_Barrier", rank, 100, 10 * SECOND, size=0, region=step)
        for region in (0, step):
            build.count(1, "MPI_Bcast", rank, 10, SECOND, size=8, region=region)
        build.count(1, "MPI_Ssend", rank, 10, SECOND, size=8)
    for rank in (1, 2):
        build.count(1, "MPI_Recv", rank, 20, 8 * SECOND, size=64)
    receives = {
        1: (10, RankWaits(4 * SECOND, 3 * SECOND)),
        2: (10, RankWaits(4 * SECOND, 2 * SECOND)),
    }
    add_messages(build, Kind(1, "MPI_Recv", 7), receives, {0: [Late(20, 5 * SECOND)]}, 40)
    barriers = {rank: RankWaits(SECOND, rank * SECOND // 10, 10 * (rank == 0)) for rank in range(3)}
    add_samples(build, Kind(1, "MPI_Barrier", 0, step), barriers, 10, 100)
    bcasts = {rank: RankWaits(SECOND, SECOND // 2) for rank in range(3)}
    add_samples(build, Kind(1, "MPI_Bcast", 4), bcasts, 10, 20)
    add_unsplit(build, Kind(1, "MPI_Ssend", 4), "posting", 10)
    return build


def waits_of(frame: Any) -> dict[str, list[float]]:
    """Return the waiting of each node by its name, by rank; NaN as -1."""
    found: dict[str, list[float]] = {}
    for row in frame.dataframe.reset_index().sort_values("rank").to_dict("records"):
        value = row["waiting"]
        found.setdefault(row["name"], []).append(-1 if math.isnan(value) else value)
    return found


@pytest.mark.parametrize("reader", READERS)
def test_waiting_is_a_metric_of_operations_with_samples(reader: Reader, run: Run, tmp_path: Path) -> None:
    frame = reader(run, sampled_builder().write(tmp_path / "a.db"), tmp_path)
    found = waits_of(frame)
    names = ("MPI_Recv", "MPI_Barrier", "MPI_Bcast", "MPI_Ssend", "step")
    # MPI_Bcast is a node in each of its two regions, and view split has them together.
    assert {name: found[name] for name in names} == {
        "MPI_Recv": [0, pytest.approx(6), pytest.approx(4)],
        "MPI_Barrier": [0, pytest.approx(1), pytest.approx(2)],
        "MPI_Bcast": [-1] * 6,
        "MPI_Ssend": [-1] * 3,
        "step": [0, 0, 0],
    }


def test_the_sum_over_the_ranks_is_that_of_view_split_and_of_the_report(run: Run, tmp_path: Path) -> None:
    build = sampled_builder()
    build.count(1, "MPI_Recv", 0, 20, 4 * SECOND, size=64)  # without samples
    path = build.write(tmp_path / "a.db")
    split = json.loads(
        run(
            "sql",
            path,
            "SELECT op.name, waiting_ns FROM split JOIN op ON op.id = op",
            "--format",
            "json",
        ).stdout
    )
    report = json.loads(run("report", path, "--waiting", "--format", "json").stdout)["operations"]
    tree = waits_of(commlens.export.hatchet(path))
    assert tree["MPI_Recv"] == pytest.approx([2.5, 6, 4])
    for operation in ("MPI_Recv", "MPI_Barrier"):
        whole = round(sum(tree[operation]) * 10**9)
        assert [row["waiting_ns"] for row in split if row["name"] == operation] == [whole]
        assert [row["waiting_ns"] for row in report if row["operation"] == operation] == [whole]


def test_waiting_can_be_added_up_and_single_ranks_have_the_same(tmp_path: Path) -> None:
    path = sampled_builder().write(tmp_path / "a.db")
    frame = commlens.export.hatchet(path)
    assert "waiting" in frame.exc_metrics
    assert frame.dataframe["waiting"].sum() == pytest.approx(13)
    assert waits_of(commlens.export.hatchet(path, ranks=[(2, 2)]))["MPI_Recv"] == pytest.approx([4])


def test_without_samples_or_mpi_there_is_no_such_column(tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=2)
    build.count(1, "MPI_Barrier", 0, 1, MS)
    without = build.write(tmp_path / "without.db")
    assert "waiting" not in commlens.export.hatchet(without).dataframe.columns
    path = sampled_builder().write(tmp_path / "a.db")
    assert "waiting" not in commlens.export.hatchet(path, mpi=False).dataframe.columns
    both = commlens.export.thicket(without, path)
    assert isinstance(both, thicket.Thicket)
    assert both.dataframe["waiting"].sum() == pytest.approx(13)


def test_a_communicator_of_a_family_has_its_own_samples(tmp_path: Path) -> None:
    """Of two communicators one has samples: unfolded only that one has waiting, folded both have its share."""
    build = ProfileBuilder(ranks=4, app_ns=60 * SECOND)
    for first in (0, 2):
        half = build.comm(f"s{first}.1", [first, first + 1], parent=1, creator="MPI_Comm_split", family=2)
        for rank in (first, first + 1):
            build.count(half, "MPI_Barrier", rank, 10, 10 * SECOND, size=0)
        if not first:
            waits = {rank: RankWaits(10 * SECOND, rank * 4 * SECOND) for rank in (0, 1)}
            add_samples(build, Kind(half, "MPI_Barrier", 0), waits, 10)
    path = build.write(tmp_path / "a.db")
    assert waits_of(commlens.export.hatchet(path))["MPI_Barrier"] == pytest.approx([0, 4, 2, 2])
    unfolded = commlens.export.hatchet(path, unfold=True).dataframe.query("name == 'MPI_Barrier'")
    known = unfolded["waiting"].dropna()
    assert (len(unfolded), len(known), known.sum()) == (8, 4, pytest.approx(4))


@pytest.mark.parametrize("name", TABLES)
def test_tables_and_view_of_samples_are_exported(name: str, run: Run, tmp_path: Path) -> None:
    path = sampled_builder().write(tmp_path / "a.db")
    output = tmp_path / "table.csv"
    assert run("export", path, "--to", "csv", "--table", name, "-o", output).exit_code == 0
    with output.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    printed = json.loads(run("sql", path, f"SELECT * FROM {name}", "--format", "json").stdout)
    assert rows == [
        {key: "" if value is None else str(value) for key, value in row.items()} for row in printed
    ]
    assert len(rows) == {"waiting": 9, "sampled": 3, "unsplit": 1, "split": 3}[name]
    assert commlens.open(path).pandas(name).shape == (len(rows), len(rows[0]))
