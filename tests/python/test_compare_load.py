# SPDX-License-Identifier: Apache-2.0
"""`commlens compare` names the load of an outlier: ranks that were preempted far more often than in the other runs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Run, small_builder
from summarise import summarised

from commlens.compare.load import NodeLoad
from commlens.compare.outliers import load_facts

MS = 10**6
FOLDER = Path(__file__).resolve().parents[1] / "profiles"
USUAL = {0: 10, 1: 11, 2: 12, 3: 13}
"""Preemptions of the four ranks of a run without load: the most is 13 a second, because app_ns is a second."""
LOADED = {0: 14, 1: 11, 2: 395, 3: 410}


def write(
    path: Path, elapsed_ms: int, preempted: dict[int, int] | None, nodes: int = 2, app_ms: int = 1000
) -> Path:
    """Write the profile of a run; `preempted` is None in profiles of older versions."""
    build = small_builder()
    build.meta["elapsed_ns"] = str(elapsed_ms * MS)
    build.nodes = nodes
    build.app_ns = app_ms * MS
    if preempted is not None:
        build.use = {rank: (build.app_ns * 9 // 10, count) for rank, count in preempted.items()}
    return build.write(path)


def lines_of(run: Run, paths: Sequence[Path]) -> list[str]:
    """Return the lines about outliers, without the path of the run, which is the last of its side."""
    output = run("compare", *paths, "--", paths[0]).stdout
    return [line.replace(str(paths[-1]), "PATH") for line in output.splitlines() if " run in " in line]


def outlier_lines(
    folder: Path,
    run: Run,
    usual: dict[int, int] | None,
    outlier: dict[int, int] | None,
    elapsed_ms: int = 5000,
) -> list[str]:
    """Return the lines about the outlier of six runs."""
    paths = [write(folder / f"{i}.db", 1000 + i, usual) for i in range(5)]
    return lines_of(run, [*paths, write(folder / "outlier.db", elapsed_ms, outlier)])


def test_the_loaded_node_of_a_slow_run_is_named(tmp_path: Path, run: Run) -> None:
    assert outlier_lines(tmp_path, run, USUAL, LOADED) == [
        "slow run in A: PATH, 5.00 s: ranks on node1 were preempted up to 410 times a second instead of 13, "
        "rank 3 most often"
    ]


def test_all_loaded_nodes_are_named_and_the_facts_that_differ_as_well(tmp_path: Path, run: Run) -> None:
    paths = [write(tmp_path / f"{i}.db", 1000 + i, USUAL) for i in range(5)]
    paths.append(write(tmp_path / "slow.db", 5000, {0: 20, 1: 50, 2: 30, 3: 40}, nodes=4))
    assert lines_of(run, paths) == [
        "slow run in A: PATH, 5.00 s: ranks on node1, node3, node2 were preempted up to 50 times a second instead of 13, "
        "rank 1 most often; node names node0, node1, node2, node3 instead of node0, node1"
    ]


def test_configurations_are_compared_with_their_own_runs(tmp_path: Path, run: Run) -> None:
    paths = []
    for i in range(12):
        build = small_builder()
        build.settings = [("label", "alg", "ab"[i % 2], 4)]
        build.meta["elapsed_ns"] = str((5000 if i == 11 else 1000 + i) * MS)
        build.use = dict.fromkeys(range(4), (900 * MS, 300 if i == 11 or i % 2 == 0 else 3))
        paths.append(build.write(tmp_path / f"{i}.db"))
    (line,) = [
        line for line in run("compare", *paths, "--by", "alg").stdout.splitlines() if " run in " in line
    ]
    assert line == (
        f"slow run in B: {paths[11]}, 5.00 s: ranks on node0, node1 were preempted up to 300 times a second instead of 3, "
        "rank 0 most often"
    )


def test_summary_detail_has_the_rank_without_its_node(tmp_path: Path, run: Run) -> None:
    idle = dict.fromkeys(range(4), 0)  # counters that are 0 have no row
    for usual, text in ((USUAL, "13"), (idle, "0")):
        folder = tmp_path / text
        folder.mkdir()
        paths = [summarised(write(folder / f"{i}.db", 1000 + i, usual)) for i in range(5)]
        paths.append(summarised(write(folder / "slow.db", 5000, LOADED)))
        assert lines_of(run, paths) == [
            f"slow run in A: PATH, 5.00 s: ranks were preempted up to 410 times a second instead of {text}, "
            "rank 3 most often"
        ]


@pytest.mark.parametrize(
    ("usual", "outlier", "elapsed_ms"),
    [
        (USUAL, USUAL, 5000),
        (USUAL, LOADED, 10),  # a fast run: no load explains it
        (None, LOADED, 5000),
        (USUAL, None, 5000),
        (None, None, 5000),
        (LOADED, LOADED, 5000),
    ],
)
def test_nothing_is_said_without_load_and_where_it_is_unknown(
    tmp_path: Path, run: Run, usual: dict[int, int] | None, outlier: dict[int, int] | None, elapsed_ms: int
) -> None:
    kind, time = ("slow", "5.00 s") if elapsed_ms == 5000 else ("fast", "10.0 ms")
    assert outlier_lines(tmp_path, run, usual, outlier, elapsed_ms) == [
        f"{kind} run in A: PATH, {time}: no recorded fact differs from the other runs"
    ]


def test_older_profiles_have_no_load(tmp_path: Path, run: Run) -> None:
    paths = [Path(shutil.copy(FOLDER / "version9.db", tmp_path / f"{i}.db")) for i in range(5)]
    paths.append(write(tmp_path / "slow.db", 500_000, LOADED))
    (line,) = lines_of(run, paths)
    assert line.startswith("slow run in A: PATH, 500 s: ")
    assert "preempted" not in line


def loads_of(*rates: float, seconds: float = 10) -> tuple[NodeLoad, ...]:
    """Return the loads of the nodes of a run."""
    return tuple(NodeLoad(f"n{i}", i, round(rate * seconds), rate) for i, rate in enumerate(rates))


@pytest.mark.parametrize(
    ("others", "rate", "is_load"),
    [
        ([1, 1, 1, 1], 10, False),  # the floor
        ([1, 1, 1, 1], 10.1, True),
        ([100, 100, 100, 100], 200, False),  # twice the median
        ([100, 100, 100, 100], 200.1, True),
        ([5, 30, 60, 90, 120], 180, False),  # the fence: 90 + 1.5 * (90 - 30)
        ([5, 30, 60, 90, 120], 180.1, True),
        ([1, 1, 1], 1000, False),  # too few runs for quartiles
        ([], 1000, False),
    ],
)
def test_the_thresholds(others: list[float], rate: float, is_load: bool) -> None:
    found = load_facts(loads_of(rate, 2), [loads_of(other, 0.5) for other in others])
    assert bool(found) == is_load
    assert all(fact.startswith(f"ranks on n0 were preempted up to {rate:.0f} times") for fact in found)


def test_fewer_than_ten_preemptions_are_not_load() -> None:
    others = [loads_of(0)] * 5
    assert load_facts(loads_of(180, seconds=0.05), others) == []
    assert load_facts(loads_of(200, seconds=0.05), others) == [
        "ranks on n0 were preempted up to 200 times a second instead of 0, rank 0 most often"
    ]
