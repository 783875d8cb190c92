# SPDX-License-Identifier: Apache-2.0
"""Profiles that are damaged or forged: what makes sense is shown, the rest is said in a line, and nothing else happens."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from build_profile import ProfileBuilder
from conftest import Run, marked_builder
from fuzz.damage import _recursive_view, long_texts
from fuzz.sound import former
from test_shards import split

from commlens.base.errors import CommlensError
from commlens.profile import _schema, database, limits
from commlens.profile.open import for_reading, open_profile

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
COMMANDS = (
    ("report",),
    ("report", "--by", "region"),
    ("regions",),
    ("comms",),
    ("coverage",),
    ("matrix", "--kind", "all"),
)


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a profile with regions and messages, which the test may spoil."""
    return marked_builder().write(tmp_path / "p.db")


def change(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path


def said(run: Run, path: Path, *command: str) -> list[str]:
    """Return what a command says beside its answer, without the name of the file; it must be an incomplete one."""
    name, *options = command
    result = run(name, path, *options)
    assert result.exit_code == 3, result.stderr
    return [line.removeprefix(f"commlens: {path}: ") for line in result.stderr.splitlines()]


# Opening.


def test_a_flipped_bit_in_the_schema_is_an_answer_or_one_line(profile: Path, run: Run) -> None:
    data = profile.read_bytes()
    places = [at for at in range(len(data)) if data.startswith((b"CREATE VIEW", b"CREATE TABLE"), at)]
    chance = random.Random(11)
    for _ in range(60):
        spoilt = bytearray(data)
        spoilt[chance.choice(places) + chance.randrange(150)] ^= 1 << chance.randrange(8)
        profile.write_bytes(spoilt)
        result = run("report", profile)
        assert result.exit_code in (0, 2, 3)
        assert result.exit_code == 0 or result.stderr.startswith(f"commlens: {profile}: ")


def test_a_view_that_is_damaged_hides_no_table(profile: Path, run: Run) -> None:
    whole = run("report", profile)
    data = profile.read_bytes()
    at = data.index(b"CREATE VIEW family_total")
    for byte in (b"X", b"\xff"):
        profile.write_bytes(data[: at + 8] + byte + data[at + 9 :])
        assert run("report", profile) == whole


@pytest.mark.parametrize("what", ["fifo", "device", "socket"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, run: Run, what: str) -> None:
    path = tmp_path / "p.db"
    if what == "fifo":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    else:
        import socket

        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    result = run("report", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"commlens: {path}: not a profile: neither a file nor a folder\n"


def test_nothing_appears_beside_a_profile_and_what_is_there_is_said(profile: Path, run: Run) -> None:
    before = run("report", profile).stdout
    with closing(sqlite3.connect(profile)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert [path.name for path in profile.parent.iterdir()] == ["p.db"]
    result = run("report", profile)
    assert (result.exit_code, result.stdout, result.stderr) == (0, before, "")
    assert [path.name for path in profile.parent.iterdir()] == ["p.db"]
    wal = profile.with_name("p.db-wal")
    wal.write_bytes(b"\1" * 5000)
    result = run("report", profile)
    assert (result.exit_code, result.stdout) == (3, before)
    assert result.stderr.startswith(f"commlens: {wal}: its changes are not read")
    assert sorted(path.name for path in profile.parent.iterdir()) == ["p.db", "p.db-wal"]


def test_a_file_that_takes_the_place_of_another_is_not_read(
    profile: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = profile.with_name("other.db")
    other.write_bytes(profile.read_bytes())
    uri = f"{other.as_uri()}?mode=ro&immutable=1"
    monkeypatch.setattr("commlens.profile.regular.ProfileFile.uri", lambda _self, _most_s: uri)
    result = run("report", profile)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "was removed or replaced while it was opened" in result.stderr


def test_the_connection_trusts_nothing_and_writes_nothing(profile: Path) -> None:
    with open_profile(str(profile)) as connection:
        for pragma, value in (
            ("trusted_schema", 0),
            ("cell_size_check", 1),
            ("query_only", 1),
            ("mmap_size", 0),
        ):
            row = connection.execute(f"PRAGMA {pragma}").fetchone()
            assert row is None or row[0] == value, pragma
        if hasattr(connection, "getlimit"):
            assert connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == limits.longest_for(
                profile.stat().st_size
            )


# The schema.


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_views_of_the_file_are_not_believed(profile: Path, run: Run, command: tuple[str, ...]) -> None:
    name, *options = command
    before = run(name, profile, *options)
    views = [name for name, relation in _schema.RELATIONS.items() if relation.kind == "view"]
    for number in range(len(views) * 3):
        chance = random.Random(number)
        with closing(sqlite3.connect(profile)) as connection:
            change(profile, *_recursive_view(chance, connection, ""))
    assert run(name, profile, *options) == before


def test_tables_and_views_that_a_user_has_added_are_left_alone(profile: Path, run: Run) -> None:
    change(
        profile,
        "CREATE TABLE mine (x)",
        "INSERT INTO mine VALUES (42)",
        "CREATE VIEW twice AS SELECT 2 * x AS y FROM mine",
    )
    assert run("report", profile).stderr == ""
    assert run("sql", profile, "SELECT y FROM twice", "--format", "csv").stdout == "y\n84\n"


@pytest.mark.parametrize(
    ("statements", "complaint"),
    [
        (["DROP TABLE callsite"], "table callsite is missing"),
        (
            [
                "DROP TABLE tag",
                f"CREATE VIEW tag AS {ENDLESS} SELECT i AS region, 'a' AS name, 'b' AS value FROM n",
            ],
            "table tag was not written by commlens and is left out",
        ),
        (
            ["DROP TABLE tag", "CREATE VIRTUAL TABLE tag USING fts4(region, name, value)"],
            "table tag was not written by commlens and is left out",
        ),
        (
            [
                "DROP TABLE tag",
                "CREATE TABLE tag (region INTEGER PRIMARY KEY, name AS (hex(region)), value)",
            ],
            "table tag was not written by commlens and is left out",
        ),
        (
            ["ALTER TABLE rank DROP COLUMN threads"]
            if sqlite3.sqlite_version_info >= (3, 35)
            else ["DROP TABLE rank"],
            "table rank lacks the columns threads"
            if sqlite3.sqlite_version_info >= (3, 35)
            else "table rank is missing",
        ),
    ],
)
def test_a_table_that_is_not_ours_is_left_out_and_the_others_are_read(
    profile: Path, run: Run, statements: list[str], complaint: str
) -> None:
    change(profile, "PRAGMA legacy_alter_table = ON", *statements)
    assert complaint in said(run, profile, "report")
    result = run("report", profile, "--format", "json")
    assert len(json.loads(result.stdout)["communicators"]) >= 2


def test_indices_and_keys_of_others_change_no_number(profile: Path, run: Run) -> None:
    before = run("report", profile, "--all-ranks")
    change(
        profile,
        "PRAGMA legacy_alter_table = ON",
        "CREATE INDEX of_others ON key(comm, op)",
        "CREATE INDEX of_text ON comm(LENGTH(name))",
        "CREATE TABLE other AS SELECT * FROM cell_row",
        "DROP TABLE cell_row",
        "ALTER TABLE other RENAME TO cell_row",
        "CREATE TRIGGER bad AFTER INSERT ON meta BEGIN DELETE FROM meta; END",
    )
    assert run("report", profile, "--all-ranks") == before


def test_a_profile_of_the_oldest_version_has_the_same_numbers(profile: Path, run: Run) -> None:
    old = former(profile)
    for options in ((), ("--all-ranks", "--unfold"), ("--callsites",)):
        new_one, old_one = (
            json.loads(run("report", path, "--format", "json", *options).stdout) for path in (profile, old)
        )
        for title in ("communicators", "operations"):
            assert old_one[title] == new_one[title]
    result = run("comms", old)
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", run("comms", profile).stdout)


# Types, ranges, references.


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        (
            "UPDATE rank SET app_ns = 'soon' WHERE rank = 1",
            "table rank: 1 row is invalid and left out",
        ),
        ("UPDATE rank SET calls = 2.5 WHERE rank = 1", "table rank: 1 row is invalid and left out"),
        ("UPDATE rank SET node = NULL WHERE rank < 2", "table rank: 2 rows are invalid and left out"),
        ("UPDATE rank SET mpi_ns = -1 WHERE rank = 0", "table rank: 1 row is invalid and left out"),
        (
            "UPDATE rank SET rank = 1099511627776 WHERE rank = 3",
            "table rank: 1 row is invalid and left out",
        ),
        ("UPDATE comm SET kind = 'odd' WHERE id = 2", "table comm: 1 row is invalid and left out"),
        (
            "UPDATE comm SET size = 'x' WHERE id = 2",
            "table comm: an invalid value is left out in 1 row",
        ),
        ("UPDATE key SET bin = 64 WHERE bin = 4", "table key: 1 row is invalid and left out"),
        (
            "UPDATE key SET op = 999 WHERE bin = 4",
            "table key: an invalid value is left out in 1 row",
        ),
        (
            "UPDATE cell_row SET time_ns = x'00' WHERE id = 5",
            "table cell_row: 1 row is invalid and left out",
        ),
        ("UPDATE op SET name = x'4d' WHERE id = 1", "table op: 1 row is invalid and left out"),
        (
            "UPDATE meta SET value = '12x' WHERE key = 'slice_ns'",
            "table meta: the value of slice_ns is invalid",
        ),
        (
            "UPDATE meta SET value = '٣' WHERE key = 'elapsed_ns'",
            "table meta: the value of elapsed_ns is invalid",
        ),
        ("UPDATE peer SET rank = -5 WHERE rank = 1", "table peer: 2 rows are invalid and left out"),
        (
            "UPDATE region SET parent = 99 WHERE id = 3",
            "table region: an invalid value is left out in 1 row",
        ),
        ("UPDATE region SET parent = id", "table region: an invalid value is left out in 8 rows"),
        (
            "UPDATE region SET name = HEX(ZEROBLOB(1000000)) WHERE id = 3",
            "table region: 1 row is invalid and left out",
        ),
    ],
)
def test_what_makes_no_sense_is_left_out_and_said(
    profile: Path, run: Run, statement: str, complaint: str
) -> None:
    change(profile, "PRAGMA ignore_check_constraints = ON", statement)
    for command in COMMANDS:
        assert complaint in said(run, profile, *command)


def test_counters_whose_sum_is_more_than_a_number_can_hold_are_left_out(profile: Path, run: Run) -> None:
    change(profile, "UPDATE cell_row SET time_ns = 1 << 60 WHERE id % 4 < 2")
    with closing(sqlite3.connect(profile)) as connection:
        (count,) = connection.execute("SELECT COUNT(*) FROM cell_row WHERE time_ns = 1 << 60").fetchone()
    assert said(run, profile, "report") == [f"table cell_row: {count} rows are invalid and left out"]
    change(profile, "UPDATE key SET usual_calls = 1 << 60")
    assert any("table cell_row" in line for line in said(run, profile, "report"))


@pytest.mark.parametrize("table", ["comm", "region"])
def test_parents_that_lead_back_come_to_an_end(profile: Path, run: Run, table: str) -> None:
    change(profile, f"UPDATE {table} SET parent = (id + 1) % 3 WHERE id < 3")
    for command in (*COMMANDS, ("comms", "--unfold")):
        assert any(f"table {table}" in line for line in said(run, profile, *command))
    unfolded = json.loads(run("comms", profile, "--unfold", "--format", "json").stdout)
    assert len(unfolded) == 3, "nobody is lost"


def test_regions_are_no_deeper_than_a_thread_goes(profile: Path, run: Run) -> None:
    change(
        profile,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
        " INSERT INTO region SELECT 99 + i, CASE i WHEN 1 THEN 0 ELSE 98 + i END, 'deep', 'region' FROM n",
    )
    assert "table region: 38 rows have an invalid parent" in said(run, profile, "regions")


@pytest.mark.parametrize("table", ["op", "comm", "callsite", "region"])
def test_a_table_that_has_lost_its_rows_has_the_one_for_what_is_not_known(
    profile: Path, run: Run, table: str
) -> None:
    change(profile, f"DELETE FROM {table}")
    for command in COMMANDS:
        assert f"table {table} has no rows" in said(run, profile, *command)
    rows = run("sql", profile, f"SELECT id FROM {table}", "--format", "csv").stdout
    assert rows == "id\n0\n"


def test_a_column_that_is_lost_is_empty(profile: Path, run: Run) -> None:
    change(
        profile,
        "ALTER TABLE meta RENAME TO old",
        "CREATE TABLE meta (key TEXT PRIMARY KEY) WITHOUT ROWID",
        "INSERT INTO meta SELECT key FROM old",
        "DROP TABLE old",
    )
    for command in COMMANDS:
        assert "table meta lacks the columns value" in said(run, profile, *command)
    rows = run(
        "sql", profile, "SELECT DISTINCT value FROM meta WHERE key <> 'ranks'", "--format", "csv"
    ).stdout
    assert rows in ('value\n""\n', "value\n\n")


@pytest.mark.parametrize("ranks", [10**7, 2**40, 2**63, 10**30, -1])
def test_a_claim_of_ranks_is_no_memory(profile: Path, run: Run, ranks: int) -> None:
    change(profile, f"UPDATE meta SET value = '{ranks}' WHERE key = 'ranks'")
    result = run("matrix", profile, "--format", "json")
    assert len(json.loads(result.stdout)["labels"]) == 4
    assert said(run, profile, "report") == ["table meta: the value of ranks is invalid"]
    report = json.loads(run("report", profile, "--format", "json").stdout)
    assert sum(row["calls"] for row in report["communicators"]) == sum(
        cell.calls for cell in marked_builder().cells
    ), "the keys say how many there are"


@pytest.mark.parametrize(
    "members", ["0-1099511627775", "0-9999999", "0-3:0", "3-0", "²", "0-" + "9" * 400, ",,,", "0-1:-1"]
)
def test_a_claim_of_members_is_no_memory(profile: Path, run: Run, members: str) -> None:
    change(profile, f"UPDATE comm SET members = '{members}', size = 1000000 WHERE id = 1")
    for command in (
        *COMMANDS,
        ("matrix", "--comm", "*"),
        ("matrix", "--kind", "modelled"),
        ("matrix", "--kind", "modelled", "--algorithm", "bcast=linear"),
        ("algorithms",),
    ):
        name, *options = command
        assert run(name, profile, *options).exit_code in (0, 3)


def test_ranks_iterations_and_slices_far_apart_are_no_memory(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2, meta={"slice_ns": "9" * 18})
    loop = build.region("loop", kind="loop")
    for place in range(200):
        build.spend(loop, 1, 1, 10, execution=1000 * place, iteration=2**21)
    path = build.write(tmp_path / "far.db")
    result = run("export", path, "--to", "tinyprof", "-o", tmp_path / "out.csv")
    assert result.exit_code == 2
    assert "too far apart for this format" in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_number_beyond_what_sqlite_has_is_refused(profile: Path, run: Run) -> None:
    for option, value in (("--rank", "9" * 25), ("--time", "9" * 25 + ":")):
        result = run("report", profile, option, value)
        assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize(
    "text", ["CAST(x'ff80' AS TEXT)", "CAST(x'eda080' AS TEXT)", "CHAR(0, 65, 0)", "CHAR(27, 155, 8238)"]
)
def test_a_text_may_have_any_bytes(profile: Path, run: Run, tmp_path: Path, text: str) -> None:
    for table, column in (
        ("comm", "name"),
        ("region", "name"),
        ("rank", "node"),
        ("callsite", "module"),
        ("op", "name"),
        ("tag", "value"),
    ):
        change(
            profile,
            f"UPDATE OR IGNORE {table} SET {column} = {text} WHERE rowid > 1"
            if table != "tag"
            else f"UPDATE OR IGNORE tag SET value = {text}",
        )
    for command in COMMANDS:
        name, *options = command
        assert run(name, profile, *options).exit_code in (0, 3)
    for to in ("hatchet", "chrome", "csv"):
        assert run("export", profile, "--to", to, "-o", tmp_path / to).exit_code in (0, 3)


# Damage to pages.


def root_of(path: Path, table: str) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    return (page - 1) * size, size


@pytest.mark.parametrize(
    "table", ["callsite", "tag", "metric_value", "comm", "rank", "meta", "key", "peer", "region"]
)
def test_a_page_of_one_table_that_is_damaged_leaves_the_others_readable(
    profile: Path, run: Run, table: str
) -> None:
    at, size = root_of(profile, table)
    data = profile.read_bytes()
    profile.write_bytes(data[:at] + b"\xff" * size + data[at + size :])
    for command in COMMANDS:
        lines = said(run, profile, *command)
        assert f"table {table} is damaged and cannot be read" in lines
    others = sorted(set(_schema.RELATIONS) - {table})
    for other in others:
        assert run("sql", profile, f"SELECT * FROM {other}").exit_code == 3, other


def test_what_lies_before_and_behind_a_damaged_page_is_saved(tmp_path: Path, run: Run) -> None:
    path = ProfileBuilder(ranks=4).write(tmp_path / "p.db")
    change(
        path,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
        " INSERT INTO callsite SELECT i, '/opt/app', '', i FROM n",
    )
    with closing(sqlite3.connect(path)) as connection:
        number = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'callsite' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 4"
        ).fetchone()[0]
    data = bytearray(path.read_bytes())
    data[(number - 1) * 4096 : number * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    (line,) = said(run, path, "report")
    kept = int(line.removeprefix("table callsite is damaged: ").split()[0].replace(",", ""))
    assert 1500 < kept < 2001
    rows = run(
        "sql", path, "SELECT MIN(id), MAX(id), COUNT(*) FROM callsite", "--format", "csv"
    ).stdout.splitlines()[1]
    assert rows == f"0,2000,{kept}"


def test_a_table_that_pages_make_endless_is_left_out(
    profile: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each interior page refers to one page many times: a table of a few pages with more rows than could be counted."""
    monkeypatch.setattr(limits, "LIMIT_S", 1.0)
    at, size = root_of(profile, "peer")
    data = bytearray(profile.read_bytes())
    leaf = at // size + 1
    pages = len(data) // size
    below = leaf
    cells = 300
    # A leaf with the rows there are, moved to the end; above it levels of pages, the last one in place of the root.
    data += data[at : at + size]
    below = pages + 1
    for level in range(8):
        head = (
            bytes([5])
            + bytes(2)
            + cells.to_bytes(2, "big")
            + (size - 5 * cells).to_bytes(2, "big")
            + bytes(1)
        )
        page = head + below.to_bytes(4, "big")
        page += b"".join((size - 5 * (i + 1)).to_bytes(2, "big") for i in range(cells))
        page += bytes(size - len(page) - 5 * cells) + (below.to_bytes(4, "big") + b"\x7f") * cells
        if level == 7:
            data[at : at + size] = page
        else:
            data += page
            below = len(data) // size
    data[28:32] = (len(data) // size).to_bytes(4, "big")
    profile.write_bytes(data)
    begin = time.process_time()
    assert "table peer is damaged and cannot be read" in said(run, profile, "report")
    assert time.process_time() - begin < 20


# Files that claim to be larger than what is stored in them.


def limited_report(path: Path) -> subprocess.CompletedProcess[str]:
    """Read a profile within the promised 10 s of processor time and 1 GiB; a kill by the limit is an exit code below 0."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    return subprocess.run(
        [sys.executable, "-m", "commlens", "report", path],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )


@pytest.mark.parametrize("table", ["meta", "rank"])
@pytest.mark.parametrize(("length", "levels"), [(40_000_000, 2), (1_040_000, 2), (250_000, 3), (200_000, 14)])
def test_texts_that_share_a_page_are_no_memory(profile: Path, table: str, length: int, levels: int) -> None:
    long_texts(profile, table, 1, length, levels)
    result = limited_report(profile)
    assert result.returncode == 3, result.stderr
    assert f"{profile}: table {table}" in result.stderr
    if length < 2 * 10**6:
        profile.write_bytes(profile.read_bytes())  # the same without holes
        assert limited_report(profile).returncode == 3


@pytest.mark.parametrize("size", [60 << 30, 1 << 42])
def test_a_hole_is_no_time(profile: Path, size: int) -> None:
    before = limited_report(profile).stdout
    os.truncate(profile, size)
    assert limited_report(profile).stdout == before


def test_pages_that_are_shared_are_no_time_in_a_file_of_holes(profile: Path) -> None:
    long_texts(profile, "meta", 1, 10_000, 14)
    os.truncate(profile, 100 << 30)
    result = limited_report(profile)
    assert result.returncode == 3
    assert f"{profile}: table meta is damaged" in result.stderr


def test_a_checksum_of_a_hole_is_not_waited_for(small: Path, tmp_path: Path) -> None:
    directory = split(small, tmp_path / "p.commlens")
    os.truncate(directory / "shard.0.db", 60 << 30)
    change(directory / "index.db", f"UPDATE shard SET bytes = {60 << 30} WHERE number = 0")
    result = limited_report(directory)
    assert result.returncode == 3
    assert "shard.0.db (ranks 0 to 1) is damaged: it takes too long to read" in result.stderr


def test_a_shard_is_asked_for_numbers_only(small: Path, tmp_path: Path) -> None:
    directory = split(small, tmp_path / "p.commlens")
    (directory / "index.db").unlink()
    long_texts(directory / "shard.0.db", "rank", 1, 40_000_000, 1)
    result = limited_report(directory)
    assert result.returncode == 3
    assert "only 2 of 4 ranks are in this profile" in " ".join(result.stdout.split())


def test_a_hole_in_a_file_nobody_reads_gives_no_time(small: Path, tmp_path: Path) -> None:
    directory = split(small, tmp_path / "p.commlens")
    (directory / "other.db").touch()
    os.truncate(directory / "other.db", 60 << 30)
    with open_profile(str(directory)) as connection:
        assert connection.size < 10**6


# Names that other users can exchange.


@pytest.fixture
def names_of_sqlite(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return what will be the files that SQLite opens."""
    found: list[Path] = []
    connect = sqlite3.connect

    def recorded(name: str, **more: Any) -> sqlite3.Connection:
        found.append(Path(unquote(urlsplit(name).path)).resolve())
        connection: sqlite3.Connection = connect(name, **more)
        return connection

    monkeypatch.setattr(sqlite3, "connect", recorded)
    return found


@pytest.mark.parametrize(("mode", "is_read_in_place"), [(0o755, True), (0o777, False), (0o1777, True)])
def test_sqlite_opens_no_name_that_others_can_exchange(
    profile: Path, run: Run, names_of_sqlite: list[Path], mode: int, is_read_in_place: bool
) -> None:
    before = run("report", profile)
    names_of_sqlite.clear()
    above = profile.parent
    while above != Path("/tmp") and above.parent != above:  # folders of pytest are private
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o011:
            above.chmod(0o711)
        above = above.parent
    profile.parent.chmod(mode)
    left = set(Path(tempfile.gettempdir()).glob("commlens-*"))
    assert run("report", profile) == before
    assert [name == profile for name in names_of_sqlite] == [is_read_in_place]
    assert set(Path(tempfile.gettempdir()).glob("commlens-*")) <= left


def test_a_profile_that_was_removed_is_read_from_its_descriptor(profile: Path, run: Run) -> None:
    before = run("report", profile).stdout
    with profile.open("rb") as file:
        profile.unlink()
        result = run("report", f"/dev/fd/{file.fileno()}")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[3:] == before.splitlines()[3:]


def test_where_no_folder_is_private_nothing_is_copied(
    profile: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commlens.profile.regular.is_fixed", lambda _: False)
    result = run("report", profile)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no folder for a copy that only you may change: set TMPDIR to one" in result.stderr


# Queries that do not end.


def test_a_query_that_takes_too_long_is_one_line(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIMIT_S", 0.5)
    too_long = pytest.raises(CommlensError, match="damaged: a query on a file of this size must not take")
    with too_long, open_profile(str(profile)) as connection:
        connection.execute(f"{ENDLESS} SELECT COUNT(*) FROM n").fetchone()


@pytest.fixture
def interrupted() -> Iterator[Callable[[float], None]]:
    """Return what sends a Ctrl-C to this process after some seconds."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_query_of_the_users_own_has_no_limit_but_ctrl_c(
    profile: Path, run: Run, monkeypatch: pytest.MonkeyPatch, interrupted: Callable[[float], None]
) -> None:
    monkeypatch.setattr(limits, "LIMIT_S", 0.2)
    interrupted(2.0)
    result = run("sql", profile, f"{ENDLESS} SELECT COUNT(*) FROM n")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "\nAborted!\n")


# Files of a directory.


@pytest.mark.parametrize("name", ["/etc/passwd", "../p.db", "..", "x/y", "shard.0.db"])
def test_the_index_names_only_files_of_its_directory(
    small: Path, tmp_path: Path, run: Run, name: str
) -> None:
    directory = split(small, tmp_path / "p.commlens")
    shutil.copy(small, tmp_path / "p.db")
    change(directory / "index.db", f"UPDATE shard SET file = '{name}' WHERE number = 1")
    result = run("report", directory)
    assert result.exit_code == 3
    assert f"{directory / 'index.db'}: the entry of file 1 is invalid and left out\n" in result.stderr
    assert "only 2 of 4 ranks are in this profile" in " ".join(result.stdout.split())


@pytest.mark.parametrize("file", ["shard.1.db", "index.db"])
def test_a_link_in_a_directory_is_not_followed(small: Path, tmp_path: Path, run: Run, file: str) -> None:
    directory = split(small, tmp_path / "p.commlens")
    target = (directory / file).rename(tmp_path / "elsewhere.db")
    (directory / file).symlink_to(target)
    result = run("report", directory)
    assert result.exit_code == 3
    if file == "shard.1.db":
        assert (
            f"{directory / file} (ranks 2 to 3) a symbolic link, which commlens does not follow here\n"
            in result.stderr
        )


def test_a_pipe_in_a_directory_is_not_waited_for(small: Path, tmp_path: Path, run: Run) -> None:
    directory = split(small, tmp_path / "p.commlens")
    (directory / "shard.1.db").unlink()
    os.mkfifo(directory / "shard.1.db")
    result = run("report", directory)
    assert result.exit_code == 3
    assert "shard.1.db (ranks 2 to 3) not a profile: neither a file nor a folder\n" in result.stderr


def test_rows_of_a_shard_that_make_no_sense_are_left_out(small: Path, tmp_path: Path, run: Run) -> None:
    directory = split(small, tmp_path / "p.commlens")
    (directory / "index.db").unlink()
    change(directory / "shard.0.db", "UPDATE rank SET calls = 'many' WHERE rank = 1")
    assert "table rank: 1 row is invalid and left out" in said(run, directory, "report")
    output = tmp_path / "merged.db"
    assert run("merge", directory, "-o", output).exit_code == 3
    assert run("report", output).exit_code == 0, "what is merged is sound"


def test_a_table_of_a_shard_that_is_a_view_is_not_read(small: Path, tmp_path: Path, run: Run) -> None:
    directory = split(small, tmp_path / "p.commlens")
    (directory / "index.db").unlink()
    change(
        directory / "shard.0.db",
        "DROP TABLE overhead",
        f"CREATE VIEW overhead AS {ENDLESS} SELECT i AS rank, 'init' AS what, i AS ns FROM n",
    )
    assert run("report", directory).exit_code == 3


# Files that a profile names.


def as_of_another(
    make: Callable[[database.Database], database.Database],
) -> Callable[[database.Database], database.Database]:
    def made(connection: database.Database) -> database.Database:
        connection.is_own = False
        return make(connection)

    return made


def test_a_module_that_is_no_file_is_not_waited_for(profile: Path, run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "module")
    change(profile, f"UPDATE callsite SET module = '{tmp_path / 'module'}', build_id = 'abcd'")
    assert run("report", profile, "--callsites").exit_code == 0


def test_a_profile_of_another_user_has_no_file_of_his_looked_at(
    profile: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []

    def no_id(path: Path) -> str:
        looked.append(path)
        return ""

    monkeypatch.setattr("commlens.symbols.callsites.build_id", no_id)
    module = tmp_path / "module"
    module.touch()
    change(profile, f"UPDATE callsite SET module = '{module}', build_id = 'abcd' WHERE id = 1")
    assert run("report", profile, "--callsites").exit_code == 0
    assert looked == [module]
    looked.clear()
    if os.geteuid() == 0:
        os.chown(module, 4242, -1)
    else:
        owner = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr("commlens.profile.open.for_reading", as_of_another(for_reading))
    assert run("report", profile, "--callsites").exit_code == 0
    assert looked == []


def test_a_damaged_statement_in_a_shard_hides_no_table(small: Path, tmp_path: Path, run: Run) -> None:
    directory = split(small, tmp_path / "p.commlens")
    before = run("report", directory).stdout
    (directory / "index.db").unlink()
    with closing(sqlite3.connect(directory / "shard.0.db")) as connection, connection:
        connection.execute("CREATE VIEW extra AS SELECT 'abc'")
    data = (directory / "shard.0.db").read_bytes()
    (directory / "shard.0.db").write_bytes(data.replace(b"SELECT 'abc'", b"SELECT \xff'bc'"))
    result = run("report", directory)
    assert (result.exit_code, result.stdout) == (3, before)
    assert result.stderr.count("\n") == 1
