# SPDX-License-Identifier: Apache-2.0
"""The log of a dataset: which Parquet files belong to it.

Each commit is one small file, `_log/N.json`, that lists the files it adds and removes. Its number is taken by a hard link,
which fails if another writer took it first: this is atomic on local disks, NFS, Lustre and GPFS alike, and needs no lock
that a killed writer could leave behind. A writer that is killed before the link has changed nothing; after it, everything.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.outputs import NO_LINKS, sync_folder
from commlens.fleet._dataset import TABLES, VERSION

HEAD = "commlens-dataset.json"
FOLDER = "_log"
NAME = re.compile(r"([0-9]{12})\.(json|checkpoint)")
SAFE_PATH = re.compile(r"[a-z_]+/[A-Za-z0-9._%-]+/[0-9-]*[a-z]*/[A-Za-z0-9_-]+\.parquet")
CHECKPOINT_EVERY = 32
KEPT_COMMITS = 1000
KEPT_S = 7 * 86400
"""Commits that a checkpoint contains stay until they are this old and this many behind. A writer that sees an old state of
the folder, as NFS may show it, then finds its number taken."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a dataset; its path is relative to the dataset."""

    path: str
    rows: int
    bytes: int

    @property
    def table(self) -> str:
        """The table whose rows it has."""
        return self.path.split("/")[0]

    @property
    def cluster(self) -> str:
        """The machine whose jobs it has, as in the path."""
        return self.path.split("/")[1]

    @property
    def month(self) -> str:
        """The month in which they started, or "unknown"."""
        return self.path.split("/")[2]


@dataclass
class State:
    """The files of a dataset after commit `number`, and the removed files with the time of their removal, s since 1970."""

    number: int = 0
    files: dict[str, DataFile] = field(default_factory=dict)
    removed: dict[str, float] = field(default_factory=dict)

    def of(self, table: str) -> list[DataFile]:
        """Return the files of a table, in the order of their paths."""
        return [self.files[path] for path in sorted(self.files) if self.files[path].table == table]

    def become(self, other: State) -> None:
        """Take over another state."""
        self.number, self.files, self.removed = other.number, other.files, other.removed

    def apply(self, number: int, added: Iterable[DataFile], removed: Iterable[str], at: float) -> None:
        """Apply a commit."""
        self.number = number
        for path in removed:
            if self.files.pop(path, None) is not None:
                self.removed[path] = at
        for file in added:
            self.files[file.path] = file


