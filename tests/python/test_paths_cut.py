# SPDX-License-Identifier: Apache-2.0
"""The report says which call paths the run did not record to their begin."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from build_paths import add_path, compiled, recorded
from build_profile import ProfileBuilder
from conftest import MS, Run


@pytest.fixture(scope="module")
def solver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("solver"))


def profile(solver: Path, path: Path, most: int, frames: str, *, strange: bool = False) -> Path:
    """Return a profile of the program's paths, with at most so many frames, and the value of the option in the run.

    The i-th path has i + 1 ms. There are 13, of 3 frames up to main but for three of 4 frames. strange: one more without
    names.
    """
    build = ProfileBuilder(ranks=1, meta={"options": f"COMMLENS_CALLSITES=1\nCOMMLENS_FRAMES={frames}\n"})
    paths = [offsets[-most:] for _, offsets in recorded(solver)]
    times: Counter[int] = Counter()  # paths that are cut may be the same
    for i, offsets in enumerate(paths):
        times[add_path(build, solver, offsets)] += (i + 1) * MS
    for site, time_ns in times.items():
        build.count(1, "MPI_Isend", 0, 1, time_ns, callsite=site)
    if strange:
        build.sites[500], build.sites[501] = ("/nowhere/app", "ab", 1), ("/nowhere/app", "ab", 2)
        build.callers[501] = 500
        build.count(1, "MPI_Isend", 0, 1, MS, callsite=501)
    return build.write(path)


def warnings(run: Run, path: Path, *options: str) -> list[str]:
    done = run("report", path, "--callsites", *options)
    assert (done.exit_code, done.stderr) == (0, "")
    return [line.split(None, 1)[1] for line in done.stdout.splitlines() if line.startswith("warning")]


def lengths(solver: Path) -> list[int]:
    return [len(offsets) for _, offsets in recorded(solver)]


def test_paths_with_as_many_frames_as_asked_for_are_counted(run: Run, solver: Path, tmp_path: Path) -> None:
    assert lengths(solver) == [3, 3, 3, 3, 4, 4, 4, 3, 3, 3, 3, 3, 3]
    path = profile(solver, tmp_path / "x.db", 3, "3")
    share = 100 * (5 + 6 + 7) / sum(range(1, 14))
    assert warnings(run, path) == [
        f"3 of 13 call paths with {share:.1f} % of the MPI time have 3 frames, as COMMLENS_FRAMES asks for: "
        "the functions around them are unknown"
    ]
    for options in (("--flat",), ("--format", "csv"), ("--format", "json")):
        assert warnings(run, path, *options) == []


@pytest.mark.parametrize("frames", ["5", "64", "4", "1", "", "x", "²", "-3"])
def test_paths_that_reach_main_are_whole(run: Run, solver: Path, tmp_path: Path, frames: str) -> None:
    assert warnings(run, profile(solver, tmp_path / "x.db", 4, frames)) == []


def test_a_path_without_names_may_be_cut(run: Run, solver: Path, tmp_path: Path) -> None:
    (line,) = warnings(run, profile(solver, tmp_path / "x.db", 2, "2", strange=True))
    assert line.startswith("10 of 10 call paths with 100.0 %")


@pytest.mark.parametrize(
    ("full", "who"),
    [("", "processes"), (None, "processes"), ("1", "1 process"), ("1200", "1,200 processes"), ("0", "")],
)
def test_a_full_table_of_paths_is_said(
    run: Run, solver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str | None, who: str
) -> None:
    build = ProfileBuilder(ranks=1, meta={"options": "COMMLENS_FRAMES=8\n", "full_paths": full or ""})
    for _, offsets in recorded(solver):
        build.count(1, "MPI_Isend", 0, 1, MS, callsite=add_path(build, solver, offsets))
    for i in range(2):
        build.count(1, "MPI_Isend", 0, 1, MS, callsite=add_path(build, solver, [recorded(solver)[i][1][-1]]))
    path = build.write(tmp_path / "x.db")
    if full is None:  # of a library that did not write the fact
        with sqlite3.connect(path) as database:
            database.execute("DELETE FROM meta WHERE key = 'full_paths'")
        database.close()
    text = (
        f"2 of 15 call paths with 13.3 % of the MPI time have no callers: {who} had no room for more than {{}} call sites and "
        "callers, and counted further paths at their call site alone"
    )
    # What a process states is said, whatever the number of rows. Otherwise the number of rows tells.
    assert warnings(run, path) == ([text.format("65,536")] if full and who else [])
    monkeypatch.setattr("commlens.reports.cuts.MOST_NODES", 20)
    assert warnings(run, path) == ([text.format(20)] if who else [])
