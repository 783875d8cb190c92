# SPDX-License-Identifier: Apache-2.0
"""Reads profiles into a dataset: in batches, each profile once, and on past damaged ones."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape
from commlens.fleet._dataset import CODES, TABLES, Code
from commlens.fleet.dataset import Dataset
from commlens.fleet.job import JobReader, Origin, Rows, month_of, state_of
from commlens.fleet.pseudonyms import Pseudonyms
from commlens.profile import open_profile
from commlens.profile.incomplete import IncompleteProfile
from commlens.profile.shards import is_directory

MOST_ROWS = 200_000
"""Rows of a batch: about 100 MB of memory."""
MOST_S = 60.0
"""Time after which a batch is written although it is small."""
SETTLED_S = 10.0
"""Age from which on a profile is no longer being copied."""
ENDINGS = (".db", ".commlens")


@dataclass
class Counts:
    """What became of the profiles.

    Attributes
    ----------
    added, known, refused : int
        Profiles by outcome.
    reasons : list of str
        A line for each refused one.
    """

    added: int = 0
    known: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)


def profiles_in(folder: Path) -> Iterator[Path]:
    """Yield the profiles below a folder, in the order of their names; symbolic links to folders are not followed."""
    for top, folders, files in os.walk(folder):
        folders.sort()
        shards = [name for name in folders if name.endswith(ENDINGS) and is_directory(Path(top, name))]
        for name in shards:
            folders.remove(name)
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in sorted([*shards, *files]):
            if name.endswith(ENDINGS) and not name.startswith("."):
                yield Path(top, name)


def expanded(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the profiles that arguments name: files, folders of shards, or all in a folder of profiles."""
    for path in paths:
        if path.is_dir() and not is_directory(path):
            yield from profiles_in(path)
        else:
            yield path


class Ingest:
    """Reads profiles into one dataset.

    Parameters
    ----------
    dataset : Dataset
    cluster : str
        Name of the machine; empty: as each profile has it.

    Attributes
    ----------
    counts : Counts
    """

    def __init__(
        self,
        dataset: Dataset,
        cluster: str,
        pseudonyms: Pseudonyms | None = None,
        codes: Sequence[Code] = CODES,
    ):
        self.counts = Counts()
        self._dataset, self._cluster, self._codes = dataset, cluster, codes
        self._pseudonyms = pseudonyms or Pseudonyms()
        self._batch: Rows = {name: [] for name in TABLES}
        self._rows = 0
        self._since = time.monotonic()
        self._files: set[int] | None = None
        self._jobs: set[int] = set()  # of the batch

    def _is_known(self, file_id: int) -> bool:
        """Return whether a file was read or refused before and has not changed since."""
        if self._files is None:
            self._files = self._dataset.known("job", "file") | self._dataset.known("refused")
        return file_id in self._files

    def read(self, path: Path) -> None:
        """Read one profile into the batch, which is written when it is large.

        Raises
        ------
        CommlensError
            The dataset cannot be written.
        """
        try:
            origin = Origin(
                path.absolute(), path.stat(), state_of(path), self._cluster, self._pseudonyms, self._codes
            )
        except (OSError, ValueError) as error:
            self._refuse(path, f"cannot be read: {getattr(error, 'strerror', None) or error}")
            return
        if self._is_known(origin.file_id):
            self.counts.known += 1
            return
        rows, reason, is_whole = rows_of(path, origin)
        if not is_whole and time.time() - origin.state[1] / 1e9 < SETTLED_S:
            # A job goes in once: half of a folder of shards would stay all that the dataset has of it.
            self._refuse(
                path, "incomplete, and changed just now: it may still be copied, read it again later"
            )
            return
        assert self._files is not None
        self._files.add(origin.file_id)
        jobs = {row[0] for row in rows.get("job", ())}
        if jobs & self._jobs:  # a copy of a profile of this batch
            self.counts.known += 1
            return
        self._jobs |= jobs
        if reason:
            self._refuse(path, reason)
            rows = {"refused": [self._refusal(origin, reason)]}
        for table, some in rows.items():
            self._batch[table] += some
            self._rows += len(some)
        if self._rows >= MOST_ROWS or time.monotonic() - self._since > MOST_S:
            self.flush()

    def _refuse(self, path: Path, reason: str) -> None:
        self.counts.refused += 1
        self.counts.reasons.append(f"{path}: {reason}")

    def _refusal(self, origin: Origin, reason: str) -> tuple[Any, ...]:
        row = {
            "id": origin.file_id,
            "cluster": origin.cluster,
            "month": month_of(origin.changed),
            "changed": origin.changed,
            "owner": origin.owner,
            "profile": str(origin.path),
            "reason": reason,
        }
        spec = TABLES["refused"]
        return self._pseudonyms.applied(spec, [row[c.name] for c in spec.columns], origin.owner)

    def add_rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> int:
        """Add rows of another source than profiles; return how many were new."""
        return self._dataset.add({table: rows}).get(table, 0)

    def flush(self) -> None:
        """Write the batch.

        Raises
        ------
        CommlensError
            The dataset cannot be written.
        """
        jobs = len(self._batch["job"])
        if self._rows:
            added = self._dataset.add(self._batch).get("job", 0)
            self.counts.added += added
            self.counts.known += jobs - added
            self._batch = {name: [] for name in TABLES}
            self._jobs.clear()
            self._rows = 0
            self._dataset.compact()
        self._since = time.monotonic()


def rows_of(path: Path, origin: Origin) -> tuple[Rows, str, bool]:
    """Return the rows of a profile, or the reason why it cannot be read; and whether no part of it is missing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IncompleteProfile)
        try:
            with open_profile(str(path)) as connection:
                reader = JobReader(connection, origin)
                complaints = sum(issubclass(warning.category, IncompleteProfile) for warning in caught)
                return reader.read(complaints), "", not complaints
        except CommlensError as error:
            return {}, without_path(error.message, path), True
        # Whatever a damaged profile does to one of the readers, the profiles after it are read.
        except Exception as error:
            return {}, without_path(f"cannot be read: {type(error).__name__}: {error}", path), True


def without_path(reason: str, path: Path) -> str:
    """Return a reason without the path, which column profile has, as a token if the centre wants that.

    >>> without_path("/home/alice/a.db: truncated", Path("/home/alice/a.db"))
    'truncated'
    """
    for text in (str(path), escape(str(path), Target.LINE)):
        reason = reason.replace(f"{text}: ", "", 1).replace(text, "the profile")
    return reason


def watch(ingest: Ingest, folders: Sequence[Path], every_s: float, is_over: Callable[[], bool]) -> None:
    """Read the profiles that appear in folders until `is_over`; a look at the folders every `every_s` seconds."""
    seen: dict[Path, tuple[int, int]] = {}
    while not is_over():
        for folder in folders:
            for path in profiles_in(folder):
                with suppress(OSError):
                    state = state_of(path)
                    if seen.get(path) == state or time.time() - state[1] / 1e9 < SETTLED_S:
                        continue
                    seen[path] = state
                    ingest.read(path)
                if is_over():
                    break
        ingest.flush()
        end = time.monotonic() + every_s
        while time.monotonic() < end and not is_over():
            time.sleep(min(0.2, every_s))
