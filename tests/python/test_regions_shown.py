# SPDX-License-Identifier: Apache-2.0
"""Where `commlens regions` is shown, and what it is shown of."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run, small_builder
from rich.cells import cell_len
from test_regions import read
from test_text import environment, in_terminal, program

from commlens.profile import _schema
from commlens.render.tree import DEEPEST_PREFIX
from commlens.render.units import LONGEST_NAME

# ---- where they are shown, and what they are shown of ----


def test_control_characters_in_names_do_not_reach_the_terminal(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=1)
    evil = build.region("evil\x1b]0;title\x07")
    build.region("", evil, "others")
    build.spend(evil, 0, 1, 1000)
    build.tags.append((evil, "k\x1b", "v\x1b"))
    build.tell(build.metric("m\x1b", "u\x1b"), evil, 0, [1.0, 2.0])
    build.count(1, "MPI_Bcast", 0, 1, 100, region=evil)
    path = build.write(tmp_path / "x.db")
    for arguments in (("regions", path), ("report", path), ("report", path, "--by", "region")):
        output = run(*arguments).stdout
        assert "\x1b" not in output and "\x07" not in output
        assert r"evil\x1b]0;title\x07" in output
    assert "└─ (others)" in run("regions", path).stdout


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("options", [[], ["--executions", "--iterations"]], ids=["plain", "parts"])
def test_a_terminal_gets_lines_that_fit(marked: Path, columns: int, options: list[str]) -> None:
    lines = in_terminal(columns, "regions", marked, *options, NO_COLOR="1").splitlines()
    bare = ["".join(part.split("m", 1)[-1] for part in ("m" + line).split("\x1b[")) for line in lines]
    assert max(cell_len(line) for line in bare) <= columns
    assert "PE" in lines[0] and "own/rank" in lines[0]


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_the_legend_explains_the_columns_that_are_there(marked: Path, columns: int) -> None:
    text = in_terminal(columns, "regions", marked, NO_COLOR="1")
    bare = "".join(part.split("m", 1)[-1] for part in ("m" + text).split("\x1b["))
    titles = bare.splitlines()[0].split()
    said = " ".join(bare.split("\n\n")[1].split())
    assert "slowest" in titles and "own/rank" in titles
    for title, words in (
        ("LB", "load balance"),
        ("CE", "communication efficiency"),
        ("share", "share: of the whole"),
    ):
        assert (title in titles) == (words in said), title
    assert ("share" in titles, "min/rank" in titles) == (columns == 200, columns == 200)
    assert {80: 0, 120: 10, 200: 40}[columns] == max(line.count("░") for line in bare.splitlines())


@pytest.mark.long
def test_a_deep_recursion_with_long_names_fits(tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1)
    region = 0
    for depth in range(40):
        region = build.region(
            f"{depth} levels down in a function that calls itself, and with a long name", region
        )
        build.spend(region, 0, 1, 1000)
    build.count(1, "MPI_Bcast", 0, 1, 100, region=region)
    path = build.write(tmp_path / "deep.db")
    for arguments in (("regions", path), ("report", path, "--by", "region"), ("report", path)):
        output = in_terminal(80, *arguments, NO_COLOR="1")
        bare = [
            "".join(part.split("m", 1)[-1] for part in ("m" + line).split("\x1b["))
            for line in output.splitlines()
        ]
        longest = DEEPEST_PREFIX + LONGEST_NAME if arguments == ("regions", path) else 80
        assert max(cell_len(line) for line in bare) <= longest
        deepest = "39 levels down" if arguments[0] == "regions" else "and with a long name"
        assert deepest in " ".join(output.split()), arguments


def test_a_terminal_gets_bars_with_what_is_a_regions_own(marked: Path) -> None:
    lines = in_terminal(120, "regions", marked, NO_COLOR="1").splitlines()
    drawn = ["".join(c for c in line if c in "█░") for line in lines if "█" in line or "░" in line]
    assert drawn == ["░" * 10, "░" * 7, "░" * 6, "██", "██", "█", "█", "██"]


def test_an_output_without_unicode_gets_plain_letters(marked: Path) -> None:
    for command in (("regions", marked), ("report", marked, "--by", "region")):
        done = subprocess.run(
            program(*command), env=environment(PYTHONUTF8="0", PYTHONIOENCODING="ascii"), capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"?" not in done.stdout


def test_a_profile_from_before_there_were_regions_says_so(marked: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "old.db"
    path.write_bytes(marked.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        for name, relation in _schema.RELATIONS.items():
            if name.startswith(("region_", "loop_", "metric", "tag")):
                connection.execute(f"DROP {relation.kind} {name}")
        connection.execute("UPDATE meta SET value = '4' WHERE key = 'schema_version'")
        connection.execute("PRAGMA user_version = 4")
    for arguments in (("regions", path), ("report", path, "--by", "region")):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == (
            "commlens: this profile has schema version 4: code regions need version 5 or later\n"
        )
    assert run("report", path).exit_code == 0


@pytest.mark.long
def test_as_many_regions_as_a_process_tells_apart_are_read(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "many.db"
    small_builder().write(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("""
            CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 16384)
                SELECT i FROM n;
            INSERT INTO region SELECT i, CASE WHEN i <= 64 THEN i - 1 ELSE i / 2 END, 'r' || i, 'region' FROM n;
            INSERT INTO region_time SELECT i, 0, -1, rank, 1, 0, 9 * i, 9 * i, 9 * i, i, i FROM n JOIN rank;
            INSERT INTO key SELECT (i + 100) * 4, 1, 1, i % 8, i, 0, 1, 0, 0, 0 FROM n;
            INSERT INTO cell_row SELECT (i + 100) * 4 + rank, 0, i, i, i, 0, 0, 0 FROM n JOIN rank;
        """)
    assert run("regions", path).exit_code == 0
    assert run("report", path, "--by", "region").exit_code == 0
    assert len(read(run, "regions", path)["regions"]) == 16385


def test_a_tree_has_one_level_at_least(marked: Path, run: Run) -> None:
    result = run("regions", marked, "--depth", 0)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'--depth': 0 is not in the range x>=1" in result.stderr
