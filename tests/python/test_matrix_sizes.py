# SPDX-License-Identifier: Apache-2.0
"""`commlens matrix --sizes`: message sizes of each pair."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run
from test_old_profiles import refused


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return three ranks: messages of two sizes and of none, and a put."""
    build = ProfileBuilder(ranks=3)
    for messages, size in ((10, 8), (1, 512)):
        build.tell_peer("sent", 0, 1, messages, size)
        build.tell_peer("received", 1, 0, messages, size)
    build.tell_peer("sent", 1, 0, 2, 1024)
    build.tell_peer("sent", 2, 2, 4, 0)
    build.tell_peer("put", 2, 0, 3, 64)
    return build.write(tmp_path / "p.db")


def rows(run: Run, path: Path, *options: str) -> list[tuple[int | None, ...]]:
    """Return the rows of the JSON, which must be those of the CSV and of the SQL."""
    found = json.loads(run("matrix", path, "--sizes", "--format", "json", *options).stdout)
    text = run("matrix", path, "--sizes", "--format", "csv", *options).stdout
    assert [list(row.values()) for row in csv.DictReader(io.StringIO(text))] == [
        ["" if value is None else str(value) for value in row.values()] for row in found
    ]
    sql = run("matrix", path, "--sizes", "--sql", *options).stdout.split(";")[0]
    with closing(sqlite3.connect(path)) as connection:
        assert len(connection.execute(sql).fetchall()) == len(found)
    return [tuple(row.values()) for row in found]


def test_each_pair_has_a_row_for_each_size(profile: Path, run: Run) -> None:
    assert rows(run, profile) == [
        (0, 1, 8, 15, 10, 80), (0, 1, 512, 1023, 1, 512), (1, 0, 1024, 2047, 2, 2048), (2, 2, 0, 0, 4, 0),
    ]  # fmt: skip
    assert rows(run, profile, "--kind", "put") == [(2, 0, 64, 127, 3, 192)]


def test_the_table_lists_the_heaviest_pairs_first(profile: Path, run: Run) -> None:
    lines = run("matrix", profile, "--sizes", "--top", "2").stdout.splitlines()
    assert lines[:2] == ["two-sided messages, as sent: 3 pairs, 17 messages", ""]
    assert [line.split() for line in lines[2:]] == [
        ["from", "to", "message", "size", "messages", "bytes", "of", "pair"],
        ["1", "0", "1-2", "KiB", "2", "2.00", "KiB", "100.0", "%"],
        ["0", "1", "8-15", "B", "10", "80", "B", "13.5", "%"],
        ["512-1023", "B", "1", "512", "B", "86.5", "%"],
        ["1", "further", "pair:", "--top", "0", "shows", "all"],
    ]
    by_messages = run("matrix", profile, "--sizes", "--what", "messages", "--top", "1").stdout.splitlines()
    assert by_messages[3].split()[:2] == ["0", "1"]
    assert by_messages[3].split()[-2:] == ["90.9", "%"]


def test_the_sums_are_those_of_the_matrix(marked: Path, run: Run) -> None:
    pairs = json.loads(run("matrix", marked, "--format", "json").stdout)["pairs"]
    messages: Counter[tuple[int, int]] = Counter()
    for source, destination, _, _, count, _ in rows(run, marked):
        assert source is not None and destination is not None and count is not None
        messages[source, destination] += count
    assert messages == {(pair["source"], pair["destination"]): pair["messages"] for pair in pairs}


def test_what_has_no_sizes_of_pairs_is_refused(profile: Path, run: Run) -> None:
    assert "a model has no message sizes" in refused(run, "matrix", profile, "--sizes", "--kind", "modelled")
    for options in (("--by", "node"), ("--check",), ("--to", "x.png")):
        said = refused(run, "matrix", profile, "--sizes", *options)
        assert f"it cannot be used with {options[0]}" in said


def test_peers_in_blocks_are_counted_below(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=4)
    build.tell_peer("sent", 0, 1, 2, 8)
    path = build.write(tmp_path / "blocks.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO peer (comm, flow, op, region, slice, rank, peer, first, peers, bin, messages, bytes) "
            "SELECT comm, flow, op, region, slice, 3, NULL, 0, 4, bin, 7, 56 FROM peer"
        )
    output = run("matrix", path, "--sizes").stdout
    assert output.endswith("not shown: 7 messages whose peer was counted in a block, or is unknown\n")
