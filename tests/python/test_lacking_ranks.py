# SPDX-License-Identifier: Apache-2.0
"""Profiles without some ranks, and communicators with processes of another world: what is missing is not taken for zero."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser import browser
from build_profile import ProfileBuilder, execute
from conftest import MS, Run
from test_export_traces import sliced
from test_page import compare, written
from test_timeline import builder as timeline_builder

from commlens.fleet import of_profile
from commlens.jobs.hang import draw, read_places
from commlens.profile import open_profile

SECOND = 1000 * MS


def without(path: Path, *ranks: int) -> Path:
    """Remove ranks from a profile, as if the files of their nodes were lost."""
    lost = f"IN ({', '.join(map(str, ranks))})"
    for table in ("rank", "peer", "overhead"):
        execute(path, f"DELETE FROM {table} WHERE rank {lost}")
    execute(path, f"DELETE FROM cell_row WHERE id % (SELECT value FROM meta WHERE key = 'ranks') {lost}")
    execute(path, "UPDATE meta SET value = (SELECT COUNT(*) FROM rank) WHERE key = 'ranks_collected'")
    return path


def ring(path: Path) -> Path:
    """Write a profile of a ring of four ranks in both directions, each message larger than the one before."""
    build = ProfileBuilder(4)
    build.nodes = 2
    for rank in range(4):
        for i, step in enumerate((1, -1)):
            build.send(rank, (rank + step) % 4, 10, 1000 * (1 + 2 * rank + i))
        build.count(1, "MPI_Barrier", rank, 100, 100 * MS, size=0)
    return build.write(path)


def collectives(run: Run, path: Path, *options: str) -> list[float]:
    """Return the number of collectives in each row of communicators."""
    found = json.loads(run("report", path, "--format", "json", *options).stdout)
    return [row["collectives"] for row in found["communicators"]]


def test_collectives_are_those_of_the_ranks_that_the_profile_has(run: Run, tmp_path: Path) -> None:
    path = ring(tmp_path / "whole.db")
    assert collectives(run, path) == [pytest.approx(100)]
    assert collectives(run, without(path, 3)) == [pytest.approx(100)]


def test_collectives_with_another_world_count_once(run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(2)
    ranks = [0, 1, 2, 3]
    comm = build.comm("i0.1", ranks, kind="inter", remote_size=2, creator="MPI_Comm_dup", members="0-1 | ")
    for rank in (0, 1):
        build.count(comm, "MPI_Barrier", rank, 100, 100 * MS, size=0)
        build.count(1, "MPI_Barrier", rank, 70, 50 * MS, size=0)
    path = build.write(tmp_path / "spawned.db")
    for options in ((), ("--unfold",)):
        assert collectives(run, path, *options) == [pytest.approx(100), pytest.approx(70)]


def test_the_matrix_says_which_ranks_are_lacking(run: Run, tmp_path: Path) -> None:
    path = ring(tmp_path / "ring.db")
    assert "not in this profile" not in run("matrix", path).stdout
    said = " ".join(run("matrix", without(path, 2, 3)).stdout.split())
    assert "2 ranks of 4 are not in this profile: what they sent is missing, so symmetry, partners" in said


@pytest.mark.long
def test_the_page_has_every_pair_of_a_profile_that_lacks_ranks(tmp_path: Path) -> None:
    path = without(ring(tmp_path / "page.db"), 3)
    with browser() as tab:
        tab.open(written(path), "view=peers")
        with open_profile(str(path)) as connection:
            assert compare(connection, "pairs", tab.results()["pairs"]) == 6
        said = tab.run("return document.getElementById('pairs').textContent")
        # Of ranks 0 to 2: 1,000 and 4,000 bytes between 0 and 1, on one node; 3,000 and 6,000 between 1 and 2.
        assert "35.7 % of the bytes stay within a node" in said
        assert "are in the table only (2 rows)" in said
        assert tab.complaints() == []


def test_ranks_of_both_groups_of_an_intercommunicator_count(tmp_path: Path) -> None:
    build = ProfileBuilder(4)
    comm = build.comm(
        "i0.1", [0, 1, 2, 3], kind="inter", remote_size=2, creator="MPI_Comm_dup", members="0-1 | 2-3"
    )
    for rank in range(4):
        build.stands(rank, "MPI_Barrier", comm, 100 * MS)
    with open_profile(str(build.write(tmp_path / "hang.db"))) as connection:
        lines = [line.plain.split() for line in draw(read_places(connection)).lines(120)]
    assert lines[1][2:5] == ["i0.1", "0-3", "4"]


def test_communicators_of_families_are_not_told_apart_in_a_trace(run: Run, tmp_path: Path) -> None:
    path = sliced(
        timeline_builder(slice_of="family"),
        tmp_path / "family.db",
        [(2, "MPI_Waitall", 3, 1, 5, 8 * MS, 0, 0)],
    )
    for kind in ("chrome", "speedscope"):
        target = tmp_path / f"{kind}.json"
        refused = run("export", path, "--to", kind, "--unfold", "-o", target)
        assert (refused.exit_code, target.exists()) == (2, False)
        assert refused.stderr == "commlens: --unfold: the time slices of this profile are those of families\n"
        assert run("export", path, "--to", kind, "-o", target).exit_code == 0


def slowness_is_known(path: Path) -> set[bool]:
    """Return whether fleet knows how long the ranks of each node computed."""
    with open_profile(str(path)) as connection:
        return {row["outside_ns"] is not None for row in connection.execute(of_profile.NODES_SQL)}


def test_a_node_is_slow_only_where_its_time_outside_mpi_is_known(tmp_path: Path) -> None:
    path = ring(tmp_path / "nodes.db")
    assert slowness_is_known(path) == {True}
    execute(path, "UPDATE rank SET threads = 2 WHERE rank = 3")
    assert slowness_is_known(path) == {False}
    execute(path, "UPDATE rank SET threads = 1")
    execute(path, "UPDATE rank SET state = 'killed' WHERE rank = 1")
    assert slowness_is_known(path) == {False}
