# SPDX-License-Identifier: Apache-2.0
"""The Parquet files of a dataset: written, read and put together, by pyarrow."""

from __future__ import annotations

import os
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from commlens.base.errors import CommlensError
from commlens.base.outputs import sync_folder
from commlens.base.packages import load
from commlens.fleet._dataset import TABLES
from commlens.fleet.log import DataFile

ROWS_AT_ONCE = 1 << 17
"""Rows of a row group, and about the most that are in memory while files are put together."""
MOST_CLUSTER = 100
UNKNOWN = "unknown"
MONTH = re.compile(r"\d{4}-\d\d", re.ASCII)

Part = tuple[str, str, str]
"""A table, a cluster and a month, as in the path of a file."""


def arrow() -> Any:
    """Return pyarrow."""
    return load("pyarrow")


def parquet() -> Any:
    """Return pyarrow.parquet."""
    return load("pyarrow.parquet")


@cache
def schema_of(table: str) -> Any:
    """Return the columns of a table for pyarrow."""
    pa = arrow()
    types = {
        "BIGINT": pa.int64(),
        "INTEGER": pa.int32(),
        "DOUBLE": pa.float64(),
        "TEXT": pa.string(),
        "TIMESTAMP": pa.timestamp("us"),
    }
    # All may be NULL: older versions of the dataset lack some.
    return pa.schema([pa.field(column.name, types[column.type]) for column in TABLES[table].columns])


def counters_of(table: str) -> list[str]:
    """Return the columns of a table whose values are hardly ever equal: times, bytes and calls.

    A dictionary of these is as large as they are. Packed into as many bits as their differences have, operations take a third
    less space than with one, and are read in half of the time (docs/evidence/fleet.md).

    >>> counters_of("site")
    ['calls', 'time_ns', 'bytes_sent', 'bytes_received']
    """
    columns = TABLES[table].columns
    return [
        c.name for c in columns if c.type == "BIGINT" and (c.unit in ("ns", "bytes") or c.name == "calls")
    ]


def cluster_folder(cluster: str) -> str:
    """Return the name of a cluster in a path.

    >>> cluster_folder("mare nostrum/5"), cluster_folder("")
    ('mare%20nostrum%2F5', 'unknown')
    """
    name = quote(cluster, safe="").replace("~", "%7E").replace(".", "%2E") if cluster else UNKNOWN
    return name[:MOST_CLUSTER]


def part_of(table: str, row: Sequence[Any]) -> Part:
    """Return the part of the dataset to which a row belongs."""
    names = [column.name for column in TABLES[table].columns]
    cluster, month = row[names.index("cluster")], row[names.index("month")]
    return table, cluster_folder(cluster), month if MONTH.fullmatch(month) else UNKNOWN


