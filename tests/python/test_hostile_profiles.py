# SPDX-License-Identifier: Apache-2.0
"""Profiles that are damaged or forged: what makes sense is shown, the rest is said in a line, and nothing else happens."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
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
from fuzz.damage import _recursive_view
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
    ("metrics", "--series"),
    ("threads", "--each"),
    ("threads", "--by", "regions"),
    ("datatypes", "--uses"),
    ("comms",),
    ("coverage",),
    ("matrix", "--kind", "all"),
    ("matrix", "--sizes"),
    ("tune",),
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


@pytest.mark.long
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


# Damage to pages.


def root_of(path: Path, table: str) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    return (page - 1) * size, size


@pytest.mark.long
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
        " INSERT INTO callsite SELECT i, '/opt/app', '', i, NULL FROM n",
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
    profile: Path,
    run: Run,
    names_of_sqlite: list[Path],
    mode: int,
    is_read_in_place: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    before = run("report", profile)
    copies = tmp_path_factory.mktemp("copies")  # other tests have copies in the usual folder at the same time
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    names_of_sqlite.clear()
    above = profile.parent
    while above != Path("/tmp") and above.parent != above:  # folders of pytest are private
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o011:
            above.chmod(0o711)
        above = above.parent
    profile.parent.chmod(mode)
    assert run("report", profile) == before
    assert [name == profile for name in names_of_sqlite] == [is_read_in_place]
    assert [copies in name.parents for name in names_of_sqlite] == [not is_read_in_place]
    assert not list(copies.iterdir())


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


@pytest.mark.long
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


@pytest.mark.long
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

    monkeypatch.setattr("commlens.symbols.debug_files.build_id", no_id)
    monkeypatch.setattr("commlens.symbols.debug_files.debug_link", no_id)
    module = tmp_path / "module"
    module.touch()
    change(profile, f"UPDATE callsite SET module = '{module}', build_id = 'abcd' WHERE id = 1")
    assert run("report", profile, "--callsites").exit_code == 0
    assert looked == [module, module], "its build id, and the name of its debug information"
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