def store(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file and make sure that it is on the disk."""
    with path.open("x", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())


class Log:
    """The log of one dataset.

    Raises
    ------
    CommlensError
        The folder is no dataset, or of a newer version.
    """

    def __init__(self, root: Path):
        self.root, self.folder = root, root / FOLDER
        try:
            head = json.loads((root / HEAD).read_text(encoding="utf-8"))
            version = int(head["version"])
        except FileNotFoundError:
            raise CommlensError(f"{root}: not a dataset of commlens ingest: there is no {HEAD}") from None
        except OSError as error:
            raise CommlensError(f"{root}: cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, KeyError):
            raise CommlensError(f"{root / HEAD}: damaged") from None
        if version > VERSION:
            raise CommlensError(
                f"{root}: a dataset of version {version}, but this commlens knows at most {VERSION}: use a newer commlens"
            )
        self.version = version

    @staticmethod
    def create(root: Path) -> Log:
        """Return the log of a dataset for writing: it is made if there is none, in a new or an empty folder.

        A dataset of an older version becomes one of this version: its files lack columns, which are NULL.

        Raises
        ------
        CommlensError
            The folder has other files, or cannot be written.
        """
        head = root / HEAD
        try:
            root.mkdir(parents=True, exist_ok=True)
            if not head.exists():
                if any(
                    path.name != FOLDER and not path.name.startswith(f"{HEAD}.") for path in root.iterdir()
                ):
                    if head.exists():  # another writer has made it meanwhile
                        return Log(root)
                    raise CommlensError(f"{root}: neither a dataset nor an empty folder")
                (root / FOLDER).mkdir(exist_ok=True)
                Log._write_head(root)
            elif Log(root).version < VERSION:
                # An older commlens would lose the new columns when it puts files together: now it refuses the dataset.
                Log._write_head(root)
        except OSError as error:
            raise CommlensError(f"{root}: cannot be written: {error.strerror or error}") from None
        return Log(root)

    @staticmethod
    def _write_head(root: Path) -> None:
        """Write the head of this version. Writers that begin at the same time write the same."""
        temporary = root / f"{HEAD}.{secrets.token_hex(8)}"
        try:
            store(temporary, {"version": VERSION, "tables": list(TABLES)})
            temporary.rename(root / HEAD)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(root)

    def read(self) -> State:
        """Return the files of the dataset now.

        Raises
        ------
        CommlensError
            A commit is damaged or missing.
        """
        for _ in range(3):  # a checkpoint may take the place of commits while they are read
            names = [match for match in map(NAME.fullmatch, self._names()) if match]
            checkpoints = [int(match[1]) for match in names if match[2] == "checkpoint"]
            state = State()
            try:
                if checkpoints:
                    state = self._checkpoint(max(checkpoints))
                for number in sorted(int(match[1]) for match in names if match[2] == "json"):
                    if number > state.number:
                        self._apply(state, number)
                return state
            except FileNotFoundError:
                continue
        raise CommlensError(f"{self.folder}: a commit is missing")

    def _names(self) -> list[str]:
        try:
            return [path.name for path in self.folder.iterdir()]
        except OSError as error:
            raise CommlensError(f"{self.folder}: cannot be read: {error.strerror}") from None

    def follow(self, state: State) -> None:
        """Bring a state up to date: apply the commits after it.

        The commits that a checkpoint makes superfluous are deleted after a while; a writer that did nothing meanwhile
        continues with the checkpoint.
        """
        while True:
            try:
                self._apply(state, state.number + 1)
            except FileNotFoundError:
                names = filter(None, map(NAME.fullmatch, self._names()))
                newest = max((int(match[1]) for match in names if match[2] == "checkpoint"), default=0)
                if newest <= state.number:
                    return
                state.become(self._checkpoint(newest))

    def path_of(self, number: int) -> Path:
        """Return the file of a commit."""
        return self.folder / f"{number:012d}.json"

    def _load(self, path: Path) -> tuple[list[DataFile], Mapping[str, Any]]:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            added = [DataFile(str(name), int(rows), int(size)) for name, rows, size in content["added"]]
            if not all(SAFE_PATH.fullmatch(file.path) for file in added):
                raise ValueError
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CommlensError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise CommlensError(f"{path}: damaged") from None
        return added, content

    def _apply(self, state: State, number: int) -> None:
        if number != state.number + 1:
            raise CommlensError(f"{self.folder}: commit {state.number + 1} is missing")
        added, content = self._load(self.path_of(number))
        state.apply(number, added, content.get("removed", ()), float(content.get("at", 0)))

    def _checkpoint(self, number: int) -> State:
        added, content = self._load(self.folder / f"{number:012d}.checkpoint")
        removed = {str(path): float(at) for path, at in content.get("removed", {}).items()}
        return State(number, {file.path: file for file in added}, removed)

    def commit(self, state: State, added: Iterable[DataFile], removed: Iterable[str] = ()) -> bool:
        """Take the next number for a change; return False if another writer took it first.

        Raises
        ------
        CommlensError
            The commit cannot be written.
        """
        added, removed, at = list(added), list(removed), time.time()
        name = self.path_of(state.number + 1)
        mark = secrets.token_hex(16)
        temporary = self.folder / f".{mark}"
        content = {
            "mark": mark,
            "at": at,
            "added": [[f.path, f.rows, f.bytes] for f in added],
            "removed": removed,
        }
        try:
            try:
                store(temporary, content)
                self._link(temporary, name, mark)
            finally:
                with suppress(OSError):
                    temporary.unlink()
            sync_folder(self.folder)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno in NO_LINKS:
                why = "its file system has no hard links, by which writers take turns"
                raise CommlensError(f"{self.root}: cannot be a dataset: {why}") from None
            raise CommlensError(f"{name}: cannot be written: {error.strerror or error}") from None
        state.apply(state.number + 1, added, removed, at)
        if state.number % CHECKPOINT_EVERY == 0:
            self._write_checkpoint(state)
        return True

    def _link(self, temporary: Path, name: Path, mark: str) -> None:
        """Give a commit its number. Over NFS a link may succeed although its answer is lost, and then fail as existing."""
        try:
            os.link(temporary, name)
        except OSError as error:
            with suppress(OSError, ValueError, KeyError):
                if json.loads(name.read_text(encoding="utf-8"))["mark"] == mark:
                    return
            if error.errno == errno.EEXIST:
                raise FileExistsError(str(name)) from None
            raise

    def _write_checkpoint(self, state: State) -> None:
        """Write the whole state to one file, so that readers need not read all commits. It is no loss if that fails."""
        name = self.folder / f"{state.number:012d}.checkpoint"
        temporary = self.folder / f".{secrets.token_hex(16)}"
        files = [[file.path, file.rows, file.bytes] for file in state.files.values()]
        with suppress(OSError):
            try:
                store(temporary, {"added": files, "removed": state.removed})
                temporary.rename(name)
            finally:
                with suppress(OSError):
                    temporary.unlink()
            self._forget(state.number)

    def _forget(self, last: int) -> None:
        """Delete what the newest checkpoint makes superfluous, long after it did."""
        now = time.time()
        for match in filter(None, map(NAME.fullmatch, self._names())):
            path = self.folder / match[0]
            if int(match[1]) < last - KEPT_COMMITS and now - path.stat().st_mtime > KEPT_S:
                path.unlink()
