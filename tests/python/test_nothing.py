# SPDX-License-Identifier: Apache-2.0
"""Profiles with next to nothing in them: every command says so in words, and none is confused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run, small_builder
from test_shards import split

from commlens.profile import _schema

REPORTS = (
    (),
    ("--all-ranks",),
    ("--callsites",),
    ("--callsites", "--all-ranks"),
    ("--buckets", "1024,8192"),
    ("--sort", "name"),
    ("--rank", "0", "--all-ranks"),
    ("--comm", "W0.0"),
)


@pytest.fixture(params=["one rank", "four ranks", "several files"])
def nothing(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a profile of ranks that called nothing after MPI_Init."""
    ranks = 1 if request.param == "one rank" else 4
    whole = ProfileBuilder(ranks=ranks, meta=dict(small_builder().meta)).write(tmp_path / "none.db")
    return split(whole, tmp_path / "none.commlens") if request.param == "several files" else whole


@pytest.mark.parametrize("options", REPORTS, ids=lambda options: " ".join(options))
def test_a_report_says_that_there_is_nothing(nothing: Path, run: Run, options: tuple[str, ...]) -> None:
    result = run("report", nothing, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "no calls match"
    assert "0 calls" in result.stdout
    for way in ("csv", "json"):
        result = run("report", nothing, *options, "--format", way)
        assert (result.exit_code, result.stderr) == (0, "")
        if way == "json":
            tables = {
                key: value for key, value in json.loads(result.stdout).items() if isinstance(value, list)
            }
            assert not any(tables.values())
        else:
            assert len(result.stdout.splitlines()) == 1, "a heading and no row"


def test_a_choice_that_nothing_meets_is_no_damage(small: Path, run: Run) -> None:
    result = run("report", small, "--time", "5000:6000", "--all-ranks")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "no calls match"


@pytest.mark.long
def test_the_other_commands(nothing: Path, run: Run, tmp_path: Path) -> None:
    result = run("comms", nothing)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "W0.0" in result.stdout
    result = run("coverage", nothing)
    assert (result.exit_code, result.stderr) == (0, "")
    for relation in _schema.RELATIONS:
        result = run("sql", nothing, f"SELECT * FROM {relation}")
        assert (result.exit_code, result.stderr) == (0, ""), relation
    if nothing.is_dir():
        result = run("merge", nothing, "-o", tmp_path / "merged.db")
        assert (result.exit_code, result.stderr) == (0, "")
        assert run("report", tmp_path / "merged.db").stdout == run("report", nothing).stdout
