# SPDX-License-Identifier: Apache-2.0
"""Labels and settings of a run, in reports and comparisons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run

THREADS = "OMP_NUM_THREADS"


def profile(path: Path, *settings: tuple[str, str, str, int], ranks: int = 4) -> Path:
    """Return a profile with one call per rank and these settings."""
    build = ProfileBuilder(ranks=ranks, settings=list(settings))
    for rank in range(ranks):
        build.count(1, "MPI_Bcast", rank, 1, 1000)
    return build.write(path)


def head(run: Run, path: Path) -> dict[str, str]:
    """Return the header of a report, by the name of the line."""
    lines = run("report", path).stdout.split("\n\n")[0].splitlines()
    return {name: text for name, _, text in (line.partition("  ") for line in lines)}


def test_a_report_shows_labels_and_what_differs_between_ranks(run: Run, tmp_path: Path) -> None:
    path = profile(
        tmp_path / "a.db",
        ("label", "alg", "ring", 4),
        ("label", "run", "3", 4),
        ("environment", THREADS, "2", 3),
        ("environment", THREADS, "1", 1),
        ("environment", "UCX_TLS", "sm", 2),
        ("machine", "processor", "Some CPU", 4),
    )
    found = head(run, path)
    assert found["labels"].strip() == "alg=ring run=3"
    assert found["settings"].strip() == (
        "OMP_NUM_THREADS is 2 on 3 ranks, 1 on 1 rank; UCX_TLS is sm on 2 ranks, not set on 2 ranks"
    )
    stored = json.loads(run("report", path, "--format", "json").stdout)["run"]["settings"]
    assert stored[0] == {"source": "label", "name": "alg", "value": "ring", "ranks": 4}
    assert len(stored) == 6


def test_a_report_of_ranks_that_are_set_up_alike_says_nothing_of_settings(run: Run, tmp_path: Path) -> None:
    found = head(run, profile(tmp_path / "a.db", ("environment", THREADS, "2", 4)))
    assert "labels" not in found
    assert "settings" not in found


def test_many_values_are_counted(run: Run, tmp_path: Path) -> None:
    each = [("environment", "GOMP_CPU_AFFINITY", str(rank), 1) for rank in range(5)]
    more = [("environment", f"UCX_{n}", "1", 1) for n in range(4)]
    text = head(run, profile(tmp_path / "a.db", *each, *more, ranks=5))["settings"]
    assert "GOMP_CPU_AFFINITY is 0 on 1 rank, 1 on 1 rank, 2 on 1 rank, 2 other values" in text
    assert text.endswith("; and 2 settings more")


@pytest.mark.parametrize("runs", [1, 4])
def test_compare_says_what_was_set_up_differently(run: Run, tmp_path: Path, runs: int) -> None:
    """Only what no run of the other side has: not the number of the run."""
    sides = {"a": ("linear", "2"), "b": ("pairwise", "4")}
    paths = {
        side: [
            profile(
                tmp_path / f"{side}{n}.db",
                ("label", "alg", alg, 4),
                ("label", "run", str(n), 4),
                ("environment", THREADS, threads, 4),
            )
            for n in range(runs)
        ]
        for side, (alg, threads) in sides.items()
    }
    between = ["--"] if runs > 1 else []
    text = " ".join(run("compare", *paths["a"], *between, *paths["b"]).stdout.split())
    assert "set up differently: OMP_NUM_THREADS 2 → 4; alg linear → pairwise" in text
    found = json.loads(run("compare", *paths["a"], *between, *paths["b"], "--format", "json").stdout)
    assert found["settings"] == {
        THREADS: {"a": ["2"], "b": ["4"]},
        "alg": {"a": ["linear"], "b": ["pairwise"]},
    }
