# SPDX-License-Identifier: Apache-2.0
"""Damages valid profiles for the fuzzer of the reader: one function for each kind of damage.

Each takes a source of chance and the path of a copy, and leaves there what the reader is to read.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from commlens.profile import _schema
from fuzz.sound import TABLES, VIEWS, list_again

Damage = Callable[[Random, Path], None]

NUMBERS = (
    *(
        -1,
        0,
        1,
        2,
        3,
        7,
        63,
        64,
        65,
        128,
        255,
        4096,
        65535,
        65536,
        10**6,
        10**7,
        2**31 - 1,
        2**31,
        2**32,
        2**40,
    ),
    *(2**52, 2**53, 2**60, 2**60 + 1, 2**62, 2**63 - 1, -(2**31), -(2**60), -(2**63)),
)
TEXTS = (
    "\x1b[31mred\x1b]0;title\x07", "\u009b31m\u0085\u0090", "\u202eevil\u2066\u200f\ufeff", "a\nb\r\tc", "x" * 10**6, "", " ",
    "nul\0inside", "'; DROP TABLE meta; --", "%s%n{0}{x}", "=HYPERLINK(1)", "</svg><script>", "\u2028\u2029", "٣٤", "²",
    "0-1099511627775", "0-9999999", "0-1023:0", "5-2", ",,,,", "1-", "-1", "0-3 | 0-1099511627775", "0-7:-1", "9" * 400,
    "cart 4294967296x4294967296 periodic 00", "cart -1x4 periodic 00", "cart 0x0 periodic 11", "cart 2 periodic 1", "1e999",
    "nan", "inf", "0x10", "99999999999999999999", "/dev/zero", "/dev/stdin", "../../etc/passwd", "0-99999999999",
)  # fmt: skip
MEMBERS = tuple(text for text in TEXTS if text[:1].isdigit() or text[:1] in ",-5")
BLOBS = (b"\xff\xfe\x80", b"\xc3(", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"ok\xe2\x82")


@contextmanager
def changing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a profile for changes, with a time limit: queries on damaged data may not terminate."""
    with closing(sqlite3.connect(path)) as connection, connection:
        looks = iter(range(200))
        connection.set_progress_handler(lambda: next(looks, None) is None, 100_000)
        yield connection


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def tables_of(connection: sqlite3.Connection) -> list[str]:
    """Return the tables that have rows."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [name for name in names if name in TABLES or name == "cell"]


def put(chance: Random, connection: sqlite3.Connection, values: Callable[[], Any], times: int) -> None:
    """Store values in columns of some rows, sometimes of all rows of a table."""
    tables = tables_of(connection)
    for _ in range(times):
        table = chance.choice(tables)
        column = chance.choice(columns_of(connection, table))
        keys = connection.execute(f"SELECT {column} FROM {table} LIMIT 50").fetchall()
        if not keys:
            continue
        where = "" if chance.random() < 0.2 else f" WHERE {column} IS ?"
        arguments = [values()] + ([chance.choice(keys)[0]] if where else [])
        try:
            connection.execute(f'UPDATE OR REPLACE {table} SET "{column}" = ?{where}', arguments)
        except (sqlite3.IntegrityError, sqlite3.DataError):  # a rowid is an integer
            continue


def text_of(chance: Random) -> Any:
    """Return a hostile text, sometimes one that is not UTF-8."""
    return chance.choice(TEXTS)


def write_blobs(chance: Random, connection: sqlite3.Connection) -> None:
    """Store bytes that are not UTF-8 in text columns."""
    for _ in range(chance.randint(1, 5)):
        table = chance.choice([t for t in tables_of(connection) if t in _schema.RELATIONS])
        names = [c.name for c in _schema.RELATIONS[table].columns if c.type == "TEXT"]
        names = [name for name in names if name in columns_of(connection, table)]
        if names:
            connection.execute(
                f"UPDATE OR IGNORE {table} SET {chance.choice(names)} = CAST(? AS TEXT)",
                (chance.choice(BLOBS),),
            )


# The kinds.


def some_bytes(chance: Random, path: Path) -> None:
    """Flip bits, overwrite, exchange pages, cut off."""
    data = bytearray(path.read_bytes())
    begin = 0 if chance.random() < 0.1 else 100
    way = chance.randrange(6)
    size = struct.unpack_from(">H", data, 16)[0]
    pages = len(data) // size
    for _ in range(chance.choice((1, 1, 3, 20, 200))):
        at = chance.randrange(begin, len(data))
        if way == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif way == 1:
            data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif way == 2:  # in the head of a page, where its kind and pointers are
            data[max(begin, at // size * size + chance.randrange(12))] = chance.randrange(256)
        elif way == 3 and pages > 2:
            one, other = (chance.randrange(1, pages) * size for _ in range(2))
            data[one : one + size], data[other : other + size] = (
                data[other : other + size],
                data[one : one + size],
            )
        elif way == 4 and pages > 2:
            page = chance.randrange(1, pages) * size
            data[page : page + size] = bytes([chance.choice((0, 0xFF, 0x0D, 0x05))]) * size
        elif way == 5:
            data[at : at + chance.randrange(1, 64)] = chance.randbytes(8)
    if chance.random() < 0.1:
        data = data[: chance.randrange(1, len(data))]
        if chance.random() < 0.7 and len(data) > 100:
            data[28:32] = bytes(4)
    path.write_bytes(data)


def the_schema_text(chance: Random, path: Path) -> None:
    """Flip bits in the statements that the file keeps."""
    data = bytearray(path.read_bytes())
    places = [at for word in (b"CREATE VIEW", b"CREATE TABLE") for at in _places(data, word)]
    for _ in range(chance.randint(1, 3)):
        at = chance.choice(places) + chance.randrange(200)
        data[min(at, len(data) - 1)] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _places(data: bytearray, word: bytes) -> list[int]:
    found, at = [], data.find(word)
    while at >= 0:
        found.append(at)
        at = data.find(word, at + 1)
    return found


def types(chance: Random, path: Path) -> None:
    """Put values of other types where numbers and texts belong."""
    values = (None, "abc", "5", "", 2.5, -0.0, 1e300, float("inf"), b"\0\xff", 7, -3)
    with changing(path) as connection:
        if chance.random() < 0.5:  # columns without a type keep what they are given
            _loosen(connection, chance.choice(tables_of(connection)))
        put(chance, connection, lambda: chance.choice(values), chance.randint(1, 12))


def _loosen(connection: sqlite3.Connection, table: str) -> None:
    """Remove the types of all columns except the key."""
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_master SET sql = REPLACE(REPLACE(REPLACE(sql, ' INTEGER,', ','), ' TEXT,', ','), ' REAL,', ',') WHERE name = ?",
        (table,),
    )
    version = connection.execute("PRAGMA schema_version").fetchone()[0]
    connection.execute(f"PRAGMA schema_version = {version + 1}")
    connection.execute("PRAGMA writable_schema = OFF")


def ranges(chance: Random, path: Path) -> None:
    """Store numbers that are far too large, in rows and in the facts of the run."""
    with changing(path) as connection:
        if chance.random() < 0.5:
            key = chance.choice(
                ("ranks", "ranks", "ranks_collected", "slice_ns", "elapsed_ns", "nodes", "schema_version")
            )
            value = str(chance.choice(NUMBERS)) if chance.random() < 0.8 else chance.choice(TEXTS)
            connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
        if chance.random() < 0.4:
            connection.execute("UPDATE comm SET members = ? WHERE kind = 'intra'", (chance.choice(MEMBERS),))
            if chance.random() < 0.5:
                connection.execute("UPDATE comm SET size = ?", (chance.choice((4, 10**7, 2**20, 2**40)),))
        put(chance, connection, lambda: chance.choice(NUMBERS), chance.randint(0, 10))


def claims(chance: Random, path: Path) -> None:
    """Claim the largest number of ranks that the reader accepts, with single rows far apart."""
    size = chance.choice((10**5, 2**20 - 1, 2**20, 10**7))
    with changing(path) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'ranks'", (str(size),))
        connection.execute(
            "UPDATE comm SET size = ?, members = ? WHERE kind = 'intra'",
            (size, chance.choice((f"0-{size - 1}", f"{size - 1}-{2 * size}", f"0-{2 * size - 2}:2"))),
        )
        for table, column in (
            ("rank", "rank"),
            ("peer", "peer"),
            ("peer", "peers"),
            ("region_time", "iteration"),
        ):
            if chance.random() < 0.5 and table in tables_of(connection):
                connection.execute(
                    f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {column} = (SELECT MAX({column}) FROM {table})",
                    (size - 1,),
                )
        if chance.random() < 0.3 and "peer" in tables_of(connection):
            connection.execute(f"UPDATE peer SET peer = NULL, first = 0, peers = {size}")


def cycles(chance: Random, path: Path) -> None:
    """Create parents that form loops, are nested very deeply, or do not exist."""
    with changing(path) as connection:
        for table in ("comm", "region"):
            ids = [id for (id,) in connection.execute(f"SELECT id FROM {table}")]
            way = chance.randrange(5)
            if way == 0:
                connection.execute(f"UPDATE {table} SET parent = id")
            elif way == 1:
                for id in ids:
                    connection.execute(
                        f"UPDATE {table} SET parent = ? WHERE id = ?", (chance.choice(ids), id)
                    )
            elif way == 2:
                connection.execute(f"UPDATE {table} SET parent = id + {chance.choice((1, -1, 1000))}")
            elif way == 3:
                _chain(chance, connection, table)
            else:
                connection.execute(
                    f"UPDATE {table} SET id = {chance.choice((2, 2**40, 99))} WHERE id = {chance.choice(ids)}"
                )
        if chance.random() < 0.3:
            connection.execute("UPDATE comm SET family = id % 3, parent = (id + 1) % 3")
        if chance.random() < 0.3:
            table = chance.choice(
                ("op", "comm", "region", "callsite", "key", "flow", "metric", "rank", "line")
            )
            if table in tables_of(connection):
                connection.execute(f"DELETE FROM {table} WHERE ABS(RANDOM()) % 2")


def _chain(chance: Random, connection: sqlite3.Connection, table: str) -> None:
    """Add rows of which each is the parent of the next."""
    columns = columns_of(connection, table)
    values = ", ".join(
        {"id": "1000 + i", "parent": "999 + i"}.get(column, f"{table}.{column}") for column in columns
    )
    connection.execute(
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {chance.choice((200, 3000))})"
        f" INSERT OR IGNORE INTO {table} SELECT {values} FROM n JOIN (SELECT * FROM {table} ORDER BY id DESC LIMIT 1) AS {table}"
    )


def hostile_text(chance: Random, path: Path) -> None:
    """Store texts that affect terminals, files and parsers."""
    with changing(path) as connection:
        put(chance, connection, lambda: text_of(chance), chance.randint(1, 12))
        if chance.random() < 0.3:
            write_blobs(chance, connection)
        for key in ("program", "command_line", "start_time", "mpi_library", "options", "detail"):
            if chance.random() < 0.1:
                connection.execute("UPDATE meta SET value = ? WHERE key = ?", (text_of(chance), key))


RECURSIVE = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {columns} FROM n"


def schema(chance: Random, path: Path) -> None:
    """Change the definitions of tables and views."""
    with changing(path) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA legacy_alter_table = ON")
        for _ in range(chance.randint(1, 3)):
            table = chance.choice(tables_of(connection))
            for sql in chance.choice(SCHEMA_CHANGES)(chance, connection, table):
                try:
                    connection.execute(sql)
                except sqlite3.Error:  # a former change is in the way
                    break


def _recursive_view(chance: Random, _connection: sqlite3.Connection, _table: str) -> list[str]:
    name = chance.choice(VIEWS)
    columns = ", ".join(f"i AS {c.name}" for c in _schema.RELATIONS[name].columns)
    return [f"DROP VIEW IF EXISTS {name}", f"CREATE VIEW {name} AS {RECURSIVE.format(columns=columns)}"]


def _table_as_view(_chance: Random, connection: sqlite3.Connection, table: str) -> list[str]:
    columns = ", ".join(f"i AS {c}" for c in columns_of(connection, table))
    return [f"DROP TABLE {table}", f"CREATE VIEW {table} AS {RECURSIVE.format(columns=columns)}"]


def _trigger(_chance: Random, _connection: sqlite3.Connection, table: str) -> list[str]:
    return [
        f"CREATE TRIGGER {table}_t AFTER INSERT ON {table} BEGIN DELETE FROM meta; END",
        f"CREATE VIEW IF NOT EXISTS extra AS SELECT load_extension('x'), * FROM {table}",
    ]


def _index(chance: Random, connection: sqlite3.Connection, table: str) -> list[str]:
    column = chance.choice(columns_of(connection, table))
    return [
        f"CREATE INDEX {table}_i ON {table}({chance.choice((column, f'ABS({column})', f'LENGTH({column})'))})"
    ]


def _drop(_chance: Random, _connection: sqlite3.Connection, table: str) -> list[str]:
    return [f"DROP TABLE {table}"]


def _drop_column(chance: Random, connection: sqlite3.Connection, table: str) -> list[str]:
    kept = [c for c in columns_of(connection, table) if chance.random() < 0.7] or ["rowid AS nothing"]
    return [
        f"CREATE TABLE changed AS SELECT {', '.join(kept)} FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE changed RENAME TO {table}",
    ]


def _no_key(_chance: Random, _connection: sqlite3.Connection, table: str) -> list[str]:
    return [
        f"CREATE TABLE changed AS SELECT * FROM {table} UNION ALL SELECT * FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE changed RENAME TO {table}",
    ]


def _computed(_chance: Random, connection: sqlite3.Connection, table: str) -> list[str]:
    first, *others = columns_of(connection, table)
    made = ", ".join([f"{first} INTEGER PRIMARY KEY", *(f"{c} AS (randomblob(1000000000))" for c in others)])
    return [f"DROP TABLE {table}", f"CREATE TABLE {table} ({made})", f"INSERT INTO {table} VALUES (1)"]


def _virtual(_chance: Random, connection: sqlite3.Connection, table: str) -> list[str]:
    columns = ", ".join(columns_of(connection, table))
    return [f"DROP TABLE {table}", f"CREATE VIRTUAL TABLE {table} USING fts4({columns})"]


def _capitals(_chance: Random, _connection: sqlite3.Connection, table: str) -> list[str]:
    return [f"ALTER TABLE {table} RENAME TO changed", f"ALTER TABLE changed RENAME TO {table.upper()}"]


def _twice(chance: Random, _connection: sqlite3.Connection, table: str) -> list[str]:
    other = chance.choice(TABLES)
    return [
        "PRAGMA writable_schema = ON",
        chance.choice(
            (
                f"UPDATE sqlite_master SET rootpage = {chance.choice((0, 1, 2, 9999, 2**31 - 1))} WHERE name = '{table}'",
                f"UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = '{other}') WHERE name = '{table}'",
                f"INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE name = '{table}'",
                f"UPDATE sqlite_master SET sql = CAST(x'ff00fe' AS TEXT) WHERE name = '{table}'",
                f"UPDATE sqlite_master SET sql = NULL WHERE name = '{table}'",
                f"UPDATE sqlite_master SET type = 'view' WHERE name = '{table}'",
                f"UPDATE sqlite_master SET name = CAST(x'ff1b' AS TEXT) WHERE name = '{table}'",
                f"UPDATE sqlite_master SET sql = REPLACE(sql, ' (', ' (\"\u202e\x1b[31m\", ') WHERE name = '{table}'",
            )
        ),
    ]


SCHEMA_CHANGES = (
    _recursive_view, _recursive_view, _table_as_view, _trigger, _index, _drop, _drop_column, _no_key, _computed, _virtual,
    _capitals, _twice, _twice,
)  # fmt: skip


def many_rows(chance: Random, path: Path) -> None:
    """Multiply rows of a table, to reveal quadratic run time."""
    with changing(path) as connection:
        table = chance.choice(
            ("comm", "region", "callsite", "coverage", "metric", "tag", "peer", "shard", "position")
        )
        if table not in tables_of(connection):
            return
        columns = columns_of(connection, table)
        key = {"coverage": "symbol", "tag": "value", "shard": "number", "position": "thread"}.get(table, "id")
        values = ", ".join("1000 + i" if c == key else c for c in columns)
        if not connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() and table == "shard":
            connection.execute("INSERT INTO shard VALUES (0, NULL, 0, 1, 1, 1, -1)")
        connection.execute(
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {chance.choice((500, 5000))})"
            f" INSERT OR IGNORE INTO {table} SELECT {values} FROM n JOIN (SELECT * FROM {table} LIMIT 1 OFFSET 1)"
        )


def no_file(chance: Random, path: Path) -> None:
    """Put something else in place of the file."""
    data = path.read_bytes()
    path.unlink()
    way = chance.randrange(7)
    if way == 0:
        os.mkfifo(path)
    elif way == 1:
        path.symlink_to(chance.choice(("/dev/zero", "/dev/null", "/dev/stdin", "/dev/tty", str(path))))
    elif way == 2:
        path.mkdir()
    elif way == 3:
        path.write_bytes(chance.randbytes(chance.choice((0, 15, 99, 100, 5000))))
    elif way == 4:
        path.write_bytes(data[:100] + chance.randbytes(chance.randrange(5000)))
    elif way == 5:
        with path.open("wb") as file:  # sparse
            file.write(data)
            file.truncate(chance.choice((2**33, 2**40)))
    else:
        path.write_bytes(data)
        Path(f"{path}{chance.choice(('-wal', '-shm', '-journal'))}").write_bytes(chance.randbytes(5000))


def holes(chance: Random, path: Path) -> None:
    """Make a file far larger than its stored bytes, with holes."""
    if chance.random() < 0.5:
        loops(chance, path)
    os.truncate(path, path.stat().st_size + chance.choice((2**12, 2**22, 2**30, 60 * 2**30, 2**40)))


def loops(chance: Random, path: Path) -> None:
    """Make rows share pages, with long texts of one page that refers to itself."""
    table, column = chance.choice(
        (("meta", 1), ("rank", 1), ("rank", 2), ("comm", 2), ("callsite", 1), ("region", 2))
    )
    lengths = (10_000, 255_000, 2**20, 2**22 - 2**12, 40_000_000, 2**29)
    long_texts(path, table, column, chance.choice(lengths), chance.choice((1, 2, 3, 14)))


def long_texts(path: Path, table: str, column: int, length: int, levels: int) -> None:
    """Put rows in place of a table, each with a text of about `length` bytes, all of which are one page of the file.

    Above the rows are levels of pages, each of which refers many times to the page below it. The file grows by a hole, as
    no row is longer than the file (https://www.sqlite.org/fileformat.html, section 1.6).
    """
    with closing(sqlite3.connect(path)) as connection:
        size: int = connection.execute("PRAGMA page_size").fetchone()[0]
        root, sql = connection.execute(
            "SELECT rootpage, sql FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone()
    is_index = "WITHOUT ROWID" in sql
    data = bytearray(path.read_bytes())
    loop = len(data) // size + 1
    least = (size - 12) * 32 // 255 - 23

    def cell(key: int) -> bytes:
        name = b"k%d" % key if is_index else b""
        head, long = b"", length
        for _ in range(2):  # so that as little as possible of it is in the cell
            long -= (len(head) + long - least) % (size - 4)
            first = [13 + 2 * len(name)] if is_index else []
            types = b"".join(map(varint, [*first, *[0] * (column - len(first)), 13 + 2 * long]))
            head = varint(len(types) + 1) + types + name
        return (
            varint(len(head) + long)
            + (b"" if is_index else varint(key))
            + (head + b"A" * least)[:least]
            + loop.to_bytes(4, "big")
        )

    def page(kind: int, cells: list[bytes], right: bytes = b"") -> bytes:
        at, places = size, b""
        for one in cells:
            at -= len(one)
            places += at.to_bytes(2, "big")
        head = bytes((kind, 0, 0)) + len(cells).to_bytes(2, "big") + at.to_bytes(2, "big") + b"\0" + right
        return (head + places).ljust(at, b"\0") + b"".join(reversed(cells))

    several = range(1, (size - 12) // (len(cell(1)) + 8) + 1)
    data += (loop.to_bytes(4, "big").ljust(size, b"B")) + page(
        10 if is_index else 13, [cell(i) for i in several]
    )
    for level in range(levels):
        below = (len(data) // size).to_bytes(4, "big")
        cells = [below + (cell(100 * level + i) if is_index else varint(i)) for i in several]
        one = page(2 if is_index else 5, cells, below)
        if level == levels - 1:
            data[(root - 1) * size : root * size] = one
        else:
            data += one
    total = max(len(data), length + 10 * size) // size
    data[28:32] = total.to_bytes(4, "big")
    path.write_bytes(data)
    os.truncate(path, total * size)


def varint(number: int) -> bytes:
    """Return a number as SQLite writes it."""
    found = bytes([number & 0x7F])
    while number := number >> 7:
        found = bytes([number & 0x7F | 0x80]) + found
    return found


def several(chance: Random, path: Path) -> None:
    """Damage a profile in several ways."""
    ways = [types, ranges, claims, cycles, hostile_text, schema, many_rows]
    chosen = [chance.choice(ways) for _ in range(chance.randint(2, 3))]
    # A view that never ends, in place of a table, would keep the ways after it.
    for way in sorted(chosen, key=lambda way: way is schema):
        try:
            way(chance, path)
        except (
            sqlite3.Error,
            UnicodeDecodeError,
        ):  # what the first way has left is not what the second needs
            continue
    if chance.random() < 0.5:
        some_bytes(chance, path)


FILES: dict[str, Damage] = {
    "bytes": some_bytes,
    "schema text": the_schema_text,
    "types": types,
    "schema": schema,
    "ranges": ranges,
    "claims": claims,
    "cycles": cycles,
    "text": hostile_text,
    "rows": many_rows,
    "several": several,
    "holes": holes,
    "loops": loops,
    "no file": no_file,
}


def directory(chance: Random, path: Path) -> None:
    """Damage a profile of several files: what the index lists, and the files."""
    index, shard = path / "index.db", path / "shard.1.db"
    way = chance.randrange(9)
    if way == 0:
        chance.choice((index, shard)).unlink()
    elif way == 1:
        no_file(chance, chance.choice((index, shard)))
    elif way == 2:
        names = (
            "/etc/passwd",
            "../small.db",
            "..",
            "shard.0.db",
            "x/y",
            "a\0b",
            "",
            str(shard),
            "index.db",
            "\x1b[31m",
        )
        with changing(index) as connection:
            connection.execute("UPDATE shard SET file = ? WHERE number = 1", (chance.choice(names),))
    elif way == 3:
        target = shard.rename(path.parent / "elsewhere.db")
        shard.symlink_to(target)
    elif way == 4:
        with changing(index) as connection:
            put(chance, connection, lambda: chance.choice((*NUMBERS, *TEXTS, None, 2.5)), 10)
    elif way == 5:
        with changing(index) as connection:
            connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)"
                " INSERT INTO shard SELECT i, 'shard.' || i || '.db', 0, 1, 1, 1, -1 FROM n"
            )
    elif way == 6:
        shutil.copy(shard, path / "shard.7.db")
        index.unlink()
    else:
        # Of files whose checksums are those of the damaged ones.
        kind = chance.choice([kind for kind in FILES if kind not in ("no file", "bytes")])
        FILES[kind](chance, chance.choice((index, shard)))
        try:
            list_again(path)
        except (sqlite3.Error, OSError, ValueError):
            return
