# SPDX-License-Identifier: Apache-2.0
"""Adds rows to a dataset, each job once, and puts its small files together."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from commlens.fleet._dataset import TABLES
from commlens.fleet.files import Part, put_together, read_numbers, write_rows
from commlens.fleet.log import DataFile, Log, State

LARGE = 128 << 20
"""Bytes from which on a file is never rewritten."""
MOST = 512 << 20
"""Bytes of the files that are put together to one."""
TOGETHER = 8
"""Files of about one size that are put together. A byte is rewritten once for each factor of 8 that its file grows."""
SMALLEST = 64 << 10
GRACE_S = 3600
"""Time for which a replaced file stays for those who are reading it."""
ABANDONED_S = 86400
"""Age from which on a file without a commit was left by a writer that was killed."""

IDENTITIES = {"job": "job", "refused": "id", "batch_job": "id"}
"""Tables whose rows have an identity, and its column: the rows of all other tables belong to a row of table job."""

Rows = Mapping[str, Sequence[tuple[Any, ...]]]


class Dataset:
    """A dataset that is open for reading and writing.

    Parameters
    ----------
    root : Path
        Its folder, which is made if it does not exist.
    """

    def __init__(self, root: Path):
        self.root = root
        self.log = Log.create(root)
        self.state = self.log.read()
        self._known: dict[tuple[str, str], frozenset[int]] = {}

    def _numbers(self, file: DataFile, column: str) -> frozenset[int]:
        """Return the numbers in a column of a file; files never change."""
        key = (file.path, column)
        if key not in self._known:
            self._known[key] = frozenset(read_numbers(self.root, file, column))
        return self._known[key]

    def known(self, table: str, column: str | None = None) -> set[int]:
        """Return the identities of the rows of a table, or the numbers in another column."""
        found: set[int] = set()
        for file in self.state.of(table):
            found |= self._numbers(file, column or IDENTITIES[table])
        return found

    def clusters(self, table: str) -> set[str]:
        """Return the clusters of the rows of a table, as in the paths of its files."""
        return {file.cluster for file in self.state.of(table)}

    def _new(self, rows: Rows) -> tuple[dict[str, list[tuple[Any, ...]]], bool]:
        """Return the rows that are not in the dataset yet, and whether that is all of them."""
        found: dict[str, list[tuple[Any, ...]]] = {}
        of_table: dict[str, set[int]] = {}
        for table, column in IDENTITIES.items():
            if rows.get(table):
                known = self.known(table)
                at = [c.name for c in TABLES[table].columns].index(column)
                # A batch may have a row twice. Of a job, the caller has all rows once: they name only their job.
                first = {row[at]: row for row in reversed(rows[table]) if row[at] not in known}
                found[table] = list(reversed(first.values()))
                of_table[table] = set(first)
        for table, some in rows.items():
            if table not in IDENTITIES:
                found[table] = [row for row in some if row[0] in of_table.get("job", ())]
        return found, sum(map(len, found.values())) == sum(map(len, rows.values()))

    def add(self, rows: Rows) -> dict[str, int]:
        """Add the rows of jobs that the dataset does not have yet; return how many were new by table.

        The rows are on the disk when this returns. Other writers may add the same jobs at the same time: then one of them
        finds that, and adds the rest.

        Raises
        ------
        CommlensError
            They cannot be written; the dataset is as before.
        """
        self.log.follow(self.state)
        new, _ = self._new(rows)
        while any(new.values()):
            files = write_rows(self.root, new)
            with self._deleted_in_vain(files):
                rest = self._commit(files, new)
            if rest is None:
                break
            self._delete(file.path for file in files)
            new = rest
        return {table: len(some) for table, some in new.items()}

    def _commit(self, files: Sequence[DataFile], rows: Rows) -> dict[str, list[tuple[Any, ...]]] | None:
        """Commit files; or return the rows that another writer has not added meanwhile, if it added some."""
        while not self.log.commit(self.state, files):
            self.log.follow(self.state)
            rest, is_all = self._new(rows)
            if not is_all:
                return rest
        return None

    @contextmanager
    def _deleted_in_vain(self, files: Sequence[DataFile]) -> Iterator[None]:
        """Delete files whose commit fails: readers look at no file without one, but a full disk needs the space."""
        try:
            yield
        except BaseException:
            self.log.follow(self.state)  # a commit that was made lists them
            self._delete(file.path for file in files if file.path not in self.state.files)
            raise

    def _delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(OSError):
                (self.root / path).unlink()

    def compact(self, *, everything: bool = False) -> int:
        """Put small files together; return the number of files that others replace.

        Parameters
        ----------
        everything : bool
            All small files of a part, and not only when there are many of about one size.
        """
        self.log.follow(self.state)
        count = 0
        for group in groups(self.state, everything=everything):
            if self._is_whole(group):
                new = put_together(self.root, group)
                with self._deleted_in_vain([new]):
                    is_replaced = self._replace(group, new)
                if is_replaced:
                    count += len(group)
                else:
                    self._delete([new.path])
        self._clean()
        return count

    def _is_whole(self, group: Sequence[DataFile]) -> bool:
        """Return whether no other writer has replaced a file of a group."""
        return all(file.path in self.state.files for file in group)

    def _replace(self, group: Sequence[DataFile], new: DataFile) -> bool:
        """Commit a file in the place of a group; return False if another writer was faster."""
        while self._is_whole(group):
            if self.log.commit(self.state, [new], [file.path for file in group]):
                return True
            self.log.follow(self.state)
        return False

    def _clean(self) -> None:
        """Delete replaced files after a time, and those that killed writers left behind."""
        now = time.time()
        expired = [path for path, at in self.state.removed.items() if now - at > GRACE_S]
        self._delete(expired)
        for path in expired:
            del self.state.removed[path]
        for table in TABLES:
            for file in (self.root / table).glob("*/*/*.parquet"):
                name = str(file.relative_to(self.root))
                with suppress(OSError):
                    is_lost = name not in self.state.files and name not in self.state.removed
                    if is_lost and now - file.stat().st_mtime > ABANDONED_S:
                        file.unlink()


def groups(state: State, *, everything: bool = False) -> list[list[DataFile]]:
    """Return the groups of files that should become one file each.

    >>> state = State(files={f"job/c/2026-01/{i}.parquet": DataFile(f"job/c/2026-01/{i}.parquet", 1, 9000) for i in range(9)})
    >>> [len(group) for group in groups(state)], [len(group) for group in groups(State(files={}))]
    ([9], [])
    """
    parts: dict[tuple[Part, int], list[DataFile]] = defaultdict(list)
    for path in sorted(state.files):
        file = state.files[path]
        if file.bytes < LARGE:
            tier = 0 if everything else tier_of(file.bytes)
            parts[(file.table, file.cluster, file.month), tier].append(file)
    found = []
    for of_tier in parts.values():
        if len(of_tier) < (2 if everything else TOGETHER):
            continue
        group: list[DataFile] = []
        for file in sorted(of_tier, key=lambda file: file.bytes):
            if sum(one.bytes for one in group) + file.bytes > MOST:
                found.append(group)
                group = []
            group.append(file)
        found.append(group)
    return [group for group in found if len(group) > 1]


def tier_of(size: int) -> int:
    """Return the class of a file's size: each class is eight times the one before.

    >>> tier_of(1), tier_of(SMALLEST), tier_of(8 * SMALLEST), tier_of(LARGE - 1)
    (0, 1, 2, 4)
    """
    tier = 0
    while size >= SMALLEST:
        tier, size = tier + 1, size // TOGETHER
    return tier
