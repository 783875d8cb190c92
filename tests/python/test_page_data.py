# SPDX-License-Identifier: Apache-2.0
"""The data of the page: what a browser unpacks is what the profile has, and what is folded is added up right."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder
from conftest import Run

from commlens.page.build import BUDGET, page
from commlens.profile import open_profile

Row = tuple[Any, ...]


def block(text: str, name: str) -> bytes:
    """Return a block of a page, decompressed."""
    found = re.search(rf'<script type="text/plain" id="data-{name}">([A-Za-z0-9+/=]*)</script>', text)
    assert found
    return gzip.decompress(base64.b64decode(found[1]))


def unpacked(text: str) -> tuple[dict[str, Any], dict[str, list[dict[str, int]]]]:
    """Return head and rows of the data of a page, read value by value."""
    head, tables = json.loads(block(text, "head")), {}
    for name, table in head["tables"].items():
        data, at = block(text, name), 0
        rows: list[dict[str, int]] = [{} for _ in range(table["rows"])]
        for column in table["columns"]:
            for i, row in enumerate(rows):
                planes = [data[at + plane * len(rows) + i] for plane in range(column["bytes"])]
                row[column["name"]] = column["least"] + sum(b << (8 * k) for k, b in enumerate(planes))
            at += column["bytes"] * len(rows)
        assert at == len(data)
        tables[name] = rows
    return head, tables


def page_of(profile: Path, budget: int = BUDGET) -> tuple[dict[str, Any], dict[str, list[dict[str, int]]]]:
    with open_profile(str(profile)) as connection:
        return unpacked(page(connection, profile, budget))


def rows_of(profile: Path, sql: str) -> list[Row]:
    connection = sqlite3.connect(profile)
    with connection:
        found = connection.execute(sql).fetchall()
    connection.close()
    return found


CELLS = """\
SELECT comm, op, bin, region, callsite, rank, calls, time_ns, bytes_sent, bytes_received, noncontiguous, time_max_ns
  FROM cell JOIN key ON key.id = cell.key"""


@pytest.mark.parametrize("name", ["small", "marked"])
def test_the_page_has_every_counter_of_the_profile(name: str, request: pytest.FixtureRequest) -> None:
    profile = request.getfixturevalue(name)
    head, tables = page_of(profile)
    assert sorted(tuple(row.values()) for row in tables["cells"]) == sorted(rows_of(profile, CELLS))
    assert len(tables["cells"]) > 20
    pairs = rows_of(
        profile,
        "SELECT comm, flow.id, COALESCE(source, -1), COALESCE(destination, -1), SUM(messages), SUM(bytes)"
        " FROM pair JOIN flow ON flow.name = kind GROUP BY 1, 2, 3, 4",
    )
    assert sorted(tuple(row.values()) for row in tables["pairs"]) == sorted(pairs)
    assert head["folded"] == []


def test_counters_up_to_two_to_the_sixty_survive(tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=2)
    build.count(1, "MPI_Bcast", 1, 1, 2**58, size=8, sent=2**60 - 1)
    _, tables = page_of(build.write(tmp_path / "large.db"))
    (row,) = tables["cells"]
    assert (row["time_ns"], row["bytes_sent"], row["rank"]) == (2**58, 2**60 - 1, 1)


def added(rows: list[Row], kept: list[int], sums: list[int], largest: list[int]) -> list[Row]:
    """Return the sums and maxima of rows with the same values in the kept columns."""
    groups: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[i] for i in kept)].append(row)
    return sorted(
        (*key, *(sum(row[i] for row in some) for i in sums), *(max(row[i] for row in some) for i in largest))
        for key, some in groups.items()
    )


def test_without_room_dimensions_are_added_up_and_named(marked: Path) -> None:
    head, tables = page_of(marked, 1)
    assert tuple(tables["cells"][0]) == (
        "comm", "op", "calls", "time_ns", "bytes_sent", "bytes_received", "noncontiguous", "time_max_ns",
    )  # fmt: skip
    expected = added(rows_of(marked, CELLS), [0, 1], [6, 7, 8, 9, 10], [11])
    assert sorted(tuple(row.values()) for row in tables["cells"]) == expected
    assert head["folded"][0] == "calls: call sites and message sizes and regions and ranks are added up"
    assert "the communication matrix: communicators are added up" in head["folded"]


def test_a_profile_without_calls_makes_a_page(tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1)
    head, tables = page_of(build.write(tmp_path / "empty.db"))
    assert tables == {"cells": [], "pairs": [], "slices": [], "waits": [], "paths": [], "leaves": []}
    assert head["findings"]["refused"] == "no rule applies to a run of one rank"


@pytest.mark.parametrize("version", ["2", "2-first", "3", "6", "7", "8", "9", "6-summary", "9-summary"])
def test_profiles_of_all_versions_make_a_page(version: str) -> None:
    profile = Path(__file__).parent.parent / "profiles" / f"version{version}.db"
    head, tables = page_of(profile)
    with open_profile(str(profile)) as connection:
        (calls,) = connection.execute("SELECT SUM(calls) FROM key_total").fetchone()
    assert sum(row["calls"] for row in tables["cells"]) == calls > 0
    assert head["is_summary"] == version.endswith("summary")


def test_the_matrix_is_described_as_by_the_command(marked: Path, run: Run) -> None:
    head, _ = page_of(marked)
    said = dict(head["traffic"]["p2p"])
    printed = run("matrix", marked).stdout
    for name in ("pattern", "locality", "symmetry", "partners"):
        assert f"{name:<10}  {said[name]}\n" in printed
    assert said["s0.1"] == "pairs, 1 of them; 50.0 % of the bytes, 2 ranks"


def test_names_cannot_leave_their_place(tmp_path: Path) -> None:
    evil = "</script><script>window.evil = 1</script><img src=x onerror=alert(1)>\u202e"
    build = ProfileBuilder(ranks=2, meta={"program": evil, "command_line": evil})
    build.comm("s0.1", [0, 1], user_name=evil)
    build.region(evil)
    profile = build.write(tmp_path / "evil.db")
    with open_profile(str(profile)) as connection:
        text = page(connection, profile)
    assert "window.evil" not in re.sub(r"<title>.*?</title>", "", text)
    assert text.count("<script") == 10
    assert "<title>&lt;/script&gt;" in text
    assert "\u202e" not in text


def test_large_old_and_divided_profiles_are_not_in_the_page(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Path(__file__).parent.parent / "profiles"
    head, _ = page_of(small)
    assert head["no_sql"] == ""
    head, _ = page_of(recorded / "version8.db")
    assert head["no_sql"].startswith("An older commlens wrote this profile")
    head, _ = page_of(recorded / "version9-shards.commlens")
    assert head["no_sql"].startswith(
        "This profile is a directory of several files. Query it with: commlens sql"
    )
    monkeypatch.setattr("commlens.page.build.MOST_IN_PAGE", 1 << 10)
    head, _ = page_of(small)
    assert head["no_sql"].startswith("This profile has more than 0 MiB")


def test_the_command_writes_a_file_and_never_over_one(small: Path, tmp_path: Path, run: Run) -> None:
    target = tmp_path / "page.html"
    done = run("html", small, "-o", target)
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{target}\n", "")
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    again = run("html", small, "-o", target)
    assert (again.exit_code, again.stdout) == (2, "")
    assert again.stderr == f"commlens: {target}: exists\n"
    assert run("html", small, "-o", tmp_path / "no" / "page.html").exit_code == 2


def test_the_name_of_the_page_is_that_of_the_profile(
    small: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("html", small).stdout == "small.html\n"
    assert (tmp_path / "small.html").stat().st_size > 10_000