def _safe_text(value: Any) -> Any:
    """Return a text that UTF-8 can represent: file names may have other bytes."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


class PartWriter:
    """Writes one file of a part; at the end it is on the disk, but belongs to the dataset only after a commit."""

    def __init__(self, root: Path, part: Part):
        self._table = part[0]
        self.path = f"{'/'.join(part)}/{secrets.token_hex(16)}.parquet"
        self._file = root / self.path
        self._rows = 0
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._sink = self._file.open("xb")
        except OSError as error:
            raise CommlensError(f"{self._file}: cannot be written: {error.strerror}") from None
        schema = schema_of(self._table)
        counters = counters_of(self._table)
        self._writer = parquet().ParquetWriter(
            self._sink,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name not in counters],
            column_encoding=dict.fromkeys(counters, "DELTA_BINARY_PACKED"),
        )

    def write(self, table: Any) -> None:
        """Append rows, a pyarrow table."""
        self._rows += table.num_rows
        self._writer.write_table(table, row_group_size=ROWS_AT_ONCE)

    def finish(self) -> DataFile:
        """Return the file, completely written."""
        self._writer.close()
        self._sink.flush()
        os.fsync(self._sink.fileno())
        self._sink.close()
        sync_folder(self._file.parent)
        return DataFile(self.path, self._rows, self._file.stat().st_size)

    def discard(self) -> None:
        """Delete the file."""
        with suppress(OSError, ValueError):
            self._sink.close()
        with suppress(OSError):
            self._file.unlink()


def table_of(table: str, rows: Sequence[Sequence[Any]]) -> Any:
    """Return rows as a pyarrow table."""
    pa, schema = arrow(), schema_of(table)
    columns = list(zip(*rows)) if rows else [()] * len(schema)
    arrays = [
        pa.array(map(_safe_text, column) if pa.types.is_string(kind.type) else column, kind.type)
        for column, kind in zip(columns, schema)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_rows(root: Path, rows: Mapping[str, Iterable[Sequence[Any]]]) -> list[DataFile]:
    """Write rows to new files, one for each part.

    Raises
    ------
    CommlensError
        They cannot be written, as on a full disk; then no file is left.
    """
    parts: dict[Part, list[Sequence[Any]]] = defaultdict(list)
    for table, some in rows.items():
        for row in some:
            parts[part_of(table, row)].append(row)
    written: list[PartWriter] = []
    files: list[DataFile] = []
    try:
        for part, of_part in parts.items():
            written.append(PartWriter(root, part))
            written[-1].write(table_of(part[0], of_part))
            files.append(written[-1].finish())
    except OSError as error:
        _discard(written)
        raise CommlensError(f"{root}: cannot be written: {error.strerror or error}") from None
    except BaseException:
        _discard(written)
        raise
    return files


def _discard(writers: Iterable[PartWriter]) -> None:
    for writer in writers:
        writer.discard()


def conformed(table: str, rows: Any) -> Any:
    """Return rows of a file with the columns of this version: those that it lacks are NULL."""
    pa, schema = arrow(), schema_of(table)
    arrays = [
        rows.column(kind.name).cast(kind.type)
        if kind.name in rows.column_names
        else pa.nulls(rows.num_rows, kind.type)
        for kind in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def read_batches(root: Path, files: Iterable[DataFile]) -> Iterator[Any]:
    """Yield the rows of files of one table, about ROWS_AT_ONCE at a time.

    Raises
    ------
    CommlensError
        A file is damaged or missing.
    """
    pa = arrow()
    pending: list[Any] = []
    rows = 0
    for file in files:
        try:
            with parquet().ParquetFile(root / file.path) as source:
                for batch in source.iter_batches(batch_size=ROWS_AT_ONCE):
                    pending.append(conformed(file.table, pa.Table.from_batches([batch])))
                    rows += batch.num_rows
                    if rows >= ROWS_AT_ONCE:
                        yield pa.concat_tables(pending)
                        pending, rows = [], 0
        except (OSError, pa.ArrowException) as error:
            raise CommlensError(f"{root / file.path}: cannot be read: {error}") from None
    if pending:
        yield pa.concat_tables(pending)


def put_together(root: Path, files: Sequence[DataFile]) -> DataFile:
    """Write the rows of several files of one part to a new file.

    Raises
    ------
    CommlensError
        A file cannot be read, or the new one cannot be written.
    """
    first = files[0]
    writer = PartWriter(root, (first.table, first.cluster, first.month))
    try:
        for rows in read_batches(root, files):
            writer.write(rows)
        return writer.finish()
    except OSError as error:
        writer.discard()
        raise CommlensError(f"{root}: cannot be written: {error.strerror or error}") from None
    except BaseException:
        writer.discard()
        raise


def read_numbers(root: Path, file: DataFile, column: str) -> list[int]:
    """Return a column of integers of a file.

    Raises
    ------
    CommlensError
        The file is damaged or missing.
    """
    pa = arrow()
    try:
        found: list[int] = parquet().read_table(root / file.path, columns=[column]).column(column).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise CommlensError(f"{root / file.path}: cannot be read: {error}") from None
    return found
