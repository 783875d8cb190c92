# SPDX-License-Identifier: Apache-2.0
"""A profile of several files is read as one; what is missing or damaged is said and left out."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import EMPTY, ProfileBuilder
from conftest import Run, small_builder

from commlens.profile import _schema, open_profile
from commlens.profile.incomplete import IncompleteProfile

BLOCK = 2
TABLES_OF_RANKS = (
    *("rank", "slice", "peer", "position", "overhead"),
    *("region_time", "loop_time", "loop_bin", "region_slice", "metric_value", "metric_series", "waiting"),
    *("thread", "thread_cell", "thread_region", "untimed", "event_count", "datatype_use"),
)


def split(whole: Path, into: Path, world: int = 7) -> Path:
    """Write a profile as the library does with several aggregators: each shard with a usual of its own."""
    into.mkdir()
    index = into / "index.db"
    index.write_bytes(whole.read_bytes())
    with closing(sqlite3.connect(whole)) as connection:
        ranks = int(connection.execute("SELECT value FROM meta WHERE key = 'ranks'").fetchone()[0])
    listed = []
    for number, first in enumerate(range(0, ranks, BLOCK)):
        shard = into / f"shard.{number}.db"
        last = first + BLOCK - 1
        with closing(sqlite3.connect(shard)) as connection:
            connection.executescript(EMPTY)
            for view in [name for name, relation in _schema.RELATIONS.items() if relation.kind == "view"]:
                connection.execute(f"DROP VIEW {view}")
            connection.execute("ATTACH ? AS whole", (str(whole),))
            for table in ("meta", "comm", "comm_set", "op", "flow", "region", "metric", "tag", "callsite"):
                connection.execute(f"INSERT INTO main.{table} SELECT * FROM whole.{table}")
            connection.execute("UPDATE meta SET value = ? WHERE key = 'shard'", (str(number),))
            connection.execute(
                "INSERT INTO main.key SELECT id, comm, op, bin, region, callsite, usual_calls + ?1, usual_sent - ?1,"
                " usual_received, usual_noncontig FROM whole.key", (number,)
            )  # fmt: skip
            connection.execute(
                "INSERT INTO main.cell_row SELECT id, calls - ?1, time_ns, time_min_ns, time_max_ns, bytes_sent + ?1,"
                " bytes_received, noncontiguous FROM whole.cell_row WHERE id % ?2 BETWEEN ?3 AND ?4",
                (number, ranks, first, last),
            )
            for table in TABLES_OF_RANKS:
                connection.execute(
                    f"INSERT INTO main.{table} SELECT * FROM whole.{table} WHERE rank BETWEEN ? AND ?",
                    (first, last),
                )
            connection.execute("UPDATE rank SET world = ?", (world,))
            cells = connection.execute("SELECT COUNT(*) FROM cell_row").fetchone()[0]
            connection.commit()
        content = shard.read_bytes()
        listed.append((number, shard.name, first, BLOCK, cells, len(content), zlib.crc32(content)))
    with closing(sqlite3.connect(index)) as connection:
        for table in ("cell_row", *TABLES_OF_RANKS):
            connection.execute(f"DELETE FROM {table}")
        connection.executemany("INSERT INTO shard VALUES (?, ?, ?, ?, ?, ?, ?)", listed)
        connection.commit()
        connection.execute("VACUUM")
    return into


@pytest.fixture
def directory(small: Path, tmp_path: Path) -> Path:
    """Return the small profile as two files of two ranks each."""
    return split(small, tmp_path / "small.commlens")


COMMANDS = (
    ("report",),
    ("report", "--all-ranks", "--callsites"),
    ("report", "--format", "json"),
    ("comms",),
    ("coverage",),
    ("sql", "SELECT * FROM counter ORDER BY comm, operation, bin, callsite, rank"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(c)[:20])
def test_a_directory_is_read_like_one_file(
    small: Path, directory: Path, run: Run, command: tuple[str, ...]
) -> None:
    name, *options = command
    whole, parts = run(name, small, *options), run(name, directory, *options)
    assert (parts.exit_code, parts.stderr) == (0, "")
    assert parts.stdout == whole.stdout


def test_merge_makes_the_file_there_would_have_been(small: Path, directory: Path, run: Run) -> None:
    result = run("merge", directory)
    merged = directory.with_name("small.db")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{merged}\n", "")
    for command, *options in COMMANDS:
        assert run(command, merged, *options).stdout == run(command, small, *options).stdout
    with closing(sqlite3.connect(merged)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    again = run("merge", directory)
    assert (again.exit_code, again.stderr) == (2, f"commlens: {merged}: exists\n")


def test_all_that_is_known_of_regions_is_put_together(marked: Path, tmp_path: Path, run: Run) -> None:
    whole = tmp_path / "marked.db"
    whole.write_bytes(marked.read_bytes())
    with closing(sqlite3.connect(whole)) as connection, connection:
        connection.execute("INSERT INTO datatype VALUES (1, 'dup of MPI_INT', 4, 0, 4)")
        connection.execute("INSERT INTO datatype_use SELECT 1, 0, 1, 0, 0, rank, 1, 10, 4, 0 FROM rank")
    parts = split(whole, tmp_path / "parts.commlens")
    tables = [name for name, relation in _schema.RELATIONS.items() if relation.kind == "table"]
    with open_profile(str(whole)) as one, open_profile(str(parts)) as several:
        for table in set(tables) - {"shard", "key", "cell_row"}:  # what is usual depends on the files
            rows = [tuple(row) for row in one.execute(f"SELECT * FROM {table} ORDER BY 1, 2")]
            assert [tuple(row) for row in several.execute(f"SELECT * FROM {table} ORDER BY 1, 2")] == rows
            assert rows or table in (
                "slice",
                "position",
                "comm_set",
                "coverage",
                "setting",
                "scope",
                "spread",
                "frame",
                "thread",
                "thread_cell",
                "thread_region",
                "untimed",  # test_untimed.py
                "event_count",  # test_counters.py
            ), table
    (parts / "index.db").unlink()
    result = run("sql", parts, "SELECT COUNT(*) FROM tag")
    assert (result.exit_code, result.stdout.split()) == (3, ["COUNT(*)", "4"]), "names are in each file, too"


def test_files_from_before_there_were_regions_are_read(small: Path, directory: Path, run: Run) -> None:
    before = run("report", small).stdout
    (directory / "index.db").unlink()
    for shard in directory.glob("shard.*.db"):
        with closing(sqlite3.connect(shard)) as connection:
            for table in (
                "region_time",
                "loop_time",
                "loop_bin",
                "region_slice",
                "metric_value",
                "metric",
                "tag",
            ):
                connection.execute(f"DROP TABLE {table}")
            connection.execute("ALTER TABLE region RENAME TO newer")
            connection.execute("CREATE TABLE region AS SELECT id, parent, name FROM newer")
            connection.execute("PRAGMA user_version = 4")
    result = run("report", directory)
    assert result.stdout == before
    missing = f"commlens: {directory / 'index.db'} cannot be read: communicators, regions and other names that no readable rank used are missing\n"
    assert result.stderr == missing, "and no row makes no sense"
    merged = directory.with_name("merged.db")
    assert run("merge", directory, "-o", merged).stderr == missing
    for path in (directory, merged):
        result = run("regions", path)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.endswith("has schema version 4: code regions need version 5 or later\n")


def rows_of(path: Path) -> dict[int, int]:
    """Return the cells of each rank."""
    with pytest.warns(IncompleteProfile), open_profile(str(path)) as connection:
        return {
            row[0]: row[1] for row in connection.execute("SELECT rank, SUM(calls) FROM cell GROUP BY rank")
        }


def damage(path: Path, how: str) -> None:
    """Do to a file what happens to files."""
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        at = content.rindex(b"node")
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("missing", "no such file"),
        ("truncated", "truncated to "),
        ("empty", "not a profile: the file is empty"),
        ("flipped", "is damaged: its size or checksum is wrong"),
    ],
)
def test_a_damaged_shard_is_left_out_and_said(directory: Path, run: Run, how: str, words: str) -> None:
    damage(directory / "shard.1.db", how)
    result = run("report", directory)
    assert result.exit_code == 3
    assert result.stderr.startswith(f"commlens: {directory / 'shard.1.db'} (ranks 2 to 3) {words}")
    assert result.stderr.count("\n") == 1
    assert "only 2 of 4 ranks are in this profile" in " ".join(result.stdout.split())
    assert set(rows_of(directory)) == {0, 1}


def test_a_shard_of_another_job_is_left_out(small: Path, directory: Path, tmp_path: Path, run: Run) -> None:
    other = split(small, tmp_path / "other.commlens", world=8)
    (directory / "index.db").unlink()
    (directory / "shard.2.db").write_bytes((directory / "shard.1.db").read_bytes())
    (directory / "shard.1.db").write_bytes((other / "shard.1.db").read_bytes())
    result = run("report", directory)
    assert result.exit_code == 3
    assert f"{directory / 'shard.1.db'} belongs to another job\n" in result.stderr
    assert set(rows_of(directory)) == {0, 1, 2, 3}


def test_without_the_index_all_rows_are_there(small: Path, directory: Path, run: Run) -> None:
    (directory / "index.db").unlink()
    result = run("report", directory, "--all-ranks")
    assert result.exit_code == 3
    assert (
        result.stderr
        == f"commlens: {directory / 'index.db'} cannot be read: communicators, regions and other names that no readable rank used are missing\n"
    )
    assert result.stdout == run("report", small, "--all-ranks").stdout
    assert run("merge", directory).exit_code == 3
    with closing(sqlite3.connect(directory.with_name("small.db"))) as merged:
        assert merged.execute("SELECT value FROM meta WHERE key = 'shard'").fetchall() == [("",)]


@pytest.mark.parametrize("how", ["missing", "truncated", "empty", "garbled"])
def test_an_index_that_cannot_be_read_hides_no_rank(
    small: Path, directory: Path, run: Run, tmp_path: Path, how: str
) -> None:
    index = directory / "index.db"
    if how == "garbled":
        content = index.read_bytes()
        with closing(sqlite3.connect(index)) as connection:
            root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'comm'").fetchone()[0]
        index.write_bytes(content[: (root - 1) * 4096] + b"\xff" * 4096 + content[root * 4096 :])
    else:
        damage(index, how)
    result = run("report", directory, "--all-ranks")
    assert result.exit_code == 3
    assert result.stderr.startswith(f"commlens: {index} ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == run("report", small, "--all-ranks").stdout
    merged = tmp_path / "merged.db"
    assert run("merge", directory, "-o", merged).exit_code == 3
    again = run("report", merged, "--all-ranks")
    assert (again.exit_code, again.stderr, again.stdout) == (0, "", result.stdout)


def test_one_shard_is_a_profile_of_its_ranks(directory: Path, run: Run) -> None:
    result = run("report", directory / "shard.1.db")
    assert result.exit_code == 0
    assert "only 2 of 4 ranks are in this profile" in " ".join(result.stdout.split())


def test_nothing_readable_is_refused(directory: Path, run: Run) -> None:
    for shard in directory.glob("shard.*.db"):
        shard.write_bytes(b"")
    result = run("report", directory)
    assert result.exit_code == 2
    assert f"commlens: {directory}: none of its files can be read\n" in result.stderr
    empty = directory.with_name("empty")
    empty.mkdir()
    assert run("merge", empty).stderr == f"commlens: {empty}: not a profile directory\n"
    assert run("report", empty).exit_code == 2


def test_a_profile_of_no_calls_can_be_split(tmp_path: Path, run: Run) -> None:
    whole = ProfileBuilder(ranks=4, meta=dict(small_builder().meta)).write(tmp_path / "none.db")
    parts = split(whole, tmp_path / "none.commlens")
    assert run("report", parts).stdout == run("report", whole).stdout
