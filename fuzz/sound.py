# SPDX-License-Identifier: Apache-2.0
"""Sound profiles that the reader's fuzzer damages: together they have rows in every table."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import fuzz.paths  # noqa: F401 - before the builders of the tests

# isort: split

from build_profile import ProfileBuilder, size_bin
from conftest import marked_builder, small_builder
from summarise import summarised
from test_shards import split

from commlens.profile import _schema

TABLES = tuple(name for name, relation in _schema.RELATIONS.items() if relation.kind == "table")
VIEWS = tuple(name for name, relation in _schema.RELATIONS.items() if relation.kind == "view")


def talking_builder() -> ProfileBuilder:
    """Return eight ranks in all kinds of traffic, some of them in calls that had not returned."""
    build = ProfileBuilder(
        ranks=8,
        nodes=2,
        meta={
            "inside": "measured",
            "mpi_library": "Open MPI v4.1.4",
            "mpi_family": "openmpi",
            "slice_ns": "1000000",
            "program": "talk",
            "options": "COMMLENS_MATRIX=all\nCOMMLENS_MATRIX_BY=both",
        },
    )
    solve = build.region("solve")
    low = build.comm(
        "s0.1", [0, 1, 2, 3], parent=1, creator="MPI_Comm_split", topology="cart 2x2 periodic 10"
    )
    inter = build.comm("i0.2", [0, 1, 4, 5], kind="inter", parent=low, members="0-1 | 4-5", remote_size=2)
    for rank in range(8):
        for step, size in ((1, 4096), (7, 100), (3, 0)):
            build.send(rank, (rank + step) % 8, 2 + step, size, region=solve, slice=rank % 3)
        build.count(1, "MPI_Isend", rank, 9, 10**6, 4096, 9 * 4096, region=solve)
        for op, block in (("MPI_Bcast", 1024), ("MPI_Allreduce", 64), ("MPI_Alltoallv", None)):
            build.count(1, op, rank, 5, 10**6, block, 5 * (block or 70), 5 * (block or 70))
        build.tell_peer("one_to_all", rank, None, 5, 1024, op="MPI_Bcast")
        build.tell_peer("put", rank, (rank + 2) % 8, 3, 256)
        build.tell_peer("share", rank, (rank + 1) % 8, 3, 14, op="MPI_Alltoallv")
        build.tell_peer("sent", rank % 2, None, 4, 10, inter, first=0, peers=2)
    for rank in range(1, 8):  # a binomial tree from 0
        build.tell_peer(
            "collective", rank & (rank - 1), rank, 5, 1024, op="MPI_Bcast", call_bin=size_bin(1024)
        )
        build.tell_peer("collective", rank, (rank + 1) % 8, 5, 64, op="MPI_Allreduce", call_bin=size_bin(64))
    build.stands(1, "MPI_Bcast", 1, 10**8, region=solve)
    build.stands(2, "MPI_Isend", low, 10**8, inside=False)
    build.imports += [
        ("MPI_Bcast", "talk", "MPI_Bcast", "measured", None),
        ("MPIX_A", "libx.so", "MPIX_A", "unseen", "an extension of this MPI library"),
    ]
    return build


def with_slices(path: Path) -> Path:
    """Add the counters over time to a profile."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT OR IGNORE INTO slice SELECT key.comm, key.op, rank.rank, key.bin & 3, 2, 1000, 10, 20 FROM key JOIN rank"
        )
    return path


def former(path: Path) -> Path:
    """Write a profile as version 2 had it: counters in a table."""
    old = path.with_suffix(".v2.db")
    old.write_bytes(path.read_bytes())
    columns = ", ".join(column.name for column in _schema.FORMER["cell"].columns)
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.executescript(
            f"CREATE TABLE kept AS SELECT {columns} FROM cell; CREATE TABLE keys AS SELECT * FROM key;"
        )
        for name in VIEWS:
            connection.execute(f"DROP VIEW {name}")
        for name in TABLES:
            if _schema.RELATIONS[name].since > 2 or name == "key":
                connection.execute(f"DROP TABLE {name}")
        connection.executescript(
            _schema.FORMER["cell"].sql + "INSERT INTO cell SELECT * FROM kept; DROP TABLE kept;"
            "CREATE TABLE key (id INTEGER PRIMARY KEY, comm INTEGER, op INTEGER, bin INTEGER, region INTEGER, callsite INTEGER);"
            "INSERT INTO key SELECT id, comm, op, bin, region, callsite FROM keys; DROP TABLE keys; PRAGMA user_version = 2;"
        )
    return old


def make(folder: Path) -> list[Path]:
    """Write them; return their paths, the last one a directory."""
    small = with_slices(small_builder().write(folder / "small.db"))
    marked = with_slices(marked_builder().write(folder / "marked.db"))
    talking = with_slices(talking_builder().write(folder / "talking.db"))
    return [
        small,
        marked,
        talking,
        summarised(marked),
        former(small),
        split(small, folder / "small.commlens"),
    ]


MOST_BYTES = 1 << 26
"""Of a file that is read as a whole here; one with holes may have a terabyte."""


def list_again(directory: Path) -> None:
    """Let the index of a directory have the sizes and checksums that its files have now; it may be damaged itself."""
    with closing(sqlite3.connect(directory / "index.db")) as connection, connection:
        sql = """SELECT number, file FROM (SELECT number, file FROM shard LIMIT 100)
                 WHERE typeof(number) = 'integer' AND typeof(file) = 'text'"""
        for number, name in connection.execute(sql).fetchall():
            if (directory / name).stat().st_size > MOST_BYTES:
                continue
            content = (directory / name).read_bytes()
            connection.execute(
                "UPDATE shard SET bytes = ?, crc32 = ? WHERE number = ?",
                (len(content), zlib.crc32(content), number),
            )
